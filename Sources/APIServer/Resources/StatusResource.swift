internal import BrokerCore
internal import DeepLinks
internal import Glibc
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import StrictJSON

extension SocketAPI {
    func status() async -> ServerResponse {
        let views = await broker.accounts()
        let counts = AccountState.allCases.map { state in
            JSONObject.Member(state.rawValue, .integer(views.count { $0.state == state }))
        }
        let pending = await broker.pendingRevocations()
        let warnings = await exposureTroubles().map { "\($0.name) is not exposed. \($0.detail)" }
        return ServerResponse(json: [
            "version": .string(daemon.version), "pid": .integer(Int(getpid())),
            "uptime": .integer(uptime), "vault": vault(),
            "accounts": .object(JSONObject(counts)),
            "listeners": .array(broker.callbackReceiver.listeners().map { .string($0) }),
            "confinement": .object(JSONObject()),
            "link_listeners": .array((deepLinks?.heard ?? []).map { .string($0) }),
            "warnings": .array(warnings.map { .string($0) }),
            "pending_revocations": .integer(pending.values.reduce(0, +)),
            "pending_revocations_by_account": .object(
                JSONObject(pending.sorted { $0.key < $1.key }.map { .init($0.key.rawValue, .integer($0.value)) })),
        ])
    }

    /// Seconds, by no clock that a person sets.
    var uptime: Int { max(daemon.boot() - daemon.startedAtBoot, 0) / 1_000 }

    /// What the broker sees of the caller. The executable is what `/proc` says now: the process may have become
    /// another one since it connected, hence the confidence.
    func peer(_ call: Call) -> ServerResponse {
        guard case .local(let uid, let pid) = call.request.peer else { return Problem(.notFound).response }
        var object = JSONObject([.init("uid", .integer(Int(uid))), .init("pid", .integer(Int(pid)))])
        object["executable"] = ProcessFacts.executable(of: pid).map { .string($0) }
        object["unit"] = ProcessFacts.unit(of: pid).map { .string($0) }
        object["confidence"] = "unverified"
        let caller = PolicyPeer(uid: uid, pid: pid)
        let operations = RingbackAPI.Operation.allCases.map(\.rawValue).filter {
            policy.decide(caller, account: nil, operation: $0).isAllowed
        }
        object["operations"] = .array(operations.sorted().map { .string($0) })
        object["policy"] = .string(policy.name)
        return ServerResponse(json: .object(object))
    }

    func reload() async -> ServerResponse {
        let outcome = await daemon.reload()
        guard outcome.errors.isEmpty else {
            return Problem(
                .invalidConfiguration, "Nothing was changed. Mend the mistakes and reload again.",
                extensions: JSONObject([.init("errors", .array(outcome.errors))])
            ).response
        }
        let names = await broker.accounts().map(\.name.rawValue)
        var object = JSONObject([.init("reloaded", true), .init("accounts", .array(names.map { .string($0) }))])
        if !outcome.restartNeeded.isEmpty {
            object["restart_needed"] = .array(outcome.restartNeeded.map { .string($0) })
        }
        return ServerResponse(json: .object(object))
    }
}
