import LocalHTTP
import RingbackBase
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
