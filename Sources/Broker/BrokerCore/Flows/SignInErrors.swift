/// Sign-ins that fail before they have a flow. They are recorded like a failed flow, and the account shows the error.
/// Only the caller is told of a mistake in the request itself.
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
