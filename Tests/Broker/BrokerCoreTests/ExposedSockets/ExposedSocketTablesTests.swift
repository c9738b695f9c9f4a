import Glibc
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Restricted sockets of the configuration`: ExposedSocketSuite {
    let house: ExposedSocketHouse

    init() throws { house = try ExposedSocketHouse() }

    @Test func `the configuration's come and go with it; what did not change keeps its connections`() async throws {
        let sessionManager = sessionManager()
        await sessionManager.configure([(order("one"), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 2)
        await sessionManager.configure([(order("one"), "f:7"), (order("two", nil, ["openid", "email"]), "f:8")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 3)
        // The lines above it have changed.
        #expect(await sessionManager.find("one")?.origin == .configuration("f:7"))
        guard
            case .conflict(let reason, nil)? = await error({ () throws(BrokerError) in
                try await sessionManager.add(order("one"))
            })
        else { throw Unexpected() }
        #expect(reason == .exposedSocket(.configured("one", place: "f:7")))
        await sessionManager.configure([])
        #expect(sockets.open.isEmpty)
        // They are not what a restart brings back.
        await self.sessionManager().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `what a call made keeps its name; a table that would have it is not opened, and that is said`()
        async throws
    {
        let first = sessionManager()
        try await first.add(order("one"))
        await first.closeAll()
        let sessionManager = sessionManager()
        await sessionManager.restore()
        await sessionManager.configure([(order("one", nil, ["openid", "email"]), "f:1")])
        #expect(await sessionManager.find("one")?.ceiling == ["openid"])
        #expect(await sessionManager.missing.map(\.reason) == [.nameTaken])
        #expect(await sessionManager.missing.first?.detail.holds("f:1") == true)
        #expect(told.all.last?.hasPrefix("failed one") == true)
        #expect(await sessionManager.namesOfCalls == ["one"])
        #expect(ExposedSocketRegistry.namesOfCalls(in: folder.file, by: clock.clock) == ["one"])
        // The name is the table's from then on, once it is free and the configuration is read again.
        try await sessionManager.revoke("one")
        #expect(sockets.open.isEmpty)
        guard case .conflict? = await error({ () throws(BrokerError) in try await sessionManager.add(order("one")) })
        else {
            throw Unexpected()
        }
        await sessionManager.configure([(order("one", nil, ["openid", "email"]), "f:1")])
        #expect(await sessionManager.find("one")?.ceiling == ["email", "openid"])
        #expect(await sessionManager.missing.isEmpty)
    }

    @Test func `a name that an expired socket had is free, as far as the file tells`() async throws {
        try await sessionManager().add(order("one", 60))
        #expect(ExposedSocketRegistry.namesOfCalls(in: folder.file, by: clock.clock) == ["one"])
        clock.advance(by: 60)
        #expect(ExposedSocketRegistry.namesOfCalls(in: folder.file, by: clock.clock).isEmpty)
    }

    @Test func `a table's time goes on over restarts; another table of the name begins anew`() async throws {
        let first = sessionManager()
        await first.restore()
        await first.configure([(order("one", 3_600), "f:1")])
        let end = try #require(await first.find("one")?.expiry)
        await first.closeAll()
        clock.advance(by: 1_000)
        let second = sessionManager()
        await second.restore()
        await second.configure([(order("one", 3_600), "f:9")])
        #expect(await second.find("one")?.expiry == end)
        await second.configure([(order("one", 3_601), "f:9")])
        #expect(await second.find("one")?.expiry?.remaining(at: clock.bootInstant) == .seconds(3_601))
        await second.closeAll()
        clock.advance(by: 3_601)
        let third = sessionManager()
        await third.restore()
        await third.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open.isEmpty)
        #expect(await third.missing.map(\.reason) == [.expired])
        #expect(told.all.last == "closed one expired")
        // Neither a wall clock that is set back nor another boot gives it more.
        clock.reboot()
        clock.setWall(by: -1_000_000)
        let fourth = sessionManager(clock.clock(bootID: "another boot"))
        await fourth.restore()
        await fourth.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open.isEmpty)
        // What is removed and written again is a table that begins.
        await fourth.configure([])
        await fourth.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open == ["one"])
    }

    @Test func `a table that was revoked stays closed over reloads and restarts, until it is changed`() async throws {
        let first = sessionManager()
        await first.configure([(order("one"), "f:1")])
        try await first.revoke("one")
        #expect(sockets.open.isEmpty)
        guard case .nothingHeld(let why)? = await error({ () throws(BrokerError) in try await first.revoke("one") })
        else { throw Unexpected() }
        #expect(
            why
                == .both(
                    .exposedSocket(.closedAlready("one")), .exposedSocket(.closed(.revoked, place: "f:1"))))
        await first.configure([(order("one"), "f:1")])
        #expect(sockets.open.isEmpty)
        await first.closeAll()
        let second = sessionManager()
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

    @Test(arguments: [nil, "", "{\"version\":1", "{\"version\":9,\"grants\":[]}"])
    func `a table that was revoked stays closed when the file that says so is lost or damaged`(text: String?)
        async throws
    {
        let first = sessionManager()
        await first.restore()
        await first.configure([(order("one"), "f:1"), (order("two"), "f:2")])
        try await first.revoke("one")
        await first.closeAll()
        if let text {
            try folder.file.write(Array(text.utf8))
        } else {
            unsafe unlink("\(folder.path)/exposed-sockets.json")
        }
        // Over starts, too, and whether or not the start before it came to an end.
        await sessionManager().restore()
        for _ in 0..<2 {
            let next = sessionManager()
            await next.restore()
            await next.configure([(order("one"), "f:1"), (order("two"), "f:2")])
            #expect(sockets.open.isEmpty)
            #expect(await next.missing.map(\.reason) == [.forgotten, .forgotten])
            #expect(await next.missing.first?.detail.holds("f:1") == true)
            #expect(told.all.contains("damaged"))
            // A table that comes later, and one that is changed, are nobody's that was revoked.
            await next.configure([(order("one", 60), "f:1"), (order("two"), "f:2"), (order("three"), "f:3")])
            #expect(sockets.open == ["one", "three"])
            await next.configure([(order("one"), "f:1"), (order("two"), "f:2")])
            try await next.revoke("one")
            await next.closeAll()
            unsafe unlink("\(folder.path)/exposed-sockets.json")
        }
    }

    @Test func `where nothing was ever revoked, nothing is missed`() async throws {
        for _ in 0..<2 {
            let sessionManager = sessionManager()
            await sessionManager.restore()
            await sessionManager.configure([(order("one"), "f:1")])
            #expect(sockets.open == ["one"] && !told.all.contains("damaged"))
            await sessionManager.closeAll()
        }
    }

    @Test func `a reload does not bring back what has expired, a change does`() async throws {
        let sessionManager = sessionManager()
        let keeping = Task { await sessionManager.keep() }
        await sessionManager.configure([(order("one", 60), "f:1")])
        clock.advance(by: 60)
        await sessionManager.configure([(order("one", 60), "f:1"), (order("two"), "f:2")])
        #expect(await eventually { sockets.open == ["two"] })
        await sessionManager.configure([(order("one", 60), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["two"])
        await sessionManager.configure([(order("one", 90), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"])
        keeping.cancel()
        await keeping.value
    }
}
