internal import Cryptography
internal import Encodings
internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// How a sign-in with an external provider begins. Every provider, also one of an organization, is the issuer of which
/// the project is a part: its page asks who signs in, unless `auto_approve` is set.
extension SupabaseFlows {
    private static let known = [
        "apple", "azure", "bitbucket", "discord", "facebook", "figma", "fly", "github", "gitlab", "google", "kakao",
        "keycloak", "linkedin", "linkedin_oidc", "notion", "slack", "slack_oidc", "snapchat", "spotify", "twitch",
        "twitter", "vercel_marketplace", "workos", "x", "zoom",
    ]

    mutating func authorize(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        SupabaseResponses.redirect(to: try beginExternal(call, linkTo: nil), status: 302)
    }

    mutating func authorizeLinking(
        _ call: SupabaseCall, _ accounts: SupabaseAccounts
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        let user = try accounts.authenticate(call).user
        try call.checkLinking()
        let location = try beginExternal(call, linkTo: user.id)
        guard call.query("skip_http_redirect") == "true" else {
            return SupabaseResponses.redirect(to: location, status: 302)
        }
        return SupabaseResponses.json(["url": .string(location)])
    }

    private mutating func beginExternal(_ call: SupabaseCall, linkTo: String?) throws(SupabaseErrorResponse) -> String {
        let provider = (call.query("provider") ?? "").lowercased()
        guard SupabaseFlows.known.contains(provider) else {
            throw .validation("Unsupported provider: Provider \(provider) could not be found")
        }
        guard call.settings.providers.contains(provider) else {
            throw .validation("Unsupported provider: provider is not enabled")
        }
        let challenge = try SupabaseChallenge(
            value: call.query("code_challenge") ?? "", method: call.query("code_challenge_method") ?? "",
            isBrowserRequest: true)
        if call.query("invite_token") != nil {
            throw SupabaseErrorResponse(404, "user_not_found", "User identified by token not found")
        }
        var flow = SupabaseFlow(
            provider: provider, method: "oauth", challenge: challenge, redirectTo: call.redirectTarget,
            createdAt: call.now)
        flow.upstream = .oauth
        flow.linkTo = linkTo
        let asked = (call.query("scopes") ?? "").split(separator: ",").joined(separator: " ")
        var parameters = SupabaseFlows.upstream(&flow, redirectURI: call.callbackURL)
        if !asked.isEmpty { parameters["scope"] = "openid email profile \(asked)" }
        // All other parameters are passed on, and take precedence.
        let ours: Set = ["provider", "scopes", "code_challenge", "code_challenge_method", "invite_token"]
        for pair in call.pairs where !ours.contains(pair.name) { parameters[pair.name] = pair.value }
        add(flow)
        return call.authorizationURL(parameters)
    }

    private static func upstream(_ flow: inout SupabaseFlow, redirectURI: String) -> [String: String] {
        flow.verifier = RandomToken.identifier(bits: 256)
        return [
            "client_id": AuthorizationServer.projectClient.id, "redirect_uri": redirectURI, "response_type": "code",
            "scope": "openid email profile", "state": flow.id,
            "code_challenge": Base64URL.encode(Digest.sha256(flow.verifier)), "code_challenge_method": "S256",
        ]
    }

    /// `POST /sso`. The redirect URL is kept unchecked, and checked when the user comes back.
    mutating func signOn(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        guard !call.settings.ssoDomains.isEmpty else {
            throw SupabaseErrorResponse(404, "saml_provider_disabled", "SAML 2.0 is disabled")
        }
        let body = try call.body()
        let (domain, named) = (try body.text("domain"), try body.text("provider_id"))
        guard domain.isEmpty != named.isEmpty else {
            throw .validation(
                domain.isEmpty
                    ? "A provider_id or domain needs to be provided"
                    : "Only one of provider_id or domain supported")
        }
        guard named.isEmpty || SupabaseText.isUUID(named) else {
            throw .validation("provider_id must be an UUID")
        }
        let known =
            domain.isEmpty ? call.settings.ssoDomains.values.first { $0 == named } : call.settings.ssoDomains[domain]
        guard let id = known else {
            throw SupabaseErrorResponse(
                404, "sso_provider_not_found",
                domain.isEmpty ? "No such SSO provider" : "No SSO provider assigned for this domain")
        }
        let challenge = try SupabaseChallenge(
            value: body.text("code_challenge"), method: body.text("code_challenge_method"), isBrowserRequest: true)
        var flow = SupabaseFlow(
            provider: "sso:" + id, method: "sso/saml", challenge: challenge,
            redirectTo: try body.text("redirect_to"), createdAt: call.now)
        flow.upstream = .sso
        let parameters = SupabaseFlows.upstream(&flow, redirectURI: call.assertionURL)
        add(flow)
        let location = call.authorizationURL(parameters)
        guard try body.flag("skip_http_redirect") ?? false else {
            return SupabaseResponses.redirect(to: location, status: 303)
        }
        return SupabaseResponses.json(["url": .string(location)])
    }
}

extension SupabaseCall {
    /// Where providers, and companies, redirect users back to.
    var callbackURL: String { authURL + "/callback" }
    var assertionURL: String { authURL + "/sso/saml/acs" }

    fileprivate func authorizationURL(_ parameters: [String: String]) -> String {
        projectURL + Endpoint.authorize.path + "?" + SupabaseURL.encode(parameters.map { ($0.key, $0.value) })
    }
}
