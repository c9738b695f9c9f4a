public import HTTPMessages
public import Secrets
internal import StrictJSON

/// A client as the provider has registered it (RFC 7591 section 3.2.1). What it says differently from what was asked
/// for is what holds (DCR-02).
public struct RegisteredClient: Sendable, Equatable {
    public let clientID: String
    public let authentication: ClientAuthentication
    /// Nil for a public client.
    public let secret: Secret?
    /// Unix seconds; nil for a secret that does not expire.
    public let secretExpiresAt: Int?
    /// What the provider says it registered; nil if it says nothing.
    public let redirectURIs: [String]?
}

/// A registration endpoint's answer, in two looks. The first finds what the registration is managed with, which exists
/// nowhere else: it must be kept, or used, before anything else in the answer can fail. The second checks the rest.
public struct RegistrationResponse: Sendable {
    /// Nil if the provider gave no token to manage the registration with.
    public let management: RegistrationManagement?
    private let outcome: Result<JSONObject, OAuthError>

    /// The longest `client_id` that is kept, in bytes: a session is bound to it.
    private static let longestClientID = 1_024
    /// Secrets of no use would be sent to the provider with every request.
    private static let longestSecret = 8_192

    /// The first look.
    ///
    /// - Parameter issuer: whose answer it is; no other address may be named in it (MD-05).
    /// - `.refused`: the provider's no (section 3.2.2: `invalid_redirect_uri`, `invalid_client_metadata`); a 401 or 403
    ///   without such a word is `invalid_token` or `access_denied`.
    /// - `.unavailable`: 408, 425, 429 or 5xx.
    /// - `.invalid`: no answer of a registration endpoint.
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
            let refusal = try ResponseReader.refusal(in: object, status: response.status, of: .registration)
            if let refusal { throw .refused(refusal) }
            let error = OAuthError.invalid(
                .registration, reason: "HTTP \(response.status) without an OAuth error")
            throw RegistrationResponse.meaning(of: error, response)
        }
        management = RegistrationManagement(
            token: object["registration_access_token"]?.string, uri: object["registration_client_uri"]?.string,
            issuer: issuer)
        outcome = .success(object)
    }

    /// RFC 6750 section 3.1 has the words; many servers send the status alone.
    private static func meaning(of error: OAuthError, _ response: HTTPResponse) -> OAuthError {
        guard case .invalid = error else { return error }
        switch response.status {
        case 401: return .refused(.init(code: "invalid_token", message: nil, status: 401))
        case 403: return .refused(.init(code: "access_denied", message: nil, status: 403))
        default: return error
        }
    }

    /// The `client_id`, if that much can be read: to name what remains of a registration that cannot be used.
    public var clientID: String? {
        guard case .success(let object) = outcome else { return nil }
        return TokenText.secret(
            object["client_id"]?.string, allowsSpace: true, limit: RegistrationResponse.longestClientID)?.revealed()
    }

    /// The second look: the client, or why it cannot be used.
    ///
    /// - `.invalid`: no `client_id`, a member of another type than the standard's, a secret that is missing or could
    ///   break out of a header, or a way to authenticate that we do not have.
    public func client(asked request: ClientRegistrationRequest) throws(OAuthError) -> RegisteredClient {
        try client(usual: request.authentication)
    }

    /// The client of a registration that was read or updated (RFC 7592 section 3); it throws as ``client(asked:)`` does.
    public func client() throws(OAuthError) -> RegisteredClient { try client(usual: .none) }

    /// Asks for the same registration again, whereupon a provider may issue another secret (RFC 7592 section 2.2). Nil
    /// without an answer that can be used, and where nobody knows where to send it.
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
            // What a public client has no use for is not kept.
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

    /// Section 2: nothing said means `client_secret_basic`; but a provider that gave no secret to a client that asked to
    /// be public only left it out.
    private static func authentication(
        in object: JSONObject, _ secret: Secret?, _ usual: ClientAuthentication
    ) throws(OAuthError) -> ClientAuthentication {
        switch object["token_endpoint_auth_method"] {
        case nil, .null?: return secret == nil ? usual : .clientSecretBasic
        case .string(let word)?:
            guard let way = ClientAuthentication(rawValue: word), way != .privateKeyJWT else {
                throw .invalid(.registration, reason: "a token_endpoint_auth_method that was not asked for")
            }
            return way
        default: throw .invalid(.registration, reason: "token_endpoint_auth_method is not text")
        }
    }

    /// Unix seconds; 0, or nothing, for a secret that does not expire. As cosmetic as a lifetime: what is no time at all
    /// costs nobody the registration, and a secret that has expired is told when it is refused.
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
        case nil, .null?: return nil
        case .array(let elements)?:
            let texts = elements.compactMap(\.string)
            guard texts.count == elements.count else { fallthrough }
            return texts
        default: throw .invalid(.registration, reason: "redirect_uris is not a list of texts")
        }
    }
}
