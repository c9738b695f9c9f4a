internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// The path of a request: first the gateway, which requires an API key, then the endpoint. Unknown paths and methods
/// get the response of the real server's router.
extension ProviderState {
    mutating func answerSupabase(_ request: SandboxRequest, _ endpoint: Endpoint, at now: Int) -> ServerResponse {
        let call = SupabaseCall(request, at: now)
        if let answer = supabase.gateway(call, endpoint) { return answer }
        if endpoint == .supabaseREST { return supabase.rest(call) }
        guard let methods = SupabaseProject.methods(call.parts) else { return SupabaseResponses.unknownPath() }
        guard methods.contains(call.method) else { return SupabaseResponses.empty(405) }
        let before = supabase.settings.tokenHook == nil ? nil : supabase
        do throws(SupabaseErrorResponse) {
            try supabase.throttle(call)
            try supabase.checkCaptcha(call)
            return try answer(call)
        } catch {
            // The hook is asked within a transaction. If it refuses, nothing has happened.
            if let before, error == before.settings.tokenHook { supabase = before }
            return SupabaseResponses.refusal(error, version: call.version)
        }
    }

    private mutating func answer(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        switch (call.method, call.parts.joined(separator: "/")) {
        case ("GET", "authorize"): return try supabase.authorize(call)
        case (_, "callback"), (_, "sso/saml/acs"): return supabaseCallback(call)
        case ("POST", "token"): return try grant(call)
        case ("POST", "signup"): return try supabase.signUp(call)
        case ("POST", "otp"): return try supabase.sendCode(call)
        case ("POST", "magiclink"): return try supabase.sendLink(call)
        case ("POST", "recover"): return try supabase.recover(call)
        case ("POST", "resend"): return try supabase.resend(call)
        case ("GET", "verify"): return try supabase.followLink(call)
        case ("POST", "verify"): return try supabase.verify(call)
        case ("GET", "user"): return try supabase.showUser(call)
        case ("PUT", "user"): return try supabase.updateUser(call)
        case ("GET", "reauthenticate"): return try supabase.reauthenticate(call)
        case ("POST", "logout"): return try supabase.logOut(call)
        case ("POST", "sso"): return try supabase.signOn(call)
        case ("GET", "user/identities/authorize"): return try supabase.authorizeLinking(call)
        case ("POST", "factors"): return try supabase.enrollFactor(call)
        case ("GET", "settings"): return supabase.showSettings()
        case ("GET", "health"): return SupabaseProject.health()
        case ("GET", ".well-known/jwks.json"): return supabase.showKeys()
        case ("GET", ".well-known/openid-configuration"): return supabase.showMetadata()
        case ("GET", ".well-known/oauth-authorization-server"):
            throw SupabaseErrorResponse(404, "feature_disabled", "OAuth server is disabled")
        default: return try answerBelow(call)
        }
    }

    private mutating func answerBelow(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        switch (call.method, call.parts.first, call.parts.count) {
        case ("DELETE", "user", 3): return try supabase.unlink(call)
        case ("DELETE", "factors", 2): return try supabase.removeFactor(call)
        case ("POST", "factors", 3):
            return call.parts[2] == "challenge"
                ? try supabase.challengeFactor(call) : try supabase.verifyFactor(call)
        case (_, "passkeys", _): return try supabase.passkeys(call)
        case (_, "oauth", _): throw SupabaseErrorResponse(404, "feature_disabled", "OAuth server is disabled")
        default: return SupabaseResponses.unknownPath()
        }
    }

    private mutating func countedRefresh(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        do throws(SupabaseErrorResponse) {
            let answer = try supabase.refresh(call)
            counters.refreshes += 1
            if answer.fields.contains("sb-auth-refresh-token-rotated") { counters.rotations += 1 }
            return answer
        } catch {
            if error.code == "refresh_token_already_used" { counters.reuseDetections += 1 }
            throw error
        }
    }

    private mutating func grant(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let type = call.query("grant_type") ?? ""
        counters.tokenRequests[type.isEmpty ? "none" : type, default: 0] += 1
        switch type {
        case "password": return try supabase.passwordGrant(call)
        case "refresh_token": return try countedRefresh(call)
        case "pkce": return try supabase.codeGrant(call)
        case "id_token": return try supabaseIDTokenGrant(call)
        case "web3": throw SupabaseErrorResponse(422, "web3_provider_disabled", "Web3 provider is disabled")
        default: throw SupabaseErrorResponse(400, "invalid_credentials", "unsupported_grant_type")
        }
    }
}

extension SupabaseProject {
    /// The methods of a path; nil for an unknown path.
    static func methods(_ parts: [String]) -> [String]? {
        switch parts.joined(separator: "/") {
        case "authorize", "reauthenticate", "settings", "health", "user/identities/authorize", ".well-known/jwks.json",
            ".well-known/openid-configuration", ".well-known/oauth-authorization-server":
            return ["GET"]
        case "callback", "verify", "sso/saml/acs": return ["GET", "POST"]
        case "token", "signup", "otp", "magiclink", "recover", "resend", "logout", "sso", "factors": return ["POST"]
        case "user": return ["GET", "PUT"]
        default: break
        }
        switch (parts.first, parts.count) {
        case ("user", 3): return parts[1] == "identities" ? ["DELETE"] : nil
        case ("factors", 2): return ["DELETE"]
        case ("factors", 3): return ["challenge", "verify"].contains(parts[2]) ? ["POST"] : nil
        case ("passkeys", 1): return ["GET"]
        case ("passkeys", 2): return parts[1].isEmpty ? ["GET"] : ["PATCH", "DELETE"]
        case ("passkeys", 3):
            let isThere =
                ["authentication", "registration"].contains(parts[1]) && ["options", "verify"].contains(parts[2])
            return isThere ? ["POST"] : nil
        case ("oauth", 2...): return ["GET", "POST", "PATCH", "DELETE"]
        default: return nil
        }
    }

    /// The gateway's response in place of the server's; nil lets the request pass. Browsers and mail links have no key.
    func gateway(_ call: SupabaseCall, _ endpoint: Endpoint) -> ServerResponse? {
        let isOpen: [Endpoint] = [.supabaseAuthorize, .supabaseCallback, .supabaseVerify, .supabaseJWKS]
        guard !settings.apiKeys.isEmpty, !isOpen.contains(endpoint) else { return nil }
        guard let key = call.field("apikey") ?? call.query("apikey") else {
            return SupabaseResponses.json(["message": "No API key found in request"], status: 401)
        }
        guard settings.apiKeys.contains(key) else {
            return SupabaseResponses.json(["message": "Invalid authentication credentials"], status: 401)
        }
        return nil
    }

    mutating func throttle(_ call: SupabaseCall) throws(SupabaseErrorResponse) {
        guard let limit = settings.requestLimit else { return }
        let path = call.parts.joined(separator: "/")
        let isFactor = call.parts.first == "factors" && call.parts.count == 3
        let throttled = [
            "token", "signup", "otp", "magiclink", "recover", "resend", "verify", "sso",
            "passkeys/authentication/options",
        ]
        guard throttled.contains(path) || isFactor || (call.method == "PUT" && path == "user") else { return }
        let name = "\(isFactor ? call.parts[2] + " factor" : path) \(call.address)"
        guard take(name, limit: limit, seconds: 300, at: call.now) else {
            throw SupabaseErrorResponse(429, "over_request_rate_limit", "Request rate limit reached")
        }
    }

    func checkCaptcha(_ call: SupabaseCall) throws(SupabaseErrorResponse) {
        guard let right = settings.captcha, call.method == "POST" else { return }
        let path = call.parts.joined(separator: "/")
        let guarded = [
            "signup", "recover", "resend", "magiclink", "otp", "sso", "passkeys/authentication/options",
        ]
        let isGuarded = guarded.contains(path)
        guard isGuarded || (path == "token" && ["password", "web3"].contains(call.query("grant_type"))) else { return }
        let token = try call.body().object("gotrue_meta_security")?["captcha_token"]?.string ?? ""
        guard token == right else {
            let reason = token.isEmpty ? "no captcha_token found" : "invalid-input-response"
            throw SupabaseErrorResponse(
                400, "captcha_failed", "captcha protection: request disallowed (\(reason))")
        }
    }
}
