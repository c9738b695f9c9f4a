public import RingbackBase

/// The credential helpers of docker's `config.json`, which podman and skopeo read too: the member `credHelpers`, with a
/// helper's name for each registry. A change is made in the text. Order, indentation and everything else stay as they
/// are.
public struct DockerConfiguration: Sendable, Equatable {
    public enum Failure: Error, Equatable, Sendable {
        /// The file is not a JSON object, or has a member twice.
        case notAnObject
        /// Its `credHelpers` is no object of texts.
        case helpersUnreadable
    }

    private static let member = "credHelpers"
    private static let helper = "ringback"

    public private(set) var bytes: [UInt8]

    /// - Parameter bytes: the file's; nil if there is no file.
    public init(reading bytes: [UInt8]?) throws(Failure) {
        self.bytes = bytes ?? Array("{}\n".utf8)
        guard let object = (try? JSON(parsing: self.bytes))?.object else { throw .notAnObject }
        guard let helpers = object[DockerConfiguration.member] else { return }
        guard let members = helpers.object?.members, members.allSatisfy({ $0.value.string != nil }) else {
            throw .helpersUnreadable
        }
    }

    /// The helper of each registry, in the file's order.
    public var helpers: [(registry: String, helper: String)] {
        let object = (try? JSON(parsing: bytes))?[DockerConfiguration.member]?.object
        return (object?.members ?? []).map { ($0.name, $0.value.string ?? "") }
    }

    public var registries: [String] { helpers.filter { $0.helper == DockerConfiguration.helper }.map(\.registry) }

    public func otherHelper(of registry: String) -> String? {
        helpers.first { $0.registry == registry && $0.helper != DockerConfiguration.helper }?.helper
    }

    /// The registry of an origin; nil if tools cannot ask for it: they name neither a path nor a user.
    public static func registry(of rule: OriginRule) -> String? {
        let pattern = rule.pattern
        return pattern.scheme == "https" && pattern.segments.isEmpty && rule.username == nil ? pattern.place : nil
    }

    public mutating func add(_ registry: String) {
        guard !helpers.contains(where: { $0.registry == registry }) else { return }
        let top = JSONMembers(top: bytes)
        let entry = "\(JSON.string(registry).text): \(JSON.string(DockerConfiguration.helper).text)"
        if let known = top[DockerConfiguration.member] {
            let helpers = JSONMembers(bytes, at: known.value.lowerBound)
            helpers.insert(entry, into: &bytes, outer: top.spaceBefore(known, in: bytes))
        } else {
            // The file has tabs if it is new, as docker writes it.
            let space = top.all.last.map { top.spaceBefore($0, in: bytes) } ?? "\n\t"
            let (inner, end) = JSONMembers.space(within: space)
            top.insert(
                "\(JSON.string(DockerConfiguration.member).text): {\(inner)\(entry)\(end)}", into: &bytes, outer: "\n")
        }
    }

    /// Removes Ringback as the helper of a registry, and `credHelpers` if nothing is left in it.
    public mutating func remove(_ registry: String) {
        guard registries.contains(registry), let known = JSONMembers(top: bytes)[DockerConfiguration.member] else {
            return
        }
        JSONMembers(bytes, at: known.value.lowerBound).remove(registry, from: &bytes)
        guard helpers.isEmpty else { return }
        JSONMembers(top: bytes).remove(DockerConfiguration.member, from: &bytes)
    }
}

/// Where the members of an object are in a text that is known to be JSON.
struct JSONMembers {
    struct Member {
        let name: String
        /// Where the name's quotation mark is.
        let start: Int
        let value: Range<Int>
    }

    private(set) var all: [Member] = []
    private let open: Int
    /// Where the closing brace is.
    private(set) var end: Int

    /// The object that the text is.
    init(top bytes: [UInt8]) {
        self.init(bytes, at: bytes.firstIndex { !CommentedJSON.isSpace($0) } ?? bytes.count)
    }

    /// The object that begins at an offset.
    init(_ bytes: [UInt8], at open: Int) {
        self.open = open
        var index = open + 1
        while true {
            JSONMembers.skipSpace(bytes, &index)
            guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { break }
            let start = index
            JSONMembers.skipValue(bytes, &index)
            let name = (try? JSON(parsing: bytes[start..<index]))?.string ?? ""
            JSONMembers.skipSpace(bytes, &index)
            index += 1
            JSONMembers.skipSpace(bytes, &index)
            let value = index
            JSONMembers.skipValue(bytes, &index)
            all.append(Member(name: name, start: start, value: value..<index))
            JSONMembers.skipSpace(bytes, &index)
            guard index < bytes.count, bytes[index] == UInt8(ascii: ",") else { break }
            index += 1
        }
        end = min(index, bytes.count)
    }

    subscript(name: String) -> Member? { all.first { $0.name == name } }

    /// The space between what is before a member and its name.
    func spaceBefore(_ member: Member, in bytes: [UInt8]) -> String {
        var start = member.start
        while start > open + 1, CommentedJSON.isSpace(bytes[start - 1]) { start -= 1 }
        return String(decoding: bytes[start..<member.start], as: UTF8.self)
    }

    /// - Parameter outer: the space before the member that this object is the value of.
    func insert(_ text: String, into bytes: inout [UInt8], outer: String) {
        if let last = all.last {
            bytes.insert(contentsOf: ",\(spaceBefore(last, in: bytes))\(text)".utf8, at: last.value.upperBound)
        } else {
            let (inner, last) = JSONMembers.space(within: outer)
            bytes.replaceSubrange(open + 1..<end, with: "\(inner)\(text)\(last)".utf8)
        }
    }

    func remove(_ name: String, from bytes: inout [UInt8]) {
        guard let index = all.firstIndex(where: { $0.name == name }) else { return }
        if all.count == 1 {
            bytes.removeSubrange(open + 1..<end)
        } else if index == 0 {
            bytes.removeSubrange(all[0].start..<all[1].start)
        } else {
            bytes.removeSubrange(all[index - 1].value.upperBound..<all[index].value.upperBound)
        }
    }

    /// The space before the members of an object, and before its end, for an object that is a member itself.
    static func space(within outer: String) -> (inner: String, end: String) {
        guard let line = outer.utf8.lastIndex(of: 0x0A) else { return ("", "") }
        let indent = String(outer[outer.utf8.index(after: line)...])
        let end = (outer.utf8.contains(0x0D) ? "\r\n" : "\n") + indent
        return (end + (indent.isEmpty ? "\t" : indent), end)
    }

    /// Where the value is that begins at an offset; nil at the end of the text.
    static func value(_ bytes: [UInt8], at start: Int) -> Range<Int>? {
        guard start < bytes.count else { return nil }
        var end = start
        skipValue(bytes, &end)
        return start..<end
    }

    private static func skipSpace(_ bytes: [UInt8], _ index: inout Int) {
        while index < bytes.count, CommentedJSON.isSpace(bytes[index]) { index += 1 }
    }

    private static func skipValue(_ bytes: [UInt8], _ index: inout Int) {
        var (depth, isInString) = (0, false)
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\\") where isInString: index += 1
            case UInt8(ascii: "\""):
                isInString.toggle()
                if !isInString, depth == 0 {
                    index += 1
                    return
                }
            case _ where isInString: break
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                // The end of the object around a number or a word.
                if depth == 0 { return }
                depth -= 1
                if depth == 0 {
                    index += 1
                    return
                }
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D:
                if depth == 0 { return }
            default: break
            }
            index += 1
        }
    }
}

/// What `ringback setup` has written where a tool's configuration cannot say it: lines of text, the first of which names
/// the format.
public struct SetupEntries: Sendable, Equatable {
    private static let head = "ringback setup 1"

    /// The lines after the first.
    private var lines: Set<String> = []

    public init() {}

    /// Nil for a file that is not such a list.
    public init?(reading bytes: [UInt8]) {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        // By bytes: as text, a carriage return and a line break are one character.
        let lines = bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
        guard lines.first == SetupEntries.head else { return nil }
        self.lines = Set(lines.dropFirst())
    }

    public var bytes: [UInt8] {
        Array(([SetupEntries.head] + lines.sorted()).map { $0 + "\n" }.joined().utf8)
    }

    public mutating func add(registry: String, of file: String) { lines.insert(SetupEntries.line(registry, file)) }
    public mutating func add(link: String) { lines.insert("link \(link)") }

    /// A file that did not exist before, with the directories that were made for it, the outermost first.
    public mutating func add(file: String, in directories: [String]) {
        lines.insert("file \(file)")
        for directory in directories { lines.insert("directory \(directory)") }
    }

    public func has(file: String) -> Bool { lines.contains("file \(file)") }

    /// The directories above the file that were made for it, the innermost first; nil for a file that is not listed.
    public mutating func remove(file: String) -> [String]? {
        guard lines.remove("file \(file)") != nil else { return nil }
        var (made, path) = ([String](), file[...])
        while let slash = path.lastIndex(of: "/"), slash > path.startIndex {
            path = path[..<slash]
            guard lines.remove("directory \(path)") != nil else { break }
            made.append(String(path))
        }
        return made
    }

    /// False for an entry that is not in the list.
    public mutating func remove(registry: String, of file: String) -> Bool {
        lines.remove(SetupEntries.line(registry, file)) != nil
    }

    /// False for a link that is not in the list.
    public mutating func remove(link: String) -> Bool { lines.remove("link \(link)") != nil }
    private static func line(_ registry: String, _ file: String) -> String { "credHelpers \(registry) \(file)" }
}
