internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import SupabaseAuth

/// Sign-ins at a page: a provider's, or an organization's.
extension FlowStart {
    /// A provider's page, or an organization's. The server is asked for it by us: its no is then an error that can be
    /// told, and no page of JSON in front of the person.
    func browser() async throws(BrokerError) -> Beginning { made(try await page()) }

    /// A page with a key and a verifier of its own.
    func page() async throws(BrokerError) -> SupabaseFlow {
        let isLink = request.method == "link"
        let flow = try await redirected(isNeeded: true, message: nil, purpose: isLink ? .link : .signIn)
        do throws(BrokerError) {
            if isLink { return flow.opening(try await linkPage(flow)) }
            return flow.opening(request.method == "sso" ? try await singleSignOn(flow) : try await authorize(flow))
        } catch {
            await close(flow)
            throw error
        }
    }

    private func authorize(_ flow: SupabaseFlow) async throws(BrokerError) -> String {
        guard fields.oauthProvider ?? rules.oauthProvider != nil else {
            throw .invalid(
                field: "oauth_provider",
                reason: "missing, and \(account.name) has no oauth_provider; name a provider, or choose another method")
        }
        let asked = try SupabaseProvider.building { () throws(FieldError) in
            try project.authorization(
                BrowserSignIn(
                    provider: try FlowStart.required(
                        fields.oauthProvider ?? rules.oauthProvider, "oauth_provider"),
                    scopes: request.scopes ?? account.scopes, redirectTo: flow.redirect?.url ?? "",
                    challenge: flow.pkce?.challenge ?? "",
                    params: (account.authorizationParameters + request.parameters).map { (name: $0.0, value: $0.1) }))
        }
        return try await provider.ask(asked, on: .authorization, FlowStart.readAuthorization).url
    }

    private static func readAuthorization(_ response: HTTPResponse) throws(SupabaseError) -> ProviderRedirect {
        try ProviderRedirect(reading: response)
    }

    private func singleSignOn(_ flow: SupabaseFlow) async throws(BrokerError) -> String {
        let organization: SupabaseProject.Organization
        switch (fields.domain, fields.providerID) {
        case (let domain?, nil): organization = .domain(domain)
        case (nil, let id?): organization = .providerID(id)
        default: throw .invalid(field: "domain", reason: "a domain or a provider_id is needed, and not both")
        }
        let asked = try SupabaseProvider.building { () throws(FieldError) in
            try project.singleSignOn(
                organization, redirectTo: flow.redirect?.url ?? "", challenge: flow.pkce?.challenge ?? "",
                captcha: fields.captcha)
        }
        return try await provider.ask(asked, on: .signIn, SupabaseProvider.readURL).url
    }
}
