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
        case .otherSubject(let name, let expected): "\(name) is signed in as another user than \(expected)."
        case .endpointMoved(let name, let origin):
            "The token endpoint of \(name) is no longer at \(origin). "
                + "Its session was not sent to the new one. Sign in again."
        case .notLoaded(let name): "What the vault holds for \(name) is not loaded. Sign in again."
        case .unreadable(let name): "What the vault holds for \(name) cannot be read. Sign in again."
        case .newer(let name):
            "The session of \(name) was sealed by a newer version of Ringback. It was not touched."
        case .shared(let name):
            "The session of \(name) is one that hosts share, and [vault] names no store any more. It was not touched."
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
        case .expiredToken: "The provider gave a token that has expired already."
        case .vaultLocked: "The vault is locked."
        case .vaultInMemory:
            "The sessions are in memory only and would be lost by locking. Sign out, or choose a key_source."
        }
    }

    private static func suffix(_ advice: Reason?) -> String { advice.map { " \($0.sentence)" } ?? "" }
}

extension AccountReason: Sentence {
    var sentence: String {
        switch self {
        case .issuerShared(let names):
            "Several accounts have this issuer: \(names.map(\.rawValue).joined(separator: ", ")). Name one."
        case .noUnconfiguredSession(let name):
            "The vault has no session of \(name) without a configured account."
        case .configuredAgain(let name): "\(name) is configured again; its session was not removed."
        }
    }
}

extension ProviderReason: Sentence {
    var sentence: String {
        switch self {
        case .tooLarge(let host): "The response of \(host) is too large."
        case .notHTTP(let host): "The response of \(host) is not valid HTTP."
        case .endpointNotAllowed: "An endpoint is neither https nor http on a loopback address."
        case .endpointNotURL: "An endpoint of the provider is not a URL."
        case .noResponseInTime: "no response within the time allowed"
        case .noConnection(let cause): cause
        }
    }
}

extension FlowReason: Sentence {
    var sentence: String {
        switch self {
        case .tooManyPending(let most): "\(most) sign-ins are pending already. Finish or cancel one of them."
        case .anotherPending(let name, let method, let age):
            "Another sign-in of \(name) is pending: method \(method), \(age) \(age == 1 ? "second" : "seconds") old."
        case .schemeTaken(let scheme):
            "A sign-in by the scheme \(scheme) is pending, and without keys (redirect_flow_key = \"none\") there "
                + "can be one at a time. Finish or cancel it."
        case .doneAtOnce(let name, let method): "A sign-in of \(name) by \(method) is done at once."
        case .noPageListener: "There is no listener for a page here."
        case .cancelled(let name): "The sign-in of \(name) was cancelled."
        case .cancelledBeforeEnd(let name): "The sign-in of \(name) was cancelled before it was complete."
        case .replaced(let name): "Another sign-in of \(name) took its place."
        case .configurationChangedAtStart(let name):
            "The configuration of \(name) changed while its sign-in began. Start it again."
        case .configurationChanged(let name): "The configuration of \(name) changed during the sign-in."
        case .noProofAwaited(let kind): "This sign-in waits for no \(kind == .credential ? "passkey" : "code")."
        case .otherResponseAwaited: "This sign-in waits for another kind of response."
        case .otherAddress: "It arrived at another address than the one this sign-in asked for."
        case .anotherProof: "Another response to this sign-in is being processed."
        case .anotherCallback: "Another callback of this sign-in is being worked on."
        case .callerDisconnected: "The caller disconnected."
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

extension RequestReason: Sentence {
    var sentence: String {
        switch self {
        case .unknownMethod(let name, let method, let offered):
            "\(name) has no sign-in method “\(method)”. It has: \(offered.joined(separator: ", "))."
        case .parameterReserved: "Ringback sets this parameter itself."
        case .parameterTaken: "it has no name, or the account's configuration sets it."
        case .callbackElsewhere(let name):
            "the callback of \(name) does not come to a port of this machine (redirect_uri)"
        case .portFixed(let name, let port): "the configuration of \(name) fixes the port \(port) (redirect_uri)"
        case .scopes(let most):
            "it is at most \(most) scopes with spaces between them: printable ASCII, no quotes or backslashes"
        case .textWithoutControls: "it is a text without control characters"
        case .absoluteURI: "it is an absolute URI without a fragment (RFC 8707)"
        case .socketName: "it begins with a-z or 0-9 and goes on with up to 63 of a-z, 0-9, “.”, “_” and “-”"
        case .noAccounts: "name the accounts to show, one at least"
        case .tooMany(let most): "more than \(most)"
        case .ceiling(let most): "it is 1 to \(most) scopes with spaces between them; leave it out for no ceiling"
        case .overflowUID: "65534 is the uid of all users that this system does not know"
        case .flatpakID: "it is an app's id, such as org.example.App"
        case .uidsWithFlatpak: "a Flatpak app runs as you: leave it out"
        case .mcpOfSeveral: "mcp is for one account"
        case .scopesWithMCP: "it cannot be combined with mcp: no token is served"
        case .mcpName(let most): "the names of tools and methods have 1 to \(most) bytes, without control characters"
        case .lifetime(let most): "it is 1 to \(most) seconds (a year)"
        case .originsChanged: "The table of origins has changed during the request. Ask again."
        }
    }
}
