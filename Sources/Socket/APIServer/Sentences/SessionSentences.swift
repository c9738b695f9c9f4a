internal import BrokerCore

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
