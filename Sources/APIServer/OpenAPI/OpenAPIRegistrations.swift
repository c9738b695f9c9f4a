internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// What the OpenAPI document says of client registrations.
extension OpenAPIOperations {
    private static let refusals: [ErrorCode] = [
        .providerError, .invalidProviderResponse, .providerUnreachable, .rateLimited, .invalidConfiguration,
        .vaultLocked, .timeout, .validationFailed, .stateConflict,
    ]

    static func registration(_ id: Route.ID) -> Entry {
        guard id == .register else {
            return Entry(
                summary: "Delete a registration that no account uses, at the provider and in the vault",
                parameters: [
                    query("issuer", "string", "Where it is", required: true),
                    query("client_id", "string", "Which one; without it, one that could not be used"),
                    query("ca_file", "string", "Certificates to believe instead of the system's"),
                ], schema: "RegistrationDeleted", errors: refusals + [.accountNotFound, .notFound])
        }
        return Entry(
            summary: "Have a client registered (RFC 7591) for an account that is to be added", body: body,
            successes: [201], schema: "Registration", errors: refusals)
    }

    private static let body: JSON = [
        "type": "object", "required": ["account", "issuer"],
        "properties": [
            "account": ["type": "string"], "issuer": ["type": "string"],
            "scopes": ["type": "string", "description": "Separated by spaces"],
            "redirect_uri": ["type": "string", "description": "As the account will have it; {port} stands for any"],
            "token_endpoint_auth_method": [
                "type": "string", "enum": .array(RegistrationOrder.authentications.map { .string($0) }),
                "description": "Chosen by what the provider offers, if it is left out",
            ],
            "initial_access_token": ["type": "string", "writeOnly": true],
            "ca_file": ["type": "string", "description": "A path"],
        ],
    ]
}
