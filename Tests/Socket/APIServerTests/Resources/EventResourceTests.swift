import LocalHTTP
import RingbackBase
import TestSupport
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Events on the socket` {
    private func stream(_ house: APIHouse, _ query: String = "", last: String? = nil) async throws -> AsyncStream<
        [UInt8]
    > {
        let fields = last.map { [("Last-Event-ID", $0)] } ?? []
        let answer = await house.ask("GET", "/v1/events\(query)", fields: fields)
        #expect(answer.response.fields["Content-Type"] == "text/event-stream")
        guard case .stream(let stream) = answer.response.body else { throw Unexpected() }
        return stream
    }

    @Test func `a session's end is said with its time`() throws {
        let name = try #require(AccountName("work"))
        let event = BrokerEvent(
            kind: .sessionEnding, account: name, state: .authenticated, endsAt: WallInstant(seconds: 77),
            at: WallInstant(seconds: 5))
        let found = try #require(try StreamEvent.all(in: EventFeed.encode(9, event, .english)).first)
        #expect(found.name == "session_ending" && found.id == "9")
        #expect(found.data == ["account": "work", "state": "authenticated", "ends_at": 77, "at": 5])
    }

    @Test func `a stream tells the accounts, then what happens, without tokens`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("second")])
        var pieces = try await stream(house).makeAsyncIterator()
        let initial = try StreamEvent.all(in: await pieces.next())
        #expect(initial.map(\.name) == ["initial_session", "initial_session"])
        #expect(initial.map(\.id) == [nil, nil])
        #expect(initial.map { $0.data["account"] } == ["second", "work"])
        #expect(initial.map { $0.data["state"] } == ["unauthenticated", "unauthenticated"])
        try await house.signIn()
        house.provider.answerNext(.init(status: 503))
        await house.ask("POST", "/v1/accounts/work/refresh")
        let bytes = await pieces.next()
        let lines = try StreamEvent.all(in: bytes)
        #expect(lines.map(\.name) == ["signed_in", "refresh_failed"])
        #expect(lines.allSatisfy { $0.id.flatMap(UInt64.init) != nil })
        #expect(lines[0].data["subject"] == "alice")
        #expect(lines[0].data["user"]?["email"] == "alice@example.org")
        #expect(lines[0].data["expires_at"] == 1_800_003_600)
        #expect(lines[0].data["at"] == 1_800_000_000)
        #expect(lines[1].data["error"]?["code"] == "provider_unreachable")
        let text = String(decoding: bytes ?? [], as: UTF8.self)
        for secret in house.provider.secrets.union(["access-1"]) { #expect(!text.contains(secret)) }
    }

    @Test func `a stream of one account, from where it was left`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("second")])
        var first = try await stream(house, "?account=work").makeAsyncIterator()
        _ = await first.next()
        try await house.signIn("second")
        try await house.signIn()
        let seen = try StreamEvent.all(in: await first.next())
        #expect(seen.map { $0.data["account"] } == ["work"])
        await house.ask("POST", "/v1/accounts/work/refresh")
        var back = try await stream(house, "?account=work", last: seen[0].id).makeAsyncIterator()
        #expect(try StreamEvent.all(in: await back.next()).map(\.name) == ["initial_session"])
        #expect(try StreamEvent.all(in: await back.next()).map(\.name) == ["token_refreshed"])
        // An identifier that is none is as good as absent.
        var other = try await stream(house, last: "x").makeAsyncIterator()
        #expect(try StreamEvent.all(in: await other.next()).count == 2)
    }

    @Test func `without accounts the stream says at once that it stands`() async throws {
        let house = try await APIHouse()
        try await house.configure([])
        var pieces = try await stream(house).makeAsyncIterator()
        #expect(try StreamEvent.all(in: await pieces.next()).isEmpty)
        #expect(await house.ask("GET", "/v1/events?account=work").code == "account_not_found")
    }

    @Test func `a reader that is too slow hears it last`() async throws {
        let house = try await APIHouse()
        var pieces = try await stream(house).makeAsyncIterator()
        let name: AccountName = try #require(AccountName("work"))
        for number in 0..<600 {
            house.broker.bus.post(
                BrokerEvent(
                    kind: .userUpdated, account: name, state: .authenticated, at: WallInstant(seconds: number)))
        }
        _ = await pieces.next()
        #expect(try StreamEvent.all(in: await pieces.next()).count == 512)
        #expect(try StreamEvent.all(in: await pieces.next()).map(\.name) == ["dropped"])
        #expect(await pieces.next() == nil)
    }

    @Test func `who stops reading is forgotten, in whichever way it stops`() async throws {
        let house = try await APIHouse()
        func listen() async throws {
            var pieces = try await stream(house).makeAsyncIterator()
            _ = await pieces.next()
            #expect(house.broker.bus.listenerCount == 1)
        }
        try await listen()
        #expect(house.broker.bus.listenerCount == 0)
        let reader = Task {
            var pieces = try await stream(house).makeAsyncIterator()
            while await pieces.next() != nil {}
        }
        #expect(await eventually { house.broker.bus.listenerCount == 1 })
        reader.cancel()
        try await reader.value
        #expect(house.broker.bus.listenerCount == 0)
    }
}

struct StreamEvent {
    var name = ""
    var id: String?
    var data = JSON.null

    private var fields: JSON {
        var object = JSONObject([.init("event", .string(name)), .init("data", data)])
        object["id"] = id.map { .string($0) }
        return .object(object)
    }

    /// What a piece of a stream says, which the OpenAPI document describes; comments say nothing.
    static func all(in piece: [UInt8]?, on path: String = "/v1/events") throws -> [StreamEvent] {
        let schema = JSONSchema(document: OpenAPIDocument.document(version: ""))
        let text = String(decoding: try #require(piece), as: UTF8.self)
        #expect(text.hasSuffix("\n\n"))
        return try text.split(separator: "\n\n").filter { !$0.hasPrefix(":") }.map { block in
            var event = StreamEvent()
            for line in block.split(separator: "\n") {
                let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
                switch parts[0] {
                case "event": event.name = parts[1]
                case "id": event.id = parts[1]
                case "data": event.data = try JSON(parsing: Array(parts[1].utf8))
                default: Issue.record("a line \(line)")
                }
            }
            #expect(schema.mistakes(ofEvent: event.fields, onStream: path) == [])
            return event
        }
    }
}

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
