internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// A sign-in at a project with the ID token of another account of ours: the person signs in at the provider with our own
/// flow, and the project is shown what came of it.
///
/// The project compares the SHA-256 of a nonce that it is shown with the token's claim. So our own flows send a digest as
/// their nonce and keep what it was made of: see ``AuthorizationFlow/nonceSource``. A token that a refresh brought has no
/// nonce mostly; then none is shown. It came to us straight from its provider, so it is nobody else's sign-in.
struct SupabaseUpstream: Sendable {
    /// The other account.
    let account: AccountName
    /// What the project calls its provider.
    let provider: String
    /// The other account's flow, which this one waits for.
    let flow: String
}

/// An ID token that can be shown, and the nonce that belongs to it.
struct ShownIDToken: Sendable {
    let token: Secret
    let nonce: Secret?

    /// Nil if the token's nonce is one whose source nobody has: one of an older version of ours.
    init?(_ identity: Session.Identity) {
        token = identity.token
        guard let claimed = ShownIDToken.nonce(of: identity.token) else {
            nonce = nil
            return
        }
        guard let source = identity.nonceSource, AuthorizationFlow.digest(of: source).revealed() == claimed else {
            return nil
        }
        nonce = source
    }

    /// The claim as it stands; the token was verified when it came.
    private static func nonce(of token: Secret) -> String? {
        let parts = token.revealedBytes().split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(parts[1]) else { return nil }
        return (try? JSON(parsing: payload))?["nonce"]?.string.flatMap { $0.isEmpty ? nil : $0 }
    }
}

extension SupabaseFlowStart {
    /// The other account whose ID token this sign-in is by; nil if the token was handed in.
    var upstreamAccount: String? { fields.fromAccount ?? (fields.idToken == nil ? rules.idTokenAccount : nil) }

    /// With the token that the other account holds; without one, its own sign-in comes first, and this one is a flow
    /// that waits for it.
    func idToken(from text: String) async throws(BrokerError) -> Broker.Beginning {
        guard fields.idToken == nil, fields.nonce == nil, fields.accessToken == nil else {
            throw .invalid(field: "from_account", reason: "an account's ID token, or one that is handed in, not both")
        }
        guard fields.data == nil, fields.appleUser == nil else {
            throw .invalid(field: "data", reason: "a name goes with an ID token that is handed in")
        }
        let (name, provider) = try await upstream(text)
        if let grant = try await broker.idTokenGrant(of: name, provider, conversation) {
            return try await take(grant)
        }
        var request = SignInRequest()
        request.timeout = self.request.timeout
        let started = try await broker.signIn(name, request)
        let flow = SupabaseFlow(
            purpose: .signIn, flowKey: SupabaseFlow.newKey(), redirect: nil, pkce: nil,
            authorizationURL: started.flow.authorizationURL, message: nil, keepsProviderToken: false,
            upstream: SupabaseUpstream(account: name, provider: provider, flow: started.flow.id))
        return .flow(made(flow))
    }

    /// The other account, and what the project calls its provider.
    private func upstream(_ text: String) async throws(BrokerError) -> (AccountName, String) {
        guard let name = AccountName(text), name != account.name else {
            throw .invalid(field: "from_account", reason: "not the name of another account")
        }
        let other = try await broker.sessionManager.account(name)
        guard other.project == nil, other.scopes.contains("openid") else {
            throw .invalid(field: "from_account", reason: "\(name) has no ID tokens: no scope openid")
        }
        let word = fields.oauthProvider ?? SupabaseFlowStart.words[other.provider] ?? rules.oauthProvider
        return (
            name,
            try SupabaseFlowStart.building { () throws(FieldError) in
                try SupabaseFlowStart.required(word, "oauth_provider")
            }
        )
    }

    /// What projects call the providers that we have presets of.
    private static let words = ["google": "google", "microsoft": "azure"]
}

extension Broker {
    /// The grant with the ID token that an account holds; nil if somebody has to sign in for one.
    func idTokenGrant(
        of name: AccountName, _ provider: String, _ conversation: SupabaseProvider
    ) async throws(BrokerError) -> HTTPRequest? {
        var query = SessionQuery()
        query.kind = .idToken
        query.minValid = Broker.idTokenMargin
        do throws(BrokerError) {
            _ = try await session(name, query)
        } catch {
            switch error {
            case .signInRequired, .sessionRanOut, .sessionExpired, .refreshRefused: return nil
            default: throw error
            }
        }
        let identity = try await sessionManager.readable(name)?.identity
        guard let shown = identity.flatMap(ShownIDToken.init) else { return nil }
        return try SupabaseFlowStart.building { () throws(FieldError) in
            try conversation.project.idTokenGrant(provider: provider, idToken: shown.token, nonce: shown.nonce)
        }
    }

    /// Seconds of life that a token has which is shown to somebody.
    private static let idTokenMargin = 30

    /// A flow that waits for another account's: however it ends, its interest in that one ends with it.
    func followUpstream(of flow: Flow) {
        guard case .project(let awaited) = flow.awaited, let upstream = awaited.upstream else { return }
        work.startTimer { await follow(flow, awaited, upstream) }
        work.startTimer {
            while await flowRegistry.isPending(flow.id) {
                guard (try? await flowRegistry.view(flow.id, waiting: Broker.watchInterval)) != nil else { break }
            }
            _ = try? await flowRegistry.cancel(upstream.flow, isForAll: false)
        }
    }

    /// Waits for the other account's sign-in, and goes on with what came of it.
    private func follow(_ flow: Flow, _ awaited: SupabaseFlow, _ upstream: SupabaseUpstream) async {
        while await flowRegistry.isPending(flow.id) {
            guard let view = try? await flowRegistry.view(upstream.flow, waiting: Broker.watchInterval) else { return }
            switch view.status {
            case .pending: continue
            case .completed:
                // The project may make a session: nothing cuts that short.
                work.start { await finish(flow, awaited, upstream) }
            case .failed(let error): await flowRegistry.finish(flow.id, as: .failed(error))
            case .expired(let error): await flowRegistry.finish(flow.id, as: .expired(error))
            case .cancelled: await flowRegistry.finish(flow.id, as: .cancelled)
            }
            return
        }
    }

    /// No wait lasts longer without a look at what it is for.
    private static let watchInterval: Duration = .seconds(30)

    private func finish(_ flow: Flow, _ awaited: SupabaseFlow, _ upstream: SupabaseUpstream) async {
        do throws(BrokerError) {
            guard let conversation = conversation(with: flow.account) else { throw .flowNotFound }
            try await sessionManager.admitsSession(flow.account.name)
            guard let grant = try await idTokenGrant(of: upstream.account, upstream.provider, conversation) else {
                throw .provider(.invalidAnswer("\(upstream.account) has no ID token that can be shown to the project."))
            }
            let answer = try await conversation.ask(grant, on: .signIn, Broker.readSession)
            try await settle(flow, awaited, try conversation.inner(answer, on: .signIn), conversation)
        } catch {
            await flowRegistry.finish(flow.id, as: .failed(error.withoutWords))
        }
    }
}

extension BrokerError {
    /// The same without the project's words, which may repeat what it was shown.
    fileprivate var withoutWords: BrokerError {
        if case .project(let problem) = self { .project(problem.withoutWords) } else { self }
    }
}
