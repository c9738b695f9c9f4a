internal import SupabaseAuth

/// Sign-ins that are refused before they are flows. Who listens hears of them as of a flow that failed, and the account
/// shows why; a mistake in the request itself is between the caller and us.
extension Broker {
    /// To be told before the caller is answered: who looks at the account then finds its error.
    func tell(of error: BrokerError, refusing request: SignInRequest, of name: AccountName, since began: Int) async {
        // At a project the refusal of a page is an answer to the person's choice, too.
        guard request.isDirect || request.project != nil else { return }
        recordDirect(name, request, since: began, .failed, error)
        if !request.concernsHeldPerson, error.refusesSignIn {
            await sessionManager.note(error, name, as: .signInFailed)
        }
    }
}

extension SignInRequest {
    /// Of a person who is signed in and stays so however it ends: a change, or one more identity.
    var concernsHeldPerson: Bool { changesUser || method == "link" }
}

extension BrokerError {
    /// False for a mistake in the request, and for what says nothing of the sign-in: a lock, a caller who left.
    fileprivate var refusesSignIn: Bool {
        switch self {
        case .project(let problem): !problem.isMistake
        case .accessDenied, .conflict, .flowEnded, .flowExpired, .invalidCallback, .misconfigured, .portInUse,
            .provider,
            .serviceRefused, .sessionExpired, .unusableSetting, .vaultFailed:
            true
        case .accountNotFound, .cancelled, .flowCancelled, .flowNotFound, .invalid, .methodUnsupported, .nothingHeld,
            .resendTooEarly, .sessionRanOut, .signInRequired, .timedOut, .tooManyAttempts, .vaultLocked,
            .wrongPassphrase:
            false
        }
    }
}

extension SupabaseProblem {
    /// A field that was found wrong before anything was sent. A password that is too weak is none: no matter who finds
    /// it, the person is to choose another one.
    fileprivate var isMistake: Bool { reason != nil && code == .validationFailed }
}
