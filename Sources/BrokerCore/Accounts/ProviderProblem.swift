/// A refusal by a provider whose kind has an error table of its own: facts, in the words of the API.
public struct ProviderProblem: Sendable, Equatable {
    /// The API's error code.
    public let code: String
    /// What the caller can do, in the API's word.
    public let recovery: String
    /// The cause, as messages for people name it; nil where there is nothing to tell.
    public let message: String?
    /// The provider's own code, checked.
    public let providerCode: String?
    /// The provider's own words, checked.
    public let providerMessage: String?
    /// What is wrong with a password.
    public let weaknesses: [String]
    /// Seconds.
    public let retryAfter: Int?
    /// Our own sentence, where the fault was found before anything was sent.
    public let reason: String?
    /// The provider's words for a session that is over, or whose user is gone, said to who had a token of it.
    public let endsSession: Bool
    /// The provider's own trouble (HTTP 5xx), in its words: what was asked may have been done all the same.
    public let isTrouble: Bool
    /// A field that was found wrong before anything was sent, and that says nothing of the sign-in.
    public let isMistake: Bool

    public init(
        code: String, recovery: String, message: String?, providerCode: String?, providerMessage: String?,
        weaknesses: [String], retryAfter: Int?, reason: String?, endsSession: Bool, isTrouble: Bool, isMistake: Bool
    ) {
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
    public var isRateLimit: Bool { code == "rate_limited" }

    /// The same without the provider's words: they may repeat what was sent.
    public var withoutWords: ProviderProblem {
        ProviderProblem(
            code: code, recovery: recovery, message: message, providerCode: providerCode, providerMessage: nil,
            weaknesses: weaknesses, retryAfter: retryAfter, reason: nil, endsSession: endsSession,
            isTrouble: isTrouble, isMistake: false)
    }
}
