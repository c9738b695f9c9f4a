internal import LocalHTTP
internal import RingbackBase

/// Clients that register themselves (RFC 7591, OpenID Connect Dynamic Client Registration) and manage their
/// registration (RFC 7592: read, update and delete). Native apps only. What is requested and not offered is refused.
extension AuthorizationServer {
    private static let maxRegistrations = 1_000
    private static let wrongToken = OAuthError(
        "invalid_token", "the token is not this client's", status: 401, challenge: "Bearer")

    mutating func register(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        let settings = issuer.settings
        try requireOffer(settings.registration != .off)
        try require(
            settings.registration == .open || request.bearer == settings.initialAccessToken, "invalid_token",
            "an initial access token is needed", status: 401, challenge: "Bearer")
        try require(registrations.count < Self.maxRegistrations, "server_error", "too many clients", status: 503)
        let asked = try unwrap(
            (try? JSON(parsing: request.body))?.object, "invalid_client_metadata", "the body is not a JSON object")
        let redirectURIs = try Self.redirectURIs(asked)
        try Self.checkGrants(asked)
        let stated = try Self.authentication(asked)
        let way = settings.registeredAuthentication ?? stated
        let id = Issuer.newToken("client")
        let place = issuer.url(.clientConfiguration) + "?" + FormEncoding.encode([("client_id", id)])
        var document: JSONObject = ["client_id": id, "client_id_issued_at": now, "registration_client_uri": place]
        let token = clients.enter(id, redirectURIs, [way], hasSecret: way != .none, &document, settings, at: now)
        for member in asked.members where document[member.name] == nil { document[member.name] = member.value }
        document["token_endpoint_auth_method"] = .string(way.rawValue)
        registrations[id] = Registration(token: token, document: document)
        issuer.counters[.registrations] += 1
        return Responses.json(document, status: 201)
    }

    /// RFC 7592 sections 2.1 to 2.3. A deleted client gets the same response as one that never existed.
    mutating func configureClient(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        guard let id = Parameters(request.query)["client_id"], let registration = registrations[id],
            request.bearer == registration.token
        else { throw Self.wrongToken }
        if request.method == "PUT" { return try update(id, registration, request, at: now) }
        guard request.method == "DELETE" else { return Responses.json(registration.document) }
        registrations[id] = nil
        clients.remove(id)
        issuer.counters[.endedSessions] += issuer.ledger.endAll { $0.clientID == id }
        issuer.counters[.registrationsDeleted] += 1
        return Responses.text("", status: 204)
    }

    /// RFC 7592 section 2.2. The secret, if there is one, and the registration access token are new.
    private mutating func update(
        _ id: String, _ registration: Registration, _ request: SandboxRequest, at now: Int
    ) throws -> ServerResponse {
        let asked = try registration.update(id, in: request.body)
        let redirectURIs = try Self.redirectURIs(asked)
        try Self.checkGrants(asked)
        guard let known = clients[id] else { throw Self.wrongToken }
        var document = registration.document
        let token = clients.enter(
            id, redirectURIs, known.authentications, hasSecret: known.secret != nil, &document, issuer.settings, at: now
        )
        for member in asked.members where member.name != "client_secret" { document[member.name] = member.value }
        registrations[id] = Registration(token: token, document: document)
        return Responses.json(document)
    }

    /// OpenID Connect Dynamic Client Registration section 2: native clients have custom schemes, or http on loopback;
    /// RFC 8252 section 7.2 adds https.
    private static func redirectURIs(_ asked: JSONObject) throws -> [String] {
        let listed = asked["redirect_uris"]?.array ?? []
        try require((1...10).contains(listed.count), "invalid_redirect_uri", "redirect_uris is not a list of 1 to 10")
        return try listed.map { element in
            guard let text = element.string, let url = try? WebURL(parsing: text), url.fragment == nil else {
                throw OAuthError("invalid_redirect_uri", "one is not a URI without a fragment")
            }
            try require(url.scheme != "http" || url.isLoopback, "invalid_redirect_uri", "http is for loopback")
            return text
        }
    }

    private static func checkGrants(_ asked: JSONObject) throws {
        func check(_ isMet: Bool, _ text: String) throws { try require(isMet, "invalid_client_metadata", text) }
        func texts(_ name: String, usually: String) throws -> Set<String> {
            guard let value = asked[name] else { return [usually] }
            let texts = value.array?.map(\.string) ?? [nil]
            try check(!texts.contains(nil), "\(name) is not a list of strings")
            return Set(texts.compactMap(\.self))
        }
        let grants = try texts("grant_types", usually: "authorization_code")
        try check(grants.isSubset(of: ["authorization_code", "refresh_token"]), "a grant type that is not offered")
        let types = try texts("response_types", usually: "code")
        try check(types == ["code"], "only the response type code is offered")
        try check(asked["application_type"] == "native", "only native clients register themselves here")
    }

    /// RFC 7591 section 2: the default is `client_secret_basic`.
    private static func authentication(_ asked: JSONObject) throws -> SandboxClient.Authentication {
        guard let value = asked["token_endpoint_auth_method"] else { return .basic }
        guard let way = value.string.flatMap(SandboxClient.Authentication.init(rawValue:)), way != .privateKey else {
            throw OAuthError("invalid_client_metadata", "a token_endpoint_auth_method that is not offered")
        }
        return way
    }
}

extension Clients {
    /// Adds or replaces a client, with new secrets in its document. Returns its registration access token.
    fileprivate mutating func enter(
        _ id: String, _ redirectURIs: [String], _ authentications: [SandboxClient.Authentication], hasSecret: Bool,
        _ document: inout JSONObject, _ settings: SandboxSettings, at now: Int
    ) -> String {
        let token = Issuer.newToken("reg")
        document["registration_access_token"] = .string(token)
        var secret: Secret?
        if hasSecret {
            let text = Issuer.newToken("secret")
            secret = Secret(text)
            document["client_secret"] = .string(text)
            document["client_secret_expires_at"] = .integer(settings.registeredSecretLifetime.map { now + $0 } ?? 0)
        }
        add(
            SandboxClient(
                id: id, secret: secret, redirectURIs: redirectURIs, loopback: .anyPort,
                authentications: authentications))
        return token
    }
}

struct Registration {
    var token: String
    /// The response to the registration, or to its last update.
    var document: JSONObject

    fileprivate func update(_ id: String, in body: [UInt8]) throws -> JSONObject {
        let asked = (try? JSON(parsing: body))?.object ?? JSONObject()
        try require(asked["client_id"]?.string == id, "invalid_request", "the body does not name this client")
        let forbidden = [
            "registration_access_token", "registration_client_uri", "client_secret_expires_at", "client_id_issued_at",
        ]
        for name in forbidden { try require(asked[name] == nil, "invalid_request", "an update has no \(name)") }
        let secret = asked["client_secret"] ?? document["client_secret"]
        try require(secret == document["client_secret"], "invalid_request", "a client does not choose its secret")
        return asked
    }
}
