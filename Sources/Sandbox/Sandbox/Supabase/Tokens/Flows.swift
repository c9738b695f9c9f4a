internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// A sign-in that a redirect is to finish: with a browser at a provider, or from a link in a mail.
struct SupabaseFlow {
    enum Upstream {
        case none, oauth, sso

        /// The errors of the `state` with which a provider, or a company's provider, redirects a user back.
        static let oauthErrors = (
            missing: SupabaseError(400, "bad_oauth_callback", "OAuth state parameter missing"),
            unknown: SupabaseError(400, "bad_oauth_state", "OAuth state not found or expired"),
            expired: SupabaseError(400, "bad_oauth_state", "OAuth state has expired")
        )
        static let ssoErrors = (
            missing: SupabaseError(404, "saml_relay_state_not_found", "SAML RelayState is missing"),
            unknown: SupabaseError(
                404, "saml_relay_state_not_found", "SAML RelayState does not exist, try logging in again?"),
            expired: SupabaseError(
                422, "saml_relay_state_expired", "SAML RelayState has expired. Try logging in again?")
        )
    }

    /// What the provider gets as `state`.
    let id = SupabaseText.uuid()
    /// What the app gets as `code`.
    let code = SupabaseText.uuid()
    let provider: String
    let method: String
    var upstream = Upstream.none
    let challenge: SupabaseChallenge?
    let redirectTo: String
    let createdAt: Int
    var verifier = ""
    var linkTo: String?
    var userID: String?
    var openedAt: Int?
    var isUsed = false
    var providerToken: String?
    var providerRefreshToken: String?
    /// The company whose provider the user came from; nil without one.
    var company: String? { upstream == .sso ? String(provider.dropFirst(4)) : nil }
    static func method(ofMail type: String) -> String { type == "signup" ? "email/signup" : type }

    func hasExpired(at now: Int, lifetime: Int) -> Bool {
        // The lifetime of a magic link begins when it is opened. All others begin with the flow.
        now - (method == "magiclink" ? openedAt ?? createdAt : createdAt) > lifetime
    }
}

struct SupabaseFlows {
    private static let maxFlows = 10_000
    private var flows: [SupabaseFlow] = []

    mutating func add(_ flow: SupabaseFlow) {
        if flows.count >= SupabaseFlows.maxFlows { flows.removeFirst(SupabaseFlows.maxFlows / 10) }
        flows.append(flow)
    }

    /// Stores the challenge of a mail of this type until its link is opened.
    mutating func begin(_ type: String, for userID: String, _ challenge: SupabaseChallenge?, _ call: SupabaseCall) {
        guard let challenge else { return }
        var flow = SupabaseFlow(
            provider: "email", method: SupabaseFlow.method(ofMail: type), challenge: challenge,
            redirectTo: call.redirectTarget, createdAt: call.now)
        flow.userID = userID
        add(flow)
    }

    /// A user has opened the link in a mail of this type. Returns the code for the app.
    mutating func openLink(of userID: String, _ type: String, at now: Int) throws -> String {
        let method = SupabaseFlow.method(ofMail: type)
        let index = try unwrap(
            flows.lastIndex(where: { $0.userID == userID && $0.method == method && !$0.isUsed }), 400,
            "flow_state_not_found",
            "No associated flow state found. Please make sure to complete the flow in the same browser")
        flows[index].openedAt = now
        return flows[index].code
    }

    /// Uses up the flow with which a provider redirects the user back, by the `state` that the provider got.
    mutating func takeUpstream(
        _ state: String?, isManaged: Bool, _ settings: SupabaseSettings, at now: Int
    ) throws -> SupabaseFlow {
        let errors = isManaged ? SupabaseFlow.Upstream.ssoErrors : SupabaseFlow.Upstream.oauthErrors
        guard let state else { throw errors.missing }
        let kind = isManaged ? SupabaseFlow.Upstream.sso : .oauth
        guard let index = flows.firstIndex(where: { $0.id == state && $0.upstream == kind }) else {
            throw errors.unknown
        }
        try require(!flows[index].isUsed, 400, "flow_state_already_used", "OAuth state has already been used")
        let lifetime = isManaged ? settings.relayLifetime : settings.flowLifetime
        guard now - flows[index].createdAt <= lifetime else { throw errors.expired }
        flows[index].isUsed = true
        return flows[index]
    }

    func first(where isWanted: (SupabaseFlow) -> Bool) -> SupabaseFlow? { flows.first(where: isWanted) }
    mutating func remove(_ flow: SupabaseFlow) { flows.removeAll { $0.id == flow.id } }

    mutating func save(_ flow: SupabaseFlow) {
        guard let index = flows.firstIndex(where: { $0.id == flow.id }) else { return }
        flows[index] = flow
    }
}

/// Where an external provider redirects the user to. The project learns who the user is from the issuer's own token
/// endpoint, as any client would.
extension SupabaseProject {
    /// `POST /token`: the code at the end of a flow.
    mutating func codeGrant(_ call: SupabaseCall) throws -> ServerResponse {
        let body = try call.body()
        let (code, verifier) = (try body.text("auth_code"), try body.text("code_verifier"))
        try require(
            !code.isEmpty && !verifier.isEmpty, "invalid request: both auth code and code verifier should be non-empty")
        guard let flow = flows.first(where: { $0.code == code }), let userID = flow.userID,
            flow.upstream != .none || flow.openedAt != nil
        else { throw SupabaseError(404, "flow_state_not_found", "invalid flow state, no valid flow state found") }
        try require(
            !flow.hasExpired(at: call.now, lifetime: call.settings.flowLifetime), 422, "flow_state_expired",
            "invalid flow state, flow state has expired")
        try require(
            flow.challenge?.isMet(by: verifier) ?? false, 400, "bad_code_verifier",
            "code challenge does not match previously saved code verifier")
        flows.remove(flow)
        let extra: JSONObject = [
            "provider_token": flow.providerToken, "provider_refresh_token": flow.providerRefreshToken,
        ]
        return try signIn(userID, by: flow.method, provider: flow.company, extra: extra, call)
    }

    /// `/callback` of providers, and `/sso/saml/acs` of companies, where the code stands for the SAML assertion.
    mutating func callback(_ call: SupabaseCall, _ upstream: inout AuthorizationServer) throws -> ServerResponse {
        let isManaged = call.parts.first == "sso"
        let siteURL = call.settings.siteURL
        let parameters = call.request.parameters
        // The app that gets the error; nil while no app is known, and for companies: then the error goes to the site.
        var app: String?
        do {
            let flow = try flows.takeUpstream(parameters["state"], isManaged: isManaged, call.settings, at: call.now)
            let isForSite = isManaged && !call.settings.redirectRules.accepts(flow.redirectTo)
            let target = isForSite ? siteURL : flow.redirectTo
            app = isManaged ? nil : target
            if let error = parameters["error"] {
                // The provider's own error, without a code of the server's.
                let text = parameters["error_description"]
                guard let app else { throw SupabaseError(400, error, text ?? "") }
                let pairs = [("error", error)] + (text.map { [("error_description", $0)] } ?? [])
                return SupabaseResponses.redirect(
                    to: SupabaseRedirects.errors(pairs, at: app, inQuery: true), status: 302)
            }
            let location = try finish(flow, parameters["code"] ?? "", target, call, &upstream)
            return SupabaseResponses.redirect(to: location, status: 302)
        } catch let error as SupabaseError {
            let location =
                app.map { SupabaseRedirects.refusal(error, at: $0, inQuery: true, isCallback: true) }
                ?? SupabaseRedirects.siteError(error.code, error.message, at: siteURL)
            return SupabaseResponses.redirect(to: location, status: app == nil ? 303 : 302)
        }
    }

    private mutating func finish(
        _ flow: SupabaseFlow, _ code: String, _ target: String, _ call: SupabaseCall,
        _ upstream: inout AuthorizationServer
    ) throws -> String {
        let isManaged = flow.upstream == .sso
        let redirectURI = isManaged ? call.assertionURL : call.callbackURL
        let (person, tokens) = try unwrap(
            upstream.redeem(code, verifier: flow.verifier, redirectURI: redirectURI, at: call.now), 500,
            "unexpected_failure", "Unable to exchange external code: \(code.prefix(8))")
        let claims = SupabaseClaims(person, at: flow.provider, issuer: upstream.issuer.name, showsName: true)
        let userID = try users.user(for: claims, linkingTo: flow.linkTo, call)
        let token = isManaged ? nil : tokens["access_token"]?.string
        let refreshToken = isManaged ? nil : tokens["refresh_token"]?.string
        if flow.challenge == nil {
            let session = open(userID, by: flow.method, provider: flow.company, call)
            let extra = [("provider_token", token), ("provider_refresh_token", refreshToken)]
                .compactMap { name, value in value.map { (name, $0) } }
            return SupabaseRedirects.with(tokens: try self.tokens(session, call), extra: extra, target)
        }
        var opened = flow
        opened.userID = userID
        opened.openedAt = call.now
        opened.providerToken = token
        opened.providerRefreshToken = refreshToken
        flows.save(opened)
        return SupabaseRedirects.with(code: flow.code, target)
    }
}

/// How a sign-in with an external provider begins. Every provider, also one of an organization, is the issuer of which
/// the project is a part: its page asks who signs in, unless `auto_approve` is set.
extension SupabaseProject {
    private static let known = SupabaseSettings.listedProviders + ["vercel_marketplace", "x"]

    mutating func authorize(_ call: SupabaseCall) throws -> ServerResponse {
        SupabaseResponses.redirect(to: try beginExternal(call, linkTo: nil), status: 302)
    }

    mutating func authorizeLinking(_ call: SupabaseCall) throws -> ServerResponse {
        let user = try authenticate(call).user
        try call.checkLinking()
        let location = try beginExternal(call, linkTo: user.id)
        return call.query("skip_http_redirect") == "true"
            ? SupabaseResponses.json(["url": location]) : SupabaseResponses.redirect(to: location, status: 302)
    }

    private mutating func beginExternal(_ call: SupabaseCall, linkTo: String?) throws -> String {
        let provider = (call.query("provider") ?? "").lowercased()
        try require(Self.known.contains(provider), "Unsupported provider: Provider \(provider) could not be found")
        try require(call.settings.providers.contains(provider), "Unsupported provider: provider is not enabled")
        let challenge = try SupabaseChallenge(
            value: call.query("code_challenge") ?? "", method: call.query("code_challenge_method") ?? "",
            isBrowserRequest: true)
        try require(call.query("invite_token") == nil, 404, "user_not_found", "User identified by token not found")
        var flow = SupabaseFlow(
            provider: provider, method: "oauth", challenge: challenge, redirectTo: call.redirectTarget,
            createdAt: call.now)
        flow.upstream = .oauth
        flow.linkTo = linkTo
        let asked = (call.query("scopes") ?? "").split(separator: ",").joined(separator: " ")
        var parameters = Self.upstream(&flow, redirectURI: call.callbackURL)
        if !asked.isEmpty { parameters["scope"] = "openid email profile \(asked)" }
        // All other parameters are passed on, and take precedence.
        let ours: Set = ["provider", "scopes", "code_challenge", "code_challenge_method", "invite_token"]
        for pair in call.pairs where !ours.contains(pair.name) { parameters[pair.name] = pair.value }
        flows.add(flow)
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
    mutating func signOn(_ call: SupabaseCall) throws -> ServerResponse {
        try require(!call.settings.ssoDomains.isEmpty, 404, "saml_provider_disabled", "SAML 2.0 is disabled")
        let body = try call.body()
        let (domain, named) = (try body.text("domain"), try body.text("provider_id"))
        try require(!domain.isEmpty || !named.isEmpty, "A provider_id or domain needs to be provided")
        try require(domain.isEmpty || named.isEmpty, "Only one of provider_id or domain supported")
        try require(named.isEmpty || SupabaseText.isUUID(named), "provider_id must be an UUID")
        let domains = call.settings.ssoDomains
        let known = domain.isEmpty ? domains.values.first { $0 == named } : domains[domain]
        let id = try unwrap(
            known, 404, "sso_provider_not_found",
            domain.isEmpty ? "No such SSO provider" : "No SSO provider assigned for this domain")
        let challenge = try SupabaseChallenge(
            value: body.text("code_challenge"), method: body.text("code_challenge_method"), isBrowserRequest: true)
        var flow = SupabaseFlow(
            provider: "sso:" + id, method: "sso/saml", challenge: challenge,
            redirectTo: try body.text("redirect_to"), createdAt: call.now)
        flow.upstream = .sso
        let parameters = Self.upstream(&flow, redirectURI: call.assertionURL)
        flows.add(flow)
        let location = call.authorizationURL(parameters)
        return try body.flag("skip_http_redirect") ?? false
            ? SupabaseResponses.json(["url": location]) : SupabaseResponses.redirect(to: location, status: 303)
    }
}

extension SupabaseCall {
    var callbackURL: String { authURL + "/callback" }
    var assertionURL: String { authURL + "/sso/saml/acs" }

    fileprivate func authorizationURL(_ parameters: [String: String]) -> String {
        projectURL + Endpoint.authorize.path + "?" + SupabaseURL.encode(parameters.map { ($0.key, $0.value) })
    }
}

/// `POST /token?grant_type=id_token`: an ID token of a provider, which is always the issuer of which the project is a
/// part, for any of its clients. An error of the token has the third form.
extension SupabaseProject {
    private static let withIDTokens = [
        "apple", "azure", "facebook", "google", "kakao", "keycloak", "snapchat", "vercel_marketplace",
    ]

    mutating func idTokenGrant(_ call: SupabaseCall, _ upstream: inout AuthorizationServer) throws -> ServerResponse {
        let issuer = upstream.issuer.name
        let body = try call.body()
        let token = try body.text("id_token")
        try require(!token.isEmpty, oauth: "invalid request", "id_token required")
        let provider = try Self.providerName(body, issuer)
        try require(
            call.settings.providers.contains(provider), 400, "provider_disabled",
            "Provider (issuer \"\(issuer)\") is not enabled")
        let claims = try Self.verifiedClaims(token, &upstream, at: call.now)
        try Self.checkNonce(claims, body.text("nonce"))
        let accessToken = try body.text("access_token")
        if !accessToken.isEmpty, let hash = claims["at_hash"]?.string {
            let isRight = SandboxAlgorithm.allCases.contains { IDTokenWriter.hash(accessToken, $0) == hash }
            try require(isRight, oauth: "invalid request", "Bad ID token")
        }
        let subject = claims["sub"]?.string ?? ""
        guard let person = upstream.issuer.users.first(where: { $0.subject == subject })
        else { throw SupabaseError(oauth: "server_error", "Error getting user email from external provider") }
        let identity = SupabaseClaims(person, at: provider, issuer: issuer, showsName: provider != "apple")
        var target: String?
        if try body.flag("link_identity") ?? false {
            try call.checkLinking()
            target = try authenticate(call).user.id
        }
        return try signIn(users.user(for: identity, linkingTo: target, call), by: "oauth", call)
    }

    private static func providerName(_ body: SupabaseBody, _ issuer: String) throws -> String {
        let provider = try body.text("provider").lowercased()
        if provider.isEmpty {
            let isNamed = try !body.text("client_id").isEmpty && body.text("issuer") == issuer
            try require(isNamed, oauth: "invalid request", "provider or client_id and issuer required")
            return "google"
        }
        try require(Self.withIDTokens.contains(provider), "Custom OIDC provider \"\(provider)\" not allowed")
        return provider
    }

    private static func verifiedClaims(
        _ token: String, _ upstream: inout AuthorizationServer, at now: Int
    ) throws -> JSONObject {
        guard let claims = upstream.claims(ofIDToken: token, at: now) else {
            throw SupabaseError(oauth: "invalid request", "Bad ID token")
        }
        let audiences = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
        let isForUs = audiences.contains { upstream.clients[$0] != nil }
        try require(isForUs, oauth: "invalid request", "Unacceptable audience in id_token: \(audiences)")
        return claims
    }

    /// The token contains the SHA-256 of the nonce that the app sends: whoever has only the token cannot use it.
    private static func checkNonce(_ claims: JSONObject, _ nonce: String) throws {
        let claimed = claims["nonce"]?.string ?? ""
        try require(
            claimed.isEmpty == nonce.isEmpty, oauth: "invalid request",
            "Passed nonce and nonce in id_token should either both exist or not.")
        try require(
            nonce.isEmpty || Digest.hex(Digest.sha256(nonce)) == claimed, oauth: "invalid nonce", "Nonces mismatch")
    }
}
