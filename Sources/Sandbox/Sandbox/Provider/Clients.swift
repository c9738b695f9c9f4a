internal import Cryptography
internal import RingbackBase

/// The clients that an issuer knows, and how they prove who they are (RFC 6749 sections 2.3 and 3.2.1).
struct Clients {
    private(set) var all: [SandboxClient]
    private var assertions = ClientAssertions()

    init(_ clients: [SandboxClient]) { all = clients }

    subscript(id: String) -> SandboxClient? {
        all.first { $0.id == id } ?? [AuthorizationServer.projectClient].first { $0.id == id }
    }

    /// A client with the id of another one replaces it.
    mutating func add(_ client: SandboxClient) {
        remove(client.id)
        all.append(client)
    }

    mutating func remove(_ id: String) { all.removeAll { $0.id == id } }

    /// The client, if it authenticated with the method, and only the method, that it is registered with.
    mutating func authenticate(
        _ request: SandboxRequest, _ parameters: Parameters, _ issuer: String, at now: Int
    ) throws -> SandboxClient {
        let lines = request.fields[all: "Authorization"]
        guard let header = lines.first else {
            guard let assertion = parameters["client_assertion"] else { return try authenticateByForm(parameters) }
            return try assertions.client(assertion, parameters, among: all, issuer, at: now)
        }
        try require(lines.count == 1, "invalid_request", "Authorization is repeated")
        let isOneWay = parameters["client_assertion"] == nil && parameters["client_secret"] == nil
        try require(isOneWay, "invalid_request", "the client authenticates in two ways")
        let failure = OAuthError(
            "invalid_client", "the client is not known by this secret", status: 401, challenge: "Basic")
        guard let (id, secret) = Clients.basicCredentials(header) else { throw failure }
        try require((parameters["client_id"] ?? id) == id, "invalid_request", "client_id is another client's")
        guard let client = self[id], client.authentications.contains(.basic), client.secret == Secret(secret) else {
            throw failure
        }
        return client
    }

    private func authenticateByForm(_ parameters: Parameters) throws -> SandboxClient {
        let failure = OAuthError("invalid_client", "the client is not known, or not by this secret", status: 401)
        guard let client = parameters["client_id"].flatMap({ self[$0] }) else { throw failure }
        let secret = parameters["client_secret"].map { Secret($0) }
        let isProven = secret == nil || client.secret == secret
        guard isProven, client.authentications.contains(secret == nil ? .none : .post) else { throw failure }
        return client
    }

    /// A service's client. With an assertion it need neither authenticate nor name itself (RFC 7521 section 4.1).
    mutating func authenticateService(
        _ request: SandboxRequest, _ parameters: Parameters, _ issuer: String, at now: Int
    ) throws -> SandboxClient {
        let isByAssertion = Issuer.assertionGrants.contains(parameters["grant_type"] ?? "")
        let isNamed =
            request.fields.contains("Authorization") || parameters["client_id"] != nil
            || parameters["client_assertion"] != nil
        if isByAssertion, !isNamed { return SandboxClient(id: "") }
        return try authenticate(request, parameters, issuer, at: now)
    }

    /// The client that issued an assertion as its own grant, and whom the assertion is about; nil if no client did.
    mutating func issuer(
        of assertion: String, for audiences: [String], at now: Int
    ) throws -> (client: SandboxClient, subject: String)? {
        try assertions.issuer(of: assertion, among: all, for: audiences, at: now)
    }

    /// Id and secret are encoded as in a form before they are joined (RFC 6749 section 2.3.1).
    private static func basicCredentials(_ header: String) -> (String, String)? {
        let words = header.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "basic", let bytes = Base64.decode(words[1]),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        guard let id = decode(bytes[..<colon]), let secret = decode(bytes[(colon + 1)...]) else { return nil }
        return (id, secret)
    }

    private static func decode(_ piece: ArraySlice<UInt8>) -> String? {
        let pairs = try? FormEncoding.parse(Array("v=".utf8) + piece)
        return pairs?.count == 1 ? pairs?.first?.value : nil
    }
}

/// The JWTs that clients signed, to authenticate (RFC 7523 section 3, OpenID Connect Core section 9) or as their own grants
/// (RFC 7521 section 3). The audience must be a single string, for authentication the issuer, and each JWT is accepted once.
struct ClientAssertions {
    private static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// The longest lifetime of such a JWT, and how far clocks may differ; in seconds.
    private static let maxLifetime = 300
    private static let clockLeeway = 30
    /// The client and the `jti` of each that was accepted, and when it expires.
    private var used: [String: Int] = [:]

    /// Uses a request's JWT up. Returns the client that signed it.
    mutating func client(
        _ text: String, _ parameters: Parameters, among clients: [SandboxClient], _ issuer: String, at now: Int
    ) throws -> SandboxClient {
        func refusal(_ reason: String) -> OAuthError { OAuthError("invalid_client", reason, status: 401) }
        func check(_ isMet: Bool, _ reason: String) throws { if !isMet { throw refusal(reason) } }
        let type = parameters["client_assertion_type"]
        try check(type == ClientAssertions.type, "client_assertion_type is not that of a JWT")
        try require(parameters["client_secret"] == nil, "invalid_request", "the client authenticates in two ways")
        guard let token = JSONWebToken(parsing: text) else { throw refusal("the assertion is not a JWT") }
        guard let id = token.claims["sub"]?.string, token.claims["iss"]?.string == id,
            let client = clients.first(where: { $0.id == id && $0.authentications.contains(.privateKey) })
        else { throw refusal("the assertion is not about a client that authenticates with one") }
        try check((parameters["client_id"] ?? id) == id, "client_id is another client's")
        if let reason = use(token, of: client, for: [issuer], at: now) { throw refusal(reason) }
        return client
    }

    /// Uses a grant up that a client issued itself. It may be about anybody.
    mutating func issuer(
        of text: String, among clients: [SandboxClient], for audiences: [String], at now: Int
    ) throws -> (client: SandboxClient, subject: String)? {
        guard let token = JSONWebToken(parsing: text), let id = token.claims["iss"]?.string,
            let client = clients.first(where: { $0.id == id && $0.authentications.contains(.privateKey) })
        else { return nil }
        let subject = token.claims["sub"]?.string ?? ""
        try require(!subject.isEmpty, "invalid_grant", "the assertion is about nobody")
        let refusal = use(token, of: client, for: audiences, at: now)
        try require(refusal == nil, "invalid_grant", refusal ?? "")
        return (client, subject)
    }

    /// The reason for a refusal; nil if the JWT is accepted.
    private mutating func use(
        _ token: JSONWebToken, of client: SandboxClient, for audiences: [String], at now: Int
    ) -> String? {
        let leeway = ClientAssertions.clockLeeway
        let audience = token.claims["aud"]?.string ?? ""
        guard audiences.contains(audience) else { return "the audience is not this server as a single string" }
        let end = token.claims["exp"]?.integer ?? 0
        let isCurrent = end > now - leeway && end <= now + ClientAssertions.maxLifetime
        guard isCurrent else { return "the assertion has expired, or is valid for too long" }
        let issued = token.claims["iat"]?.integer ?? now
        guard issued <= now + leeway else { return "the assertion is from the future" }
        let isSigned = client.keys.contains { token.isSigned(by: $0, token.algorithm) }
        guard isSigned else { return "the assertion's signature is not the client's" }
        // Only an assertion that the client has signed uses a `jti` up.
        let name = token.claims["jti"]?.string ?? ""
        guard !name.isEmpty else { return "the assertion has no jti" }
        used = used.filter { $0.value > now - leeway }
        let isNew = used.updateValue(end, forKey: "\(client.id) \(name)") == nil
        return isNew ? nil : "the assertion was used before"
    }
}

extension SandboxClient {
    /// The public keys in a key set (RFC 7517 section 5); nil if one cannot be read, or has its private part.
    static func keys(in set: JSON) -> [PublicKey]? {
        guard let entries = set["keys"]?.array else { return nil }
        let keys = entries.compactMap { $0["d"] == nil ? key(in: $0) : nil }
        return keys.count == entries.count ? keys : nil
    }

    static func key(in json: JSON) -> PublicKey? {
        func bytes(_ name: String) -> [UInt8] { json[name]?.string.flatMap { Base64URL.decode($0) } ?? [] }
        switch json["kty"]?.string {
        case "RSA": return try? PublicKey(rsaModulus: bytes("n"), exponent: bytes("e"))
        case "EC":
            guard let curve = json["crv"]?.string.flatMap(EllipticCurve.init(rawValue:)) else { return nil }
            return try? PublicKey(curve: curve, x: bytes("x"), y: bytes("y"))
        case "OKP": return try? PublicKey(ed25519: bytes("x"))
        default: return nil
        }
    }
}
