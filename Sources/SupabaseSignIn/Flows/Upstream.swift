internal import BrokerCore
internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

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
        guard let source = identity.nonceSource, Digest.hex(Digest.sha256(source.revealedBytes())) == claimed else {
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

/// A sign-in at a project with the ID token of another account of ours: the person signs in at the provider with our own
/// flow, and the project is shown what came of it.
///
/// The project compares the SHA-256 of a nonce that it is shown with the token's claim. So our own flows send a digest as
/// their nonce and keep what it was made of: see ``Session/Identity/nonceSource``. A token that a refresh brought has no
/// nonce mostly; then none is shown. It came to us straight from its provider, so it is nobody else's sign-in.
extension FlowStart {
    /// The other account whose ID token this sign-in is by; nil if the token was handed in.
    var upstreamAccount: String? { fields.fromAccount ?? (fields.idToken == nil ? rules.idTokenAccount : nil) }

    /// With the token that the other account holds; without one, its own sign-in comes first, and this one is a flow
    /// that waits for it.
    func idToken(from text: String) async throws(BrokerError) -> Beginning {
        guard fields.idToken == nil, fields.nonce == nil, fields.accessToken == nil else {
            throw .invalid(field: "from_account", reason: "an account's ID token, or one that is handed in, not both")
        }
        guard fields.data == nil, fields.appleUser == nil else {
            throw .invalid(field: "data", reason: "a name goes with an ID token that is handed in")
        }
        let (name, provider) = try await upstream(text)
        if let grant = try await self.provider.idTokenGrant(of: name, provider, in: context) {
            return try await take(grant)
        }
        var request = SignInRequest()
        request.timeout = self.request.timeout
        let started = try await context.signIn(name, request)
        var flow = SupabaseFlow(
            purpose: .signIn, flowKey: SupabaseFlow.newKey(), redirect: nil, pkce: nil,
            page: started.authorizationURL, message: nil, keepsProviderToken: false)
        flow.upstream = UpstreamFlow(account: name, flow: started.id)
        flow.upstreamProvider = provider
        return made(flow)
    }

    /// The other account, and what the project calls its provider.
    private func upstream(_ text: String) async throws(BrokerError) -> (AccountName, String) {
        guard let name = AccountName(text), name != account.name else {
            throw .invalid(field: "from_account", reason: "not the name of another account")
        }
        let other = try await context.sessions.account(name)
        guard other.project == nil, other.scopes.contains("openid") else {
            throw .invalid(field: "from_account", reason: "\(name) has no ID tokens: no scope openid")
        }
        let word = fields.oauthProvider ?? FlowStart.words[other.provider] ?? rules.oauthProvider
        return (
            name,
            try SupabaseProvider.building { () throws(FieldError) in
                try FlowStart.required(word, "oauth_provider")
            }
        )
    }

    /// What projects call the providers that we have presets of.
    private static let words = ["google": "google", "microsoft": "azure"]
}

extension SupabaseProvider {
    /// The grant with the ID token that an account holds; nil if somebody has to sign in for one.
    func idTokenGrant(
        of name: AccountName, _ provider: String, in context: SignInContext
    ) async throws(BrokerError) -> HTTPRequest? {
        var query = SessionQuery()
        query.kind = .idToken
        query.minValid = SupabaseProvider.idTokenMargin
        do throws(BrokerError) {
            try await context.require(query, of: name)
        } catch {
            switch error {
            case .signInRequired, .sessionRanOut, .sessionExpired, .refreshRefused: return nil
            default: throw error
            }
        }
        let identity = try await context.sessions.readable(name)?.identity
        guard let shown = identity.flatMap(ShownIDToken.init) else { return nil }
        return try SupabaseProvider.building { () throws(FieldError) in
            try project.idTokenGrant(provider: provider, idToken: shown.token, nonce: shown.nonce)
        }
    }

    /// Seconds of life that a token has which is shown to somebody.
    private static let idTokenMargin = 30

    /// A flow that waits for another account's. It goes on with what came of that one; however it ends, its interest in
    /// that one ends with it.
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
            case .failed(let error): await context.finish(flow, as: .failed(error))
            case .expired(let error): await context.finish(flow, as: .expired(error))
            case .cancelled: await context.finish(flow, as: .cancelled)
            }
            return
        }
    }

    /// No wait lasts longer without a look at what it is for.
    private static let watchInterval: Duration = .seconds(30)
}
