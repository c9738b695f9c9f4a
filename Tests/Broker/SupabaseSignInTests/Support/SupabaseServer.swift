import Cryptography
import RingbackBase

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

/// What a project's Auth server knows and how it answers: a value, so that every request is one turn.
struct SupabaseServer: Sendable {
    struct Identity: Sendable {
        let id: String
        let provider: String
        /// As the server writes it.
        var createdAt = "2026-03-02T08:14:55.1Z"
    }
    struct Factor: Sendable {
        let id: String
        let kind: String
        var name: String
        var isVerified = false
    }
    struct User: Sendable {
        let id: String
        var email = ""
        var phone = ""
        var password: String?
        var isConfirmed = true
        var isAnonymous = false
        var newEmail: String?
        var newPhone: String?
        var hasConfirmedOne = false
        var data = JSONObject()
        var identities: [Identity] = []
        /// As the server writes it.
        var lastSignInAt: String?
        var factors: [Factor] = []
    }
    struct Session: Sendable {
        let user: String
        var assurance = "aal1"
        /// The newest first.
        var methods: [String]
        /// v2: how many refresh tokens there were.
        var counter = 0
        /// v1: every token, its parent, and when it was revoked.
        var rows: [Row] = []
        var refreshedAt: Int
    }
    struct Row: Sendable {
        let token: String
        let parent: String?
        var revokedAt: Int?
    }
    /// A browser that is on its way, or a mail's link.
    struct Return: Sendable {
        let redirectTo: String
        let challenge: String
        let method: String
        let startedAt: Int
        /// The user who adds an identity.
        var linking: String?
    }
    struct Mail: Sendable {
        var code: String
        var link: Return?
        var sentAt: Int
        /// The user whose change it confirms, and what is changed.
        var change: String?
        var kind: String?
    }
    struct Code: Sendable {
        let flow: Return
        let user: String
    }
    enum Signature: Sendable { case es256, hs256 }

    let origin: String
    var mint: TokenMint
    /// The keys that are published; nil for the mint's.
    var published: [JSON]?
    var signature = Signature.es256
    /// Tokens with a counter; else with rows.
    var hasCounters = true
    /// Seconds.
    var reuseInterval = 0
    var lifetime: Int? = 3_600
    var confirmsItself = true
    var providers: Set<String> = ["google", "apple"]
    var sendInterval = 60
    /// Both addresses confirm a change.
    var securesEmailChange = true
    var users: [String: User] = [:]
    var sessions: [String: Session] = [:]
    var access: [String: (session: String, expiresAt: Int)] = [:]
    var returns: [String: Return] = [:]
    var codes: [String: Code] = [:]
    var mails: [String: Mail] = [:]
    var challenges: [String: String] = [:]
    private var serial = 0

    init(origin: String, mint: TokenMint) {
        self.origin = origin
        self.mint = mint
    }

    /// Names that are UUIDs and can be told apart.
    mutating func uuid() -> String {
        serial += 1
        let digits = String(serial)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.utf8.count) + digits
    }

    mutating func number() -> Int {
        serial += 1
        return serial
    }

    func user(email: String) -> User? { users.values.first { !email.isEmpty && $0.email == email } }
    func user(phone: String) -> User? { users.values.first { !phone.isEmpty && $0.phone == phone } }

    @discardableResult
    mutating func addUser(
        email: String = "", phone: String = "", password: String? = nil, isConfirmed: Bool = true,
        provider: String = "email"
    ) -> User {
        var user = User(id: uuid(), email: email, phone: phone, password: password, isConfirmed: isConfirmed)
        user.isAnonymous = email.isEmpty && phone.isEmpty
        if !user.isAnonymous { user.identities = [Identity(id: uuid(), provider: provider)] }
        users[user.id] = user
        return user
    }

    mutating func open(_ user: String, _ method: String, at now: Int, providerToken: String? = nil) -> ProjectReply {
        let id = "s\(number())"
        sessions[id] = Session(user: user, methods: [method], refreshedAt: now)
        if !hasCounters { sessions[id]?.rows = [Row(token: "\(id)-r0", parent: nil)] }
        var reply = issue(id, at: now)
        if let providerToken {
            reply.body = reply.body.setting("provider_token", .string(providerToken))
                .setting("provider_refresh_token", "upstream-refresh")
        }
        return reply
    }

    func current(_ id: String) -> String {
        guard let session = sessions[id] else { return "" }
        return hasCounters ? "\(id)-\(session.counter)" : session.rows.last { $0.revokedAt == nil }?.token ?? ""
    }

    /// The answer with a session: another access token and the refresh token that counts now.
    mutating func issue(_ id: String, at now: Int) -> ProjectReply {
        guard let session = sessions[id], let user = users[session.user] else { return .no(500, "unexpected_failure") }
        let life = lifetime ?? 3_600
        let methods = session.methods.map { JSON.object(JSONObject([.init("method", .string($0))])) }
        let claims: JSON = [
            "iss": .string("\(origin)/auth/v1"), "sub": .string(user.id), "aud": "authenticated",
            "role": "authenticated", "exp": .integer(now + life), "iat": .integer(now), "email": .string(user.email),
            "aal": .string(session.assurance), "session_id": .string(id), "amr": .array(methods),
            "jti": .integer(number()),
        ]
        let token = signed(claims)
        access[token] = (id, now + life)
        var body: JSON = [
            "access_token": .string(token), "token_type": "bearer", "refresh_token": .string(current(id)),
            "user": json(user),
        ]
        body = body.setting("expires_in", lifetime.map { .integer($0) })
        return ProjectReply(body: body.setting("expires_at", lifetime.map { .integer(now + $0) }))
    }

    func signed(_ claims: JSON) -> String {
        if signature == .es256 { return (try? mint.token(claims)) ?? "" }
        // Only the server can check it; it knows its own.
        let header: JSON = ["alg": "HS256", "typ": "JWT"]
        let parts = [header.serialized(), claims.serialized(), Digest.sha256(claims.serialized())]
        return parts.map { Base64URL.encode($0) }.joined(separator: ".")
    }

    mutating func refresh(_ token: String, at now: Int) -> ProjectReply {
        hasCounters ? refreshByCounter(token, at: now) : refreshByRows(token, at: now)
    }

    private mutating func refreshByCounter(_ token: String, at now: Int) -> ProjectReply {
        let parts = token.split(separator: "-")
        guard parts.count == 2, let given = Int(parts[1]) else { return .no(400, "validation_failed") }
        let id = String(parts[0])
        guard let session = sessions[id] else { return .no(400, "refresh_token_not_found") }
        switch session.counter - given {
        case ..<0: return .no(400, "validation_failed", "Not Issued By This Server")
        case 0:
            sessions[id]?.counter += 1
            sessions[id]?.refreshedAt = now
        case 1: break
        case _ where now - session.refreshedAt < reuseInterval: break
        default:
            sessions[id] = nil
            return .no(400, "refresh_token_already_used")
        }
        return issue(id, at: now)
    }

    private mutating func refreshByRows(_ token: String, at now: Int) -> ProjectReply {
        guard let (id, session) = sessions.first(where: { $0.value.rows.contains { $0.token == token } }),
            let index = session.rows.firstIndex(where: { $0.token == token })
        else { return .no(400, "refresh_token_not_found") }
        let active = session.rows.last { $0.revokedAt == nil }
        if let revokedAt = session.rows[index].revokedAt {
            if active?.parent == token { return issue(id, at: now) }
            guard now - revokedAt < reuseInterval else {
                for row in session.rows.indices { sessions[id]?.rows[row].revokedAt = now }
                return .no(400, "refresh_token_already_used")
            }
        }
        sessions[id]?.rows[index].revokedAt = now
        sessions[id]?.rows.append(Row(token: "\(id)-r\(session.rows.count)", parent: token))
        sessions[id]?.refreshedAt = now
        return issue(id, at: now)
    }

    /// A second factor puts the session two tokens further, so that the one before counts as used.
    mutating func rise(_ id: String, by method: String, at now: Int) -> ProjectReply {
        sessions[id]?.assurance = "aal2"
        sessions[id]?.methods.insert(method, at: 0)
        if hasCounters {
            sessions[id]?.counter += 2
        } else {
            for row in sessions[id]?.rows.indices ?? 0..<0 { sessions[id]?.rows[row].revokedAt = now }
            let row = Row(token: "\(id)-m\(number())", parent: nil)
            sessions[id]?.rows.append(row)
        }
        sessions[id]?.refreshedAt = now
        return issue(id, at: now)
    }

    mutating func returnFromProvider(_ named: String, _ email: String, at now: Int) -> String? {
        guard let flow = returns.removeValue(forKey: named) else { return nil }
        let user: String
        if let linking = flow.linking {
            let identity = Identity(id: uuid(), provider: flow.method)
            users[linking]?.identities.append(identity)
            user = linking
        } else {
            user = (self.user(email: email) ?? addUser(email: email, provider: flow.method)).id
            // Whoever has the same confirmed address: in silence.
            if users[user]?.identities.contains(where: { $0.provider == flow.method }) == false {
                let identity = Identity(id: uuid(), provider: flow.method)
                users[user]?.identities.append(identity)
            }
        }
        return callback(flow, user)
    }

    mutating func followLink(_ email: String, at now: Int) -> String? {
        if mails[email]?.change != nil { return followChange(email) }
        guard let flow = mails[email]?.link, let user = user(email: email) else { return nil }
        mails[email]?.link = nil
        users[user.id]?.isConfirmed = true
        return callback(flow, user.id)
    }

    /// The query is re-encoded and sorted.
    mutating func callback(_ flow: Return, _ user: String) -> String {
        let code = uuid()
        codes[code] = Code(flow: flow, user: user)
        let parts = flow.redirectTo.split(separator: "?", maxSplits: 1).map(String.init)
        var pairs = (try? FormEncoding.parse(parts.count > 1 ? parts[1] : ""))?.map { ($0.name, $0.value) } ?? []
        pairs.append(("code", code))
        return "\(parts.first ?? "")?\(FormEncoding.encode(pairs.sorted { $0.0 < $1.0 }))"
    }
}
