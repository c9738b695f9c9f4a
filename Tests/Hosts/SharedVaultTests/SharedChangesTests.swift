import RingbackBase
import SessionVault
import Synchronization
import Testing

@testable import BrokerTestSupport
@testable import SharedVault

private let slot = Hosts.slot

@Suite struct `What users do with a vault that hosts share` {
    private let hosts = Hosts()

    private func pair() async throws -> (SharedVault, SharedVault) { try await hosts.pair() }

    @Test func `a sign-in replaces the other hosts' session, and keeps it for its revocation`() async throws {
        let (one, two) = try await pair()
        let retired = try await two.replace(Secret("another"), in: slot)
        #expect(retired?.text == Secret("first"))
        #expect(try await one.text() == "another")
        #expect(try await one.retired().isEmpty)
    }

    @Test func `an edit of what another host has changed is refused`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        #expect(await failure { try await two.store("edited", as: .edit) } == .unreachable(.heldElsewhere))
        try await one.store("second", as: .result)
        #expect(await failure { try await two.store("edited", as: .edit) } == .unreachable(.changedElsewhere))
        #expect(await failure { try await two.store("edited", as: .edit) } == .unreachable(.changedElsewhere))
        #expect(try await two.text() == "second")
        try await two.store("edited", as: .edit)
        #expect(try await one.text() == "edited")
    }

    @Test func `a change is told to the broker of the other host`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        try await one.store("second", as: .result)
        await two.look(at: [hosts.row?.key])
        var changes = two.changes.makeAsyncIterator()
        #expect(await changes.next() == .some(slot))
        #expect(try await two.text() == "second")
    }

    @Test func `an end is proven only if no other host may have received a newer token`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        hosts.advance(by: .seconds(61))
        _ = try await two.take(left: .zero)
        #expect(await two.proofOfEnd(slot) == nil)
        hosts.advance(by: .seconds(3_600))
        #expect(await two.proofOfEnd(slot) == EndProof(unheard: .init(host: "one", age: .seconds(3_661))))
        // What came meanwhile was not tried.
        try await one.store("late", as: .result)
        #expect(await two.proofOfEnd(slot) == nil)
        try await two.store("ended", as: .end)
        #expect(try await two.text() == "ended")
    }

    @Test func `a token that another host did not know of when the session ended is presented next`() async throws {
        let (one, two) = try await pair()
        _ = try await one.take()
        _ = try await one.requestBound(slot)
        hosts.advance(by: .seconds(3_661))
        _ = try await two.take(left: .zero)
        #expect(await two.proofOfEnd(slot) != nil)
        try await two.store("ended", as: .end)
        try await one.store("second", as: .result)
        #expect(try await one.text() == "second")
        _ = await one.maintain()
        await two.look(at: [hosts.row?.key])
        #expect(try await two.text() == "second")
        #expect(try await two.take() == .granted(.unleased))
        // It is refused: this time the end stays.
        try await two.store("ended", as: .end)
        await one.look(at: [hosts.row?.key])
        #expect(try await one.text() == "ended")
        #expect(hosts.row?.version == 4)
    }

    @Test func `a row that is gone proves no end before it is there again`() async throws {
        let (one, _) = try await pair()
        _ = try await one.take()
        hosts.database.delete(try #require(hosts.row?.key))
        #expect(await one.proofOfEnd(slot) == nil)
        try await one.settle(slot)
        _ = try await one.take()
        #expect(await one.proofOfEnd(slot) == EndProof())
    }

    @Test func `a change that is told during a request is looked at when the request is over`() async throws {
        let (one, two) = try await pair()
        _ = try await two.take()
        _ = try await two.requestBound(slot)
        _ = try await one.retire(slot)
        await two.look(at: [hosts.row?.key])
        // Until then the request may bring something.
        #expect(await two.slots[slot]?.isOverlooked == true)
        #expect(await two.maintain().map { $0 > .seconds(50) } == true)
        try await two.settle(slot)
        #expect(await two.maintain() == nil)
        var changes = two.changes.makeAsyncIterator()
        #expect(await changes.next() == .some(slot))
        #expect(try await two.text() == nil)
    }

    @Test func `a change that is told while a host first reads the row is looked at afterwards`() async throws {
        let one = try await hosts.host("one")
        try await one.store("first", as: .replacement)
        let two = try await hosts.host("two")
        let rows = try #require(await two.rows as? MemoryRows.Connection)
        rows.afterRead.withLock { [hosts] in
            $0 = {
                guard (try? await one.take()) != nil, (try? await one.store("second", as: .result)) != nil else {
                    return
                }
                await two.look(at: [hosts.row?.key])
            }
        }
        #expect(try await two.text() == "first")
        try #require(await two.slots[slot]?.isOverlooked == true)
        _ = await two.maintain()
        var changes = two.changes.makeAsyncIterator()
        #expect(await changes.next() == .some(slot))
        #expect(await two.slots[slot]?.entry?.content.text == Secret("second"))
    }

    @Test func `news are told once, however often a row changed, and everything instead of many`() async {
        let news = RowNews()
        let (one, two) = (RowKey(bytes: [1]), RowKey(bytes: [2]))
        for key in [one, two, one] { news.note(key) }
        #expect(await news.next().map(Set.init) == [one, two])
        for key in [one, nil, two] { news.note(key) }
        #expect(await news.next() == [nil])
        news.finish()
        #expect(await news.next() == nil)
    }

    @Test func `statements that fail together make one pause`() {
        var outage = Outage()
        for _ in 0..<20 { outage.note(.timedOut, isRead: false, at: .seconds(1)) }
        #expect(outage.refusal(at: .seconds(1) + .milliseconds(249)) == .timedOut)
        #expect(outage.refusal(at: .seconds(1) + .milliseconds(250)) == nil)
        outage.note(.timedOut, isRead: false, at: .seconds(2))
        #expect(outage.refusal(at: .seconds(2) + .milliseconds(499)) == .timedOut)
    }

    @Test func `a start that loads many sessions does not wait for the database each time`() async throws {
        let (wire, local) = (Wire(), MemoryVault())
        let slots = (0..<9).map { VaultSlot(account: "work\($0)", binding: "https://id.example ringback") }
        for slot in slots { await local.store(Secret(slot.account), in: slot) }
        let one = try await hosts.host("one", local: local, fault: wire.fault)
        wire.set(.notReached)
        for slot in slots {
            #expect(try await one.load([slot])[0].get()?.text == Secret(slot.account))
            // More than the first pause after a failure.
            hosts.advance(by: .milliseconds(500))
        }
        #expect(wire.count(of: "read") == 1)
        // What was loaded without its row is looked at when the database is back.
        #expect(await one.slots.overlooked.isSuperset(of: slots))
        wire.set(.none)
        hosts.advance(by: .seconds(1))
        _ = await one.load(slots)
        #expect(wire.count(of: "read") > 1)
    }

    @Test func `what was to be done when the vault was locked is done when it is open again`() async throws {
        let (wire, local) = (Wire(), RecordingVault())
        try await local.open(passphrase: nil)
        let one = try await hosts.host("one", local: local, fault: wire.fault)
        try await one.store("first", as: .replacement)
        _ = try await one.take()
        wire.set(.notReached, for: "settle")
        try await one.settle(slot)
        try await one.close()
        wire.set(.none)
        hosts.advance(by: .seconds(20))
        // While it is locked nothing can be done.
        let (news, end) = await (one.wakes.stream, one.wakes.continuation)
        var wakes = news.makeAsyncIterator()
        #expect(await wakes.next() != nil)
        #expect(await one.maintain() == nil)
        #expect(hosts.row?.lease != nil)
        try await local.open(passphrase: nil)
        try await one.adopt(Membership(dataKey: Hosts.dataKey, owner: "alice", host: "one"))
        end.finish()
        #expect(await wakes.next() != nil)
        #expect(await one.maintain() == nil)
        #expect(hosts.row?.lease == nil && hosts.row?.openAttempts.isEmpty == true)
    }

    @Test func `a change that could not be read is looked at when the database is back`() async throws {
        let wire = Wire()
        let (one, two) = (try await hosts.host("one"), try await hosts.host("two", fault: wire.fault))
        try await one.store("first", as: .replacement)
        _ = try await two.text()
        _ = try await one.retire(slot)
        wire.set(.notReached)
        await two.look(at: [hosts.row?.key])
        #expect(await two.maintain() != nil)
        wire.set(.none)
        hosts.advance(by: .seconds(20))
        #expect(await two.maintain() == nil)
        var changes = two.changes.makeAsyncIterator()
        #expect(await changes.next() == .some(slot))
    }

    @Test func `what cannot be sent delays no news of other sessions`() async throws {
        let wire = Wire()
        let (one, two) = (try await hosts.host("one"), try await hosts.host("two", fault: wire.fault))
        let other = VaultSlot(account: "other", binding: "b")
        try await one.store("first", as: .replacement)
        _ = await two.load([slot, other])
        wire.set(.notReached, for: "put")
        try await two.store(Secret("unsent"), in: other, as: .replacement)
        _ = try await one.retire(slot)
        hosts.advance(by: .seconds(20))
        let tries = wire.count(of: "put")
        await two.look(at: [nil])
        #expect(wire.count(of: "put") == tries)
        var changes = two.changes.makeAsyncIterator()
        #expect(await changes.next() == .some(slot))
        wire.set(.none)
        #expect(await two.maintain() == nil)
        #expect(try await one.load(other)?.text == Secret("unsent"))
    }

    @Test func `what the local vault has no room for is in memory and in the database`() async throws {
        let (wire, local) = (Wire(), RecordingVault())
        try await local.open(passphrase: nil)
        let one = try await hosts.host("one", local: local, fault: wire.fault)
        await local.failStoring(with: .unwritable(.cryptography))
        for _ in 0..<3 {
            #expect(await failure { try await one.store("first", as: .result) } == .unwritable(.cryptography))
        }
        #expect(wire.count(of: "put") == 1 && hosts.row?.version == 1)
        await local.failStoring(with: nil)
        try await one.store("first", as: .result)
        #expect(wire.count(of: "put") == 1)
        #expect(try await one.text() == "first")
    }

    @Test func `known users and whatever else is this host's stays in its local vault`() async throws {
        let (one, two) = try await pair()
        let people = VaultSlot(account: "work", binding: "b", kind: .people)
        try await one.store(Secret("alice"), in: people)
        #expect(try await one.load(people)?.text == Secret("alice"))
        #expect(try await two.load(people) == nil)
        #expect(hosts.database.rows.count == 1)
    }

    @Test func `what was stored before the vault was shared is put into it`() async throws {
        let memory = MemoryVault()
        await memory.store(Secret("plain"), in: slot)
        let one = try await hosts.host("one", local: memory)
        #expect(try await one.text() == "plain")
        #expect(try await hosts.host("two").text() == "plain")
    }

    @Test func `the database learns no name and no text`() async throws {
        _ = try await pair()
        let row = try #require(hosts.row)
        for text in ["first", "work", "id.example"] {
            #expect(!String(decoding: row.sealed + row.key.bytes, as: UTF8.self).contains(text))
        }
    }
}
