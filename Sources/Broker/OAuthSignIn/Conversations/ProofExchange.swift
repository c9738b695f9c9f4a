internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import Synchronization

/// What a server has said about proofs (RFC 9449).
struct ProofTerms: Sendable, Equatable {
    struct Server: Hashable, Sendable {
        /// A nonce for one role is none for the other, even at one origin (RFC 9449 section 9).
        enum Role: Sendable { case authorization, resource }

        let origin: String
        let role: Role
    }

    /// The newest that any response has stated, but for one after which the request is sent once more.
    fileprivate(set) var nonce: String?
    /// The server's Unix time at the boot of this machine; nil until it has refused a proof for its time. It does not
    /// depend on our wall clock, which NTP may correct after the boot.
    private(set) var timeAtBoot: Int?

    /// In seconds. Some servers refuse a proof that is ten seconds old. A `Date` has whole seconds.
    private static let tolerance = 5

    /// What a proof has to say that is made now, in Unix seconds.
    func date(by clock: BrokerClock) -> Int { timeAtBoot.map { $0 + clock.boot() / 1_000 } ?? clock.now() }

    /// By how many seconds the server's clock is ahead of ours; 0 if that does not matter, or has not yet.
    func clockLead(by clock: BrokerClock) -> Int {
        let lead = date(by: clock) - clock.now()
        return abs(lead) > ProofTerms.tolerance ? lead : 0
    }

    /// - Parameter terms: those of the request, whose proof is refused.
    fileprivate mutating func learnTime(
        from response: HTTPResponse, after terms: ProofTerms, by clock: BrokerClock
    ) {
        guard let theirs = response.fields["Date"].flatMap({ HTTPDate.seconds(of: $0) }),
            abs(theirs - terms.date(by: clock)) > ProofTerms.tolerance
        else { return }
        timeAtBoot = theirs - clock.boot() / 1_000
    }
}

/// The terms of all servers, until the daemon ends. A lost nonce costs one request more.
final class ProofMemory: ProviderMemory {
    private let known = Mutex<[ProofTerms.Server: ProofTerms]>([:])
    private let clock: BrokerClock

    init(http: any HTTPClient, work: Work, clock: BrokerClock) { self.clock = clock }

    func terms(of server: ProofTerms.Server) -> ProofTerms { known.withLock { $0[server] ?? ProofTerms() } }

    /// Notes what a response to a request under `terms` states. Returns the terms under which the request is to be sent
    /// once more; nil if its proof was not refused, or nothing new is known. A nonce may be good once, so that of a refusal
    /// is for the same request, and for others after it.
    func learn(
        from response: HTTPResponse, of server: ProofTerms.Server, after terms: ProofTerms, isRepeated: Bool = false
    ) -> ProofTerms? {
        let refusal = DPoPRefusal(in: response)
        let stated = DPoPNonce.stated(in: response.fields)
        return known.withLock { known in
            var newest = known[server] ?? ProofTerms()
            if refusal == .proof { newest.learnTime(from: response, after: terms, by: clock) }
            var next = newest
            next.nonce = stated ?? (isRepeated ? terms.nonce : newest.nonce)
            let isToRepeat = refusal != nil && !isRepeated && next != terms
            known[server] = isToRepeat ? newest : next
            return isToRepeat ? next : nil
        }
    }
}

/// The keys of an account's sessions, and their proofs in the requests to its provider (RFC 9449).
struct Prover: Sendable {
    let account: Account
    let rules: OAuthAccount
    let http: any HTTPClient
    private let memory: ProofMemory
    let clock: BrokerClock
    let record: @Sendable (BrokerFact) -> Void

    init(_ account: Account, by rules: OAuthAccount, _ tools: ProviderTools) {
        self.account = account
        self.rules = rules
        http = tools.http
        memory = tools.memory()
        clock = tools.clock
        record = tools.record
    }

    /// Sends a request, with a proof if there is a key. If the server wants another nonce, or its clock differs from
    /// ours, the request is made and sent once more: neither an assertion of the client nor a proof may be sent twice.
    ///
    /// - Parameters:
    ///   - token: the access token that the request presents to a resource; nil for the authorization server.
    ///   - attempt: what each request needs that presents a refresh token; nil for any other request.
    func send(
        provenBy key: DPoPKey?, presenting token: Secret? = nil, under attempt: RefreshAttempt? = nil,
        _ build: () -> HTTPRequest
    ) async throws(BrokerError) -> HTTPResponse {
        let request = build()
        guard let key else { return try await account.send(request, under: attempt, toProvider: http) }
        let server = ProofTerms.Server(
            origin: try WebURL.origin(of: request.url), role: token == nil ? .authorization : .resource)
        let terms = self.terms(of: server)
        let response = try await account.send(
            proven(request, by: key, token, terms), under: attempt, toProvider: http)
        guard let newer = memory.learn(from: response, of: server, after: terms) else { return response }
        let lead = newer.clockLead(by: clock)
        if newer.timeAtBoot != terms.timeAtBoot, lead != 0 {
            record(.clockDiffers(account.name, host: request.host, seconds: lead))
        }
        let second = try await account.send(
            proven(build(), by: key, token, newer), under: attempt, toProvider: http)
        _ = memory.learn(from: second, of: server, after: newer, isRepeated: true)
        return second
    }

    private func proven(
        _ request: HTTPRequest, by key: DPoPKey, _ token: Secret?, _ terms: ProofTerms
    ) throws(BrokerError) -> HTTPRequest {
        let proof = key.proof(
            of: request.method, to: request.url, accessToken: token, nonce: terms.nonce,
            now: terms.date(by: clock))
        guard let proof else { throw .misconfigured(.stated("libcrypto cannot sign a proof for \(request.host).")) }
        var request = request
        request.prove(by: proof)
        return request
    }

    /// What the server has said last, for proofs that others send.
    func terms(of server: ProofTerms.Server) -> ProofTerms { memory.terms(of: server) }

    // MARK: Keys

    /// The key of a new session; nil if its tokens are not to be bound.
    func newKey(_ metadata: ProviderMetadata) throws(BrokerError) -> DPoPKey? {
        guard rules.dpop != .off, rules.dpop != .automatic || metadata.offersDPoP else { return nil }
        return try BrokerError.reading(from: account.name.rawValue, try DPoPKey())
    }

    /// The key of a held session, whatever the configuration says now.
    ///
    /// - Throws: `signInRequired` for a key that another version has stored. A request without a proof could end the
    ///   session.
    func key(of session: Session) throws(BrokerError) -> DPoPKey? {
        guard let stored = session.proofKey else { return nil }
        guard let key = DPoPKey(stored: stored) else { throw .signInRequired(account.name) }
        return key
    }

    /// Which access tokens a response may have for a session with or without a key.
    func tokenUse(hasKey: Bool) -> DPoPUse { !hasKey ? .off : rules.dpop == .off ? .automatic : rules.dpop }

    /// What a token exchange has issued (RFC 8693 section 2.2.1), or a grant without a user.
    func tokens(issuedIn response: HTTPResponse, hasKey: Bool) throws(OAuthError) -> TokenSet {
        let tokens = try TokenResponse(reading: response).tokenSet(under: tokenUse(hasKey: hasKey))
        try ExchangedTokenType.check(issued: tokens)
        return tokens
    }

    /// Throws if the account's tokens are to be bound, and cannot be.
    func check(_ metadata: ProviderMetadata, isTakenOver: Bool = false) throws(BrokerError) {
        guard rules.dpop == .required || rules.dpop == .refreshOnly else { return }
        let reason: OAuthReason
        if isTakenOver {
            reason = .dpopOfOtherProgram(account.name, use: rules.dpop.rawValue)
        } else if case .issuer = rules.endpoints, !metadata.offersDPoP {
            reason = .dpopNotOffered(
                account.name, use: rules.dpop.rawValue, host: HTTPRequest(url: metadata.tokenEndpoint).host)
        } else {
            return
        }
        throw .unusableSetting(UnusableSetting(.oauth(reason), setting: "dpop"))
    }

    /// What is bound; nil if neither the provider nor the account says anything about it.
    func finding(_ metadata: ProviderMetadata, _ session: Session?) -> Finding? {
        guard metadata.offersDPoP || session?.proofKey != nil else { return nil }
        let isKeyMissing = session != nil && session?.proofKey == nil && [.required, .refreshOnly].contains(rules.dpop)
        let state: OAuthReason.DPoPState =
            if session?.proofKey != nil {
                session?.tokens[.own]?.type == DPoPUse.boundType ? .bound : .refreshTokenBound
            } else {
                isKeyMissing ? .notBound : rules.dpop == .off ? .off : .nextSignIn
            }
        let origin = (try? WebURL.origin(of: metadata.tokenEndpoint)) ?? ""
        let terms = terms(of: ProofTerms.Server(origin: origin, role: .authorization))
        let lead = terms.clockLead(by: clock)
        return Finding(
            .metadata, isKeyMissing || lead != 0 ? .warning : .ok,
            .oauth(
                .dpop(host: HTTPRequest(url: metadata.tokenEndpoint).host, state, clockLead: lead)),
            isKeyMissing ? .signInNeeded : lead != 0 ? .clockDiffers : nil, setting: "dpop")
    }
}
