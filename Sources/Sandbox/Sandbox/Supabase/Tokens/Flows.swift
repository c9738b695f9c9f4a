internal import LocalHTTP
internal import StrictJSON

/// A sign-in that a redirect is to finish: with a browser at a provider, or from a link in a mail.
struct SupabaseFlow {
    enum Upstream { case none, oauth, sso }

    /// What the provider gets as `state`.
    let id = SupabaseText.uuid()
    /// What the app gets as `code`.
    let code = SupabaseText.uuid()
    let provider: String
    /// The method in the session's proof.
    let method: String
    var upstream = Upstream.none
    /// Nil for the implicit flow.
    let challenge: SupabaseChallenge?
    let redirectTo: String
    let createdAt: Int
    /// The verifier for the provider's own PKCE.
    var verifier = ""
    /// The user to whom an identity is to be linked.
    var linkTo: String?
    var userID: String?
    /// When the link in the mail was opened.
    var openedAt: Int?
    var isUsed = false
    var providerToken: String?
    var providerRefreshToken: String?

    /// The company whose provider the user came from; nil without one.
    var company: String? { upstream == .sso ? String(provider.dropFirst(4)) : nil }

    func hasExpired(at now: Int, lifetime: Int) -> Bool {
        // The lifetime of a magic link begins when it is opened. All others begin with the flow.
        now - (method == "magiclink" ? openedAt ?? createdAt : createdAt) > lifetime
    }
}

/// The sign-ins that a redirect is to finish. Those with an external provider are in files of their own.
struct SupabaseFlows {
    private static let maxFlows = 10_000

    /// In the order in which they began.
    private var flows: [SupabaseFlow] = []

    mutating func add(_ flow: SupabaseFlow) {
        if flows.count >= SupabaseFlows.maxFlows { flows.removeFirst(SupabaseFlows.maxFlows / 10) }
        flows.append(flow)
    }

    /// Stores a challenge until the mail's link is opened.
    mutating func begin(_ method: String, for userID: String, _ challenge: SupabaseChallenge?, _ call: SupabaseCall) {
        guard let challenge else { return }
        var flow = SupabaseFlow(
            provider: "email", method: method, challenge: challenge, redirectTo: call.redirectTarget,
            createdAt: call.now)
        flow.userID = userID
        add(flow)
    }

    /// A user has opened the link in a mail of this type. Returns the code for the app.
    mutating func openLink(of userID: String, _ type: String, at now: Int) throws(SupabaseErrorResponse) -> String {
        let method = type == "signup" ? "email/signup" : type
        guard let index = flows.lastIndex(where: { $0.userID == userID && $0.method == method && !$0.isUsed }) else {
            throw SupabaseErrorResponse(
                400, "flow_state_not_found",
                "No associated flow state found. Please make sure to complete the flow in the same browser")
        }
        flows[index].openedAt = now
        return flows[index].code
    }

    /// Uses up the flow with which a provider redirects the user back, by the `state` that the provider got.
    mutating func takeUpstream(
        _ state: String?, isManaged: Bool, _ settings: SupabaseSettings, at now: Int
    ) throws(SupabaseErrorResponse) -> SupabaseFlow {
        guard let state else {
            throw isManaged
                ? SupabaseErrorResponse(404, "saml_relay_state_not_found", "SAML RelayState is missing")
                : SupabaseErrorResponse(400, "bad_oauth_callback", "OAuth state parameter missing")
        }
        let kind = isManaged ? SupabaseFlow.Upstream.sso : .oauth
        guard let index = flows.firstIndex(where: { $0.id == state && $0.upstream == kind }) else {
            throw isManaged
                ? SupabaseErrorResponse(
                    404, "saml_relay_state_not_found", "SAML RelayState does not exist, try logging in again?")
                : SupabaseErrorResponse(400, "bad_oauth_state", "OAuth state not found or expired")
        }
        guard !flows[index].isUsed else {
            throw SupabaseErrorResponse(400, "flow_state_already_used", "OAuth state has already been used")
        }
        guard now - flows[index].createdAt <= (isManaged ? settings.relayLifetime : settings.flowLifetime) else {
            throw isManaged
                ? SupabaseErrorResponse(
                    422, "saml_relay_state_expired", "SAML RelayState has expired. Try logging in again?")
                : SupabaseErrorResponse(400, "bad_oauth_state", "OAuth state has expired")
        }
        flows[index].isUsed = true
        return flows[index]
    }

    /// Stores what has changed in a flow.
    mutating func save(_ flow: SupabaseFlow) {
        guard let index = flows.firstIndex(where: { $0.id == flow.id }) else { return }
        flows[index] = flow
    }

    /// `POST /token`: the code at the end of a flow.
    mutating func codeGrant(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        let body = try call.body()
        let (code, verifier) = (try body.text("auth_code"), try body.text("code_verifier"))
        guard !code.isEmpty, !verifier.isEmpty else {
            throw .validation("invalid request: both auth code and code verifier should be non-empty")
        }
        guard let index = flows.firstIndex(where: { $0.code == code }), let userID = flows[index].userID,
            flows[index].upstream != .none || flows[index].openedAt != nil
        else {
            throw SupabaseErrorResponse(
                404, "flow_state_not_found", "invalid flow state, no valid flow state found")
        }
        let flow = flows[index]
        guard !flow.hasExpired(at: call.now, lifetime: call.settings.flowLifetime) else {
            throw SupabaseErrorResponse(422, "flow_state_expired", "invalid flow state, flow state has expired")
        }
        guard let challenge = flow.challenge, challenge.isMet(by: verifier) else {
            throw SupabaseErrorResponse(
                400, "bad_code_verifier", "code challenge does not match previously saved code verifier")
        }
        flows.remove(at: index)
        var extra: [JSONObject.Member] = []
        if let token = flow.providerToken { extra.append(.init("provider_token", .string(token))) }
        if let token = flow.providerRefreshToken { extra.append(.init("provider_refresh_token", .string(token))) }
        return try accounts.signIn(userID, by: flow.method, provider: flow.company, extra: extra, call)
    }
}
