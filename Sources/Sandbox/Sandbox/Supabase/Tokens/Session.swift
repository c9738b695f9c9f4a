internal import Cryptography
internal import Encodings
internal import HTTPMessages
internal import StrictJSON

/// A session: how the user authenticated, and the refresh tokens that were issued for it.
struct SupabaseSession {
    struct Proof: Equatable {
        var method: String
        var at: Int
        var provider: String?

        var isSecondFactor: Bool { method == "totp" || method.hasPrefix("mfa/") }

        var json: JSON {
            var members = JSONObject([.init("method", .string(method)), .init("timestamp", .integer(at))])
            if let provider { members["provider"] = .string(provider) }
            return .object(members)
        }
    }

    /// A refresh token of the first kind.
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
    /// The newest first.
    var proofs: [Proof]
    /// The factor that raised its level.
    var factorID: String?
    /// Counted tokens (v2) instead of rows (v1).
    var isCounted: Bool
    /// When it ends, whatever is done with it. The external provider may state this.
    var endsAt: Int?
    /// The client of the server's own OAuth server that the session belongs to. Its tokens are valid at another
    /// endpoint only.
    var clientID: String?
    var rows: [Row] = []
    var counter = 0
    let key = RandomToken.bytes(32)

    var level: String { proofs.contains { $0.isSecondFactor } ? "aal2" : "aal1" }

    /// The token to issue now.
    var currentToken: String {
        isCounted ? SupabaseCountedToken(session: id, counter: counter).text(key: key) : rows.last?.token ?? ""
    }

    /// The newest row that is not revoked.
    var activeRow: Row? { rows.last { !$0.isRevoked } }

    /// A new token replaces another.
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

    /// Revokes every token that is still valid.
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

    init(session: String, counter: Int) {
        self.session = session
        self.counter = counter
    }

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
