internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

/// The requests to a Supabase project. Each method is one exchange with a time limit.
struct SupabaseProvider: Sendable {
    let account: Account
    let rules: SupabaseAccount
    let http: any HTTPClient
    let keySets: SupabaseKeySets
    let clock: BrokerClock

    var project: SupabaseProject { rules.project }
    var host: String { (try? WebURL(parsing: project.authURL))?.place ?? "the project" }

    /// - Parameter attempt: what a request needs that makes the project replace a refresh token; nil for any other.
    func send(_ request: HTTPRequest, under attempt: RefreshAttempt? = nil) async throws(BrokerError) -> HTTPResponse {
        try await account.send(request, under: attempt, isStrange: false, isPublic: false, over: http)
    }

    func http<Response>(
        _ request: SupabaseRequest<Response>, bearer: Secret? = nil
    ) throws(BrokerError) -> HTTPRequest {
        try SupabaseProvider.building(try project.http(request, bearer: bearer))
    }

    /// Sends a request and reads its response. The occasion decides how an error is reported.
    @discardableResult
    func ask<Response>(
        _ request: @autoclosure () throws(FieldError) -> SupabaseRequest<Response>, bearer: Secret? = nil,
        on occasion: SupabaseProblem.Occasion = .signIn
    ) async throws(BrokerError) -> Response {
        let asked = try http(try SupabaseProvider.building(try request()), bearer: bearer)
        return try SupabaseProvider.read(try await send(asked), on: occasion)
    }

    static func read<Response: SupabaseResponse>(
        _ response: HTTPResponse, on occasion: SupabaseProblem.Occasion
    ) throws(BrokerError) -> Response {
        try mapping(occasion) { () throws(SupabaseError) in try Response(reading: response) }
    }

    static func mapping<Value>(
        _ occasion: SupabaseProblem.Occasion, _ body: () throws(SupabaseError) -> Value
    ) throws(BrokerError) -> Value {
        do throws(SupabaseError) {
            return try body()
        } catch {
            throw BrokerError(error, on: occasion)
        }
    }

    /// The error of an invalid field is reported before anything is sent.
    static func building<Value>(_ make: @autoclosure () throws(FieldError) -> Value) throws(BrokerError) -> Value {
        do throws(FieldError) {
            return try make()
        } catch {
            throw BrokerError(error)
        }
    }

    func refresh(_ token: Secret, under attempt: RefreshAttempt) async throws(BrokerError) -> SessionResponse {
        let response = try await send(try http(.refresh(token)), under: attempt)
        do throws(SupabaseError) {
            return try SessionResponse(reading: response)
        } catch {
            // If the response was cut off, that says more than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            var meaning = BrokerError(refusing: error, host: host)
            if case .invalid = error, (400..<500).contains(response.status) {
                let message = OAuthError.statedText(in: response)
                meaning = .provider(.unexplained(host: host, status: response.status, message: message))
            }
            throw meaning.unquoting(token)
        }
    }

    /// Validates the response to a refresh or a second factor. Throws if none of its tokens may be used.
    func validate(_ response: SessionResponse, for session: Session) async throws(BrokerError) -> Session {
        let fresh = try inner(response, on: .refresh)
        let isSame = session.project?.sessionID == nil || fresh.claims.sessionID == session.project?.sessionID
        let isOurs = Session.isSame(fresh.claims.subject, session.subject) && isSame
        // Only a verified token can prove that a response belongs to another session.
        try await prove(fresh.accessToken, wasProved: isOurs && session.project?.isProved == true)
        guard isOurs else {
            throw .provider(.otherSession(.stated("The new tokens of \(host) belong to another session than before.")))
        }
        var renewed = session
        renewed.user = fresh.user?.json ?? session.user
        var facts = Session.SupabaseFacts(fresh.claims)
        facts.isProved = true
        facts.providerToken = session.project?.providerToken
        facts.migratesFrom = session.project?.migratesFrom
        renewed.project = facts
        renewed.tokens[.own] = token(fresh)
        return renewed
    }

    /// The session of a response to a sign-in, not stored yet. If its first access token could not be verified now, the
    /// session has no access token: a refresh requests another one, which is verified then.
    func session(
        _ response: SupabaseSession, keepingProviderToken: Bool, isEphemeral: Bool, wasProved: Bool = false
    ) async throws(BrokerError) -> Session {
        var facts = Session.SupabaseFacts(response.claims)
        do throws(BrokerError) {
            try await prove(response.accessToken, wasProved: wasProved)
            facts.isProved = true
        } catch {
            guard case .provider(.unproved) = error, response.refreshToken != nil else { throw error }
        }
        if keepingProviderToken { facts.providerToken = response.providerToken }
        var session = Session(
            refreshToken: response.refreshToken, issuer: project.issuer,
            tokenEndpointOrigin: try WebURL.origin(of: project.authURL), signedInAt: clock.wallInstant)
        session.subject = response.claims.subject
        session.user = response.user?.json
        session.rotation = .rotates
        if facts.isProved { session.tokens[.own] = token(response) }
        session.project = facts
        session.keeping = isEphemeral ? .memory : .vault
        return session
    }

    func inner(
        _ response: SessionResponse, on occasion: SupabaseProblem.Occasion
    ) throws(BrokerError) -> SupabaseSession {
        try SupabaseProvider.mapping(occasion) { () throws(SupabaseError) in try response.session() }
    }

    private func token(_ response: SupabaseSession) -> AccessToken {
        let lifetime = response.lifetime(now: clock.now()).map { Duration.seconds($0) }
        return AccessToken(
            value: response.accessToken, type: "Bearer", scope: nil,
            expiry: lifetime.map { Deadline(in: $0, by: clock) }, lifetime: lifetime)
    }

    func user(bearer: Secret) async throws(BrokerError) -> SupabaseUser {
        try await ask(.user, bearer: bearer, on: .account)
    }
}

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
            throw RedemptionFailure(.conflict(.otherResponseAwaited))
        }
        let redeeming = Redeeming(provider: self, flow: flow, awaited: awaited, context: context)
        switch proof {
        case .callback(let arrival): return try await redeeming.callback(arrival)
        case .code(let code): return try await redeeming.code(code)
        case .credential(let credential): return try await redeeming.credential(credential)
        case .upstream: return try await redeeming.upstream()
        case .poll, .own: throw RedemptionFailure(.conflict(.otherResponseAwaited))
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
        // Only requests to the tables can be impossible.
        guard let settings = try? project.http(.settings) else { return Diagnosis([]) }
        let look = ProviderLook(account: account, http: http, clock: clock, place: "url")
        return Diagnosis(
            await look.look(settings, as: .provider) { response in
                do throws(SupabaseError) {
                    return judge(try SupabaseSettings(reading: response))
                } catch {
                    let (text, setting) =
                        [401, 403].contains(response.status)
                        ? ("does not accept the api_key", "api_key") : ("is not a Supabase Auth server", "url")
                    return .failure(.init(.stated("\(text) (HTTP \(response.status))"), setting: setting))
                }
            })
    }

    /// The server does not list newer kinds of providers, so this is only a warning.
    private func judge(_ settings: SupabaseSettings) -> Result<Reason, ProviderLook.Trouble> {
        guard let word = rules.oauthProvider, !word.contains(":"), !settings.open.contains(word) else {
            return .success(.stated("is a Supabase Auth server"))
        }
        let text = "is a Supabase Auth server, where sign-in with \(word) is not enabled"
        return .failure(.init(.stated(text), level: .warning, setting: "oauth_provider"))
    }
}
