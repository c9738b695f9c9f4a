internal import BrokerCore
internal import HTTPMessages
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth

extension Problem {
    /// An error response that the provider's own table has translated already.
    init(_ problem: ProviderProblem) {
        var members = JSONObject()
        members["provider_code"] = problem.providerCode.map { .string($0) }
        members["provider_message"] = problem.providerMessage.map { .string($0) }
        if !problem.weaknesses.isEmpty { members["reasons"] = .array(problem.weaknesses.map { .string($0) }) }
        let words = problem.providerMessage.map { ": \($0)" } ?? Problem.reasons(problem.weaknesses)
        self.init(
            ErrorCode(rawValue: problem.code),
            problem.providerCode.map { "The project responded with “\($0)”\(words)" }
                ?? problem.reason.map { "\($0)." },
            recovery: Recovery(rawValue: problem.recovery), retryAfter: problem.retryAfter,
            extensions: members)
    }

    /// What is wrong with a password, in Ringback's own text. They are used if the project's text is missing, or is not
    /// passed on because it may repeat a part of the password.
    private static func reasons(_ weaknesses: [String]) -> String {
        guard !weaknesses.isEmpty else { return "." }
        let sentences = weaknesses.map { weakness in
            switch weakness {
            case "length": "it is too short"
            case "characters": "it lacks some of the required characters"
            case "pwned": "it is known from a leak"
            default: weakness
            }
        }
        return ": \(sentences.joined(separator: ", "))."
    }
}

extension UserMessage {
    /// The sentence for the user, by cause.
    init?(_ error: BrokerError, endedSignIn: Bool) {
        switch error {
        case .problem(let problem):
            guard let message = problem.message.flatMap(UserMessage.init(rawValue:)) else { return nil }
            self = message
        // If a proxy failed, or a server on this machine cannot be reached, the network is not the cause.
        case .provider(.unreachable(let host, _, let proxy)):
            self = proxy != nil || WebURL(ofPlace: host)?.isLoopback == true ? .serviceDown : .network
        case .provider(.unavailable), .provider(.failing), .provider(.unproved), .vaultUnreachable: self = .serviceDown
        case .provider(.rateLimited), .tooManyAttempts: self = .tooManyAttempts
        case .resendTooEarly: self = .messageSentAlready
        case .upstream(_, let error):
            guard let message = UserMessage(error, endedSignIn: endedSignIn) else { return nil }
            self = message
        case .invalidCallback, .flowExpired: self = .signInFailed
        case .provider(.invalidResponse) where endedSignIn, .provider(.refused) where endedSignIn: self = .signInFailed
        case .sessionExpired(_, word: "user_banned", _): self = .blocked
        case .sessionExpired: self = .sessionEnded
        case .clientForgotten where endedSignIn: self = .signInFailed
        case .refreshRefused: self = .sessionNotRenewed
        case .invalid(field: "email", _): self = .invalidEmail
        case .invalid(field: "phone", _): self = .invalidPhone
        default: return nil
        }
    }
}
