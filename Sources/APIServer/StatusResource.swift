internal import BrokerCore
internal import Glibc
internal import LocalHTTP
internal import RingbackAPI
internal import SessionVault
internal import StrictJSON

extension SocketAPI {
    func status() async -> ServerResponse {
        let views = await broker.accounts()
        let counts = AccountState.allCases.map { state in
            JSONObject.Member(state.rawValue, .integer(views.count { $0.state == state }))
        }
        let vault = broker.vault.status
        return ServerResponse(json: [
            "version": .string(daemon.version), "pid": .integer(Int(getpid())),
            "uptime": .integer(max(BrokerClock.system.now() - daemon.startedAt, 0)),
            "vault": [
                "kind": .string(vault.kind), "locked": .bool(vault.isLocked), "key_source": .string(vault.keySource),
                "protects": .string(vault.protects),
            ],
            "accounts": .object(JSONObject(counts)),
            "listeners": .array(broker.door.listeners().map { .string($0) }), "confinement": .object(JSONObject()),
        ])
    }

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
        let errors = await daemon.reload()
        guard errors.isEmpty else {
            return Problem(
                .invalidConfiguration, "Nothing was changed. Mend the mistakes and reload again.",
                extensions: JSONObject([.init("errors", .array(errors))])
            ).response
        }
        let names = await broker.accounts().map(\.name.rawValue)
        return ServerResponse(json: ["reloaded": true, "accounts": .array(names.map { .string($0) })])
    }
}

/// What `/proc` tells of a process.
enum ProcessFacts {
    static func executable(of pid: Int32) -> String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink("/proc/\(pid)/exe", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }

    /// The systemd unit, by the control group's name.
    static func unit(of pid: Int32) -> String? {
        let descriptor = unsafe open("/proc/\(pid)/cgroup", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return nil }
        let line = String(decoding: buffer[..<count], as: UTF8.self).prefix { $0 != "\n" }
        let parts = line.split(separator: "/")
        return parts.last { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }.map(String.init)
    }
}
