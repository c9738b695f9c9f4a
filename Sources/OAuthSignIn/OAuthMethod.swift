public import BrokerCore

/// How users sign in at providers of OAuth and OpenID Connect.
public enum OAuthMethod: String, Sendable, CaseIterable {
    case browser
    /// With a code that is entered on another device (RFC 8628). Not every provider offers it.
    case device
    /// Another program's session is handed in.
    case session

    /// Nil if these providers have no such method.
    public init?(_ method: SignInMethod) { self.init(rawValue: method.rawValue) }

    public var method: SignInMethod { SignInMethod(rawValue: rawValue) }
}
