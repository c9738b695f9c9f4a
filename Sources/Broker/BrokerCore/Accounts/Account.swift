public import RingbackBase

/// The name of an account: `[a-z0-9][a-z0-9._-]{0,63}`.
public struct AccountName: Hashable, Sendable, Comparable, CustomStringConvertible {
    public let rawValue: String

    public init?(_ text: String) {
        guard text.isAccountName else { return nil }
        rawValue = text
    }

    public var description: String { rawValue }
    public static func < (left: AccountName, right: AccountName) -> Bool { left.rawValue < right.rawValue }
}

/// The provider and the client that a session belongs to. Its tokens are never sent to another provider or used with
/// another client.
public struct SessionBinding: Hashable, Sendable {
    /// The issuer. Where the endpoints are configured by hand: the token endpoint's origin, preceded by the issuer if
    /// one is configured.
    public let provider: String
    public let clientID: String

    public init(provider: String, clientID: String) {
        self.provider = provider
        self.clientID = clientID
    }

    init?(parsing text: String) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), let length = Int(text[..<colon]) else {
            return nil
        }
        let rest = text.utf8[text.utf8.index(after: colon)...]
        guard length >= 0, length <= rest.count else { return nil }
        provider = String(decoding: rest.prefix(length), as: UTF8.self)
        clientID = String(decoding: rest.dropFirst(length), as: UTF8.self)
    }

    /// It begins with the length of `provider`, so that different bindings never have the same text.
    public var text: String { "\(provider.utf8.count):\(provider)\(clientID)" }
}

/// An account as it is configured now. A flow keeps the account as it was when the flow began.
public struct Account: Sendable {
    public var name: AccountName
    /// `oidc`, `oauth2`, `supabase` or a preset's name.
    public var provider: String
    /// Where it is configured, for messages.
    public var source: String
    public var kind: any AccountKind
    public var clientID: String
    public var scopes: [String]
    /// As configured; nil for the default, a free port on 127.0.0.1 and `/callback/ACCOUNT`.
    public var redirectURI: String?
    public var authorizationParameters: [(String, String)] = []
    public var flowTimeout: Duration = .seconds(600)
    public var trust = ServerTrust.system
    /// Added to every request to the provider.
    public var headers: [(String, String)] = []
    /// How long before its expiry a token is refreshed; nil for the usual margin.
    public var refreshMargin: Duration?
    /// How long before the end of the session `session_ending` is posted.
    public var sessionWarnings = Account.usualWarnings
    /// Directly or through which proxy the provider is reached.
    public var route = HTTPRoute.standard
    /// The path of the certificates in ``trust``; nil for the system's.
    public var certificateFile: String?
    /// Where the provider sends the browser after a sign-out there.
    public var postLogoutRedirectURI: String?
    /// How the sign-in page is opened.
    public var page = PageSettings()
    /// True for the one account that commands use if they name none.
    public var isDefault = false

    public static let usualWarnings: [Duration] = [.seconds(600), .seconds(60)]

    public init(
        name: AccountName, provider: String, source: String, kind: any AccountKind, clientID: String,
        scopes: [String] = [], redirectURI: String? = nil
    ) {
        self.name = name
        self.provider = provider
        self.source = source
        self.kind = kind
        self.clientID = clientID
        self.scopes = scopes
        self.redirectURI = redirectURI
    }

    /// Sends a request that uses up no refresh token, see ``send(_:under:isStrange:isPublic:over:)``.
    public func send(
        _ request: HTTPRequest, isStrange: Bool = false, isPublic: Bool = false, over http: any HTTPClient
    ) async throws(BrokerError) -> HTTPResponse {
        try await send(request, under: nil, isStrange: isStrange, isPublic: isPublic, over: http)
    }

    /// Sends a request as this account: with its trusted certificates, its route and its headers.
    ///
    /// - Parameters:
    ///   - attempt: what a request needs that may use up a refresh token; nil for any other request.
    ///   - isStrange: the host is not from the configuration, but from a document of the provider. It must not resolve
    ///     to this machine or to a link-local address.
    ///   - isPublic: the host must not resolve to an address of a private network either.
    public func send(
        _ request: HTTPRequest, under attempt: RefreshAttempt?, isStrange: Bool, isPublic: Bool,
        over http: any HTTPClient
    ) async throws(BrokerError) -> HTTPResponse {
        var request = request
        request.trust = trust
        request.route = route
        request.refusesInsideAddresses = isStrange
        request.refusesPrivateAddresses = isPublic
        for (name, value) in headers { request.fields.set(name, value) }
        // Nothing may be awaited between this and the request.
        try await attempt?.admit(&request)
        do {
            return try await http.send(request)
        } catch {
            throw BrokerError(error)
        }
    }
}
