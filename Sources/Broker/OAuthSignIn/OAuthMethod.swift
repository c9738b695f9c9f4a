public import BrokerCore

/// How users sign in at OAuth and OpenID Connect providers.
public enum OAuthMethod: String, Sendable, CaseIterable {
    case browser
    /// With a code that is entered on another device (RFC 8628). Not every provider offers it.
    case device
    /// With the refresh token of another program's session.
    case session

    /// Nil if these providers have no such method.
    public init?(_ method: SignInMethod) { self.init(rawValue: method.rawValue) }

    public var method: SignInMethod { SignInMethod(rawValue: rawValue) }
}
