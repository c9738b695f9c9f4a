internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// Codes (RFC 6749 section 4.1.3, RFC 7636 section 4.6), refresh tokens (section 6), the response of all grants.
extension Issuer {
    mutating func exchange(_ parameters: Parameters, _ client: SandboxClient, at now: Int) throws -> ServerResponse {
        let code = try parameters.required("code")
        guard let grant = ledger.codes[code], ledger.families[grant.family].clientID == client.id else {
            throw OAuthError("invalid_grant", "the code is not known")
        }
        guard !grant.isUsed else {
            counters[.codeReuses] += 1
            ledger.end(grant.family)
            throw OAuthError("invalid_grant", "the code was used before; what it yielded is revoked")
        }
        // A code can be tried once, whatever is wrong from here on.
        ledger.codes[code]?.isUsed = true
        try require(now < grant.expiresAt, "invalid_grant", "the code has expired")
        try require(
            parameters["redirect_uri"] == grant.redirectURI, "invalid_grant",
            "redirect_uri is not the authorization request's")
        try require(
            grant.key == nil || grant.key == proofs.current, "invalid_grant", "the code is bound to another key")
        if !perturbations.take(.tokenIgnoresPKCE) {
            let verifier = try parameters.required("code_verifier")
            let isVerifier = (43...128).contains(verifier.utf8.count) && verifier.utf8.allSatisfy(\.isUnreserved)
            try require(isVerifier, "invalid_request", "code_verifier is not one of RFC 7636")
            try require(
                Base64URL.encode(Digest.sha256(verifier)) == grant.challenge, "invalid_grant",
                "code_verifier does not fit code_challenge")
        }
        return try firstAnswer(client, family: grant.family, grant.nonce, hasConsent: grant.hasConsent, at: now)
    }

    mutating func firstAnswer(
        _ client: SandboxClient, family: Int, _ nonce: String? = nil, hasConsent: Bool, at now: Int
    ) throws -> ServerResponse {
        let scopes = ledger.families[family].scopes
        let issuesRefreshToken =
            switch settings.refreshTokens {
            case .always: true
            case .offlineAccess: scopes.contains("offline_access")
            case .offlineConsent: scopes.contains("offline_access") && hasConsent
            case .never: false
            }
        let refreshToken = issuesRefreshToken ? newRefreshToken(of: family, at: now) : nil
        return try answer(
            client, family: family, scopes: scopes, refreshToken: refreshToken, held: nil, nonce: nonce, at: now)
    }

    mutating func refresh(_ parameters: Parameters, _ client: SandboxClient, at now: Int) throws -> ServerResponse {
        let token = try parameters.required("refresh_token")
        let grant = try unwrap(ledger.refreshTokens[token], "invalid_grant", "the refresh token is not known")
        let family = ledger.families[grant.family]
        try require(family.clientID == client.id, "invalid_grant", "the refresh token is another client's")
        try require(!family.isEnded, "invalid_grant", "the session has ended")
        try require(now < grant.expiresAt ?? .max, "invalid_grant", "the refresh token has expired")
        if let key = grant.key, client.authentications.contains(.none) {
            try require(proofs.current != nil, "invalid_dpop_proof", "the refresh token needs a proof of its key")
            try require(key == proofs.current, "invalid_grant", "the refresh token is bound to another key")
        }
        if let successor = grant.successor, !isWithinGrace(successor, at: now) {
            counters[.reuseDetections] += 1
            ledger.end(grant.family)
            throw OAuthError("invalid_grant", "the refresh token was used before; the session is ended")
        }
        let whole = grant.scopes ?? family.scopes
        let scopes = parameters.scopes ?? whole
        try require(scopes.allSatisfy(whole.contains), "invalid_scope", "scope is wider than what was granted")
        let refreshToken = rotate(token, grant, at: now)
        let isLess = settings.downscopesRefreshTokens && Set(scopes) != Set(family.scopes)
        let lasting = isLess ? scopes : grant.scopes
        if let refreshToken { ledger.refreshTokens[refreshToken]?.scopes = lasting }
        counters[.refreshes] += 1
        let given = perturbations.take(.tokenWholeScope) ? family.scopes : scopes
        return try answer(
            client, family: grant.family, scopes: given, refreshToken: refreshToken, held: token, nonce: nil, at: now)
    }

    /// If its successor was used, the first response has arrived: a correct client does not repeat the request.
    private func isWithinGrace(_ successor: (token: String, at: Int), at now: Int) -> Bool {
        settings.reuseGrace > 0 && now - successor.at <= settings.reuseGrace
            && ledger.refreshTokens[successor.token]?.successor == nil
    }

    /// The refresh token for the response; nil if the old one stays.
    private mutating func rotate(_ token: String, _ grant: Ledger.RefreshGrant, at now: Int) -> String? {
        if let successor = grant.successor { return successor.token }
        let isForced = perturbations.take(.tokenRotates)
        let isPrevented = perturbations.take(.tokenDoesNotRotate)
        guard isForced || (settings.rotates && !isPrevented) else { return nil }
        let successor = newRefreshToken(of: grant.family, at: now)
        ledger.refreshTokens[token]?.successor = (successor, now)
        counters[.rotations] += 1
        return successor
    }

    mutating func newRefreshToken(of family: Int, at now: Int) -> String {
        let token = Issuer.newToken("rt")
        ledger.refreshTokens[token] = Ledger.RefreshGrant(
            family: family, expiresAt: settings.refreshTokenLifetime.map { now + $0 }, key: proofs.current)
        return token
    }

    mutating func open(_ client: SandboxClient, _ user: SandboxUser, _ scopes: [String], at now: Int) -> Int {
        ledger.families.append(
            Ledger.Family(
                clientID: client.id, user: user, scopes: scopes, authenticatedAt: now,
                sessionID: Issuer.newToken("sid")))
        return ledger.families.count - 1
    }

    mutating func newAccessToken(
        of family: Int, for user: SandboxUser, _ scopes: [String], at now: Int
    ) -> (token: String, members: JSONObject) {
        let token = Issuer.newToken("at")
        let lifetime = settings.accessTokenLifetime
        let key = settings.proofBinding == .all ? proofs.current : nil
        ledger.accessTokens[token] = Ledger.AccessGrant(
            family: family, user: user, scopes: scopes, expiresAt: now + lifetime, key: key)
        counters[.tokensIssued] += 1
        let members: JSONObject = [
            "access_token": token, "token_type": key == nil ? "Bearer" : "DPoP", "scope": scopes.joined(separator: " "),
            "expires_in": settings.omitsExpiresIn ? nil : lifetime,
        ]
        return (token, members)
    }

    /// `held` is the refresh token of the request, which the client keeps if the response has none; nil at a sign-in.
    private mutating func answer(
        _ client: SandboxClient, family index: Int, scopes: [String], refreshToken: String?, held: String?,
        nonce: String?, at now: Int
    ) throws -> ServerResponse {
        let family = ledger.families[index]
        let other = perturbations.take(.tokenOtherSubject) ? users.first { $0 != family.user } : nil
        let user = other ?? family.user
        var (accessToken, answer) = newAccessToken(of: index, for: user, scopes, at: now)
        if let refreshToken { answer["refresh_token"] = .string(refreshToken) }
        let lasting = refreshToken ?? held
        if settings.statesRefreshLifetime, let end = lasting.flatMap({ ledger.refreshTokens[$0]?.expiresAt }) {
            answer["refresh_expires_in"] = .integer(end - now)
        }
        if held == nil || settings.renewsIDToken, scopes.contains("openid") {
            let writer = IDTokenWriter(
                issuer: name, client: client, family: family, user: user, nonce: nonce,
                accessToken: accessToken, settings: settings, now: now)
            let idToken = try writer.write(keys: &keys, perturbations: &perturbations)
            ledger.idTokens[idToken] = index
            answer["id_token"] = .string(idToken)
        }
        perturbations.change(.token, &answer)
        return Responses.json(answer)
    }
}

extension Issuer {
    /// OpenID Connect Core section 5.3. The token comes in the header only (RFC 6750 section 2, RFC 9700 4.3.2).
    mutating func userinfo(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        guard !request.pairs.contains(where: { $0.name == "access_token" }) else {
            throw OAuthError("invalid_request", "the token belongs into the header", challenge: "Bearer")
        }
        guard let token = request.bearer ?? request.credentials("dpop") else {
            // Without credentials no error code is given (RFC 6750 section 3.1).
            return Responses.text(
                "A bearer token is needed.", status: 401, fields: [("WWW-Authenticate", "Bearer realm=\"sandbox\"")])
        }
        let grant = try unwrap(
            ledger.access(token, at: now), "invalid_token", "the token is not valid", status: 401, challenge: "Bearer")
        if let key = grant.key {
            let isProven = try request.bearer == nil && provenKey(request, .userinfo, token: token, at: now) == key
            try require(
                isProven, "invalid_token", "the token is bound to a key that was not proven", status: 401,
                challenge: "DPoP")
        } else {
            try require(request.bearer != nil, "invalid_token", "the token is bound to no key", status: 401)
        }
        guard grant.scopes.contains("openid") || perturbations.take(.userinfoWithoutOpenID) else {
            throw OAuthError("insufficient_scope", "the scope openid is needed", status: 403, challenge: "Bearer")
        }
        let profile = grant.scopes.contains("profile") ? grant.user : nil
        let address = grant.scopes.contains("email") ? grant.user.email : nil
        var claims: JSONObject = [
            "sub": grant.user.subject, "name": profile?.displayName, "preferred_username": profile?.name,
            "email": address, "email_verified": address.map { _ in true },
        ]
        perturbations.change(.userinfo, &claims)
        return Responses.json(claims)
    }

    /// RFC 7009. A refresh token ends its whole family. An unknown token counts as revoked.
    mutating func revoke(_ parameters: Parameters, _ client: SandboxClient) throws -> ServerResponse {
        let token = try parameters.required("token")
        if let grant = ledger.refreshTokens[token] {
            try checkOwner(client, of: grant.family)
            if !ledger.families[grant.family].isEnded { counters[.revocations] += 1 }
            ledger.end(grant.family)
        } else if let grant = ledger.accessTokens[token] {
            try checkOwner(client, of: grant.family)
            if !grant.isRevoked { counters[.revocations] += 1 }
            ledger.accessTokens[token]?.isRevoked = true
        }
        return Responses.text("", status: 200)
    }

    private func checkOwner(_ client: SandboxClient, of family: Int) throws {
        try require(
            ledger.families[family].clientID == client.id, "unauthorized_client", "the token is another client's")
    }

    /// OpenID Connect RP-Initiated Logout. Ends the session of the ID token in the hint, unless the session has the
    /// scope `offline_access`, which is for times when the user is away.
    mutating func endSession(_ request: SandboxRequest, _ clients: Clients) -> ServerResponse {
        let parameters = request.parameters
        guard request.isWellFormed, parameters.repeated.isEmpty else {
            return Pages.error("The request's parameters cannot be read, or are repeated.")
        }
        var clientID = parameters["client_id"]
        if let hint = parameters["id_token_hint"] {
            guard let index = ledger.idTokens[hint] else {
                return Pages.error("The hint is no ID token of this issuer.")
            }
            let family = ledger.families[index]
            guard clientID == nil || clientID == family.clientID else {
                return Pages.error("The hint is another client's.")
            }
            clientID = family.clientID
            if !family.isEnded, !family.scopes.contains("offline_access") {
                ledger.end(index)
                counters[.endedSessions] += 1
            }
        }
        guard let target = parameters["post_logout_redirect_uri"] else { return Pages.signedOut() }
        guard let client = clientID.flatMap({ clients[$0] }), client.accepts(redirectURI: target) else {
            return Pages.error("The request's redirect URI is not one that the client may use.")
        }
        return Responses.redirect(to: target, adding: parameters["state"].map { [("state", $0)] } ?? [])
    }
}
