internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

struct FlowStart: Sendable {
    let provider: SupabaseProvider
    let context: SignInContext
    let request: SignInRequest
    let fields: SupabaseSignInFields

    init(provider: SupabaseProvider, context: SignInContext, request: SignInRequest) {
        self.provider = provider
        self.context = context
        self.request = request
        fields = request.project ?? SupabaseSignInFields()
    }

    var account: Account { provider.account }
    var rules: SupabaseAccount { provider.rules }
    var project: SupabaseProject { provider.project }

    // MARK: Methods without a flow

    func password() async throws(BrokerError) -> Beginning { try await hold(try await sessionByPassword()) }

    func sessionByPassword() async throws(BrokerError) -> Session {
        try await session(
            by: try .password(
                try contact(), try FlowStart.required(fields.password, "password"), captcha: fields.captcha))
    }

    func anonymous() async throws(BrokerError) -> Beginning {
        try await take(.signUpAnonymously(data: fields.data, captcha: fields.captcha))
    }

    func idToken() async throws(BrokerError) -> Beginning {
        let name = try userName()
        if let other = upstreamAccount { return try await idToken(from: other) }
        guard fields.idToken != nil else {
            let text = "missing, and \(account.name) has no id_token_account; pass a token, or name an account"
            throw .invalid(field: "id_token", reason: .stated(text))
        }
        try checkNonce()
        let done = try await take(try idTokenRequest())
        if let name { await context.requests(of: account.name).write(name) }
        return done
    }

    func idTokenRequest(isLink: Bool = false) throws(FieldError) -> SupabaseRequest<SessionResponse> {
        try .idToken(
            try FlowStart.required(fields.idToken, "id_token"),
            of: try FlowStart.required(fields.oauthProvider, "oauth_provider"), accessToken: fields.accessToken,
            nonce: fields.nonce, captcha: fields.captcha, isLink: isLink)
    }

    /// Takes over a session that another program made. It is refreshed at once, and stored only if both tokens belong
    /// to the same session.
    func handedIn() async throws(BrokerError) -> Beginning {
        let token = try SupabaseProvider.building(try FlowStart.required(fields.accessToken, "access_token"))
        let refreshToken = try SupabaseProvider.building(try FlowStart.required(fields.refreshToken, "refresh_token"))
        let provider = provider
        let (claims, isExpired) = try await provider.whose(token)
        let subject = request.switchesSubject ? nil : claims.subject
        try await context.open(of: account, isEphemeral: !fields.isPersistent, subject: subject) {
            attempt throws(BrokerError) in
            let fresh = try await refreshed(refreshToken, claims, under: attempt)
            // An expired access token was not verified, so the new one must be.
            let session = try await provider.session(
                fresh, keepingProviderToken: fields.keepsProviderToken, isEphemeral: !fields.isPersistent,
                wasProved: !isExpired)
            return (session, provider.opening(session, request))
        }
        return .done
    }

    private func refreshed(
        _ refreshToken: Secret, _ claims: AccessTokenClaims, under attempt: RefreshAttempt
    ) async throws(BrokerError) -> SupabaseSession {
        let response: SessionResponse
        do throws(BrokerError) {
            response = try await provider.refresh(refreshToken, under: attempt)
        } catch {
            guard error.provesDeadGrant else { throw error }
            throw .sessionExpired(account.name, word: error.wordOfEnd)
        }
        let fresh = try provider.inner(response, on: .signIn)
        guard fresh.claims.isSameSession(as: claims) else {
            let text = "it belongs to another session than the access token; nothing was stored, and it was used up"
            throw .invalid(field: "refresh_token", reason: .stated(text))
        }
        return fresh
    }

    func signUp() async throws(BrokerError) -> Beginning {
        switch try await signedUp() {
        case .session(let session): try await hold(session)
        case .message(let flow): made(flow)
        }
    }

    /// A session that is not stored yet, or a flow that waits for the confirmation by a message.
    enum SignedUp: Sendable {
        case session(Session)
        case message(SupabaseFlow)
    }

    func signedUp() async throws(BrokerError) -> SignedUp {
        let contact = try SupabaseProvider.building(try contact())
        let flow = try await redirected(isNeeded: contact.isEmail, message: .signUp(contact))
        do throws(BrokerError) {
            let response = try await provider.ask(
                try .signUp(
                    NewUser(
                        contact: contact, password: try FlowStart.required(fields.password, "password"),
                        data: fields.data, channel: try channel()),
                    link: flow.link, captcha: fields.captcha))
            switch response {
            case .session(let response):
                let session = try await session(of: try provider.inner(response, on: .signIn))
                await close(flow)
                return .session(session)
            case .addressTaken: throw .problem(ProviderProblem(.taken(contact)))
            case .confirmationAwaited: return .message(flow)
            }
        } catch {
            await close(flow)
            throw error.unquoting(fields.password)
        }
    }

    func take(
        _ request: @autoclosure () throws(FieldError) -> SupabaseRequest<SessionResponse>
    ) async throws(BrokerError) -> Beginning {
        try await hold(try await session(by: try request()))
    }

    private func session(
        by request: @autoclosure () throws(FieldError) -> SupabaseRequest<SessionResponse>
    ) async throws(BrokerError) -> Session {
        do throws(BrokerError) {
            let response = try await provider.ask(try request())
            return try await session(of: try provider.inner(response, on: .signIn))
        } catch {
            throw error.unquoting(fields.password, fields.idToken, fields.accessToken, fields.nonce)
        }
    }

    private func session(of fresh: SupabaseSession) async throws(BrokerError) -> Session {
        try await provider.session(
            fresh, keepingProviderToken: fields.keepsProviderToken, isEphemeral: !fields.isPersistent,
            wasProved: false)
    }

    private func hold(_ session: Session) async throws(BrokerError) -> Beginning {
        do throws(BrokerError) {
            try await context.open(session, of: account, provider.opening(session, request))
        } catch {
            // The server has created a session that will not be used, so end it there.
            context.endUnheld(session, of: account)
            throw error
        }
        return .done
    }

    // MARK: Flows

    /// Sends a code by message; with `hasLink` the mail has a link that leads to our redirect URI.
    func message(hasLink: Bool) async throws(BrokerError) -> Beginning {
        let message = try SupabaseProvider.building(
            SupabaseFlow.Message.code(
                try contact(), createsUser: fields.createsUser, data: fields.data, channel: try channel()))
        guard !hasLink || message.contact?.isEmail == true else {
            throw .invalid(field: "email", reason: .stated("a link is sent to an email address"))
        }
        return try await send(message, hasLink: hasLink, purpose: .signIn)
    }

    func send(
        _ message: SupabaseFlow.Message, hasLink: Bool, purpose: SupabaseFlow.Purpose
    ) async throws(BrokerError) -> Beginning {
        let flow = try await redirected(isNeeded: hasLink, message: message, purpose: purpose)
        do throws(BrokerError) {
            try await provider.ask(try message.request(link: flow.link, captcha: fields.captcha))
            return made(flow)
        } catch {
            await close(flow)
            throw error
        }
    }

    func recovery() async throws(BrokerError) -> Beginning {
        let address = try SupabaseProvider.building(
            try EmailAddress(parsing: try FlowStart.required(fields.email, "email")))
        return try await send(.recovery(address), hasLink: true, purpose: .recovery)
    }
}

extension FlowStart {
    /// Makes a flow. If a callback is needed, its redirect URI is opened first.
    func redirected(
        isNeeded: Bool, message: SupabaseFlow.Message?, purpose: SupabaseFlow.Purpose = .signIn
    ) async throws(BrokerError) -> SupabaseFlow {
        var flow = SupabaseFlow(purpose: purpose, message: message)
        guard isNeeded else { return flow }
        flow.redirect = try await redirect(flow.flowKey)
        flow.pkce = PKCE()
        flow.keepsProviderToken = fields.keepsProviderToken
        return flow
    }

    /// On loopback the key is the last part of the path. The listener accepts no other path for this flow.
    private func redirect(_ key: String) async throws(BrokerError) -> SupabaseRedirect {
        let template = account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)"
        guard template.hasPrefix("http://") else {
            if rules.isKeyless { try await context.refuseSecondKeyless(at: template, of: account.name) }
            return try SupabaseProvider.building(
                try SupabaseRedirect(base: template, key: key, isKeyless: rules.isKeyless))
        }
        let opened = try await context.openRedirect(
            (template.hasSuffix("/") ? template : template + "/") + key, of: account.name)
        return try SupabaseProvider.building(
            try SupabaseRedirect(
                base: String(opened.dropLast(key.count + 1)), key: key, hasFreePort: template.contains(":{port}")))
    }

    func made(_ flow: SupabaseFlow) -> Beginning {
        .flow(flow, timeout: flow.message == nil ? nil : SupabaseFlow.messageTimeout)
    }

    func close(_ flow: SupabaseFlow) async {
        if let redirect = flow.redirect { await context.closeRedirect(redirect.url, of: account.name) }
    }

    func checkNonce() throws(BrokerError) {
        guard fields.nonce != nil || rules.allowsMissingNonce else {
            let text =
                "an ID token without a nonce may be from another sign-in; send the raw nonce, or set "
                + "allow_missing_nonce for the account"
            throw .invalid(field: "nonce", reason: .stated(text))
        }
    }

    /// The user's name, which Apple's ID tokens do not have, if the request has it.
    func userName() throws(BrokerError) -> AppleName? {
        if let user = fields.appleUser {
            guard fields.data == nil else { throw .invalid(field: "data", reason: .stated("data or user, not both")) }
            return AppleName(reading: user)
        }
        guard let data = fields.data else { return nil }
        return try SupabaseProvider.building(try AppleName(parsing: data))
    }

    private func contact() throws(FieldError) -> Contact { try Contact(email: fields.email, phone: fields.phone) }

    func channel() throws(FieldError) -> MessageChannel? {
        guard let name = fields.channel else { return nil }
        return try MessageChannel(parsing: name)
    }

    static func required<Value>(_ value: Value?, _ field: String) throws(FieldError) -> Value {
        guard let value else { throw FieldError.missing(field) }
        return value
    }
}

extension SupabaseProvider {
    func opening(_ session: Session, _ request: SignInRequest) -> SessionOpening {
        // The session is open, but its first access token could not be verified yet. The account shows this notice.
        let waits = session.project?.isProved == false && session.tokens[.own] == nil
        return SessionOpening(
            switchesSubject: request.switchesSubject, event: session.isRecovery ? .passwordRecovery : .signedIn,
            notice: waits ? .provider(.unproved(host: host)) : nil)
    }
}

extension Contact {
    var isEmail: Bool { if case .email = self { true } else { false } }
}

extension SupabaseFlow {
    func opening(_ url: String) -> SupabaseFlow {
        var flow = self
        flow.page = url
        return flow
    }
}
