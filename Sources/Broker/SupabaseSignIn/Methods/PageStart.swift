internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

extension FlowStart {
    /// Starts a sign-in in the browser. The daemon requests the page's URL from the server itself. So an error response
    /// becomes an error of the API; a browser would show it as JSON.
    func browser() async throws(BrokerError) -> Beginning { made(try await page()) }

    /// A page with its own flow key and verifier.
    func page() async throws(BrokerError) -> SupabaseFlow {
        let isLink = request.purpose == .link
        let flow = try await redirected(isNeeded: true, message: nil, purpose: isLink ? .link : .signIn)
        do throws(BrokerError) {
            if isLink { return flow.opening(try await linkPage(flow)) }
            let isOrganization = request.projectMethod == .sso
            return flow.opening(isOrganization ? try await singleSignOn(flow) : try await authorize(flow))
        } catch {
            await close(flow)
            throw error
        }
    }

    private func authorize(_ flow: SupabaseFlow) async throws(BrokerError) -> String {
        guard let word = fields.oauthProvider ?? rules.oauthProvider else {
            let text = "missing, and \(account.name) has none in its configuration"
            throw .invalid(field: "oauth_provider", reason: .stated(text))
        }
        let signIn = try SupabaseProvider.building(try browserSignIn(at: word, flow))
        return try await provider.ask(try .authorization(signIn), on: .authorization).url
    }

    func browserSignIn(at provider: String?, _ flow: SupabaseFlow) throws(FieldError) -> BrowserSignIn {
        BrowserSignIn(
            provider: try FlowStart.required(provider, "oauth_provider"), scopes: request.scopes ?? account.scopes,
            redirectTo: flow.redirect?.url ?? "", challenge: flow.pkce?.challenge ?? "",
            params: account.authorizationParameters + request.parameters)
    }

    private func singleSignOn(_ flow: SupabaseFlow) async throws(BrokerError) -> String {
        let organization: Organization
        switch (fields.domain, fields.providerID) {
        case (let domain?, nil): organization = .domain(domain)
        case (nil, let id?): organization = .providerID(id)
        default:
            throw .invalid(field: "domain", reason: .stated("a domain or a provider_id is needed, and not both"))
        }
        return try await provider.ask(
            try .singleSignOn(
                organization, redirectTo: flow.redirect?.url ?? "", challenge: flow.pkce?.challenge ?? "",
                captcha: fields.captcha)
        ).url
    }
}
