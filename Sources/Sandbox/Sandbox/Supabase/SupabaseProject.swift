internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// A Supabase project: the Auth server and the REST endpoint below `/auth/v1` and `/rest/v1` of an issuer, which is
/// also every external provider of the project. Written from responses of the real server. It only joins its parts: here
/// each request finds its endpoint.
struct SupabaseProject {
    /// Without a final slash.
    private let url: String
    var settings = SupabaseSettings()
    var accounts = SupabaseAccounts()
    var tables = SupabaseTables()
    private(set) var codes = SupabaseCodes()
    private var flows = SupabaseFlows()
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
        if endpoint == .supabaseREST { return tables.answer(call, accounts) }
        guard let methods = call.methods else { return SupabaseResponses.unknownPath() }
        guard methods.contains(call.method) else { return SupabaseResponses.empty(405) }
        let before = settings.tokenHook == nil ? nil : self
        defer { runTrigger() }
        do throws(SupabaseErrorResponse) {
            try limits.throttle(call)
            try call.checkCaptcha()
            return try answer(call, &upstream)
        } catch {
            // The hook is asked within a transaction. If it refuses, nothing has happened.
            if let before, error == before.settings.tokenHook { self = before }
            return SupabaseResponses.refusal(error, version: call.version)
        }
    }

    private mutating func answer(
        _ call: SupabaseCall, _ upstream: inout AuthorizationServer
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        switch (call.method, call.parts.joined(separator: "/")) {
        case ("GET", "authorize"): return try flows.authorize(call)
        case (_, "callback"), (_, "sso/saml/acs"): return flows.callback(call, &accounts, &upstream)
        case ("POST", "token"): return try grant(call, &upstream)
        case ("POST", "signup"): return try codes.signUp(call, &accounts, &flows)
        case ("POST", "otp"): return try codes.sendCode(call, &accounts, &flows)
        case ("POST", "magiclink"): return try codes.sendLink(call, &accounts, &flows)
        case ("POST", "recover"): return try codes.recover(call, &accounts, &flows)
        case ("POST", "resend"): return try codes.resend(call, &accounts, &flows)
        case ("GET", "verify"): return try codes.followLink(call, &accounts, &flows)
        case ("POST", "verify"): return try codes.verify(call, &accounts)
        case ("GET", "user"): return try accounts.showUser(call)
        case ("PUT", "user"): return try codes.updateUser(call, &accounts, &flows)
        case ("GET", "reauthenticate"): return try codes.reauthenticate(call, &accounts)
        case ("POST", "logout"): return try accounts.logOut(call)
        case ("POST", "sso"): return try flows.signOn(call)
        case ("GET", "user/identities/authorize"): return try flows.authorizeLinking(call, accounts)
        case ("POST", "factors"): return try factors.enroll(call, &accounts)
        case ("GET", "settings"): return settings.shown()
        case ("GET", "health"):
            return SupabaseResponses.json([
                "version": "v2.196.0", "name": "GoTrue",
                "description": "GoTrue is a user registration and authentication API",
            ])
        case ("GET", ".well-known/jwks.json"):
            return SupabaseResponses.json(
                accounts.keys.published(for: settings.algorithm),
                fields: [("Cache-Control", "public, max-age=600")])
        case ("GET", ".well-known/openid-configuration"): return settings.metadata(call.authURL)
        case ("GET", ".well-known/oauth-authorization-server"):
            throw SupabaseErrorResponse(404, "feature_disabled", "OAuth server is disabled")
        default: return try answerBelow(call)
        }
    }

    private mutating func answerBelow(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        switch (call.method, call.parts.first, call.parts.count) {
        case (_, "user", 3) where call.parts[1] == "oauth": return try consents.answer(call, &accounts)
        case ("DELETE", "user", 3): return try accounts.unlink(call)
        case ("DELETE", "factors", 2): return try factors.remove(call, &accounts)
        case ("POST", "factors", 3):
            return call.parts[2] == "challenge"
                ? try factors.challenge(call, &accounts, &codes.mail) : try factors.verify(call, &accounts)
        case (_, "passkeys", _): return try passkeys.answer(call, &accounts)
        case (_, "oauth", _): throw SupabaseErrorResponse(404, "feature_disabled", "OAuth server is disabled")
        default: return SupabaseResponses.unknownPath()
        }
    }

    private mutating func grant(
        _ call: SupabaseCall, _ upstream: inout AuthorizationServer
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        let type = call.query("grant_type") ?? ""
        upstream.issuer.counters.tokenRequests[type.isEmpty ? "none" : type, default: 0] += 1
        switch type {
        case "password": return try accounts.passwordGrant(call)
        case "refresh_token": return try refresh(call, &upstream.issuer.counters)
        case "pkce": return try flows.codeGrant(call, &accounts)
        case "id_token": return try accounts.idTokenGrant(call, &upstream)
        case "web3": throw SupabaseErrorResponse(422, "web3_provider_disabled", "Web3 provider is disabled")
        default: throw SupabaseErrorResponse(400, "invalid_credentials", "unsupported_grant_type")
        }
    }

    private mutating func refresh(
        _ call: SupabaseCall, _ counters: inout Counters
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        do throws(SupabaseErrorResponse) {
            let answer = try accounts.refreshGrant(call)
            counters.refreshes += 1
            if answer.fields.contains("sb-auth-refresh-token-rotated") { counters.rotations += 1 }
            return answer
        } catch {
            if error.code == "refresh_token_already_used" { counters.reuseDetections += 1 }
            throw error
        }
    }
}
