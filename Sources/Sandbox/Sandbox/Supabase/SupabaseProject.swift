internal import LocalHTTP
internal import RingbackBase

/// A Supabase project: the Auth server, the REST endpoint and Edge Functions below `/auth/v1`, `/rest/v1` and
/// `/functions/v1` of an issuer, which is also every external provider of the project. Written from responses of the
/// real server; Edge Functions from its documentation.
struct SupabaseProject {
    private let url: String
    var settings = SupabaseSettings()
    var users = SupabaseUsers()
    var sessions = SupabaseSessions()
    var keys = SupabaseKeys()
    var mail = SupabaseMail()
    var flows = SupabaseFlows()
    var tables = ["profiles": SupabaseTable()]
    var factorChallenges: [String: SupabaseFactorChallenge] = [:]
    var passkeyChallenges: [String: SupabasePasskeyChallenge] = [:]
    /// What users have allowed the clients of the project's own OAuth server; nil while that server is off.
    var consents: [SupabaseConsent]?
    private var limits = SupabaseLimits()

    init(url: String) { self.url = url }

    mutating func runTrigger() {
        let added = users.takeAdded()
        guard settings.profileTrigger else { return }
        for user in added { addProfile(of: user, at: user.updatedAt) }
    }

    /// First the gateway, which requires an API key. Unknown paths and methods get the response of the real router.
    mutating func answer(
        _ request: SandboxRequest, _ endpoint: Endpoint, upstream: inout AuthorizationServer, at now: Int
    ) -> ServerResponse {
        let call = SupabaseCall(request, settings: settings, projectURL: url, at: now)
        if let answer = call.gatewayResponse(endpoint) { return answer }
        let before = settings.tokenHook == nil ? nil : self
        do {
            if endpoint == .supabaseREST { return try answerREST(call) }
            if endpoint == .supabaseFunctions {
                let claims = call.bearer.flatMap { try? keys.claims(of: $0, at: now) }
                return EdgeFunctions.answer(call, isTokenValid: claims != nil)
            }
            guard let path = SupabaseRoute.all.first(where: { $0.matches(call.parts) })?.path else {
                return SupabaseResponses.unknownPath()
            }
            guard let route = SupabaseRoute.all.first(where: { $0.path == path && $0.methods.contains(call.method) })
            else { return SupabaseResponses.empty(405) }
            defer { runTrigger() }
            if route.isLimited { try limits.throttle(call) }
            try call.checkCaptcha(route)
            if route.endpoint == .supabasePasskeys {
                try require(settings.allowsPasskeys, 404, "passkey_disabled", "Passkeys are disabled")
            }
            return try route.answer(&self, call, &upstream)
        } catch {
            let failure = error as? SupabaseError ?? .failure
            // The hook is asked within a transaction. If it refuses, nothing has happened.
            if let before, failure == before.settings.tokenHook { self = before }
            return endpoint == .supabaseREST
                ? SupabaseResponses.restRefusal(failure) : SupabaseResponses.refusal(failure, version: call.version)
        }
    }

    fileprivate mutating func grant(
        _ call: SupabaseCall, _ upstream: inout AuthorizationServer
    ) throws -> ServerResponse {
        let type = call.query("grant_type") ?? ""
        upstream.issuer.counters.tokenRequests[type.isEmpty ? "none" : type, default: 0] += 1
        switch type {
        case "password": return try passwordGrant(call)
        case "refresh_token": return try refreshGrant(call, &upstream.issuer.counters)
        case "pkce": return try codeGrant(call)
        case "id_token": return try idTokenGrant(call, &upstream)
        case "web3": throw SupabaseError(422, "web3_provider_disabled", "Web3 provider is disabled")
        default: throw SupabaseError(400, "invalid_credentials", "unsupported_grant_type")
        }
    }
}

/// An operation of the Auth server: its path below `/auth/v1/`, and what answers it.
struct SupabaseRoute {
    typealias Answer = @Sendable (inout SupabaseProject, SupabaseCall) throws -> ServerResponse
    typealias ExternalAnswer =
        @Sendable (inout SupabaseProject, SupabaseCall, inout AuthorizationServer) throws -> ServerResponse

    let methods: [String]
    /// `*` stands for one part of the path, `**` for all that follow.
    let path: String
    let endpoint: Endpoint
    let isLimited: Bool
    /// A POST needs a CAPTCHA token, if the project wants one.
    var isGuarded = false
    let answer: ExternalAnswer

    private static func external(
        _ methods: String, _ path: String, _ endpoint: Endpoint, isLimited: Bool = false,
        _ answer: @escaping ExternalAnswer
    ) -> SupabaseRoute {
        let methods = methods.split(separator: " ").map(String.init)
        return SupabaseRoute(methods: methods, path: path, endpoint: endpoint, isLimited: isLimited, answer: answer)
    }

    private static func own(
        _ methods: String, _ path: String, _ endpoint: Endpoint, isLimited: Bool = false, _ answer: @escaping Answer
    ) -> SupabaseRoute {
        external(methods, path, endpoint, isLimited: isLimited) { project, call, _ in try answer(&project, call) }
    }

    /// One that any program may call as often as it likes: limited and guarded.
    private static func open(_ path: String, _ endpoint: Endpoint, _ answer: @escaping Answer) -> SupabaseRoute {
        var route = own("POST", path, endpoint, isLimited: true, answer)
        route.isGuarded = true
        return route
    }

    private static let off: Answer = { _, _ in throw SupabaseError.serverIsOff }

    /// The first path that matches counts.
    static let all: [SupabaseRoute] = [
        .own("GET", "authorize", .supabaseAuthorize) { try $0.authorize($1) },
        .external("GET POST", "callback", .supabaseCallback) { try $0.callback($1, &$2) },
        .external("GET POST", "sso/saml/acs", .supabaseCallback) { try $0.callback($1, &$2) },
        .external("POST", "token", .supabaseToken, isLimited: true) { try $0.grant($1, &$2) },
        .open("signup", .supabaseSignUp) { try $0.signUp($1) },
        .open("otp", .supabaseOTP) { try $0.sendCode($1) },
        .open("magiclink", .supabaseOTP) { try $0.sendLink($1.body(), $1) },
        .open("recover", .supabaseRecover) { try $0.recover($1) },
        .open("resend", .supabaseResend) { try $0.resend($1) },
        .own("GET", "verify", .supabaseVerify, isLimited: true) { try $0.followLink($1) },
        .own("POST", "verify", .supabaseVerify, isLimited: true) { try $0.verify($1) },
        .own("GET", "user", .supabaseUser) { SupabaseResponses.json(value: try $0.authenticate($1).user) },
        .own("PUT", "user", .supabaseUser, isLimited: true) { try $0.updateUser($1) },
        .own("GET", "user/identities/authorize", .supabaseIdentities) { try $0.authorizeLinking($1) },
        .own("DELETE", "user/identities/*", .supabaseIdentities) { try $0.unlink($1) },
        .own("GET", "user/oauth/grants", .supabaseIdentities) { try $0.grants($1) },
        .own("DELETE", "user/oauth/grants", .supabaseIdentities) { try $0.revokeGrant($1) },
        .own("GET", "reauthenticate", .supabaseReauthenticate) { try $0.reauthenticate($1) },
        .own("POST", "logout", .supabaseLogout) { try $0.logOut($1) },
        .open("sso", .supabaseSSO) { try $0.signOn($1) },
        .own("POST", "factors", .supabaseFactors) { try $0.enroll($1) },
        .own("DELETE", "factors/*", .supabaseFactors) { try $0.removeFactor($1) },
        .own("POST", "factors/*/challenge", .supabaseFactors, isLimited: true) { try $0.challengeFactor($1) },
        .own("POST", "factors/*/verify", .supabaseFactors, isLimited: true) { try $0.verifyFactor($1) },
        .own("GET", "passkeys", .supabasePasskeys) { try $0.passkeys($1) },
        .own("GET", "passkeys/", .supabasePasskeys) { try $0.passkeys($1) },
        .own("PATCH", "passkeys/*", .supabasePasskeys) { try $0.renamePasskey($1) },
        .own("DELETE", "passkeys/*", .supabasePasskeys) { try $0.removePasskey($1) },
        .open("passkeys/authentication/options", .supabasePasskeys) { $0.askPasskey($1) },
        .own("POST", "passkeys/authentication/verify", .supabasePasskeys) { try $0.signInByPasskey($1) },
        .own("POST", "passkeys/registration/options", .supabasePasskeys) { try $0.askNewPasskey($1) },
        .own("POST", "passkeys/registration/verify", .supabasePasskeys) { try $0.addPasskey($1) },
        .own("GET", "settings", .supabaseSettings) { project, _ in project.settings.publicResponse() },
        .own("GET", "health", .supabaseHealth) { _, _ in
            let description = "GoTrue is a user registration and authentication API"
            return SupabaseResponses.json(["version": "v2.196.0", "name": "GoTrue", "description": description])
        },
        .own("GET", ".well-known/jwks.json", .supabaseJWKS) { project, _ in
            SupabaseResponses.json(
                ["keys": project.keys.published(for: project.settings.algorithm)],
                fields: [("Cache-Control", "public, max-age=600")])
        },
        .own("GET", ".well-known/openid-configuration", .supabaseOther) { $0.settings.metadata($1.authURL) },
        .own("GET", ".well-known/oauth-authorization-server", .supabaseOther, off),
        .own("GET POST PATCH DELETE", "oauth/**", .supabaseOther, off),
    ]

    func matches(_ parts: [String]) -> Bool {
        let pattern = path.split(separator: "/", omittingEmptySubsequences: false)
        if pattern.last == "**" { return parts.count >= pattern.count && parts[0] == pattern[0] }
        return parts.count == pattern.count && zip(pattern, parts).allSatisfy { $0 == "*" || $0 == $1 }
    }
}

/// The settings of a dashboard; durations in seconds. **A** is a development server, **B** a strict project.
struct SupabaseSettings: Equatable {
    enum Configuration: String, CaseIterable, SettingValue { case a = "A", b = "B" }
    /// `v0` tokens are those of very old servers. A server that issues other tokens no longer accepts them.
    enum RefreshTokens: String, CaseIterable, SettingValue { case v0, v1, v2 }
    enum Algorithm: String, CaseIterable, SettingValue {
        case hs256 = "HS256", es256 = "ES256", rs256 = "RS256", edDSA = "EdDSA"
    }
    /// Wrong signatures: by a key that the project does not publish, the same without a key id, or by another secret.
    enum Forgery: String, CaseIterable, SettingValue { case key, nameless, secret }

    var configuration = Configuration.a
    var autoconfirm = true
    var phoneAutoconfirm = false
    var algorithm = Algorithm.hs256
    var refreshTokens = RefreshTokens.v1
    /// Of a hundred sessions so many get a token of the second kind for one of the first, if it is issued.
    var upgradePercentage = 0
    var reuseInterval = 10
    var rotates = true
    /// Replaced tokens of the second kind are accepted for ever.
    var allowsReuse = false
    var siteURL = "https://app.example.org"
    var allowList: [String] = ["**"]
    var accessTokenLifetime = 3_600
    var namesIssuer = true
    /// The API keys that are accepted; empty for no gateway at all.
    var apiKeys = ["sb_publishable_sandbox"]
    /// Access tokens name this issuer in place of the project's.
    var issuer: String?
    /// Signs access tokens in the project's place.
    var forgery: Forgery?
    /// External providers that are enabled. Each of them is the issuer of which the project is a part.
    var providers = ["apple", "azure", "github", "google"]
    var allowsSignUp = true
    var allowsEmail = true
    var allowsPhone = true
    var allowsAnonymous = true
    var allowsLinking = true
    var factors = ["phone", "totp"]
    var allowsPasskeys = false
    /// The domain of passkeys and of factors of authenticators, and the origins at which they are made and used.
    var passkeyPartyID = "app.example.org"
    var passkeyOrigins = ["https://app.example.org"]
    var maxPasskeys = 10
    var ssoDomains = ["company.example": "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"]
    var securesEmailChange = true
    /// A password is changed only with a code, unless the session is younger than a day.
    var securesPasswordChange = false
    var requiresCurrentPassword = false
    var minPasswordLength = 6
    var requiresDigit = false
    var leakedPasswords: [String] = []
    var otpLifetime = 3_600
    var smsLifetime = 60
    var otpLength = 6
    /// The pause between two mails of a kind to one user, and between two messages.
    var mailInterval = 0
    var smsInterval = 0
    var flowLifetime = 300
    var relayLifetime = 120
    /// When sessions end: so long after they began; so long after the last refresh; without a second factor.
    var timebox: Int?
    var inactivity: Int?
    var lowLevelLifetime: Int?
    var singleSession = false
    /// How many requests a bucket allows in five minutes; nil for no limit.
    var requestLimit: Int?
    var mailLimit: Int?
    var captcha: String?
    /// The error of the hook that is asked before an access token is made; nil if there is no hook, or if it agrees.
    var tokenHook: SupabaseError?
    var profileTrigger = true

    init(_ configuration: Configuration = .a) {
        self.configuration = configuration
        guard configuration == .b else { return }
        autoconfirm = false
        algorithm = .es256
        refreshTokens = .v2
        reuseInterval = 0
        allowList = []
        mailInterval = 60
        smsInterval = 60
    }

    var relyingParty: PasskeyCeremony.Party { .init(id: passkeyPartyID, origins: passkeyOrigins) }
    var redirectRules: SupabaseRedirectRules { SupabaseRedirectRules(siteURL: siteURL, allowed: allowList) }
}

struct SupabaseLimits {
    private var buckets: [String: (tokens: Double, at: Int)] = [:]

    mutating func throttle(_ call: SupabaseCall) throws {
        guard let limit = call.settings.requestLimit else { return }
        let isFactor = call.parts.first == "factors"
        let name = "\(isFactor ? call.parts[2] + " factor" : call.parts.joined(separator: "/")) \(call.address)"
        try require(
            take(name, limit: limit, seconds: 300, at: call.now), 429, "over_request_rate_limit",
            "Request rate limit reached")
    }

    /// Takes a token from a bucket that is filled up within so many seconds; false if there is none.
    mutating func take(_ name: String, limit: Int, seconds: Int, at now: Int) -> Bool {
        var bucket = buckets[name] ?? (Double(limit), now)
        let gained = Double(now - bucket.at) * Double(limit) / Double(seconds)
        bucket.tokens = min(Double(limit), bucket.tokens + gained)
        bucket.at = now
        defer { buckets[name] = bucket }
        guard bucket.tokens >= 1 else { return false }
        bucket.tokens -= 1
        return true
    }
}

/// The names of a Supabase project's paths in switches, counters and the log: one for each group.
extension Endpoint {
    static let supabaseRoot = "/auth/v1/"
    static let restRoot = "/rest/v1/"
    static let functionsRoot = "/functions/v1/"
    var isSupabase: Bool { rawValue.hasPrefix("supabase_") }

    init?(supabasePath path: String) {
        if path.hasPrefix(Endpoint.functionsRoot) {
            self = .supabaseFunctions
            return
        }
        let isAuth = path.hasPrefix(Endpoint.supabaseRoot)
        guard isAuth || path.hasPrefix(Endpoint.restRoot) else { return nil }
        let below = path.dropFirst(Endpoint.supabaseRoot.utf8.count)
        let groups: [Substring: Endpoint] = [
            "factors": .supabaseFactors, "passkeys": .supabasePasskeys, "user": .supabaseIdentities,
        ]
        let group = groups[below.split(separator: "/", omittingEmptySubsequences: false).first ?? ""]
        let exact = SupabaseRoute.all.first { $0.path == below }?.endpoint
        self = isAuth ? exact ?? group ?? .supabaseOther : .supabaseREST
    }
}
