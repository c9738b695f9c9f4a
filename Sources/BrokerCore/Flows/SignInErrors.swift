/// Sign-ins that fail before they are flows. They are recorded as a flow that failed is, and the account shows why. A
/// mistake in the request itself is told to the caller only.
extension Broker {
    /// To be called before the caller gets its response, so that the account has the error by then.
    func tell(of error: BrokerError, refusing request: SignInRequest, of name: AccountName, since began: Int) async {
        // Where a sign-in has details, a page that cannot be had is a result of the user's choice, too.
        guard request.details != nil else { return }
        recordDirect(name, request, since: began, .failed, error)
        if !request.concernsHeldUser, error.refusesSignIn {
            await sessionManager.note(error, name, as: .signInFailed)
        }
    }
}
