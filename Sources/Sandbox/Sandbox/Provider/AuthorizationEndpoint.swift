internal import LocalHTTP
internal import RingbackBase

/// What an authorization request asked for, kept while its sign-in page is open.
struct Interaction {
    let client: SandboxClient
    let destination: AuthorizationDestination
    let scopes: [String]
    let challenge: String
    let nonce: String?
    /// `dpop_jkt` (RFC 9449 section 10).
    let key: String?
    /// The client asked that the user be asked for consent (`prompt=consent`).
    let asksConsent: Bool
    let loginHint: String?
    let expiresAt: Int
}

/// The authorization endpoint (RFC 6749 section 4.1.1, OpenID Connect Core section 3.1.2).
/// Nothing is sent to a redirect URI that the client may not use: an error of the URI, or of the client, is shown on a
/// page. Every other error goes to the client, with `state` and `iss` (RFC 9207 section 2).
extension AuthorizationServer {
    /// Seconds.
    private static let pageLifetime = 600
    private static let maxPages = 1_000

    mutating func authorize(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        guard request.isWellFormed else { return Pages.error("The request's parameters cannot be read.") }
        guard let parameters = requested(request.parameters, at: now) else {
            return Pages.error("The request was not pushed, or its reference was used already or has expired.")
        }
        guard parameters.repeated.isDisjoint(with: ["client_id", "redirect_uri"]) else {
            return Pages.error("The request names its client or its redirect URI twice.")
        }
        guard let id = parameters["client_id"], let client = clients[id] else {
            return Pages.error("The request names no client that is known here.")
        }
        guard let redirectURI = parameters["redirect_uri"], client.accepts(redirectURI: redirectURI) else {
            return Pages.error("The request's redirect URI is not one that the client \(client.id) may use.")
        }
        let repeatsState = parameters.repeated.contains("state")
        let destination = AuthorizationDestination(
            redirectURI: redirectURI,
            usesFormPost: parameters["response_mode"] == "form_post",
            state: repeatsState ? nil : parameters["state"])
        do {
            let interaction = try check(parameters, client, destination, at: now)
            if let name = issuer.settings.autoApprovedUser, let user = issuer.user(named: name) {
                return issuer.approve(interaction, as: user, at: now)
            }
            guard parameters["prompt"] != "none" else { throw OAuthError("login_required", "Nobody is signed in.") }
            return show(interaction, at: now)
        } catch let error as OAuthError {
            return issuer.send(error, to: destination)
        }
    }

    private func check(
        _ parameters: Parameters, _ client: SandboxClient, _ destination: AuthorizationDestination, at now: Int
    ) throws -> Interaction {
        func check(_ isMet: Bool, _ description: String) throws { try require(isMet, "invalid_request", description) }
        try parameters.requireUnrepeated()
        for name in ["request", "request_uri"] {
            try require(parameters[name] == nil, "\(name)_not_supported", "request objects are not read")
        }
        try require(
            parameters.required("response_type") == "code", "unsupported_response_type",
            "only the response type code is supported")
        let mode = parameters["response_mode"] ?? "query"
        try check(["query", "form_post"].contains(mode), "response_mode is neither query nor form_post")
        // An absent method means plain (RFC 7636 section 4.3), which protects nothing.
        let challenge = parameters["code_challenge_method"] == "S256" ? parameters["code_challenge"] ?? "" : ""
        try check(!challenge.isEmpty, "a code_challenge with the method S256 is required")
        // RFC 7636 section 4.1
        let isDigest = challenge.utf8.count == 43 && challenge.utf8.allSatisfy(\.isUnreserved)
        try check(isDigest, "code_challenge is not a SHA-256 in base64url")
        let scopes = parameters.scopes ?? []
        // RFC 6749 section 3.3
        guard scopes.allSatisfy({ $0.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C } })
        else { throw OAuthError("invalid_scope", "scope has a character that no scope has") }
        try check(!issuer.settings.requiresNonce || parameters["nonce"] != nil, "nonce is required")
        let key = issuer.settings.proofs == .off ? nil : parameters["dpop_jkt"]
        try check(issuer.settings.proofs != .required || key != nil, "dpop_jkt is required")
        let age = parameters["max_age"].map { Int($0) ?? -1 } ?? 0
        try check(age >= 0, "max_age is not a number of seconds")
        return Interaction(
            client: client, destination: destination, scopes: scopes, challenge: challenge, nonce: parameters["nonce"],
            key: key,
            asksConsent: (parameters["prompt"] ?? "").split(separator: " ").contains("consent"),
            loginHint: parameters["login_hint"], expiresAt: now + Self.pageLifetime)
    }

    private mutating func show(_ interaction: Interaction, at now: Int) -> ServerResponse {
        interactions = interactions.filter { $0.value.expiresAt > now }
        guard interactions.count < Self.maxPages else {
            return Pages.error("Too many sign-in pages are open.", status: 503)
        }
        let name = Issuer.newToken("page")
        interactions[name] = interaction
        return signInPage(interaction, named: name)
    }

    private func signInPage(_ interaction: Interaction, named name: String, problem: String? = nil) -> ServerResponse {
        let action = issuer.prefix + Endpoint.signIn.path
        return Pages.signIn(interaction, named: name, users: issuer.users, action: action, problem: problem)
    }

    /// The form of the sign-in page: `interaction`, `user`, and `decision` (`allow` or `deny`).
    mutating func signIn(_ request: SandboxRequest, at now: Int) -> ServerResponse {
        let parameters = Parameters(request.form ?? [])
        guard let name = parameters["interaction"], let interaction = interactions[name], now < interaction.expiresAt
        else { return Pages.error("This sign-in page was used already, or stood open too long. Start again.") }
        if parameters["decision"] == "deny" {
            interactions[name] = nil
            issuer.counters[.denials] += 1
            return issuer.send(OAuthError("access_denied", "The user said no."), to: interaction.destination)
        }
        guard parameters["decision"] == "allow", let user = issuer.user(named: parameters["user"] ?? "") else {
            return signInPage(interaction, named: name, problem: "Choose who signs in.")
        }
        interactions[name] = nil
        return issuer.approve(interaction, as: user, at: now)
    }
}

struct AuthorizationDestination {
    let redirectURI: String
    let usesFormPost: Bool
    let state: String?
}

extension Issuer {
    fileprivate mutating func approve(_ interaction: Interaction, as user: SandboxUser, at now: Int) -> ServerResponse {
        let family = open(interaction.client, user, interaction.scopes, at: now)
        let code = Issuer.newToken("code")
        ledger.codes[code] = Ledger.CodeGrant(
            family: family, redirectURI: interaction.destination.redirectURI, challenge: interaction.challenge,
            nonce: interaction.nonce, hasConsent: interaction.asksConsent, key: interaction.key,
            expiresAt: now + settings.codeLifetime)
        counters[.signIns] += 1
        counters[.codesIssued] += 1
        return send(["code": code], to: interaction.destination)
    }

    fileprivate mutating func send(_ refusal: OAuthError, to destination: AuthorizationDestination) -> ServerResponse {
        send(["error": refusal.code, "error_description": refusal.description], to: destination)
    }

    private mutating func send(_ answer: JSONObject, to destination: AuthorizationDestination) -> ServerResponse {
        var answer = answer
        answer["state"] = destination.state.map(JSON.string)
        answer["iss"] = .string(name)
        perturbations.change(.callback, &answer)
        let pairs = answer.members.map { ($0.name, $0.value.string ?? "") }
        if destination.usesFormPost { return Pages.formPost(pairs, to: destination.redirectURI) }
        return Responses.redirect(to: destination.redirectURI, adding: pairs)
    }
}

/// Authorization requests that clients push (RFC 9126). A reference is for one client, a minute and one use.
struct PushedRequest {
    let clientID: String
    let pairs: [FormEncoding.Pair]
    let expiresAt: Int
}

extension AuthorizationServer {
    /// Seconds.
    private static let pushedLifetime = 60
    private static let prefixOfReferences = "urn:ietf:params:oauth:request_uri:"
    private static let credentials: Set<String> = ["client_secret", "client_assertion", "client_assertion_type"]

    mutating func push(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        try requireOffer(issuer.settings.pushedRequests != .off)
        let (parameters, client) = try authenticate(request, at: now)
        let key = try issuer.provenKey(request, .pushedAuthorization, at: now)
        let stated = parameters["dpop_jkt"]
        try require(key == nil || stated ?? key == key, "invalid_dpop_proof", "dpop_jkt is another key's")
        guard parameters["request_uri"] == nil else { throw OAuthError("invalid_request", "request_uri is not pushed") }
        guard parameters["client_id"] == client.id else { throw OAuthError("invalid_request", "client_id is missing") }
        guard let redirectURI = parameters["redirect_uri"], client.accepts(redirectURI: redirectURI) else {
            throw OAuthError("invalid_request", "redirect_uri is not one that the client may use")
        }
        pushedRequests = pushedRequests.filter { $0.value.expiresAt > now }
        let name = Self.prefixOfReferences + Issuer.newToken("par")
        var pairs = (request.form ?? []).filter { !Self.credentials.contains($0.name) }
        if let key, stated == nil { pairs.append(FormEncoding.Pair("dpop_jkt", key)) }
        pushedRequests[name] = PushedRequest(clientID: client.id, pairs: pairs, expiresAt: now + Self.pushedLifetime)
        return Responses.json(
            ["request_uri": name, "expires_in": Self.pushedLifetime], status: issuer.settings.pushedStatus)
    }

    /// The parameters of an authorization request, wherever they are; nil if they had to be pushed, or if a reference
    /// is not valid (any more). Parameters beside a reference are ignored (section 4, RFC 9101 section 6.3).
    private mutating func requested(_ parameters: Parameters, at now: Int) -> Parameters? {
        guard let reference = parameters["request_uri"], reference.hasPrefix(Self.prefixOfReferences) else {
            return issuer.settings.pushedRequests == .required ? nil : parameters
        }
        if issuer.settings.requiresResponseType, parameters["response_type"] != "code" { return nil }
        guard let request = pushedRequests.removeValue(forKey: reference), now < request.expiresAt,
            request.clientID == parameters["client_id"]
        else { return nil }
        return Parameters(request.pairs)
    }
}
