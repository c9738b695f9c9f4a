internal import Cryptography
internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// A Supabase project: the Auth server and the REST endpoint below `/auth/v1` and `/rest/v1` of an issuer, which is
/// also every external provider of the project. Written from responses of the real server. Each endpoint is an
/// extension in a file of its own.
struct SupabaseProject {
    /// Without a final slash.
    let url: String
    var settings = SupabaseSettings()
    /// By id.
    var users: [String: SupabaseUser] = [:]
    var sessions: [String: SupabaseSession] = [:]
    /// The session that a refresh token of the first kind belongs to; kept when the session has ended.
    var rowOwners: [String: String] = [:]
    /// The users of tokens of the first kind that never had a session: very old servers had no sessions.
    var strayTokens: [String: String] = [:]
    /// In the order they began.
    var flows: [SupabaseFlow] = []
    /// The mails and messages that were sent, in order.
    var sentMessages: [SentMessage] = []
    var challenges: [String: SupabaseFactorChallenge] = [:]
    var passkeyChallenges: [String: SupabasePasskeyChallenge] = [:]
    var buckets: [String: SupabaseBucket] = [:]
    var tables = SupabaseTables()
    var keys = SupabaseKeys()
    private var ticks = 0

    init(url: String) {
        self.url = url
    }

    var authURL: String { url + "/auth/v1" }

    /// A time that keeps the order of events: within one second, each is later than the last.
    mutating func instant(_ now: Int) -> SupabaseInstant {
        ticks += 1
        return SupabaseInstant(seconds: now, nanoseconds: ticks * 1_013_370 % 1_000_000_000)
    }

    func user(email: String) -> SupabaseUser? {
        users.values.first { !email.isEmpty && $0.email == email && !$0.isManaged }
    }

    func user(phone: String) -> SupabaseUser? { users.values.first { !phone.isEmpty && $0.phone == phone } }

    func user(provider: String, subject: String) -> SupabaseUser? {
        users.values.first { user in
            user.identities.contains { $0.provider == provider && $0.subject == subject }
        }
    }

    /// Stores a user who is new or has changed.
    mutating func save(_ user: SupabaseUser, at now: Int) {
        var user = user
        user.updatedAt = instant(now)
        let isNew = users[user.id] == nil
        users[user.id] = user
        if isNew, settings.profileTrigger { tables.addProfile(of: user, at: user.updatedAt) }
    }

    /// The user and the session of a request's bearer token.
    func authenticate(
        _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> (user: SupabaseUser, session: SupabaseSession) {
        guard let token = call.bearer else {
            throw SupabaseErrorResponse(401, "no_authorization", "This endpoint requires a valid Bearer token")
        }
        let claims = try keys.claims(of: token, at: call.now)
        guard let subject = claims["sub"]?.string else {
            throw SupabaseErrorResponse(403, "bad_jwt", "invalid claim: missing sub claim")
        }
        guard let user = users[subject] else {
            throw SupabaseErrorResponse(403, "user_not_found", "User from sub claim in JWT does not exist")
        }
        guard let session = claims["session_id"]?.string.flatMap({ sessions[$0] }) else {
            throw SupabaseErrorResponse(
                403, "session_not_found", "Session from session_id claim in JWT does not exist")
        }
        if user.isBanned(at: call.now) { throw SupabaseErrorResponse(403, "user_banned", "User is banned") }
        guard (call.field("X-JWT-AUD") ?? "authenticated") == claims["aud"]?.string else {
            throw .validation("Token audience doesn't match request audience")
        }
        return (user, session)
    }

    /// Ends the sessions that match.
    mutating func endSessions(where isPicked: (SupabaseSession) -> Bool) {
        sessions = sessions.filter { !isPicked($0.value) }
    }

    /// Where the user is redirected in the end.
    func redirectTarget(_ call: SupabaseCall) -> String {
        let rules = settings.redirectRules
        let asked = call.field("redirect_to") ?? call.query("redirect_to") ?? ""
        if rules.accepts(asked) { return asked }
        let referrer = call.field("Referer") ?? ""
        return rules.accepts(referrer) ? referrer : settings.siteURL
    }
}

/// A sign-in that a redirect is to finish: with a browser at a provider, or from a link in a mail.
struct SupabaseFlow {
    enum Upstream { case none, oauth, sso }

    /// What the provider gets as `state`.
    let id = SupabaseText.uuid()
    /// What the app gets as `code`.
    let code = SupabaseText.uuid()
    let provider: String
    /// The method in the session's proof.
    let method: String
    var upstream = Upstream.none
    /// Nil for the implicit flow.
    let challenge: SupabaseChallenge?
    let redirectTo: String
    let createdAt: Int
    /// The verifier for the provider's own PKCE.
    var verifier = ""
    /// The user to whom an identity is to be linked.
    var linkTo: String?
    var userID: String?
    /// When the link in the mail was opened.
    var openedAt: Int?
    var isUsed = false
    var providerToken: String?
    var providerRefreshToken: String?

    func hasExpired(at now: Int, lifetime: Int) -> Bool {
        // The lifetime of a magic link begins when it is opened. All others begin with the flow.
        now - (method == "magiclink" ? openedAt ?? createdAt : createdAt) > lifetime
    }
}
