public import RingbackBase

/// The metadata of a native app for dynamic client registration (RFC 7591 section 2, OpenID Connect Dynamic Client
/// Registration section 2).
public struct ClientRegistrationRequest: Sendable, Equatable {
    /// The name that the provider's pages show to users.
    public static let clientName = "Ringback"
    /// The URIs to register, without a port if any port of loopback is meant.
    public let redirectURIs: [String]
    public let scopes: [String]
    public let authentication: ClientAuthentication

    /// - Parameter redirectTemplate: an account's redirect URI, in which `{port}` or port 0 stands for a free port.
    /// - Throws: `.misconfigured` for a redirect URI that a native app must not use (RFC 8252 sections 7 and 8.3), or
    ///   an authentication method that cannot be registered.
    public init(redirectTemplate: String, scopes: [String], authentication: ClientAuthentication) throws(OAuthError) {
        guard let redirectURI = ClientRegistrationRequest.registered(redirectTemplate) else {
            throw .misconfigured(
                reason: "the redirect URI is neither http on 127.0.0.1, [::1] or localhost, nor https, nor an app's "
                    + "own scheme, or it has a fragment")
        }
        guard authentication != .privateKeyJWT else {
            throw .misconfigured(reason: "a client with private_key_jwt has to be registered manually")
        }
        redirectURIs = [redirectURI]
        self.scopes = scopes
        self.authentication = authentication
    }

    /// The registration request (RFC 7591 section 3.1). `initialAccessToken` is for providers that require one.
    public func request(to endpoint: String, initialAccessToken: Secret? = nil) -> HTTPRequest {
        var object = JSONObject([
            .init("client_name", .string(ClientRegistrationRequest.clientName)), .init("application_type", "native"),
            .init("redirect_uris", .array(redirectURIs.map { .string($0) })),
            .init("grant_types", ["authorization_code", "refresh_token"]), .init("response_types", ["code"]),
            .init("token_endpoint_auth_method", .string(authentication.rawValue)),
        ])
        if !scopes.isEmpty { object["scope"] = .string(scopes.joined(separator: " ")) }
        return HTTPRequest(
            method: "POST", url: endpoint,
            fields: HTTPFields([("Accept", "application/json"), ("Content-Type", "application/json")]),
            authorization: initialAccessToken.map(Secret.bearer),
            body: Secret(bytes: JSON.object(object).serialized()), limits: HTTPLimits(maxBody: HTTPRequest.maxResponse),
            // The request cannot be repeated, and an incomplete response may contain the registration access token.
            keepsPartialBody: true)
    }

    /// The redirect URI to register; nil if it is not allowed. Providers accept any port of a loopback redirect URI
    /// (RFC 8252 section 7.3), so a free port is registered without a port.
    private static func registered(_ template: String) -> String? {
        let halves = template.split(separator: ":{port}", maxSplits: 1, omittingEmptySubsequences: false)
        let isFree = halves.count == 2
        guard let url = try? WebURL(parsing: isFree ? "\(halves[0]):0\(halves[1])" : template), url.fragment == nil
        else { return nil }
        guard url.scheme == "http" else {
            // https or a custom scheme. The configuration checks the full list of reserved schemes.
            guard !isFree, !["javascript", "data", "file", "about", "blob", "vbscript"].contains(url.scheme) else {
                return nil
            }
            return template
        }
        guard let host = url.host, ["127.0.0.1", "::1", "localhost"].contains(host), url.query == nil,
            let port = url.port
        else { return nil }
        let authority = host == "::1" ? "[::1]" : host
        return "http://\(authority)\(port == 0 ? "" : ":\(port)")\(url.path)"
    }
}

extension ProviderMetadata {
    /// The authentication method to register with: a public client if possible, because a desktop app cannot keep a
    /// secret (RFC 8252 section 8.4); otherwise with a secret. Nil if the provider supports neither.
    public var registrableAuthentication: ClientAuthentication? {
        guard let offered = tokenEndpointAuthenticationMethods else { return ClientAuthentication.none }
        let ways: [ClientAuthentication] = [.none, .clientSecretBasic, .clientSecretPost]
        return ways.first { offered.contains($0.rawValue) }
    }
}

/// The access to a client registration (RFC 7592 section 3). Without the token only the provider's staff can remove it.
public struct RegistrationManagement: Sendable, Equatable {
    public let token: Secret
    /// The client configuration endpoint; nil if the provider gave no URL that the token may be sent to.
    public let uri: String?

    /// Stored values. The URI was checked before it was stored.
    public init(token: Secret, uri: String?) {
        self.token = token
        self.uri = uri
    }

    /// From a response on behalf of this issuer; nil without a token.
    init?(token text: String?, uri: String?, issuer: String) {
        guard let token = TokenText.secret(text) else { return nil }
        self.token = token
        self.uri = uri.flatMap { RegistrationManagement.checked($0, issuer: issuer) }
    }

    /// From a response that is not valid JSON, see ``MemberSalvage``.
    init?(salvagedFrom body: Secret, issuer: String) {
        let bytes = UnicodeText.utf8(body.revealedBytes())
        self.init(
            token: MemberSalvage.text(of: "registration_access_token", in: bytes),
            uri: MemberSalvage.text(of: "registration_client_uri", in: bytes), issuer: issuer)
    }

    private static func checked(_ text: String, issuer: String) -> String? {
        guard let url = EndpointRule.url(text), let issuer = try? WebURL(parsing: issuer),
            EndpointRule.allows(url, of: issuer)
        else { return nil }
        return text
    }

    /// The request that deletes the registration (section 2.3); nil if the URI is unknown.
    public func deletion() -> HTTPRequest? { request("DELETE") }

    /// The request that reads the registration (section 2.1), for ``RegistrationResponse``; nil if the URI is unknown.
    public func reading() -> HTTPRequest? { request("GET") }

    /// The request that replaces the registration's metadata (section 2.2); nil if the URI is unknown.
    func update(_ metadata: JSONObject) -> HTTPRequest? {
        guard var request = request("PUT") else { return nil }
        request.fields.set("Content-Type", "application/json")
        request.body = Secret(bytes: JSON.object(metadata).serialized())
        return request
    }

    private func request(_ method: String) -> HTTPRequest? {
        uri.map { uri in
            var request = HTTPRequest.document(at: uri, authorization: .bearer(token))
            request.method = method
            // The response may hold another token, which exists nowhere else.
            request.keepsPartialBody = method != "DELETE"
            return request
        }
    }

    /// Reads the response to ``deletion()``. Returns if the client is deleted or did not exist any more. Throws:
    /// - `.refused`: status 401 (also sent for a client that does not exist any more), 403 or 405 (section 2.3: it
    ///   cannot be deleted this way), or an OAuth error.
    /// - `.unavailable`: status 408, 425, 429 or 5xx.
    public static func checkDeletion(_ response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .registration)
        if (200..<300).contains(response.status) || [404, 410].contains(response.status) { return }
        if let object = try? ResponseReader.object(in: response, of: .registration),
            let errorResponse = try ResponseReader.errorResponse(in: object, status: response.status, of: .registration)
        {
            throw .refused(errorResponse)
        }
        let codes = [401: "invalid_token", 403: "access_denied", 405: "unsupported", 501: "unsupported"]
        guard let code = codes[response.status] else {
            throw .invalid(.registration, reason: "HTTP \(response.status) in place of 204")
        }
        throw .refused(.init(code: code, message: nil, status: response.status))
    }
}
