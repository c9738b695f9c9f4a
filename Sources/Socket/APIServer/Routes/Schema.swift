internal import StrictJSON

/// The shape of a value, as the OpenAPI document says it: the part of JSON Schema that the socket API needs.
indirect enum Schema: Sendable, Equatable {
    case string
    /// A string that matches an ECMA-262 regular expression.
    case pattern(String)
    /// A string with a least and a greatest length.
    case lengths(ClosedRange<Int>)
    /// A string that is one of some words.
    case words([String])
    case integer
    case range(ClosedRange<Int>)
    case boolean
    /// Any value.
    case anything
    /// An object with any members.
    case anyObject
    /// An object with any names, and values of one shape.
    case map(Schema)
    case array(Schema)
    case object([Member])
    case component(Component)
    case either([Component])

    /// A string that is a raw value of the type.
    static func oneOf<Word: RawRepresentable<String> & CaseIterable>(_ type: Word.Type) -> Schema {
        .words(type.allCases.map(\.rawValue))
    }
}

/// A named schema. The document lists every one that a route refers to.
struct Component: Sendable, Equatable {
    let name: String
    let schema: Schema

    init(_ name: String, _ schema: Schema) {
        self.name = name
        self.schema = schema
    }

    init(_ name: String, _ members: [Member]) { self.init(name, .object(members)) }

    /// Components with the same name are equal: a test makes sure that a name has one schema.
    static func == (left: Component, right: Component) -> Bool { left.name == right.name }
}

/// A named value: a member of an object, or a parameter of a query.
struct Member: Sendable, Equatable {
    let name: String
    let schema: Schema
    let isRequired: Bool
    /// A description; nil if the name is enough.
    let text: String?
    /// True for members that are only sent, never returned.
    let isSecret: Bool

    static func required(_ name: String, _ schema: Schema, _ text: String? = nil) -> Member {
        Member(name: name, schema: schema, isRequired: true, text: text, isSecret: false)
    }

    static func optional(_ name: String, _ schema: Schema, _ text: String? = nil) -> Member {
        Member(name: name, schema: schema, isRequired: false, text: text, isSecret: false)
    }

    /// An optional string that must not be shown.
    static func secret(_ name: String, _ text: String? = nil) -> Member {
        Member(name: name, schema: .string, isRequired: false, text: text, isSecret: true)
    }
}

extension Schema {
    /// The schema in JSON Schema 2020-12, as OpenAPI 3.1 has it.
    var json: JSON { .object(JSONObject(members)) }

    private var members: [JSONObject.Member] {
        switch self {
        case .string: [.init("type", "string")]
        case .pattern(let pattern): [.init("type", "string"), .init("pattern", .string(pattern))]
        case .lengths(let range):
            [
                .init("type", "string"), .init("minLength", .integer(range.lowerBound)),
                .init("maxLength", .integer(range.upperBound)),
            ]
        case .words(let words): [.init("type", "string"), .init("enum", Schema.texts(words))]
        case .integer: [.init("type", "integer")]
        case .range(let range):
            [
                .init("type", "integer"), .init("minimum", .integer(range.lowerBound)),
                .init("maximum", .integer(range.upperBound)),
            ]
        case .boolean: [.init("type", "boolean")]
        case .anything: []
        case .anyObject: [.init("type", "object")]
        case .map(let value): [.init("type", "object"), .init("additionalProperties", value.json)]
        case .array(let element): [.init("type", "array"), .init("items", element.json)]
        case .object(let members): Schema.ofObject(members)
        case .component(let component): [.init("$ref", .string("#/components/schemas/\(component.name)"))]
        case .either(let components): [.init("anyOf", .array(components.map { Schema.component($0).json }))]
        }
    }

    private static func ofObject(_ members: [Member]) -> [JSONObject.Member] {
        let required = members.filter(\.isRequired).map(\.name)
        let properties = members.map { JSONObject.Member($0.name, $0.property) }
        var schema: [JSONObject.Member] = [.init("type", "object")]
        if !required.isEmpty { schema.append(.init("required", texts(required))) }
        schema.append(.init("properties", .object(JSONObject(properties))))
        return schema
    }

    private static func texts(_ texts: [String]) -> JSON { .array(texts.map { .string($0) }) }

    /// The components that the schema refers to, those of its parts and of these components included.
    var components: [Component] {
        switch self {
        case .component(let component): [component] + component.schema.components
        case .either(let components): components.flatMap { Schema.component($0).components }
        case .array(let part), .map(let part): part.components
        case .object(let members): members.flatMap(\.schema.components)
        default: []
        }
    }
}

extension Member {
    fileprivate var property: JSON {
        var object = schema.json.object ?? JSONObject()
        if isSecret { object["writeOnly"] = true }
        object["description"] = text.map { .string($0) }
        return .object(object)
    }

    /// The member as a parameter of a query.
    var queryParameter: JSON {
        var object = JSONObject([
            .init("name", .string(name)), .init("in", "query"), .init("required", .bool(isRequired)),
        ])
        object["description"] = text.map { .string($0) }
        object["schema"] = schema.json
        return .object(object)
    }
}
