/// What a check found.
public enum FindingReason: Sendable, Equatable {
    // MARK: The way to providers

    /// Requests of the account use no proxy.
    case direct
    /// Requests go through the proxy at `url`, except to `exceptions`. `isOfAll`: the requests of every account without
    /// a setting of its own; otherwise those of one account.
    case proxied(url: String, exceptions: [String], isOfAll: Bool)
    case certificateTrusted(host: String)
    /// The host is this machine.
    case notEncrypted(host: String)
    /// `cause` ends a sentence.
    case noTrustedConnection(host: String, cause: String)
    /// The server speaks TLS and the URL is an http URL, or the other way round.
    case wrongScheme(host: String, speaksTLS: Bool)
    /// `cause` ends a sentence.
    case unreachable(host: String, cause: String)
    case noResponse(host: String, seconds: Int)
    case badResponse(host: String)
    /// The daemon is shutting down.
    case notChecked

    // MARK: Providers

    /// What the host does or is: the rest of a sentence.
    case host(String, Reason)
    case respondsWithStatus(Int)
    case noTime(host: String)
    case clocksAgree(host: String)
    /// This machine's clock is `seconds` ahead or behind. ID tokens are refused from `leeway` seconds on.
    case clockDiffers(host: String, seconds: Int, isAhead: Bool, leeway: Int)

    // MARK: Where callbacks arrive

    case callbackAtFreePort
    case callbackIsPasted
    case callbackAsLink(scheme: String)
    /// Any other app may claim the scheme.
    case callbackAtOpenScheme(String)
    /// A sign-in has the port open now.
    case callbackAwaited
    case portFree
    /// `cause` ends a sentence; nil if it is not known.
    case portUnusable(ListenerFailure?)
}
