internal import LocalHTTP
internal import StrictJSON

/// Where an external provider redirects the user to. The project learns who the user is from the issuer's own token
/// endpoint, as any client would.
extension SupabaseFlows {
    /// `/callback` of providers, and `/sso/saml/acs` of companies: the code stands for the assertion that a SAML
    /// provider would post.
    mutating func callback(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ upstream: inout AuthorizationServer
    ) -> ServerResponse {
        let isManaged = call.parts.first == "sso"
        let siteURL = call.settings.siteURL
        let parameters = call.request.parameters
        let flow: SupabaseFlow
        do throws(SupabaseErrorResponse) {
            flow = try takeUpstream(parameters["state"], isManaged: isManaged, call.settings, at: call.now)
        } catch {
            return SupabaseResponses.redirect(
                to: SupabaseRedirects.siteError(error.code, error.message, at: siteURL), status: 303)
        }
        let target = isManaged && !call.settings.redirectRules.accepts(flow.redirectTo) ? siteURL : flow.redirectTo
        if let error = parameters["error"] {
            // The provider's own error, without a code of the server's.
            var pairs = [("error", error)]
            if let text = parameters["error_description"] { pairs.append(("error_description", text)) }
            let location =
                isManaged
                ? SupabaseRedirects.siteError(error, parameters["error_description"] ?? "", at: siteURL)
                : SupabaseRedirects.errors(pairs, at: target, inQuery: true)
            return SupabaseResponses.redirect(to: location, status: isManaged ? 303 : 302)
        }
        do throws(SupabaseErrorResponse) {
            let location = try finish(flow, parameters["code"] ?? "", target, call, &accounts, &upstream)
            return SupabaseResponses.redirect(to: location, status: 302)
        } catch {
            let location =
                isManaged
                ? SupabaseRedirects.siteError(error.code, error.message, at: siteURL)
                : SupabaseRedirects.refusal(error, at: target, inQuery: true, isCallback: true)
            return SupabaseResponses.redirect(to: location, status: isManaged ? 303 : 302)
        }
    }

    private mutating func finish(
        _ flow: SupabaseFlow, _ code: String, _ target: String, _ call: SupabaseCall,
        _ accounts: inout SupabaseAccounts, _ upstream: inout AuthorizationServer
    ) throws(SupabaseErrorResponse) -> String {
        let isManaged = flow.upstream == .sso
        let redirectURI = isManaged ? call.assertionURL : call.callbackURL
        guard
            let (person, tokens) = upstream.redeem(
                code, verifier: flow.verifier, redirectURI: redirectURI, at: call.now)
        else {
            throw SupabaseErrorResponse(
                500, "unexpected_failure", "Unable to exchange external code: \(code.prefix(8))")
        }
        let claims = SupabaseClaims(person, at: flow.provider, issuer: upstream.issuer.name, showsName: true)
        let userID = try accounts.users.user(for: claims, linkingTo: flow.linkTo, call)
        let token = isManaged ? nil : tokens["access_token"]?.string
        let refreshToken = isManaged ? nil : tokens["refresh_token"]?.string
        if flow.challenge == nil {
            let session = accounts.open(userID, by: flow.method, provider: flow.company, call)
            var extra: [(String, String)] = []
            if let token { extra.append(("provider_token", token)) }
            if let refreshToken { extra.append(("provider_refresh_token", refreshToken)) }
            return SupabaseRedirects.with(tokens: try accounts.tokens(session, call), extra: extra, target)
        }
        var opened = flow
        opened.userID = userID
        opened.openedAt = call.now
        opened.providerToken = token
        opened.providerRefreshToken = refreshToken
        save(opened)
        return SupabaseRedirects.with(code: flow.code, target)
    }
}
