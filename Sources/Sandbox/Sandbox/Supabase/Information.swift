internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// What everybody may read of a project.
extension SupabaseSettings {
    /// `/settings`.
    func shown() -> ServerResponse {
        let external = [
            "apple", "azure", "bitbucket", "discord", "facebook", "snapchat", "figma", "fly", "github", "gitlab",
            "google", "keycloak", "kakao", "linkedin", "linkedin_oidc", "notion", "spotify", "slack", "slack_oidc",
            "workos", "twitch", "twitter",
        ]
        var members = JSONObject([.init("anonymous_users", .bool(allowsAnonymous))])
        for name in external { members[name] = .bool(providers.contains(name)) }
        members["email"] = .bool(allowsEmail)
        members["phone"] = .bool(allowsPhone)
        members["zoom"] = .bool(providers.contains("zoom"))
        return SupabaseResponses.json([
            "external": .object(members), "disable_signup": .bool(!allowsSignUp),
            "mailer_autoconfirm": .bool(autoconfirm), "phone_autoconfirm": .bool(phoneAutoconfirm),
            "sms_provider": "twilio", "saml_enabled": .bool(!ssoDomains.isEmpty),
            "saml_private_key_next_configured": false, "passkeys_enabled": .bool(allowsPasskeys),
        ])
    }

    /// `/.well-known/openid-configuration`. Only the project's name and keys, since its own OAuth server is off.
    func metadata(_ authURL: String) -> ServerResponse {
        SupabaseResponses.json(
            [
                "issuer": .string(authURL), "jwks_uri": .string(authURL + "/.well-known/jwks.json"),
                "authorization_endpoint": .string(authURL + "/oauth/authorize"),
                "token_endpoint": .string(authURL + "/oauth/token"),
                "userinfo_endpoint": .string(authURL + "/oauth/userinfo"),
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "id_token_signing_alg_values_supported": [.string(algorithm.rawValue)],
                "code_challenge_methods_supported": ["S256", "plain"],
            ], fields: [("Cache-Control", "public, max-age=600")])
    }
}
