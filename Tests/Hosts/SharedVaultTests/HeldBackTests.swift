import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

private let slot = Hosts.slot

@Suite struct `What the database gets, and when` {
    private let hosts = Hosts()

    @Test func `a response that is validated at once is given to the database once`() async throws {
        let wire = Wire()
        let one = try await hosts.host("one", fault: wire.fault)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        let before = wire.count(of: "append")
        try await one.store("second, not validated", as: .received)
        #expect(await one.maintain() == SharedVault.validation)
        try await one.store("second", as: .result)
        #expect(await one.maintain() == nil)
        #expect(wire.count(of: "append") == before + 1)
        #expect(hosts.row?.version == 2 && hosts.row?.lease == nil)
    }

    @Test func `a response whose validation takes longer is given to the database before`() async throws {
        let one = try await hosts.host("one")
        let two = try await hosts.host("two")
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        try await one.store("second, not validated", as: .received)
        hosts.advance(by: SharedVault.validation)
        #expect(await one.maintain() == nil)
        #expect(try await two.text() == "second, not validated")
        try await one.store("second", as: .result)
        #expect(hosts.row?.version == 3 && hosts.row?.lease == nil)
    }

    @Test func `an attempt whose response is held back ends with the response in the row`() async throws {
        let wire = Wire()
        let one = try await hosts.host("one", fault: wire.fault)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        try await one.store("second, not validated", as: .received)
        wire.set(.notReached, for: "append")
        try await one.settle(slot)
        // It is here alone: the others wait.
        #expect(hosts.row?.openAttempts.count == 1)
        wire.set(.none)
        hosts.advance(by: .seconds(1))
        try await one.settle(slot)
        #expect(try await hosts.host("two").text() == "second, not validated")
        #expect(hosts.row?.openAttempts == [] && hosts.row?.lease == nil && hosts.row?.candidates == [])
    }

    @Test func `a response that cannot be stored here is given to the database at once`() async throws {
        let life = Life()
        let one = try await hosts.host("one", local: Spool(MemoryVault(), life))
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        life.killAfter = 0
        await #expect(throws: VaultError.self) { try await one.store("second, not validated", as: .received) }
        #expect(try await hosts.host("two").text() == "second, not validated")
    }

    @Test func `a database that can be read and takes no changes is away until it takes one`() async throws {
        let wire = Wire()
        let one = try await hosts.host("one", fault: wire.fault)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        wire.set(.notReached, for: "append")
        try await one.store("second", as: .result)
        hosts.advance(by: .seconds(1))
        #expect(try await one.text() == "second")
        #expect(one.status.database?.away == .seconds(1))
        wire.set(.none)
        hosts.advance(by: .seconds(16))
        #expect(await one.maintain() == nil && one.status.database?.away == nil)
    }

    @Test func `a host that has nothing to ask learns that the database is back`() async throws {
        let wire = Wire()
        let one = try await hosts.host("one", fault: wire.fault)
        try await one.store("first", as: .replacement)
        wire.set(.notReached)
        #expect(try await one.text() == "first")
        #expect(one.status.database?.away != nil)
        #expect(await one.maintain() != nil)
        wire.set(.none)
        hosts.advance(by: .seconds(16))
        #expect(await one.maintain() == nil && one.status.database?.away == nil)
    }
}
