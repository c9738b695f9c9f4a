internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// `/settings`, `/health`, `/.well-known/jwks.json`: public information.
extension SupabaseProject {
    func showSettings() -> ServerResponse {
        let external = [
            "apple", "azure", "bitbucket", "discord", "facebook", "snapchat", "figma", "fly", "github", "gitlab",
            "google", "keycloak", "kakao", "linkedin", "linkedin_oidc", "notion", "spotify", "slack", "slack_oidc",
            "workos", "twitch", "twitter",
        ]
        var members = JSONObject([.init("anonymous_users", .bool(settings.allowsAnonymous))])
        for name in external { members[name] = .bool(settings.providers.contains(name)) }
        members["email"] = .bool(settings.allowsEmail)
        members["phone"] = .bool(settings.allowsPhone)
        members["zoom"] = .bool(settings.providers.contains("zoom"))
        return SupabaseResponses.json([
            "external": .object(members), "disable_signup": .bool(!settings.allowsSignUp),
            "mailer_autoconfirm": .bool(settings.autoconfirm), "phone_autoconfirm": .bool(settings.phoneAutoconfirm),
            "sms_provider": "twilio", "saml_enabled": .bool(!settings.ssoDomains.isEmpty),
            "saml_private_key_next_configured": false, "passkeys_enabled": .bool(settings.allowsPasskeys),
        ])
    }

    static func health() -> ServerResponse {
        SupabaseResponses.json([
            "version": "v2.196.0", "name": "GoTrue",
            "description": "GoTrue is a user registration and authentication API",
        ])
    }

    /// Only the project's name and keys, since its own OAuth server is off.
    func showMetadata() -> ServerResponse {
        SupabaseResponses.json(
            [
                "issuer": .string(authURL), "jwks_uri": .string(authURL + "/.well-known/jwks.json"),
                "authorization_endpoint": .string(authURL + "/oauth/authorize"),
                "token_endpoint": .string(authURL + "/oauth/token"),
                "userinfo_endpoint": .string(authURL + "/oauth/userinfo"),
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "id_token_signing_alg_values_supported": [.string(settings.algorithm.rawValue)],
                "code_challenge_methods_supported": ["S256", "plain"],
            ], fields: [("Cache-Control", "public, max-age=600")])
    }

    mutating func showKeys() -> ServerResponse {
        SupabaseResponses.json(
            keys.published(for: settings.algorithm), fields: [("Cache-Control", "public, max-age=600")])
    }
}
