internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON

/// The OpenAPI 3.1 description of the socket API, made from the route table and the table of error codes, so that it
/// cannot say less than the daemon does. Tests hold the daemon's answers to it.
enum OpenAPIDocument {
    static func response(version: String) -> ServerResponse {
        ServerResponse(
            status: 200, fields: ServerResponse.jsonFields, body: document(version: version).serialized())
    }

    static func document(version: String) -> JSON {
        var paths = JSONObject()
        for route in Route.all {
            var path = paths[route.path]?.object ?? JSONObject()
            path[route.method.lowercased()] = operation(route)
            paths[route.path] = .object(path)
        }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Ringback", "version": .string(version),
                "description": "The socket API of ringbackd, over a Unix socket. Times are Unix seconds.",
            ],
            "servers": [["url": "http://ringback"]],
            "paths": .object(paths),
            "components": ["schemas": .object(OpenAPISchemas.all)],
        ]
    }

    private static func operation(_ route: Route) -> JSON {
        let entry = OpenAPIOperations.entry(of: route.id)
        var object = JSONObject([
            .init("operationId", .string(route.id.rawValue)), .init("summary", .string(entry.summary)),
            .init("x-ringback-operation", .string(route.operation.rawValue)),
        ])
        let parameters = pathParameters(route) + entry.parameters
        if !parameters.isEmpty { object["parameters"] = .array(parameters) }
        if var body = entry.body?.object {
            // Another member is refused, see ``Call/refuseUnknownMembers()``.
            if body["properties"] != nil { body["additionalProperties"] = false }
            object["requestBody"] = ["content": ["application/json": ["schema": .object(body)]]]
        }
        object["responses"] = .object(responses(entry))
        return .object(object)
    }

    private static func pathParameters(_ route: Route) -> [JSON] {
        route.path.split(separator: "/").filter { $0.hasPrefix("{") }.map { segment in
            [
                "name": .string(String(segment.dropFirst().dropLast())), "in": "path", "required": true,
                "schema": ["type": "string"],
            ]
        }
    }

    private static func responses(_ entry: OpenAPIOperations.Entry) -> JSONObject {
        var responses = JSONObject()
        for status in entry.successes {
            let content: JSON =
                if let schema = entry.schema {
                    ["application/json": ["schema": reference(schema)]]
                } else {
                    .object(JSONObject([.init(entry.mediaType, ["schema": ["type": "string"]])]))
                }
            responses[String(status)] = ["description": .string(entry.summary), "content": content]
        }
        // Any request may meet these: a web page's fields, broken HTTP, the end of the daemon.
        var codes: Set<ErrorCode> = [.policyDenied, .invalidRequest, .internalError, .shuttingDown, .payloadTooLarge]
        codes.formUnion([.unsupportedMediaType, .methodNotAllowed, .validationFailed])
        codes.formUnion(entry.errors)
        let byStatus = Dictionary(grouping: codes) { ErrorCode.table[$0]?.status ?? 500 }
        for (status, codes) in byStatus.sorted(by: { $0.key < $1.key }) {
            responses[String(status)] = [
                "description": .string(codes.map(\.rawValue).sorted().joined(separator: ", ")),
                "content": ["application/problem+json": ["schema": reference("Problem")]],
            ]
        }
        return responses
    }

    static func reference(_ schema: String) -> JSON { ["$ref": .string("#/components/schemas/\(schema)")] }
}
