/// An element of a small XML document, as AWS's token service answers: elements, text and the five named entities.
/// Everything that needs more than that is refused: document types, processing instructions, comments, CDATA. Entities
/// that a document defines could grow without bound, so there are none. Attributes are skipped.
struct XMLElement: Sendable, Equatable {
    /// Why a document is refused. The reasons contain nothing of it.
    struct Failure: Error, Equatable, Sendable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    let name: String
    private(set) var children: [XMLElement] = []
    /// The text beside the children.
    private(set) var text = ""

    /// The most bytes of a document that are read.
    static let maxBytes = 65_536
    private static let maxDepth = 8
    private static let maxElements = 256

    init(name: String) { self.name = name }

    /// Reads a document and returns its root.
    init(parsing bytes: [UInt8]) throws(Failure) {
        guard bytes.count <= XMLElement.maxBytes else { throw Failure("it is too long") }
        guard String(validating: bytes, as: UTF8.self) != nil else { throw Failure("it is not UTF-8") }
        var reader = Reader(rest: bytes[...])
        self = try reader.readDocument()
    }

    /// The only child of this name; nil if there is none.
    ///
    /// - Throws: if there are several.
    func child(_ name: String) throws(Failure) -> XMLElement? {
        let found = children.filter { $0.name == name }
        guard found.count < 2 else { throw Failure("an element is there twice") }
        return found.first
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>
        var count = 0

        mutating func readDocument() throws(Failure) -> XMLElement {
            take("\u{FEFF}")
            if take("<?xml ") {
                guard let end = rest.firstIndex(of: UInt8(ascii: ">")), end - rest.startIndex < 128,
                    end > rest.startIndex, rest[end - 1] == UInt8(ascii: "?")
                else { throw Failure("its declaration does not end") }
                rest = rest[(end + 1)...]
            }
            skipSpace()
            let root = try readElements()
            skipSpace()
            guard rest.isEmpty else { throw Failure("something follows its root element") }
            return root
        }

        /// The root with everything in it. Without recursion: the depth is bounded by ``maxDepth`` alone.
        private mutating func readElements() throws(Failure) -> XMLElement {
            var open: [XMLElement] = []
            while true {
                if take("</") {
                    let name = try readName()
                    skipSpace()
                    guard take(">"), let last = open.popLast(), last.name == name else {
                        throw Failure("an element ends that was not begun")
                    }
                    guard !open.isEmpty else { return last }
                    open[open.count - 1].children.append(last)
                } else if take("<") {
                    count += 1
                    guard count <= XMLElement.maxElements, open.count < XMLElement.maxDepth else {
                        throw Failure("it has too many elements")
                    }
                    let element = XMLElement(name: try readName())
                    guard try readAttributes() else {
                        open.append(element)
                        continue
                    }
                    guard !open.isEmpty else { return element }
                    open[open.count - 1].children.append(element)
                } else {
                    guard !open.isEmpty else { throw Failure("it does not begin with an element") }
                    open[open.count - 1].text += try readText()
                }
            }
        }

        /// Letters, digits and what may stand in names; AWS's have no others.
        private mutating func readName() throws(Failure) -> String {
            let name = rest.prefix { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "_.:-".utf8.contains(byte)
                }
            }
            guard let first = name.first, first >= 0x41, name.count <= 128 else {
                throw Failure("an element has a name that is not read here")
            }
            rest = rest.dropFirst(name.count)
            return String(decoding: name, as: UTF8.self)
        }

        /// Skips the attributes of a start tag, such as the namespace. True for an empty element.
        private mutating func readAttributes() throws(Failure) -> Bool {
            while true {
                let hasSpace = skipSpace()
                if take("/>") { return true }
                if take(">") { return false }
                guard hasSpace else { throw Failure("a tag does not end") }
                _ = try readName()
                skipSpace()
                guard take("=") else { throw Failure("an attribute has no value") }
                skipSpace()
                guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
                    let end = rest.firstIndex(of: quote), !rest[..<end].contains(UInt8(ascii: "<"))
                else { throw Failure("an attribute has no value") }
                rest = rest[(end + 1)...]
            }
        }

        /// The text up to the next tag.
        private mutating func readText() throws(Failure) -> String {
            var text: [UInt8] = []
            while let byte = rest.first, byte != UInt8(ascii: "<") {
                guard byte == UInt8(ascii: "&") else {
                    guard byte >= 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D else {
                        throw Failure("it has a control character")
                    }
                    text.append(byte)
                    rest.removeFirst()
                    continue
                }
                guard let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")) else {
                    throw Failure("an entity does not end")
                }
                let name = String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self)
                text += Array(try XMLElement.character(name).utf8)
                rest = rest[(end + 1)...]
            }
            guard !rest.isEmpty else { throw Failure("it ends in an element") }
            return String(decoding: text, as: UTF8.self)
        }

        @discardableResult
        private mutating func take(_ text: String) -> Bool {
            guard rest.starts(with: text.utf8) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }

        @discardableResult
        private mutating func skipSpace() -> Bool {
            let count = rest.count
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
            return rest.count < count
        }
    }

    /// The character that an entity stands for.
    private static func character(_ entity: String) throws(Failure) -> String {
        switch entity {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "quot": return "\""
        case "apos": return "'"
        default:
            let isHexadecimal = entity.hasPrefix("#x")
            let digits = entity.dropFirst(isHexadecimal ? 2 : 1)
            guard entity.hasPrefix("#"), digits.allSatisfy(\.isHexDigit), digits.utf8.allSatisfy({ $0 < 0x80 }),
                let value = UInt32(digits, radix: isHexadecimal ? 16 : 10),
                value >= 0x20 || value == 0x09 || value == 0x0A || value == 0x0D, let scalar = Unicode.Scalar(value)
            else { throw Failure("it has an entity that is not read here") }
            return String(scalar)
        }
    }
}
