internal import HTTPMessages
public import Secrets

/// What a browser brings to the provider to end the person's session there (OpenID Connect RP-Initiated Logout 1.0,
/// section 2). It is a page to open, never a request of ours: the session there is the browser's.
///
/// Whatever is in this URL can be seen by others: it becomes a browser's argument, and history.
public struct EndSessionRequest: Sendable, Equatable {
    public let endpoint: String
    public let clientID: String
    /// Who is to be signed out, as the provider itself wrote it down; an expired one is as good.
    public let idTokenHint: Secret?
    /// Who is to be signed out, where there is no ID token to say so.
    public let logoutHint: String?
    /// Where the browser goes afterwards; the provider must know it.
    public let redirectURI: String?
    /// Nothing waits for it to come back (OIDF-41, OIDF-42): it is sent since the page behind the redirect URI, which is
    /// somebody else's, may want one.
    public let state: Secret

    /// Servers and proxies read request lines of 8 KiB.
    private static let longestURL = 7_500

    /// Of two hints the better one counts.
    public init(
        endpoint: String, clientID: String, idTokenHint: Secret? = nil, logoutHint: String? = nil,
        redirectURI: String? = nil, state: Secret
    ) {
        self.endpoint = endpoint
        self.clientID = clientID
        self.idTokenHint = idTokenHint
        self.logoutHint = idTokenHint == nil ? logoutHint : nil
        self.redirectURI = redirectURI
        self.state = state
    }

    /// The URL to open. An ID token that would make it too long for the provider's server is left out: without it the
    /// page asks.
    public func url() -> String {
        let whole = url(with: idTokenHint)
        return whole.utf8.count > EndSessionRequest.longestURL ? url(with: nil) : whole
    }

    /// True if the URL has the ID token in it.
    public var showsIDToken: Bool {
        idTokenHint != nil && url(with: idTokenHint).utf8.count <= EndSessionRequest.longestURL
    }

    private func url(with hint: Secret?) -> String {
        var parameters: [(String, String)] = []
        if let hint { parameters.append(("id_token_hint", hint.revealed())) }
        parameters.append(("client_id", clientID))
        if let logoutHint { parameters.append(("logout_hint", logoutHint)) }
        if let redirectURI { parameters.append(("post_logout_redirect_uri", redirectURI)) }
        parameters.append(("state", state.revealed()))
        return WebURL.appending(parameters, to: endpoint)
    }
}

extension WebURL {
    /// The endpoint with parameters. A query that it already has is kept as it is (RFC 6749 section 3.1).
    static func appending(_ parameters: [(String, String)], to endpoint: String) -> String {
        let hasQuery = endpoint.utf8.contains(UInt8(ascii: "?"))
        let separator = !hasQuery ? "?" : endpoint.hasSuffix("?") || endpoint.hasSuffix("&") ? "" : "&"
        return endpoint + separator + FormEncoding.encode(parameters)
    }
}
