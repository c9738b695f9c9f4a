internal import BrokerCore
internal import SessionVault

/// How a user is named who has neither an address nor a subject.
let unnamedUser = "an unnamed user"

extension SessionReason: Sentence {
    var sentence: String {
        switch self {
        case .otherUser(let name, let held, let other):
            "\(name) is signed in as \(held ?? unnamedUser), and this sign-in is by \(other ?? unnamedUser). "
                + "Nothing was changed. "
                + "Sign out first, or ask to switch."
        case .noRoom(let cause):
            "The session was not refreshed, since a new refresh token could not be kept safe: \(cause.sentence)"
        case .heldElsewhere(let name, let wait):
            "Another host that shares the vault refreshes the session of \(name), or may have done so. "
                + "It is looked at again in \(wait.components.seconds) seconds at the latest."
        case .endUncertain(let name):
            "The provider refused the refresh tokens of \(name), but another host may have received a newer one. "
                + "It is asked again later. If no other host is left, sign in again."
        case .notRefreshable(let name, let advice):
            "The provider gave \(name) no refresh token. Sign in again when the session ends."
                + SessionReason.suffix(advice)
        case .notDownscopable(let name, let advice):
            "The provider gave \(name) no refresh token, so a downscoped token cannot be requested."
                + SessionReason.suffix(advice)
        case .endsWithToken(let name, let advice):
            "The provider gave \(name) no refresh token: the session ends with its access token. "
                + (advice?.sentence ?? "When it ends, sign in again.")
        case .lostScopes(let name, let scopes):
            "The session of \(name) lost scopes when a token with fewer scopes was requested: "
                + "\(scopes.joined(separator: " ")). Sign in again to get them back. Ringback does not "
                + "request such tokens of this provider any more."
        case .losesScopes(let name):
            "The provider of \(name) takes scopes away from the session when a token with fewer scopes is requested. "
                + "Ringback does not request one again: use a token without a scope."
        case .mayLoseScopes(let name, let exchange):
            "It is not known whether the session of \(name) keeps its scopes at the provider when a token with fewer "
                + "scopes is requested. A restricted socket does not risk them. "
                + (exchange.map { "The provider refused to exchange a token instead (\($0)). " } ?? "")
                + "Request a token with fewer scopes once without the restricted socket: its result is remembered."
        }
    }

    private static func suffix(_ advice: Reason?) -> String { advice.map { " \($0.sentence)" } ?? "" }
}

extension FlowReason: Sentence {
    var sentence: String {
        switch self {
        case .tooManyPending(let most): "\(most) sign-ins are pending already. Finish or cancel one of them."
        case .anotherPending(let name, let method, let age):
            "Another sign-in of \(name) is pending: method \(method), \(age) \(age == 1 ? "second" : "seconds") old."
        case .configurationChanged(let name): "The configuration of \(name) changed during the sign-in."
        case .noProofAwaited(let kind): "This sign-in waits for no \(kind == .credential ? "passkey" : "code")."
        case .otherResponseAwaited: "This sign-in waits for another kind of response."
        case .otherAddress: "It arrived at another address than the one this sign-in asked for."
        case .anotherCallback: "Another callback of this sign-in is being worked on."
        case .notURL: "It is not a URL."
        case .malformedCallback: "The callback is not a well-formed authorization response."
        case .repeatedParameter(let name): "The callback has the parameter \(name) more than once."
        case .codeAndError: "The callback has both a code and an error."
        case .neitherCodeNorError: "The callback has neither a code nor an error."
        case .carriesTokens:
            "The callback carries tokens (implicit flow), which is not accepted, because they were exposed. "
                + "Configure the provider for the authorization code flow with PKCE."
        case .withoutState: "The callback has no state, so it belongs to no sign-in."
        case .inFragment:
            "The response is in the URL's fragment. Configure the provider to send it in the query (response_mode=query)."
        case .posted: "The response came by POST. That is accepted only with response_mode = \"form_post\"."
        case .notNavigated: "The response did not come by a page load of the browser."
        case .unknownState: "No pending sign-in has this state. It may have been finished or cancelled."
        }
    }
}
