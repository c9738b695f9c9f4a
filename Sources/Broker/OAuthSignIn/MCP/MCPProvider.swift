internal import BrokerCore
internal import OAuth
internal import RingbackBase

/// The provider of an account at an MCP server: a sign-in first asks the server for its issuer.
struct MCPProvider: SignInProvider {
    let account: Account
    let kind: MCPAccount
    let tools: ProviderTools

    private var walk: MCPWalk { MCPWalk(account: account, kind: kind, tools: tools) }
    private var clients: MCPClients { MCPClients(account: account, kind: kind, tools: tools) }

    private func provider(_ account: Account) -> OAuthProvider {
        OAuthProvider(provider: Provider(account, by: account.oauth, tools))
    }

    private func provider(at connection: MCPConnection) -> OAuthProvider {
        provider(account.at(connection, of: kind, with: tools))
    }

    /// Throws if the session names no issuer: another version stored it.
    private func provider(of session: Session) throws(BrokerError) -> OAuthProvider {
        guard let connection = MCPConnection(of: session, at: kind.server) else { throw .signInRequired(account.name) }
        return provider(at: connection)
    }

    private func provider(of flow: Flow) throws(BrokerError) -> OAuthProvider {
        let found = (flow.awaited as? AuthorizationFlow)?.mcp ?? (flow.awaited as? DeviceFlow)?.mcp
        guard let connection = found else { throw .conflict(.otherResponseAwaited) }
        return provider(at: connection)
    }

    // MARK: Sign-ins

    func check(_ request: SignInRequest) throws(BrokerError) -> SignInRequest {
        guard kind.needsToken else {
            throw .methodUnsupported(.oauth(.mcpNeedsNoSignIn(account.name, host: kind.server.url.place)))
        }
        var account = account
        account.kind = kind.rules
        return try provider(account).check(request)
    }

    func begin(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning {
        try await pinned.walkAndBegin(request, in: context)
    }

    private var pinned: MCPProvider {
        MCPProvider(account: account, kind: kind, tools: tools.sending(with: PinnedClient(tools.http)))
    }

    private func walkAndBegin(
        _ request: SignInRequest, in context: SignInContext
    ) async throws(BrokerError) -> Beginning {
        let announcement = try await walk.announcement()
        try walk.check(announcement)
        let scopes = await scopes(of: request, announcement, in: context)
        var choice = try await clients.choose(announcement, for: scopes, in: context)
        // The user may have left an error page of a server that does not know the client.
        if choice.isRegistered, let left = await context.abandonedPage(of: account.name) as? AuthorizationFlow,
            left.mcp?.clientID == choice.connection.clientID,
            await ClientDiagnosis(provider: provider(choice).provider, metadata: announcement.metadata).isRejected()
        {
            choice = try await clients.choose(announcement, for: scopes, in: context, isRenewed: true)
        }
        // The scopes of the connection are requested.
        var request = request
        request.scopes = nil
        let beginning: Beginning
        do throws(BrokerError) {
            beginning = try await provider(choice).begin(request, in: context)
        } catch {
            // The port was taken since, the secret has expired, or the issuer does not know the client: another client
            // is registered, once.
            guard choice.isRegistered, error.isMendedByRegistering else {
                throw await clients.explaining(error, of: choice.connection)
            }
            let fresh = try await clients.choose(announcement, for: scopes, in: context, isRenewed: true)
            beginning = try await provider(fresh).begin(request, in: context)
        }
        await deleteReplacedClients(in: context)
        return beginning
    }

    /// Deletes unused clients while the sign-in goes on. The session and undelivered revocations may need theirs.
    private func deleteReplacedClients(in context: SignInContext) async {
        guard await context.pendingRevocations(of: account.name) == 0 else { return }
        let used = await context.sessions.held(account.name).flatMap { MCPConnection(of: $0, at: kind.server) }
        let clients = clients
        tools.work.start { await clients.deleteReplaced(besides: used) }
    }

    /// The configured scopes; otherwise the caller's or the announced ones, with those of the account's session, so
    /// that a sign-in for one tool does not lose the scopes of another.
    private func scopes(
        of request: SignInRequest, _ announcement: MCPAnnouncement, in context: SignInContext
    ) async -> [String] {
        if request.scopes == nil, !account.scopes.isEmpty { return account.scopes }
        let held = await context.sessions.held(account.name).flatMap { MCPConnection(of: $0, at: kind.server) }
        let former = held?.issuer == announcement.connection.issuer ? held?.scopes ?? [] : []
        return ScopeList.union(former, request.scopes ?? announcement.usualScopes)
    }

    private func provider(_ choice: MCPClients.Choice) -> OAuthProvider {
        var account = account.at(choice.connection, of: kind, with: tools)
        account.redirectURI = choice.redirectURI
        return provider(account)
    }

    func redeem(
        _ proof: Proof, of flow: Flow, in context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption {
        let provider = try await RedemptionFailure.mapping { () throws(BrokerError) in try self.provider(of: flow) }
        do throws(RedemptionFailure) {
            return try await provider.redeem(proof, of: flow, in: context)
        } catch {
            guard let connection = provider.connection else { throw error }
            throw RedemptionFailure(await clients.explaining(error.error, of: connection), endsFlow: error.endsFlow)
        }
    }

    /// A server that does not know the client shows an error page, and sends no callback.
    func noteExpiry(of flow: Flow) async {
        guard let connection = (flow.awaited as? AuthorizationFlow)?.mcp else { return }
        await clients.replaceClient(of: connection)
    }

    func accompany(_ flow: Flow, in context: SignInContext) async {
        try? await provider(of: flow).accompany(flow, in: context)
    }

    func renewPage(of flow: Flow) async throws(BrokerError) -> any AwaitedSignIn {
        try await provider(of: flow).renewPage(of: flow)
    }

    func anotherPage(
        of flow: Flow, in context: SignInContext
    ) async throws(BrokerError) -> (any AwaitedSignIn)? {
        guard let awaited = flow.awaited as? AuthorizationFlow else { return nil }
        var request = flow.request
        request.scopes = nil
        return try await provider(of: flow).anotherPage(awaited, request)
    }

    // MARK: Sessions

    func renewal(
        of session: Session, for key: TokenKey, because reason: RefreshReason
    ) async throws(BrokerError) -> Renewal {
        let provider = try provider(of: session)
        guard let connection = provider.connection else { throw .signInRequired(account.name) }
        let clients = clients
        do throws(BrokerError) {
            return try await provider.renewal(of: session, for: key, because: reason)
                .explaining { await clients.explaining($0, of: connection, isRefresh: true) }
        } catch {
            throw await clients.explaining(error, of: connection, isRefresh: true)
        }
    }

    func revoke(_ session: Session, endingAll: Bool) async throws(BrokerError) -> Bool {
        let provider = try provider(of: session)
        do throws(BrokerError) {
            return try await provider.revoke(session, endingAll: endingAll)
        } catch {
            if error.disownsClient, let connection = provider.connection { await clients.replaceClient(of: connection) }
            throw error
        }
    }

    func endSessionPage(
        of session: Session?, _ form: EndSessionForm
    ) async throws(BrokerError) -> EndSessionPage? {
        // Without a session it is not known at which issuer the user was signed in.
        guard let session else { return nil }
        return try await provider(of: session).endSessionPage(of: session, form)
    }

    // MARK: Diagnosis

    func diagnose(_ subject: DiagnosisSubject, of session: Session?) async -> Diagnosis {
        await MCPDiagnosis(account: account, kind: kind, tools: pinned.tools, session: session).diagnosis()
    }
}

extension OAuthProvider {
    fileprivate var connection: MCPConnection? { provider.rules.mcp }
}

extension BrokerError {
    fileprivate var isMendedByRegistering: Bool {
        switch self {
        case .portInUse: true
        case .unusableSetting(let setting): setting.isOfRegistration
        default: disownsClient
        }
    }
}

extension UnusableSetting {
    /// The secret of a registered client is missing or has expired.
    var isOfRegistration: Bool {
        switch reason.ofOAuth {
        case .noRegisteredSecret?, .secretExpired?: true
        default: false
        }
    }
}
