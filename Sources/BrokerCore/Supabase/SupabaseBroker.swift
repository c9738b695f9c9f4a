internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// How sign-ins at a Supabase project begin: some are done at once, the others become flows.
extension Broker {
    /// True for an account at a Supabase project.
    public func isAtProject(_ name: AccountName) async throws(BrokerError) -> Bool {
        try await sessionManager.account(name).project != nil
    }

    /// A change of the user is no way in. What is done at once has no flow that would tell of its start.
    func recordChoice(_ name: AccountName, _ request: SignInRequest, _ account: Account) {
        guard !request.changesUser else { return }
        record(.signInChosen(name, way: request.way(of: account)))
        if request.startsAtOnce { record(.signInStarted(name, method: request.method)) }
    }

    /// What was done at once, or never became a flow, has none to tell of its end.
    func recordDirect(
        _ name: AccountName, _ request: SignInRequest, since began: Int, _ outcome: BrokerFact.Outcome,
        _ error: BrokerError?
    ) {
        guard !request.changesUser else { return }
        if !request.startsAtOnce { record(.signInStarted(name, method: request.method)) }
        let duration = Duration.milliseconds(clock.boot() - began)
        record(.signInEnded(name, method: request.method, outcome, duration: duration, error: error))
    }

    func prepare(
        _ account: Account, _ rules: SupabaseAccount, _ request: SignInRequest
    ) async throws(BrokerError) -> Beginning {
        let attempt = SupabaseFlowStart(
            broker: self, account: account, rules: rules, request: request,
            fields: request.project ?? SupabaseSignInFields())
        switch request.method {
        case "password": return try await attempt.password()
        case "sign_up": return try await attempt.signUp()
        case "otp", "magic_link": return try await attempt.message(hasLink: request.method == "magic_link")
        case "recovery": return try await attempt.recovery()
        case "link": return try await attempt.link()
        case SignInRequest.userUpdate: return try await attempt.change()
        case "id_token": return try await attempt.idToken()
        case "anonymous": return try await attempt.anonymous()
        case "passkey": return try await attempt.passkey()
        case "session": return try await attempt.handedIn()
        default: return try await attempt.browser()
        }
    }
}

/// One sign-in at a project on its way to a flow or a session.
struct SupabaseFlowStart: Sendable {
    let broker: Broker
    let account: Account
    let rules: SupabaseAccount
    let request: SignInRequest
    let fields: SupabaseSignInFields

    var project: SupabaseProject { rules.project }
    var conversation: SupabaseProvider {
        SupabaseProvider(
            account: account, rules: rules, http: broker.http, directory: broker.directory, clock: broker.clock)
    }

    // MARK: Done at once

    func password() async throws(BrokerError) -> Broker.Beginning {
        let grant = try SupabaseFlowStart.building { () throws(FieldError) in
            try project.passwordGrant(
                try Contact(email: fields.email, phone: fields.phone),
                password: try SupabaseFlowStart.required(fields.password, "password"), captcha: fields.captcha)
        }
        return try await take(grant)
    }

    func anonymous() async throws(BrokerError) -> Broker.Beginning {
        try await take(project.signUpAnonymously(data: fields.data, captcha: fields.captcha))
    }

    func idToken() async throws(BrokerError) -> Broker.Beginning {
        let name = try personName()
        if let other = upstreamAccount { return try await idToken(from: other) }
        guard fields.idToken != nil else {
            throw .invalid(
                field: "id_token",
                reason: "missing, and \(account.name) has no id_token_account; hand a token in "
                    + "(ringback login \(account.name) --method id_token --with PROVIDER) or name an account (--from ACCOUNT)"
            )
        }
        try checkNonce()
        let grant = try SupabaseFlowStart.building { () throws(FieldError) in
            try project.idTokenGrant(
                provider: try SupabaseFlowStart.required(fields.oauthProvider, "oauth_provider"),
                idToken: try SupabaseFlowStart.required(fields.idToken, "id_token"), accessToken: fields.accessToken,
                nonce: fields.nonce, captcha: fields.captcha)
        }
        let done = try await take(grant)
        if let name { await broker.write(name, to: account.name) }
        return done
    }

    /// A session that another program made: refreshed at once, and kept only if it is the one that it says to be.
    func handedIn() async throws(BrokerError) -> Broker.Beginning {
        let (token, refreshToken) = try SupabaseFlowStart.building { () throws(FieldError) in
            (
                try SupabaseFlowStart.required(fields.accessToken, "access_token"),
                try SupabaseFlowStart.required(fields.refreshToken, "refresh_token")
            )
        }
        let conversation = conversation
        let (claims, isExpired) = try await conversation.whose(token)
        let replaced = try await broker.sessionManager.open(
            for: account, switchingSubject: request.switchesSubject, isEphemeral: !fields.isPersistent
        ) { () throws(BrokerError) in
            let fresh = try await refreshed(refreshToken, claims)
            // Of a token that had expired, its own word was all there was.
            return try await conversation.session(
                fresh, keepingProviderToken: fields.keepsProviderToken, isEphemeral: !fields.isPersistent,
                wasProved: !isExpired)
        }
        broker.endReplaced(replaced)
        return .done
    }

    /// The first refresh of a session that was handed in. In the turn of the account's lane.
    private func refreshed(
        _ refreshToken: Secret, _ claims: AccessTokenClaims
    ) async throws(BrokerError) -> SupabaseSession {
        let conversation = conversation
        let answer: SessionResponse
        do throws(BrokerError) {
            answer = try await conversation.refresh(refreshToken)
        } catch {
            guard error.provesDeadGrant else { throw error }
            throw .sessionExpired(account.name, word: error.wordOfEnd)
        }
        let fresh = try conversation.inner(answer, on: .signIn)
        guard fresh.claims.isSameSession(as: claims) else {
            throw .invalid(
                field: "refresh_token", reason: "it is of another session than the access token; nothing was kept")
        }
        return fresh
    }

    func signUp() async throws(BrokerError) -> Broker.Beginning {
        let contact = try SupabaseFlowStart.building { () throws(FieldError) in
            try Contact(email: fields.email, phone: fields.phone)
        }
        let flow = try await redirected(isNeeded: contact.isEmail, message: .signUp(contact))
        do throws(BrokerError) {
            let asked = try SupabaseFlowStart.building { () throws(FieldError) in
                try project.signUp(
                    .init(
                        contact: contact, password: try SupabaseFlowStart.required(fields.password, "password"),
                        data: fields.data, channel: try channel()),
                    link: flow.link, captcha: fields.captcha)
            }
            let answer = try await conversation.ask(asked, on: .signIn, SupabaseFlowStart.readSignUp)
            switch answer {
            case .session(let answer):
                let beginning = try await open(try conversation.inner(answer, on: .signIn))
                await close(flow)
                return beginning
            case .addressTaken: throw .project(.taken(contact))
            case .confirmationAwaited: return .flow(made(flow))
            }
        } catch {
            await close(flow)
            throw error.unquoting(fields.password)
        }
    }

    private static func readSignUp(_ response: HTTPResponse) throws(SupabaseError) -> SignUpResponse {
        try SignUpResponse(reading: response)
    }

    private static func readSession(_ response: HTTPResponse) throws(SupabaseError) -> SessionResponse {
        try SessionResponse(reading: response)
    }

    func take(_ grant: HTTPRequest) async throws(BrokerError) -> Broker.Beginning {
        do throws(BrokerError) {
            let answer = try await conversation.ask(grant, on: .signIn, SupabaseFlowStart.readSession)
            return try await open(try conversation.inner(answer, on: .signIn))
        } catch {
            throw error.unquoting(fields.password, fields.idToken, fields.accessToken, fields.nonce)
        }
    }

    private func open(_ fresh: SupabaseSession) async throws(BrokerError) -> Broker.Beginning {
        let session = try await conversation.session(
            fresh, keepingProviderToken: fields.keepsProviderToken, isEphemeral: !fields.isPersistent,
            wasProved: false)
        do throws(BrokerError) {
            try await broker.open(session, for: account, switchingSubject: request.switchesSubject)
        } catch {
            // The server has made the session for us, and would keep it for nobody.
            broker.endUnheld(session, of: account)
            throw error
        }
        return .done
    }

    // MARK: Flows

    /// A code by message; with a link, the mail leads back here.
    func message(hasLink: Bool) async throws(BrokerError) -> Broker.Beginning {
        let message = try SupabaseFlowStart.building { () throws(FieldError) in
            SupabaseFlow.Message.code(
                try Contact(email: fields.email, phone: fields.phone), createsUser: fields.createsUser,
                data: fields.data, channel: try channel())
        }
        guard !hasLink || message.contact?.isEmail == true else {
            throw .invalid(field: "email", reason: "a link is sent to an e-mail address")
        }
        return try await send(message, hasLink: hasLink, purpose: .signIn)
    }

    func send(
        _ message: SupabaseFlow.Message, hasLink: Bool, purpose: SupabaseFlow.Purpose
    ) async throws(BrokerError) -> Broker.Beginning {
        let flow = try await redirected(isNeeded: hasLink, message: message, purpose: purpose)
        do throws(BrokerError) {
            let asked = try SupabaseFlowStart.building { () throws(FieldError) in
                try project.sending(message, link: flow.link, captcha: fields.captcha)
            }
            _ = try await conversation.ask(asked, on: .signIn, SupabaseFlowStart.readMessage)
            return .flow(made(flow))
        } catch {
            await close(flow)
            throw error
        }
    }

    func recovery() async throws(BrokerError) -> Broker.Beginning {
        let address = try SupabaseFlowStart.building { () throws(FieldError) in
            try EmailAddress(parsing: try SupabaseFlowStart.required(fields.email, "email"))
        }
        return try await send(.recovery(address), hasLink: true, purpose: .recovery)
    }

    static func readMessage(_ response: HTTPResponse) throws(SupabaseError) -> MessageResponse {
        try MessageResponse(reading: response)
    }
}
