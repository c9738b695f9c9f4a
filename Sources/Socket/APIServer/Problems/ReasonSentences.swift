public import BrokerCore
internal import Glibc
internal import RingbackBase
internal import SessionVault

/// The sentences of the broker's reasons, for the user.
extension Reason {
    public var sentence: String {
        switch self {
        case .stated(let sentence): sentence
        case .session(let reason): reason.sentence
        case .host(let host, let reason): "\(host) \(reason.sentence)."
        case .portUnusable(let failure):
            "The callback cannot arrive: \(failure?.clause ?? "the listener cannot be opened")."
        case .kind(let fact): fact.reason.sentence
        case .both(let first, let second): "\(first.sentence) \(second.sentence)"
        case .vault(let error): error.sentence
        }
    }

    /// The same as the end of a sentence, with its full stop. The sentences of a further reason follow it.
    var asSentenceEnd: String {
        if case .both(let first, let second) = self { "\(first.sentence). \(second.sentence)" } else { "\(sentence)." }
    }
}

extension ListenerFailure {
    /// Why there is no listener, as a part of a sentence.
    var clause: String {
        switch cause {
        case .portTaken(let holder):
            let who = holder.map { $0 == getuid() ? " by a program of yours" : " by uid \($0)" } ?? ""
            return port.map { "port \($0) is in use\(who)" } ?? "no port is free"
        case .system(let call, EACCES): return "the port may not be used by this user (\(call)); configure another one"
        case .system(let call, let code): return "\(unsafe String(cString: strerror(code))) (\(call))"
        case .unsuitable(let reason):
            let sentence = reason.sentence
            return sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        }
    }

    var members: JSONObject { ["host": host, "port": port, "setting": setting] }
}

/// How a user is named who has neither an address nor a subject.
let unnamedUser = "an unnamed user"

extension SessionReason {
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
