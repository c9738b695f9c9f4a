public import RingbackBase

/// How an authorization response comes back (OAuth 2.0 Multiple Response Type Encoding Practices section 2.1, OAuth 2.0
/// Form Post Response Mode). The raw values are those of `response_mode`.
public enum ResponseMode: String, Sendable, CaseIterable {
    case query
    case formPost = "form_post"
}

/// An authorization request (RFC 6749 section 4.1.1, RFC 7636, OpenID Connect Core section 3.1.2.1). Additional
/// parameters cannot override those that protect the response.
public struct AuthorizationRequest: Sendable {
    /// Parameters that apps and configurations must not give.
    public static let reservedParameters: Set<String> = [
        "client_id", "client_secret", "redirect_uri", "redirect_to", "response_type", "response_mode", "state", "nonce",
        "scope", "scopes", "code_challenge", "code_challenge_method", "code_verifier", "request", "request_uri",
        "resource", "dpop_jkt",
    ]

    public let endpoint: String
    public let clientID: String
    public let redirectURI: String
    public let scopes: [String]
    public let state: Secret
    /// Sent only with the scope `openid`, because only an ID token can repeat it.
    public let nonce: Secret?
    public let codeChallenge: String
    /// Nil for the default, `query`.
    public let responseMode: ResponseMode?
    /// The resource that the token is for (RFC 8707).
    public let resource: String?
    /// Those of the account or the app, in order.
    public let additionalParameters: [(String, String)]
    /// Of the key to which the code is bound (RFC 9449 section 10); nil if it is bound to none.
    public var keyThumbprint: String?
    /// Their `max_age` in seconds, which the ID token must satisfy; nil if there is none.
    public let maxAge: Int?

    /// Throws `.misconfigured` if an additional parameter is reserved, repeated or has no name, or `max_age` is no
    /// number.
    public init(
        endpoint: String, clientID: String, redirectURI: String, scopes: [String], state: Secret, nonce: Secret?,
        codeChallenge: String, responseMode: ResponseMode? = nil, resource: String? = nil,
        additionalParameters: [(String, String)] = []
    ) throws(OAuthError) {
        var names = AuthorizationRequest.reservedParameters
        for (name, _) in additionalParameters {
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .misconfigured(reason: "an authorization parameter is reserved, repeated or without a name")
            }
        }
        maxAge = try additionalParameters.first { $0.0 == "max_age" }.map { _, text throws(OAuthError) in
            // The ID token is checked against it later, so it must be understood here.
            guard let seconds = Int(text), seconds >= 0 else {
                throw .misconfigured(reason: "max_age is not a number of seconds")
            }
            return seconds
        }
        self.endpoint = endpoint
        self.clientID = clientID
        self.redirectURI = redirectURI
        self.scopes = scopes
        self.state = state
        self.nonce = scopes.contains("openid") ? nonce : nil
        self.codeChallenge = codeChallenge
        self.responseMode = responseMode
        self.resource = resource
        self.additionalParameters = additionalParameters
    }

    /// The authorization URL. An existing query of the endpoint is kept (RFC 6749 section 3.1).
    public func url() -> String { WebURL.appending(parameters, to: endpoint) }

    var parameters: [(String, String)] {
        var parameters = [("response_type", "code"), ("client_id", clientID), ("redirect_uri", redirectURI)]
        if !scopes.isEmpty { parameters.append(("scope", scopes.joined(separator: " "))) }
        parameters.append(("state", state.revealed()))
        if let nonce { parameters.append(("nonce", nonce.revealed())) }
        parameters += [("code_challenge", codeChallenge), ("code_challenge_method", "S256")]
        if let responseMode { parameters.append(("response_mode", responseMode.rawValue)) }
        if let resource { parameters.append(("resource", resource)) }
        if let keyThumbprint { parameters.append(("dpop_jkt", keyThumbprint)) }
        parameters += additionalParameters
        return parameters
    }
}

/// A pushed authorization request (RFC 9126): its parameters are sent directly, and the browser gets a reference to
/// them.
public struct PushedAuthorization: Sendable, Equatable {
    /// The reference, which can be used once.
    public let requestURI: String
    /// The reference's lifetime in seconds.
    public let expiresIn: Int
    /// The lifetime that is assumed if the response states none.
    private static let usualLife = 60

    /// A POST of the authorization request's parameters with client authentication.
    public static func request(
        _ authorization: AuthorizationRequest, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        .form(
            authorization.parameters.filter { $0.0 != "client_id" }.map { ($0.0, $0.1) }, to: endpoint,
            by: registration, namesClient: true)
    }

    /// True if the response rejects the client itself, so that a request through the browser would fail too. One known
    /// server does so with status 403 and an empty body. Status 401 only says that this endpoint does not accept the
    /// client's authentication: some servers have it for other clients alone.
    public static func rejectsClient(in response: HTTPResponse) -> Bool {
        guard response.status != 401 else { return false }
        return OAuthError.rejectsClient(in: response, codes: ["invalid_client", "unauthorized_client"])
            || (response.status == 403 && response.body.isEmpty)
    }

    /// Reads the response (section 2.2): 201 with `request_uri` and `expires_in`; some servers send status 200. Throws
    /// `.refused`, `.unavailable` or `.invalid`.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        let object = try ResponseReader.success(in: response, of: .pushedAuthorization)
        guard [200, 201].contains(response.status) else {
            throw .invalid(.pushedAuthorization, reason: "HTTP \(response.status) in place of 201")
        }
        guard let uri = object["request_uri"]?.string, !uri.isEmpty, uri.utf8.count <= 2_048,
            uri.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .invalid(.pushedAuthorization, reason: "no request_uri") }
        requestURI = uri
        let stated = LenientNumber.seconds(object["expires_in"]) ?? 0
        expiresIn = stated > 0 ? stated : PushedAuthorization.usualLife
    }
}

extension AuthorizationRequest {
    /// The authorization URL for a pushed request (section 4), with `response_type`, which some servers require. FAPI 2.0
    /// forbids it (section 5.3.3.2); its servers demand that every request is pushed, and bind tokens to a key.
    public func url(of pushed: PushedAuthorization, isPushRequired: Bool) -> String {
        let type = isPushRequired && keyThumbprint != nil ? [] : [("response_type", "code")]
        return WebURL.appending(type + [("client_id", clientID), ("request_uri", pushed.requestURI)], to: endpoint)
    }
}

/// Whether authorization requests are pushed (RFC 9126), with the values of the configuration.
public enum PushedRequests: String, Sendable, Equatable, CaseIterable {
    /// If the provider's metadata offer it. If pushing fails and the provider does not require it, the request is sent
    /// through the browser.
    case automatic = "auto"
    case never
    /// Always: if pushing fails, the sign-in fails.
    case required
}
