internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// Tokens for services (RFC 6749 section 4.4, RFC 7522 section 2.1, RFC 7523 section 2.1, RFC 8693). The issuer trusts
/// assertions that it made itself, `POST /sandbox/assertion` being the platform that gives its workloads a token,
/// assertions about users (ID-JAG) of the issuers in ``SandboxSettings/assertionIssuers``, and those that clients with a key
/// issued themselves (``ClientAssertions``).
extension Issuer {
    static let jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    static let tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
    /// The grants whose assertion proves enough: the client may stay unnamed.
    static let assertionGrants = [jwtBearer, samlBearer, tokenExchange]
    private static let tokenType = "urn:ietf:params:oauth:token-type:"

    mutating func clientCredentials(
        _ parameters: Parameters, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        try require(
            !client.authentications.contains(.none), "unauthorized_client",
            "the client does not prove itself, and gets no token of its own")
        return answer(parameters, client, subject: client.id, at: now)
    }

    mutating func tradeAssertion(
        _ parameters: Parameters, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        let assertion = try parameters.required("assertion")
        let isSAML = parameters["grant_type"] == Issuer.samlBearer
        let subject = try isSAML ? subject(ofSAML: assertion, at: now) : subject(of: assertion, by: client, at: now)
        return answer(parameters, client, subject: subject, at: now)
    }

    mutating func exchangeToken(
        _ parameters: Parameters, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        guard let token = parameters["subject_token"], let type = parameters["subject_token_type"] else {
            throw OAuthError(
                "invalid_request", "subject_token and subject_token_type belong together, and one is missing")
        }
        let accessToken = Issuer.tokenType + "access_token"
        if parameters["requested_token_type"] == Issuer.tokenType + "id-jag" {
            return try answer(parameters, client, assertingUserOf: family(of: token, type, client, at: now), at: now)
        }
        try require(
            (parameters["requested_token_type"] ?? accessToken) == accessToken, "invalid_request",
            "requested_token_type is not that of an access token")
        let subject: String
        var whole: [String]?
        switch type {
        case accessToken:
            let grant = try unwrap(
                ledger.access(token, at: now), "invalid_request", "subject_token is no access token that is good now")
            subject = grant.user.subject
            if perturbations.take(.tokenWholeScope) { whole = grant.scopes }
        case Issuer.tokenType + "jwt": subject = try self.subject(of: token, by: client, at: now)
        default: throw OAuthError("invalid_request", "subject_token_type is not one that is traded here")
        }
        return answer(parameters, client, subject: subject, whole: whole, type: accessToken, at: now)
    }

    /// The subject of an assertion, if this issuer made it, or one that it trusts made it about a user, and it is valid
    /// now.
    private mutating func subject(of assertion: String, by client: SandboxClient, at now: Int) throws -> String {
        let token = try unwrap(JSONWebToken(parsing: assertion), "invalid_grant", "the assertion is not a JWT")
        let claims = token.claims
        let issuer = claims["iss"]?.string ?? ""
        let isSigned: Bool
        if let set = settings.assertionIssuers[issuer] {
            let trusted = (set["keys"]?.array ?? []).compactMap(SandboxClient.key)
            try require(client.id != "", "invalid_client", "the client has to prove itself", status: 401)
            isSigned =
                token.header["typ"]?.string == Issuer.identityAssertionType
                && trusted.contains { token.isSigned(by: $0, token.algorithm) }
        } else {
            let key = try keys.key(for: .es256).key.publicKey
            isSigned = issuer == name && token.header["alg"] == "ES256" && token.isSigned(by: key, .es256)
        }
        return try check(
            isSigned, audience: claims["aud"]?.string, expiry: claims["exp"]?.integer, subject: claims["sub"]?.string,
            at: now)
    }

    private func check(
        _ isOurs: Bool, audience: String?, expiry: Int?, subject: String?, at now: Int
    ) throws -> String {
        try require(isOurs, "invalid_grant", "nobody who is trusted made the assertion")
        let isForUs = audience == name || audience == url(.token)
        try require(isForUs, "invalid_grant", "the assertion is meant for another audience")
        try require(expiry ?? 0 > now, "invalid_grant", "the assertion has expired")
        return try unwrap(subject == "" ? nil : subject, "invalid_grant", "the assertion is about nobody")
    }

    /// An assertion, as a workload finds it in a file of its platform.
    mutating func makeAssertion(_ subject: String, _ audience: String?, lifetime: Int, at now: Int) throws -> String {
        let key = try keys.key(for: .es256)
        let header: JSONObject = ["alg": "ES256", "typ": "JWT", "kid": key.id]
        let claims: JSONObject = [
            "iss": name, "sub": subject, "aud": audience ?? name, "iat": now, "exp": now + lifetime,
            "jti": RandomToken.identifier(bits: 128),
        ]
        return try JSONWebToken.signed(header, claims) { try key.key.sign(message: $0, algorithm: .es256) }
    }

    /// A token without a refresh token: a client that can get this one can get the next.
    /// - Parameter whole: its scopes in place of the requested ones.
    mutating func answer(
        _ parameters: Parameters, _ client: SandboxClient, subject: String, whole: [String]? = nil,
        type: String? = nil, at now: Int
    ) -> ServerResponse {
        let scopes = whole ?? parameters.scopes ?? []
        let user = SandboxUser(name: subject)
        var answer = newAccessToken(of: open(client, user, scopes, at: now), for: user, scopes, at: now).members
        if scopes.isEmpty { answer["scope"] = nil }
        answer["issued_token_type"] = type.map(JSON.string)
        perturbations.change(.token, &answer)
        return Responses.json(answer)
    }
}

/// Assertions about users for other authorization servers (draft-ietf-oauth-identity-assertion-authz-grant).
extension Issuer {
    static let identityAssertionProfile = "urn:ietf:params:oauth:grant-profile:id-jag"
    private static let identityAssertionType = "oauth-id-jag+jwt"
    private static let identityAssertionLifetime = 300

    /// The sign-in that an ID token or a refresh token of the client proves.
    private func family(
        of token: String, _ type: String, _ client: SandboxClient, at now: Int
    ) throws -> Ledger.Family {
        var index: Int?
        if type == Issuer.tokenType + "id_token" {
            let end = JSONWebToken(parsing: token)?.claims["exp"]?.integer ?? 0
            index = end > now ? ledger.idTokens[token] : nil
        } else if type == Issuer.tokenType + "refresh_token" {
            let grant = ledger.refreshTokens[token].flatMap { $0.successor == nil ? $0 : nil }
            index = grant.flatMap { now < $0.expiresAt ?? .max ? $0.family : nil }
        } else {
            throw OAuthError("invalid_request", "subject_token_type is not one that is traded for an assertion")
        }
        let family = try unwrap(
            index.map { ledger.families[$0] }, "invalid_grant", "subject_token proves no sign-in that is good now")
        try require(
            !family.isEnded && family.clientID == client.id, "invalid_grant",
            "subject_token is of an ended session, or of another client")
        return family
    }

    private mutating func answer(
        _ parameters: Parameters, _ client: SandboxClient, assertingUserOf family: Ledger.Family, at now: Int
    ) throws -> ServerResponse {
        let audience = try parameters.required("audience")
        let key = try keys.key(for: .es256)
        let lifetime = Issuer.identityAssertionLifetime
        let header: JSONObject = ["alg": "ES256", "typ": Issuer.identityAssertionType, "kid": key.id]
        let claims: JSONObject = [
            "iss": name, "sub": family.user.subject, "aud": audience, "resource": parameters["resource"],
            "client_id": client.id, "scope": parameters["scope"], "iat": now, "exp": now + lifetime,
            "jti": RandomToken.identifier(bits: 128),
        ]
        let assertion = try JSONWebToken.signed(header, claims) { try key.key.sign(message: $0, algorithm: .es256) }
        var answer: JSONObject = [
            "access_token": assertion, "issued_token_type": Issuer.tokenType + "id-jag", "token_type": "N_A",
            "expires_in": lifetime, "scope": parameters["scope"],
        ]
        perturbations.change(.token, &answer)
        return Responses.json(answer)
    }
}

extension SandboxProvider {
    /// `POST /sandbox/assertion`: `{"subject": "build", "audience": URL?, "lifetime": SECONDS?, "format": "jwt"?}` gets
    /// the response `{"assertion": TEXT}`. By default its audience is the issuer, and it is valid for five minutes. The
    /// format `saml2` is an XML element.
    func makeAssertion(_ request: SandboxRequest) throws -> ServerResponse {
        let object = try? JSON(parsing: request.body).object
        let names = Set(object?.names ?? ["?"])
        guard let object, names.isSubset(of: ["subject", "audience", "lifetime", "format"]),
            let subject = object["subject"]?.string, !subject.isEmpty,
            ["jwt", "saml2", nil].contains(object["format"]?.string)
        else {
            throw OAuthError(
                "invalid_request", "the body is an object with subject, and perhaps audience, lifetime and format")
        }
        let now = clock()
        let assertion = try withState { state in
            let audience = object["audience"]?.string
            let lifetime = object["lifetime"]?.integer ?? 300
            let time = now + state.clockOffset
            return object["format"]?.string == "saml2"
                ? try state.server.issuer.makeSAMLAssertion(subject, audience, lifetime: lifetime, at: time)
                : try state.server.issuer.makeAssertion(subject, audience, lifetime: lifetime, at: time)
        }
        return Responses.json(["assertion": assertion])
    }
}

/// SAML assertions for services (RFC 7522), of the sandbox itself only. There is no XML signature: an element of its
/// own holds an ES256 signature of everything before it, so that any changed byte is noticed.
extension Issuer {
    static let samlBearer = "urn:ietf:params:oauth:grant-type:saml2-bearer"
    private static let sealStart = "<sandbox:Seal xmlns:sandbox=\"urn:ringback:sandbox\">"
    private static let end = "</sandbox:Seal></saml:Assertion>"

    mutating func makeSAMLAssertion(
        _ subject: String, _ audience: String?, lifetime: Int, at now: Int
    ) throws -> String {
        let text = """
            <saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" Version="2.0" \
            ID="_\(RandomToken.identifier(bits: 128))">
              <saml:Issuer>\(Markup.escaped(name))</saml:Issuer>
              <saml:Subject><saml:NameID>\(Markup.escaped(subject))</saml:NameID></saml:Subject>
              <saml:Conditions><saml:AudienceRestriction>\
            <saml:Audience>\(Markup.escaped(audience ?? name))</saml:Audience>\
            </saml:AudienceRestriction></saml:Conditions>
              <sandbox:Expiry xmlns:sandbox="urn:ringback:sandbox">\(now + lifetime)</sandbox:Expiry>

            """
        let signature = try keys.key(for: .es256).key.sign(message: Array(text.utf8), algorithm: .es256)
        return text + Issuer.sealStart + Base64URL.encode(signature) + Issuer.end
    }

    /// The subject of an assertion in base64url (RFC 7522 section 2.1), if this issuer made it and it is valid now.
    mutating func subject(ofSAML assertion: String, at now: Int) throws -> String {
        guard let bytes = Base64URL.decode(assertion[...]), let text = String(validating: bytes, as: UTF8.self),
            let seal = text.firstRange(of: Issuer.sealStart), text.hasSuffix(Issuer.end),
            let signature = Base64URL.decode(text[seal.upperBound...].dropLast(Issuer.end.count))
        else { throw OAuthError("invalid_grant", "the assertion is not base64url of a SAML assertion") }
        let signed = text[..<seal.lowerBound]
        let key = try keys.key(for: .es256).key.publicKey
        let isSigned = key.verify(signature: signature, message: Array(signed.utf8), algorithm: .es256)
        let audience = Issuer.content(of: "saml:Audience", in: signed)
        let expiry = signed.firstRange(of: "sandbox\">").map { signed[$0.upperBound...].prefix { $0 != "<" } }
        return try check(
            isSigned && Issuer.content(of: "saml:Issuer", in: signed) == Markup.escaped(name),
            audience: [name, url(.token)].first { Markup.escaped($0) == audience }, expiry: expiry.flatMap { Int($0) },
            subject: Issuer.content(of: "saml:NameID", in: signed), at: now)
    }

    private static func content(of element: String, in text: Substring) -> String? {
        guard let start = text.firstRange(of: "<\(element)>") else { return nil }
        return String(text[start.upperBound...].prefix { $0 != "<" })
    }
}
