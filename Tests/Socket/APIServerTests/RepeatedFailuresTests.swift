import Records
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Failed refreshes in the audit log` {
    private func lines(_ house: APIHouse, _ event: String = "refresh_failed") async throws -> [JSON] {
        await house.records.audit.flush()
        return try house.folder.text.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
            .filter { $0["event"]?.string == event }
    }

    @Test func `name the host whose request may explain that a session has ended`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        let unheard = EndProof.UnheardRequest(host: "laptop", age: .milliseconds(640_900))
        house.records.note(.sessionEnded(name, subject: "ada", unheard: unheard))
        house.records.note(
            .sessionEnded(name, subject: "ada", error: .sessionExpired(name, message: "AADSTS700082: expired")))
        let lines = try await lines(house, "session_ended")
        #expect(lines.map { $0["unheard_host"]?.string } == ["laptop", nil])
        #expect(lines.map { $0["unheard_seconds"]?.integer } == [640, nil])
        #expect(lines.map { $0["provider_message"]?.string } == [nil, "AADSTS700082: expired"])
    }

    @Test func `have the provider's code and text, and a refused callback its reason`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        house.records.note(
            .refreshFailed(name, .provider(.failing(status: 500, code: "x", message: "why", retryAfter: nil))))
        house.records.note(
            .refreshFailed(name, .refreshRefused(name, host: "h", .answered(code: "y", message: "because"))))
        house.records.note(.callbackRefused(name, .flow(.codeAndError)))
        let failed = try await lines(house)
        #expect(failed.map { $0["provider_code"]?.string } == ["x", "y"])
        #expect(failed.map { $0["provider_message"]?.string } == ["why", "because"])
        let refused = try await lines(house, "callback_refused")
        #expect(refused.map { $0["reason"]?.string } == ["The callback has both a code and an error."])
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
