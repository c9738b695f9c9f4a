internal import BrokerCore
internal import Records
internal import RingbackAPI
internal import SessionVault
internal import StrictJSON

/// What the OpenAPI document says of each route beyond its method and path.
enum OpenAPIOperations {
    struct Entry {
        var summary: String
        var parameters: [JSON] = []
        var body: JSON?
        var successes: [Int] = [200]
        /// Nil for what is no JSON.
        var schema: String?
        /// Of an answer that is no JSON.
        var mediaType = "text/event-stream"
        var errors: [ErrorCode] = []
    }

    /// The query parameters of each route, by name.
    static let queryNames = Dictionary(
        uniqueKeysWithValues: Route.ID.allCases.map { id in
            (id, Set(entry(of: id).parameters.compactMap { $0["name"]?.string }))
        })

    private static let ofAccount: [ErrorCode] = [.accountNotFound]
    private static let ofProvider: [ErrorCode] = [
        .providerError, .invalidProviderResponse, .providerUnreachable, .rateLimited, .invalidConfiguration,
        .vaultLocked, .timeout,
    ]

    static func entry(of id: Route.ID) -> Entry {
        switch id {
        case .getOpenAPI: Entry(summary: "This document", schema: "Document")
        case .getStatus: Entry(summary: "The daemon", schema: "Status")
        case .getPeer: Entry(summary: "What the broker sees of the caller", schema: "Peer", errors: [.notFound])
        case .listAccounts: Entry(summary: "Every account, by name", schema: "Accounts")
        case .getAccount: Entry(summary: "One account", schema: "Account", errors: ofAccount)
        case .signIn:
            Entry(
                summary: "Start a sign-in, or join an equal one that is pending", body: signInBody,
                successes: [200, 201], schema: "Beginning",
                errors: ofAccount + ofProvider + [
                    .methodUnsupported, .validationFailed, .stateConflict, .portInUse, .flowExpired,
                    .invalidCredentials, .accessDenied, .userNotFound, .weakPassword, .emailAlreadyInUse,
                    .sessionExpired, .signInRequired, .notFound, .invalidCallback,
                ])
        case .listFlows: Entry(summary: "Every flow that is remembered, oldest first", schema: "Flows")
        case .getFlow:
            Entry(
                summary: "A flow, once it has left pending or the wait is over",
                parameters: [query("wait", "integer", "Seconds to wait, at most 600")], schema: "Flow",
                errors: [.flowNotFound, .validationFailed])
        case .withdrawFlow:
            Entry(
                summary: "Withdraw one caller's interest in a flow; the last one cancels it",
                parameters: [query("all", "boolean", "Cancel for all callers")], schema: "Flow",
                errors: [.flowNotFound, .validationFailed])
        case .deliverCallback:
            Entry(
                summary: "Deliver a callback from outside; 202: it is a link for an app", body: callbackBody,
                successes: [200, 202], schema: "CallbackResult",
                errors: [.invalidCallback, .validationFailed, .flowExpired, .flowNotFound])
        case .getSession, .getSessionByIssuer: session(id)
        case .refresh:
            Entry(
                summary: "Refresh now", body: refreshBody, schema: "Account",
                errors: ofAccount + ofProvider + [
                    .validationFailed, .signInRequired, .sessionExpired, .stateConflict,
                ])
        case .signOut:
            Entry(
                summary: "Sign out, and tell the provider",
                parameters: [
                    query("scope", "string", "local (the default), global or others"),
                    query("end_session", "string", "true or plain: name the page that ends it in the browser too"),
                ], schema: "SignedOut", errors: ofSession)
        case .streamEvents:
            Entry(
                summary: "What happens, as server-sent events; first every account as it is",
                parameters: [
                    query("account", "string", "Only this account"),
                    query("telemetry", "boolean", "An app's own funnel in place of the events"),
                ], errors: ofAccount + [.validationFailed])
        case .reload:
            Entry(summary: "Re-read the configuration", schema: "Reloaded", errors: [.invalidConfiguration])
        case .getAudit:
            Entry(
                summary: "The newest entries of the audit log, oldest first; truncated: there are older ones",
                parameters: [
                    query("since", "string", "Unix seconds, or a time as RFC 3339 writes it"),
                    query("account", "string", "Only entries about this account"),
                    query("limit", "integer", "Entries at most, up to 1000 (the default)"),
                ], schema: "Audit", errors: [.validationFailed, .notFound])
        case .getMetrics:
            Entry(
                summary: "Metrics in Prometheus's text format", mediaType: MetricsText.mediaType, errors: [.notFound])
        case .lockVault:
            Entry(
                summary: "Forget the vault's key: no session is served until it is unlocked", schema: "Vault",
                errors: vaultErrors)
        case .unlockVault:
            Entry(
                summary: "Open the vault; everything goes on where it was", body: unlockBody, schema: "Vault",
                errors: vaultErrors + [.invalidCredentials, .rateLimited, .validationFailed])
        case .rekeyVault:
            Entry(
                summary: "Move the vault's key to another source", body: rekeyBody, schema: "Vault",
                errors: vaultErrors + [.invalidCredentials, .rateLimited, .validationFailed])
        case .register, .deleteRegistration: registration(id)
        case .getDiagnostics, .makeDiagnosticLink, .getDiagnosticLink: diagnostics(id)
        case .listGrants, .createGrant, .getGrant, .revokeGrant: grant(id)
        case .streamDeepLinks:
            Entry(
                summary: "The links of a scheme for the app that listens, as server-sent events",
                parameters: [query("scheme", "string", "The scheme, without its colon", required: true)],
                errors: [.notFound, .validationFailed])
        case .acknowledgeDeepLink:
            Entry(summary: "The app has taken the link", schema: "Acknowledgement", errors: [.notFound])
        case .verifyFlow, .resendFlow, .getUser, .updateUser, .listIdentities, .linkIdentity, .unlinkIdentity,
            .listFactors, .enrollFactor, .challengeFactor, .verifyFactor, .removeFactor, .resetPassword,
            .reauthenticate, .callFunction, .migrate, .acknowledgeMigration:
            project(id)
        case .listPasskeys, .beginPasskey, .registerPasskey, .renamePasskey, .removePasskey: passkey(id)
        }
    }

    private static let vaultErrors: [ErrorCode] = [.vaultLocked, .stateConflict, .shuttingDown, .timeout]
    private static let unlockBody: JSON = [
        "type": "object",
        "properties": [
            "passphrase": ["type": "string", "writeOnly": true, "description": "Where the key's source asks for one"]
        ],
    ]
    private static let rekeyBody: JSON = [
        "type": "object", "required": ["key_source"],
        "properties": [
            "key_source": ["type": "string", "enum": .array(KeySourceChoice.allCases.map { .string($0.rawValue) })],
            "passphrase": [
                "type": "string", "writeOnly": true, "description": "The new one, for the source passphrase",
            ],
        ],
    ]

    private static func session(_ id: Route.ID) -> Entry {
        var parameters = [
            query("min_valid", "integer", "Seconds of life that the token must have; default 60"),
            query("timeout", "integer", "Seconds that the answer may take; default 30"),
            query("scope", "string", "A token narrowed to these scopes, separated by spaces"),
            query("audience", "string", "A token for this audience"),
            query("resource", "string", "A token for this resource (RFC 8707)"),
            query("kind", "string", "access_token (the default) or id_token"),
            query("subject", "string", "Only a session of this person"),
            query("include", "string", "Any of id_token, provider_token, user, profile, separated by commas"),
            query("sign_in", "string", "wait: if signed out, start or join a sign-in and wait for it"),
        ]
        if id == .getSessionByIssuer {
            parameters.insert(query("issuer", "string", "Whose token", required: true), at: 0)
        }
        return Entry(
            summary: "A token of the account's session", parameters: parameters, schema: "Session",
            errors: ofAccount + ofProvider + [
                .signInRequired, .sessionExpired, .stateConflict, .validationFailed, .accessDenied, .flowExpired,
                .methodUnsupported, .portInUse, .flowNotFound,
            ])
    }

    static func query(_ name: String, _ type: String, _ text: String, required: Bool = false) -> JSON {
        [
            "name": .string(name), "in": "query", "required": .bool(required), "description": .string(text),
            "schema": ["type": .string(type)],
        ]
    }

    private static let signInBody: JSON = .object(
        JSONObject([
            .init("type", "object"),
            .init(
                "properties",
                .object(
                    JSONObject(
                        [
                            .init(
                                "method",
                                [
                                    "type": "string",
                                    "description":
                                        "browser (the default); device (RFC 8628) where offered; at a project others",
                                    "enum": .array((Broker.projectMethods + ["device"]).map { .string($0) }),
                                ]),
                            .init(
                                "scopes",
                                ["type": "string", "description": "Instead of the account's; separated by spaces"]),
                            .init("params", ["type": "object", "additionalProperties": ["type": "string"]]),
                            .init("timeout", ["type": "integer", "minimum": 1, "maximum": 3600]),
                            .init("switch_subject", ["type": "boolean"]),
                            .init(
                                "replace",
                                [
                                    "type": "boolean",
                                    "description": "Cancels a different sign-in of the account that is pending",
                                ]),
                            .init("callback_port", ["type": "integer", "minimum": 1, "maximum": 65_535]),
                        ] + projectSignIn))),
        ]))
    private static let callbackBody: JSON = [
        "type": "object", "required": ["url"],
        "properties": ["url": ["type": "string"], "notify": ["type": "boolean"]],
    ]
    private static let refreshBody: JSON = [
        "type": "object",
        "properties": [
            "force": ["type": "boolean"],
            "rejected_sha256": ["type": "string", "pattern": "^[0-9a-fA-F]{64}$"],
        ],
    ]
}
