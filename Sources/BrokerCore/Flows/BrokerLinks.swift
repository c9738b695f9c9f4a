internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

/// One more identity for the person who is signed in. The server makes another session of the same user for it; the one
/// before would live on beside it, held by nobody.
extension SupabaseFlowStart {
    func link() async throws(BrokerError) -> Broker.Beginning {
        if fields.idToken != nil { return try await linkIDToken() }
        return try await browser()
    }

    func linkPage(_ flow: SupabaseFlow) async throws(BrokerError) -> String {
        let provider = fields.oauthProvider
        let scopes = request.scopes ?? account.scopes
        let params = (account.authorizationParameters + request.parameters).map { (name: $0.0, value: $0.1) }
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in
                try project.identityLink(
                    BrowserSignIn(
                        provider: try SupabaseFlowStart.required(provider, "oauth_provider"), scopes: scopes,
                        redirectTo: flow.redirect?.url ?? "", challenge: flow.pkce?.challenge ?? "", params: params),
                    bearer: token)
            }, occasion: .identityPage,
            apply: { response, _ throws(SupabaseError) in _ = try URLResponse(reading: response) })
        let response = try await broker.sessionManager.change(account.name, change)
        return try SupabaseProvider.read(response, on: .identityPage, SupabaseFlowStart.readURL).url
    }

    private func linkIDToken() async throws(BrokerError) -> Broker.Beginning {
        try checkNonce()
        let fields = fields
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in
                try project.idTokenGrant(
                    provider: try SupabaseFlowStart.required(fields.oauthProvider, "oauth_provider"),
                    idToken: try SupabaseFlowStart.required(fields.idToken, "id_token"),
                    accessToken: fields.accessToken,
                    nonce: fields.nonce, captcha: fields.captcha, linkingTo: token)
            }, apply: { response, _ throws(SupabaseError) in _ = try SessionResponse(reading: response) })
        let response = try await broker.sessionManager.change(account.name, change)
        let answer = try SupabaseProvider.read(response, on: .account, Broker.readSession)
        let session = try await conversation.session(
            try conversation.inner(answer, on: .account), keepingProviderToken: false,
            isEphemeral: !self.fields.isPersistent)
        try await broker.succeed(session, account)
        return .done
    }
}

extension Broker {
    /// Puts a session in the place of another one of the same person, and ends that one at the server.
    func succeed(_ session: Session, _ account: Account) async throws(BrokerError) {
        guard let former = try await sessionManager.readable(account.name) else {
            // Signed out meanwhile: what the server has made for it is nobody's.
            work.start { await revocations.deliver(Closed(account: account, session: session, retirement: nil)) }
            throw .signInRequired(account.name)
        }
        if let assurance = former.project?.assurance, assurance > session.project?.assurance ?? .aal1 {
            // Another factor was proved in the one that is held: it stays, and is told what has changed.
            work.start { await revocations.deliver(Closed(account: account, session: session, retirement: nil)) }
            do throws(BrokerError) {
                try await look(account.name, changesIdentities: true)
            } catch {
                // It is done; the next refresh will say so.
                guard error.isTransient else { throw error }
            }
            return
        }
        var session = session
        if session.project?.providerToken == nil {
            session.project?.providerToken = former.project?.providerToken
        }
        session.project?.migratesFrom = former.project?.migratesFrom
        session.project?.isEphemeral = former.isEphemeral
        try await open(session, for: account, switchingSubject: false, told: .userUpdated)
    }
}
