internal import LocalHTTP
internal import RingbackBase

/// Clients that register themselves (RFC 7591, OpenID Connect Dynamic Client Registration) and manage their
/// registration (RFC 7592: read, update and delete). Native apps only. What is requested and not offered is refused.
struct Registrations {
    fileprivate struct Registration {
        /// The registration access token.
        var token: String
        /// The response to the registration, or to its last update.
        var document: JSONObject
    }

    private static let maxRegistrations = 1_000

    /// By the client's id.
    private var registrations: [String: Registration] = [:]

    mutating func register(
        _ request: SandboxRequest, _ clients: inout Clients, _ issuer: inout Issuer, at now: Int
    ) throws(OAuthError) -> ServerResponse {
        let settings = issuer.settings
        switch settings.registration {
        case .off: throw OAuthError.notOffered
        case .open: break
        case .token:
            guard request.bearer == settings.initialAccessToken else {
                throw OAuthError(
                    "invalid_token", "an initial access token is needed", status: 401, challenge: "Bearer")
            }
        }
        guard registrations.count < Registrations.maxRegistrations else {
            throw OAuthError("server_error", "too many clients", status: 503)
        }
        guard let asked = (try? JSON(parsing: request.body))?.object else {
            throw OAuthError("invalid_client_metadata", "the body is not a JSON object")
        }
        let redirectURIs = try Registrations.redirectURIs(asked)
        try Registrations.checkGrants(asked)
        let stated = try Registrations.authentication(asked)
        let way = settings.registeredAuthentication ?? stated
        let id = Issuer.newToken("client")
        let secret = way == .none ? nil : Issuer.newToken("secret")
        clients.add(
            SandboxClient(
                id: id, secret: secret.map { Secret($0) }, redirectURIs: redirectURIs, loopback: .anyPort,
                authentications: [way]))
        var document = JSONObject([.init("client_id", .string(id)), .init("client_id_issued_at", .integer(now))])
        if let secret {
            document["client_secret"] = .string(secret)
            document["client_secret_expires_at"] = .integer(settings.registeredSecretLifetime.map { now + $0 } ?? 0)
        }
        let token = Issuer.newToken("reg")
        document["registration_access_token"] = .string(token)
        document["registration_client_uri"] = .string(
            issuer.url(.clientConfiguration) + "?" + FormEncoding.encode([("client_id", id)]))
        for member in asked.members where document[member.name] == nil { document[member.name] = member.value }
        document["token_endpoint_auth_method"] = .string(way.rawValue)
        registrations[id] = Registration(token: token, document: document)
        issuer.counters.registrations += 1
        return Responses.json(.object(document), status: 201)
    }

    /// RFC 7592 sections 2.1 to 2.3. A deleted client gets the same response as one that never existed.
    mutating func configure(
        _ request: SandboxRequest, _ clients: inout Clients, _ issuer: inout Issuer, at now: Int
    ) throws(OAuthError) -> ServerResponse {
        let failure = OAuthError("invalid_token", "the token is not this client's", status: 401, challenge: "Bearer")
        guard let id = Parameters(request.query)["client_id"], let registration = registrations[id],
            request.bearer == registration.token
        else { throw failure }
        switch request.method {
        case "DELETE": break
        case "PUT": return try update(id, registration, request, &clients, issuer.settings, at: now)
        default: return Responses.json(.object(registration.document))
        }
        registrations[id] = nil
        clients.remove(id)
        issuer.counters.endedSessions += issuer.ledger.endAll { $0.clientID == id }
        issuer.counters.registrationsDeleted += 1
        return Responses.text("", status: 204)
    }

    /// RFC 7592 section 2.2. A client that has a secret gets a new one, and what the registration is managed with is
    /// new as well.
    private mutating func update(
        _ id: String, _ registration: Registration, _ request: SandboxRequest, _ clients: inout Clients,
        _ settings: SandboxSettings, at now: Int
    ) throws(OAuthError) -> ServerResponse {
        let asked = try registration.update(id, in: request.body)
        let redirectURIs = try Registrations.redirectURIs(asked)
        try Registrations.checkGrants(asked)
        guard let known = clients[id] else {
            throw OAuthError("invalid_token", "the token is not this client's", status: 401, challenge: "Bearer")
        }
        let secret = known.secret == nil ? nil : Issuer.newToken("secret")
        clients.add(
            SandboxClient(
                id: id, secret: secret.map { Secret($0) }, redirectURIs: redirectURIs, loopback: .anyPort,
                authentications: known.authentications))
        var new = registration
        new.token = Issuer.newToken("reg")
        new.document["registration_access_token"] = .string(new.token)
        if let secret {
            new.document["client_secret"] = .string(secret)
            new.document["client_secret_expires_at"] = .integer(
                settings.registeredSecretLifetime.map { now + $0 } ?? 0)
        }
        for member in asked.members where member.name != "client_secret" { new.document[member.name] = member.value }
        registrations[id] = new
        return Responses.json(.object(new.document))
    }

    // MARK: What may be asked for

    /// OpenID Connect Dynamic Client Registration section 2: native clients have custom schemes, or http on loopback;
    /// RFC 8252 section 7.2 adds https.
    private static func redirectURIs(_ asked: JSONObject) throws(OAuthError) -> [String] {
        func refusal(_ reason: String) -> OAuthError { OAuthError("invalid_redirect_uri", reason) }
        guard let listed = asked["redirect_uris"]?.array, (1...10).contains(listed.count) else {
            throw refusal("redirect_uris is not a list of 1 to 10")
        }
        var uris: [String] = []
        for element in listed {
            guard let text = element.string, let url = try? WebURL(parsing: text), url.fragment == nil else {
                throw refusal("one is not a URI without a fragment")
            }
            if url.scheme == "http", !url.isLoopback { throw refusal("http is for loopback") }
            uris.append(text)
        }
        return uris
    }

    private static func checkGrants(_ asked: JSONObject) throws(OAuthError) {
        func texts(_ name: String, usually: [String]) throws(OAuthError) -> Set<String> {
            guard let value = asked[name] else { return Set(usually) }
            guard let array = value.array, array.allSatisfy({ $0.string != nil }) else {
                throw OAuthError("invalid_client_metadata", "\(name) is not a list of strings")
            }
            return Set(array.compactMap(\.string))
        }
        guard
            try texts("grant_types", usually: ["authorization_code"])
                .isSubset(of: ["authorization_code", "refresh_token"])
        else { throw OAuthError("invalid_client_metadata", "a grant type that is not offered") }
        guard try texts("response_types", usually: ["code"]) == ["code"] else {
            throw OAuthError("invalid_client_metadata", "only the response type code is offered")
        }
        guard asked["application_type"] == "native" else {
            throw OAuthError("invalid_client_metadata", "only native clients register themselves here")
        }
    }

    /// RFC 7591 section 2: the default is `client_secret_basic`.
    private static func authentication(_ asked: JSONObject) throws(OAuthError) -> SandboxClient.Authentication {
        guard let value = asked["token_endpoint_auth_method"] else { return .basic }
        guard let way = value.string.flatMap(SandboxClient.Authentication.init(rawValue:)), way != .privateKey else {
            throw OAuthError("invalid_client_metadata", "a token_endpoint_auth_method that is not offered")
        }
        return way
    }
}

extension Registrations.Registration {
    /// What an update asks for (RFC 7592 section 2.2).
    fileprivate func update(_ id: String, in body: [UInt8]) throws(OAuthError) -> JSONObject {
        guard let asked = (try? JSON(parsing: body))?.object, asked["client_id"]?.string == id else {
            throw OAuthError("invalid_request", "the body does not name this client")
        }
        let forbidden = [
            "registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at",
        ]
        if let name = forbidden.first(where: { asked[$0] != nil }) {
            throw OAuthError("invalid_request", "an update has no \(name)")
        }
        if let secret = asked["client_secret"], secret != document["client_secret"] {
            throw OAuthError("invalid_request", "a client does not choose its secret")
        }
        return asked
    }
}
