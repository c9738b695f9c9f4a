import Cryptography
import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import Synchronization
import TestSupport
import Testing

@testable import RowDatabase

/// Hosts that join through a real database, with passwords.
@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `Hosts that join a shared vault` {
    /// A machine: its local vault, which outlives a process, and the database as its role reaches it.
    private struct Machine {
        let database: DatabaseHosts
        let vault: SharedVault

        init(_ house: VaultHouse, _ role: String, local: MemoryVault = MemoryVault(), dying: Dying? = nil) throws {
            let url = try house.server.url(role, house.database)
            let database = DatabaseHosts(url, password: .none)
            self.database = database
            let hosts: any SharedHosts = dying.map { DyingHosts(database, $0) } ?? database
            let start = ContinuousClock.now
            vault = SharedVault(
                local: local, rows: database.rows, hosts: hosts,
                place: DatabasePlace(shown: "database", role: role, database: house.database),
                now: { start.duration(to: .now) + .seconds(1_000) }, random: { RandomToken.bytes($0) })
        }

        var sharing: Sharing { Sharing(vault) }

        /// Joins and opens. Returns the code if the key is missing.
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
        two.database.rows.start()
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
        two.database.rows.shutdown()
    }

    @Test func `a wrong code and another host's key lead nowhere`() async throws {
        let house = try await VaultHouse("vault")
        let (one, invitation) = try await pair(house)
        let other = try await one.sharing.invite(lasting: .seconds(600))
        let two = try Machine(house, invitation.role)
        let three = try Machine(house, other.role)
        let code = try #require(try await two.join("desktop", invitation.password))
        _ = try #require(try await three.join("login", other.password))
        await #expect(throws: SharingFailure.noSuchHost) {
            try await one.sharing.share(with: try #require(HostCode(Secret("00000-00000-00000-00000"))))
        }
        _ = try await one.sharing.share(with: code)
        let given = try #require(try await two.database.identity().wrappedKey)
        #expect(try await one.database.give(key: given, to: other.role))
        await #expect(throws: VaultError.self) { try await three.vault.open(passphrase: nil) }
        var changed = given
        changed[40] ^= 1
        #expect(try await one.database.give(key: changed, to: invitation.role))
        await #expect(throws: VaultError.self) { try await two.vault.open(passphrase: nil) }
        #expect(try await one.database.give(key: given, to: invitation.role))
        try await two.vault.open(passphrase: nil)
    }

    @Test func `the invitation's password is needed, once, and the right one`() async throws {
        let house = try await VaultHouse("vault")
        let (one, invitation) = try await pair(house)
        let local = MemoryVault()
        let two = try Machine(house, invitation.role, local: local)
        await #expect(throws: SharingFailure.passwordNeeded) { _ = try await two.join("desktop", nil) }
        await #expect(throws: SharingFailure.passwordRefused) { _ = try await two.join("desktop", Secret("wrong")) }
        await #expect(throws: SharingFailure.hosts(.nameTaken)) {
            _ = try await two.join("laptop", invitation.password)
        }
        let code = try #require(try await two.join("desktop", invitation.password))
        // With another process, too: the record has the password.
        let again = try Machine(house, invitation.role, local: local)
        #expect(try await again.join("desktop", nil) == code)
        // Whoever else has the invitation comes too late.
        let late = try Machine(house, invitation.role)
        await #expect(throws: SharingFailure.passwordRefused) { _ = try await late.join("evil", invitation.password) }
        #expect(try await one.sharing.remove(host: "desktop") == "desktop")
        await #expect(throws: (any Error).self) { _ = try await again.join("desktop", nil) }
    }

    @Test func `a host that is killed between any two steps goes on`() async throws {
        let house = try await VaultHouse("vault")
        for isLost in [false, true] {
            var count = 0
            while true {
                let (one, invitation) = try await pair(house)
                let (local, dying) = (MemoryVault(), Dying(after: count, losingAnswer: isLost))
                let doomed = try Machine(house, invitation.role, local: local, dying: dying)
                let shown = try? await doomed.join("desktop", invitation.password)
                doomed.database.rows.shutdown()
                let again = try Machine(house, invitation.role, local: local)
                _ = try? await again.vault.open(passphrase: nil)
                let code = try #require(try await again.join("desktop", invitation.password))
                if let shown { #expect(shown == code) }
                _ = try await one.sharing.share(with: code)
                try await again.vault.open(passphrase: nil)
                again.database.rows.shutdown()
                one.database.rows.shutdown()
                guard dying.isDead else { break }
                count += 1
            }
            #expect(count >= 3)
        }
    }
}

/// A process that is killed at its n-th call of the database: before it, or before it has the answer.
private final class Dying: Sendable {
    private let left: Mutex<Int>
    let losesAnswer: Bool

    init(after count: Int, losingAnswer: Bool) {
        left = Mutex(count)
        losesAnswer = losingAnswer
    }

    var isDead: Bool { left.withLock { $0 < 0 } }

    func run<Value>(_ body: () async throws(HostFailure) -> Value) async throws(HostFailure) -> Value {
        let count = left.withLock { left in
            defer { if left >= 0 { left -= 1 } }
            return left
        }
        if count < 0 || (count == 0 && !losesAnswer) { throw .database(.unreachable(.closed)) }
        let value = try await body()
        if count == 0 { throw .database(.unreachable(.closed)) }
        return value
    }
}

private struct DyingHosts: SharedHosts {
    let database: DatabaseHosts
    let dying: Dying

    init(_ database: DatabaseHosts, _ dying: Dying) {
        self.database = database
        self.dying = dying
    }

    func use(_ password: Secret?) { database.use(password) }
    func accept(
        as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?
    ) async throws(HostFailure) {
        try await dying.run { () throws(HostFailure) in
            try await database.accept(as: name, password: password, publicKey: publicKey, invitation: invitation)
        }
    }
    func identity() async throws(HostFailure) -> HostIdentity {
        try await dying.run { () throws(HostFailure) in try await database.identity() }
    }
    func hosts() async throws(HostFailure) -> [Host] {
        try await dying.run { () throws(HostFailure) in try await database.hosts() }
    }
    func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        try await dying.run { () throws(HostFailure) in try await database.invite(lasting: lasting) }
    }
    func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool {
        try await dying.run { () throws(HostFailure) in try await database.give(key: wrapped, to: role) }
    }
    func remove(host role: String) async throws(HostFailure) -> Bool {
        try await dying.run { () throws(HostFailure) in try await database.remove(host: role) }
    }
}
