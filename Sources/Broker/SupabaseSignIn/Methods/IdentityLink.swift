internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

/// Links one more identity to the signed-in user. The server makes a new session of the same user for it, which
/// replaces the current one. The current session is then ended at the server, because it would stay valid otherwise.
extension FlowStart {
    func link() async throws(BrokerError) -> Beginning {
        if fields.idToken != nil { return try await linkIDToken() }
        return try await browser()
    }

    func linkPage(_ flow: SupabaseFlow) async throws(BrokerError) -> String {
        try await context.requests(of: account.name).ask(
            try .identityLink(browserSignIn(at: fields.oauthProvider, flow)), on: .identityPage
        ).url
    }

    private func linkIDToken() async throws(BrokerError) -> Beginning {
        try checkNonce()
        let tokens = try await context.requests(of: account.name).ask(try idTokenRequest(isLink: true))
        let session = try await provider.session(
            try provider.inner(tokens, on: .account), keepingProviderToken: false, isEphemeral: !fields.isPersistent)
        try await provider.succeed(session, in: context)
        return .done
    }
}

extension SupabaseProvider {
    func succeed(_ session: Session, in context: SignInContext) async throws(BrokerError) {
        let former: Session
        do throws(BrokerError) {
            guard let held = try await context.sessions.readable(account.name) else {
                throw .signInRequired(account.name)
            }
            former = held
        } catch {
            // The account was signed out or the vault locked meanwhile, so end the new session at the server.
            context.endUnheld(session, of: account)
            throw error
        }
        if let assurance = former.project?.assurance, assurance > session.project?.assurance ?? .aal1 {
            // The current session has a higher assurance level. Keep it, end the new one, and reload the user.
            context.endUnheld(session, of: account)
            do throws(BrokerError) {
                try await context.requests(of: account.name).fetchUser(changesIdentities: true)
            } catch {
                // The identity is linked. The next refresh loads the changed user.
                guard error.isTransient else { throw error }
            }
            return
        }
        var session = session
        if session.project?.providerToken == nil { session.project?.providerToken = former.project?.providerToken }
        session.project?.migratesFrom = former.project?.migratesFrom
        session.keeping = former.keeping
        var opening = SessionOpening(event: .userUpdated, isAsked: true)
        opening.notice = self.opening(session, SignInRequest()).notice
        do throws(BrokerError) {
            try await context.open(session, of: account, opening)
        } catch {
            // The account keeps the former session. The new one will not be used, so end it at the server.
            if family(of: session) != family(of: former) { context.endUnheld(session, of: account) }
            throw error
        }
    }
}
