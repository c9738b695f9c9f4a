public import RingbackBase

/// Token requests: one function for each grant.
public enum TokenRequest {
    /// Redeems a code (RFC 6749 section 4.1.3). `redirectURI` and `resource` (RFC 8707 section 2.2) must be those of
    /// the authorization request, byte for byte.
    public static func authorizationCode(
        code: Secret, verifier: Secret, redirectURI: String, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        .form(
            [
                ("grant_type", "authorization_code"), ("code", code.revealed()), ("redirect_uri", redirectURI),
                ("code_verifier", verifier.revealed()), ("resource", resource),
            ], to: endpoint, by: registration)
    }

    /// RFC 6749 section 6. `scope` is only for downscoping: servers reject a refresh that repeats scopes such as
    /// `offline_access`.
    public static func refresh(
        token: Secret, scope: [String]? = nil, audience: String? = nil, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(
            [("grant_type", "refresh_token"), ("refresh_token", token.revealed())]
                + target(scope, audience, resource), to: endpoint, by: registration)
        // The provider may have rotated before the connection failed: the part that arrived may have the only valid
        // token.
        request.keepsPartialBody = true
        return request
    }

    /// The value of `grant_type` for a token exchange.
    public static let tokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

    /// Exchanges a token of one security domain for an access token of another (RFC 8693). The requested type is sent
    /// too, because without it some servers issue another type and others return an error.
    public static func tokenExchange(
        subjectToken: Secret, type: ExchangedTokenType, scope: [String]? = nil, audience: String? = nil,
        resource: String? = nil, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        .form(
            [
                ("grant_type", tokenExchangeGrant), ("subject_token", subjectToken.revealed()),
                ("subject_token_type", type.uri), ("requested_token_type", ExchangedTokenType.accessToken.uri),
            ] + target(scope, audience, resource), to: endpoint, by: registration)
    }

    /// Exchanges what proves a user's sign-in, an ID token or a refresh token, for an assertion that another authorization
    /// server takes (draft-ietf-oauth-identity-assertion-authz-grant section 4.3). `audience` is that server's issuer, byte
    /// for byte; `resource` is what the assertion is for.
    public static func identityAssertion(
        of subjectToken: Secret, type: ExchangedTokenType, scope: [String], audience: String?, resource: String?,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        .form(
            [
                ("grant_type", tokenExchangeGrant), ("subject_token", subjectToken.revealed()),
                ("subject_token_type", type.uri), ("requested_token_type", ExchangedTokenType.identityAssertion.uri),
            ] + target(scope, audience, resource), to: endpoint, by: registration)
    }

    /// The parameters for the token's use. Many servers use `audience` in place of `resource` (RFC 8707 section 2).
    fileprivate static func target(
        _ scope: [String]?, _ audience: String?, _ resource: String?
    ) -> [(String, String?)] {
        [("scope", scope.flatMap(ScopeList.text)), ("audience", audience), ("resource", resource)]
    }
}

/// Forms, as all token, revocation and similar endpoints take. The parameters are written directly into the body, which
/// is a secret.
extension HTTPRequest {
    /// The maximum size of a response in bytes: room for three tokens of the maximum length.
    static let maxResponse = 262_144

    /// A request for a JSON document.
    static func document(at url: String, authorization: Secret? = nil) -> HTTPRequest {
        HTTPRequest(
            url: url, fields: HTTPFields([("Accept", "application/json")]), authorization: authorization,
            limits: HTTPLimits(maxBody: maxResponse))
    }

    /// A form with the client's authentication. Parameters with nil are left out. `Accept` asks for JSON, because some
    /// servers respond with a form otherwise. With `namesClient`, `client_id` is sent even beside the field
    /// `Authorization`.
    static func form(
        _ parameters: [(String, String?)], to endpoint: String, by registration: ClientRegistration,
        namesClient: Bool = false
    ) -> HTTPRequest {
        var request = HTTPRequest(
            method: "POST", url: endpoint,
            fields: HTTPFields([
                ("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded"),
            ]), limits: HTTPLimits(maxBody: maxResponse))
        for case (let name, let value?) in parameters { request.appendParameter(name, value) }
        if namesClient, registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        registration.authenticate(&request)
        return request
    }

    mutating func appendParameter(_ name: String, _ value: String) {
        var form = body?.revealedBytes() ?? []
        if !form.isEmpty { form.append(UInt8(ascii: "&")) }
        form += FormEncoding.encode([(name, value)], spaceAsPlus: true).utf8
        body = Secret(bytes: form)
    }
}

/// How a service gets a token without a user. The raw values are those of the configuration.
public enum ServiceGrantType: String, Sendable, Equatable, CaseIterable {
    /// RFC 6749 section 4.4: the client acts for itself and must authenticate.
    case clientCredentials = "client_credentials"
    /// RFC 7523 section 2.1: an assertion of an issuer that the server trusts, such as a workload's token, is
    /// exchanged.
    case jwtBearer = "jwt_bearer"
    /// RFC 7523 section 2.1 with an assertion that the client issues itself (RFC 7521 section 3).
    case selfIssuedJWT = "self_issued_jwt"
    /// RFC 7522 section 2.1: the same with a SAML assertion.
    case samlBearer = "saml2_bearer"
    /// RFC 8693.
    case tokenExchange = "token_exchange"
    /// False if the client's own credentials suffice. Otherwise a token of another issuer is exchanged.
    public var needsAssertion: Bool { self != .clientCredentials && self != .selfIssuedJWT }

    /// Reads a file with the token to exchange. Throws `.misconfigured`.
    public func assertion(in content: Secret) throws(OAuthError) -> Assertion {
        self == .samlBearer ? try Assertion(samlIn: content) : try Assertion(parsing: content)
    }

    /// Nil if the assertion that the grant needs is missing. With an assertion, client authentication and even the
    /// client id are optional (RFC 7521 section 4.1); without them `registration` has an empty client id. `subjectType`
    /// is the assertion's type, for a token exchange.
    public func request(
        _ assertion: Assertion?, of subjectType: ExchangedTokenType, scope: [String]?, audience: String?,
        resource: String?, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest? {
        let grant: [(String, String?)]
        switch (self, assertion) {
        case (.clientCredentials, _): grant = [("grant_type", "client_credentials")]
        case (.jwtBearer, let assertion?), (.samlBearer, let assertion?), (.selfIssuedJWT, let assertion?):
            let type = self == .samlBearer ? "saml2-bearer" : "jwt-bearer"
            grant = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:\(type)"), ("assertion", assertion.text.revealed()),
            ]
        case (.tokenExchange, let assertion?):
            return TokenRequest.tokenExchange(
                subjectToken: assertion.text, type: subjectType, scope: scope, audience: audience, resource: resource,
                registration: registration, endpoint: endpoint)
        case (_, nil): return nil
        }
        // A self-issued assertion names the client and authenticates it.
        let client = self == .selfIssuedJWT ? ClientRegistration(clientID: "") : registration
        return .form(grant + TokenRequest.target(scope, audience, resource), to: endpoint, by: client)
    }
}

/// A token of another issuer that is sent unchanged. It is not parsed here.
public struct Assertion: Sendable, Equatable {
    /// At most 64 KiB of printable ASCII without spaces.
    public let text: Secret

    /// Reads a file's content without the white space around the token, as editors and shells leave it. Throws
    /// `.misconfigured` if it is empty, has several words or other characters, or is too long.
    public init(parsing content: Secret) throws(OAuthError) {
        let trimmed = try Assertion.trimmed(content.revealedBytes()[...])
        guard let text = TokenText.secret(String(decoding: trimmed, as: UTF8.self)) else {
            throw .misconfigured(reason: "holds no token: one word of printable ASCII, up to 64 KiB")
        }
        self.text = text
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) throws(OAuthError) -> [UInt8] {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        let trimmed = Array(bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        guard !trimmed.isEmpty else { throw .misconfigured(reason: "is empty") }
        return trimmed
    }

    /// The largest SAML assertion in bytes. Its base64url then has at most 64 KiB.
    static let largestSAML = 49_152

    /// Reads a file that holds one SAML assertion, an XML element in UTF-8, and encodes it as base64url without padding
    /// (RFC 7522 section 2.1). The XML is not parsed here: its signature covers each byte. Throws `.misconfigured` if
    /// the content is empty, is no XML element, or is too long.
    public init(samlIn content: Secret) throws(OAuthError) {
        var bytes = content.revealedBytes()[...]
        // A byte order mark has no meaning in UTF-8.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        let element = try Assertion.trimmed(bytes)
        guard element.first == UInt8(ascii: "<"), element.last == UInt8(ascii: ">"), !element.contains(0),
            String(validating: element, as: UTF8.self) != nil
        else { throw .misconfigured(reason: "holds no SAML assertion: an XML element in UTF-8") }
        guard element.count <= Assertion.largestSAML else {
            throw .misconfigured(reason: "holds more than 48 KiB, the most that a SAML assertion may have")
        }
        text = Secret(bytes: Base64URL.encodeToBytes(element))
    }
}

/// The type of a token (RFC 8693 section 3): a short name, or a URI that the server defines.
public struct ExchangedTokenType: Sendable, Equatable {
    public let uri: String
    private static let prefix = "urn:ietf:params:oauth:token-type:"
    public static let words = ["access_token", "id_token", "jwt", "refresh_token", "saml1", "saml2"]
    public static let accessToken = ExchangedTokenType(uri: prefix + "access_token")
    /// The usual type of a platform's workload token.
    public static let jwt = ExchangedTokenType(uri: prefix + "jwt")
    public static let idToken = ExchangedTokenType(uri: prefix + "id_token")
    public static let refreshToken = ExchangedTokenType(uri: prefix + "refresh_token")
    /// An assertion about a user for another authorization server (ID-JAG).
    static let identityAssertion = ExchangedTokenType(uri: prefix + "id-jag")

    private init(uri: String) { self.uri = uri }

    /// Reads a short name, or an absolute URI without spaces; nil for other text.
    public init?(parsing text: String) {
        if ExchangedTokenType.words.contains(text) {
            uri = ExchangedTokenType.prefix + text
        } else {
            guard let colon = text.firstIndex(of: ":"), colon > text.startIndex,
                text.index(after: colon) < text.endIndex,
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { return nil }
            uri = text
        }
    }

    /// Throws `.invalid` if the issued token is no access token (RFC 8693 section 2.2.1), which must not be sent as a
    /// bearer token. `jwt` is accepted, because access tokens may have that form. Without `issued_token_type` the check
    /// of `token_type` has to suffice.
    public static func check(issued tokens: TokenSet) throws(OAuthError) {
        if let issued = tokens.issuedTokenType, ![accessToken.uri, jwt.uri].contains(issued) {
            throw .invalid(.token, reason: "an issued_token_type other than that of an access token")
        }
    }
}
