import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

private let slot = Hosts.slot

@Suite struct `A vault that hosts share` {
    private let hosts = Hosts()

    private func pair() async throws -> (SharedVault, SharedVault) { try await hosts.pair() }

    @Test func `a refresh is one host's at a time, and the others take up what it brought`() async throws {
        let (one, two) = try await pair()
        #expect(try await one.take() == .granted(.unleased))
        #expect(try await two.take() == .wait(.seconds(5)))
        #expect(try await one.requestBound(slot) == .seconds(20))
        try await one.store("second, not validated", as: .received)
        try await one.store("second", as: .result)
        #expect(try await two.take() == .changed(VaultEntry(text: Secret("second"))))
        #expect(try await two.take() == .granted(.unleased))
        #expect(hosts.row?.version == 2)
    }

    @Test func `a broker is given what another host brought, and presents nothing`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        try await one.store("second", as: .result)
        // The notification was faster than the broker's turn.
        await two.look(at: [hosts.row?.key])
        #expect(try await two.take() == .changed(VaultEntry(text: Secret("second"))))
        #expect(hosts.row?.openAttempts.isEmpty == true)
        #expect(try await two.take() == .granted(.unleased))
    }

    @Test func `a request in which nothing was received ends the turn at once`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        try await one.settle(slot)
        #expect(try await two.take() == .granted(.unleased))
        #expect(hosts.row?.openAttempts.map(\.host) == ["two"])
    }

    @Test func `a former lease of the same host allows no request`() async throws {
        let (one, _) = try await pair()
        let announcement = try await one.announce(slot, presenting: Secret("r1"), accessTokenLeft: nil)
        guard case .granted(let former, _, _) = announcement else { return #expect(Bool(false), "not granted") }
        try await one.settle(slot)
        #expect(await failure { try await one.requestBound(slot, under: former) } == .unreachable(.leaseOver))
        #expect(try await one.take() == .granted(.unleased))
        #expect(await failure { try await one.requestBound(slot, under: former) } == .unreachable(.leaseOver))
    }

    @Test func `nothing is sent when half a minute of the turn is over`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        hosts.advance(by: .seconds(31))
        #expect(await failure { try await one.requestBound(slot) } == .unreachable(.leaseOver))
        // Nothing was sent: nobody has to wait.
        #expect(try await two.take() == .granted(.unleased))
    }

    @Test(arguments: [(60, 0), (1_000, 535)])
    func `an attempt whose outcome is unknown is waited for until the access token ends, ten minutes at most`(
        left: Int, wait: Int
    ) async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        hosts.advance(by: .seconds(65))
        let left = Duration.seconds(left - 65)
        let announcement = try await two.take(left: max(left, .zero))
        #expect(announcement == (wait == 0 ? .granted(.unleased) : .wait(.seconds(wait))))
        hosts.advance(by: .seconds(536))
        if wait > 0 { #expect(try await two.take(left: .seconds(400)) == .granted(.unleased)) }
    }

    @Test func `a host that was killed does not wait for its own attempt`() async throws {
        let memory = MemoryVault()
        let one = try await hosts.host("one", local: memory)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        let again = try await hosts.host("one", local: memory)
        #expect(try await again.load(slot)?.isInterrupted == true)
        #expect(try await again.take(left: .seconds(900)) == .wait(.seconds(5)))
        hosts.advance(by: .seconds(60))
        #expect(try await again.take(left: .seconds(900)) == .granted(.unleased))
    }

    @Test func `what a host received after its turn is a candidate, which the next one presents first`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        hosts.advance(by: .seconds(61))
        try await one.store("late", as: .result)
        #expect(hosts.row?.version == 1 && hosts.row?.candidates.count == 1)
        #expect(try await one.text() == "late")
        #expect(try await two.take() == .granted(.unleased, newer: [Secret("late")]))
        _ = try await two.requestBound(slot)
        try await two.store("third", as: .result)
        #expect(try await one.take() == .changed(VaultEntry(text: Secret("third"))))
        // Its own is not offered to it again.
        #expect(try await one.take() == .granted(.unleased))
    }

    @Test func `what came of two branches is in the row, and the head is everybody's`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        hosts.advance(by: .seconds(61))
        _ = try await two.take(left: .zero)
        try await two.store("second", as: .result)
        try await one.store("late", as: .result)
        #expect(try await one.text() == "second")
        #expect(try await two.take() == .granted(.unleased, older: [Secret("late")]))
    }

    @Test func `without the database nothing is refreshed, and what is here is served`() async throws {
        let wire = Wire()
        let one = try await hosts.host("one", fault: wire.fault)
        try await one.store("first", as: .replacement)
        wire.set(.notReached)
        #expect(await failure { try await one.take() } == .unreachable(.databaseAway(.noConnection)))
        #expect(try await one.text() == "first")
        #expect(
            await failure { try await one.store("edited", as: .edit) } == .unreachable(.databaseAway(.noConnection)))
        #expect(try await one.text() == "first")
        wire.set(.none)
        hosts.advance(by: .seconds(1))
        #expect(try await one.take() == .granted(.unleased))
    }

    @Test(arguments: [MemoryRows.Fault.notReached, .answerLost])
    func `a response that could not be appended is served, and sent when the database is back`(
        fault: MemoryRows.Fault
    ) async throws {
        let wire = Wire()
        let one = try await hosts.host("one", fault: wire.fault)
        let two = try await hosts.host("two")
        try await one.store("first", as: .replacement)
        _ = try await two.text()
        _ = try await one.take()
        wire.set(fault)
        try await one.store("second, not validated", as: .received)
        try await one.store("second", as: .result)
        #expect(try await one.text() == "second")
        #expect(await one.maintain() != nil)
        wire.set(.none)
        hosts.advance(by: .seconds(16))
        #expect(await one.maintain() == nil)
        #expect(try await two.text() == "second")
        #expect(hosts.row?.openAttempts == [] && hosts.row?.lease == nil)
    }

    @Test func `a response that a killed host had stored is sent by its next life`() async throws {
        let (wire, memory) = (Wire(), MemoryVault())
        let one = try await hosts.host("one", local: memory, fault: wire.fault)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        wire.set(.notReached)
        try await one.store("second", as: .result)
        hosts.advance(by: .seconds(100))
        let again = try await hosts.host("one", local: memory)
        #expect(try await again.text() == "second")
        #expect(try await hosts.host("two").take() != .granted(.unleased))
        #expect(hosts.row?.candidates.count == 1)
    }

    @Test func `what a failover lost is put back`() async throws {
        let (one, two) = try await pair()
        hosts.database.replicate()
        _ = try await one.take()
        try await one.store("second", as: .result)
        #expect(try await two.text() == "second")
        hosts.database.failOver()
        #expect(hosts.row?.version == 1)
        await two.look(at: [nil])
        #expect(hosts.row?.version == 2)
        #expect(try await one.text() == "second")
        #expect(try await one.take() == .granted(.unleased))
    }

    @Test func `an older row is not used, and put right`() async throws {
        let (one, two) = try await pair()
        let older = try #require(hosts.row)
        _ = try await one.take()
        try await one.store("second", as: .result)
        _ = try await two.text()
        hosts.database.replace(older)
        #expect(try await two.text() == "second")
        #expect(hosts.row?.version == 2)
        // Under the newer number it does not open.
        var forged = older
        forged.version = 2
        hosts.database.replace(forged)
        #expect(try await two.text() == "second")
        #expect(await failure { try await two.take() } == .unreachable(.foreignRow))
        // Nobody has to wait for an attempt in which nothing was sent.
        #expect(hosts.row?.lease == nil && hosts.row?.openAttempts == [])
    }

    @Test func `a row of another place does not open`() async throws {
        let (one, two) = try await pair()
        let other = VaultSlot(account: "other", binding: slot.binding)
        try await one.store(Secret("other"), in: other, as: .replacement)
        let rows = hosts.database.rows
        var swapped = try #require(rows.first)
        swapped.sealed = try #require(rows.last).sealed
        hosts.database.replace(swapped)
        let loaded = await two.load([slot, other])
        #expect(loaded.contains(.failure(.unreachable(.foreignRow))) || loaded.contains { (try? $0.get()) != nil })
        #expect(!hosts.database.rows.contains { $0.key.bytes.count != 32 })
    }

    @Test func `another owner's host cannot read a row`() async throws {
        _ = try await pair()
        let stranger = try await hosts.host("three", owner: "mallory")
        #expect(await failure { try await stranger.text() } == .unreachable(.foreignRow))
    }
}
