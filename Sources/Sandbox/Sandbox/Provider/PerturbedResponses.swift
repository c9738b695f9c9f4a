internal import RingbackBase

/// A wrong response that the sandbox can send: well-formed and wrong in one point, as a broken or hostile provider
/// would send it. Each is off until it is switched on, for a number of responses or until it is cleared.
/// Names begin with what they change. Some have beside them the module of the OpenID conformance suite for relying
/// parties that sends the same wrong response: `…` is `oidcc-client-test`.
struct Perturbation: Sendable {
    typealias Change = @Sendable (inout JSONObject) -> Void

    /// What is changed; `decision` is what an endpoint does otherwise than it should.
    enum Part { case metadata, callback, token, idTokenHeader, idTokenClaims, userinfo, decision }

    let part: Part
    let name: String
    let change: Change

    private init(_ part: Part, _ name: String, _ change: @escaping Change = { _ in }) {
        self.part = part
        self.name = name
        self.change = change
    }

    private static func no(_ member: String, _ part: Part, _ name: String) -> Perturbation {
        Perturbation(part, name) { $0[member] = JSON?.none }
    }

    private static func set(_ member: String, _ part: Part, _ name: String, _ value: JSON) -> Perturbation {
        Perturbation(part, name) { $0[member] = value }
    }

    private static func append(_ suffix: String, to member: String, _ part: Part, _ name: String) -> Perturbation {
        Perturbation(part, name) { object in
            if let value = object[member]?.string { object[member] = .string(value + suffix) }
        }
    }

    init(reading member: JSONObject.Member) throws {
        let name = try member.string()
        guard let known = Perturbation.all.first(where: { $0.name == name }) else {
            throw member.mistake(Perturbation.all.map(\.name).joined(separator: ", "))
        }
        self = known
    }

    static let tokenInvalidGrant = Perturbation(.decision, "token_invalid_grant")
    static let tokenIgnoresPKCE = Perturbation(.decision, "token_ignores_pkce")
    static let tokenRotates = Perturbation(.decision, "token_rotates")
    static let tokenDoesNotRotate = Perturbation(.decision, "token_does_not_rotate")
    /// The scope was not reduced, whatever was requested.
    static let tokenWholeScope = Perturbation(.decision, "token_whole_scope")
    static let tokenOtherSubject = Perturbation(.decision, "token_other_subject")
    // …-invalid-sig-rs256, …-es256
    static let idTokenWrongSignature = Perturbation(.decision, "id_token_wrong_signature")
    static let idTokenOtherAlgorithm = Perturbation(.decision, "id_token_other_algorithm")
    // …-signing-key-rotation-just-before-signing: correct, with a new key set
    static let idTokenNewKey = Perturbation(.decision, "id_token_new_key")
    /// As a plain OAuth 2.0 server, which knows no scope `openid`.
    static let userinfoWithoutOpenID = Perturbation(.decision, "userinfo_without_openid")

    /// In the order in which they are applied.
    static let all: [Perturbation] = [
        append("INVALID", to: "issuer", .metadata, "metadata_wrong_issuer"),  // …-discovery-issuer-mismatch
        // …-invalid-sig-hs256
        set("id_token_signing_alg_values_supported", .metadata, "metadata_only_hs256", ["HS256"]),
        set("code_challenge_methods_supported", .metadata, "metadata_no_s256", ["plain"]),
        no("authorization_response_iss_parameter_supported", .metadata, "metadata_no_iss_parameter"),
        no("revocation_endpoint", .metadata, "metadata_no_revocation"),
        no("userinfo_endpoint", .metadata, "metadata_no_userinfo"),
        no("token_endpoint_auth_methods_supported", .metadata, "metadata_no_authentication_methods"),
        no("response_modes_supported", .metadata, "metadata_no_response_modes"),
        // Of no use to a client without a certificate (RFC 8705 section 5).
        set(
            "mtls_endpoint_aliases", .metadata, "metadata_mtls_aliases",
            [
                "token_endpoint": "http://127.0.0.1:1/token", "userinfo_endpoint": "http://127.0.0.1:1/userinfo",
                "pushed_authorization_request_endpoint": "http://127.0.0.1:1/par",
            ]),
        Perturbation(.metadata, "metadata_no_offline_access") { metadata in
            let scopes = metadata["scopes_supported"]?.array ?? []
            metadata["scopes_supported"] = .array(scopes.filter { $0 != "offline_access" })
        },
        // Members that are neither needed for a refresh nor for a revocation have values that no client can use.
        Perturbation(.metadata, "metadata_unusable_members") { metadata in
            metadata["registration_endpoint"] = ""
            metadata["end_session_endpoint"] = "/end-session"
            metadata["userinfo_endpoint"] = 7
            metadata["device_authorization_endpoint"] = "http://id.example.org/device"
            metadata["pushed_authorization_request_endpoint"] = ["https://id.example.org/par"]
            metadata["scopes_supported"] = "openid"
        },
        no("iss", .callback, "callback_no_iss"), append("1", to: "iss", .callback, "callback_wrong_iss"),
        no("state", .callback, "callback_no_state"), append("1", to: "state", .callback, "callback_wrong_state"),
        Perturbation(.callback, "callback_repeated_state") { callback in
            callback.members += callback.members.filter { $0.name == "state" }
        },
        Perturbation(.callback, "callback_with_error") { $0.members.append(.init("error", "access_denied")) },
        Perturbation(.callback, "callback_with_tokens") { callback in
            callback["access_token"] = "at-from-the-front"
            callback["token_type"] = "Bearer"
        },
        tokenInvalidGrant, tokenIgnoresPKCE,
        no("access_token", .token, "token_no_access_token"), no("token_type", .token, "token_no_type"),
        set("token_type", .token, "token_wrong_type", "mac"), no("expires_in", .token, "token_no_expires_in"),
        Perturbation(.token, "token_string_expires_in") { answer in
            if let lifetime = answer["expires_in"]?.integer { answer["expires_in"] = .string(String(lifetime)) }
        },
        no("refresh_token", .token, "token_no_refresh_token"), tokenRotates, tokenDoesNotRotate,
        no("id_token", .token, "token_no_id_token"),
        Perturbation(.token, "token_narrower_scope") { answer in
            guard let scope = answer["scope"]?.string else { return }
            answer["scope"] = .string(scope.split(separator: " ").first.map(String.init) ?? "")
        },
        no("scope", .token, "token_no_scope"), tokenWholeScope, tokenOtherSubject,
        Perturbation(.idTokenHeader, "id_token_alg_none") { header in  // …-idtoken-sig-none
            header["alg"] = "none"
            header["kid"] = JSON?.none
        },
        Perturbation(.idTokenHeader, "id_token_alg_hs256") { header in
            header["alg"] = "HS256"
            header["kid"] = JSON?.none
        },
        set("kid", .idTokenHeader, "id_token_unknown_kid", "nobody-knows"),
        set("typ", .idTokenHeader, "id_token_typ_at_jwt", "at+jwt"),
        Perturbation(.idTokenHeader, "id_token_crit") { header in
            header["crit"] = ["urn:example:must-understand"]
            header["urn:example:must-understand"] = true
        },
        // …-invalid-iss, …-refresh-token-invalid-issuer
        append("1", to: "iss", .idTokenClaims, "id_token_wrong_issuer"),
        append("1", to: "aud", .idTokenClaims, "id_token_wrong_audience"),  // …-invalid-aud
        append("1", to: "nonce", .idTokenClaims, "id_token_wrong_nonce"),  // …-nonce-invalid
        append("-other", to: "sub", .idTokenClaims, "id_token_other_subject"),  // …-refresh-token-invalid-sub
        no("iss", .idTokenClaims, "id_token_no_issuer"),
        no("sub", .idTokenClaims, "id_token_no_subject"),  // …-missing-sub
        no("aud", .idTokenClaims, "id_token_no_audience"),  // …-missing-aud
        no("iat", .idTokenClaims, "id_token_no_iat"),  // …-missing-iat
        no("nonce", .idTokenClaims, "id_token_no_nonce"),
        Perturbation(.idTokenClaims, "id_token_extra_audience") { claims in
            if let audience = claims["aud"] { claims["aud"] = [audience, "somebody-else"] }
        },
        set("azp", .idTokenClaims, "id_token_wrong_azp", "somebody-else"),
        set("at_hash", .idTokenClaims, "id_token_wrong_at_hash", "AAAAAAAAAAAAAAAAAAAAAA"),
        Perturbation(.idTokenClaims, "id_token_other_auth_time") { $0.shift("auth_time", by: -60) },
        Perturbation(.idTokenClaims, "id_token_expired") { claims in
            claims["exp"] = claims["iat"]
            for name in ["exp", "iat", "auth_time"] { claims.shift(name, by: -3_600) }
        },
        Perturbation(.idTokenClaims, "id_token_future_iat") { $0.shift("iat", by: 3_600) },
        // Correct: some readers of ID tokens demand the claim.
        Perturbation(.idTokenClaims, "id_token_nbf") { $0["nbf"] = $0["iat"] },
        Perturbation(.idTokenClaims, "id_token_future_nbf") { claims in
            claims["nbf"] = claims["iat"]
            claims.shift("nbf", by: 3_600)
        },
        Perturbation(.idTokenClaims, "id_token_string_exp") { claims in
            if let expiry = claims["exp"]?.integer { claims["exp"] = .string(String(expiry)) }
        },
        no("exp", .idTokenClaims, "id_token_no_exp"),
        // Parsers disagree about which of the two counts.
        Perturbation(.idTokenClaims, "id_token_repeated_claim") { $0.members.append(.init("sub", "somebody-else")) },
        idTokenWrongSignature, idTokenOtherAlgorithm, idTokenNewKey,
        append("invalid", to: "sub", .userinfo, "userinfo_wrong_subject"),  // …-userinfo-invalid-sub
        no("sub", .userinfo, "userinfo_no_subject"), userinfoWithoutOpenID,
    ]
}

extension JSONObject {
    fileprivate mutating func shift(_ name: String, by seconds: Int) {
        if let value = self[name]?.integer { self[name] = .integer(value + seconds) }
    }
}

struct Perturbations {
    /// By name: how many responses are left; nil for all of them.
    private(set) var active: [String: Int?] = [:]

    mutating func start(_ perturbation: Perturbation, count: Int?) {
        if let count, count <= 0 {
            active.removeValue(forKey: perturbation.name)
        } else {
            active.updateValue(count, forKey: perturbation.name)
        }
    }

    /// True if this response is to be changed in this way; counts it.
    mutating func take(_ perturbation: Perturbation) -> Bool {
        guard let remaining = active[perturbation.name] else { return false }
        if let remaining { start(perturbation, count: remaining - 1) }
        return true
    }

    mutating func change(_ part: Perturbation.Part, _ object: inout JSONObject) {
        for perturbation in Perturbation.all where perturbation.part == part && take(perturbation) {
            perturbation.change(&object)
        }
    }
}
