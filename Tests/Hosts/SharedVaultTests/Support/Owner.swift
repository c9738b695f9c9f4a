import Cryptography
import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

/// Machines of one owner, each with its local vault, at one database.
struct Owner {
    let rows = Hosts()
    let hosts = MemoryHosts()

    func vault(
        _ role: String, _ local: any Vault = MemoryVault(),
        fault: @escaping @Sendable (String) -> MemoryRows.Fault = { _ in .none }
    ) -> SharedVault {
        SharedVault(
            local: local, rows: MemoryRows.Connection(rows.database, host: role, fault: fault),
            hosts: MemoryHosts.Connection(hosts, role: role, fault: fault),
            place: DatabasePlace(shown: "database", role: role, database: "vault"), now: { [rows] in rows.clock.now },
            random: { RandomToken.bytes($0) })
    }

    func first(_ role: String = "one") async throws -> SharedVault {
        let one = vault(role)
        let invitation = hosts.invite(role)
        _ = try await one.join(as: nil, otherwise: role, invitation: invitation.password)
        try await one.open(passphrase: nil)
        return one
    }

    func second(_ role: String = "two") async throws -> (vault: SharedVault, code: HostCode) {
        let two = vault(role)
        let joined = try await two.join(as: nil, otherwise: role, invitation: hosts.invite(role).password)
        #expect(await failure { try await two.open(passphrase: nil) } == .noKey)
        return (two, try #require(joined.code))
    }
}

func refusal<Value>(_ body: () async throws -> Value) async -> HostFailure? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? HostFailure
    }
}

extension SharedVault {
    nonisolated func join(
        as name: String?, otherwise usual: String, invitation: Secret?
    ) async throws(HostFailure) -> JoinedHost {
        try await Sharing(self).join(as: name, otherwise: usual, invitation: invitation)
    }
    nonisolated func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        try await Sharing(self).invite(lasting: lasting)
    }
    nonisolated func share(with code: HostCode) async throws(HostFailure) -> String {
        try await Sharing(self).share(with: code)
    }
    nonisolated func list() async throws(HostFailure) -> [Host] { try await Sharing(self).list() }
    nonisolated func remove(host: String) async throws(HostFailure) -> String {
        try await Sharing(self).remove(host: host)
    }
}
