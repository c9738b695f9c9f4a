internal import BrokerCore
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth
internal import SupabaseSignIn
internal import Synchronization

extension SocketAPI {
    /// `GET /v1/accounts/NAME/session` for a cached token, and `…/mcp-server` beside it: without the lane, JSON
    /// encoding or a change of the thread. For the first request of any other connection it records only the peer.
    @Sendable func immediate(_ request: ServerRequest) -> ServerResponse? {
        if request.method == "POST", request.path == "/v1/lookup" { return heldLookup(request) }
        guard request.method == "GET", request.query == nil, request.body.isEmpty,
            let (name, isServer) = SocketAPI.account(inPath: request.path),
            (try? refuseBrowsers(request)) != nil,
            let facts = admit(request, account: name, operation: .token)
        else {
            if request.process != nil { _ = admit(request, account: nil, operation: .readState) }
            return nil
        }
        if isServer {
            guard daemon.consents?.isFree(name) ?? true else { return nil }
            let session = broker.snapshot.current(name)?.entry.encoding.number
            return daemon.configurationNumber().flatMap { mcpServers.body(of: name, $0, session) }
                .map { ServerResponse(status: 200, fields: ServerResponse.jsonFields, body: $0) }
        }
        guard let current = broker.snapshot.current(name), daemon.consents?.isFree(name) ?? true else { return nil }
        let encoding = current.entry.encoding
        if !facts.repeats(encoding.number, at: broker.now.seconds) {
            let counted = noteIssuedToken(facts, current.entry.issuedToken, .own, .token)
            facts.remember(encoding.number, counted)
        }
        return ServerResponse(
            status: 200, fields: ServerResponse.jsonFields,
            body: SocketAPI.body(for: current.entry, expiresAt: current.expiresAt, remaining: current.remaining))
    }

    private static func account(inPath path: String) -> (name: String, isServer: Bool)? {
        if let name = account(inPath: path, before: "/session") { return (name, false) }
        return account(inPath: path, before: "/mcp-server").map { ($0, true) }
    }

    private static let accounts = "/v1/accounts/"

    private static func account(inPath path: String, before tail: String) -> String? {
        // By bytes: a comparison of characters costs as much as the rest of the response.
        let (head, bytes, end) = (SocketAPI.accounts.utf8.span, path.utf8.span, tail.utf8.span)
        let length = bytes.count - head.count - end.count
        guard length > 0, bytes.extracting(first: head.count).isEqual(to: head),
            bytes.extracting(last: end.count).isEqual(to: end)
        else { return nil }
        let name = path.utf8.dropFirst(head.count).prefix(length)
        return name.contains(UInt8(ascii: "/")) ? nil : String(name)
    }

    /// Encoded once a second at most: only `expires_in` differs from one request to the next.
    private static func body(for entry: SessionSnapshot.Entry, expiresAt: Int?, remaining: Int?) -> [UInt8] {
        entry.encoding.bytes(expiresAt: expiresAt, remaining: remaining) {
            var object = members(of: entry.issuedToken, isIDToken: false)
            if let expiresAt, let remaining {
                object["expires_at"] = .integer(expiresAt)
                object["expires_in"] = .integer(remaining)
            }
            return JSON.object(object).serialized()
        }
    }

    /// The place that writes an access token into a response.
    static func members(of issuedToken: IssuedToken, isIDToken: Bool) -> JSONObject {
        var object = JSONObject([.init("account", .string(issuedToken.account.rawValue))])
        object["subject"] = issuedToken.subject.map { .string($0) }
        object[isIDToken ? "id_token" : "access_token"] = .string(issuedToken.token.value.revealed())
        object["token_type"] = .string(issuedToken.token.type)
        object["scope"] = issuedToken.scope.map { .string($0) }
        object["issuer"] = .string(issuedToken.issuer)
        object["aal"] = issuedToken.supabase?.assurance.map { .string($0) }
        object["next_aal"] = issuedToken.supabase?.nextAssurance.map { .string($0) }
        object["migration"] = issuedToken.supabase?.migratesFrom.map {
            ["from": .string($0), "to": .string(issuedToken.subject ?? "")]
        }
        return object
    }

    /// `POST /v1/lookup` for a held token of the session itself, without the lane or a change of the thread: tools ask for
    /// every connection. Nil for everything else, mistakes included; ``respond(_:)`` then handles the whole request.
    func heldLookup(_ request: ServerRequest) -> ServerResponse? {
        guard let route = Router.shared[.lookup], request.query == nil, (try? refuseBrowsers(request)) != nil,
            let facts = admit(request, account: nil, operation: route.endpoint.operation),
            let call = try? Call(request, route, [:], facts),
            let lookup = try? OriginLookup(call, daemon.origins), lookup.rejected == nil, !lookup.isWithoutToken,
            lookup.origin.kind == .accessToken, lookup.origin.key == .own,
            daemon.consents?.isFree(lookup.origin.account.rawValue) ?? true,
            let held = broker.snapshot.current(lookup.origin.account.rawValue),
            !held.entry.issuedToken.token.isBound,
            let credential = daemon.origins?.credential(of: lookup.origin, held: held.entry.issuedToken),
            let response = try? lookup.response(credential, expiresAt: held.expiresAt.map { WallInstant(seconds: $0) })
        else { return nil }
        noteIssuedToken(facts, credential.issuedToken, .own, .token, for: lookup)
        return ServerResponse(json: response)
    }
}

extension Span<UInt8> {
    fileprivate func isEqual(to other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }
}

/// The facts and counters of the last connections, for a program that connects for each request. The audit log gives
/// the same ``AuditCaller`` only for a process that is proven to be the same and to run the same executable.
final class RecentFacts: Sendable {
    private static let places = 8
    private let facts = Mutex<[ConnectionFacts?]>(Array(repeating: nil, count: places))

    func find(_ caller: AuditCaller, _ generation: UInt64) -> ConnectionFacts? {
        facts.withLock { facts in
            guard let found = facts[RecentFacts.place(of: caller)], found.caller === caller,
                found.decision.generation == generation
            else { return nil }
            return found
        }
    }

    /// Keeps facts whose decision is the same for every account and operation.
    func keep(_ new: ConnectionFacts) {
        guard let caller = new.caller, new.decision.coversEverything else { return }
        facts.withLock { $0[RecentFacts.place(of: caller)] = new }
    }

    private static func place(of caller: AuditCaller) -> Int {
        Int(UInt32(bitPattern: caller.pid) % UInt32(places))
    }
}

/// What is known of a connection: the policy's decision on its peer, and the caller. Connections may share it.
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

    /// Counts a token that this connection got before. False if it is another one, or if its count has been written.
    func repeats(_ token: UInt64, at now: Int) -> Bool {
        counters.withLock { counters in
            // In place, without a copy of the counters' references.
            guard counters?.token == token, counters?.use.add(at: now) == true else { return false }
            counters?.metric.add()
            return true
        }
    }

    func remember(_ token: UInt64, _ counted: (use: CountedUse, metric: Metrics.IssuedTokens)?) {
        counters.withLock { $0 = counted.map { Counters(token: token, use: $0.use, metric: $0.metric) } }
    }
}

extension SocketAPI {
    /// The facts of the connection; nil if the policy denies access. The policy is asked once, and when it has changed.
    func admit(_ request: ServerRequest, account: String?, operation: PolicyOperation) -> ConnectionFacts? {
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
            PolicyPeer(uid: uid, pid: pid), account: account, operation: operation)
        let facts = ConnectionFacts(decision: decision, caller: caller)
        recentFacts.keep(facts)
        request.memory.value = facts
        return decision.isAllowed ? facts : nil
    }

    /// For which program the caller connected, as the audit log names it too. A relay of the owner names its client.
    func callingProgram(_ call: Call) -> CallingProgram {
        let pid = call.process ?? 0
        if let client = call.request.fields["Ringback-Client"].flatMap({ Int32($0) }),
            case .local(owner, _) = call.request.peer,
            let program = CallingProgram(of: client, namedBy: pid, of: owner)
        {
            return program
        }
        return daemon.callingProgram(pid) ?? call.facts.caller?.calling ?? CallingProgram(of: pid)
    }

    /// Where the caller belongs, as one that answers a question or hears of it.
    func answeringOrigin(_ call: Call) -> ProgramOrigin {
        var origin = callingProgram(call).origin
        origin.ancestors = CallingProgram.ancestors(of: call.process ?? 0)
        return origin
    }

    func caller(of request: ServerRequest, _ uid: UInt32, _ pid: Int32) -> AuditCaller? {
        let proof = request.process.map { process in
            ProcessProof(identity: process.identity) { process.isAlive }
        }
        return records?.audit.caller(uid: uid, pid: pid, proof: proof, at: broker.now.seconds)
    }

    /// Counts a token, and writes it to the audit log. Returns the counters, if repetitions may be added to them.
    @discardableResult
    func noteIssuedToken(
        _ facts: ConnectionFacts, _ issuedToken: IssuedToken, _ key: TokenKey, _ operation: PolicyOperation,
        for lookup: OriginLookup? = nil, at origin: String? = nil
    ) -> (use: CountedUse, metric: Metrics.IssuedTokens)? {
        guard let records else { return nil }
        let account = issuedToken.account.rawValue
        let metric = records.metrics.issuedTokens(of: account)
        metric.add()
        guard let caller = facts.caller else { return nil }
        var use = AuditUse(.issuedToken, account: account, operation: operation.rawValue)
        use.exposedSocket = facts.exposedSocket
        use.origin = origin ?? lookup?.origin.rule.pattern.text
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
        case .token, .idToken, .proof: return
        default: guard caller.uid == 0, caller.uid != owner else { return }
        }
        let account = call.parameters["account"].flatMap { AccountName($0)?.rawValue }
        var use = AuditUse(.request, account: account, operation: call.route.endpoint.operation.rawValue)
        use.route = "\(call.route.endpoint.method.rawValue) \(call.route.endpoint.path)"
        records.audit.note(caller, use, at: broker.now.seconds)
    }
}
