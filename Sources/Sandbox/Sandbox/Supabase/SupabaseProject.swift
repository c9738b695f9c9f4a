internal import LocalHTTP
internal import RingbackBase

/// A Supabase project: the Auth server and the REST endpoint below `/auth/v1` and `/rest/v1` of an issuer, which is
/// also every external provider of the project. Written from responses of the real server. It only joins its parts: here
/// each request finds its endpoint.
struct SupabaseProject {
    /// Without a final slash.
    private let url: String
    var settings = SupabaseSettings()
    var accounts = SupabaseAccounts()
    var tables = SupabaseTables()
    fileprivate(set) var codes = SupabaseCodes()
    private var factors = SupabaseFactors()
    private var passkeys = SupabasePasskeys()
    var consents = SupabaseConsents()
    private var limits = SupabaseLimits()

    init(url: String) {
        self.url = url
    }

    /// What the trigger on new users does.
    mutating func runTrigger() {
        let added = accounts.users.takeAdded()
        guard settings.profileTrigger else { return }
        for user in added { tables.addProfile(of: user, at: user.updatedAt) }
    }

    /// The path of a request: first the gateway, which requires an API key, then the endpoint. Unknown paths and methods
    /// get the response of the real server's router.
    mutating func answer(
        _ request: SandboxRequest, _ endpoint: Endpoint, upstream: inout AuthorizationServer, at now: Int
    ) -> ServerResponse {
        let call = SupabaseCall(request, settings: settings, projectURL: url, at: now)
        if let answer = call.gatewayResponse(endpoint) { return answer }
        let before = settings.tokenHook == nil ? nil : self
        do {
            if endpoint == .supabaseREST { return try tables.answer(call, accounts) }
            guard let route = SupabaseRoute.all.first(where: { $0.matches(call.parts) }) else {
                return SupabaseResponses.unknownPath()
            }
            guard route.methods.contains(call.method) else { return SupabaseResponses.empty(405) }
            defer { runTrigger() }
            if route.isLimited || (call.method, route.path) == ("PUT", "user") { try limits.throttle(call) }
            try call.checkCaptcha(route)
            return try answer(call, route, &upstream)
        } catch {
            let failure = error as? SupabaseError ?? .failure
            // The hook is asked within a transaction. If it refuses, nothing has happened.
            if let before, failure == before.settings.tokenHook { self = before }
            return endpoint == .supabaseREST
                ? SupabaseResponses.restRefusal(failure) : SupabaseResponses.refusal(failure, version: call.version)
        }
    }

    private mutating func answer(
        _ call: SupabaseCall, _ route: SupabaseRoute, _ upstream: inout AuthorizationServer
    ) throws -> ServerResponse {
        switch (call.method, route.path) {
        case ("GET", "authorize"): return try codes.flows.authorize(call)
        case (_, "callback"), (_, "sso/saml/acs"): return try codes.flows.callback(call, &accounts, &upstream)
        case ("POST", "token"): return try grant(call, &upstream)
        case ("POST", "signup"): return try codes.signUp(call, &accounts)
        case ("POST", "otp"): return try codes.sendCode(call, &accounts)
        case ("POST", "magiclink"): return try codes.sendLink(call.body(), call, &accounts)
        case ("POST", "recover"): return try codes.recover(call, &accounts)
        case ("POST", "resend"): return try codes.resend(call, &accounts)
        case ("GET", "verify"): return try codes.followLink(call, &accounts)
        case ("POST", "verify"): return try codes.verify(call, &accounts)
        case ("GET", "user"): return SupabaseResponses.json(value: try accounts.authenticate(call).user)
        case ("PUT", "user"): return try codes.updateUser(call, &accounts)
        case ("GET", "reauthenticate"): return try codes.reauthenticate(call, &accounts)
        case ("POST", "logout"): return try accounts.logOut(call)
        case ("POST", "sso"): return try codes.flows.signOn(call)
        case ("GET", "user/identities/authorize"): return try codes.flows.authorizeLinking(call, accounts)
        case ("DELETE", "user/identities/*"): return try accounts.unlink(call)
        case (_, "user/oauth/grants"): return try consents.answer(call, &accounts)
        case ("POST", "factors"): return try factors.enroll(call, &accounts)
        case ("DELETE", "factors/*"): return try factors.remove(call, &accounts)
        case ("POST", "factors/*/challenge"): return try factors.challenge(call, &accounts, &codes.mail)
        case ("POST", "factors/*/verify"): return try factors.verify(call, &accounts)
        case ("GET", "settings"): return settings.shown()
        case ("GET", "health"):
            let description = "GoTrue is a user registration and authentication API"
            return SupabaseResponses.json(["version": "v2.196.0", "name": "GoTrue", "description": description])
        case ("GET", ".well-known/jwks.json"):
            return SupabaseResponses.json(
                ["keys": accounts.keys.published(for: settings.algorithm)],
                fields: [("Cache-Control", "public, max-age=600")])
        case ("GET", ".well-known/openid-configuration"): return settings.metadata(call.authURL)
        case _ where call.parts.first == "passkeys": return try passkeys.answer(call, &accounts)
        default: throw SupabaseError(404, "feature_disabled", "OAuth server is disabled")
        }
    }

    private mutating func grant(_ call: SupabaseCall, _ upstream: inout AuthorizationServer) throws -> ServerResponse {
        let type = call.query("grant_type") ?? ""
        upstream.issuer.counters.tokenRequests[type.isEmpty ? "none" : type, default: 0] += 1
        switch type {
        case "password": return try accounts.passwordGrant(call)
        case "refresh_token": return try refresh(call, &upstream.issuer.counters)
        case "pkce": return try codes.flows.codeGrant(call, &accounts)
        case "id_token": return try accounts.idTokenGrant(call, &upstream)
        case "web3": throw SupabaseError(422, "web3_provider_disabled", "Web3 provider is disabled")
        default: throw SupabaseError(400, "invalid_credentials", "unsupported_grant_type")
        }
    }

    private mutating func refresh(_ call: SupabaseCall, _ counters: inout Counters) throws -> ServerResponse {
        do {
            let answer = try accounts.refreshGrant(call)
            counters.refreshes += 1
            if answer.fields.contains("sb-auth-refresh-token-rotated") { counters.rotations += 1 }
            return answer
        } catch let error as SupabaseError {
            if error.code == "refresh_token_already_used" { counters.reuseDetections += 1 }
            throw error
        }
    }
}

/// A path of the Auth server below `/auth/v1/`.
struct SupabaseRoute {
    /// `*` stands for one part of the path, `**` for all that follow.
    let path: String
    let methods: [String]
    /// The group of the path in switches, counters and the log.
    let endpoint: Endpoint
    /// Requests are counted by address.
    let isLimited: Bool
    /// A POST needs a CAPTCHA token, if the project wants one.
    let isGuarded: Bool

    private init(
        _ path: String, _ methods: [String], _ endpoint: Endpoint, isLimited: Bool = false, isGuarded: Bool = false
    ) {
        self.path = path
        self.methods = methods
        self.endpoint = endpoint
        self.isLimited = isLimited
        self.isGuarded = isGuarded
    }

    /// The first one that matches counts.
    static let all: [SupabaseRoute] = [
        .init("authorize", ["GET"], .supabaseAuthorize),
        .init("callback", ["GET", "POST"], .supabaseCallback),
        .init("sso/saml/acs", ["GET", "POST"], .supabaseCallback),
        .init("token", ["POST"], .supabaseToken, isLimited: true),
        .init("signup", ["POST"], .supabaseSignUp, isLimited: true, isGuarded: true),
        .init("otp", ["POST"], .supabaseOTP, isLimited: true, isGuarded: true),
        .init("magiclink", ["POST"], .supabaseOTP, isLimited: true, isGuarded: true),
        .init("recover", ["POST"], .supabaseRecover, isLimited: true, isGuarded: true),
        .init("resend", ["POST"], .supabaseResend, isLimited: true, isGuarded: true),
        .init("verify", ["GET", "POST"], .supabaseVerify, isLimited: true),
        .init("user", ["GET", "PUT"], .supabaseUser),
        .init("user/identities/authorize", ["GET"], .supabaseIdentities),
        .init("user/identities/*", ["DELETE"], .supabaseIdentities),
        .init("user/oauth/grants", ["GET", "DELETE"], .supabaseIdentities),
        .init("reauthenticate", ["GET"], .supabaseReauthenticate),
        .init("logout", ["POST"], .supabaseLogout),
        .init("sso", ["POST"], .supabaseSSO, isLimited: true, isGuarded: true),
        .init("factors", ["POST"], .supabaseFactors),
        .init("factors/*", ["DELETE"], .supabaseFactors),
        .init("factors/*/challenge", ["POST"], .supabaseFactors, isLimited: true),
        .init("factors/*/verify", ["POST"], .supabaseFactors, isLimited: true),
        .init("passkeys", ["GET"], .supabasePasskeys),
        .init("passkeys/", ["GET"], .supabasePasskeys),
        .init("passkeys/*", ["PATCH", "DELETE"], .supabasePasskeys),
        .init("passkeys/authentication/options", ["POST"], .supabasePasskeys, isLimited: true, isGuarded: true),
        .init("passkeys/authentication/verify", ["POST"], .supabasePasskeys),
        .init("passkeys/registration/options", ["POST"], .supabasePasskeys),
        .init("passkeys/registration/verify", ["POST"], .supabasePasskeys),
        .init("settings", ["GET"], .supabaseSettings),
        .init("health", ["GET"], .supabaseHealth),
        .init(".well-known/jwks.json", ["GET"], .supabaseJWKS),
        .init(".well-known/openid-configuration", ["GET"], .supabaseOther),
        .init(".well-known/oauth-authorization-server", ["GET"], .supabaseOther),
        .init("oauth/**", ["GET", "POST", "PATCH", "DELETE"], .supabaseOther),
    ]

    func matches(_ parts: [String]) -> Bool {
        let pattern = path.split(separator: "/", omittingEmptySubsequences: false)
        if pattern.last == "**" { return parts.count >= pattern.count && parts[0] == pattern[0] }
        return parts.count == pattern.count && zip(pattern, parts).allSatisfy { $0 == "*" || $0 == $1 }
    }
}

/// The settings of a project's dashboard. Durations are seconds. There are two configurations: **A** is that of a
/// development server, **B** that of a strict project.
struct SupabaseSettings: Equatable {
    enum Configuration: String, CaseIterable { case a = "A", b = "B" }
    /// `v0` tokens are those of very old servers. A server that issues other tokens no longer accepts them.
    enum RefreshTokens: String, CaseIterable { case v0, v1, v2 }
    enum Algorithm: String, CaseIterable { case hs256 = "HS256", es256 = "ES256", rs256 = "RS256", edDSA = "EdDSA" }

    /// Wrong signatures: by a key that the project does not publish, the same without a key id, or by another secret.
    enum Forgery: String, CaseIterable { case key, nameless, secret }

    var configuration = Configuration.a
    /// New addresses count as confirmed.
    var autoconfirm = true
    var phoneAutoconfirm = false
    var algorithm = Algorithm.hs256
    var refreshTokens = RefreshTokens.v1
    /// How many of a hundred sessions get a token of the second kind in exchange for one of the first, where the second
    /// kind is issued.
    var upgradePercentage = 0
    var reuseInterval = 10
    var rotates = true
    /// Replaced tokens of the second kind are accepted for ever.
    var allowsReuse = false
    var siteURL = "https://app.example.org"
    var allowList: [String] = ["**"]
    var accessTokenLifetime = 3_600
    /// Access tokens name their issuer.
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
    /// The domain that passkeys and second factors of authenticators belong to, and the origins at which they are made
    /// and used.
    var passkeyPartyID = "app.example.org"
    var passkeyOrigins = ["https://app.example.org"]
    var maxPasskeys = 10
    var ssoDomains = ["company.example": "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"]
    /// A change of the address has to be confirmed at both addresses.
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
    /// How many mails are sent in an hour at most.
    var mailLimit: Int?
    /// The only CAPTCHA token that is valid; nil for no protection.
    var captcha: String?
    /// The error of the hook that is asked before an access token is made; nil if there is no hook, or if it agrees.
    var tokenHook: SupabaseError?
    /// The error of the hook that is asked before a user of an external provider is created. Without a code of its own
    /// the redirect has an empty `error_code`, as the real server's.
    var userHook: SupabaseError?
    /// Every new user gets a row in `profiles`.
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

/// How many requests are still allowed, of each client and each kind.
struct SupabaseLimits {
    private struct Bucket {
        var tokens: Double
        var at: Int
    }

    private var buckets: [String: Bucket] = [:]

    /// The limit of an endpoint for one address.
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
        var bucket = buckets[name] ?? Bucket(tokens: Double(limit), at: now)
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

    var isSupabase: Bool { rawValue.hasPrefix("supabase_") }

    /// The endpoint at a path below a project's URL; nil for any other path.
    init?(supabasePath path: String) {
        if path.hasPrefix(Endpoint.restRoot) {
            self = .supabaseREST
            return
        }
        guard path.hasPrefix(Endpoint.supabaseRoot) else { return nil }
        let below = path.dropFirst(Endpoint.supabaseRoot.utf8.count)
        if let exact = SupabaseRoute.all.first(where: { $0.path == below }) {
            self = exact.endpoint
            return
        }
        switch below.split(separator: "/", omittingEmptySubsequences: false).first {
        case "factors": self = .supabaseFactors
        case "passkeys": self = .supabasePasskeys
        case "user": self = .supabaseIdentities
        default: self = .supabaseOther
        }
    }
}
