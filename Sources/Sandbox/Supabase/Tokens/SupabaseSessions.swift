internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// How sessions begin, and what a client gets.
extension SupabaseProject {
    /// Starts a session for a user who has authenticated. Returns its id.
    mutating func open(
        _ userID: String, by method: String, provider: String? = nil, at now: Int
    ) -> String {
        var session = SupabaseSession(
            id: SupabaseText.uuid(), userID: userID, createdAt: now, refreshedAt: now,
            proofs: [.init(method: method, at: now, provider: provider)],
            isCounted: settings.refreshTokens == .v2)
        if !session.isCounted {
            session.swap(nil, at: now, kind: settings.refreshTokens)
            rowOwners[session.currentToken] = session.id
        }
        sessions[session.id] = session
        let moment = instant(now)
        users[userID]?.lastSignInAt = moment
        return session.id
    }

    /// The token response of a session.
    mutating func tokenResponse(
        _ sessionID: String, extra: [JSONObject.Member] = [], fields: [(String, String)] = [], at now: Int
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        var members = try tokens(sessionID, at: now)
        members.members += extra
        guard let session = sessions[sessionID] else { throw .failure }
        var fields = [("sb-auth-user-id", session.userID), ("sb-auth-session-id", sessionID)] + fields
        fields.append(
            session.isCounted
                ? ("sb-auth-refresh-token-counter", String(session.counter))
                : ("sb-auth-refresh-token-prefix", String(session.currentToken.prefix(5))))
        return SupabaseResponses.json(.object(members), fields: fields)
    }

    /// - Parameter refreshToken: issued in place of the session's newest.
    mutating func tokens(
        _ sessionID: String, refreshToken: String? = nil, at now: Int
    ) throws(SupabaseErrorResponse) -> JSONObject {
        guard let session = sessions[sessionID], let user = users[session.userID] else { throw .failure }
        if let refusal = settings.tokenHook { throw refusal }
        var lifetime = settings.accessTokenLifetime
        if let limit = settings.lowLevelLifetime, session.level == "aal1", user.hasVerifiedFactor {
            lifetime = max(min(lifetime, session.createdAt + limit - now), 0)
        }
        var claims = JSONObject()
        if settings.namesIssuer { claims["iss"] = .string(settings.issuer ?? authURL) }
        claims.members += [
            .init("sub", .string(user.id)), .init("aud", "authenticated"), .init("exp", .integer(now + lifetime)),
            .init("iat", .integer(now)), .init("email", .string(user.email)), .init("phone", .string(user.phone)),
            .init("app_metadata", .object(user.appMetadata)), .init("user_metadata", .object(user.userMetadata)),
            .init("role", "authenticated"), .init("aal", .string(session.level)),
            .init("amr", .array(session.proofs.map(\.json))), .init("session_id", .string(session.id)),
            .init("is_anonymous", .bool(user.isAnonymous)),
        ]
        if let clientID = session.clientID { claims["client_id"] = .string(clientID) }
        let token: String
        if let forgery = settings.forgery {
            token = try SupabaseKeys.forge(claims, by: forgery)
        } else {
            token = try keys.sign(claims, with: settings.algorithm)
        }
        return JSONObject([
            .init("access_token", .string(token)), .init("token_type", "bearer"),
            .init("expires_in", .integer(lifetime)), .init("expires_at", .integer(now + lifetime)),
            .init("refresh_token", .string(refreshToken ?? session.currentToken)), .init("user", user.json),
        ])
    }
}
