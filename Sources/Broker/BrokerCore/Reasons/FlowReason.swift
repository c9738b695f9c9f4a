/// Why a flow did not begin or ended, or why a callback or a typed proof is not its own.
public enum FlowReason: Sendable, Equatable {
    /// As many flows are pending as the registry keeps.
    case tooManyPending(most: Int)
    /// `age` is in seconds.
    case anotherPending(AccountName, method: SignInMethod, age: Int)
    /// Another flow without a key waits at this scheme.
    case schemeTaken(String)
    /// The method has no flow: its sign-in is done at once.
    case doneAtOnce(AccountName, method: SignInMethod)
    /// The daemon serves no pages here.
    case noPageListener

    case cancelled(AccountName)
    /// It was cancelled while its proof was redeemed.
    case cancelledBeforeEnd(AccountName)
    /// Another sign-in took its place before it had begun.
    case replaced(AccountName)
    /// The configuration of the account changed before the flow had begun.
    case configurationChangedAtStart(AccountName)
    case configurationChanged(AccountName)

    /// It does not wait for this kind of proof.
    case noProofAwaited(Proof.Kind)
    /// It waits for another kind of response of the provider.
    case otherResponseAwaited
    /// The callback came to another address than the flow's.
    case otherAddress
    /// Another proof of the same flow is being redeemed.
    case anotherProof
    case anotherCallback
    case callerDisconnected

    case notURL
    case malformedCallback
    /// A parameter that may occur only once is repeated. The name is from Ringback's own list.
    case repeatedParameter(String)
    case codeAndError
    case neitherCodeNorError
    /// The callback has tokens in its URL (implicit flow).
    case carriesTokens
    case withoutState
    /// The parameters are in the fragment, which only the implicit flow and `response_mode=fragment` use.
    case inFragment
    /// The response was sent by POST, which is accepted only with `response_mode=form_post`.
    case posted
    /// A script or a frame of a page sent it, and not a navigation of the browser.
    case notNavigated
    /// No pending flow has the callback's state.
    case unknownState
}
