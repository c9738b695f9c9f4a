import Cryptography
import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

@Suite struct `Hosts that join a shared vault` {
    private let hosts = Hosts()
    private let roles = MemoryHosts()

    private func vault(_ name: String, _ local: any Vault = MemoryVault(), _ wire: Wire = Wire()) -> SharedVault {
        roles.admit(name)
        return SharedVault(
            local: local, rows: MemoryRows.Connection(hosts.database, host: name, fault: wire.fault),
            hosts: MemoryHosts.Connection(roles, role: name),
            place: DatabasePlace(shown: "database", role: name, database: "vault"),
            now: { [hosts] in hosts.clock.now }, random: { RandomToken.bytes($0) })
    }

    @Test func `the first host makes the key, and finds it again`() async throws {
        let memory = MemoryVault()
        let one = vault("one", memory)
        try await one.open(passphrase: nil)
        let made = try #require(await one.membership)
        #expect(made.dataKey.count == 32 && made.host == "one" && made.owner == Hex.text(MemoryHosts.owner))
        let again = vault("one", memory)
        try await again.open(passphrase: nil)
        #expect(await again.membership == made)
    }

    @Test func `a further host stays locked until it gets the key`() async throws {
        let one = vault("one")
        try await one.open(passphrase: nil)
        let two = vault("two")
        #expect(await failure { try await two.open(passphrase: nil) } == .noKey)
        #expect(await failure { try await two.load(Hosts.slot) } != nil)
        let membership = try #require(await one.membership)
        try await two.adopt(Membership(dataKey: membership.dataKey, owner: membership.owner, host: "two"))
        try await one.store("first", as: .replacement)
        #expect(try await two.text() == "first")
    }

    @Test func `a key that was made while the database is away is not used until the database has its mark`()
        async throws
    {
        let (wire, memory) = (Wire(), MemoryVault())
        let one = vault("one", memory, wire)
        wire.set(.answerLost, count: 1)
        #expect(await failure { try await one.open(passphrase: nil) } == .unreachable(.databaseAway(.timedOut)))
        hosts.advance(by: .seconds(1))
        try await one.open(passphrase: nil)
        #expect(await one.membership?.host == "one")
    }
}
