internal import RingbackAPI
internal import StrictJSON

/// The OpenAPI 3.1 description of the socket API, made from the list of routes and the table of error codes. Tests
/// compare the daemon's responses with it.
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

    /// Every component that a route refers to, once each, by name.
    static var components: [Component] {
        var found: [String: Component] = [Component.problem.name: .problem]
        for component in Router.shared.routes.compactMap(\.content.component) {
            for part in Schema.component(component).components { found[part.name] = part }
        }
        return found.values.sorted { $0.name < $1.name }
    }

    private static func operation(_ route: Route) -> JSON {
        var object = JSONObject([
            .init("operationId", .string(route.endpoint.rawValue)), .init("summary", .string(route.summary)),
            .init("x-ringback-operation", .string(route.endpoint.operation.rawValue)),
        ])
        let parameters = route.endpoint.parameters.map(pathParameter) + route.query.map(\.queryParameter)
        if !parameters.isEmpty { object["parameters"] = .array(parameters) }
        if let body = body(route.body) {
            object["requestBody"] = ["content": ["application/json": ["schema": body]]]
        }
        object["responses"] = .object(responses(route))
        return .object(object)
    }

    private static func pathParameter(_ name: String) -> JSON {
        ["name": .string(name), "in": "path", "required": true, "schema": Schema.string.json]
    }

    private static func body(_ body: Route.Body) -> JSON? {
        switch body {
        case .none: return nil
        case .open: return Schema.anyObject.json
        case .members(let members):
            var schema = Schema.object(members).json.object ?? JSONObject()
            // Another member is rejected, see ``Call/refuseUnknownMembers()``.
            schema["additionalProperties"] = false
            return .object(schema)
        }
    }

    /// OpenAPI 3.1 has no way to say that a schema is that of one item of a stream; programs that make clients read it so.
    private static func eventSchema(_ component: Component) -> JSON {
        var schema = Schema.component(component).json.object ?? JSONObject()
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
