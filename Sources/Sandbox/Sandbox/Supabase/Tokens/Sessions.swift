internal import Cryptography
internal import RingbackBase

struct SupabaseSessions {
    private var byID: [String: SupabaseSession] = [:]
    /// The session that a refresh token of the first kind belongs to; kept when the session has ended.
    private var rowOwners: [String: String] = [:]
    /// The users of tokens of the first kind that never had a session: very old servers had no sessions.
    private var strayTokens: [String: String] = [:]
    subscript(id: String) -> SupabaseSession? { byID[id] }

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

    @discardableResult
    mutating func end(where isPicked: (SupabaseSession) -> Bool) -> Int {
        let count = byID.count
        byID = byID.filter { !isPicked($0.value) }
        return count - byID.count
    }

    /// The session has two proofs now, and another refresh token. The counter moves by two, so that the old token is
    /// not taken for one whose response was lost.
    mutating func raise(_ id: String, by factor: SupabaseFactor, _ kind: SupabaseSettings.RefreshTokens, at now: Int) {
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

/// What a presented refresh token is: the current one, one replaced just now or long ago, one never issued.
extension SupabaseSessions {
    /// The session that a refresh token belongs to, and the token to issue.
    typealias Refresh = (sessionID: String, token: String, fields: [(String, String)])

    private static let rotated = [("sb-auth-refresh-token-rotated", "true")]

    private static func dead(_ code: String, _ reason: String) -> SupabaseError {
        SupabaseError(400, code, "Invalid Refresh Token: \(reason)")
    }

    private static let unknown = dead("refresh_token_not_found", "Refresh Token Not Found")
    private static let banned = dead("user_banned", "User Banned")
    private static let reused = dead("refresh_token_already_used", "Already Used")

    mutating func refresh(
        _ token: String, _ users: SupabaseUsers, _ settings: SupabaseSettings, at now: Int
    ) throws -> Refresh {
        if let counted = SupabaseCountedToken(parsing: token) {
            return try refresh(counted, token, users, settings, now)
        }
        let isOld = settings.refreshTokens == .v0 && token.utf8.count == 22
        let isRow = token.utf8.count == 12 && token.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber) }
        try require(isOld || isRow, "Refresh token is not valid")
        return try refresh(row: token, users, settings, now)
    }

    /// The first kind: a row for each token.
    private mutating func refresh(
        row token: String, _ users: SupabaseUsers, _ settings: SupabaseSettings, _ now: Int
    ) throws -> Refresh {
        if let user = strayTokens.removeValue(forKey: token).flatMap({ users[$0] }) {
            if user.isBanned(at: now) { throw Self.banned }
            throw Self.dead("session_not_found", "No Valid Session Found")
        }
        guard let sessionID = rowOwners[token], var session = byID[sessionID],
            let row = session.rows.first(where: { $0.token == token })
        else { throw Self.unknown }
        try check(session, users, settings, at: now)
        if row.isRevoked {
            // A client that lost the last response presents the active token's parent. It gets the active token again.
            if let active = session.activeRow, active.parent == token {
                return (session.id, active.token, [("sb-auth-refresh-token-reuse", "true")])
            }
            guard now - row.updatedAt <= settings.reuseInterval else {
                if settings.rotates { byID[sessionID]?.revokeFamily(at: now) }
                throw Self.reused
            }
        }
        session.swap(token, at: now, kind: settings.refreshTokens)
        if settings.upgrades(session) { session.upgrade(at: now) }
        session.refreshedAt = now
        if rowOwners.count > 200_000 { rowOwners = rowOwners.filter { byID[$0.value] != nil } }
        store(session)
        return (session.id, session.currentToken, Self.rotated)
    }

    /// The second kind: a counter for each session.
    private mutating func refresh(
        _ counted: SupabaseCountedToken, _ token: String, _ users: SupabaseUsers, _ settings: SupabaseSettings,
        _ now: Int
    ) throws -> Refresh {
        guard var session = byID[counted.session], session.isCounted, counted.text(key: session.key) == token
        else { throw Self.unknown }
        try check(session, users, settings, at: now)
        let behind = session.counter - counted.counter
        try require(behind >= 0, "Invalid Refresh Token: Not Issued By This Server")
        if behind > 0 {
            let isSoon = now - session.refreshedAt < settings.reuseInterval
            guard behind == 1 || isSoon || settings.allowsReuse else {
                if settings.rotates { byID[counted.session] = nil }
                throw Self.reused
            }
            var causes = isSoon ? ["concurrent-refresh"] : []
            if behind == 1 { causes.append("fail-to-save") }
            if settings.allowsReuse { causes.append("always-allow") }
            let fields = [
                ("sb-auth-refresh-token-reuse", "true"),
                ("sb-auth-refresh-token-reuse-cause", causes.joined(separator: ",")),
            ]
            return (session.id, session.currentToken, fields)
        }
        session.counter += 1
        session.refreshedAt = now
        byID[session.id] = session
        return (session.id, session.currentToken, Self.rotated)
    }

    /// The limits of a session are checked only here.
    private func check(
        _ session: SupabaseSession, _ users: SupabaseUsers, _ settings: SupabaseSettings, at now: Int
    ) throws {
        guard let user = users[session.userID] else { throw Self.unknown }
        if user.isBanned(at: now) { throw Self.banned }
        func check(_ end: Int?, _ addition: String = "") throws {
            if now > end ?? .max { throw Self.dead("session_expired", "Session Expired" + addition) }
        }
        try check(session.endsAt)
        try check(settings.timebox.map { session.createdAt + $0 })
        try check(settings.inactivity.map { session.refreshedAt + $0 }, " (Inactivity)")
        if session.level == "aal1", user.hasVerifiedFactor {
            let end = settings.lowLevelLifetime.map { session.createdAt + $0 }
            try check(end, " (Low AAL: User Needs MFA Verification)")
        }
        try require(
            session.clientID == nil, oauth: "invalid_client", "Client authentication required for OAuth session")
        let isOutdone = byID.values.contains {
            $0.userID == session.userID && $0.id != session.id
                && ($0.createdAt, $0.refreshedAt) > (session.createdAt, session.refreshedAt)
        }
        try check(settings.singleSession && isOutdone ? .min : nil, " (Revoked by Newer Login)")
    }
}

extension SupabaseSettings {
    /// Whether a session is among those that get a counted token for a row: always the same for one session.
    fileprivate func upgrades(_ session: SupabaseSession) -> Bool {
        guard refreshTokens == .v2, let digest = Digest.sha256(session.id).first else { return false }
        return Int(digest) * 100 < upgradePercentage * 256
    }
}

/// A session: how the user authenticated, and the refresh tokens that were issued for it.
struct SupabaseSession {
    struct Proof: JSONConvertible {
        var method: String
        var at: Int
        var provider: String?
        var isSecondFactor: Bool { method == "totp" || method.hasPrefix("mfa/") }
        var jsonValue: JSON { .object(["method": method, "timestamp": at, "provider": provider]) }
    }

    struct Row {
        let token: String
        let parent: String?
        var isRevoked = false
        var updatedAt: Int
    }

    private static let maxRows = 1_000
    let id: String
    let userID: String
    let createdAt: Int
    var refreshedAt: Int
    var proofs: [Proof]
    var factorID: String?
    /// Counted tokens (v2) instead of rows (v1).
    var isCounted: Bool
    /// When it ends, whatever is done with it. The external provider may state this.
    var endsAt: Int?
    /// The client of the server's own OAuth server whose session it is. Its tokens are valid at another endpoint.
    var clientID: String?
    var rows: [Row] = []
    var counter = 0
    let key = RandomToken.bytes(32)
    var level: String { proofs.contains { $0.isSecondFactor } ? "aal2" : "aal1" }

    /// A user with a second factor has to have used it.
    func checkLevel(of user: SupabaseUser, _ status: Int, _ message: String) throws {
        try require(level == "aal2" || !user.hasVerifiedFactor, status, "insufficient_aal", message)
    }

    var currentToken: String {
        isCounted ? SupabaseCountedToken(session: id, counter: counter).text(key: key) : rows.last?.token ?? ""
    }

    var activeRow: Row? { rows.last { !$0.isRevoked } }

    mutating func swap(_ token: String?, at now: Int, kind: SupabaseSettings.RefreshTokens = .v1) {
        if let token, let index = rows.firstIndex(where: { $0.token == token }) {
            rows[index].isRevoked = true
            rows[index].updatedAt = now
        }
        // A session that is refreshed for days keeps only its newest rows.
        if rows.count >= SupabaseSession.maxRows { rows.removeFirst(SupabaseSession.maxRows / 2) }
        let fresh =
            kind == .v0
            ? Base64URL.encode(RandomToken.bytes(16))
            : SupabaseText.random(12, from: "abcdefghijklmnopqrstuvwxyz0123456789")
        rows.append(Row(token: fresh, parent: token, updatedAt: now))
    }

    /// From now on the session has counted tokens. The row that was just added is not issued. If a row is upgraded once
    /// more, the counter goes on, so that the second token counts.
    mutating func upgrade(at now: Int) {
        if isCounted { counter += 1 }
        isCounted = true
        revokeFamily(at: now)
    }

    /// The state of so many refreshes ago, as in a database that was restored from a copy.
    mutating func rewind(by count: Int) {
        counter = max(counter - count, 0)
        rows.removeLast(min(count, max(rows.count - 1, 0)))
        if let last = rows.indices.last, !isCounted { rows[last].isRevoked = false }
    }

    mutating func revokeFamily(at now: Int) {
        for index in rows.indices where !rows[index].isRevoked {
            rows[index].isRevoked = true
            rows[index].updatedAt = now
        }
    }
}

/// A refresh token of the second kind: the session's id and a counter, authenticated with the session's own key.
struct SupabaseCountedToken {
    let session: String
    let counter: Int

    func text(key: [UInt8]) -> String {
        let signed = head + HMAC.sha256(head, key: key).prefix(16)
        return Base64URL.encode(signed + Digest.sha256(signed).prefix(4))
    }

    /// Version, session, and the counter as an unsigned varint.
    private var head: [UInt8] {
        var bytes: [UInt8] = [0] + SupabaseText.bytes(ofUUID: session)
        var rest = counter
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}

extension SupabaseCountedToken {
    /// Nil if the alphabet, the length or the checksum is wrong. Whether a session signed it is checked elsewhere.
    init?(parsing text: String) {
        guard text.utf8.count >= 51, let bytes = Base64URL.decode(text), bytes.count >= 38, bytes[0] == 0 else {
            return nil
        }
        let signed = bytes.dropLast(4)
        guard Array(bytes.suffix(4)) == Array(Digest.sha256(Array(signed)).prefix(4)) else { return nil }
        var counter = 0
        var shift = 0
        var digits = signed.dropFirst(17).dropLast(16)
        while let byte = digits.popFirst() {
            guard shift < 56 else { return nil }
            counter |= Int(byte & 0x7F) << shift
            shift += 7
            guard byte & 0x80 != 0 || digits.isEmpty else { return nil }
        }
        session = SupabaseText.uuid(Array(bytes[1..<17]))
        self.counter = counter
    }
}

/// What a project signs access tokens with: a shared secret, or a key whose public half it publishes.
struct SupabaseKeys {
    private struct Key {
        let id: String
        let key: PrivateKey
        let algorithm: SupabaseSettings.Algorithm
    }

    private let secret = RandomToken.bytes(32)
    private var current: Key?
    private var former: [Key] = []

    mutating func rotate(keepsPublished: Bool) {
        former = keepsPublished ? former + [current].compactMap(\.self) : []
        current = nil
    }

    mutating func sign(_ claims: JSONObject, with algorithm: SupabaseSettings.Algorithm) throws -> String {
        guard let kind = algorithm.signature else {
            return JSONWebToken.signed(["alg": "HS256", "typ": "JWT"], claims) { HMAC.sha256($0, key: secret) }
        }
        guard let key = currentKey(for: algorithm) else { throw SupabaseError.failure }
        let header: JSONObject = ["alg": algorithm.rawValue, "kid": key.id, "typ": "JWT"]
        return try JSONWebToken.signed(header, claims) { try key.key.sign(message: $0, algorithm: kind) }
    }

    /// Signs in the project's place. The published keys do not verify the signature.
    static func forge(_ claims: JSONObject, by forgery: SupabaseSettings.Forgery) throws -> String {
        var keys = SupabaseKeys()
        guard forgery == .nameless else { return try keys.sign(claims, with: forgery == .key ? .es256 : .hs256) }
        let key = try PrivateKey.generate(.p256)
        return try JSONWebToken.signed(["alg": "ES256", "typ": "JWT"], claims) {
            try key.sign(message: $0, algorithm: .es256)
        }
    }

    /// If the algorithm has changed, the last key stays published.
    private mutating func currentKey(for algorithm: SupabaseSettings.Algorithm) -> Key? {
        if let current, current.algorithm != algorithm { rotate(keepsPublished: true) }
        if current == nil, let family = algorithm.signature?.family, let key = try? PrivateKey.generate(family) {
            current = Key(id: SupabaseText.uuid(), key: key, algorithm: algorithm)
        }
        return current
    }

    /// The claims of an access token that is valid now.
    func claims(of token: String, at now: Int) throws -> JSONObject {
        func check(_ isMet: Bool, _ problem: String) throws {
            try require(isMet, 403, "bad_jwt", "invalid JWT: unable to parse or verify signature, \(problem)")
        }
        let dots = token.count { $0 == "." }
        try check(dots == 2, "token is malformed: token contains an invalid number of segments")
        let parsed = JSONWebToken(parsing: token)
        try check(parsed != nil, "token is malformed: could not decode its parts")
        try check(parsed.map(isSigned) ?? false, "token signature is invalid: signature is invalid")
        let claims = parsed?.claims ?? JSONObject()
        try check(now < claims["exp"]?.integer ?? 0, "token has invalid claims: token is expired")
        return claims
    }

    private func isSigned(_ token: JSONWebToken) -> Bool {
        let header = token.header
        if header["alg"] == "HS256" { return token.signature == HMAC.sha256(token.message, key: secret) }
        return ([current].compactMap(\.self) + former).contains { key in
            key.id == header["kid"]?.string && key.algorithm.rawValue == header["alg"]?.string
                && token.isSigned(by: key.key.publicKey, key.algorithm.signature)
        }
    }

    mutating func published(for algorithm: SupabaseSettings.Algorithm) -> [JSONObject] {
        guard algorithm != .hs256, let current = currentKey(for: algorithm) else { return [] }
        return ([current] + former).map { key in
            var members: JSONObject = [
                "alg": key.algorithm.rawValue, "ext": true, "key_ops": ["verify"], "kid": key.id, "use": "sig",
            ]
            members.members += key.key.publicKey.webKey.members
            return members
        }
    }
}

extension SupabaseSettings.Algorithm {
    /// Nil for the shared secret.
    fileprivate var signature: SignatureAlgorithm? { SignatureAlgorithm(rawValue: rawValue) }
}
