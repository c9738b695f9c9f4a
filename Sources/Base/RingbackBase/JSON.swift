/// A JSON value (RFC 8259). The parser is strict: it rejects duplicate members and invalid UTF-8 and limits depth and
/// size.
public enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int)
    /// Any other number. A number beyond the range of `Double` becomes infinity, so check before converting.
    case double(Double)
    case string(String)
    case array([JSON])
    case object(JSONObject)
}

/// The members of a JSON object, in the order they were written.
public struct JSONObject: Sendable, Equatable {
    /// One name and its value.
    public struct Member: Sendable, Equatable {
        public var name: String
        public var value: JSON

        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    public var members: [Member]

    public init(_ members: [Member] = []) {
        self.members = members
    }

    /// The member's value. Setting replaces it in place or adds it at the end; setting nil removes it.
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

    /// The names, in order.
    public var names: [String] { members.map(\.name) }
}

extension JSON {
    /// The members, if this is an object.
    public var object: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }

    /// The elements, if this is an array.
    public var array: [JSON]? {
        if case .array(let array) = self { array } else { nil }
    }

    /// The text, if this is a string.
    public var string: String? {
        if case .string(let string) = self { string } else { nil }
    }

    /// The number, if this is an integer.
    public var integer: Int? {
        if case .integer(let integer) = self { integer } else { nil }
    }

    /// The value, if this is a Boolean.
    public var bool: Bool? {
        if case .bool(let bool) = self { bool } else { nil }
    }

    /// The value of a member, if this is an object with such a member.
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
    /// Keeps the order of the members. Names are not checked for duplicates: a duplicate is a programming error.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(JSONObject(elements.map { JSONObject.Member($0.0, $0.1) }))
    }
}

/// JSON that is also safe to print on a terminal. Valid JSON may contain characters that move the cursor (C1 controls),
/// reverse the direction of text (bidi controls), are invisible, or end a line (U+2028). They are written as `\u`
/// escapes, which a JSON parser reads back unchanged.
extension JSON {
    /// The value as compact JSON text. Every character that a terminal does not show as a visible character is escaped.
    public var visibleText: String {
        let text = text
        guard !text.unicodeScalars.allSatisfy(JSON.isVisible) else { return text }
        // JSON's syntax is ASCII, so a character that is not ASCII is always inside a string, where an escape is
        // allowed.
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

    /// True if a terminal shows the character as it is. ASCII characters always are, because the writer has already
    /// escaped ASCII controls.
    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.isASCII else { return true }
        let properties = scalar.properties
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
            .spaceSeparator:
            return false
        default: return !properties.isDefaultIgnorableCodePoint
        }
    }

    private static func escape(of unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
    }
}
