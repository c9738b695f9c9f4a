import Glibc
import SessionVault
import Testing

@testable import BrokerCore

@Suite(.timeLimit(.minutes(1))) struct `The book of restricted sockets` {
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

    @Test func `what is made has a socket until it is revoked, by id or by name`() async throws {
        let book = book()
        let one = try await book.add(order("one"))
        try await book.add(order("two"))
        #expect(sockets.open == ["one", "two"])
        #expect(await book.all.map(\.name) == ["one", "two"])
        #expect(await book.find(one.id) == one)
        #expect(await book.find("one") == one)
        #expect(try await book.revoke(one.id) == one)
        #expect(sockets.open == ["two"])
        try await book.revoke("two")
        #expect(sockets.open.isEmpty)
        guard case .nothingHeld? = await error({ () throws(BrokerError) in try await book.revoke("two") }) else {
            throw Unexpected()
        }
        #expect(told.all == ["opened one", "opened two", "closed one revoked", "closed two revoked"])
    }

    @Test func `a name is used once, and there is a bound`() async throws {
        let book = book()
        try await book.add(order("one"))
        guard case .conflict? = await error({ () throws(BrokerError) in try await book.add(order("one")) }) else {
            throw Unexpected()
        }
        for number in 1..<ExposureBook.most { try await book.add(order("n\(number)")) }
        guard case .conflict? = await error({ () throws(BrokerError) in try await book.add(order("more")) }) else {
            throw Unexpected()
        }
        #expect(sockets.open.count == ExposureBook.most)
    }

    @Test func `what cannot be opened is not in the book`() async throws {
        let book = book()
        sockets.refuse("one")
        guard case .conflict? = await error({ () throws(BrokerError) in try await book.add(order("one")) }) else {
            throw Unexpected()
        }
        #expect(await book.all.isEmpty)
        await self.book().restore()
        #expect(sockets.opened == 0)
    }

    @Test func `what cannot be kept is not made`() async throws {
        unsafe chmod(folder.path, 0o500)
        defer { unsafe chmod(folder.path, 0o700) }
        let lost = ExposureBook(
            door: sockets.door, file: StateFile(directory: folder.path + "/nowhere", name: "grants.json"),
            clock: clock.clock, binding: house.bindings.find, record: told.note)
        guard case .vaultFailed? = await error({ () throws(BrokerError) in try await lost.add(order("one")) }) else {
            throw Unexpected()
        }
        #expect(sockets.open.isEmpty)
    }

    @Test func `a restart brings back what calls made, with the same ids, and no revoked one`() async throws {
        let first = book()
        let one = try await first.add(order("one", 3_600))
        try await first.add(order("two"))
        try await first.revoke("two")
        await first.closeAll()
        #expect(sockets.open.isEmpty)
        let second = book()
        await second.restore()
        #expect(sockets.open == ["one"])
        #expect(await second.find("one") == one)
    }

    @Test func `time goes on while the daemon is away`() async throws {
        let first = book()
        try await first.add(order("one", 3_600))
        await first.closeAll()
        clock.advance(by: 3_600)
        await book().restore()
        #expect(sockets.open.isEmpty)
        #expect(told.all.last == "closed one expired")
        // And it is forgotten for good.
        clock.setWall(by: -10_000)
        await book().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `a wall clock that is set back makes none live longer than it was to`() async throws {
        let first = book()
        try await first.add(order("one", 3_600))
        await first.closeAll()
        clock.reboot()
        clock.setWall(by: -1_000_000)
        let second = book(clock.clock(bootID: "another boot"))
        await second.restore()
        let expiry = try #require(await second.find("one")?.expiry)
        #expect(expiry.remaining(at: clock.boot) == 3_600)
    }

    @Test func `what has expired is closed, and its connections with it`() async throws {
        let book = book()
        let keeping = Task { await book.keep() }
        try await book.add(order("one", 60))
        try await book.add(order("two"))
        clock.advance(by: 61)
        // Looked at again whenever something changes.
        try await book.add(order("three"))
        #expect(await eventually { sockets.open == ["two", "three"] })
        keeping.cancel()
        await keeping.value
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"version":2,"grants":[]}"#, #"{"version":1,"grants":[{}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"../x","accounts":["work"],"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"scope":"openid","created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"ttl":5,"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work","/"],"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"allow_uids":[-1],"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"bindings":[],"created_at":1}]}"#,
        #"{"version":1,"grants":[],"configured":{}}"#, #"{"version":1,"grants":[],"configured":[{"name":"x"}]}"#,
        #"{"version":1,"grants":[],"configured":[{"name":"x","digest":"d","ending":"later"}]}"#,
        #"{"version":1,"grants":[],"configured":[{"name":"x","digest":"d","ttl":5}]}"#,
    ])
    func `a file that makes no sense opens nothing, and is not lost`(text: String) async throws {
        try folder.file.write(Array(text.utf8))
        let book = book()
        await book.restore()
        #expect(sockets.open.isEmpty && told.all == ["damaged"])
        #expect(try StateFile(directory: folder.path, name: "grants.json.damaged").read(atMost: 1_000) != nil)
        try await book.add(order("one"))
    }
}
