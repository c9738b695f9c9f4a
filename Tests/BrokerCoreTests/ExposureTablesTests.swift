import SessionVault
import Testing

@testable import BrokerCore

@Suite(.timeLimit(.minutes(1))) struct `Restricted sockets of the configuration` {
    private let house: ExposureHouse
    private var clock: TestClock { house.clock }
    private var sockets: ExposureSockets { house.sockets }
    private var told: ExposureFacts { house.told }
    private var folder: ExposureFolder { house.folder }

    init() throws { house = try ExposureHouse() }

    private func book(_ clock: BrokerClock? = nil) -> ExposureBook { house.book(clock) }

    private func order(_ name: String, _ lifetime: Int? = nil, _ ceiling: [String]? = ["openid"]) -> Exposure.Order {
        house.order(name, lifetime, ceiling)
    }

    @Test func `the configuration's come and go with it; what did not change keeps its connections`() async throws {
        let book = book()
        await book.configure([(order("one"), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 2)
        await book.configure([(order("one"), "f:7"), (order("two", nil, ["openid", "email"]), "f:8")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 3)
        // The lines above it have changed.
        #expect(await book.find("one")?.origin == .configuration("f:7"))
        guard case .conflict(let reason)? = await error({ () throws(BrokerError) in try await book.add(order("one")) })
        else { throw Unexpected() }
        #expect(reason.contains("f:7"))
        await book.configure([])
        #expect(sockets.open.isEmpty)
        // They are not what a restart brings back.
        await self.book().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `what a call made keeps its name; a table that would have it is not opened, and that is said`()
        async throws
    {
        let first = book()
        try await first.add(order("one"))
        await first.closeAll()
        let book = book()
        await book.restore()
        await book.configure([(order("one", nil, ["openid", "email"]), "f:1")])
        #expect(await book.find("one")?.ceiling == ["openid"])
        #expect(await book.missing.map(\.reason) == [.nameTaken])
        #expect(await book.missing.first?.detail.contains("f:1") == true)
        #expect(told.all.last?.hasPrefix("failed one") == true)
        #expect(await book.namesOfCalls == ["one"])
        #expect(ExposureBook.namesOfCalls(in: folder.file, by: clock.clock) == ["one"])
        // The name is the table's from then on, once it is free and the configuration is read again.
        try await book.revoke("one")
        #expect(sockets.open.isEmpty)
        guard case .conflict? = await error({ () throws(BrokerError) in try await book.add(order("one")) }) else {
            throw Unexpected()
        }
        await book.configure([(order("one", nil, ["openid", "email"]), "f:1")])
        #expect(await book.find("one")?.ceiling == ["email", "openid"])
        #expect(await book.missing.isEmpty)
    }

    @Test func `a name that an expired socket had is free, as far as the file tells`() async throws {
        try await book().add(order("one", 60))
        #expect(ExposureBook.namesOfCalls(in: folder.file, by: clock.clock) == ["one"])
        clock.advance(by: 60)
        #expect(ExposureBook.namesOfCalls(in: folder.file, by: clock.clock).isEmpty)
    }

    @Test func `a table's time goes on over restarts; another table of the name begins anew`() async throws {
        let first = book()
        await first.restore()
        await first.configure([(order("one", 3_600), "f:1")])
        let end = try #require(await first.find("one")?.expiry)
        await first.closeAll()
        clock.advance(by: 1_000)
        let second = book()
        await second.restore()
        await second.configure([(order("one", 3_600), "f:9")])
        #expect(await second.find("one")?.expiry == end)
        await second.configure([(order("one", 3_601), "f:9")])
        #expect(await second.find("one")?.expiry?.remaining(at: clock.boot) == 3_601)
        await second.closeAll()
        clock.advance(by: 3_601)
        let third = book()
        await third.restore()
        await third.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open.isEmpty)
        #expect(await third.missing.map(\.reason) == [.expired])
        #expect(told.all.last == "closed one expired")
        // Neither a wall clock that is set back nor another boot gives it more.
        clock.reboot()
        clock.setWall(by: -1_000_000)
        let fourth = book(clock.clock(bootID: "another boot"))
        await fourth.restore()
        await fourth.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open.isEmpty)
        // What is removed and written again is a table that begins.
        await fourth.configure([])
        await fourth.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open == ["one"])
    }

    @Test func `a table that was revoked stays closed over reloads and restarts, until it is changed`() async throws {
        let first = book()
        await first.configure([(order("one"), "f:1")])
        try await first.revoke("one")
        #expect(sockets.open.isEmpty)
        guard case .nothingHeld(let why)? = await error({ () throws(BrokerError) in try await first.revoke("one") })
        else { throw Unexpected() }
        #expect(why.contains("f:1"))
        await first.configure([(order("one"), "f:1")])
        #expect(sockets.open.isEmpty)
        await first.closeAll()
        let second = book()
        await second.restore()
        await second.configure([(order("one"), "f:1")])
        #expect(sockets.open.isEmpty)
        #expect(await second.missing.map(\.reason) == [.revoked])
        guard case .conflict? = await error({ () throws(BrokerError) in try await second.add(order("one")) }) else {
            throw Unexpected()
        }
        await second.configure([(order("one", 60), "f:1")])
        #expect(sockets.open == ["one"])
        #expect(await second.missing.isEmpty)
    }

    @Test func `a reload does not bring back what has expired, a change does`() async throws {
        let book = book()
        let keeping = Task { await book.keep() }
        await book.configure([(order("one", 60), "f:1")])
        clock.advance(by: 60)
        await book.configure([(order("one", 60), "f:1"), (order("two"), "f:2")])
        #expect(await eventually { sockets.open == ["two"] })
        await book.configure([(order("one", 60), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["two"])
        await book.configure([(order("one", 90), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"])
        keeping.cancel()
        await keeping.value
    }
}
