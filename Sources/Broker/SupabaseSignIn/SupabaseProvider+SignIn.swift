internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

/// A Supabase project as a provider of sign-ins.
extension SupabaseProvider: SignInProvider {
    func check(_ request: SignInRequest) throws(BrokerError) -> SignInRequest {
        let method = try request.readMethod(offering: SupabaseMethod.ofSignIn, of: account)
        try request.checkParameters(reserved: AuthorizationRequest.reservedParameters, of: account)
        return request.read(method, rules)
    }

    func begin(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning {
        let start = FlowStart(provider: self, context: context, request: request)
        switch try request.readMethod(offering: SupabaseMethod.ofSignIn, of: account) {
        case .browser, .sso: return try await start.browser()
        case .password: return try await start.password()
        case .signUp: return try await start.signUp()
        case .otp: return try await start.message(hasLink: false)
        case .magicLink: return try await start.message(hasLink: true)
        case .recovery: return try await start.recovery()
        case .link: return try await start.link()
        case .userUpdate: return try await start.change()
        case .idToken: return try await start.idToken()
        case .anonymous: return try await start.anonymous()
        case .passkey: return try await start.passkey()
        case .session: return try await start.handedIn()
        case .page: return try await start.signInPage()
        }
    }

    func redeem(
        _ proof: Proof, of flow: Flow, in context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption {
        let redemption = try await redemption(of: proof, flow, context)
        guard let page = flow.firstAwaited as? PageFlow else { return redemption }
        return try await page.session.admit(redemption, of: flow, in: context)
    }

    private func redemption(
        of proof: Proof, _ flow: Flow, _ context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption {
        if case .own(let proof as PageProof) = proof {
            return try await PageRedeeming(provider: self, flow: flow, context: context).redeem(proof)
        }
        guard let awaited = flow.awaited as? SupabaseFlow else {
            throw RedemptionFailure(.conflict(.flow(.otherResponseAwaited)))
        }
        let redeeming = Redeeming(provider: self, flow: flow, awaited: awaited, context: context)
        switch proof {
        case .callback(let arrival): return try await redeeming.callback(arrival)
        case .code(let code): return try await redeeming.code(code)
        case .credential(let credential): return try await redeeming.credential(credential)
        case .upstream: return try await redeeming.upstream()
        case .poll, .own: throw RedemptionFailure(.conflict(.flow(.otherResponseAwaited)))
        }
    }

    func accompany(_ flow: Flow, in context: SignInContext) async {
        if let upstream = flow.awaited.upstream { await follow(flow, upstream, in: context) }
        if let page = flow.awaited as? PageFlow { await page.session.serve(flow, in: context) }
    }

    func anotherPage(
        of flow: Flow, in context: SignInContext
    ) async throws(BrokerError) -> (any AwaitedSignIn)? {
        if let page = flow.awaited as? PageFlow {
            guard await page.session.goesOn(flow, in: context) else { return nil }
            return PageTicket(page.session.ticket(to: flow), of: page)
        }
        guard let awaited = flow.awaited as? SupabaseFlow, awaited.redirect?.keyPlace != SupabaseRedirect.KeyPlace.none
        else { return nil }
        return try await FlowStart(provider: self, context: context, request: flow.request).page()
    }

    // MARK: Diagnosis

    func diagnose(_ subject: DiagnosisSubject, of session: Session?) async -> Diagnosis {
        let look = ProviderLook(account: account, http: http, clock: clock, place: "url")
        return Diagnosis(
            await look.look(project.settings(), as: .provider) { response in
                do throws(SupabaseError) {
                    return judge(try SupabaseSettings(reading: response))
                } catch {
                    return .failure(
                        response.status == 401 || response.status == 403
                            ? ProviderLook.Trouble(
                                .supabase(.keyNotAcceptedHere(status: response.status)), setting: "api_key")
                            : ProviderLook.Trouble(
                                .supabase(.noSupabaseHere(status: response.status)), setting: "url")
                    )
                }
            })
    }

    /// The server does not list newer kinds of providers, so this is only a warning.
    private func judge(_ settings: SupabaseSettings) -> Result<Reason, ProviderLook.Trouble> {
        guard let word = rules.oauthProvider, !word.contains(":"), !settings.open.contains(word) else {
            return .success(.supabase(.supabaseHere))
        }
        return .failure(
            ProviderLook.Trouble(
                .supabase(.methodNotEnabled(word)), level: .warning,
                setting: "oauth_provider"))
    }
}
