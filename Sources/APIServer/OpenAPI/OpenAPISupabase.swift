internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// What the OpenAPI document says of the operations that Supabase projects have.
extension OpenAPIOperations {
    /// What anything that asks a project with a session can come to.
    static let ofSession: [ErrorCode] = [
        .accountNotFound, .signInRequired, .sessionExpired, .methodUnsupported, .validationFailed, .stateConflict,
        .accessDenied, .invalidCredentials, .notFound, .userNotFound, .weakPassword, .emailAlreadyInUse,
        .providerError, .invalidProviderResponse, .providerUnreachable, .rateLimited, .invalidConfiguration,
        .vaultLocked, .timeout, .passwordResetFailed, .payloadTooLarge, .flowExpired, .invalidCallback,
    ]
    private static let ofFlow = ofSession + [.flowNotFound, .portInUse]

    static func project(_ id: Route.ID) -> Entry {
        switch id {
        case .verifyFlow:
            Entry(
                summary: "Redeem the code that a flow waits for, or what an authenticator answered",
                body: object([
                    "code": text, "token_hash": text, "email": text, "phone": text, "credential": credential,
                    "type": ["type": "string", "enum": ["email_change", "phone_change"]],
                ]), schema: "Flow", errors: ofFlow)
        case .resendFlow:
            Entry(
                summary: "Send a flow's message again, not before its resend_after",
                body: object(["captcha_token": text]), schema: "Flow", errors: ofFlow)
        case .getUser: Entry(summary: "The user, as the server has it now", schema: "User", errors: ofSession)
        case .updateUser:
            Entry(
                summary: "Change the user; an address or a number waits for its codes in a flow",
                body: object(userChanges), schema: "ChangedUser", errors: ofFlow)
        case .listIdentities: Entry(summary: "The user's identities", schema: "Identities", errors: ofSession)
        case .linkIdentity:
            Entry(
                summary: "Add an identity, in the browser or by an ID token",
                body: object([
                    "oauth_provider": text, "id_token": text, "nonce": text, "access_token": text, "scopes": text,
                    "params": ["type": "object", "additionalProperties": ["type": "string"]],
                    "timeout": ["type": "integer", "minimum": 1, "maximum": 3600],
                ]), successes: [200, 201], schema: "Beginning", errors: ofFlow)
        case .unlinkIdentity: Entry(summary: "Take an identity away", schema: "Identities", errors: ofSession)
        case .listFactors: Entry(summary: "The user's second factors", schema: "Factors", errors: ofSession)
        case .enrollFactor:
            Entry(
                summary: "Add a second factor, which counts once it is verified",
                body: object([
                    "factor_type": ["type": "string", "enum": ["totp", "phone"]], "friendly_name": text,
                    "issuer": text, "phone": text,
                ]), successes: [201], schema: "Enrolment", errors: ofSession)
        case .challengeFactor:
            Entry(
                summary: "Ask for a challenge; a phone gets a message", body: object(["channel": channel]),
                schema: "Challenge", errors: ofSession)
        case .verifyFactor:
            Entry(
                summary: "Answer a challenge; without challenge_id, one is asked for first",
                body: object(["code": text, "challenge_id": text]), schema: "Account", errors: ofSession)
        case .removeFactor: Entry(summary: "Remove a second factor", schema: "Account", errors: ofSession)
        case .resetPassword:
            Entry(
                summary: "Send a mail to a person who forgot the password",
                body: object(["email": text, "captcha_token": text]), successes: [200, 201], schema: "Beginning",
                errors: ofFlow)
        case .reauthenticate:
            Entry(summary: "Send the code that a change of the password may need", schema: "Sent", errors: ofSession)
        case .migrate:
            Entry(
                summary: "Note what the app called this person before",
                body: object(["from": text]), schema: "Account", errors: ofSession)
        case .acknowledgeMigration:
            Entry(
                summary: "The app has moved the person's data", schema: "Account", errors: ofSession)
        default:
            Entry(
                summary: "Call a function of the project's database that the configuration lists",
                body: ["type": "object"], schema: "FunctionResult", errors: ofSession)
        }
    }

    private static let text: JSON = ["type": "string"]
    private static let channel: JSON = ["type": "string", "enum": ["sms", "whatsapp"]]
    private static let userChanges: JSON = [
        "email": ["type": "string"], "phone": ["type": "string"], "password": ["type": "string", "writeOnly": true],
        "password_confirmation": ["type": "string", "writeOnly": true],
        "current_password": ["type": "string", "writeOnly": true], "nonce": ["type": "string"],
        "data": ["type": "object"], "channel": ["type": "string", "enum": ["sms", "whatsapp"]],
    ]

    private static func object(_ properties: JSON) -> JSON { ["type": "object", "properties": properties] }

    /// What a sign-in takes beyond what every provider's does.
    static let projectSignIn: [JSONObject.Member] = [
        .init("oauth_provider", text), .init("email", text), .init("phone", text),
        .init("password", ["type": "string", "writeOnly": true]),
        .init("password_confirmation", ["type": "string", "writeOnly": true]), .init("data", ["type": "object"]),
        .init("channel", channel), .init("captcha_token", text), .init("id_token", text), .init("nonce", text),
        .init("from_account", text), .init("user", ["type": "object"]),
        .init("access_token", text), .init("refresh_token", ["type": "string", "writeOnly": true]),
        .init("domain", text), .init("provider_id", text), .init("persist", ["type": "boolean"]),
        .init("create_user", ["type": "boolean"]), .init("provider_token", ["type": "boolean"]),
    ]
}

extension OpenAPISchemas {
    static let ofProjects: [JSONObject.Member] = [
        .init(
            "Beginning",
            ["anyOf": [OpenAPIDocument.reference("Flow"), OpenAPIDocument.reference("Account")]]),
        .init("User", wrapped("user", ["type": "object"])),
        .init(
            "ChangedUser",
            [
                "type": "object", "required": ["user"],
                "properties": ["user": ["type": "object"], "flow": OpenAPIDocument.reference("Flow")],
            ]),
        .init("Identities", wrapped("identities", ["type": "array", "items": ["type": "object"]])),
        .init("Factors", wrapped("factors", ["type": "array", "items": ["type": "object"]])),
        .init(
            "Enrolment",
            [
                "type": "object", "required": ["id", "factor_type", "status"],
                "properties": [
                    "id": ["type": "string"], "factor_type": ["type": "string"], "status": ["type": "string"],
                    "friendly_name": ["type": "string"], "phone": ["type": "string"], "totp": ["type": "object"],
                ],
            ]),
        .init(
            "Challenge",
            [
                "type": "object", "required": ["id", "factor"],
                "properties": [
                    "id": ["type": "string"], "factor": ["type": "string"], "expires_at": ["type": "integer"],
                ],
            ]),
        .init(
            "Sent",
            [
                "type": "object", "required": ["account", "sent"],
                "properties": ["account": ["type": "string"], "sent": ["type": "boolean"]],
            ]),
        .init(
            "FunctionResult",
            ["type": "object", "required": ["result"], "properties": ["result": .object(JSONObject())]]),
    ]

    private static func wrapped(_ name: String, _ schema: JSON) -> JSON {
        .object(
            JSONObject([
                .init("type", "object"), .init("required", .array([.string(name)])),
                .init("properties", .object(JSONObject([.init(name, schema)]))),
            ]))
    }
}
