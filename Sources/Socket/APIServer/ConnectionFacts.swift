internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import Synchronization

/// What is known of a connection, once for all its requests: the policy's decision on its peer, and the caller for the
/// audit log. Connections of one program may share it, see ``RecentFacts``.
final class ConnectionFacts: Sendable {
    /// The counters of the last held token that was issued at once, by the number of its encoding.
    private struct Counters {
        let token: UInt64
        let use: CountedUse
        let metric: Metrics.IssuedTokens
    }

    let decision: Policy.Decision
    let caller: AuditCaller?
    /// The restricted socket that it came over; nil for the daemon's own.
    let exposedSocket: String?
    private let counters = Mutex<Counters?>(nil)

    init(decision: Policy.Decision, caller: AuditCaller?, exposedSocket: String? = nil) {
        self.decision = decision
        self.caller = caller
        self.exposedSocket = exposedSocket
    }

    /// Counts a token that this connection got in its last request too. False if it is another one, or if its count
    /// has been written: then it has to be noted as if it were the first time.
    func repeats(_ token: UInt64, at now: Int) -> Bool {
        counters.withLock { counters in
            guard let counters, counters.token == token, counters.use.add(at: now) else { return false }
            counters.metric.add()
            return true
        }
    }

    /// Keeps the counters of a token that was noted.
    func remember(_ token: UInt64, _ counted: (use: CountedUse, metric: Metrics.IssuedTokens)?) {
        counters.withLock { $0 = counted.map { Counters(token: token, use: $0.use, metric: $0.metric) } }
    }
}

extension SocketAPI {
    /// The facts of the request's connection; nil if the policy denies access. The policy is asked once per connection,
    /// and again when it has changed.
    func admit(_ request: ServerRequest, account: String?, operation: RingbackAPI.Operation) -> ConnectionFacts? {
        let known = request.memory.value as? ConnectionFacts
        if let known, known.decision.generation == policy.generation, known.decision.coversEverything {
            return known.decision.isAllowed ? known : nil
        }
        guard case .local(let uid, let pid) = request.peer else { return nil }
        let caller = known?.caller ?? caller(of: request, uid, pid)
        if let caller, let recent = recentFacts.find(caller, policy.generation) {
            request.memory.value = recent
            return recent.decision.isAllowed ? recent : nil
        }
        let decision = policy.decide(
            PolicyPeer(uid: uid, pid: pid), account: account, operation: operation.ofPolicy)
        let facts = ConnectionFacts(decision: decision, caller: caller)
        recentFacts.keep(facts)
        request.memory.value = facts
        return decision.isAllowed ? facts : nil
    }

    /// The caller that the audit log names for the connection's peer.
    func caller(of request: ServerRequest, _ uid: UInt32, _ pid: Int32) -> AuditCaller? {
        let proof = request.process.map { process in
            ProcessProof(identity: process.identity) { process.isAlive }
        }
        return records?.audit.caller(uid: uid, pid: pid, proof: proof, at: broker.now.seconds)
    }

    /// A token is issued: it is counted, and written to the audit log with its scope. Called in every request for a
    /// token.
    ///
    /// - Returns: the counters, if repetitions may be added to them.
    @discardableResult
    func noteIssuedToken(
        _ facts: ConnectionFacts, _ issuedToken: IssuedToken, _ key: TokenKey, _ operation: RingbackAPI.Operation,
        for lookup: OriginLookup? = nil
    ) -> (use: CountedUse, metric: Metrics.IssuedTokens)? {
        guard let records else { return nil }
        let account = issuedToken.account.rawValue
        let metric = records.metrics.issuedTokens(of: account)
        metric.add()
        guard let caller = facts.caller else { return nil }
        var use = AuditUse(.issuedToken, account: account, operation: operation.rawValue)
        use.exposedSocket = facts.exposedSocket
        use.origin = lookup?.origin.rule.pattern.text
        use.tool = lookup?.tool
        use.scope = issuedToken.scope.map(RecordKeeper.bounded)
        if key != .own {
            use.audience = key.audience.map(RecordKeeper.bounded)
            use.resource = key.resource.map(RecordKeeper.bounded)
        }
        return records.audit.note(caller, use, at: broker.now.seconds).map { ($0, metric) }
    }

    /// Writes who asked for a change to the audit log. For a root that is not the owner it writes every request, since
    /// no other limit holds for root. Tokens have entries of their own.
    func noteRequest(_ call: Call) {
        guard let records, let caller = call.facts.caller else { return }
        switch call.route.endpoint.operation {
        case .signIn, .signOut, .deliverCallback, .deepLink, .manage: break
        case .token, .idToken: return
        default: guard caller.uid == 0, caller.uid != owner else { return }
        }
        let account = call.parameters["account"].flatMap { AccountName($0)?.rawValue }
        var use = AuditUse(.request, account: account, operation: call.route.endpoint.operation.rawValue)
        use.route = "\(call.route.endpoint.method.rawValue) \(call.route.endpoint.path)"
        records.audit.note(caller, use, at: broker.now.seconds)
    }
}

extension RingbackAPI.Operation {
    /// The operation as the broker's policy knows it.
    var ofPolicy: PolicyOperation {
        switch self {
        case .readState: .readState
        case .token: .token
        case .idToken: .idToken
        case .providerToken: .providerToken
        case .signIn: .signIn
        case .signOut: .signOut
        case .user: .user
        case .deliverCallback: .deliverCallback
        case .deepLink: .deepLink
        case .manage: .manage
        }
    }
}
