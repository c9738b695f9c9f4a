import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `Renewing a project's session` {
    let refresh = FakeSupabase.refresh

    private func expired() async throws -> SupabaseHouse {
        let house = try await SupabaseHouse.signedIn()
        house.clock.advance(by: 3_600)
        return house
    }

    private func failure(_ house: SupabaseHouse) async -> BrokerError? {
        await error { try await house.token() }
    }

    private func steal(_ house: SupabaseHouse, _ token: String) -> String {
        let now = house.clock.now
        return house.project.behave { $0.refresh(token, at: now).body["refresh_token"]?.string ?? "" }
    }

    @Test func `keeps the new refresh token before it looks at anything else`() async throws {
        let house = try await expired()
        let id = house.session
        house.project.script(refresh, .setting("access_token", nil))
        #expect(await failure(house) != nil)
        #expect(await house.vault.log == ["store \(id)-0", "announce", "store \(id)-0 > \(id)-1"])
        // A life later, the newer one is presented.
        let reborn = try await house.rebirth()
        _ = try await reborn.session(SupabaseHouse.name, SessionQuery())
        #expect(house.project.presented == ["\(id)-0", "\(id)-1"])
        #expect(await house.vault.stores.last == "store \(id)-2")
    }

    @Test func `keeps the new refresh token of an answer that breaks off behind it`() async throws {
        let house = try await expired()
        let id = house.session
        house.project.script(refresh, .cut(after: "\"refresh_token\":\"\(id)-1\"", .timedOut(host: "h")))
        #expect(await failure(house) != nil)
        #expect(try await house.refreshTokens == ["\(id)-1", "\(id)-0"])
        #expect(await house.refresh() == nil)
        #expect(try await house.refreshTokens == ["\(id)-2"])
    }

    @Test(arguments: [true, false])
    func `survives an answer that was lost, since the token before still counts`(hasCounters: Bool) async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.hasCounters = hasCounters }
        try await house.signIn()
        for _ in 0..<3 {
            house.project.sendAndLose(refresh)
            #expect(await house.refresh()?.isTransient == true)
            #expect(await house.refresh() == nil)
        }
        #expect(Set(house.project.presented).count == 3)
        #expect(try await house.view.state == .authenticated)
    }

    @Test(arguments: [true, false])
    func `survives another program's refresh where the server's rules allow`(hasCounters: Bool) async throws {
        let house = try await SupabaseHouse()
        house.project.behave { server in
            server.hasCounters = hasCounters
            server.reuseInterval = 10
        }
        try await house.signIn()
        let held = try #require(try await house.refreshTokens.first)
        let theirs = steal(house, held)
        // One step behind, at any age.
        house.clock.advance(by: 3_600)
        #expect(await house.refresh() == nil)
        #expect(try await house.refreshTokens == [theirs])
        // Two steps behind, within the interval.
        _ = steal(house, steal(house, theirs))
        #expect(await house.refresh() == nil)
        #expect(try await house.view.state == .authenticated)
    }

    @Test(arguments: [true, false])
    func `ends with a token that was used twice elsewhere`(hasCounters: Bool) async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.hasCounters = hasCounters }
        try await house.signIn()
        _ = steal(house, steal(house, try #require(try await house.refreshTokens.first)))
        let events = try await house.events {
            let failure = await house.refresh()
            #expect(failure == .sessionExpired(SupabaseHouse.name, word: "refresh_token_already_used"))
        }
        #expect(events == [.refreshFailed, .signedOut])
        let shown = try await house.view.error
        #expect(shown == .sessionExpired(SupabaseHouse.name, word: "refresh_token_already_used"))
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `is one request, however many ask`() async throws {
        let house = try await expired()
        house.project.hold(refresh)
        let readers =
            (0..<8).map { _ in Task { try await house.token() } }
            + (0..<8).map { _ in
                Task {
                    _ = try await house.broker.refresh(SupabaseHouse.name)
                    return try await house.token()
                }
            }
        #expect(await house.project.arrived(refresh))
        house.project.release(refresh)
        var tokens: Set<String> = []
        for reader in readers { tokens.insert(try await reader.value) }
        #expect(tokens.count == 1)
        #expect(house.project.count(refresh) == 1)
    }

    @Test func `is one request, though a change of the user needs it first`() async throws {
        let house = try await expired()
        house.project.hold(refresh)
        let changing = Task { try await house.broker.supabase.user(SupabaseHouse.name) }
        #expect(await house.project.arrived(refresh))
        let readers = (0..<8).map { _ in Task { try await house.token() } }
        #expect(
            await eventually {
                await house.broker.sessionManager.lanes[SupabaseHouse.name]?.state.renewal.running.isEmpty == false
            }
        )
        house.project.release(refresh)
        _ = try await changing.value
        for reader in readers { _ = try await reader.value }
        #expect(house.project.count(refresh) == 1)
        // Whoever insists gets another one.
        #expect(await house.refresh() == nil)
        #expect(house.project.count(refresh) == 2)
    }

    private static func no(_ status: Int, _ code: String) -> FakeProvider.Turn {
        .answer(
            status, #"{"code":"\#(code)","message":"No."}"#, [("X-Supabase-Api-Version", "2024-01-01")])
    }

    static let deaths: [FakeProvider.Turn] = [
        no(400, "refresh_token_not_found"), no(400, "refresh_token_already_used"), no(400, "session_not_found"),
        no(400, "session_expired"), no(400, "validation_failed"), no(400, "user_banned"), no(403, "user_not_found"),
        .status(400, #"{"code":400,"error_code":"refresh_token_not_found","msg":"Invalid Refresh Token"}"#),
        .status(400, #"{"error":"invalid_client","error_description":"x"}"#),
    ]

    @Test(arguments: deaths.indices)
    func `ends only by an error response of the server`(index: Int) async throws {
        let house = try await expired()
        house.project.script(refresh, `Renewing a project's session`.deaths[index])
        guard case .sessionExpired(SupabaseHouse.name, let word?, _, _) = await failure(house)
        else { throw Unexpected("alive, or without a reason") }
        let words = [
            "refresh_token_not_found", "refresh_token_already_used", "session_not_found", "session_expired",
            "validation_failed", "user_banned", "user_not_found", "refresh_token_not_found", "invalid_client",
        ]
        #expect(word == words[index])
        #expect(try await house.view.state == .unauthenticated)
        #expect(await house.vault.sessions.isEmpty)
    }

    static let passing: [FakeProvider.Turn] =
        [
            no(409, "conflict"), no(429, "over_request_rate_limit"), no(500, "unexpected_failure"),
            no(504, "request_timeout"), no(422, "hook_timeout"), no(400, "something_new"), no(500, "session_not_found"),
            no(429, "refresh_token_not_found"), .status(401, #"{"message":"No API key found in request"}"#),
            .status(404, "<html>"), .status(540, "{}"), .status(200, "<html>Sign in to the hotel</html>"),
            .status(302), .status(200, "{}"), .status(400, "<html>refresh_token_not_found</html>"),
            .status(400, #"{"message":"refresh_token_not_found"}"#), .fail(.unreachable(host: "h", reason: "r")),
            .fail(.timedOut(host: "h")), .fail(.malformed(host: "h")),
        ] + [408, 425, 500, 502, 503, 504, 520, 530].map { .status($0, "upstream request timeout") }

    @Test(arguments: passing.indices)
    func `keeps the session where nothing is proved`(index: Int) async throws {
        let house = try await expired()
        let held = await house.vault.sessions
        house.project.script(refresh, `Renewing a project's session`.passing[index])
        #expect(await failure(house) != nil)
        #expect(try await house.view.state == .authenticated)
        #expect(try await house.view.isStale)
        #expect(await house.vault.sessions == held)
        house.clock.advance(by: 86_400)
        _ = try await house.token()
        #expect(Set(house.project.presented).count == 1)
    }

    @Test func `fails with what a hook of the project said`() async throws {
        let house = try await expired()
        house.project.script(refresh, `Renewing a project's session`.no(500, "unexpected_failure"))
        let said = BrokerError.provider(
            .failing(status: 500, code: "unexpected_failure", message: "No.", retryAfter: nil))
        #expect(await failure(house) == said)
        #expect(try await house.view.error == said)
    }

    @Test func `keeps the upstream provider's token, which a refresh does not bring again`() async throws {
        let house = try await SupabaseHouse()
        try await house.walk { $0.keepsProviderToken = true }
        #expect(await house.refresh() == nil)
        #expect(try await house.held?.project?.providerToken == Secret("upstream-access"))
        // Of the upstream refresh token nothing is kept at all.
        let record = SessionRecord.encode(try #require(try await house.held), bootID: "b").revealed()
        #expect(!record.contains("upstream-refresh"))
        let reborn = try await house.rebirth()
        let issued = try await reborn.session(SupabaseHouse.name, SessionQuery())
        #expect(issued.supabase?.providerToken == Secret("upstream-access"))
    }

    @Test func `has no upstream token unless it was asked for`() async throws {
        let house = try await SupabaseHouse()
        try await house.walk()
        #expect(try await house.held?.project?.providerToken == nil)
    }

    @Test func `brings the user along`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.behave { server in
            let id = server.user(email: SupabaseHouse.alice)?.id ?? ""
            server.users[id]?.data["full_name"] = "Alice"
        }
        let events = try await house.events { _ = await house.refresh() }
        #expect(events == [.tokenRefreshed])
        #expect(try await house.view.user?["name"] == "Alice")
    }

    @Test func `is done in time, by what the server says of the life of its tokens`() async throws {
        for lifetime in [600, nil] {
            let house = try await SupabaseHouse()
            house.project.behave { $0.lifetime = lifetime }
            try await house.signIn()
            // Without a word of the answer's the token's own counts.
            #expect(try await house.view.expiresAt?.seconds == house.clock.now + (lifetime ?? 3_600))
            house.clock.advance(by: (lifetime ?? 3_600) - 30)
            _ = await house.broker.sessionManager.runDueTasks()
            #expect(await house.project.arrived(refresh))
            #expect(await eventually { await house.broker.sessionManager.isIdle })
        }
    }
}
