internal import OAuth
public import RingbackBase

/// A callback of Supabase Auth. A success is a code in the query. An error is in the query and also in the fragment; if
/// the server finds no PKCE flow, only in the fragment. A URL that can be parsed may still be forged. Any other URL is
/// a ``Failure`` and must not change any state.
public struct SupabaseCallback: Sendable, Equatable {
    public enum Outcome: Sendable, Equatable {
        /// 1 to 8192 bytes.
        case code(Secret)
        /// An error response of the server or the provider.
        case error(SupabaseError.ErrorResponse)
        /// The first of the two links of a secure e-mail change was opened; the second one is still needed.
        case message(String)
    }

    /// Why a URL is not a callback.
    public enum Failure: Error, Sendable, Equatable {
        /// Invalid escapes, too many parameters, or an invalid code.
        case malformed
        /// A parameter that may occur only once; one of those that Ringback knows.
        case repeatedParameter(String)
        /// Both a code and an error.
        case conflictingParameters
        /// No code, no error and no message.
        case empty
        /// As in the implicit flow. Only a code is accepted (RFC 9700 section 2.1.2).
        case carriesTokens
    }

    public let outcome: Outcome
    /// The parameter `flow`; nil if it is missing or empty.
    public let queryKey: String?
    /// The last path segment, on loopback a flow's key, see ``SupabaseRedirect``; nil if it is empty.
    public let pathKey: String?

    /// Reads a callback URL, with its fragment if it is known. Throws ``Failure``.
    public init(parsing callback: WebURL) throws(Failure) {
        let query = try SupabaseCallback.values(callback.query ?? "")
        let fragment = try SupabaseCallback.fragmentValues(callback.fragment ?? "")
        guard SupabaseCallback.tokens.isDisjoint(with: query.keys),
            SupabaseCallback.tokens.isDisjoint(with: fragment.keys)
        else { throw .carriesTokens }
        queryKey = query[SupabaseRedirect.keyName]
        pathKey = SupabaseCallback.lastSegment(of: callback.path)
        if let outcome = try SupabaseCallback.outcome(query) {
            if case .code = outcome, fragment["error"] ?? fragment["error_code"] != nil { throw .conflictingParameters }
            self.outcome = outcome
        } else if let outcome = try SupabaseCallback.outcome(fragment.filter { $0.key != "code" }) {
            self.outcome = outcome
        } else {
            throw .empty
        }
    }

    /// The flow's key, if there is one: the last path segment on loopback, otherwise the parameter.
    public func key(at callback: WebURL) -> String? {
        let isLoopback = callback.isLoopback && (callback.scheme == "http" || callback.scheme == "https")
        return isLoopback ? pathKey : queryKey
    }

    /// True for the error of a link in a mail that was already used, has expired, or was replaced by a newer mail.
    public var isOfSpentLink: Bool {
        if case .error(let errorResponse) = outcome { errorResponse.code == "otp_expired" } else { false }
    }

    /// The key under which a flow is stored: SHA-256, so that the time of a look-up reveals nothing about the key.
    public static func digest(ofKey key: String) -> [UInt8] { AuthorizationResponse.key(forState: Secret(key)) }

    private static let single: Set<String> = [
        "code", "error", "error_code", "error_description", "message", SupabaseRedirect.keyName,
    ]
    private static let tokens: Set<String> = [
        "access_token", "refresh_token", "id_token", "provider_token", "provider_refresh_token",
    ]

    /// The parameters that are not empty, and those with the name of a token even if they are empty.
    private static func values(_ text: String) throws(Failure) -> [String: String] {
        let pairs: [FormEncoding.Pair]
        do {
            pairs = try FormEncoding.parse(
                Array(text.utf8), needed: tokens.union(["code", "error", "error_code", SupabaseRedirect.keyName]))
        } catch {
            throw .malformed
        }
        var values: [String: String] = [:]
        var seen: Set<String> = []
        for pair in pairs {
            guard seen.insert(pair.name).inserted || !single.contains(pair.name) else {
                throw .repeatedParameter(pair.name)
            }
            // An empty parameter counts as omitted (RFC 6749 section 3.1). An auth hook may send an empty `error_code`.
            if !pair.value.isEmpty || tokens.contains(pair.name) { values[pair.name] = pair.value }
        }
        // An auth hook's error has a message and an empty `error_code`. If the user declined, the parameter is missing.
        if values["error"] == "access_denied", seen.contains("error_code"), values["error_code"] == nil {
            values["error_code"] = "unknown"
        }
        return values
    }

    /// The server percent-encodes the fragment twice. The outer encoding is removed if the result is well-formed.
    private static func fragmentValues(_ text: String) throws(Failure) -> [String: String] {
        if text.contains("%25"), let values = try? values(text.replacing("%25", with: "%")) { return values }
        return try values(text)
    }

    private static func outcome(_ values: [String: String]) throws(Failure) -> Outcome? {
        let error = values["error"]
        let code = values["error_code"]
        switch (values["code"], error ?? code) {
        case (_?, _?): throw .conflictingParameters
        case (let text?, nil):
            guard PlainText.isToken(text), text.utf8.count <= AuthorizationResponse.maxCode else { throw .malformed }
            return .code(Secret(text))
        case (nil, _?):
            let code = PlainText.code(code) ?? PlainText.code(error) ?? "unknown"
            return .error(.init(code: code, status: 0, message: PlainText.message(values["error_description"])))
        case (nil, nil): return PlainText.message(values["message"]).map { .message($0) }
        }
    }

    private static func lastSegment(of path: String) -> String? {
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let segment = path[path.index(after: slash)...]
        return segment.isEmpty ? nil : String(segment)
    }
}

/// All error codes of the Auth server and their meaning for callers.
public enum SupabaseCode {
    /// For the API's error, with the message for the user.
    public struct Meaning: Sendable, Equatable {
        public let code: SupabaseProblem.Code
        public let recovery: SupabaseProblem.Recovery
        public let message: UserMessage?

        init(_ code: SupabaseProblem.Code, _ recovery: SupabaseProblem.Recovery, _ message: UserMessage? = nil) {
            self.code = code
            self.recovery = recovery
            self.message = message
        }
    }

    /// The meaning of each code without context, see ``meaning(of:on:)``.
    public static let table: [String: Meaning] = [
        // Requests, tokens and sessions.
        "unknown": .init(.providerError, .none),
        "unexpected_failure": .init(.providerUnreachable, .retry, .serviceDown),
        "validation_failed": .init(.validationFailed, .none),
        "bad_json": .init(.internalError, .none),
        "request_entity_too_large": .init(.payloadTooLarge, .none),
        "request_timeout": .init(.providerUnreachable, .retry, .serviceDown),
        "conflict": .init(.stateConflict, .retry),
        "bad_jwt": .init(.sessionExpired, .signIn, .sessionEnded),
        "no_authorization": .init(.signInRequired, .signIn),
        "not_admin": .init(.accessDenied, .none),
        "user_not_found": .init(.userNotFound, .none, .unknownUser),
        "session_not_found": .init(.sessionExpired, .signIn, .sessionEnded),
        "session_expired": .init(.sessionExpired, .signIn, .sessionEnded),
        "refresh_token_not_found": .init(.sessionExpired, .signIn, .sessionEnded),
        "refresh_token_already_used": .init(.sessionExpired, .signIn, .sessionEnded),
        // Browser flows.
        "flow_state_not_found": .init(.flowExpired, .signIn, .signInFailed),
        "flow_state_expired": .init(.flowExpired, .signIn, .signInFailed),
        "flow_state_already_used": .init(.flowExpired, .signIn, .signInFailed),
        "bad_code_verifier": .init(.invalidCallback, .signIn, .signInFailed),
        "bad_oauth_state": .init(.invalidCallback, .signIn, .signInFailed),
        "bad_oauth_callback": .init(.invalidCallback, .signIn, .signInFailed),
        "oauth_client_state_not_found": .init(.flowExpired, .signIn, .signInFailed),
        "oauth_client_state_expired": .init(.flowExpired, .signIn, .signInFailed),
        "oauth_invalid_state": .init(.invalidCallback, .signIn, .signInFailed),
        "oauth_provider_not_supported": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "provider_email_needs_verification": .init(.accessDenied, .none, .unconfirmedEmail),
        "provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        // Users, passwords and messages.
        "invalid_credentials": .init(.invalidCredentials, .none, .wrongCredentials),
        "email_not_confirmed": .init(.stateConflict, .none, .unconfirmedEmail),
        "phone_not_confirmed": .init(.stateConflict, .none, .unconfirmedPhone),
        "user_banned": .init(.accessDenied, .none, .blocked),
        "signup_disabled": .init(.accessDenied, .none, .signUpClosed),
        "user_already_exists": .init(.emailAlreadyInUse, .signIn, .emailTaken),
        "email_exists": .init(.emailAlreadyInUse, .link, .emailTaken),
        "phone_exists": .init(.stateConflict, .none, .phoneTaken),
        "email_provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "phone_provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "anonymous_provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "otp_disabled": .init(.userNotFound, .none, .unknownUser),
        "otp_expired": .init(.invalidCredentials, .none, .wrongCode),
        "invite_not_found": .init(.flowExpired, .none, .linkExpired),
        "weak_password": .init(.weakPassword, .none, .weakPassword),
        "same_password": .init(.validationFailed, .none, .samePassword),
        "reauthentication_needed": .init(.stateConflict, .signIn, .signInAgain),
        "reauthentication_not_valid": .init(.invalidCredentials, .none, .wrongCode),
        "current_password_required": .init(.validationFailed, .none, .passwordNeeded),
        "current_password_invalid": .init(.invalidCredentials, .none, .wrongPassword),
        "user_sso_managed": .init(.methodUnsupported, .none, .managed),
        // Second factors and identities.
        "insufficient_aal": .init(.stateConflict, .none, .secondFactorNeeded),
        "mfa_factor_not_found": .init(.notFound, .none),
        "mfa_factor_name_conflict": .init(.stateConflict, .none, .nameTaken),
        "too_many_enrolled_mfa_factors": .init(.stateConflict, .none, .tooManyFactors),
        "mfa_verified_factor_exists": .init(.stateConflict, .none, .tooManyFactors),
        "mfa_challenge_expired": .init(.flowExpired, .retry, .codeExpired),
        "mfa_verification_failed": .init(.invalidCredentials, .none, .wrongCode),
        "mfa_ip_address_mismatch": .init(.stateConflict, .retry, .codeExpired),
        "mfa_verification_rejected": .init(.accessDenied, .signIn, .sessionEnded),
        "mfa_totp_enroll_not_enabled": .init(.methodUnsupported, .fixConfiguration),
        "mfa_totp_verify_not_enabled": .init(.methodUnsupported, .fixConfiguration),
        "mfa_phone_enroll_not_enabled": .init(.methodUnsupported, .fixConfiguration),
        "mfa_phone_verify_not_enabled": .init(.methodUnsupported, .fixConfiguration),
        "mfa_webauthn_enroll_not_enabled": .init(.methodUnsupported, .fixConfiguration),
        "mfa_webauthn_verify_not_enabled": .init(.methodUnsupported, .fixConfiguration),
        "identity_already_exists": .init(.emailAlreadyInUse, .link, .emailTaken),
        "identity_not_found": .init(.notFound, .none),
        "single_identity_not_deletable": .init(.stateConflict, .none, .lastIdentity),
        "email_conflict_identity_not_deletable": .init(.stateConflict, .none, .emailTaken),
        "manual_linking_disabled": .init(.methodUnsupported, .fixConfiguration),
        "unexpected_audience": .init(.invalidConfiguration, .fixConfiguration),
        // Limits, messages that cannot be sent, and wallets.
        "captcha_failed": .init(.validationFailed, .retry, .puzzle),
        "over_request_rate_limit": .init(.rateLimited, .retry, .tooManyAttempts),
        "over_email_send_rate_limit": .init(.rateLimited, .retry, .tooManyAttempts),
        "over_sms_send_rate_limit": .init(.rateLimited, .retry, .tooManyAttempts),
        "sms_send_failed": .init(.providerError, .retry, .messageNotSent),
        "email_address_not_authorized": .init(.providerError, .fixConfiguration, .messageNotSent),
        "email_address_invalid": .init(.validationFailed, .none, .invalidEmail),
        "email_address_not_provided": .init(.validationFailed, .none, .invalidEmail),
        "webauthn_credential_not_found": .init(.notFound, .none),
        "web3_provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "web3_unsupported_chain": .init(.methodUnsupported, .none, .notOffered),
        // Single sign-on, auth hooks, passkeys, and the project as an OAuth provider.
        "saml_provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "sso_provider_not_found": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "sso_provider_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "saml_idp_not_found": .init(.invalidCallback, .signIn, .signInFailed),
        "saml_relay_state_not_found": .init(.flowExpired, .signIn, .signInFailed),
        "saml_relay_state_expired": .init(.flowExpired, .signIn, .signInFailed),
        "saml_assertion_no_user_id": .init(.providerError, .fixConfiguration, .signInFailed),
        "saml_assertion_no_email": .init(.providerError, .fixConfiguration, .signInFailed),
        "saml_metadata_fetch_failed": .init(.providerError, .none),
        "sso_domain_already_exists": .init(.providerError, .none),
        "saml_entity_id_mismatch": .init(.providerError, .none),
        "saml_idp_already_exists": .init(.providerError, .none),
        "custom_provider_not_found": .init(.providerError, .none),
        "over_custom_provider_quota": .init(.providerError, .none),
        "hook_timeout": .init(.providerUnreachable, .retry, .serviceDown),
        "hook_timeout_after_retry": .init(.providerUnreachable, .retry, .serviceDown),
        "hook_payload_over_size_limit": .init(.providerError, .fixConfiguration),
        "hook_payload_invalid_content_type": .init(.providerError, .fixConfiguration),
        "feature_disabled": .init(.methodUnsupported, .fixConfiguration),
        "passkey_disabled": .init(.methodUnsupported, .fixConfiguration, .notOffered),
        "too_many_passkeys": .init(.stateConflict, .none, .tooManyFactors),
        "webauthn_credential_exists": .init(.stateConflict, .none),
        "webauthn_challenge_not_found": .init(.flowExpired, .retry, .signInFailed),
        "webauthn_challenge_expired": .init(.flowExpired, .retry, .signInFailed),
        "webauthn_verification_failed": .init(.invalidCredentials, .none, .signInFailed),
        "oauth_dynamic_client_registration_disabled": .init(.methodUnsupported, .fixConfiguration),
        "oauth_client_not_found": .init(.providerError, .fixConfiguration),
        "oauth_authorization_not_found": .init(.flowExpired, .signIn, .signInFailed),
        "oauth_consent_not_found": .init(.notFound, .none),
    ]

    public static let all = Set(table.keys)
}
