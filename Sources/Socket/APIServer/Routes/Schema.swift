internal import RingbackAPI
internal import RingbackBase

indirect enum Schema: Sendable, Equatable {
    case string
    /// A string that matches an ECMA-262 regular expression.
    case pattern(String)
    case lengths(ClosedRange<Int>)
    case words([String])
    case integer
    case range(ClosedRange<Int>)
    case boolean
    case anything
    case anyObject
    case map(Schema)
    case array(Schema)
    case object([Member])
    case component(Component)
    case either([Component])

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

    init(_ name: String, _ members: [Member]...) { self.init(name, .object(members.flatMap { $0 })) }

    /// Components with the same name are equal: a test makes sure that a name has one schema.
    static func == (left: Component, right: Component) -> Bool { left.name == right.name }
}

struct Member: Sendable, Equatable {
    let name: String
    let schema: Schema
    let isRequired: Bool
    let text: String?
    /// True for members that are only sent, never returned.
    let isSecret: Bool

    static func required(_ name: String, _ schema: Schema, _ text: String? = nil) -> Member {
        Member(name: name, schema: schema, isRequired: true, text: text, isSecret: false)
    }

    static func optional(_ name: String, _ schema: Schema, _ text: String? = nil) -> Member {
        Member(name: name, schema: schema, isRequired: false, text: text, isSecret: false)
    }
}

extension [Member] {
    static func required(_ names: String..., as schema: Schema = .string, text: String? = nil) -> [Member] {
        names.map { .required($0, schema, text) }
    }

    static func optional(_ names: String..., as schema: Schema = .string, text: String? = nil) -> [Member] {
        names.map { .optional($0, schema, text) }
    }

    static func secret(_ names: String..., text: String? = nil) -> [Member] {
        names.map { Member(name: $0, schema: .string, isRequired: false, text: text, isSecret: true) }
    }

    static func members(_ rows: [Member]...) -> [Member] { rows.flatMap { $0 } }
}

extension Schema {
    /// The schema in JSON Schema 2020-12, as OpenAPI 3.1 has it.
    var json: JSON { .object(object) }

    fileprivate var object: JSONObject {
        switch self {
        case .string: ["type": "string"]
        case .pattern(let pattern): ["type": "string", "pattern": pattern]
        case .lengths(let range):
            ["type": "string", "minLength": range.lowerBound, "maxLength": range.upperBound]
        case .words(let words): ["type": "string", "enum": words]
        case .integer: ["type": "integer"]
        case .range(let range): ["type": "integer", "minimum": range.lowerBound, "maximum": range.upperBound]
        case .boolean: ["type": "boolean"]
        case .anything: [:]
        case .anyObject: ["type": "object"]
        case .map(let value): ["type": "object", "additionalProperties": value.json]
        case .array(let element): ["type": "array", "items": element.json]
        case .object(let members): Schema.ofObject(members)
        case .component(let component): ["$ref": "#/components/schemas/\(component.name)"]
        case .either(let components): ["anyOf": components.map { Schema.component($0).json }]
        }
    }

    private static func ofObject(_ members: [Member]) -> JSONObject {
        let required = members.filter(\.isRequired).map(\.name)
        let properties = JSONObject(members.map { JSONObject.Member($0.name, $0.property) })
        return ["type": "object", "required": required.isEmpty ? nil : required, "properties": properties]
    }

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
        var object = schema.object
        if isSecret { object["writeOnly"] = true }
        object["description"] = text.map { .string($0) }
        return .object(object)
    }

    var queryParameter: JSONObject {
        ["name": name, "in": "query", "required": isRequired, "description": text, "schema": schema.json]
    }
}

/// The OpenAPI 3.1 description, made from the routes and error codes. Tests compare the daemon's responses with it.
enum OpenAPIDocument {
    static func document(version: String) -> JSON {
        var paths = JSONObject()
        for route in Router.shared.routes {
            var path = paths[route.endpoint.path]?.object ?? JSONObject()
            path[route.endpoint.method.rawValue.lowercased()] = operation(route)
            paths[route.endpoint.path] = .object(path)
        }
        let schemas = components.map { JSONObject.Member($0.name, $0.schema.json) }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Ringback", "version": .string(version),
                "description": "The socket API of ringbackd, over a Unix socket. Times are Unix seconds.",
            ],
            "servers": [["url": "http://ringback"]],
            "paths": .object(paths),
            "components": ["schemas": .object(JSONObject(schemas))],
        ]
    }

    static var components: [Component] {
        var found: [String: Component] = [Component.problem.name: .problem]
        for component in Router.shared.routes.compactMap(\.content.component) {
            for part in Schema.component(component).components { found[part.name] = part }
        }
        return found.values.sorted { $0.name < $1.name }
    }

    private static func operation(_ route: Route) -> JSON {
        let parameters = route.endpoint.parameters.map(pathParameter) + route.query.map(\.queryParameter)
        let media: JSONObject = ["schema": schema(of: route.body)]
        // No JSON: a nil beside it would be null, which is not left out.
        let body: JSONObject = ["content": ["application/json": .object(media)] as JSON]
        let object: JSONObject = [
            "operationId": route.endpoint.rawValue, "summary": route.summary,
            "x-ringback-operation": route.endpoint.operation.rawValue,
            "parameters": parameters.isEmpty ? nil : parameters,
            "requestBody": route.body?.isEmpty == true ? nil : body,
            "responses": responses(route),
        ]
        return .object(object)
    }

    private static func pathParameter(_ name: String) -> JSONObject {
        ["name": name, "in": "path", "required": true, "schema": Schema.string.json]
    }

    private static func schema(of body: [Member]?) -> JSON {
        guard let body else { return Schema.anyObject.json }
        var schema = Schema.object(body).object
        // Another member is rejected, see ``Call/refuseUnknownMembers()``.
        schema["additionalProperties"] = false
        return .object(schema)
    }

    /// OpenAPI 3.1 has no way to say that a schema is that of one item of a stream; programs that make clients read it so.
    private static func eventSchema(_ component: Component) -> JSON {
        var schema = Schema.component(component).object
        schema["description"] = "One event. Any number of them follow each other; data is one line of JSON."
        return .object(schema)
    }

    private static func responses(_ route: Route) -> JSONObject {
        var responses = JSONObject()
        for status in route.statuses {
            let content: JSON =
                switch route.content {
                case .json(let component): ["application/json": ["schema": Schema.component(component).json]]
                case .text(let type): .object(JSONObject([.init(type, ["schema": Schema.string.json])]))
                case .events(let component): ["text/event-stream": ["schema": eventSchema(component)]]
                }
            responses[String(status)] = ["description": .string(route.summary), "content": content]
        }
        let byStatus = Dictionary(grouping: codes(of: route)) { ErrorCode.table[$0]?.status ?? 500 }
        for (status, codes) in byStatus.sorted(by: { $0.key < $1.key }) {
            responses[String(status)] = [
                "description": .string(codes.map(\.rawValue).sorted().joined(separator: ", ")),
                "content": ["application/problem+json": ["schema": Schema.component(.problem).json]],
            ]
        }
        return responses
    }

    /// The problems that any request may get: for a web page's fields, for invalid HTTP, when the daemon shuts down.
    private static func codes(of route: Route) -> Set<ErrorCode> {
        route.errors.and([
            .policyDenied, .invalidRequest, .internalError, .shuttingDown, .payloadTooLarge, .unsupportedMediaType,
            .methodNotAllowed, .validationFailed,
        ])
    }
}
