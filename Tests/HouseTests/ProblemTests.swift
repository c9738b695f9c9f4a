import RingbackBase
import Testing

/// What `ringback accounts` shows under PROBLEM, and when it goes.
@Suite struct `The problem of an account` {
    private func problem(_ stage: Stage, _ account: String) async throws -> String? {
        try await stage.account(account)["error"]?["code"]?.string
    }

    @Test func `goes with a reload, which follows what somebody mended`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await Browser.deliver(Browser.deny(at: login.line()))
            #expect(try await login.end().status == 4)
            #expect(try await problem(stage, "work") == "access_denied")
            #expect(try await stage.ringback("accounts").out.contains("denied"))
            try await stage.ringback("reload", status: 0)
            #expect(try await problem(stage, "work") == nil)
        }
    }

    @Test func `of a provider that is down is told once, in the language of the user`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "status", "status": 503]]
            ])
            for (language, message) in [
                ("C.UTF-8", "Service temporarily unavailable. Please try again later."),
                ("ru_RU.UTF-8", "Сервис временно недоступен. Попробуйте позже."),
            ] {
                let refresh = try await stage.ringback("refresh", "work", "--force", environment: ["LANG": language])
                #expect(refresh.status != 0 && refresh.err.contains(message), "\(refresh)")
                #expect(!refresh.err.contains("Try again later."), "\(refresh)")
            }
        }
    }

    @Test func `goes when a later change of the person succeeds`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            try await stage.logIn(password: "wrong123", status: 1)
            #expect(try await problem(stage, "app") == "invalid_credentials")
            try await stage.ringback("supabase", "update-user", "app", "--data", #"{"color":"blue"}"#, status: 0)
            #expect(try await problem(stage, "app") == nil)
        }
    }

    @Test func `and a sign-out tells nobody who it was, beyond the subject`() async throws {
        try await Stage.play { stage in
            let events = try stage.start("ringback", ["events", "work", "--json"])
            _ = try await events.line("the start") { $0.contains("initial_session") }
            try await stage.signIn()
            let signedIn = try await events.line("the sign-in") { $0.contains("\"signed_in\"") }
            #expect(try JSON(parsing: signedIn.utf8)["user"]?["email"] == "alice@example.org")
            try await stage.ringback("logout", "work", status: 0)
            let signedOut = try await events.line("the sign-out") { $0.contains("\"signed_out\"") }
            let document = try JSON(parsing: signedOut.utf8)
            #expect(document["subject"] == "alice" && document["user"] == nil, "\(signedOut)")
        }
    }
}
