internal import Cryptography

/// The sessions of a project and their refresh tokens.
struct SupabaseSessions {
    private var byID: [String: SupabaseSession] = [:]
    /// The session that a refresh token of the first kind belongs to; kept when the session has ended.
    private var rowOwners: [String: String] = [:]
    /// The users of tokens of the first kind that never had a session: very old servers had no sessions.
    private var strayTokens: [String: String] = [:]

    subscript(id: String) -> SupabaseSession? { byID[id] }

    /// Returns the new session's id.
    mutating func open(
        _ userID: String, _ proof: SupabaseSession.Proof, _ kind: SupabaseSettings.RefreshTokens, at now: Int
    ) -> String {
        var session = SupabaseSession(
            id: SupabaseText.uuid(), userID: userID, createdAt: now, refreshedAt: now, proofs: [proof],
            isCounted: kind == .v2)
        if !session.isCounted { session.swap(nil, at: now, kind: kind) }
        store(session)
        return session.id
    }

    private mutating func store(_ session: SupabaseSession) {
        byID[session.id] = session
        if !session.isCounted { rowOwners[session.currentToken] = session.id }
    }

    /// Ends the sessions that match. Returns how many.
    @discardableResult
    mutating func end(where isPicked: (SupabaseSession) -> Bool) -> Int {
        let count = byID.count
        byID = byID.filter { !isPicked($0.value) }
        return count - byID.count
    }

    /// The session has two proofs now, and another refresh token. The counter moves by two, so that the old token is
    /// not taken for one whose response was lost.
    mutating func raise(
        _ id: String, by factor: SupabaseFactor, _ kind: SupabaseSettings.RefreshTokens, at now: Int
    ) {
        guard var session = byID[id] else { return }
        let method = factor.kind == .totp ? "totp" : "mfa/\(factor.kind.rawValue)"
        session.proofs.removeAll { $0.method == method }
        session.proofs.insert(.init(method: method, at: now), at: 0)
        session.factorID = factor.id
        if session.isCounted {
            session.counter += 2
        } else {
            session.swap(session.activeRow?.token, at: now, kind: kind)
        }
        store(session)
    }

    /// Takes the second proof from the sessions that a factor has raised.
    mutating func lower(_ factorID: String) {
        change(where: { $0.factorID == factorID }) { session in
            session.proofs.removeAll { $0.isSecondFactor }
            session.factorID = nil
        }
    }

    // MARK: What tests switch

    mutating func change(where isPicked: (SupabaseSession) -> Bool, _ change: (inout SupabaseSession) -> Void) {
        for (id, var session) in byID where isPicked(session) {
            change(&session)
            byID[id] = session
        }
    }

    /// Deletes sessions but leaves their tokens.
    mutating func stray(where isPicked: (SupabaseSession) -> Bool) {
        for session in byID.values where isPicked(session) {
            for row in session.rows { strayTokens[row.token] = session.userID }
            byID[session.id] = nil
        }
    }
}

/// What happens when a refresh token is presented: the current one, one replaced a moment ago or long ago, one never
/// issued.
extension SupabaseSessions {
    /// The session that a refresh token belongs to, and the token to issue.
    struct Refresh {
        let sessionID: String
        let token: String
        let fields: [(String, String)]

        init(_ session: SupabaseSession, _ fields: [(String, String)], token: String? = nil) {
            sessionID = session.id
            self.token = token ?? session.currentToken
            self.fields = fields
        }
    }

    private static let rotated = [("sb-auth-refresh-token-rotated", "true")]

    private static func dead(_ code: String, _ reason: String) -> SupabaseErrorResponse {
        SupabaseErrorResponse(400, code, "Invalid Refresh Token: \(reason)")
    }

    private static let unknown = dead("refresh_token_not_found", "Refresh Token Not Found")
    private static let reused = dead("refresh_token_already_used", "Already Used")

    mutating func refresh(
        _ token: String, _ users: SupabaseUsers, _ settings: SupabaseSettings, at now: Int
    ) throws(SupabaseErrorResponse) -> Refresh {
        if let counted = SupabaseCountedToken(parsing: token) {
            return try refresh(counted, token, users, settings, now)
        }
        let isOld = settings.refreshTokens == .v0 && token.utf8.count == 22
        let isRow = token.utf8.count == 12 && token.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber) }
        guard isOld || isRow else { throw .validation("Refresh token is not valid") }
        return try refresh(row: token, users, settings, now)
    }

    /// The first kind: a row for each token.
    private mutating func refresh(
        row token: String, _ users: SupabaseUsers, _ settings: SupabaseSettings, _ now: Int
    ) throws(SupabaseErrorResponse) -> Refresh {
        if let user = strayTokens.removeValue(forKey: token).flatMap({ users[$0] }) {
            try checkBan(user, at: now)
            throw SupabaseSessions.dead("session_not_found", "No Valid Session Found")
        }
        guard let sessionID = rowOwners[token], var session = byID[sessionID],
            let row = session.rows.first(where: { $0.token == token })
        else { throw SupabaseSessions.unknown }
        try check(session, users, settings, at: now)
        if row.isRevoked {
            // A client that lost the last response presents the active token's parent. It gets the active token again.
            if let active = session.activeRow, active.parent == token {
                return Refresh(session, [("sb-auth-refresh-token-reuse", "true")], token: active.token)
            }
            guard now - row.updatedAt <= settings.reuseInterval else {
                if settings.rotates {
                    session.revokeFamily(at: now)
                    byID[sessionID] = session
                }
                throw SupabaseSessions.reused
            }
        }
        session.swap(token, at: now, kind: settings.refreshTokens)
        if settings.upgrades(session) { session.upgrade(at: now) }
        session.refreshedAt = now
        if rowOwners.count > 200_000 { rowOwners = rowOwners.filter { byID[$0.value] != nil } }
        store(session)
        return Refresh(session, SupabaseSessions.rotated)
    }

    /// The second kind: a counter for each session.
    private mutating func refresh(
        _ counted: SupabaseCountedToken, _ token: String, _ users: SupabaseUsers, _ settings: SupabaseSettings,
        _ now: Int
    ) throws(SupabaseErrorResponse) -> Refresh {
        guard var session = byID[counted.session], session.isCounted, counted.text(key: session.key) == token
        else { throw SupabaseSessions.unknown }
        try check(session, users, settings, at: now)
        let behind = session.counter - counted.counter
        guard behind >= 0 else { throw .validation("Invalid Refresh Token: Not Issued By This Server") }
        if behind > 0 {
            let isSoon = now - session.refreshedAt < settings.reuseInterval
            guard behind == 1 || isSoon || settings.allowsReuse else {
                if settings.rotates { byID[counted.session] = nil }
                throw SupabaseSessions.reused
            }
            var causes = isSoon ? ["concurrent-refresh"] : []
            if behind == 1 { causes.append("fail-to-save") }
            if settings.allowsReuse { causes.append("always-allow") }
            let fields = [
                ("sb-auth-refresh-token-reuse", "true"),
                ("sb-auth-refresh-token-reuse-cause", causes.joined(separator: ",")),
            ]
            return Refresh(session, fields)
        }
        session.counter += 1
        session.refreshedAt = now
        byID[session.id] = session
        return Refresh(session, SupabaseSessions.rotated)
    }

    /// The limits of a session are checked only here.
    private func check(
        _ session: SupabaseSession, _ users: SupabaseUsers, _ settings: SupabaseSettings, at now: Int
    ) throws(SupabaseErrorResponse) {
        guard let user = users[session.userID] else { throw SupabaseSessions.unknown }
        try checkBan(user, at: now)
        let limits = [session.endsAt, settings.timebox.map { session.createdAt + $0 }]
        if limits.contains(where: { $0.map { now > $0 } ?? false }) {
            throw SupabaseSessions.dead("session_expired", "Session Expired")
        }
        if let inactivity = settings.inactivity, now > session.refreshedAt + inactivity {
            throw SupabaseSessions.dead("session_expired", "Session Expired (Inactivity)")
        }
        if let limit = settings.lowLevelLifetime, session.level == "aal1", user.hasVerifiedFactor,
            now > session.createdAt + limit
        {
            throw SupabaseSessions.dead("session_expired", "Session Expired (Low AAL: User Needs MFA Verification)")
        }
        guard session.clientID == nil else {
            throw .oauth("invalid_client", "Client authentication required for OAuth session")
        }
        let isOutdone = byID.values.contains {
            $0.userID == session.userID && $0.id != session.id
                && ($0.createdAt, $0.refreshedAt) > (session.createdAt, session.refreshedAt)
        }
        if settings.singleSession, isOutdone {
            throw SupabaseSessions.dead("session_expired", "Session Expired (Revoked by Newer Login)")
        }
    }

    private func checkBan(_ user: SupabaseUser, at now: Int) throws(SupabaseErrorResponse) {
        if user.isBanned(at: now) { throw SupabaseSessions.dead("user_banned", "User Banned") }
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
