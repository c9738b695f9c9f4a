/// An error for the API's caller, with the API's code from one table (``SupabaseCode``).
public struct SupabaseProblem: Sendable, Equatable {
    /// The API's error codes that an Auth server's response can lead to.
    public enum Code: String, Sendable, CaseIterable {
        case accessDenied = "access_denied"
        case emailAlreadyInUse = "email_already_in_use"
        case flowExpired = "flow_expired"
        case internalError = "internal_error"
        case invalidCallback = "invalid_callback"
        case invalidConfiguration = "invalid_configuration"
        case invalidCredentials = "invalid_credentials"
        case invalidProviderResponse = "invalid_provider_response"
        case methodUnsupported = "method_unsupported"
        case notFound = "not_found"
        case passwordResetFailed = "password_reset_failed"
        case payloadTooLarge = "payload_too_large"
        case providerError = "provider_error"
        case providerUnreachable = "provider_unreachable"
        case rateLimited = "rate_limited"
        case sessionExpired = "session_expired"
        case signInRequired = "sign_in_required"
        case stateConflict = "state_conflict"
        case userNotFound = "user_not_found"
        case validationFailed = "validation_failed"
        case weakPassword = "weak_password"
    }

    /// What the caller can do; values of the API.
    public enum Recovery: String, Sendable, CaseIterable {
        case retry
        case signIn = "sign_in"
        case link
        case fixConfiguration = "fix_configuration"
        case none
    }

    /// The kind of request. The meaning of an error code depends on it.
    public enum Occasion: Sendable {
        /// A token request, a sign-up, a message to a user who is not signed in, or the verification of a code.
        case signIn
        /// ``SupabaseProject/authorization(_:)``, in which only the provider's name can be wrong.
        case authorization
        /// An error in a callback. It concerns the link or the provider, not a typed code.
        case callback
        /// A refresh.
        case refresh
        /// A request with an access token.
        case account
        /// The same, with a credential of an authenticator. If the server rejects the credential, it responds with HTTP
        /// 500.
        case credential
        /// The same for ``SupabaseProject/identityLink(_:bearer:)``, in which only the provider's name can be wrong.
        case identityPage
        /// A new password after the old one was forgotten.
        case passwordReset
    }

    public let code: Code
    public let recovery: Recovery
    /// The message for the user; nil if there is none.
    public let message: UserMessage?
    /// The server's error code, for `provider_code`; nil if it sent none.
    public let providerCode: String?
    /// The server's message, for `provider_message`.
    public let providerMessage: String?
    /// Why a password is too weak: `length`, `characters`, `pwned`.
    public let weaknesses: [String]
    /// In seconds.
    public let retryAfter: Int?
    /// The reason as a text of Ringback, if the error was found before a request was sent.
    public let reason: String?
    /// True if the server said that the session has ended or its user is gone, in response to a request with its access
    /// token.
    public let endsSession: Bool
    /// True for an error response with status 5xx: the change may have been made nevertheless.
    public var isTrouble = false

    init(
        _ meaning: SupabaseCode.Meaning, providerCode: String? = nil, providerMessage: String? = nil,
        weaknesses: [String] = [], retryAfter: Int? = nil, reason: String? = nil, endsSession: Bool = false
    ) {
        self.endsSession = endsSession
        code = meaning.code
        recovery = meaning.recovery
        message = meaning.message
        self.providerCode = providerCode
        self.providerMessage = providerMessage
        self.weaknesses = weaknesses
        self.retryAfter = retryAfter
        self.reason = reason
    }

    /// A copy without the server's message, which may repeat what was sent.
    public var withoutWords: SupabaseProblem {
        var bare = SupabaseProblem(
            .init(code, recovery, message), providerCode: providerCode, weaknesses: weaknesses, retryAfter: retryAfter,
            endsSession: endsSession)
        bare.isTrouble = isTrouble
        return bare
    }

    /// With a status other than 403, `user_not_found` does not mean the user of the session, but a user that the
    /// request searched for.
    private static func endsSession(_ errorResponse: SupabaseError.ErrorResponse) -> Bool {
        ["session_not_found", "session_expired"].contains(errorResponse.code)
            || (errorResponse.code == "user_not_found" && errorResponse.status == 403)
    }

    /// The problem for an error of the server.
    public init(_ error: SupabaseError, on occasion: Occasion) {
        switch error {
        case .refused(let errorResponse):
            let isTrouble = errorResponse.status >= 500 && errorResponse.databaseCode == nil
            self.init(
                isTrouble
                    ? SupabaseCode.trouble(errorResponse, on: occasion)
                    : SupabaseCode.meaning(of: errorResponse, on: occasion),
                providerCode: errorResponse.code, providerMessage: errorResponse.message,
                weaknesses: errorResponse.weaknesses,
                retryAfter: errorResponse.retryAfter,
                endsSession: !isTrouble && SupabaseProblem.endsSession(errorResponse))
            self.isTrouble = isTrouble
        case .unavailable(_, let seconds):
            self.init(.init(.providerUnreachable, .retry, .serviceDown), retryAfter: seconds)
        case .invalid:
            let isSigningIn = [.signIn, .authorization, .callback].contains(occasion)
            self.init(.init(.invalidProviderResponse, .retry, isSigningIn ? .signInFailed : nil))
        case .misconfigured: self.init(.init(.invalidConfiguration, .fixConfiguration, nil))
        }
    }

    /// The problem for an invalid field.
    public init(_ error: FieldError) {
        let isShort = error == PasswordRule.tooShort
        let message: UserMessage? =
            switch error.field {
            case "email": .invalidEmail
            case "phone": .invalidPhone
            case "code": .wrongCode
            case "password" where isShort: .weakPassword
            default: nil
            }
        self.init(
            .init(isShort ? .weakPassword : .validationFailed, .none, message), weaknesses: isShort ? ["length"] : [],
            reason: "\(error.field): \(error.reason)")
    }

    /// The problem of a sign-up with an address that belongs to an existing user. The server does not report this.
    public static let addressTaken = SupabaseProblem(.init(.emailAlreadyInUse, .signIn, .emailTaken))

    /// The same for an address or a number.
    public static func taken(_ contact: Contact) -> SupabaseProblem {
        switch contact {
        case .email: addressTaken
        case .phone: SupabaseProblem(.init(.stateConflict, .signIn, .phoneTaken))
        }
    }
}
