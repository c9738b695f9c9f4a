// What goes wrong where refreshes, proofs of second factors and other programs meet, and where an answer is lost.

import RingbackBase
import Testing

@Suite struct `A project's refresh among other changes` {
    /// The proofs of second factors that the project has seen.
    private func proofs(_ stage: Stage) async throws -> [JSON] {
        let log = try await stage.sandbox.log(issuer: "/supabase")
        return log.filter { $0["endpoint"] == "supabase_factors" && $0["path"]?.string?.hasSuffix("/verify") == true }
    }

    /// A factor that was asked for, and what proves it.
    private func question(_ stage: Stage) async throws -> (path: String, proof: JSON) {
        let factor = try await stage.api("POST", "/v1/accounts/app/factors", ["factor_type": "totp"])
        let path = "/v1/accounts/app/factors/\(factor["id"]?.string ?? "")"
        let code = Authenticator.code(factor["totp"]?["secret"]?.string ?? "")
        let challenge = try await stage.api("POST", "\(path)/challenge", [:])
        return ("\(path)/verify", ["challenge_id": challenge["id"] ?? .null, "code": .string(code)])
    }

    private static let refresh = Stage.request("POST", "/v1/accounts/app/refresh", #"{"force":true}"#)

    // MARK: Second factors

    @Test(arguments: Stage.tokenKinds)
    func `second factor: it waits for the refresh before it`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let (path, proof) = try await question(stage)
            let old = try #require(try await stage.token("app"))
            try await stage.fault(["kind": "gate"])
            // Tokens of one second are the same text.
            try await stage.advance(2)
            let (refreshing, proving) = (try stage.connect(), try stage.connect())
            await refreshing.send(Self.refresh)
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            await proving.send(Stage.request("POST", path, proof.text))
            // Asked after the proof, and answered: the daemon's socket has the proof, which is not at the project yet.
            #expect(try await stage.token("app") == old)
            #expect(try await proofs(stage).isEmpty)
            try await stage.switchProject(["release": "supabase_token"])
            let (first, second) = (try await refreshing.answer(), try await proving.answer())
            #expect(first.status == 200, "\(first)")
            #expect(second.status == 200, "\(second)")
            // The proof was made with the token that the refresh brought: so it went out after the answer.
            let shown = try await proofs(stage).compactMap { $0["headers"]?["authorization"]?.string }
            #expect(shown.count == 1 && shown != ["Bearer \(old)"], "\(shown.count)")
            #expect(try await stage.account("app")["aal"] == "aal2")
            // The server counts on without patience: a token of before the proof would end the session.
            try await stage.advance(2)
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `second factor: eight refreshes wait for it, and take the token that it brings`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let (path, proof) = try await question(stage)
            let before = try await stage.refreshes()
            let gate: JSON = [
                "endpoint": "supabase_factors",
                "path": .string("/auth/v1" + path.dropFirst("/v1/accounts/app".utf8.count)),
                "kind": "gate", "count": 1,
            ]
            try await stage.switchProject(["faults": .array([gate])])
            let proving = try stage.connect()
            await proving.send(Stage.request("POST", path, proof.text))
            try await stage.sandbox.wait("supabase_factors", issuer: "/supabase")
            let callers = try (0..<8).map { _ in try stage.connect() }
            for caller in callers { await caller.send(Stage.request("POST", "/v1/accounts/app/refresh", "{}")) }
            // None is at the project while the proof is there.
            #expect(try await stage.token("app") != nil)
            #expect(try await stage.refreshes() == before)
            // The old token is two behind when the proof is done, and too late.
            try await stage.switchProject(["release": "supabase_factors", "advance_clock": 2])
            #expect(try await proving.answer().status == 200)
            for caller in callers {
                let answer = try await caller.answer()
                #expect(answer.status == 200, "\(answer)")
            }
            // The session's one lane: nothing was presented that the proof had made old, nor twice.
            #expect(try await stage.refreshes() == before)
            #expect(try await stage.account("app")["aal"] == "aal2")
            try await stage.advance(2)
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds, [0, 600])
    func `second factor, its answer lost: survived as far as the server's rules go`(
        kind: String, interval: Int
    ) async throws {
        try await Stage.playShared(kind, [("reuse_interval", .integer(interval))]) { stage, _ in
            let (path, proof) = try await question(stage)
            let before = try await stage.refreshes()
            let loss: JSON = [
                "endpoint": "supabase_factors", "kind": "status", "status": 504, "processed": true, "count": 1,
            ]
            try await stage.switchProject(["faults": .array([loss])])
            let answer = try await stage.api("POST", path, proof)
            #expect(answer.status == 503, "\(answer)")
            // Nobody asks for it: the token that is held is two behind, and its time is short.
            try await stage.eventually("a refresh by itself") { try await stage.refreshes() > before }
            if kind == "v2", interval == 0 {
                try await stage.eventually("the end") {
                    try await stage.account("app")["state"] == "unauthenticated"
                }
                return try await stage.expectNobody("refresh_token_already_used")
            }
            try await stage.eventually("the proof's fruit") { try await stage.account("app")["aal"] == "aal2" }
            try await stage.advance(1_800)
            try await stage.expectAlive()
        }
    }

    // MARK: Lost answers

    @Test(arguments: Stage.tokenKinds)
    func `an answer that was lost is made up for by the next`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            for trouble in ["status", "invalid_json", "truncated"] {
                try await stage.fault(["kind": .string(trouble), "status": 504, "processed": true])
                #expect(try await stage.refreshApp().status >= 500)
                try await stage.advance(60)
                try await stage.expectAlive()
            }
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `durable: a daemon that dies before the answer comes goes on with the token it has`(
        kind: String
    ) async throws {
        try await Stage.playShared(kind) { stage, _ in
            // Twice: the second time with what the first left behind.
            for _ in 0..<2 {
                try await stage.fault(["kind": "gate", "processed": true])
                let caller = try stage.connect()
                await caller.send(Self.refresh)
                try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
                let before = try await stage.refreshes()
                try await stage.restartAfterKill()
                // The new daemon asks by itself; a caller that came meanwhile would join that request.
                try await stage.eventually("the refresh of an attempt that was left open") {
                    let account = try await stage.account("app")
                    return try await stage.refreshes() > before && account["state"] == "authenticated"
                }
                try await stage.switchProject(["clear": true, "advance_clock": 1_800])
            }
            #expect(try await stage.token("app") != nil)
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `durable: what was answered is on the disk before anybody hears of it`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            for _ in 0..<3 {
                try await stage.expectAlive()
                try await stage.restartAfterKill()
                #expect(try await stage.token("app") != nil)
                // An older token would be answered too, without another: the server would not have moved.
                let before = try await stage.sandbox.counters(issuer: "/supabase")["rotations"]
                try await stage.expectAlive()
                #expect(try await stage.sandbox.counters(issuer: "/supabase")["rotations"] == before + 1)
                try await stage.advance(60)
            }
        }
    }

    // MARK: Many at once

    @Test(arguments: Stage.tokenKinds)
    func `parallel: eight refreshes at once are one request`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let before = try await stage.refreshes()
            try await stage.fault(["kind": "gate"])
            let callers = try (0..<8).map { _ in try stage.connect() }
            for caller in callers { await caller.send(Stage.request("POST", "/v1/accounts/app/refresh", "{}")) }
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            try await stage.switchProject(["release": "supabase_token"])
            for caller in callers {
                let answer = try await caller.answer()
                #expect(answer.status == 200, "\(answer)")
            }
            #expect(try await stage.refreshes() == before + 1)
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `parallel: eight other programs with one token leave the daemon its session`(kind: String) async throws {
        try await Stage.playShared(kind, [("reuse_interval", 10)]) { stage, program in
            // Now the others' token is the daemon's.
            #expect(try await program.refresh().status == 200)
            let shared = program
            let answers = try await withThrowingTaskGroup(of: Answer.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        var other = shared
                        return try await other.refresh()
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0.status == 200 }, "\(answers)")
            #expect(Set(answers.compactMap { $0["refresh_token"]?.string }).count == 1)
            try await stage.expectAlive()
            try await stage.advance(60)
            try await stage.expectAlive()
        }
    }

    // MARK: What is done elsewhere

    @Test(arguments: Stage.tokenKinds, ["logout?scope=others", "logout?scope=global", "user", "factors"])
    func `elsewhere: what another program ends is told by the next refresh`(
        kind: String, path: String
    ) async throws {
        try await Stage.playShared(kind) { stage, program in
            // A session beside: by its word, this one's ends.
            try await program.signIn()
            switch path {
            case "factors": try await program.prove(try await program.enroll())
            case "user":
                let changed = try await program.call("PUT", path, ["password": "longer12"])
                #expect(changed.status == 200, "\(changed)")
            default: #expect(try await program.call("POST", path, [:]).status == 204)
            }
            #expect(try await stage.token("app") != nil)
            try await stage.expectDead("refresh_token_not_found")
        }
    }
}
