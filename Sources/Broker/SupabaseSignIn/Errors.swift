internal import BrokerCore
internal import SupabaseAuth

extension BrokerError {
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion) {
        switch error {
        case .invalid(let reason):
            self = .provider(.invalidResponse(.stated("The project's response is not valid: \(reason).")))
        case .unavailable(let status, let seconds):
            self = .provider(.unavailable(status: status, retryAfter: seconds))
        case .misconfigured(let reason): self = .misconfigured(.stated(reason))
        case .refused(let errorResponse) where errorResponse.asksForRefresh:
            // PostgREST has error codes of its own for a token that is invalid or expired.
            let same = SupabaseError.ErrorResponse(code: "bad_jwt", status: 403, message: errorResponse.message)
            self = .problem(ProviderProblem(.refused(same), on: occasion))
        case .refused: self = .problem(ProviderProblem(error, on: occasion))
        }
    }

    /// Translates an error response to a refresh to the errors that the session manager knows.
    init(refusing error: SupabaseError, host: String) {
        switch RefreshVerdict(error) {
        case .dead, .reused:
            // One code for all responses that prove an end (RFC 6749 section 5.2). A refresh token that was used
            // already is invalid; another one of the session is sent before the session ends.
            self = .provider(.refused(code: "invalid_grant", message: error.code))
        case .transient(let seconds):
            switch error {
            case .refused(let errorResponse) where errorResponse.status == 429:
                self = .provider(.rateLimited(retryAfter: seconds))
            // A hook or a trigger of the project has failed, and says why.
            case .refused(let errorResponse) where errorResponse.status >= 500 && errorResponse.message != nil:
                self = .provider(
                    .failing(
                        status: errorResponse.status, code: errorResponse.code, message: errorResponse.message,
                        retryAfter: seconds))
            case .refused(let errorResponse) where errorResponse.status == 409 || errorResponse.status >= 500:
                self = .provider(.unavailable(status: errorResponse.status, retryAfter: seconds))
            case .refused(let errorResponse):
                self = .provider(.refused(code: errorResponse.code, message: errorResponse.message))
            case .unavailable(let status, let seconds):
                self = .provider(.unavailable(status: status, retryAfter: seconds))
            case .invalid(let reason):
                self = .provider(.invalidResponse(.stated("The response of \(host) is not valid: \(reason).")))
            case .misconfigured(let reason): self = .misconfigured(.stated(reason))
            }
        case .misconfigured:
            let reason: String? = if case .misconfigured(let reason) = error { reason } else { nil }
            self = .misconfigured(.stated(reason ?? "\(host) does not accept the project's URL or key."))
        }
    }

    init(_ error: FieldError) {
        self =
            error.field == "password" || error.field == "code"
            ? .problem(ProviderProblem(error))
            : .invalid(field: error.field, reason: .stated(error.reason))
    }

    /// Only the error code `invalid_grant` (RFC 6749 section 5.2) proves that the session has ended.
    var provesDeadGrant: Bool {
        if case .provider(.refused("invalid_grant", _)) = self { true } else { false }
    }

    /// An error that came with the callback. If the user declined, its code is `access_denied`.
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion, of account: AccountName) {
        if case .refused(let errorResponse) = error, errorResponse.code == "access_denied" {
            self = .accessDenied(account)
        } else {
            self.init(error, on: occasion)
        }
    }

    private var providerCode: String? {
        if case .problem(let problem) = self { problem.providerCode } else { nil }
    }

    /// The server does not know the code, or it belongs to another code challenge. Neither ends the flow.
    var isOfAnotherFlow: Bool { ["bad_code_verifier", "flow_state_not_found"].contains(providerCode) }

    /// The server's error code for a code that is unknown, expired or for another address.
    var isWrongCode: Bool { providerCode == "otp_expired" }

    /// The server has processed the credential, so its challenge cannot be used again.
    var isAboutCredential: Bool {
        guard case .problem(let problem) = self else { return false }
        return problem.providerCode != nil && !problem.isRateLimit
    }

    /// The server has rejected the request; it was not an outage or a rate limit.
    var isWordOfProject: Bool { if case .problem(let problem) = self { !problem.isTrouble } else { false } }

    /// The server's error code for an access token that is invalid or expired.
    var asksForRefresh: Bool { providerCode == "bad_jwt" }

    var wordOfEnd: String? {
        switch self {
        case .provider(.refused("invalid_grant", let word)): word
        case .problem(let problem): problem.providerCode
        default: nil
        }
    }

    var endsSession: Bool {
        if case .problem(let problem) = self { problem.endsSession } else { false }
    }

    /// The same error without the project's text, which may repeat a secret of the request.
    var withoutWords: BrokerError {
        if case .problem(let problem) = self { .problem(problem.withoutWords) } else { self }
    }
}

extension Reason {
    init(_ failure: SupabaseCallback.Failure) {
        switch failure {
        case .malformed: self = .stated("The callback is not a well-formed response of Supabase Auth.")
        case .repeatedParameter(let name): self = .repeatedParameter(name)
        case .conflictingParameters: self = .codeAndError
        case .empty: self = .neitherCodeNorError
        case .carriesTokens: self = .supabase(.carriesTokens)
        }
    }
}

extension ProviderProblem {
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion) {
        self.init(SupabaseProblem(error, on: occasion))
    }

    init(_ error: FieldError) { self.init(SupabaseProblem(error)) }

    /// A password that is too weak is not a mistake of the caller: the user must choose another one.
    init(_ problem: SupabaseProblem) {
        self.init(code: problem.code.rawValue, recovery: problem.recovery.rawValue)
        switch problem.code {
        case .rateLimited: cause = .rateLimited
        case .methodUnsupported: cause = .methodUnsupported
        default: break
        }
        message = problem.message?.rawValue
        providerCode = problem.providerCode
        providerMessage = problem.providerMessage
        weaknesses = problem.weaknesses
        retryAfter = problem.retryAfter
        reason = problem.reason
        endsSession = problem.endsSession
        isTrouble = problem.isTrouble
        isMistake = problem.reason != nil && problem.code == .validationFailed
    }
}
