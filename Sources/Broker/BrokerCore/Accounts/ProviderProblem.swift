/// An error of a provider whose kind of account has an error table of its own. The broker passes the codes on to the
/// socket API and makes no decision by them.
public struct ProviderProblem: Sendable, Equatable {
    /// The causes that the broker makes decisions by.
    public enum Cause: Sendable, Equatable {
        /// The provider asks to wait.
        case rateLimited
        /// The provider does not offer the method.
        case methodUnsupported
    }

    /// Nil for every other cause.
    public let cause: Cause?
    /// The API's error code.
    public let code: String
    /// What the caller can do: a `recovery` of the socket API.
    public let recovery: String
    /// The identifier of the message for the user; nil if there is none.
    public let message: String?
    /// The provider's error code, checked.
    public let providerCode: String?
    /// The provider's error text, checked.
    public let providerMessage: String?
    /// Why the password is too weak.
    public let weaknesses: [String]
    /// Seconds.
    public let retryAfter: Int?
    /// Ringback's own sentence, if the mistake was found before anything was sent.
    public let reason: String?
    /// True if the error proves, to a request with a token of a session, that the session has ended or its user was
    /// deleted.
    public let endsSession: Bool
    /// An error of the provider itself (HTTP 5xx). The request may have taken effect nevertheless.
    public let isTrouble: Bool
    /// A field of the request was found to be invalid before anything was sent. The sign-in did not fail.
    public let isMistake: Bool

    public init(
        _ cause: Cause?, code: String, recovery: String, message: String?, providerCode: String?,
        providerMessage: String?,
        weaknesses: [String], retryAfter: Int?, reason: String?, endsSession: Bool, isTrouble: Bool, isMistake: Bool
    ) {
        self.cause = cause
        self.code = code
        self.recovery = recovery
        self.message = message
        self.providerCode = providerCode
        self.providerMessage = providerMessage
        self.weaknesses = weaknesses
        self.retryAfter = retryAfter
        self.reason = reason
        self.endsSession = endsSession
        self.isTrouble = isTrouble
        self.isMistake = isMistake
    }

    /// The provider asks to wait.
    public var isRateLimit: Bool { cause == .rateLimited }

    /// The same without the provider's texts, which may repeat a secret of the request.
    public var withoutWords: ProviderProblem {
        ProviderProblem(
            cause, code: code, recovery: recovery, message: message, providerCode: providerCode, providerMessage: nil,
            weaknesses: weaknesses, retryAfter: retryAfter, reason: nil, endsSession: endsSession,
            isTrouble: isTrouble, isMistake: false)
    }
}
