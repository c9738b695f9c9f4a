internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// The shapes of the answers. Clients ignore members that they do not know.
enum OpenAPISchemas {
    static let all = JSONObject(
        [
            .init("Document", ["type": "object", "required": ["openapi", "paths"]]),
            .init("Status", status), .init("Peer", peer),
            .init("Accounts", object(["accounts": array("Account")])), .init("Account", account),
            .init("Flows", object(["flows": array("Flow")])), .init("Flow", flow),
            .init(
                "CallbackResult",
                object(
                    [
                        "flow": OpenAPIDocument.reference("Flow"),
                        "deep_link": object(["id": text, "scheme": text, "heard": truth]),
                        "diagnostic_link": OpenAPIDocument.reference("DiagnosticLink"),
                        "notified": truth,
                    ], optional: ["flow", "deep_link", "diagnostic_link", "notified"])),
            .init("Acknowledgement", object(["id": text, "acknowledged": truth])), .init("Session", session),
            .init("Reloaded", reloaded),
            .init("Audit", object(["entries": ["type": "array", "items": entry], "truncated": truth])),
            .init("Vault", vault), .init("SignedOut", signedOut),
            .init("Registration", registration), .init("RegistrationDeleted", registrationDeleted),
            .init("Problem", problem),
        ] + ofProjects + ofPasskeys + ofGrants + ofDiagnostics)

    private static let text: JSON = ["type": "string"]
    private static let number: JSON = ["type": "integer"]
    private static let truth: JSON = ["type": "boolean"]

    private static func array(_ schema: String) -> JSON {
        ["type": "array", "items": OpenAPIDocument.reference(schema)]
    }

    private static func words(_ words: [String]) -> JSON {
        ["type": "string", "enum": .array(words.map { .string($0) })]
    }

    /// An object; every member is required but those named.
    private static func object(_ properties: JSON, optional: Set<String> = []) -> JSON {
        let required = (properties.object?.names ?? []).filter { !optional.contains($0) }
        return [
            "type": "object", "required": .array(required.map { .string($0) }), "properties": properties,
        ]
    }

    private static let status = object([
        "version": text, "pid": number, "uptime": number,
        "vault": OpenAPIDocument.reference("Vault"),
        "accounts": ["type": "object", "additionalProperties": number],
        "listeners": ["type": "array", "items": text], "confinement": ["type": "object"],
        "link_listeners": ["type": "array", "items": text],
        "warnings": ["type": "array", "items": text],
        "pending_revocations": number,
        "pending_revocations_by_account": ["type": "object", "additionalProperties": number],
    ])

    private static let reloaded = object(
        [
            "reloaded": truth, "accounts": ["type": "array", "items": text],
            "restart_needed": ["type": "array", "items": text],
        ], optional: ["restart_needed"])

    private static let vault = object(
        [
            "kind": text, "locked": truth, "reason": text, "key_source": text, "protects": text,
            "needs_new_passphrase": truth, "other_key_source": text,
        ], optional: ["reason", "needs_new_passphrase", "other_key_source"])

    /// A line of the audit log; what it says beyond when and what depends on its event.
    private static let entry: JSON = [
        "type": "object", "required": ["time", "time_text", "event"],
        "properties": [
            "time": number, "time_text": text, "event": text, "account": text, "subject": text, "former_subject": text,
            "operation": text, "route": text, "scope": text, "audience": text, "resource": text,
            "uid": number, "pid": number, "executable": text, "unit": text, "verified": truth,
            "count": number, "first": number, "last": number, "method": text, "outcome": text, "seconds": number,
            "code": text, "provider_code": text, "key_source": text, "former_key_source": text,
            "issuer": text, "client_id": text, "identity_provider": text, "inferred": truth, "linked_at": number,
            "grant": text, "reason": text, "accounts": ["type": "array", "items": text],
            "allow_uids": ["type": "array", "items": number], "flatpak": text, "expires_at": number, "scheme": text,
            "former_pid": number,
        ],
    ]

    private static let peer = object(
        [
            "uid": number, "pid": number, "executable": text, "unit": text, "confidence": text,
            "operations": ["type": "array", "items": words(RingbackAPI.Operation.allCases.map(\.rawValue).sorted())],
            "policy": text,
        ], optional: ["executable", "unit"])

    private static let migration = object(["from": text, "to": text])

    private static let accountMembers: JSON =
        [
            "name": text, "provider": text, "state": words(AccountState.allCases.map(\.rawValue)), "source": text,
            "stale": truth, "grant": text, "subject": text, "user": ["type": "object"], "aal": text,
            "next_aal": text, "migration": migration, "expires_at": number,
            "flow": object(["id": text, "method": text]), "error": OpenAPIDocument.reference("Problem"),
            "notice": text,
        ]
    private static let optionalInAccount: Set = [
        "stale", "grant", "subject", "user", "aal", "next_aal", "migration", "expires_at", "flow",
        "error", "notice",
    ]
    private static let account = object(accountMembers, optional: optionalInAccount)

    /// An account; where it was asked for, with the page that ends the person's session in their browser.
    private static let signedOut = object(
        .object(
            JSONObject(
                (accountMembers.object?.members ?? []) + [
                    .init("end_session_url", text), .init("end_session_error", OpenAPIDocument.reference("Problem")),
                ])),
        optional: optionalInAccount.union(["end_session_url", "end_session_error"]))

    private static let registration = object(
        [
            "account": text, "issuer": text, "client_id": text, "token_endpoint_auth_method": text,
            "client_secret_registered": truth, "client_secret_expires_at": number,
            "redirect_uris": ["type": "array", "items": text],
            "redirect_uris_requested": ["type": "array", "items": text], "scopes": text, "managed": truth,
        ], optional: ["client_secret_expires_at"])

    private static let registrationDeleted = object(
        ["account": text, "issuer": text, "client_id": text, "deleted_at_provider": truth], optional: ["client_id"])

    private static let openURL = object(
        ["url": text, "status": words(["unused", "fetched", "foreign"]), "uid": number], optional: ["uid"])

    private static let flow = object(
        [
            "id": text, "account": text, "method": text,
            "status": words(["pending", "completed", "failed", "cancelled", "expired"]),
            "waiting_for": words(["callback", "code", "email_confirmation", "device", "passkey"]),
            "authorization_url": text, "open_url": text, "open_urls": ["type": "array", "items": openURL],
            "challenge_id": text, "options": ["type": "object"],
            "user_code": text, "verification_uri": text, "verification_uri_complete": text,
            "redirect_uri": text, "expires_at": number, "resend_after": number,
            "awaiting": ["type": "array", "items": ["type": "object"]],
            "error": OpenAPIDocument.reference("Problem"), "user_message": text,
        ],
        optional: [
            "waiting_for", "authorization_url", "open_url", "open_urls", "challenge_id", "options", "user_code",
            "verification_uri",
            "verification_uri_complete",
            "redirect_uri", "resend_after", "awaiting", "error", "user_message",
        ])

    private static let session = object(
        [
            "account": text, "subject": text, "access_token": text, "id_token": text, "token_type": text,
            "expires_at": number, "expires_in": number, "scope": text, "issuer": text, "user": ["type": "object"],
            "aal": text, "next_aal": text, "provider_token": text, "profile": ["type": "object"],
            "migration": migration, "profile_status": words(["active", "inactive", "missing", "unavailable"]),
        ],
        optional: [
            "subject", "access_token", "id_token", "expires_at", "expires_in", "scope", "user", "aal", "next_aal",
            "provider_token", "profile", "profile_status", "migration",
        ])

    private static let problem = object(
        [
            "title": text, "status": number, "code": words(ErrorCode.table.keys.map(\.rawValue).sorted()),
            "detail": text, "recovery": words(["retry", "sign_in", "link", "fix_configuration", "none"]),
            "user_message": text, "retry_after": number, "errors": ["type": "array", "items": ["type": "object"]],
            "provider_code": text, "provider_message": text, "reasons": ["type": "array", "items": text],
            "notified": truth,
        ],
        optional: [
            "detail", "user_message", "retry_after", "errors", "provider_code", "provider_message", "reasons",
            "notified",
        ])
}
