import RingbackBase
import SessionVault
import Testing

@testable import SharedVault

@Suite struct `A removal of a host` {
    private let owner = Owner()

    /// A host that has joined, has the key and stored a session.
    private func host(
        _ role: String, _ local: any Vault, fault: @escaping @Sendable (String) -> MemoryRows.Fault = { _ in .none }
    ) async throws -> SharedVault {
        let vault = owner.vault(role, local, fault: fault)
        _ = try await vault.join(as: nil, otherwise: role, invitation: owner.hosts.invite(role).password)
        try await vault.open(passphrase: nil)
        try await vault.store("first", as: .replacement)
        return vault
    }

    private func further(_ role: String, by one: SharedVault) async throws -> SharedVault {
        let (vault, code) = try await owner.second(role)
        _ = try await one.share(with: code)
        owner.rows.advance(by: .seconds(30))
        try await vault.open(passphrase: nil)
        #expect(try await vault.text() == "first")
        return vault
    }

    /// As a refresh of the session does it.
    private func refresh(_ vault: SharedVault, to text: String) async throws {
        guard case .granted = try await vault.take("first") else { return #expect(Bool(false), "not granted") }
        try await vault.store(text, as: .received)
        try await vault.store(text, as: .result)
    }

    @Test func `makes every session stale until it was refreshed once, on all hosts`() async throws {
        let one = try await host("one", MemoryVault())
        let (two, three) = (try await further("two", by: one), try await further("three", by: one))
        #expect(await !one.isStale(Hosts.slot))
        #expect(try await one.remove(host: "two") == "two")
        #expect(await one.isStale(Hosts.slot))
        await three.look(at: [nil])
        #expect(await three.isStale(Hosts.slot))
        #expect(await refusal { try await two.list() } != nil)

        // A change without new tokens does not help.
        try await one.store("edited", as: .edit)
        #expect(await one.isStale(Hosts.slot))
        await three.look(at: [nil])
        _ = try await three.text()
        try await refresh(three, to: "second")
        #expect(await !three.isStale(Hosts.slot))
        await one.look(at: [nil])
        #expect(await !one.isStale(Hosts.slot))
        #expect(try await one.text() == "second")
        // A sign-in is later than the removal, and so is what a host reads that is started again.
        try await one.store("third", as: .replacement)
        #expect(await !one.isStale(Hosts.slot))
    }

    /// Removes a host with a process that is killed after so many calls of its vault and its database.
    private func remove(killedAfter count: Int) async throws -> Bool {
        let test = `A removal of a host`()
        let (memory, life) = (MemoryVault(), Life())
        let doomed = try await test.host("one", Spool(memory, life)) { _ in life.passes() ? .none : .notReached }
        _ = try await test.further("two", by: doomed)
        life.killAfter = count
        let told = try? await doomed.remove(host: "two")

        let again = test.owner.vault("one", memory)
        try await again.open(passphrase: nil)
        #expect(try await again.text() == "first")
        try await Sharing(again).resumeRemovals()
        let isRemoved = test.owner.hosts["two"] == nil
        #expect(isRemoved || told == nil)
        #expect(await again.isStale(Hosts.slot) == isRemoved, "killed after \(count)")
        #expect(await again.removals.begun == [])
        return life.isDead
    }

    @Test func `goes on after its host was killed at any step`() async throws {
        var count = 0
        while try await remove(killedAfter: count) { count += 1 }
        #expect(count > 5)
    }

    @Test func `is ended by another host if its own one does not come back`() async throws {
        let (life, memory) = (Life(), MemoryVault())
        let one = try await host("one", Spool(memory, life)) { name in
            if name == "remove" { life.killAfter = 1 }
            return life.passes() ? .none : .notReached
        }
        let three = try await further("three", by: one)
        _ = try await further("two", by: one)
        #expect(await refusal { try await one.remove(host: "two") } != nil)
        #expect(owner.hosts["two"] == nil)

        await three.look(at: [nil])
        var news = Sharing(three).removalNews.makeAsyncIterator()
        #expect(await news.next() != nil)
        #expect(await three.removals.begun.map(\.name) == ["two"])
        #expect(await !three.isStale(Hosts.slot))
        try await Sharing(three).resumeRemovals()
        #expect(await three.removals.begun == [])
        #expect(await three.isStale(Hosts.slot))
    }

    @Test(arguments: ["remove", "put"]) func `goes on if the answer was lost`(statement: String) async throws {
        let wire = Wire()
        let one = try await host("one", MemoryVault(), fault: wire.fault)
        _ = try await further("two", by: one)
        wire.set(.answerLost, for: statement, count: 1)
        _ = try? await one.remove(host: "two")
        owner.rows.advance(by: .seconds(30))
        _ = try await one.text()
        await one.look(at: [nil])
        try await Sharing(one).resumeRemovals()
        #expect(owner.hosts["two"] == nil)
        #expect(await one.isStale(Hosts.slot))
        #expect(await one.removals == RemovalRecord.done(1))
    }

    @Test func `is not begun while the database is away`() async throws {
        let wire = Wire()
        let one = try await host("one", MemoryVault(), fault: wire.fault)
        _ = try await further("two", by: one)
        wire.set(.notReached, for: "put")
        #expect(await refusal { try await one.remove(host: "two") } != nil)
        #expect(owner.hosts["two"] != nil)
        #expect(await one.removals == RemovalRecord())
    }

    @Test func `is counted once, whoever ends it, and never by the host itself`() async throws {
        let one = try await host("one", MemoryVault())
        let two = try await further("two", by: one)
        try await Removals(vault: one).record { $0.begin(RemovalRecord.Begun(role: "two", name: "two")) }
        await two.look(at: [nil])
        try await Sharing(two).resumeRemovals()
        #expect(owner.hosts["two"] != nil)
        for _ in 0..<2 { try await Sharing(one).resumeRemovals() }
        try await Removals(vault: one).record { $0.end(RemovalRecord.Begun(role: "two", name: "two")) }
        #expect(await one.removals == RemovalRecord.done(1))
    }

    @Test func `two at once are both counted`() async throws {
        let one = try await host("one", MemoryVault())
        for role in ["two", "three", "four"] { _ = try await further(role, by: one) }
        async let first = one.remove(host: "two")
        async let second = one.remove(host: "three")
        async let third = one.remove(host: "four")
        _ = try await (first, second, third)
        #expect(await one.removals == RemovalRecord.done(3))
    }

    @Test(arguments: [
        "", "{}", #"{"version":2,"count":0,"begun":[]}"#, #"{"version":1,"count":-1,"begun":[]}"#,
        #"{"version":1,"count":0,"begun":[{"role":"x"}]}"#,
    ])
    func `has a record that is read strictly`(text: String) {
        #expect(RemovalRecord(reading: Secret(text)) == nil)
    }
}

extension RemovalRecord {
    /// So many removals are done, and none is begun.
    fileprivate static func done(_ count: Int) -> RemovalRecord {
        var record = RemovalRecord()
        record.count = count
        return record
    }
}
