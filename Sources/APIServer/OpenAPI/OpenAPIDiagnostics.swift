internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// What the OpenAPI document says of what `ringback doctor` asks.
extension OpenAPIOperations {
    static func diagnostics(_ id: Route.ID) -> Entry {
        switch id {
        case .makeDiagnosticLink:
            Entry(
                summary: "Make a link that the desktop is to open; it arrives as a callback would",
                body: ["type": "object", "required": ["scheme"], "properties": ["scheme": ["type": "string"]]],
                successes: [201], schema: "DiagnosticLink", errors: [.validationFailed, .stateConflict])
        case .getDiagnosticLink:
            Entry(
                summary: "Whether a link has arrived, once it has or the wait is over",
                parameters: [query("wait", "integer", "Seconds to wait, at most 600")], schema: "DiagnosticLink",
                errors: [.notFound, .validationFailed])
        default:
            Entry(
                summary: "What the daemon sees of itself and of the accounts' providers",
                parameters: [query("account", "string", "Only this account")], schema: "Diagnostics",
                errors: [.accountNotFound])
        }
    }
}

extension OpenAPISchemas {
    private static let text: JSON = ["type": "string"]

    static let ofDiagnostics: [JSONObject.Member] = [
        .init(
            "Diagnostics",
            [
                "type": "object", "required": ["version", "pid", "accounts", "checks"],
                "properties": [
                    "version": text, "pid": ["type": "integer"], "accounts": ["type": "array", "items": text],
                    "places": ["type": "object", "additionalProperties": text],
                    "configuration_read_at": ["type": "integer"],
                    "checks": ["type": "array", "items": OpenAPIDocument.reference("Check")],
                ],
            ]),
        .init(
            "Check",
            [
                "type": "object", "required": ["check", "level", "message"],
                "properties": [
                    "check": text, "account": text, "message": text, "command": text,
                    "level": ["type": "string", "enum": .array(Finding.Level.allCases.map { .string($0.rawValue) })],
                ],
            ]),
        .init(
            "DiagnosticLink",
            [
                "type": "object", "required": ["id", "scheme", "url", "arrived"],
                "properties": [
                    "id": text, "scheme": text, "url": text, "arrived": ["type": "boolean"], "executable": text,
                ],
            ]),
    ]
}
