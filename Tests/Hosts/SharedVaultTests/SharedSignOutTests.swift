import RingbackBase
import SessionVault
import Testing

@testable import BrokerTestSupport
@testable import SharedVault

private let slot = Hosts.slot

@Suite struct `Sign-outs of a vault that hosts share` {
    private let hosts = Hosts()

    private func pair() async throws -> (SharedVault, SharedVault) { try await hosts.pair() }

    @Test func `a sign-out holds on every host, whatever another host is doing`() async throws {
        let (one, two) = try await pair()
        _ = try await two.take()
        let retired = try await one.retire(slot)
        #expect(retired?.text == Secret("first"))
        #expect(try await one.retired().map(\.text) == [Secret("first")])
        #expect(try await one.text() == nil)
        // The other host's response comes to late.
        try await two.store("second", as: .result)
        #expect(try await two.text() == nil)
        #expect(try await one.slots(of: .session, besides: []) == [])
    }

    @Test func `a sign-out while the database is away holds when it is back`() async throws {
        let (wire, memory) = (Wire(), MemoryVault())
        let one = try await hosts.host("one", local: memory, fault: wire.fault)
        try await one.store("first", as: .replacement)
        let two = try await hosts.host("two")
        _ = try await two.text()
        wire.set(.notReached)
        _ = try await one.retire(slot)
        #expect(try await one.text() == nil)
        _ = try await two.take()
        try await two.store("second", as: .result)
        hosts.advance(by: .seconds(20))
        let again = try await hosts.host("one", local: memory)
        #expect(try await again.text() == nil)
        #expect(try await two.text() == nil)
    }

    @Test func `a sign-out forgets no request that is begun meanwhile`() async throws {
        let (wire, local) = (Wire(), RecordingVault())
        try await local.open(passphrase: nil)
        let one = try await hosts.host("one", local: local, fault: wire.fault)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        wire.set(.notReached)
        await local.hold()
        async let retired = one.retire(slot)
        #expect(await eventually { await local.log.contains { $0.hasPrefix("replace") } })
        #expect(try await one.requestBound(slot) != nil)
        await local.release()
        _ = try await retired
        // Other hosts are to wait for its response.
        #expect(await one.slots[slot]?.attempt?.mayBeSent == true)
    }

    @Test func `a sign-out keeps for revocation what another host has received, too`() async throws {
        let (one, two) = try await pair()
        _ = try await two.take()
        try await two.store("second", as: .result)
        _ = try await one.retire(slot)
        #expect(try await one.retired().map(\.text) == [Secret("first"), Secret("second")])
        #expect(await one.keptMore())
        #expect(await !one.keptMore())
        #expect(try await two.text() == nil)
    }

    @Test func `a sign-out that is sent late keeps nothing of another sign-in, and everything once`() async throws {
        let wire = Wire()
        let (one, two) = (try await hosts.host("one", fault: wire.fault), try await hosts.host("two"))
        try await one.store("first", as: .replacement)
        _ = try await two.text()
        _ = try await two.take()
        try await two.store("second", as: .result)
        wire.set(.notReached, for: "put")
        _ = try await one.retire(slot)
        for _ in 0..<3 {
            hosts.advance(by: .seconds(20))
            _ = await one.maintain()
        }
        #expect(try await one.retired().map(\.text) == [Secret("first"), Secret("second")])
        _ = try await two.replace(Secret("another"), in: slot)
        wire.set(.none)
        hosts.advance(by: .seconds(20))
        _ = await one.maintain()
        #expect(try await one.retired().map(\.text) == [Secret("first"), Secret("second")])
    }

    @Test func `a session of before the vault was shared is not revoked for another host's sign-out`() async throws {
        let (one, _) = try await pair()
        _ = try await one.retire(slot)
        let local = MemoryVault()
        await local.store(Secret("own"), in: slot)
        let joined = try await hosts.host("joined", local: local)
        #expect(try await joined.text() == nil)
        #expect(try await joined.retired().isEmpty)
    }

    @Test func `a response that comes after another host's sign-out is kept for revocation`() async throws {
        let (one, two) = try await pair()
        _ = try await two.take()
        _ = try await two.requestBound(slot)
        _ = try await one.retire(slot)
        try await two.store("second", as: .result)
        #expect(try await two.text() == nil)
        #expect(try await two.retired().map(\.text) == [Secret("second")])
        #expect(await two.keptMore())
    }
}
