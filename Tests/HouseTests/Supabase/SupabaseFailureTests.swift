import RingbackBase
import Testing

@Suite struct `A sign-in that a project refuses` {
    private static let people: JSON = [["email": "mira@example.org", "password": "secret12"]]
    private static let route = "/v1/accounts/app/sign-in"

    @Test func `a refused sign-in is an event and the account's error, until one succeeds`() async throws {
        let body: JSON = ["method": "password", "email": "mira@example.org", "password": "wrong123"]
        try await Stage.playProject(["users": Self.people]) { stage in
            let events = try stage.start("ringback", ["events", "app", "--json"])
            _ = try await events.line("the first event")
            let refused = try await stage.api("POST", Self.route, body)
            #expect(refused.status >= 400, "\(refused)")
            let account = try await stage.account("app")
            #expect(account["error"]?["code"]?.string == refused.code, "\(account)")
            #expect(account["state"] == "unauthenticated" && account["flow"] == nil, "\(account)")
            let line = try await events.line("sign_in_failed") { $0.contains(#""event":"sign_in_failed""#) }
            let event = try JSON(parsing: line.utf8)
            #expect(event["state"] == "unauthenticated" && event["account"] == "app", "\(event)")
            #expect(event["error"]?["code"]?.string == refused.code, "\(event)")
            #expect(event["error"]?["user_message"] == refused["user_message"], "\(event)")
            try await stage.logIn()
            #expect(try await stage.account("app")["error"] == nil)
            _ = try await events.line("signed_in") { $0.contains(#""event":"signed_in""#) && !$0.contains(#""error""#) }
        }
    }
}
