import RingbackBase
import SessionVault
import Testing

@testable import BrokerTestSupport
@testable import SharedVault

private let slot = Hosts.slot

/// Two hosts; the session was refreshed on the first while the second was not running.
private struct Changed {
    let hosts = Hosts()
    let local = RecordingVault()
    let wire = Wire()
    let one: SharedVault

    init() async throws {
        try await local.open(passphrase: nil)
        one = try await hosts.host("one")
        try await one.store("first", as: .replacement)
        _ = try await hosts.host("two", local: local).text()
        _ = try await one.take()
        try await one.store("second", as: .result)
    }

    func two() async throws -> SharedVault { try await hosts.host("two", local: local, fault: wire.fault) }
}

@Suite struct `Copies of rows in the local vault` {
    @Test func `a session that was changed elsewhere is there before it is copied`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        let before = await changed.local.log
        #expect(try await two.text() == "second")
        #expect(await changed.local.log == before)
        #expect(await two.slots.uncopied == [slot])
        #expect(await two.maintain() == nil)
        #expect(await two.slots.uncopied.isEmpty)
        changed.wire.set(.notReached)
        #expect(try await changed.two().text() == "second")
    }

    @Test func `many are copied, a few at a time`() async throws {
        let hosts = Hosts()
        let one = try await hosts.host("one")
        let slots = (0..<200).map { VaultSlot(account: "work\($0)", binding: "b") }
        for slot in slots { try await one.store(Secret("first"), in: slot, as: .replacement) }
        let local = MemoryVault()
        let two = try await hosts.host("two", local: local)
        for entry in await two.load(slots) { #expect(try entry.get()?.text == Secret("first")) }
        #expect(await two.maintain() == .zero)
        #expect(await local.load(slots).count { (try? $0.get()) != nil } == 128)
        while await two.maintain() != nil {}
        #expect(await local.load(slots).count { (try? $0.get()) != nil } == 200)
    }

    @Test func `what is to be sent to a provider is marked in the copy, and stays marked`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        guard case .granted = try await two.take() else { throw Unexpected("not granted") }
        _ = await two.maintain()
        let stored = try await changed.local.load(slot)
        #expect(stored?.isInterrupted == true)
        #expect(stored.flatMap { SpoolEntry.read($0.text) }?.content.text == Secret("second"))
    }

    @Test func `a change that comes during a request is copied after it`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        _ = try await two.take()
        _ = try await changed.one.replace(Secret("another"), in: slot)
        try await two.store("third", as: .result)
        #expect(try await two.text() == "another")
        #expect(await two.maintain() == nil)
        changed.wire.set(.notReached)
        #expect(try await changed.two().text() == "another")
    }

    @Test func `a sign-out keeps for revocation what was taken up, not what it replaced`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        #expect(try await two.retire(slot)?.text == Secret("second"))
        #expect(try await two.retired().map(\.text) == [Secret("second")])
        #expect(await two.maintain() == nil)
        #expect(try await changed.local.load(slot) == nil)
    }

    @Test func `a change after a request without an outcome is copied when its lease is over`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        _ = try await two.take()
        _ = try await two.requestBound(slot)
        changed.hosts.advance(by: .seconds(61))
        _ = try await changed.one.replace(Secret("another"), in: slot)
        await two.look(at: [nil])
        #expect(await two.maintain() == nil)
        let entry = try #require(try await two.load(slot))
        // The mark was of the content before.
        #expect(entry.text == Secret("another") && !entry.isInterrupted)
        let stored = try await changed.local.load(slot)
        #expect(stored.flatMap { SpoolEntry.read($0.text) }?.content.text == Secret("another"))
    }

    @Test func `a mark in the local vault is not that of a content which is not copied yet`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        // First it gets what was changed.
        _ = try await two.take()
        _ = try await two.take()
        _ = try await two.requestBound(slot)
        changed.hosts.advance(by: .seconds(61))
        _ = try await changed.one.replace(Secret("another"), in: slot)
        await two.look(at: [nil])
        let entry = try #require(try await two.load(slot))
        #expect(entry.text == Secret("another") && !entry.isInterrupted)
    }

    @Test func `a sign-out keeps what is held also where its copy could not be written`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        await changed.local.failStoring(with: .unwritable(.cryptography))
        #expect(await two.maintain() == nil)
        await changed.local.failStoring(with: nil)
        #expect(try await two.retire(slot)?.text == Secret("second"))
    }

    @Test(arguments: [1, 40])
    func `a sign-in is not put over what came after it, when its host starts again`(refreshes: Int) async throws {
        let hosts = Hosts()
        let local = MemoryVault()
        _ = try await hosts.host("one", local: local).store("first", as: .replacement)
        let two = try await hosts.host("two")
        _ = try await two.text()
        for number in 0..<refreshes {
            _ = try await two.take()
            try await two.store("refreshed \(number)", as: .result)
        }
        #expect(try await hosts.host("one", local: local).text() == "refreshed \(refreshes - 1)")
        #expect(try await two.text() == "refreshed \(refreshes - 1)")
    }

    @Test func `a sign-in that the database has is not put over another one that is much later`() async throws {
        let hosts = Hosts()
        let local = MemoryVault()
        let one = try await hosts.host("one", local: local)
        try await one.store("first", as: .replacement)
        #expect(await one.maintain() == nil)
        let two = try await hosts.host("two")
        _ = try await two.replace(Secret("another"), in: slot)
        for number in 0..<20 {
            _ = try await two.take()
            try await two.store("refreshed \(number)", as: .result)
        }
        #expect(try await hosts.host("one", local: local).text() == "refreshed 19")
    }

    @Test func `a copy that the local vault has no room for is in the database`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        await changed.local.failStoring(with: .unwritable(.cryptography))
        #expect(try await two.text() == "second")
        #expect(await two.maintain() == nil)
        await changed.local.failStoring(with: nil)
        #expect(try await changed.two().text() == "second")
    }
}
