/// The header fields of a message, in order. Names are compared without regard to letter case (RFC 9110 section 5.1).
public struct HTTPFields: Sendable {
    /// One field line.
    public struct Field: Sendable {
        public let name: String
        public let value: String
    }

    public private(set) var lines: [Field] = []

    public init() {}

    public init(_ pairs: [(String, String)]) {
        for (name, value) in pairs { append(name, value) }
    }

    /// Appends a line. Lines with the same name are kept.
    public mutating func append(_ name: String, _ value: String) {
        lines.append(Field(name: name, value: value))
    }

    /// Replaces all lines with this name by one.
    public mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }

    /// Removes all lines with this name.
    public mutating func remove(_ name: String) { lines.removeAll { HTTPFields.isSame($0.name, name) } }

    /// Every value of the name, in order.
    public subscript(all name: String) -> [String] {
        lines.filter { HTTPFields.isSame($0.name, name) }.map(\.value)
    }

    /// The first value of the name.
    public subscript(name: String) -> String? {
        lines.first { HTTPFields.isSame($0.name, name) }?.value
    }

    /// True if the name occurs.
    public func contains(_ name: String) -> Bool {
        lines.contains { HTTPFields.isSame($0.name, name) }
    }

    /// Compares two field names as ASCII, without regard to letter case.
    public static func isSame(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        var others = right.utf8.makeIterator()
        for byte in left.utf8 {
            guard let other = others.next(), byte == other || lowered(byte) == lowered(other) else { return false }
        }
        return true
    }

    /// True for a character of a token, such as a field's name (RFC 9110 section 5.6.2).
    public static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}
