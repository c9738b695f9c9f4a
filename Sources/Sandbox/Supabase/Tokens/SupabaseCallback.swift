internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// Where an external provider redirects the user to. The project learns who the user is from the issuer's own token
/// endpoint, as any client would.
extension ProviderState {
    /// `/callback` of providers, and `/sso/saml/acs` of companies: the code stands for the assertion that a SAML
    /// provider would post.
    mutating func supabaseCallback(_ call: SupabaseCall) -> ServerResponse {
        let isManaged = call.parts.first == "sso"
        let parameters = Parameters(call.method == "POST" ? call.request.form ?? [] : call.request.query)
        let found = findFlow(parameters["state"], isManaged: isManaged, at: call.now)
        guard case .success(let index) = found else {
            guard case .failure(let refusal) = found else { return SupabaseResponses.empty(500) }
            return SupabaseResponses.redirect(to: supabase.siteError(refusal.code, refusal.message), status: 303)
        }
        supabase.flows[index].isUsed = true
        let flow = supabase.flows[index]
        var target = flow.redirectTo
        if isManaged, !supabase.settings.redirectRules.accepts(target) { target = supabase.settings.siteURL }
        if let error = parameters["error"] {
            // The provider's own error, without a code of the server's.
            var pairs = [("error", error)]
            if let text = parameters["error_description"] { pairs.append(("error_description", text)) }
            let location =
                isManaged
                ? supabase.siteError(error, parameters["error_description"] ?? "")
                : SupabaseProject.errors(pairs, at: target, inQuery: true)
            return SupabaseResponses.redirect(to: location, status: isManaged ? 303 : 302)
        }
        do throws(SupabaseErrorResponse) {
            let location = try finish(index, parameters["code"] ?? "", isManaged, target, call)
            return SupabaseResponses.redirect(to: location, status: 302)
        } catch {
            let location =
                isManaged
                ? supabase.siteError(error.code, error.message)
                : SupabaseProject.refusal(error, at: target, inQuery: true, isCallback: true)
            return SupabaseResponses.redirect(to: location, status: isManaged ? 303 : 302)
        }
    }

    private func findFlow(_ state: String?, isManaged: Bool, at now: Int) -> Result<Int, SupabaseErrorResponse> {
        let settings = supabase.settings
        guard let state else {
            return .failure(
                isManaged
                    ? SupabaseErrorResponse(404, "saml_relay_state_not_found", "SAML RelayState is missing")
                    : SupabaseErrorResponse(400, "bad_oauth_callback", "OAuth state parameter missing"))
        }
        let kind = isManaged ? SupabaseFlow.Upstream.sso : .oauth
        guard let index = supabase.flows.firstIndex(where: { $0.id == state && $0.upstream == kind }) else {
            return .failure(
                isManaged
                    ? SupabaseErrorResponse(
                        404, "saml_relay_state_not_found", "SAML RelayState does not exist, try logging in again?")
                    : SupabaseErrorResponse(400, "bad_oauth_state", "OAuth state not found or expired"))
        }
        let flow = supabase.flows[index]
        guard !flow.isUsed else {
            return .failure(
                SupabaseErrorResponse(400, "flow_state_already_used", "OAuth state has already been used"))
        }
        guard now - flow.createdAt <= (isManaged ? settings.relayLifetime : settings.flowLifetime) else {
            return .failure(
                isManaged
                    ? SupabaseErrorResponse(
                        422, "saml_relay_state_expired", "SAML RelayState has expired. Try logging in again?")
                    : SupabaseErrorResponse(400, "bad_oauth_state", "OAuth state has expired"))
        }
        return .success(index)
    }

    private mutating func finish(
        _ index: Int, _ code: String, _ isManaged: Bool, _ target: String, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> String {
        let flow = supabase.flows[index]
        guard !code.isEmpty, let family = ledger.codes[code]?.family else {
            throw SupabaseErrorResponse(
                500, "unexpected_failure", "Unable to exchange external code: \(code.prefix(8))")
        }
        let person = ledger.families[family].user
        let redirectURI = isManaged ? supabase.assertionURL : supabase.callbackURL
        let tokens = try redeemUpstream(code, flow.verifier, redirectURI, at: call.now)
        let claims = supabase.claims(of: person, provider: flow.provider, issuer: issuer, showsName: true)
        let userID: String
        if let target = flow.linkTo {
            try supabase.link(claims, to: target, at: call.now)
            userID = target
        } else {
            userID = try supabase.user(for: claims, at: call.now)
        }
        let (token, refreshToken) = (tokens["access_token"]?.string, tokens["refresh_token"]?.string)
        if flow.challenge == nil {
            let proof = isManaged ? String(flow.provider.dropFirst(4)) : nil
            let session = supabase.open(userID, by: flow.method, provider: proof, at: call.now)
            var extra: [(String, String)] = []
            if !isManaged, let token { extra.append(("provider_token", token)) }
            if !isManaged, let refreshToken { extra.append(("provider_refresh_token", refreshToken)) }
            return SupabaseProject.with(tokens: try supabase.tokens(session, at: call.now), extra: extra, target)
        }
        supabase.flows[index].userID = userID
        supabase.flows[index].openedAt = call.now
        supabase.flows[index].providerToken = isManaged ? nil : token
        supabase.flows[index].providerRefreshToken = isManaged ? nil : refreshToken
        return SupabaseProject.with(code: flow.code, target)
    }

    private mutating func redeemUpstream(
        _ code: String, _ verifier: String, _ redirectURI: String, at now: Int
    ) throws(SupabaseErrorResponse) -> JSON {
        let form = FormEncoding.encode([
            ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirectURI),
            ("code_verifier", verifier), ("client_id", SupabaseProject.upstreamClient.id),
        ])
        let request = ServerRequest(
            method: "POST", target: Endpoint.token.path,
            fields: HTTPFields([("Content-Type", "application/x-www-form-urlencoded")]), body: Array(form.utf8),
            peer: .local(uid: 0, pid: 0))
        guard let answer = try? token(SandboxRequest(request, path: Endpoint.token.path), at: now),
            answer.status == 200, case .bytes(let body) = answer.body, let tokens = try? JSON(parsing: body)
        else {
            throw SupabaseErrorResponse(
                500, "unexpected_failure", "Unable to exchange external code: \(code.prefix(8))")
        }
        return tokens
    }
}

extension SupabaseProject {
    /// A user's claims at a provider. Apple's ID tokens contain no name.
    func claims(of person: SandboxUser, provider: String, issuer: String, showsName: Bool) -> SupabaseClaims {
        var data = JSONObject([
            .init("iss", .string(issuer)), .init("sub", .string(person.subject)),
            .init("provider_id", .string(person.subject)), .init("email", .string(person.email)),
            .init("email_verified", true), .init("phone_verified", false),
        ])
        if showsName {
            data["name"] = .string(person.displayName)
            data["full_name"] = .string(person.displayName)
        }
        if provider == "github" { data["user_name"] = .string(person.name) }
        return SupabaseClaims(provider: provider, subject: person.subject, email: person.email, data: data)
    }
}
