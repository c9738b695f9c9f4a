/// What a caller is told about a failure: the API's error codes, from one table (``SupabaseCode``).
public struct SupabaseProblem: Sendable, Equatable {
    /// The contract's codes that an Auth server's answer can become. Raw values are the contract's.
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

    /// What the caller can do. Raw values are the contract's.
    public enum Recovery: String, Sendable, CaseIterable {
        case retry
        case signIn = "sign_in"
        case link
        case fixConfiguration = "fix_configuration"
        case none
    }

    /// What was being done: the same word of the server's means another thing in another place.
    public enum Occasion: Sendable {
        /// A grant, a sign-up, a message to a person who is not signed in, the verification of a code.
        case signIn
        /// ``SupabaseProject/authorization(_:)``, where nothing but the provider's name can be wrong.
        case authorization
        /// A callback's error: its link, not its code, is what is wrong.
        case callback
        /// A refresh.
        case refresh
        /// Anything that is done with an access token.
        case account
        /// The same, with a credential of an authenticator: of one that it does not believe the server says HTTP 500.
        case credential
        /// The same, for the page of one more identity: there nothing but the provider's name can be wrong, too.
        case identityPage
        /// A new password, by a person who had forgotten the old one.
        case passwordReset
    }

    public let code: Code
    public let recovery: Recovery
    /// What the person should see; nil where there is nothing to do or to know for them.
    public let message: PersonMessage?
    /// The server's code, for `provider_code`; nil where there is no word of the server's.
    public let providerCode: String?
    /// The server's words, for `provider_message`.
    public let providerMessage: String?
    /// What is wrong with a password: `length`, `characters`, `pwned`.
    public let weaknesses: [String]
    /// Seconds.
    public let retryAfter: Int?
    /// Our own sentence, where the fault was found before anything was sent.
    public let reason: String?
    /// True for the server's words for a session that is over, or whose user is gone, said to who had a token of it.
    public let endsSession: Bool
    /// True for the server's own trouble (HTTP 5xx), in its words: what was asked may have been done all the same.
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

    /// The same without the server's words: they may repeat what was sent.
    public var withoutWords: SupabaseProblem {
        var bare = SupabaseProblem(
            .init(code, recovery, message), providerCode: providerCode, weaknesses: weaknesses, retryAfter: retryAfter,
            endsSession: endsSession)
        bare.isTrouble = isTrouble
        return bare
    }

    /// A user who is not found at another status is one who was looked for.
    private static func endsSession(_ refusal: SupabaseError.Refusal) -> Bool {
        ["session_not_found", "session_expired"].contains(refusal.code)
            || (refusal.code == "user_not_found" && refusal.status == 403)
    }

    /// The problem that an error of the server's is on this occasion.
    public init(_ error: SupabaseError, on occasion: Occasion) {
        switch error {
        case .refused(let refusal):
            let isTrouble = refusal.status >= 500 && refusal.databaseCode == nil
            self.init(
                isTrouble
                    ? SupabaseCode.trouble(refusal, on: occasion) : SupabaseCode.meaning(of: refusal, on: occasion),
                providerCode: refusal.code, providerMessage: refusal.message, weaknesses: refusal.weaknesses,
                retryAfter: refusal.retryAfter, endsSession: !isTrouble && SupabaseProblem.endsSession(refusal))
            self.isTrouble = isTrouble
        case .unavailable(_, let seconds):
            self.init(.init(.providerUnreachable, .retry, .serviceDown), retryAfter: seconds)
        case .invalid:
            let isSigningIn = [.signIn, .authorization, .callback].contains(occasion)
            self.init(.init(.invalidProviderResponse, .retry, isSigningIn ? .signInFailed : nil))
        case .misconfigured: self.init(.init(.invalidConfiguration, .fixConfiguration, nil))
        }
    }

    /// The problem that a field is.
    public init(_ error: FieldError) {
        let isShort = error == PasswordRule.tooShort
        let message: PersonMessage? =
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

    /// The problem that a sign-up with an address is that has a user already, which the server does not say.
    public static let addressTaken = SupabaseProblem(.init(.emailAlreadyInUse, .signIn, .emailTaken))

    /// The same for either kind of contact.
    public static func taken(_ contact: Contact) -> SupabaseProblem {
        switch contact {
        case .email: addressTaken
        case .phone: SupabaseProblem(.init(.stateConflict, .signIn, .phoneTaken))
        }
    }
}
