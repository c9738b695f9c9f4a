internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// Tokens for users: the grants of codes (RFC 6749 section 4.1.3, RFC 7636 section 4.6) and of refresh tokens (section 6),
/// and the response of all grants.
extension Issuer {
    mutating func exchange(
        _ parameters: Parameters, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        guard let code = parameters["code"] else { throw OAuthError("invalid_request", "code is missing") }
        guard let grant = ledger.codes[code], ledger.families[grant.family].clientID == client.id else {
            throw OAuthError("invalid_grant", "the code is not known")
        }
        guard !grant.isUsed else {
            counters.codeReuses += 1
            ledger.end(grant.family)
            throw OAuthError("invalid_grant", "the code was used before; what it yielded is revoked")
        }
        // A code can be tried once, whatever is wrong from here on.
        ledger.codes[code]?.isUsed = true
        guard now < grant.expiresAt else { throw OAuthError("invalid_grant", "the code has expired") }
        guard parameters["redirect_uri"] == grant.redirectURI else {
            throw OAuthError("invalid_grant", "redirect_uri is not the authorization request's")
        }
        if !perturbations.take(.tokenIgnoresPKCE) {
            guard let verifier = parameters["code_verifier"] else {
                throw OAuthError("invalid_request", "code_verifier is missing")
            }
            guard (43...128).contains(verifier.utf8.count), verifier.utf8.allSatisfy(\.isUnreserved) else {
                throw OAuthError("invalid_request", "code_verifier is not one of RFC 7636")
            }
            guard Base64URL.encode(Digest.sha256(verifier)) == grant.challenge else {
                throw OAuthError("invalid_grant", "code_verifier does not fit code_challenge")
            }
        }
        let scopes = ledger.families[grant.family].scopes
        let issuesRefreshToken =
            switch settings.refreshTokens {
            case .always: true
            case .offlineAccess: scopes.contains("offline_access")
            case .offlineConsent: scopes.contains("offline_access") && grant.hasConsent
            case .never: false
            }
        let refreshToken = issuesRefreshToken ? newRefreshToken(of: grant.family, at: now) : nil
        return try answer(
            client, family: grant.family, scopes: scopes, refreshToken: refreshToken, held: nil, nonce: grant.nonce,
            hasIDToken: true, at: now)
    }

    mutating func refresh(
        _ parameters: Parameters, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        guard let token = parameters["refresh_token"] else {
            throw OAuthError("invalid_request", "refresh_token is missing")
        }
        guard let grant = ledger.refreshTokens[token] else {
            throw OAuthError("invalid_grant", "the refresh token is not known")
        }
        let family = ledger.families[grant.family]
        guard family.clientID == client.id else {
            throw OAuthError("invalid_grant", "the refresh token is another client's")
        }
        guard !family.isEnded else { throw OAuthError("invalid_grant", "the session has ended") }
        if let expiresAt = grant.expiresAt, now >= expiresAt {
            throw OAuthError("invalid_grant", "the refresh token has expired")
        }
        if let successor = grant.successor, !isWithinGrace(successor, at: now) {
            counters.reuseDetections += 1
            ledger.end(grant.family)
            throw OAuthError("invalid_grant", "the refresh token was used before; the session is ended")
        }
        let whole = grant.scopes ?? family.scopes
        let scopes = parameters["scope"].map { $0.split(separator: " ").map(String.init) } ?? whole
        guard scopes.allSatisfy(whole.contains) else {
            throw OAuthError("invalid_scope", "scope is wider than what was granted")
        }
        if parameters["resource"] != nil, perturbations.take(.tokenInvalidTarget) {
            throw OAuthError("invalid_target", "the resource is not known here")
        }
        let refreshToken = rotate(token, grant, at: now)
        let lasting = downscoped(scopes, of: family, grant)
        if let refreshToken { ledger.refreshTokens[refreshToken]?.scopes = lasting }
        counters.refreshes += 1
        let given = perturbations.take(.tokenWholeScope) ? family.scopes : scopes
        return try answer(
            client, family: grant.family, scopes: given, refreshToken: refreshToken, held: token, nonce: nil,
            hasIDToken: settings.renewsIDToken, at: now)
    }

    /// The scopes of a refresh token that comes with a token of these scopes; nil for the family's.
    private func downscoped(
        _ scopes: [String], of family: Ledger.Family, _ grant: Ledger.RefreshGrant
    ) -> [String]? {
        settings.downscopesRefreshTokens && Set(scopes) != Set(family.scopes) ? scopes : grant.scopes
    }

    /// If the token that replaced it was used, the first response has arrived: a correct client has no reason to repeat
    /// the request.
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
        counters.rotations += 1
        return successor
    }

    mutating func newRefreshToken(of family: Int, at now: Int) -> String {
        let token = Issuer.newToken("rt")
        ledger.refreshTokens[token] = Ledger.RefreshGrant(
            family: family, expiresAt: settings.refreshTokenLifetime.map { now + $0 })
        return token
    }

    /// `held` is the refresh token that the client keeps if the response has none.
    mutating func answer(
        _ client: SandboxClient, family index: Int, scopes: [String], refreshToken: String?, held: String?,
        nonce: String?, hasIDToken: Bool, at now: Int
    ) throws -> ServerResponse {
        let family = ledger.families[index]
        let user = perturbations.take(.tokenOtherSubject) ? users.first { $0 != family.user } : nil
        let accessToken = Issuer.newToken("at")
        ledger.accessTokens[accessToken] = Ledger.AccessGrant(
            family: index, user: user ?? family.user, scopes: scopes, expiresAt: now + settings.accessTokenLifetime)
        counters.tokensIssued += 1
        var answer = JSONObject([
            .init("access_token", .string(accessToken)), .init("token_type", "Bearer"),
            .init("scope", .string(scopes.joined(separator: " "))),
        ])
        if !settings.omitsExpiresIn { answer["expires_in"] = .integer(settings.accessTokenLifetime) }
        if let refreshToken { answer["refresh_token"] = .string(refreshToken) }
        let lasting = refreshToken ?? held
        if settings.statesRefreshLifetime, let end = lasting.flatMap({ ledger.refreshTokens[$0]?.expiresAt }) {
            answer["refresh_expires_in"] = .integer(end - now)
        }
        if hasIDToken, scopes.contains("openid") {
            let writer = IDTokenWriter(
                issuer: name, client: client, family: family, user: user ?? family.user, nonce: nonce,
                accessToken: accessToken, settings: settings, now: now)
            let idToken = try writer.write(keys: &keys, perturbations: &perturbations)
            ledger.idTokens[idToken] = index
            answer["id_token"] = .string(idToken)
        }
        perturbations.change(tokenResponse: &answer)
        return Responses.json(.object(answer))
    }
}

/// What can be done with an issued token: read its user's claims, revoke it, end the session.
extension Issuer {
    /// OpenID Connect Core section 5.3. The token comes in the header and nowhere else (RFC 6750 section 2,
    /// RFC 9700 section 4.3.2).
    mutating func userinfo(_ request: SandboxRequest, at now: Int) throws(OAuthError) -> ServerResponse {
        guard !request.pairs.contains(where: { $0.name == "access_token" }) else {
            throw OAuthError("invalid_request", "the token belongs into the header", challenge: "Bearer")
        }
        guard let token = request.bearer else {
            // Without credentials no error code is given (RFC 6750 section 3.1).
            return Responses.text(
                "A bearer token is needed.", status: 401, fields: [("WWW-Authenticate", "Bearer realm=\"sandbox\"")])
        }
        guard let grant = ledger.access(token, at: now) else {
            throw OAuthError("invalid_token", "the token is not valid", status: 401, challenge: "Bearer")
        }
        guard grant.scopes.contains("openid") || perturbations.take(.userinfoWithoutOpenID) else {
            throw OAuthError("insufficient_scope", "the scope openid is needed", status: 403, challenge: "Bearer")
        }
        var claims = JSONObject([.init("sub", .string(grant.user.subject))])
        if grant.scopes.contains("profile") {
            claims["name"] = .string(grant.user.displayName)
            claims["preferred_username"] = .string(grant.user.name)
        }
        if grant.scopes.contains("email") {
            claims["email"] = .string(grant.user.email)
            claims["email_verified"] = true
        }
        perturbations.change(userinfo: &claims)
        return Responses.json(.object(claims))
    }

    /// RFC 7009. A refresh token ends its whole family. An unknown token counts as revoked.
    mutating func revoke(
        _ parameters: Parameters, _ client: SandboxClient
    ) throws(OAuthError) -> ServerResponse {
        guard let token = parameters["token"] else { throw OAuthError("invalid_request", "token is missing") }
        if let grant = ledger.refreshTokens[token] {
            try require(client, of: grant.family)
            if !ledger.families[grant.family].isEnded { counters.revocations += 1 }
            ledger.end(grant.family)
        } else if let grant = ledger.accessTokens[token] {
            try require(client, of: grant.family)
            if !grant.isRevoked { counters.revocations += 1 }
            ledger.accessTokens[token]?.isRevoked = true
        }
        return Responses.text("", status: 200)
    }

    private func require(_ client: SandboxClient, of family: Int) throws(OAuthError) {
        guard ledger.families[family].clientID == client.id else {
            throw OAuthError("unauthorized_client", "the token is another client's")
        }
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
                counters.endedSessions += 1
            }
        }
        guard let target = parameters["post_logout_redirect_uri"] else { return Pages.signedOut() }
        guard let client = clientID.flatMap({ clients[$0] }), client.accepts(redirectURI: target) else {
            return Pages.error("The request's redirect URI is not one that the client may use.")
        }
        guard let state = parameters["state"] else { return Responses.redirect(to: target) }
        return Responses.redirect(to: target, adding: [("state", state)])
    }
}
