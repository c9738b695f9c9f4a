import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `Restricted sockets at rest` {
    private static let binding = SessionBinding(provider: "https://id.example", clientID: "c")

    @Test func `come back as they were`() throws {
        let clock = TestClock()
        let exposedSockets = [
            ExposedSocket(
                id: "a",
                order: ExposedSocket.Order(
                    name: "one", accounts: [House.name], ceiling: ["x", "y"], allowedUIDs: [7, 100_999],
                    lifetime: .seconds(60)), origin: .call, createdAt: WallInstant(seconds: 5),
                expiry: Deadline(in: .seconds(60), by: clock.clock), bindings: [House.name: Self.binding]),
            ExposedSocket(
                id: "b", order: ExposedSocket.Order(name: "two", accounts: [House.name], flatpak: "org.example.App"),
                origin: .call, createdAt: WallInstant(seconds: 6), expiry: nil),
            ExposedSocket(
                id: "c",
                order: ExposedSocket.Order(
                    name: "mcp", accounts: [House.name], mcp: .init(tools: ["echo"], methods: ["tools/call"])),
                origin: .call, createdAt: WallInstant(seconds: 7), expiry: nil),
        ]
        var revoked = ExposedSocketTable(ExposedSocket.Order(name: "three", accounts: [House.name]), by: clock.clock)
        revoked.ending = .revoked
        let ending = ExposedSocketTable(
            ExposedSocket.Order(name: "four", accounts: [House.name], lifetime: .seconds(9)), by: clock.clock)
        let record = ExposedSocketRecord(exposedSockets: exposedSockets, tables: ["three": revoked, "four": ending])
        let bytes = record.encode(bootID: clock.clock.bootID)
        #expect(ExposedSocketRecord(reading: bytes, by: clock.clock) == record)
    }

    @Test(arguments: [true, false]) func `none lives longer than its whole life`(isSameBoot: Bool) throws {
        let clock = TestClock()
        let far = Deadline(in: .seconds(1_000_000), by: clock.clock)
        let exposedSocket = ExposedSocket(
            id: "a", order: ExposedSocket.Order(name: "one", accounts: [House.name], lifetime: .seconds(60)),
            origin: .call, createdAt: WallInstant(seconds: 5), expiry: far, bindings: [House.name: Self.binding])
        let bytes = ExposedSocketRecord(exposedSockets: [exposedSocket]).encode(
            bootID: isSameBoot ? clock.clock.bootID : "another")
        let record = try #require(ExposedSocketRecord(reading: bytes, by: clock.clock))
        #expect(record.exposedSockets.map(\.expiry) == [Deadline(in: .seconds(60), by: clock.clock)])
    }

    @Test func `a table of which nothing is to be remembered is not written`() {
        let clock = TestClock()
        let plain = ExposedSocketTable(ExposedSocket.Order(name: "one", accounts: [House.name]), by: clock.clock)
        let bytes = ExposedSocketRecord(tables: ["one": plain]).encode(bootID: "")
        #expect(ExposedSocketRecord(reading: bytes, by: clock.clock) == ExposedSocketRecord())
    }

    @Test func `what an older version wrote is read`() throws {
        let text =
            #"{"version":1,"boot_id":"","exposed_sockets":[{"id":"a","name":"x","accounts":["work"],"created_at":1}]}"#
        let record = try #require(ExposedSocketRecord(reading: Array(text.utf8), by: TestClock().clock))
        #expect(record.exposedSockets.map(\.name) == ["x"] && record.exposedSockets[0].bindings.isEmpty)
    }

    @Test(arguments: [
        #"{}"#, #"{"methods":["tools/call"],"tools":"echo"}"#, #"{"methods":["tools/call"],"tools":[1]}"#,
        #"{"methods":[""]}"#, #"{"methods":"all"}"#, "true",
    ])
    func `what may be called and cannot be read is no permission`(mcp: String) throws {
        let socket = #"{"id":"a","name":"x","accounts":["work"],"created_at":1,"mcp":\#(mcp)}"#
        let text = #"{"version":1,"boot_id":"","exposed_sockets":[\#(socket)]}"#
        #expect(ExposedSocketRecord(reading: Array(text.utf8), by: TestClock().clock) == nil)
    }

    @Test func `two of a name are none`() {
        let clock = TestClock()
        let one = ExposedSocket(
            id: "a", order: ExposedSocket.Order(name: "one", accounts: [House.name]), origin: .call,
            createdAt: WallInstant(seconds: 5), expiry: nil)
        let bytes = ExposedSocketRecord(exposedSockets: [one, one]).encode(bootID: "")
        #expect(ExposedSocketRecord(reading: bytes, by: clock.clock) == nil)
    }

    @Test func `a table's words count, not how they are written`() {
        let table = ExposedSocketTable(
            ExposedSocket.Order(name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["b", "a"]),
            by: TestClock().clock)
        func says(_ order: ExposedSocket.Order) -> Bool { table.says(order) }
        #expect(
            says(ExposedSocket.Order(name: "a", accounts: [House.named("y"), House.named("x")], ceiling: ["a", "b"])))
        #expect(!says(ExposedSocket.Order(name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["a"])))
        #expect(!says(ExposedSocket.Order(name: "a", accounts: [House.named("x"), House.named("y")])))
        #expect(
            !says(
                ExposedSocket.Order(
                    name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["a", "b"],
                    lifetime: .seconds(5))))
    }
}
