internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

struct ShownIDToken: Sendable {
    let token: Secret
    let nonce: Secret?

    /// Nil if the token has a nonce whose source is unknown, because an older version of Ringback requested the token.
    init?(_ identity: Session.Identity) {
        token = identity.token
        guard let claimed = ShownIDToken.nonce(of: identity.token) else {
            nonce = nil
            return
        }
        guard let source = identity.nonceSource, Digest.hex(Digest.sha256(source.revealedBytes())) == claimed
        else { return nil }
        nonce = source
    }

    /// The nonce claim. The token's signature was verified when it was received.
    private static func nonce(of token: Secret) -> String? {
        let parts = token.revealedBytes().split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(parts[1]) else { return nil }
        return (try? JSON(parsing: payload))?["nonce"]?.string.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// A sign-in at a project with the ID token of another account: the user signs in at the provider with that account's
/// flow, and its ID token is sent to the project.
///
/// The project compares the SHA-256 of the nonce in our request with the token's claim. So our own flows send a digest
/// as their nonce and keep its source: see ``Session/Identity/nonceSource``. A token of a refresh usually has no nonce,
/// which is safe: it came directly from the provider's token endpoint.
extension FlowStart {
    /// The other account whose ID token this sign-in uses; nil if the request has a token.
    var upstreamAccount: String? { fields.fromAccount ?? (fields.idToken == nil ? rules.idTokenAccount : nil) }

    /// Uses the other account's ID token. If it has none, its sign-in is started, and this flow waits for it.
    func idToken(from text: String) async throws(BrokerError) -> Beginning {
        guard fields.idToken == nil, fields.nonce == nil, fields.accessToken == nil else {
            throw .invalid(field: "from_account", reason: .stated("send either from_account or id_token, not both"))
        }
        guard fields.data == nil, fields.appleUser == nil else {
            throw .invalid(field: "data", reason: .stated("a name is only accepted together with id_token"))
        }
        let (name, provider) = try await upstream(text)
        if let grant = try await self.provider.idTokenGrant(of: name, provider, in: context) {
            return try await take(grant)
        }
        var request = SignInRequest()
        request.timeout = self.request.timeout
        let started: FlowView
        do throws(BrokerError) {
            started = try await context.signIn(name, request)
        } catch {
            throw error.ofUpstream(name)
        }
        var flow = SupabaseFlow(page: started.authorizationURL)
        flow.upstream = (name, started.id)
        flow.upstreamProvider = provider
        return made(flow)
    }

    private func upstream(_ text: String) async throws(BrokerError) -> (AccountName, String) {
        guard let name = AccountName(text), name != account.name else {
            throw .invalid(field: "from_account", reason: .stated("not the name of another account"))
        }
        let other = try await context.sessions.account(name)
        guard other.project == nil, other.scopes.contains("openid") else {
            throw .invalid(field: "from_account", reason: .stated("\(name) has no ID tokens: no scope openid"))
        }
        let word = fields.oauthProvider ?? FlowStart.words[other.provider] ?? rules.oauthProvider
        return (name, try SupabaseProvider.building(try FlowStart.required(word, "oauth_provider")))
    }

    private static let words = ["google": "google", "microsoft": "azure"]
}

extension SupabaseProvider {
    /// The grant with an account's ID token; nil if a user must sign in to that account first.
    func idTokenGrant(
        of name: AccountName, _ provider: String, in context: SignInContext
    ) async throws(BrokerError) -> SupabaseRequest<SessionResponse>? {
        let query = SessionQuery(kind: .idToken, minValid: SupabaseProvider.idTokenMargin)
        do throws(BrokerError) {
            try await context.require(query, of: name)
        } catch {
            switch error {
            case .signInRequired, .sessionRanOut, .sessionExpired, .refreshRefused: return nil
            default: throw error.ofUpstream(name)
            }
        }
        let identity = try await context.sessions.readable(name)?.identity
        guard let shown = identity.flatMap(ShownIDToken.init) else { return nil }
        return try SupabaseProvider.building(try .idToken(shown.token, of: provider, nonce: shown.nonce))
    }

    /// An ID token is sent only if it is valid for at least this many seconds.
    private static let idTokenMargin: Duration = .seconds(30)

    /// Waits for the flow of the other account and redeems its result. When this flow ends for any reason, it cancels
    /// the other flow for itself; callers that share the other flow keep it.
    func follow(_ flow: Flow, _ upstream: UpstreamFlow, in context: SignInContext) async {
        context.tools.work.startTimer { await wait(for: upstream, flow, in: context) }
        while await context.isPending(flow.id) {
            guard await context.view(flow.id, waiting: SupabaseProvider.watchInterval) != nil else { break }
        }
        await context.cancel(upstream.flow)
    }

    private func wait(for upstream: UpstreamFlow, _ flow: Flow, in context: SignInContext) async {
        while await context.isPending(flow.id) {
            guard let view = await context.view(upstream.flow, waiting: SupabaseProvider.watchInterval) else { return }
            switch view.status {
            case .pending: continue
            case .completed: _ = await context.redeem(.upstream, of: flow)
            case .failed(let error): await context.finish(flow, as: .failed(error.ofUpstream(upstream.account)))
            case .expired(let error): await context.finish(flow, as: .expired(error))
            case .cancelled: await context.finish(flow, as: .cancelled)
            }
            return
        }
    }

    /// The longest wait before the status is checked again.
    private static let watchInterval: Duration = .seconds(30)
}
