internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// What the OpenAPI document says of restricted sockets.
extension OpenAPIOperations {
    static func grant(_ id: Route.ID) -> Entry {
        switch id {
        case .listGrants:
            Entry(
                summary: "Every restricted socket, by name, and those that are closed", schema: "Grants",
                errors: [.notFound])
        case .createGrant:
            Entry(
                summary: "Show accounts through a restricted socket", body: body, successes: [201], schema: "Grant",
                errors: [
                    .validationFailed, .accountNotFound, .stateConflict, .invalidConfiguration, .notFound,
                ])
        case .revokeGrant:
            Entry(
                summary: "End a restricted socket and its connections; id or name", schema: "Grant",
                errors: [.notFound, .stateConflict])
        default: Entry(summary: "A restricted socket; id or name", schema: "Grant", errors: [.notFound])
        }
    }

    private static let body: JSON = [
        "type": "object", "required": ["name"],
        "properties": [
            "name": ["type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"],
            "accounts": ["type": "array", "items": ["type": "string"]],
            "account": ["type": "string", "description": "One more account"],
            "scope": [
                "type": "string", "description": "The most that a token is good for; separated by spaces",
            ],
            "ttl": [
                "type": "integer", "minimum": 1, "maximum": .integer(ExposedSocket.Order.longestLifetime),
                "description": "Seconds",
            ],
            "allow_uids": [
                "type": "array", "items": ["type": "integer"], "description": "Other users who may connect",
            ],
            "flatpak": ["type": "string", "description": "An app's id: its own directory gets the socket, too"],
        ],
    ]
}

extension OpenAPISchemas {
    static let ofGrants: [JSONObject.Member] = [
        .init(
            "Grants",
            [
                "type": "object", "required": ["grants", "closed"],
                "properties": [
                    "grants": ["type": "array", "items": OpenAPIDocument.reference("Grant")],
                    "closed": ["type": "array", "items": OpenAPIDocument.reference("ClosedGrant")],
                ],
            ]),
        .init(
            "ClosedGrant",
            [
                "type": "object", "required": ["name", "source", "accounts", "reason", "detail"],
                "properties": [
                    "name": ["type": "string"], "source": ["type": "string"],
                    "accounts": ["type": "array", "items": ["type": "string"]],
                    "reason": [
                        "type": "string",
                        "enum": .array(ClosedSocket.Reason.allCases.map { .string($0.rawValue) }),
                    ],
                    "detail": ["type": "string"],
                ],
            ]),
        .init(
            "Grant",
            [
                "type": "object", "required": ["id", "name", "accounts", "allow_uids", "created_at", "source"],
                "properties": [
                    "id": ["type": "string"], "name": ["type": "string"],
                    "accounts": ["type": "array", "items": ["type": "string"]], "scope": ["type": "string"],
                    "allow_uids": ["type": "array", "items": ["type": "integer"]], "flatpak": ["type": "string"],
                    "created_at": ["type": "integer"], "expires_at": ["type": "integer"],
                    "expires_in": ["type": "integer"], "source": ["type": "string"], "socket": ["type": "string"],
                    "directory": ["type": "string"], "flatpak_socket": ["type": "string"],
                    "notes": ["type": "array", "items": ["type": "string"]],
                ],
            ]),
    ]
}
