import Cryptography
import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

/// Hosts that join through a real database, with passwords.
@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `Hosts that join a shared vault` {
    private struct Machine {
        let database: RowDatabase
        let vault: SharedVault

        init(_ house: VaultHouse, _ role: String, local: MemoryVault = MemoryVault()) throws {
            database = RowDatabase(try house.server.url(role, house.database), password: .none)
            let start = ContinuousClock.now
            vault = SharedVault(
                local: local, rows: database, hosts: database,
                place: DatabasePlace(shown: "database", role: role, database: house.database),
                now: { start.duration(to: .now) + .seconds(1_000) }, random: { RandomToken.bytes($0) })
        }

        var sharing: Sharing { Sharing(vault) }

        func join(_ name: String, _ password: Secret?) async throws -> HostCode? {
            let joined = try await sharing.join(as: name, otherwise: "machine", invitation: password)
            do throws(VaultError) { try await vault.open(passphrase: nil) } catch {
                guard error == .locked(.noHostsKey, obstacle: .noHostsKey) else { throw error }
                return joined.code
            }
            return nil
        }
    }

    private let slot = VaultSlot(account: "work", binding: "https://id.example ringback")

    /// A first host, and an invitation of a second one.
    private func pair(_ house: VaultHouse) async throws -> (Machine, Invitation) {
        let first = try await house.administration.admit(owner: Fresh.owner(), lasting: .seconds(600))
        let one = try Machine(house, first.role)
        #expect(try await one.join("laptop", first.password) == nil)
        return (one, try await one.sharing.invite(lasting: .seconds(600)))
    }

    @Test func `the first makes the key, the second gets it by its code, and is told at once`() async throws {
        let house = try await VaultHouse("vault")
        let (one, invitation) = try await pair(house)
        try await one.vault.store(Secret("first"), in: slot, as: .replacement)
        let two = try Machine(house, invitation.role)
        // Before it has joined, the vault is locked, and the database does not let the role in without a password.
        await #expect(throws: VaultError.self) { try await two.vault.open(passphrase: nil) }
        let code = try #require(try await two.join("desktop", invitation.password))
        two.database.start()
        var openings = two.vault.mayOpen.makeAsyncIterator()
        let following = Task { await two.vault.follow() }
        defer { following.cancel() }
        // At the connection.
        await openings.next()
        await #expect(throws: VaultError.self) { try await two.vault.open(passphrase: nil) }
        #expect(try await one.sharing.list().map(\.hasKey) == [true, false])
        #expect(try await one.sharing.share(with: code) == "desktop")
        await openings.next()
        try await two.vault.open(passphrase: nil)
        #expect(try await two.vault.load(slot)?.text == Secret("first"))
        #expect(try await two.sharing.list().map(\.hasKey) == [true, true])
        // Nothing of it is in the server's log.
        let log = Shell.output("cat '\(house.server.directory)/server.log'") ?? ""
        #expect(!log.contains(invitation.password.revealed()) && !log.contains(code.revealed()))
        two.database.shutdown()
    }

    @Test func `the invitation's password is needed, once, and the right one`() async throws {
        let house = try await VaultHouse("vault")
        let (one, invitation) = try await pair(house)
        let local = MemoryVault()
        let two = try Machine(house, invitation.role, local: local)
        await #expect(throws: HostFailure.passwordNeeded) { _ = try await two.join("desktop", nil) }
        await #expect(throws: HostFailure.passwordRefused) { _ = try await two.join("desktop", Secret("wrong")) }
        await #expect(throws: HostFailure.nameTaken) {
            _ = try await two.join("laptop", invitation.password)
        }
        let code = try #require(try await two.join("desktop", invitation.password))
        // With another process, too: the record has the password.
        let again = try Machine(house, invitation.role, local: local)
        #expect(try await again.join("desktop", nil) == code)
        // Whoever else has the invitation comes too late.
        let late = try Machine(house, invitation.role)
        await #expect(throws: HostFailure.passwordRefused) { _ = try await late.join("evil", invitation.password) }
        #expect(try await one.sharing.remove(host: "desktop") == "desktop")
        await #expect(throws: (any Error).self) { _ = try await again.join("desktop", nil) }
    }
}
