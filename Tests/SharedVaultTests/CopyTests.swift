import Secrets
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
        #expect(await two.tend() == nil)
        #expect(await two.slots.uncopied.isEmpty)
        changed.wire.set(.notReached)
        #expect(try await changed.two().text() == "second")
    }

    @Test func `many are copied, a few at a time`() async throws {
        let hosts = Hosts()
        let one = try await hosts.host("one")
        let slots = (0..<40).map { VaultSlot(account: "work\($0)", binding: "b") }
        for slot in slots { try await one.store(Secret("first"), in: slot, as: .replacement) }
        let local = MemoryVault()
        let two = try await hosts.host("two", local: local)
        for entry in await two.load(slots) { #expect(try entry.get()?.text == Secret("first")) }
        #expect(await two.tend() == .zero)
        #expect(await local.load(slots).count { (try? $0.get()) != nil } == 16)
        while await two.tend() != nil {}
        #expect(await local.load(slots).count { (try? $0.get()) != nil } == 40)
    }

    @Test func `what is to be sent to a provider is marked in the copy, and stays marked`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        guard case .granted = try await two.take() else {
            Issue.record("not granted")
            return
        }
        _ = await two.tend()
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
        #expect(await two.tend() == nil)
        changed.wire.set(.notReached)
        #expect(try await changed.two().text() == "another")
    }

    @Test func `a sign-out keeps for revocation what was taken up, not what it replaced`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        #expect(try await two.text() == "second")
        #expect(try await two.retire(slot)?.text == Secret("second"))
        #expect(try await two.retired().map(\.text) == [Secret("second")])
        #expect(await two.tend() == nil)
        #expect(try await changed.local.load(slot) == nil)
    }

    @Test func `a copy that the local vault has no room for is in the database`() async throws {
        let changed = try await Changed()
        let two = try await changed.two()
        await changed.local.failStoring(with: .unwritable(.cryptography))
        #expect(try await two.text() == "second")
        #expect(await two.tend() == nil)
        await changed.local.failStoring(with: nil)
        #expect(try await changed.two().text() == "second")
    }
}
