internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// What can be done with an issued token: read its user's claims, revoke it, end the session.
extension Issuer {
    /// OpenID Connect Core section 5.3. The token comes in the header and nowhere else (RFC 6750 section 2,
    /// RFC 9700 section 4.3.2).
    mutating func userinfo(_ request: SandboxRequest, at now: Int) throws(ErrorResponse) -> ServerResponse {
        guard !request.pairs.contains(where: { $0.name == "access_token" }) else {
            throw ErrorResponse("invalid_request", "the token belongs into the header", challenge: "Bearer")
        }
        guard let token = request.bearer else {
            // Without credentials no error code is given (RFC 6750 section 3.1).
            return Responses.text(
                "A bearer token is needed.", status: 401, fields: [("WWW-Authenticate", "Bearer realm=\"sandbox\"")])
        }
        guard let grant = ledger.access(token, at: now) else {
            throw ErrorResponse("invalid_token", "the token is not valid", status: 401, challenge: "Bearer")
        }
        guard grant.scopes.contains("openid") || perturbations.take(.userinfoWithoutOpenID) else {
            throw ErrorResponse("insufficient_scope", "the scope openid is needed", status: 403, challenge: "Bearer")
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
    ) throws(ErrorResponse) -> ServerResponse {
        guard let token = parameters["token"] else { throw ErrorResponse("invalid_request", "token is missing") }
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

    private func require(_ client: SandboxClient, of family: Int) throws(ErrorResponse) {
        guard ledger.families[family].clientID == client.id else {
            throw ErrorResponse("unauthorized_client", "the token is another client's")
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
