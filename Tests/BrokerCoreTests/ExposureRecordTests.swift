import Testing

@testable import BrokerCore

@Suite struct `Restricted sockets at rest` {
    @Test func `come back as they were`() throws {
        let clock = TestClock()
        let exposures = [
            Exposure(
                id: "a",
                order: Exposure.Order(
                    name: "one", accounts: [House.name], ceiling: ["x", "y"], allowedUIDs: [7, 100_999],
                    lifetime: 60), origin: .call, createdAt: 5, expiry: Deadline(in: 60, by: clock.clock)),
            Exposure(
                id: "b", order: Exposure.Order(name: "two", accounts: [House.name], flatpak: "org.example.App"),
                origin: .call, createdAt: 6, expiry: nil),
        ]
        let bytes = ExposureRecord.encode(exposures, bootID: clock.clock.bootID)
        #expect(ExposureRecord.decode(bytes, by: clock.clock) == exposures)
    }

    @Test func `two of a name are none`() {
        let clock = TestClock()
        let one = Exposure(
            id: "a", order: Exposure.Order(name: "one", accounts: [House.name]), origin: .call, createdAt: 5,
            expiry: nil)
        #expect(ExposureRecord.decode(ExposureRecord.encode([one, one], bootID: ""), by: clock.clock) == nil)
    }
}
