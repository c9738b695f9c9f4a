internal import RingbackBase

/// The wrong responses that the sandbox can send: well-formed and wrong in one point, as a broken or hostile provider
/// would send them. Each is off until it is switched on, for a number of responses or until it is cleared.
///
/// Names begin with what they change. Some have beside them the module of the OpenID conformance suite for relying
/// parties that sends the same wrong response: `…` is `oidcc-client-test`.
enum Perturbation: String, CaseIterable, Sendable {
    case metadataWrongIssuer = "metadata_wrong_issuer"  // …-discovery-issuer-mismatch
    case metadataOnlyHS256 = "metadata_only_hs256"  // …-invalid-sig-hs256
    case metadataNoS256 = "metadata_no_s256"
    case metadataNoIssParameter = "metadata_no_iss_parameter"
    case metadataNoRevocation = "metadata_no_revocation"
    case metadataNoUserinfo = "metadata_no_userinfo"
    case metadataNoAuthenticationMethods = "metadata_no_authentication_methods"
    case metadataNoResponseModes = "metadata_no_response_modes"
    case metadataNoOfflineAccess = "metadata_no_offline_access"
    /// Members that are neither needed for a refresh nor for a revocation have values that no client can use.
    case metadataUnusableMembers = "metadata_unusable_members"

    /// The response comes in the query, whatever response mode was requested.
    case authorizeIgnoresResponseMode = "authorize_ignores_response_mode"

    case callbackNoIss = "callback_no_iss"
    case callbackWrongIss = "callback_wrong_iss"
    case callbackNoState = "callback_no_state"
    case callbackWrongState = "callback_wrong_state"
    case callbackRepeatedState = "callback_repeated_state"
    case callbackWithError = "callback_with_error"
    case callbackWithTokens = "callback_with_tokens"

    case tokenInvalidGrant = "token_invalid_grant"
    case tokenIgnoresPKCE = "token_ignores_pkce"
    case tokenNoAccessToken = "token_no_access_token"
    case tokenNoType = "token_no_type"
    case tokenWrongType = "token_wrong_type"
    case tokenNoExpiresIn = "token_no_expires_in"
    case tokenStringExpiresIn = "token_string_expires_in"
    case tokenNoRefreshToken = "token_no_refresh_token"
    case tokenRotates = "token_rotates"
    case tokenDoesNotRotate = "token_does_not_rotate"
    case tokenNoIDToken = "token_no_id_token"
    case tokenNarrowerScope = "token_narrower_scope"
    case tokenNoScope = "token_no_scope"
    /// The scope was not reduced, whatever was requested.
    case tokenWholeScope = "token_whole_scope"
    case tokenInvalidTarget = "token_invalid_target"  // RFC 8707 section 2
    case tokenOtherSubject = "token_other_subject"

    case idTokenWrongIssuer = "id_token_wrong_issuer"  // …-invalid-iss, …-refresh-token-invalid-issuer
    case idTokenNoIssuer = "id_token_no_issuer"
    case idTokenNoSubject = "id_token_no_subject"  // …-missing-sub
    case idTokenOtherSubject = "id_token_other_subject"  // …-refresh-token-invalid-sub
    case idTokenWrongAudience = "id_token_wrong_audience"  // …-invalid-aud
    case idTokenNoAudience = "id_token_no_audience"  // …-missing-aud
    case idTokenExtraAudience = "id_token_extra_audience"
    case idTokenWrongAuthorizedParty = "id_token_wrong_azp"
    case idTokenNoIssuedAt = "id_token_no_iat"  // …-missing-iat
    case idTokenFutureIssuedAt = "id_token_future_iat"
    case idTokenNoExpiry = "id_token_no_exp"
    case idTokenExpired = "id_token_expired"
    case idTokenStringExpiry = "id_token_string_exp"
    case idTokenNotBefore = "id_token_nbf"  // correct: some readers of ID tokens demand the claim
    case idTokenFutureNotBefore = "id_token_future_nbf"
    case idTokenWrongNonce = "id_token_wrong_nonce"  // …-nonce-invalid
    case idTokenNoNonce = "id_token_no_nonce"
    case idTokenOtherAuthTime = "id_token_other_auth_time"
    case idTokenWrongAccessTokenHash = "id_token_wrong_at_hash"
    case idTokenRepeatedClaim = "id_token_repeated_claim"
    case idTokenWrongSignature = "id_token_wrong_signature"  // …-invalid-sig-rs256, …-es256
    case idTokenAlgorithmNone = "id_token_alg_none"  // …-idtoken-sig-none
    case idTokenAlgorithmHS256 = "id_token_alg_hs256"
    case idTokenOtherAlgorithm = "id_token_other_algorithm"
    case idTokenUnknownKey = "id_token_unknown_kid"
    case idTokenNewKey = "id_token_new_key"  // …-signing-key-rotation-just-before-signing: correct, with a new key set
    case idTokenAccessTokenType = "id_token_typ_at_jwt"
    case idTokenCriticalHeader = "id_token_crit"

    case userinfoWrongSubject = "userinfo_wrong_subject"  // …-userinfo-invalid-sub
    case userinfoNoSubject = "userinfo_no_subject"
    /// As a plain OAuth 2.0 server, which knows no scope `openid`.
    case userinfoWithoutOpenID = "userinfo_without_openid"
}

/// Which perturbations are on, and the places where they change a response.
struct Perturbations {
    /// How many responses are left; nil for all of them.
    private(set) var active: [Perturbation: Int?] = [:]

    mutating func start(_ perturbation: Perturbation, count: Int?) {
        if let count, count <= 0 {
            active.removeValue(forKey: perturbation)
        } else {
            active.updateValue(count, forKey: perturbation)
        }
    }

    /// True if this response is to be changed in this way; counts it.
    mutating func take(_ perturbation: Perturbation) -> Bool {
        guard let remaining = active[perturbation] else { return false }
        if let remaining { start(perturbation, count: remaining - 1) }
        return true
    }

    mutating func change(metadata: inout JSONObject, issuer: String) {
        if take(.metadataWrongIssuer) { metadata["issuer"] = .string(issuer + "INVALID") }
        if take(.metadataOnlyHS256) { metadata["id_token_signing_alg_values_supported"] = ["HS256"] }
        if take(.metadataNoS256) { metadata["code_challenge_methods_supported"] = ["plain"] }
        if take(.metadataNoIssParameter) { metadata["authorization_response_iss_parameter_supported"] = nil }
        if take(.metadataNoRevocation) { metadata["revocation_endpoint"] = nil }
        if take(.metadataNoUserinfo) { metadata["userinfo_endpoint"] = nil }
        if take(.metadataNoAuthenticationMethods) { metadata["token_endpoint_auth_methods_supported"] = nil }
        if take(.metadataNoResponseModes) { metadata["response_modes_supported"] = nil }
        if take(.metadataNoOfflineAccess), let scopes = metadata["scopes_supported"]?.array {
            metadata["scopes_supported"] = .array(scopes.filter { $0 != "offline_access" })
        }
        if take(.metadataUnusableMembers) {
            metadata["registration_endpoint"] = ""
            metadata["end_session_endpoint"] = "/end-session"
            metadata["userinfo_endpoint"] = 7
            metadata["device_authorization_endpoint"] = "http://id.example.org/device"
            metadata["pushed_authorization_request_endpoint"] = ["https://id.example.org/par"]
            metadata["scopes_supported"] = "openid"
        }
    }

    mutating func change(callback: inout [(String, String)], issuer: String) {
        if take(.callbackNoIss) { callback.removeAll { $0.0 == "iss" } }
        if take(.callbackWrongIss) { callback = callback.map { $0.0 == "iss" ? ("iss", issuer + "1") : $0 } }
        if take(.callbackNoState) { callback.removeAll { $0.0 == "state" } }
        if take(.callbackWrongState) { callback = callback.map { $0.0 == "state" ? ("state", $0.1 + "1") : $0 } }
        if take(.callbackRepeatedState) { callback += callback.filter { $0.0 == "state" } }
        if take(.callbackWithError) { callback.append(("error", "access_denied")) }
        if take(.callbackWithTokens) { callback += [("access_token", "at-from-the-front"), ("token_type", "Bearer")] }
    }

    mutating func change(tokenResponse answer: inout JSONObject) {
        if take(.tokenNoAccessToken) { answer["access_token"] = nil }
        if take(.tokenNoType) { answer["token_type"] = nil }
        if take(.tokenWrongType) { answer["token_type"] = "mac" }
        if take(.tokenNoExpiresIn) { answer["expires_in"] = nil }
        if take(.tokenStringExpiresIn), let lifetime = answer["expires_in"]?.integer {
            answer["expires_in"] = .string(String(lifetime))
        }
        if take(.tokenNoRefreshToken) { answer["refresh_token"] = nil }
        if take(.tokenNoIDToken) { answer["id_token"] = nil }
        if take(.tokenNarrowerScope), let scope = answer["scope"]?.string {
            answer["scope"] = .string(scope.split(separator: " ").first.map(String.init) ?? "")
        }
        if take(.tokenNoScope) { answer["scope"] = nil }
    }

    mutating func change(idTokenHeader header: inout JSONObject) {
        if take(.idTokenAlgorithmNone) {
            header["alg"] = "none"
            header["kid"] = nil
        }
        if take(.idTokenAlgorithmHS256) {
            header["alg"] = "HS256"
            header["kid"] = nil
        }
        if take(.idTokenUnknownKey) { header["kid"] = "nobody-knows" }
        if take(.idTokenAccessTokenType) { header["typ"] = "at+jwt" }
        if take(.idTokenCriticalHeader) {
            header["crit"] = ["urn:example:must-understand"]
            header["urn:example:must-understand"] = true
        }
    }

    mutating func change(idTokenClaims claims: inout JSONObject) {
        append("1", to: "iss", of: &claims, if: .idTokenWrongIssuer)
        append("1", to: "aud", of: &claims, if: .idTokenWrongAudience)
        append("1", to: "nonce", of: &claims, if: .idTokenWrongNonce)
        append("-other", to: "sub", of: &claims, if: .idTokenOtherSubject)
        if take(.idTokenNoIssuer) { claims["iss"] = nil }
        if take(.idTokenNoSubject) { claims["sub"] = nil }
        if take(.idTokenNoAudience) { claims["aud"] = nil }
        if take(.idTokenNoIssuedAt) { claims["iat"] = nil }
        if take(.idTokenNoNonce) { claims["nonce"] = nil }
        if take(.idTokenExtraAudience), let audience = claims["aud"] { claims["aud"] = [audience, "somebody-else"] }
        if take(.idTokenWrongAuthorizedParty) { claims["azp"] = "somebody-else" }
        if take(.idTokenWrongAccessTokenHash) { claims["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" }
        if take(.idTokenOtherAuthTime) { shift("auth_time", of: &claims, by: -60) }
        if take(.idTokenExpired) {
            claims["exp"] = claims["iat"]
            for name in ["exp", "iat", "auth_time"] { shift(name, of: &claims, by: -3_600) }
        }
        if take(.idTokenFutureIssuedAt) { shift("iat", of: &claims, by: 3_600) }
        if take(.idTokenNotBefore) { claims["nbf"] = claims["iat"] }
        if take(.idTokenFutureNotBefore) {
            claims["nbf"] = claims["iat"]
            shift("nbf", of: &claims, by: 3_600)
        }
        if take(.idTokenStringExpiry), let expiry = claims["exp"]?.integer { claims["exp"] = .string(String(expiry)) }
        if take(.idTokenNoExpiry) { claims["exp"] = nil }
        // Parsers disagree about which of the two counts.
        if take(.idTokenRepeatedClaim) { claims.members.append(.init("sub", "somebody-else")) }
    }

    mutating func change(userinfo claims: inout JSONObject) {
        append("invalid", to: "sub", of: &claims, if: .userinfoWrongSubject)
        if take(.userinfoNoSubject) { claims["sub"] = nil }
    }

    private mutating func append(
        _ suffix: String, to name: String, of claims: inout JSONObject, if perturbation: Perturbation
    ) {
        if take(perturbation), let value = claims[name]?.string { claims[name] = .string(value + suffix) }
    }

    private func shift(_ name: String, of claims: inout JSONObject, by seconds: Int) {
        if let value = claims[name]?.integer { claims[name] = .integer(value + seconds) }
    }
}
