import Testing

@testable import BrokerCore

@Suite struct `Restricted sockets at rest` {
    private static let binding = SessionBinding(provider: "https://id.example", clientID: "c")

    @Test func `come back as they were`() throws {
        let clock = TestClock()
        let exposures = [
            Exposure(
                id: "a",
                order: Exposure.Order(
                    name: "one", accounts: [House.name], ceiling: ["x", "y"], allowedUIDs: [7, 100_999],
                    lifetime: 60), origin: .call, createdAt: 5, expiry: Deadline(in: 60, by: clock.clock),
                bindings: [House.name: Self.binding]),
            Exposure(
                id: "b", order: Exposure.Order(name: "two", accounts: [House.name], flatpak: "org.example.App"),
                origin: .call, createdAt: 6, expiry: nil),
        ]
        var revoked = ExposureTable(Exposure.Order(name: "three", accounts: [House.name]), by: clock.clock)
        revoked.ending = .revoked
        let ending = ExposureTable(
            Exposure.Order(name: "four", accounts: [House.name], lifetime: 9), by: clock.clock)
        let record = ExposureRecord(exposures: exposures, tables: ["three": revoked, "four": ending])
        let bytes = record.encode(bootID: clock.clock.bootID)
        #expect(ExposureRecord(reading: bytes, by: clock.clock) == record)
    }

    @Test(arguments: [true, false]) func `none lives longer than its whole life`(isSameBoot: Bool) throws {
        let clock = TestClock()
        let far = Deadline(in: 1_000_000, by: clock.clock)
        let exposure = Exposure(
            id: "a", order: Exposure.Order(name: "one", accounts: [House.name], lifetime: 60), origin: .call,
            createdAt: 5, expiry: far, bindings: [House.name: Self.binding])
        let bytes = ExposureRecord(exposures: [exposure]).encode(bootID: isSameBoot ? clock.clock.bootID : "another")
        let record = try #require(ExposureRecord(reading: bytes, by: clock.clock))
        #expect(record.exposures.map(\.expiry) == [Deadline(in: 60, by: clock.clock)])
    }

    @Test func `a table of which nothing is to be remembered is not written`() {
        let clock = TestClock()
        let plain = ExposureTable(Exposure.Order(name: "one", accounts: [House.name]), by: clock.clock)
        let bytes = ExposureRecord(tables: ["one": plain]).encode(bootID: "")
        #expect(ExposureRecord(reading: bytes, by: clock.clock) == ExposureRecord())
    }

    @Test func `what an older version wrote is read`() throws {
        let text = #"{"version":1,"boot_id":"","grants":[{"id":"a","name":"x","accounts":["work"],"created_at":1}]}"#
        let record = try #require(ExposureRecord(reading: Array(text.utf8), by: TestClock().clock))
        #expect(record.exposures.map(\.name) == ["x"] && record.exposures[0].bindings.isEmpty)
    }

    @Test func `two of a name are none`() {
        let clock = TestClock()
        let one = Exposure(
            id: "a", order: Exposure.Order(name: "one", accounts: [House.name]), origin: .call, createdAt: 5,
            expiry: nil)
        let bytes = ExposureRecord(exposures: [one, one]).encode(bootID: "")
        #expect(ExposureRecord(reading: bytes, by: clock.clock) == nil)
    }

    @Test func `a table's words count, not how they are written`() {
        let table = ExposureTable(
            Exposure.Order(name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["b", "a"]),
            by: TestClock().clock)
        func says(_ order: Exposure.Order) -> Bool { table.says(order) }
        #expect(says(Exposure.Order(name: "a", accounts: [House.named("y"), House.named("x")], ceiling: ["a", "b"])))
        #expect(!says(Exposure.Order(name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["a"])))
        #expect(!says(Exposure.Order(name: "a", accounts: [House.named("x"), House.named("y")])))
        #expect(
            !says(
                Exposure.Order(
                    name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["a", "b"], lifetime: 5)))
    }
}
