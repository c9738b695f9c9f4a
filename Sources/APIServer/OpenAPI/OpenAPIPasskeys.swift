internal import RingbackAPI
internal import StrictJSON

/// What the OpenAPI document says of passkeys.
extension OpenAPIOperations {
    static func passkey(_ id: Route.ID) -> Entry {
        switch id {
        case .beginPasskey:
            Entry(
                summary: "Ask what an authenticator needs to make a passkey; one answer is taken, within five minutes",
                schema: "PasskeyChallenge", errors: ofSession)
        case .registerPasskey:
            Entry(
                summary: "Add the passkey that an authenticator has made",
                body: [
                    "type": "object", "required": ["challenge_id", "credential"],
                    "properties": ["challenge_id": ["type": "string"], "credential": credential],
                ], successes: [201], schema: "Passkey", errors: ofSession)
        case .renamePasskey:
            Entry(
                summary: "Name a passkey",
                body: [
                    "type": "object", "required": ["friendly_name"],
                    "properties": ["friendly_name": ["type": "string", "minLength": 1, "maxLength": 120]],
                ], schema: "Passkey", errors: ofSession)
        case .removePasskey:
            Entry(
                summary: "Remove a passkey: nobody signs in by it any more", schema: "RemovedPasskey",
                errors: ofSession)
        default: Entry(summary: "The user's passkeys", schema: "Passkeys", errors: ofSession)
        }
    }

    static let credential: JSON = [
        "type": "object", "description": "What the authenticator answered, as PublicKeyCredential.toJSON() writes it",
    ]
}

extension OpenAPISchemas {
    static let ofPasskeys: [JSONObject.Member] = [
        .init(
            "Passkey",
            [
                "type": "object", "required": ["id"],
                "properties": [
                    "id": ["type": "string"], "friendly_name": ["type": "string"], "created_at": ["type": "string"],
                    "last_used_at": ["type": "string"],
                ],
            ]),
        .init(
            "Passkeys",
            [
                "type": "object", "required": ["passkeys"],
                "properties": ["passkeys": ["type": "array", "items": OpenAPIDocument.reference("Passkey")]],
            ]),
        .init(
            "PasskeyChallenge",
            [
                "type": "object", "required": ["challenge_id", "options"],
                "properties": [
                    "challenge_id": ["type": "string"],
                    "options": [
                        "type": "object",
                        "description": "For PublicKeyCredential.parseCreationOptionsFromJSON() or its like",
                    ],
                    "expires_at": ["type": "integer"],
                ],
            ]),
        .init(
            "RemovedPasskey",
            [
                "type": "object", "required": ["account", "removed"],
                "properties": ["account": ["type": "string"], "removed": ["type": "string"]],
            ]),
    ]
}
