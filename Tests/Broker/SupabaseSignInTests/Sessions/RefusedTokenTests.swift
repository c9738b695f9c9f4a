import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension `A change at a project` {
    @Test func `takes a token that outlives it`() async throws {
        let house = try await signedIn()
        house.clock.advance(by: 3_580)
        #expect(await user(house) == nil)
        #expect(house.project.presented.count == 1)
        let asked = try #require(house.project.last("GET /user"))
        #expect(try await asked.bearer == house.token())
    }

    @Test func `goes on with a token that lives while no other can be had`() async throws {
        let house = try await signedIn()
        house.clock.advance(by: 3_580)
        house.project.script(FakeSupabase.refresh, .status(503, "", retryAfter: 300))
        #expect(await user(house) == nil)
        // Not before the server said.
        #expect(await user(house) == nil)
        #expect(house.project.presented.count == 1)
        house.clock.advance(by: 30)
        #expect(await user(house)?.retryAfter != nil)
        #expect(house.project.presented.count == 1)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `refreshes and tries again where the server does not take the token`() async throws {
        let house = try await signedIn()
        let id = house.session
        house.project.behave { $0.access = [:] }
        #expect(await user(house) == nil)
        #expect(house.project.count("GET /user") == 2)
        #expect(house.project.presented == ["\(id)-0"])
        // Once: a server that takes no token at all is not asked for ever.
        house.project.script("GET /user", no(403, "bad_jwt"), no(403, "bad_jwt"))
        #expect(await user(house)?.word == "bad_jwt")
        #expect(house.project.count("GET /user") == 4)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `refreshes where the tables' server does not take the token`() async throws {
        let house = try await signedIn()
        house.project.script(
            "POST /rest/v1/rpc/touch", .status(401, #"{"code":"PGRST303","message":"JWT expired","details":null}"#))
        let value = try await house.broker.supabase.call(
            name, function: "touch", arguments: JSONObject([.init("a", 1)]))
        #expect(value["called"]?["a"] == 1)
        #expect(house.project.presented.count == 1)
    }

    @Test func `is neither refreshed nor sent again if an Edge Function refuses the user`() async throws {
        let house = try await signedIn()
        let kind = "POST /functions/v1/send-invoice"
        house.project.script(kind, .status(401, #"{"code":401,"message":"Invalid JWT"}"#))
        let failure = await error {
            try await house.broker.supabase.invoke(name, function: "send-invoice", arguments: [:])
        }
        #expect(failure?.word == "function_error")
        #expect(house.project.requests.count { $0.path.hasPrefix("/functions") } == 1)
        #expect(house.project.presented.isEmpty)
    }

    @Test(arguments: ["session_not_found", "session_expired"])
    func `ends the session that the server has ended`(code: String) async throws {
        let house = try await signedIn()
        house.project.script("GET /user", no(403, code))
        let events = try await house.events {
            let failure = await user(house)
            #expect(failure == .sessionExpired(name, word: code))
        }
        #expect(events == [.refreshFailed, .signedOut])
        #expect(try await house.view.state == .unauthenticated)
        #expect(await house.vault.sessions.isEmpty)
        #expect(await user(house) == .sessionExpired(name, word: code))
    }

    @Test func `keeps the session in all other trouble`() async throws {
        let house = try await signedIn()
        let turns: [FakeProvider.Turn] = [
            .status(500), .status(503, #"{"code":"session_not_found"}"#), .status(401, #"{"message":"No API key"}"#),
            .status(404, "x"), .status(200, "<html>"), .status(200, #"{"id":"00000000-0000-4000-8000-999999999999"}"#),
            no(429, "over_request_rate_limit"), no(403, "user_banned"), no(500, "session_expired"),
            .fail(.unreachable(host: "h", reason: "r")),
        ]
        for turn in turns {
            house.project.script("GET /user", turn)
            #expect(await user(house) != nil)
            #expect(try await house.view.state == .authenticated)
        }
        #expect(try await house.view.user?["email"]?.string == SupabaseHouse.alice)
    }

    @Test func `is refused where there is no project, or nobody is signed in`() async throws {
        let house = try await SupabaseHouse()
        #expect(await user(house) == .signInRequired(name))
        let other = House.named("other")
        try await house.configure(try SupabaseHouse.account(), House.account(other))
        guard case .methodUnsupported = await error({ try await house.broker.supabase.user(other) })
        else { throw Unexpected() }
        #expect(house.project.requests.isEmpty)
    }
}
