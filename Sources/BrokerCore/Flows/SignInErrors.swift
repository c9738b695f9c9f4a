/// Sign-ins that fail before they are flows. They are recorded as a flow that failed is, and the account shows why. A
/// mistake in the request itself is told to the caller only.
extension Broker {
    /// To be called before the caller gets its response, so that the account has the error by then.
    func tell(
        of error: BrokerError, refusing request: SignInRequest, of name: AccountName, since began: BootInstant
    ) async {
        // Only a request with details is recorded. Without them the caller alone is told.
        guard request.details != nil else { return }
        recordDirect(name, request, since: began, .failed, error)
        if !request.concernsHeldUser, error.refusesSignIn {
            await sessionManager.note(error, name, as: .signInFailed)
        }
    }
}
