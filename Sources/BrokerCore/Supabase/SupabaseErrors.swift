internal import SupabaseAuth

extension BrokerError {
    /// What a project's no means to who asked for something.
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion) {
        switch error {
        case .invalid(let reason): self = .provider(.invalidAnswer("The project's answer is not valid: \(reason)."))
        case .unavailable(let status, let seconds):
            self = .provider(.unavailable(status: status, retryAfter: seconds))
        case .misconfigured(let reason): self = .misconfigured(reason)
        case .refused(let refusal) where refusal.asksForRefresh:
            // The tables' server has words of its own for a token that is not, or no more, good.
            let same = SupabaseError.Refusal(code: "bad_jwt", status: 403, message: refusal.message)
            self = .project(SupabaseProblem(.refused(same), on: occasion))
        case .refused: self = .project(SupabaseProblem(error, on: occasion))
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
                self = .provider(.invalidAnswer("The answer of \(host) is not valid: \(reason)."))
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
            ? .project(SupabaseProblem(error)) : .invalid(field: error.field, reason: error.reason)
    }
}
