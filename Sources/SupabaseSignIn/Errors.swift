internal import BrokerCore
internal import SupabaseAuth

extension BrokerError {
    /// What a project's no means to who asked for something.
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion) {
        switch error {
        case .invalid(let reason): self = .provider(.invalidResponse("The project's answer is not valid: \(reason)."))
        case .unavailable(let status, let seconds):
            self = .provider(.unavailable(status: status, retryAfter: seconds))
        case .misconfigured(let reason): self = .misconfigured(reason)
        case .refused(let refusal) where refusal.asksForRefresh:
            // The tables' server has words of its own for a token that is not, or no more, good.
            let same = SupabaseError.ErrorResponse(code: "bad_jwt", status: 403, message: refusal.message)
            self = .problem(ProviderProblem(.refused(same), on: occasion))
        case .refused: self = .problem(ProviderProblem(error, on: occasion))
        }
    }

    /// What a project's no to a refresh means, in the words that the keeping of sessions knows.
    init(refusing error: SupabaseError, host: String) {
        switch RefreshVerdict(error) {
        case .dead, .reused:
            // One word for all that prove a session dead (RFC 6749 section 5.2). A token that was used already is dead
            // unless another one is held, which is presented before anything is given up.
            self = .provider(.refused(code: "invalid_grant", message: error.code))
        case .transient(let seconds):
            switch error {
            case .refused(let refusal) where refusal.status == 429: self = .provider(.rateLimited(retryAfter: seconds))
            case .refused(let refusal) where refusal.status == 409 || refusal.status >= 500:
                self = .provider(.unavailable(status: refusal.status, retryAfter: seconds))
            case .refused(let refusal): self = .provider(.refused(code: refusal.code, message: refusal.message))
            case .unavailable(let status, let seconds):
                self = .provider(.unavailable(status: status, retryAfter: seconds))
            case .invalid(let reason):
                self = .provider(.invalidResponse("The answer of \(host) is not valid: \(reason)."))
            case .misconfigured(let reason): self = .misconfigured(reason)
            }
        case .misconfigured:
            if case .misconfigured(let reason) = error {
                self = .misconfigured(reason)
            } else {
                self = .misconfigured("\(host) does not take the project's address or key.")
            }
        }
    }

    /// What is wrong with what somebody typed.
    init(_ error: FieldError) {
        self =
            error.field == "password" || error.field == "code"
            ? .problem(ProviderProblem(error)) : .invalid(field: error.field, reason: error.reason)
    }
}

extension BrokerError {
    /// An error that came with the callback: the user's no has a word of its own.
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion, of account: AccountName) {
        if case .refused(let refusal) = error, refusal.code == "access_denied" {
            self = .accessDenied(account)
        } else {
            self.init(error, on: occasion)
        }
    }

    /// The server's own code for its refusal.
    private var providerCode: String? {
        if case .problem(let problem) = self { problem.providerCode } else { nil }
    }

    /// The server does not know the code, or it is another challenge's: neither ends the flow that it was sent to.
    var isOfAnotherFlow: Bool { ["bad_code_verifier", "flow_state_not_found"].contains(providerCode) }

    /// The server's word for a code that it does not know, or not for this address.
    var isWrongCode: Bool { providerCode == "otp_expired" }

    /// The server has seen the credential: its challenge is spent.
    var isAboutCredential: Bool {
        guard case .problem(let problem) = self else { return false }
        return problem.providerCode != nil && !problem.isRateLimit
    }

    /// The server's own no.
    var isWordOfProject: Bool { if case .problem(let problem) = self { !problem.isTrouble } else { false } }

    /// The server's word for a token that is not, or no more, good.
    var asksForRefresh: Bool { providerCode == "bad_jwt" }

    /// Why a session is dead, in a project's own word.
    var wordOfEnd: String? {
        switch self {
        case .provider(.refused("invalid_grant", let word)): word
        case .problem(let problem): problem.providerCode
        default: nil
        }
    }

    /// The server's words for a session that is over, said to who had a token of it.
    var endsSession: Bool {
        if case .problem(let problem) = self { problem.endsSession } else { false }
    }

    /// The same without the project's words, which may repeat what it was shown.
    var withoutWords: BrokerError {
        if case .problem(let problem) = self { .problem(problem.withoutWords) } else { self }
    }
}

extension ProviderProblem {
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion) {
        self.init(SupabaseProblem(error, on: occasion))
    }

    init(_ error: FieldError) { self.init(SupabaseProblem(error)) }

    /// A password that is too weak is no mistake: no matter who finds it, the user is to choose another one.
    init(_ problem: SupabaseProblem) {
        self.init(
            code: problem.code.rawValue, recovery: problem.recovery.rawValue, message: problem.message?.rawValue,
            providerCode: problem.providerCode, providerMessage: problem.providerMessage,
            weaknesses: problem.weaknesses, retryAfter: problem.retryAfter, reason: problem.reason,
            endsSession: problem.endsSession, isTrouble: problem.isTrouble,
            isMistake: problem.reason != nil && problem.code == .validationFailed)
    }
}
