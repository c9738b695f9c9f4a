// When the daemon refreshes a project's session, and what a failure, another account or a sign-out does to it, where
// Supabase's own libraries differ from one another.

import RingbackBase
import Testing

@Suite struct `A project's session, refreshed in time` {
    /// Refreshes to a token of this lifetime; the next ones live as usual.
    private func shorten(_ stage: Stage, to seconds: Int) async throws {
        try await stage.setProject(["access_token_lifetime": .integer(seconds)])
        try await stage.expectAlive()
        try await stage.setProject(["access_token_lifetime": 3_600])
    }

    /// Refreshes to a token that ends before anybody asks for one. So short a lifetime causes no refresh ahead of the end.
    private func expire(_ stage: Stage) async throws {
        try await shorten(stage, to: 1)
        try await stage.eventually("the token to expire") { try await stage.account("app")["stale"] == true }
    }

    private func life(_ stage: Stage) async throws -> Int {
        try await stage.api("GET", "/v1/accounts/app/session")["expires_in"]?.integer ?? 0
    }

    @Test(arguments: Stage.tokenKinds)
    func `refresh when: before the token ends, and nobody asks for it`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let before = try await stage.refreshes()
            try await shorten(stage, to: 2)
            try await stage.eventually("a refresh by itself") { try await stage.refreshes() >= before + 2 }
            try await stage.eventually("a long life") { try await life(stage) > 3_000 }
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `auto-start: a daemon that finds a token that has ended refreshes it at once`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            try await expire(stage)
            let before = try await stage.refreshes()
            try await stage.restartAfterKill()
            try await stage.eventually("a refresh by itself") { try await stage.refreshes() >= before + 1 }
            try await stage.eventually("a long life") { try await life(stage) > 3_000 }
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `expired on read: who asks for a token that has ended waits for another`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            try await expire(stage)
            let before = try await stage.refreshes()
            #expect(try await life(stage) > 3_000)
            #expect(try await stage.refreshes() == before + 1)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `single flight: an account's refresh waits for its own, and for nobody else's`(kind: String) async throws {
        let other =
            "[accounts.other]\nprovider = \"supabase\"\nurl = \"{sandbox}/tenant-a\"\n"
            + "api_key = \"sb_publishable_sandbox\"\n"
        try await Stage.play(Stage.project + other) { stage in
            try await stage.setProject(["refresh_tokens": .string(kind)])
            _ = try await OtherProgram.share(on: stage)
            let begun = try await stage.api("POST", "/v1/accounts/other/sign-in", ["method": "anonymous"])
            #expect(begun.status == 200, "\(begun)")
            try await stage.fault(["kind": "gate"])
            let held = try stage.connect()
            await held.send(Stage.request("POST", "/v1/accounts/app/refresh", #"{"force":true}"#))
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            let answer = try await stage.api("POST", "/v1/accounts/other/refresh", ["force": true])
            #expect(answer.status == 200, "\(answer)")
            try await stage.switchProject(["release": "supabase_token"])
            #expect(try await held.answer().status == 200)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `retry: a refresh that failed for now is tried again, and nobody asks for it`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let before = try await stage.refreshes()
            try await stage.fault(["kind": "status", "status": 503])
            // The caller is told at once: it is the daemon that waits.
            #expect(try await stage.refreshApp().status == 503)
            try await stage.eventually("another try") { try await stage.refreshes() >= before + 2 }
            try await stage.eventually("no error") { try await stage.account("app")["error"] == nil }
        }
    }

    @Test(arguments: Stage.tokenKinds, [429, 503])
    func `a failure takes no session away, even of a token that has ended`(kind: String, status: Int) async throws {
        try await Stage.playShared(kind) { stage, _ in
            try await expire(stage)
            try await stage.fault(["kind": "status", "status": .integer(status)], isLasting: true)
            let answer = try await stage.api("GET", "/v1/accounts/app/session")
            #expect(answer.status == status, "\(answer)")
            let account = try await stage.account("app")
            #expect(account["stale"] == true && account["user"]?["email"] == "mira@example.org", "\(account.text)")
            try await stage.switchProject(["clear": true])
            try await stage.eventually("a long life") { try await life(stage) > 3_000 }
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `race with a sign-out: what the refresh brings is thrown away, and ended at the project`(
        kind: String
    ) async throws {
        try await Stage.playShared(kind) { stage, program in
            let events = try await stage.listen()
            try await stage.fault(["kind": "gate"])
            let (refreshing, leaving) = (try stage.connect(), try stage.connect())
            await refreshing.send(Stage.request("POST", "/v1/accounts/app/refresh", #"{"force":true}"#))
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            await leaving.send(Stage.request("DELETE", "/v1/accounts/app/session"))
            try await stage.eventually("readers that are turned away") {
                try await stage.api("GET", "/v1/accounts/app/session").status == 401
            }
            try await stage.switchProject(["release": "supabase_token"])
            #expect(try await leaving.answer().status == 200)
            _ = try await refreshing.answer()
            #expect(try await events.next("signed_out")["error"] == nil)
            try await stage.restartAfterKill()
            try await stage.expectNothingHeld("app", error: nil)
            try await stage.eventually("the end at the project") { try await program.refresh().status == 400 }
        }
    }
}
