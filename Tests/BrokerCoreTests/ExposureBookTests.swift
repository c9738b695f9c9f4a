import Glibc
import SessionVault
import Synchronization
import Testing

@testable import BrokerCore

/// Sockets that nobody connects to.
private final class Sockets: Sendable {
    private struct State {
        var open: Set<String> = []
        var opened = 0
        var refused: Set<String> = []
    }
    private let state = Mutex(State())
    var open: Set<String> { state.withLock { $0.open } }
    /// How often one was opened.
    var opened: Int { state.withLock { $0.opened } }
    func refuse(_ name: String) { state.withLock { $0.refused = [name] } }

    var door: ExposureBook.Door {
        ExposureBook.Door(
            open: { exposure throws(BrokerError) in
                let isRefused = self.state.withLock { state in
                    guard !state.refused.contains(exposure.name) else { return true }
                    state.open.insert(exposure.name)
                    state.opened += 1
                    return false
                }
                if isRefused { throw .conflict("somebody else answers there.") }
            }, close: { exposure in _ = self.state.withLock { $0.open.remove(exposure.name) } })
    }
}

private final class Told: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { state.withLock { $0 } }
    @Sendable func note(_ fact: ExposureBook.Fact) {
        let text =
            switch fact {
            case .opened(let exposure): "opened \(exposure.name)"
            case .closed(let exposure, let ending): "closed \(exposure.name) \(ending.rawValue)"
            case .failed(let name, let reason): "failed \(name) \(reason)"
            case .damaged: "damaged"
            }
        state.withLock { $0.append(text) }
    }
}

/// A state directory that goes with its test.
private final class Folder: Sendable {
    let path: String
    init() throws {
        var template = Array("/tmp/exposures.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    deinit {
        for name in ["grants.json", "grants.json.damaged"] { unsafe unlink("\(path)/\(name)") }
        unsafe rmdir(path)
    }
    var file: StateFile { StateFile(directory: path, name: "grants.json") }
}

@Suite(.timeLimit(.minutes(1))) struct `The book of restricted sockets` {
    private let clock = TestClock()
    private let sockets = Sockets()
    private let told = Told()
    private let folder: Folder

    init() throws { folder = try Folder() }

    private func book(_ clock: BrokerClock? = nil) -> ExposureBook {
        ExposureBook(door: sockets.door, file: folder.file, clock: clock ?? self.clock.clock, record: told.note)
    }

    private func order(_ name: String, _ lifetime: Int? = nil, _ ceiling: [String]? = ["openid"]) -> Exposure.Order {
        Exposure.Order(name: name, accounts: [House.name], ceiling: ceiling, lifetime: lifetime)
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
            clock: clock.clock, record: told.note)
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

    @Test func `the configuration's come and go with it; what did not change keeps its connections`() async throws {
        let book = book()
        await book.configure([(order("one"), "f:1"), (order("two"), "f:2")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 2)
        await book.configure([(order("one"), "f:7"), (order("two", nil, ["openid", "email"]), "f:8")])
        #expect(sockets.open == ["one", "two"] && sockets.opened == 3)
        guard case .conflict(let reason)? = await error({ () throws(BrokerError) in try await book.revoke("one") })
        else { throw Unexpected() }
        #expect(reason.contains("f:1"))
        guard case .conflict? = await error({ () throws(BrokerError) in try await book.add(order("one")) }) else {
            throw Unexpected()
        }
        await book.configure([])
        #expect(sockets.open.isEmpty)
        // They are not what a restart brings back.
        await self.book().restore()
        #expect(sockets.open.isEmpty)
    }

    @Test func `the configuration takes a name from what a call made`() async throws {
        let book = book()
        try await book.add(order("one"))
        await book.configure([(order("one", nil, ["email"]), "f:1")])
        #expect(await book.find("one")?.ceiling == ["email"])
        await book.closeAll()
        await self.book().restore()
        #expect(sockets.open.isEmpty)
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

    @Test(arguments: [
        "", "{}", "[]", #"{"version":2,"grants":[]}"#, #"{"version":1,"grants":[{}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"../x","accounts":["work"],"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"scope":"openid","created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"ttl":5,"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work","/"],"created_at":1}]}"#,
        #"{"version":1,"grants":[{"id":"a","name":"x","accounts":["work"],"allow_uids":[-1],"created_at":1}]}"#,
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
