internal import LocalHTTP
internal import StrictJSON

/// What a request passes before it reaches its endpoint.
extension SupabaseCall {
    /// The methods of the path; nil for an unknown one.
    var methods: [String]? {
        switch parts.joined(separator: "/") {
        case "authorize", "reauthenticate", "settings", "health", "user/identities/authorize", ".well-known/jwks.json",
            ".well-known/openid-configuration", ".well-known/oauth-authorization-server":
            return ["GET"]
        case "callback", "verify", "sso/saml/acs": return ["GET", "POST"]
        case "token", "signup", "otp", "magiclink", "recover", "resend", "logout", "sso", "factors": return ["POST"]
        case "user": return ["GET", "PUT"]
        case "user/oauth/grants": return ["GET", "DELETE"]
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
    func gatewayResponse(_ endpoint: Endpoint) -> ServerResponse? {
        let isOpen: [Endpoint] = [.supabaseAuthorize, .supabaseCallback, .supabaseVerify, .supabaseJWKS]
        guard !settings.apiKeys.isEmpty, !isOpen.contains(endpoint) else { return nil }
        guard let key = field("apikey") ?? query("apikey") else {
            return SupabaseResponses.json(["message": "No API key found in request"], status: 401)
        }
        guard settings.apiKeys.contains(key) else {
            return SupabaseResponses.json(["message": "Invalid authentication credentials"], status: 401)
        }
        return nil
    }

    func checkCaptcha() throws(SupabaseErrorResponse) {
        guard let right = settings.captcha, method == "POST" else { return }
        let path = parts.joined(separator: "/")
        let guarded = [
            "signup", "recover", "resend", "magiclink", "otp", "sso", "passkeys/authentication/options",
        ]
        let isGuarded = guarded.contains(path)
        guard isGuarded || (path == "token" && ["password", "web3"].contains(query("grant_type"))) else { return }
        let token = try body().object("gotrue_meta_security")?["captcha_token"]?.string ?? ""
        guard token == right else {
            let reason = token.isEmpty ? "no captcha_token found" : "invalid-input-response"
            throw SupabaseErrorResponse(
                400, "captcha_failed", "captcha protection: request disallowed (\(reason))")
        }
    }
}
