import Glibc
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `The sessionManager of restricted sockets`: ExposedSocketSuite {
    let house: ExposedSocketHouse

    init() throws { house = try ExposedSocketHouse() }

    @Test func `what is made has a socket until it is revoked, by id or by name`() async throws {
        let sessionManager = sessionManager()
        let one = try await sessionManager.add(order("one"))
        try await sessionManager.add(order("two"))
        #expect(sockets.open == ["one", "two"])
        #expect(await sessionManager.all.map(\.name) == ["one", "two"])
        #expect(await sessionManager.find(one.id) == one)
        #expect(await sessionManager.find("one") == one)
        #expect(try await sessionManager.revoke(one.id) == one)
        #expect(sockets.open == ["two"])
        try await sessionManager.revoke("two")
        #expect(sockets.open.isEmpty)
        guard case .nothingHeld? = await error({ () throws(BrokerError) in try await sessionManager.revoke("two") })
        else {
            throw Unexpected()
        }
        #expect(told.all == ["opened one", "opened two", "closed one revoked", "closed two revoked"])
    }

    @Test func `a name is used once, and there is a bound`() async throws {
        let sessionManager = sessionManager()
        try await sessionManager.add(order("one"))
        guard case .conflict? = await error({ () throws(BrokerError) in try await sessionManager.add(order("one")) })
        else {
            throw Unexpected()
        }
        for number in 1..<ExposedSocketRegistry.most { try await sessionManager.add(order("n\(number)")) }
        guard case .conflict? = await error({ () throws(BrokerError) in try await sessionManager.add(order("more")) })
        else {
            throw Unexpected()
        }
        #expect(sockets.open.count == ExposedSocketRegistry.most)
    }

    @Test func `what cannot be opened is not in the sessionManager`() async throws {
        let sessionManager = sessionManager()
        sockets.refuse("one")
        guard case .conflict? = await error({ () throws(BrokerError) in try await sessionManager.add(order("one")) })
        else {
            throw Unexpected()
        }
        #expect(await sessionManager.all.isEmpty)
        await self.sessionManager().restore()
        #expect(sockets.opened == 0)
    }

    @Test func `what cannot be kept is not made`() async throws {
        unsafe chmod(folder.path, 0o500)
        defer { unsafe chmod(folder.path, 0o700) }
        let lost = ExposedSocketRegistry(
            listening: sockets.listening,
            file: StateFile(directory: folder.path + "/nowhere", name: "exposed-sockets.json"),
            clock: clock.clock, binding: house.bindings.find, record: told.note)
        guard case .vaultFailed? = await error({ () throws(BrokerError) in try await lost.add(order("one")) }) else {
            throw Unexpected()
        }
        #expect(sockets.open.isEmpty)
    }

    @Test func `a restart brings back what calls made, with the same ids, and no revoked one`() async throws {
        let first = sessionManager()
        let one = try await first.add(order("one", 3_600))
        try await first.add(order("two"))
        try await first.revoke("two")
        await first.closeAll()
        #expect(sockets.open.isEmpty)
        let second = sessionManager()
        await second.restore()
        #expect(sockets.open == ["one"])
        #expect(await second.find("one") == one)
    }

    @Test func `time goes on while the daemon is away`() async throws {
        let first = sessionManager()
        try await first.add(order("one", 3_600))
        await first.closeAll()
        clock.advance(by: 3_600)
        await sessionManager().restore()
        #expect(sockets.open.isEmpty)
        #expect(told.all.last == "closed one expired")
        // And it is forgotten for good.
        clock.setWall(by: -10_000)
        await sessionManager().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `a wall clock that is set back makes none live longer than it was to`() async throws {
        let first = sessionManager()
        try await first.add(order("one", 3_600))
        await first.closeAll()
        clock.reboot()
        clock.setWall(by: -1_000_000)
        let second = sessionManager(clock.clock(bootID: "another boot"))
        await second.restore()
        let expiry = try #require(await second.find("one")?.expiry)
        #expect(expiry.remaining(at: clock.bootInstant) == .seconds(3_600))
    }

    @Test func `what has expired is closed, and its connections with it`() async throws {
        let sessionManager = sessionManager()
        let keeping = Task { await sessionManager.keep() }
        try await sessionManager.add(order("one", 60))
        try await sessionManager.add(order("two"))
        clock.advance(by: 61)
        // Looked at again whenever something changes.
        try await sessionManager.add(order("three"))
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
        let sessionManager = sessionManager()
        await sessionManager.restore()
        #expect(sockets.open.isEmpty && told.all == ["damaged"])
        #expect(try StateFile(directory: folder.path, name: "exposed-sockets.json.damaged").read(atMost: 1_000) != nil)
        try await sessionManager.add(order("one"))
    }
}
