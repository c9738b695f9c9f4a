import Glibc
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The registry of restricted sockets`: ExposedSocketSuite {
    let house: ExposedSocketHouse

    init() throws { house = try ExposedSocketHouse() }

    @Test func `what is made has a socket until it is revoked, by id or by name`() async throws {
        let registry = registry()
        let one = try await registry.add(order("one"))
        try await registry.add(order("two"))
        #expect(sockets.open == ["one", "two"])
        #expect(await registry.all.map(\.name) == ["one", "two"])
        #expect(await registry.find(one.id) == one)
        #expect(await registry.find("one") == one)
        #expect(try await registry.revoke(one.id) == one)
        #expect(sockets.open == ["two"])
        try await registry.revoke("two")
        #expect(sockets.open.isEmpty)
        guard case .nothingHeld? = await error({ try await registry.revoke("two") }) else { throw Unexpected() }
        #expect(told.all == ["opened one", "opened two", "closed one revoked", "closed two revoked"])
    }

    @Test func `a name is used once, and there is a bound`() async throws {
        let registry = registry()
        try await registry.add(order("one"))
        guard case .conflict? = await error({ try await registry.add(order("one")) }) else { throw Unexpected() }
        for number in 1..<ExposedSocketRegistry.most { try await registry.add(order("n\(number)")) }
        guard case .conflict? = await error({ try await registry.add(order("more")) }) else { throw Unexpected() }
        #expect(sockets.open.count == ExposedSocketRegistry.most)
    }

    @Test func `what cannot be opened is not in the registry`() async throws {
        let registry = registry()
        sockets.refuse("one")
        guard case .conflict? = await error({ try await registry.add(order("one")) }) else { throw Unexpected() }
        #expect(await registry.all.isEmpty)
        await self.registry().restore()
        #expect(sockets.opened == 0)
    }

    @Test func `what cannot be kept is not made`() async throws {
        unsafe chmod(folder.path, 0o500)
        defer { unsafe chmod(folder.path, 0o700) }
        let lost = ExposedSocketRegistry(
            listening: sockets.listening,
            file: StateFile(directory: folder.path + "/nowhere", name: "exposed-sockets.json"),
            clock: clock.clock, binding: house.bindings.find, record: told.note)
        #expect(await error { try await lost.add(order("one")) }?.kind == "vaultFailed")
        #expect(sockets.open.isEmpty)
    }

    @Test func `a restart brings back what calls made, with the same ids, and no revoked one`() async throws {
        let first = registry()
        let one = try await first.add(order("one", 3_600))
        try await first.add(order("two"))
        try await first.revoke("two")
        await first.closeAll()
        #expect(sockets.open.isEmpty)
        let second = await restarted()
        #expect(sockets.open == ["one"])
        #expect(await second.find("one") == one)
    }

    @Test func `one until a disconnect keeps its name from a table, and is not there after a restart`() async throws {
        let first = registry()
        var transient = order("one")
        transient.isTransient = true
        try await first.add(transient)
        #expect(await first.namesOfCalls == ["one"])
        let second = registry()
        await second.restore()
        #expect(await second.all.isEmpty)
    }

    @Test func `time goes on while the daemon is away`() async throws {
        let first = registry()
        try await first.add(order("one", 3_600))
        await first.closeAll()
        clock.advance(by: 3_600)
        await registry().restore()
        #expect(sockets.open.isEmpty)
        #expect(told.all.last == "closed one expired")
        clock.setWall(by: -10_000)
        await registry().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `what has expired is closed, and its connections with it`() async throws {
        let registry = registry()
        let keeping = Task { await registry.keep() }
        try await registry.add(order("one", 60))
        try await registry.add(order("two"))
        clock.advance(by: 61)
        // Looked at again whenever something changes.
        try await registry.add(order("three"))
        #expect(await eventually { sockets.open == ["two", "three"] })
        keeping.cancel()
        await keeping.value
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"version":2,"exposed_sockets":[]}"#, #"{"version":1,"exposed_sockets":[{}]}"#,
        #"{"version":1,"exposed_sockets":[{"id":"a","name":"../x","accounts":["work"],"created_at":1}]}"#,
        #"{"version":1,"exposed_sockets":[{"id":"a","name":"x","accounts":["work"],"scope":"openid","created_at":1}]}"#,
        #"{"version":1,"exposed_sockets":[{"id":"a","name":"x","accounts":["work"],"ttl":5,"created_at":1}]}"#,
        #"{"version":1,"exposed_sockets":[{"id":"a","name":"x","accounts":["work","/"],"created_at":1}]}"#,
        #"{"version":1,"exposed_sockets":[{"id":"a","name":"x","accounts":["work"],"allow_uids":[-1],"created_at":1}]}"#,
        #"{"version":1,"exposed_sockets":[{"id":"a","name":"x","accounts":["work"],"bindings":[],"created_at":1}]}"#,
        #"{"version":1,"exposed_sockets":[],"configured":{}}"#,
        #"{"version":1,"exposed_sockets":[],"configured":[{"name":"x"}]}"#,
        #"{"version":1,"exposed_sockets":[],"configured":[{"name":"x","digest":"d","ending":"later"}]}"#,
        #"{"version":1,"exposed_sockets":[],"configured":[{"name":"x","digest":"d","ttl":5}]}"#,
    ])
    func `a file that makes no sense opens nothing, and is not lost`(text: String) async throws {
        try folder.file.write(Array(text.utf8))
        let registry = await restarted()
        #expect(sockets.open.isEmpty && told.all == ["damaged"])
        #expect(try StateFile(directory: folder.path, name: "exposed-sockets.json.damaged").read(atMost: 1_000) != nil)
        try await registry.add(order("one"))
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A restricted socket and the account that it was made for`: ExposedSocketSuite {
    let house: ExposedSocketHouse

    init() throws { house = try ExposedSocketHouse() }

    @Test func `an account that becomes another one under its name takes its sockets with it`() async throws {
        let first = registry()
        try await first.add(order("one"))
        let early = first
        bindings.set("https://other.example")
        await early.configure([])
        #expect(sockets.open.isEmpty)
        #expect(await early.missing.map(\.reason) == [.accountChanged])
        #expect(told.all.last == "closed one account_changed")
        // For good: nor does it come back with the old one.
        bindings.set("https://id.example")
        let second = await restarted()
        #expect(sockets.open.isEmpty)
        try await second.add(order("one"))
        await second.closeAll()
        bindings.set("https://id.example", "another client")
        let third = await restarted()
        #expect(sockets.open.isEmpty)
        #expect(await third.missing.map(\.reason) == [.accountChanged])
        try await third.revoke("one")
        #expect(await third.missing.isEmpty)
    }

    @Test func `an account that comes back as it was keeps them, and one that changed does not`() async throws {
        let registry = registry()
        try await registry.add(order("one"))
        bindings.set(nil)
        await registry.configure([])
        #expect(sockets.open == ["one"])
        bindings.set("https://id.example")
        await registry.configure([])
        #expect(sockets.open == ["one"] && sockets.opened == 1)
        bindings.set(nil)
        await registry.configure([])
        bindings.set("https://other.example")
        await registry.configure([])
        #expect(sockets.open.isEmpty)
    }

    @Test func `a table shows its own connections what the configuration means by the name`() async throws {
        let registry = registry()
        await registry.configure([(order("one", 60), "f:1")])
        clock.advance(by: 20)
        bindings.set("https://other.example")
        await registry.configure([(order("one", 60), "f:1")])
        #expect(sockets.open == ["one"] && sockets.opened == 2)
        #expect(told.all.suffix(2) == ["closed one configuration", "opened one"])
        #expect(await registry.find("one")?.expiry?.remaining(at: clock.bootInstant) == .seconds(40))
    }

    @Test func `nothing is shown of an account that is not there`() async throws {
        bindings.set(nil)
        let registry = registry()
        #expect(await error { try await registry.add(order("one")) }?.kind == "accountNotFound")
        #expect(sockets.opened == 0)
    }

    @Test func `what cannot be opened at a start is tried at the next one, or taken back`() async throws {
        let first = registry()
        try await first.add(order("one"))
        try await first.add(order("two"))
        await first.closeAll()
        sockets.refuse("one")
        let second = await restarted()
        #expect(await second.missing.map(\.reason) == [.failed])
        // What is saved then still has it.
        try await second.revoke("two")
        await second.closeAll()
        sockets.refuse("")
        let third = await restarted()
        #expect(sockets.open == ["one"])
        await third.closeAll()
        sockets.refuse("one")
        let fourth = await restarted()
        try await fourth.revoke("one")
        sockets.refuse("")
        await self.registry().restore()
        #expect(sockets.open.isEmpty)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Restricted sockets of the configuration`: ExposedSocketSuite {
    let house: ExposedSocketHouse

    init() throws { house = try ExposedSocketHouse() }

    @Test func `the configuration's come and go with it; what did not change keeps its connections`() async throws {
        let registry = registry()
        await registry.configure([(order("one"), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 2)
        await registry.configure([(order("one"), "f:7"), (order("two", nil, ["openid", "email"]), "f:8")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 3)
        // The lines above it have changed.
        #expect(await registry.find("one")?.origin == .configuration("f:7"))
        guard case .conflict(let reason, nil)? = await error({ try await registry.add(order("one")) })
        else { throw Unexpected() }
        #expect(reason == .stated("one is defined in the configuration, f:7. Choose another name."))
        await registry.configure([])
        #expect(sockets.open.isEmpty)
        // They are not what a restart brings back.
        await self.registry().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `what a call made keeps its name, and a table of that name is reported as not opened`() async throws {
        let first = registry()
        try await first.add(order("one"))
        let registry = await restarted(first)
        await registry.configure([(order("one", nil, ["openid", "email"]), "f:1")])
        #expect(await registry.find("one")?.ceiling == ["openid"])
        #expect(await registry.missing.map(\.reason) == [.nameTaken])
        #expect(await registry.missing.first?.detail.holds("f:1") == true)
        #expect(told.all.last?.hasPrefix("failed one") == true)
        #expect(await registry.namesOfCalls == ["one"])
        #expect(ExposedSocketRegistry.namesOfCalls(in: folder.file, by: clock.clock) == ["one"])
        // The name is the table's from then on, once it is free and the configuration is read again.
        try await registry.revoke("one")
        #expect(sockets.open.isEmpty)
        guard case .conflict? = await error({ try await registry.add(order("one")) }) else { throw Unexpected() }
        await registry.configure([(order("one", nil, ["openid", "email"]), "f:1")])
        #expect(await registry.find("one")?.ceiling == ["email", "openid"])
        #expect(await registry.missing.isEmpty)
    }

    @Test func `a name that an expired socket had is free, as far as the file tells`() async throws {
        try await registry().add(order("one", 60))
        #expect(ExposedSocketRegistry.namesOfCalls(in: folder.file, by: clock.clock) == ["one"])
        clock.advance(by: 60)
        #expect(ExposedSocketRegistry.namesOfCalls(in: folder.file, by: clock.clock).isEmpty)
    }

    @Test func `a table's time goes on over restarts; another table of the name begins anew`() async throws {
        let first = await restarted()
        await first.configure([(order("one", 3_600), "f:1")])
        let end = try #require(await first.find("one")?.expiry)
        await first.closeAll()
        clock.advance(by: 1_000)
        let second = await restarted()
        await second.configure([(order("one", 3_600), "f:9")])
        #expect(await second.find("one")?.expiry == end)
        await second.configure([(order("one", 3_601), "f:9")])
        #expect(await second.find("one")?.expiry?.remaining(at: clock.bootInstant) == .seconds(3_601))
        await second.closeAll()
        clock.advance(by: 3_601)
        let third = await restarted()
        await third.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open.isEmpty)
        #expect(await third.missing.map(\.reason) == [.expired])
        #expect(told.all.last == "closed one expired")
        // Neither a wall clock that is set back nor another boot gives it more.
        clock.reboot()
        clock.setWall(by: -1_000_000)
        let fourth = await restarted(nil, clock.clock(bootID: "another boot"))
        await fourth.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open.isEmpty)
        // What is removed and written again is a table that begins.
        await fourth.configure([])
        await fourth.configure([(order("one", 3_601), "f:9")])
        #expect(sockets.open == ["one"])
    }

    @Test func `a table that was revoked stays closed over reloads and restarts, until it is changed`() async throws {
        let first = registry()
        await first.configure([(order("one"), "f:1")])
        try await first.revoke("one")
        #expect(sockets.open.isEmpty)
        guard case .nothingHeld(let why)? = await error({ try await first.revoke("one") }) else { throw Unexpected() }
        #expect(
            why
                == .both(
                    .stated("one is closed already."),
                    .stated("It was revoked. It stays closed until its table is changed, at f:1.")))
        await first.configure([(order("one"), "f:1")])
        #expect(sockets.open.isEmpty)
        let second = await restarted(first)
        await second.configure([(order("one"), "f:1")])
        #expect(sockets.open.isEmpty)
        #expect(await second.missing.map(\.reason) == [.revoked])
        #expect(await error { try await second.add(order("one")) }?.kind == "conflict")
        await second.configure([(order("one", 60), "f:1")])
        #expect(sockets.open == ["one"])
        #expect(await second.missing.isEmpty)
    }

    @Test(arguments: [nil, "", "{\"version\":1", "{\"version\":9,\"grants\":[]}"])
    func `a table that was revoked stays closed when the file that says so is lost or damaged`(text: String?)
        async throws
    {
        let first = await restarted()
        await first.configure([(order("one"), "f:1"), (order("two"), "f:2")])
        try await first.revoke("one")
        await first.closeAll()
        if let text {
            try folder.file.write(Array(text.utf8))
        } else {
            unsafe unlink("\(folder.path)/exposed-sockets.json")
        }
        // Over starts, too, and whether or not the start before it came to an end.
        await registry().restore()
        for _ in 0..<2 {
            let next = await restarted()
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
            let registry = await restarted()
            await registry.configure([(order("one"), "f:1")])
            #expect(sockets.open == ["one"] && !told.all.contains("damaged"))
            await registry.closeAll()
        }
    }

    @Test func `a reload does not bring back what has expired, a change does`() async throws {
        let registry = registry()
        let keeping = Task { await registry.keep() }
        await registry.configure([(order("one", 60), "f:1")])
        clock.advance(by: 60)
        await registry.configure([(order("one", 60), "f:1"), (order("two"), "f:2")])
        #expect(await eventually { sockets.open == ["two"] })
        await registry.configure([(order("one", 60), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["two"])
        await registry.configure([(order("one", 90), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"])
        keeping.cancel()
        await keeping.value
    }
}
