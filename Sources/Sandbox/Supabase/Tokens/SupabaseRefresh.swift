internal import Cryptography
internal import LocalHTTP
internal import StrictJSON

/// What happens when a refresh token is presented: the current one, one replaced a moment ago or long ago, one never
/// issued.
extension SupabaseProject {
    private static func dead(_ code: String, _ reason: String) -> SupabaseErrorResponse {
        SupabaseErrorResponse(400, code, "Invalid Refresh Token: \(reason)")
    }

    private static let unknown = dead("refresh_token_not_found", "Refresh Token Not Found")
    private static let reused = dead("refresh_token_already_used", "Already Used")

    mutating func refresh(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let token = try call.body().text("refresh_token")
        guard !token.isEmpty else { throw .validation("refresh_token required") }
        if let counted = SupabaseCountedToken(parsing: token) { return try refresh(counted, token, call.now) }
        let isOld = settings.refreshTokens == .v0 && token.utf8.count == 22
        let isRow = token.utf8.count == 12 && token.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber) }
        guard isOld || isRow else { throw .validation("Refresh token is not valid") }
        return try refresh(row: token, call.now)
    }

    /// The first kind: a row for each token.
    private mutating func refresh(row token: String, _ now: Int) throws(SupabaseErrorResponse) -> ServerResponse {
        if let user = strayTokens.removeValue(forKey: token).flatMap({ users[$0] }) {
            try checkBan(user, at: now)
            throw SupabaseProject.dead("session_not_found", "No Valid Session Found")
        }
        guard let sessionID = rowOwners[token], var session = sessions[sessionID],
            let row = session.rows.first(where: { $0.token == token })
        else { throw SupabaseProject.unknown }
        try check(session, at: now)
        if row.isRevoked {
            // A client that lost the last response presents the active token's parent. It gets the active token again.
            if let active = session.activeRow, active.parent == token {
                return try answer(sessionID, active.token, [("sb-auth-refresh-token-reuse", "true")], now)
            }
            guard now - row.updatedAt <= settings.reuseInterval else {
                if settings.rotates {
                    session.revokeFamily(at: now)
                    sessions[sessionID] = session
                }
                throw SupabaseProject.reused
            }
        }
        session.swap(token, at: now, kind: settings.refreshTokens)
        if settings.upgrades(session) { session.upgrade(at: now) }
        session.refreshedAt = now
        sessions[sessionID] = session
        if rowOwners.count > 200_000 { rowOwners = rowOwners.filter { sessions[$0.value] != nil } }
        if !session.isCounted { rowOwners[session.currentToken] = sessionID }
        return try answer(sessionID, session.currentToken, [("sb-auth-refresh-token-rotated", "true")], now)
    }

    /// The second kind: a counter for each session.
    private mutating func refresh(
        _ counted: SupabaseCountedToken, _ token: String, _ now: Int
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard var session = sessions[counted.session], session.isCounted, counted.text(key: session.key) == token
        else { throw SupabaseProject.unknown }
        try check(session, at: now)
        let behind = session.counter - counted.counter
        guard behind >= 0 else { throw .validation("Invalid Refresh Token: Not Issued By This Server") }
        if behind > 0 {
            let isSoon = now - session.refreshedAt < settings.reuseInterval
            guard behind == 1 || isSoon || settings.allowsReuse else {
                if settings.rotates { sessions[counted.session] = nil }
                throw SupabaseProject.reused
            }
            var causes = isSoon ? ["concurrent-refresh"] : []
            if behind == 1 { causes.append("fail-to-save") }
            if settings.allowsReuse { causes.append("always-allow") }
            let fields = [
                ("sb-auth-refresh-token-reuse", "true"),
                ("sb-auth-refresh-token-reuse-cause", causes.joined(separator: ",")),
            ]
            return try answer(session.id, session.currentToken, fields, now)
        }
        session.counter += 1
        session.refreshedAt = now
        sessions[session.id] = session
        return try answer(session.id, session.currentToken, [("sb-auth-refresh-token-rotated", "true")], now)
    }

    private mutating func answer(
        _ sessionID: String, _ token: String, _ fields: [(String, String)], _ now: Int
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard let session = sessions[sessionID] else { throw .failure }
        let members = try tokens(sessionID, refreshToken: token, at: now)
        let mark =
            session.isCounted
            ? ("sb-auth-refresh-token-counter", String(session.counter))
            : ("sb-auth-refresh-token-prefix", String(token.prefix(5)))
        let names = [("sb-auth-user-id", session.userID), ("sb-auth-session-id", sessionID), mark]
        return SupabaseResponses.json(.object(members), fields: names + fields)
    }

    /// The limits of a session are checked only here.
    private func check(_ session: SupabaseSession, at now: Int) throws(SupabaseErrorResponse) {
        guard let user = users[session.userID] else { throw SupabaseProject.unknown }
        try checkBan(user, at: now)
        let limits = [session.endsAt, settings.timebox.map { session.createdAt + $0 }]
        if limits.contains(where: { $0.map { now > $0 } ?? false }) {
            throw SupabaseProject.dead("session_expired", "Session Expired")
        }
        if let inactivity = settings.inactivity, now > session.refreshedAt + inactivity {
            throw SupabaseProject.dead("session_expired", "Session Expired (Inactivity)")
        }
        if let limit = settings.lowLevelLifetime, session.level == "aal1", user.hasVerifiedFactor,
            now > session.createdAt + limit
        {
            throw SupabaseProject.dead("session_expired", "Session Expired (Low AAL: User Needs MFA Verification)")
        }
        guard session.clientID == nil else {
            throw .oauth("invalid_client", "Client authentication required for OAuth session")
        }
        let isOutdone = sessions.values.contains {
            $0.userID == session.userID && $0.id != session.id
                && ($0.createdAt, $0.refreshedAt) > (session.createdAt, session.refreshedAt)
        }
        if settings.singleSession, isOutdone {
            throw SupabaseProject.dead("session_expired", "Session Expired (Revoked by Newer Login)")
        }
    }

    private func checkBan(_ user: SupabaseUser, at now: Int) throws(SupabaseErrorResponse) {
        if user.isBanned(at: now) { throw SupabaseProject.dead("user_banned", "User Banned") }
    }
}

extension SupabaseSettings {
    /// Whether a session is among those that get a counted token for a row. For one session the result is always the
    /// same.
    fileprivate func upgrades(_ session: SupabaseSession) -> Bool {
        guard refreshTokens == .v2, let digest = Digest.sha256(session.id).first else { return false }
        return Int(digest) * 100 < upgradePercentage * 256
    }
}
