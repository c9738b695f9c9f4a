internal import Encodings
internal import Glibc
internal import StrictJSON
internal import Synchronization

/// The members of an audit entry, in the order of its line.
extension AuditLog {
    /// From now on each line names this host.
    ///
    /// - Parameter name: its name among the hosts that share a vault, as far as it is known.
    public func setHost(_ name: @escaping @Sendable () -> String?) { host.withLock { $0 = name } }

    static func entry(_ event: String, at now: Int, _ members: JSONObject) -> JSONObject {
        var entry = JSONObject([
            .init("time", .integer(now)), .init("time_text", .string(Timestamp.text(of: now))),
            .init("event", .string(event)),
        ])
        entry.members += members.members
        return entry
    }

    static func entry(_ use: AuditUse, _ tally: Tally, _ identity: CallerIdentity) -> JSONObject {
        var members = JSONObject()
        members["account"] = use.account.map { .string($0) }
        members["operation"] = .string(use.operation)
        members["route"] = use.route.map { .string($0) }
        members["scope"] = use.scope.map { .string($0) }
        members["audience"] = use.audience.map { .string($0) }
        members["resource"] = use.resource.map { .string($0) }
        members["origin"] = use.origin.map { .string($0) }
        members["tool"] = use.tool.map { .string($0) }
        members["exposed_socket"] = use.exposedSocket.map { .string($0) }
        members["uid"] = .integer(Int(identity.program.uid))
        if identity.program.pid >= 0 {
            members["pid"] = .integer(Int(identity.program.pid))
        } else {
            // Uses of several processes that are counted together.
            members["aggregated"] = true
        }
        members["executable"] = identity.program.executable.map { .string($0) }
        members["unit"] = identity.unit.map { .string($0) }
        members["verified"] = .bool(identity.program.isVerified)
        members["count"] = .integer(tally.count)
        members["first"] = .integer(tally.first)
        members["last"] = .integer(tally.last)
        return entry(use.kind.rawValue, at: tally.last, members)
    }
}

extension AuditFile.Failure: CustomStringConvertible {
    var description: String { "\(call): \(unsafe String(cString: strerror(errno)))" }
}
