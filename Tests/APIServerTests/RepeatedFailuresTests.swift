import Records
import StrictJSON
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Failed refreshes in the audit log` {
    private func lines(_ house: APIHouse) async throws -> [JSON] {
        await house.records.audit.flush()
        return try house.folder.text.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
            .filter { $0["event"] == "refresh_failed" }
    }

    @Test func `are one line in five minutes if they are equal, with their number`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        // Two a second for half an hour, as a program behind an exposed socket can cause them.
        for _ in 0..<1_800 {
            for _ in 0..<2 {
                house.records.note(.refreshFailed(name, .provider(.refused(code: "invalid_scope", message: nil))))
            }
            house.clock.advance(by: 1)
        }
        let equal = try await lines(house)
        #expect(equal.count == 6, "\(equal)")
        #expect(equal.map { $0["count"]?.integer } == [nil, 600, 600, 600, 600, 600], "\(equal)")
        // Another failure, or another account's, is told at once.
        house.records.note(.refreshFailed(name, .provider(.refused(code: "invalid_target", message: nil))))
        let other = try #require(AccountName("home"))
        house.records.note(.refreshFailed(other, .provider(.refused(code: "invalid_scope", message: nil))))
        #expect(try await lines(house).suffix(2).map { $0["account"]?.string } == ["work", "home"])
    }
}
