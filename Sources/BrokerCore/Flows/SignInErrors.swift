/// Sign-ins that are refused before they are flows. Who listens hears of them as of a flow that failed, and the account
/// shows why; a mistake in the request itself is between the caller and us.
extension Broker {
    /// To be told before the caller is answered: who looks at the account then finds its error.
    func tell(of error: BrokerError, refusing request: SignInRequest, of name: AccountName, since began: Int) async {
        // Where a sign-in has details, the refusal of a page is an answer to the user's choice, too.
        guard request.details != nil else { return }
        recordDirect(name, request, since: began, .failed, error)
        if !request.concernsHeldUser, error.refusesSignIn {
            await sessionManager.note(error, name, as: .signInFailed)
        }
    }
}
