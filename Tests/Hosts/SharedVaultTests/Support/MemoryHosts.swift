import RingbackBase
import SessionVault
import SharedVault
import Synchronization

final class MemoryHosts: Sendable {
    struct Entry: Sendable {
        var password: Secret?
        var name: String?
        var publicKey: [UInt8]?
        var wrapped: [UInt8]?
    }

    static let owner = [UInt8](repeating: 7, count: 16)
    private let entries = Mutex<[String: Entry]>([:])

    subscript(role: String) -> Entry? { entries.withLock { $0[role] } }

    /// What an administrator of the database could do.
    func change(_ role: String, _ body: (inout Entry) -> Void) {
        entries.withLock { entries in
            var entry = entries[role] ?? Entry()
            body(&entry)
            entries[role] = entry
        }
    }

    /// A role that was set up by hand as a host that has joined.
    func admit(_ role: String) { change(role) { $0.name = role } }

    func invite(_ role: String) -> Invitation {
        let invitation = Invitation(role: role, password: Invitation.newPassword())
        change(role) { $0 = Entry(password: invitation.password) }
        return invitation
    }

    fileprivate func with<Value: Sendable>(
        _ body: (inout [String: Entry]) throws(HostFailure) -> Value
    ) throws(HostFailure) -> Value {
        let outcome: Result<Value, HostFailure> = entries.withLock { entries in
            do throws(HostFailure) { return .success(try body(&entries)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    final class Connection: SharedHosts {
        private let database: MemoryHosts
        private let role: String
        private let fault: @Sendable (String) -> MemoryRows.Fault
        private let password = Mutex<Secret?>(nil)

        init(
            _ database: MemoryHosts, role: String,
            fault: @escaping @Sendable (String) -> MemoryRows.Fault = { _ in .none }
        ) {
            self.database = database
            self.role = role
            self.fault = fault
        }

        func use(_ password: Secret?) { self.password.withLock { $0 = password } }

        private func run<Value: Sendable>(
            _ name: String, with password: Secret?, _ body: (inout [String: Entry], Entry) throws(HostFailure) -> Value
        ) throws(HostFailure) -> Value {
            let fault = fault(name)
            guard fault != .notReached else { throw .database(.noConnection) }
            let value = try database.with { entries throws(HostFailure) in
                guard let entry = entries[role] else { throw .database(.authentication) }
                if let wanted = entry.password, wanted != password {
                    throw .database(password == nil ? .noPassword : .authentication)
                }
                return try body(&entries, entry)
            }
            guard fault == .none else { throw .database(.timedOut) }
            return value
        }

        private func joined<Value: Sendable>(
            _ name: String, _ body: (inout [String: Entry], Entry) throws(HostFailure) -> Value
        ) throws(HostFailure) -> Value {
            try run(name, with: password.withLock { $0 }) { entries, entry throws(HostFailure) in
                guard entry.name != nil else { throw .notJoined }
                return try body(&entries, entry)
            }
        }

        func accept(
            as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?
        ) async throws(HostFailure) {
            try run("accept", with: invitation) { entries, entry throws(HostFailure) in
                if entry.name != nil {
                    guard entry.name == name, entry.publicKey == publicKey else { throw .invitationUsed }
                    return
                }
                guard !entries.values.contains(where: { $0.name == name }) else { throw .nameTaken }
                entries[role] = Entry(password: password, name: name, publicKey: publicKey)
            }
        }

        func identity() async throws(HostFailure) -> HostIdentity {
            try joined("identity") { _, entry throws(HostFailure) in
                HostIdentity(
                    ownerName: "alice", owner: MemoryHosts.owner, name: entry.name ?? "", wrappedKey: entry.wrapped)
            }
        }

        func hosts() async throws(HostFailure) -> [Host] {
            try joined("hosts") { entries, _ throws(HostFailure) in
                entries.sorted { $0.key < $1.key }.map { role, entry in
                    Host(
                        role: role, name: entry.name, isSelf: role == self.role, joined: nil, seen: nil,
                        hasKey: entry.wrapped != nil, publicKey: entry.publicKey)
                }
            }
        }

        func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
            try joined("invite") { entries, _ throws(HostFailure) in
                let invitation = Invitation(role: "role\(entries.count)", password: Invitation.newPassword())
                entries[invitation.role] = Entry(password: invitation.password)
                return invitation
            }
        }

        func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool {
            try joined("give") { entries, _ throws(HostFailure) in
                guard entries[role]?.name != nil else { return false }
                entries[role]?.wrapped = wrapped
                return true
            }
        }

        func remove(host role: String) async throws(HostFailure) -> Bool {
            try joined("remove") { entries, _ throws(HostFailure) in entries.removeValue(forKey: role) != nil }
        }
    }
}
