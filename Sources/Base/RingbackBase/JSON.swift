/// A JSON value (RFC 8259).
public enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int)
    /// A number beyond the range of `Double` becomes infinity, so check before converting.
    case double(Double)
    case string(String)
    case array([JSON])
    case object(JSONObject)
}

/// In the order they were written.
public struct JSONObject: Sendable, Equatable {
    public struct Member: Sendable, Equatable {
        public var name: String
        public var value: JSON

        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    public var members: [Member]

    public init(_ members: [Member] = []) { self.members = members }

    /// Setting replaces the member in place or adds it at the end; setting nil removes it.
    public subscript(name: String) -> JSON? {
        get { members.first { $0.name == name }?.value }
        set {
            guard let newValue else { return members.removeAll { $0.name == name } }
            if let index = members.firstIndex(where: { $0.name == name }) {
                members[index].value = newValue
            } else {
                members.append(Member(name, newValue))
            }
        }
    }

    public var names: [String] { members.map(\.name) }
}

extension JSON {
    public var object: JSONObject? { if case .object(let object) = self { object } else { nil } }
    public var array: [JSON]? { if case .array(let array) = self { array } else { nil } }
    public var string: String? { if case .string(let string) = self { string } else { nil } }
    public var integer: Int? { if case .integer(let integer) = self { integer } else { nil } }
    public var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    public subscript(name: String) -> JSON? { object?[name] }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(nilLiteral: ()) { self = .null }
    /// Keeps the order of the members. Names are not checked for duplicates.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(JSONObject(elements.map { JSONObject.Member($0.0, $0.1) }))
    }
}

extension JSON {
    /// Compact JSON that is also safe to print on a terminal. Valid JSON may contain characters that move the cursor
    /// (C1 controls), reverse the direction of text (bidi controls), are invisible, or end a line (U+2028). They are
    /// written as `\u` escapes, which a JSON parser reads back unchanged.
    public var visibleText: String {
        let text = text
        guard !text.unicodeScalars.allSatisfy(JSON.isVisible) else { return text }
        // JSON's syntax is ASCII, so any other character is inside a string, where an escape is allowed.
        var output = ""
        for scalar in text.unicodeScalars {
            if JSON.isVisible(scalar) {
                output.unicodeScalars.append(scalar)
            } else {
                for unit in String(scalar).utf16 { output += JSON.escape(of: unit) }
            }
        }
        return output
    }

    /// The writer has already escaped ASCII controls.
    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool { scalar.isASCII || scalar.isVisible }

    private static func escape(of unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
    }
}
