/// What an issuer has issued, and what happened to it.
///
/// A sign-in starts a family: the code, its refresh tokens and its access tokens. If a code or a replaced refresh token
/// is presented again, the whole family ends, since somebody else may hold a copy (RFC 6749 section 4.1.2, RFC 9700
/// section 4.14.2).
struct Ledger {
    struct Family {
        let clientID: String
        var user: SandboxUser
        let scopes: [String]
        let authenticatedAt: Int
        /// The `sid` claim.
        let sessionID: String
        var isEnded = false
    }

    struct CodeGrant {
        let family: Int
        let redirectURI: String
        let challenge: String
        let nonce: String?
        /// The user was asked for consent.
        let hasConsent: Bool
        let expiresAt: Int
        var isUsed = false
    }

    struct RefreshGrant {
        let family: Int
        let expiresAt: Int?
        /// What it is good for, where that is less than its family's scopes.
        var scopes: [String]?
        /// What replaced it, and when.
        var successor: (token: String, at: Int)?
    }

    struct AccessGrant {
        let family: Int
        /// Not always the family's user: a perturbation may have changed it.
        let user: SandboxUser
        let scopes: [String]
        let expiresAt: Int
        var isRevoked = false
    }

    private(set) var families: [Family] = []
    var codes: [String: CodeGrant] = [:]
    var refreshTokens: [String: RefreshGrant] = [:]
    var accessTokens: [String: AccessGrant] = [:]
    /// The families of ID tokens, which may come back as a hint.
    var idTokens: [String: Int] = [:]

    /// Above this number, expired access tokens and the hints are removed: a benchmark must not fill the memory.
    private static let maxTokens = 50_000

    mutating func open(_ family: Family) -> Int {
        families.append(family)
        return families.count - 1
    }

    mutating func end(_ family: Int) {
        families[family].isEnded = true
    }

    /// Ends the families that match. Returns how many it ended.
    mutating func endAll(where isPicked: (Family) -> Bool) -> Int {
        var count = 0
        for index in families.indices where !families[index].isEnded && isPicked(families[index]) {
            families[index].isEnded = true
            count += 1
        }
        return count
    }

    /// The grant of an access token that is valid now.
    func access(_ token: String, at now: Int) -> AccessGrant? {
        guard let grant = accessTokens[token], !grant.isRevoked, now < grant.expiresAt, !families[grant.family].isEnded
        else { return nil }
        return grant
    }

    mutating func forgetOldTokens(at now: Int) {
        if accessTokens.count > Ledger.maxTokens { accessTokens = accessTokens.filter { $0.value.expiresAt > now } }
        if idTokens.count > Ledger.maxTokens { idTokens = [:] }
    }
}
