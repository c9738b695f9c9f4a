public import RingbackBase

/// A client as the provider registered it (RFC 7591 section 3.2.1), which may differ from the request.
public struct RegisteredClient: Sendable, Equatable {
    public let clientID: String
    public let authentication: ClientAuthentication
    /// Nil for a public client.
    public let secret: Secret?
    /// Unix seconds; nil if the secret does not expire.
    public let secretExpiresAt: Int?
    /// Nil if the response does not contain them.
    public let redirectURIs: [String]?
}

/// A registration response. The first step finds the registration access token, which cannot be obtained again: it must
/// be stored or used before anything else in the response can fail. The second step checks the rest.
public struct RegistrationResponse: Sendable {
    /// Nil if the provider gave no registration access token.
    public let management: RegistrationManagement?
    private let outcome: Result<JSONObject, OAuthError>
    /// In bytes.
    private static let longestClientID = 1_024
    private static let longestSecret = 8_192

    /// The first step. A URL in the response must not name another IP address than that of `issuer`. Throws:
    /// - `.refused`: an error response (section 3.2.2: `invalid_redirect_uri`, `invalid_client_metadata`); status 401
    ///   or 403 without an error code gives `invalid_token` or `access_denied`.
    /// - `.unavailable`: status 408, 425, 429 or 5xx.
    /// - `.invalid`: not a response of a registration endpoint.
    public init(reading response: HTTPResponse, issuer: String) throws(OAuthError) {
        let isSuccess = (200..<300).contains(response.status)
        let object: JSONObject
        do throws(OAuthError) {
            try ResponseReader.checkStatus(response, of: .registration)
            object = try ResponseReader.object(in: response, of: .registration)
        } catch {
            if !isSuccess { throw RegistrationResponse.meaning(of: error, response) }
            guard let salvaged = RegistrationManagement(salvagedFrom: response.body, issuer: issuer) else {
                throw error
            }
            management = salvaged
            outcome = .failure(error)
            return
        }
        guard isSuccess else {
            let errorResponse = try ResponseReader.errorResponse(in: object, status: response.status, of: .registration)
            if let errorResponse { throw .refused(errorResponse) }
            let error = OAuthError.invalid(.registration, reason: "HTTP \(response.status) without an OAuth error")
            throw RegistrationResponse.meaning(of: error, response)
        }
        management = RegistrationManagement(
            token: object["registration_access_token"]?.string, uri: object["registration_client_uri"]?.string,
            issuer: issuer)
        outcome = .success(object)
    }

    /// The codes are those of RFC 6750 section 3.1. Many servers send only the status.
    private static func meaning(of error: OAuthError, _ response: HTTPResponse) -> OAuthError {
        let codes = [401: "invalid_token", 403: "access_denied"]
        guard case .invalid = error, let code = codes[response.status] else { return error }
        return .refused(.init(code: code, message: nil, status: response.status))
    }

    /// Identifies a registration that cannot be used, too; nil if it cannot be read.
    public var clientID: String? {
        guard case .success(let object) = outcome else { return nil }
        return TokenText.secret(
            object["client_id"]?.string, allowsSpace: true, limit: RegistrationResponse.longestClientID)?.revealed()
    }

    /// The second step. Throws `.invalid` for no `client_id`, a member of the wrong type, a secret that is missing or
    /// has characters that are not allowed in a header, or an authentication method that we do not support.
    public func client(asked request: ClientRegistrationRequest) throws(OAuthError) -> RegisteredClient {
        try client(usual: request.authentication)
    }

    /// The client of a registration that was read or updated (RFC 7592 section 3). Throws as ``client(asked:)``.
    public func client() throws(OAuthError) -> RegisteredClient { try client(usual: .none) }

    /// Requests the same registration again: the provider may then issue a new secret (RFC 7592 section 2.2). Nil
    /// without a usable response or an address for the request.
    public func update(with management: RegistrationManagement) -> HTTPRequest? {
        guard case .success(let object) = outcome, clientID != nil else { return nil }
        // Section 2.2: none of these may be sent. The secret may be left out.
        let kept = object.members.filter { member in
            ![
                "registration_access_token", "registration_client_uri", "client_secret_expires_at",
                "client_id_issued_at", "client_secret",
            ].contains(member.name)
        }
        return management.update(JSONObject(kept))
    }

    private func client(usual: ClientAuthentication) throws(OAuthError) -> RegisteredClient {
        let object = try outcome.get()
        guard let clientID else { throw .invalid(.registration, reason: "no client_id that can be used") }
        let secret = try RegistrationResponse.secret(in: object)
        let authentication = try RegistrationResponse.authentication(in: object, secret, usual)
        guard ClientRegistration(clientID: clientID, authentication: authentication, secret: secret).isComplete else {
            throw .invalid(.registration, reason: "\(authentication.rawValue) without a client_secret")
        }
        return RegisteredClient(
            clientID: clientID, authentication: authentication,
            // A public client's secret is not kept, because it has no use.
            secret: authentication == .none ? nil : secret,
            secretExpiresAt: RegistrationResponse.expiry(in: object),
            redirectURIs: try RegistrationResponse.redirectURIs(in: object))
    }

    private static func secret(in object: JSONObject) throws(OAuthError) -> Secret? {
        switch object["client_secret"] {
        case nil, .null?, .string("")?: return nil
        case .string(let text)?:
            guard let secret = TokenText.secret(text, allowsSpace: true, limit: longestSecret) else { fallthrough }
            return secret
        default: throw .invalid(.registration, reason: "a client_secret that cannot be used")
        }
    }

    /// The client authentication method (section 2). A missing one means `client_secret_basic`, but if the client asked
    /// to be public and got no secret, the provider has only omitted it.
    private static func authentication(
        in object: JSONObject, _ secret: Secret?, _ usual: ClientAuthentication
    ) throws(OAuthError) -> ClientAuthentication {
        switch object["token_endpoint_auth_method"] {
        case nil, .null?, .string("")?: return secret == nil ? usual : .clientSecretBasic
        case .string(let word)?:
            guard let way = ClientAuthentication(rawValue: word), way != .privateKeyJWT else {
                throw .invalid(.registration, reason: "an unsupported token_endpoint_auth_method")
            }
            return way
        default: throw .invalid(.registration, reason: "token_endpoint_auth_method is not text")
        }
    }

    /// Unix seconds; nil if the secret does not expire. Malformed values are ignored too: the registration is still
    /// usable, and an expired secret is reported when the provider rejects it.
    private static func expiry(in object: JSONObject) -> Int? {
        let seconds: Double? =
            switch object["client_secret_expires_at"] {
            case .integer(let seconds)?: Double(seconds)
            case .double(let seconds)?: seconds
            case .string(let text)?: text.utf8.count <= 16 ? Int(text).map(Double.init) : nil
            default: nil
            }
        guard let seconds, seconds >= 1, seconds <= 253_402_300_799 else { return nil }
        return Int(seconds)
    }

    private static func redirectURIs(in object: JSONObject) throws(OAuthError) -> [String]? {
        switch object["redirect_uris"] {
        case nil, .null?, .string("")?: return nil
        case .array(let elements)?:
            let texts = elements.compactMap(\.string)
            guard texts.count == elements.count else { fallthrough }
            return texts
        default: throw .invalid(.registration, reason: "redirect_uris is not a list of texts")
        }
    }
}
