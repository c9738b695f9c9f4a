/// A value that a member of a JSON object can have.
public protocol JSONConvertible {
    var jsonValue: JSON { get }
}

extension JSON: JSONConvertible { public var jsonValue: JSON { self } }
extension JSONObject: JSONConvertible { public var jsonValue: JSON { .object(self) } }
extension String: JSONConvertible { public var jsonValue: JSON { .string(self) } }
extension Int: JSONConvertible { public var jsonValue: JSON { .integer(self) } }
extension Bool: JSONConvertible { public var jsonValue: JSON { .bool(self) } }

extension Array: JSONConvertible where Element: JSONConvertible {
    public var jsonValue: JSON { .array(map(\.jsonValue)) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// A member whose value is nil is left out. Names are not checked for duplicates.
    public init(dictionaryLiteral elements: (String, (any JSONConvertible)?)...) {
        self.init(elements.compactMap { name, value in value.map { Member(name, $0.jsonValue) } })
    }
}
