import BrokerCore
import RingbackBase
import Testing

@testable import APIServer

@Suite struct `What telemetry tells` {
    private func account(_ name: String = "work") throws -> AccountName { try #require(AccountName(name)) }

    /// What a listener gets for some facts: the data of each line.
    private func lines(_ facts: [BrokerFact], of name: String? = nil) async throws -> [JSON] {
        let telemetry = Telemetry(now: { 1_800_000_000 })
        let feed = telemetry.listen(to: name)
        #expect(await feed.next() == Array(": telemetry\n\n".utf8))
        for fact in facts { telemetry.note(fact) }
        // A last line that every listener hears, so that nobody waits for one that does not come.
        telemetry.note(.refreshStarted(try account(name ?? "work"), reason: .scheduled))
        return try StreamEvent.all(in: await feed.next()).dropLast().map(\.data)
    }

    @Test func `tells the way that was chosen with everything that came of it`() async throws {
        let name = try account()
        let password = SignInMethod(rawValue: "password")
        let told = try await lines([
            .signInChosen(name, way: "google"), .signInStarted(name, method: .browser),
            .signInEnded(name, method: .browser, .completed, duration: .milliseconds(1_250), error: nil),
            .signInChosen(name, way: "email"), .signInStarted(name, method: password),
            .signInEnded(
                name, method: password, .failed, duration: .seconds(2),
                error: .portInUse(ListenerFailure(.portTaken(by: nil), port: 1))),
            .signInEnded(name, method: password, .cancelled, duration: .zero, error: nil),
        ])
        #expect(
            told.map { $0["event"]?.string } == [
                "auth_method_selected", "auth_started", "auth_completed", "auth_method_selected", "auth_started",
                "auth_failed", "auth_cancelled",
            ])
        #expect(
            told.map { $0["method"]?.string } == ["google", "google", "google", "email", "email", "email", "email"])
        #expect(told[2]["duration_ms"] == 1_250)
        #expect(told[5]["error_type"] == "port_in_use")
        #expect(told.allSatisfy { $0["at"] == 1_800_000_000 && $0["account"] == "work" })
    }

    @Test func `tells why a refresh was made, and what became of it`() async throws {
        let name = try account()
        let told = try await lines([
            .refreshStarted(name, reason: .scheduled),
            .refreshFailed(name, .portInUse(ListenerFailure(.portTaken(by: nil), port: 1))),
            .sessionEnded(name, subject: nil), .identityLinked(name, provider: "apple"),
        ])
        #expect(
            told.map { $0["event"]?.string } == [
                "token_refresh_attempted", "token_refresh_failed", "token_refresh_failed", "account_linked",
            ])
        #expect(told[0]["reason"]?.string == RefreshReason.scheduled.rawValue)
        #expect(told[2]["error_type"] == "session_expired")
        #expect(told[3]["method"] == "apple")
    }

    @Test func `tells of links, but not of those that were there before the person came`() async throws {
        let name = try account()
        let told = try await lines([
            .identityLinked(name, provider: "apple", .asked), .identityLinked(name, provider: "github", .inferred),
            .identityLinked(name, provider: "google", .former(at: WallInstant(seconds: 1))),
            .identityUnlinked(name, provider: "apple"),
        ])
        #expect(told.map { $0["method"]?.string } == ["apple", "github"])
        #expect(told.allSatisfy { $0["event"] == "account_linked" })
    }

    @Test func `tells a listener of its own account alone`() async throws {
        let facts = [
            BrokerFact.signInStarted(try account("home"), method: .browser),
            .signInStarted(try account(), method: .browser),
        ]
        #expect(try await lines(facts, of: "work").map { $0["account"]?.string } == ["work"])
        #expect(try await lines(facts).count == 2)
    }

    @Test func `forgets the oldest lines of who does not read`() async throws {
        let told = try await lines((0..<2_000).map { .identityLinked(try account(), provider: "p\($0)") })
        #expect(told.count == 1_023 && told.last?["method"] == "p1999")
    }

    @Test func `ends with who has stopped listening`() async throws {
        let telemetry = Telemetry(now: { 0 })
        let feed = telemetry.listen(to: nil)
        _ = await feed.next()
        feed.stop()
        telemetry.note(.identityLinked(try account(), provider: "apple"))
        #expect(await feed.next() == nil)
    }
}
