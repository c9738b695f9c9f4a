// Section D of what is known of the project's server, row by row, for both kinds of its refresh tokens: what it does
// with a token, and what the daemon makes of that. The rows on answers that no honest server gives stand in
// BrokerCoreTests (ProjectProviderTests, ProjectChangesTests).

import StrictJSON
import Testing

@Suite struct `A project's refresh tokens` {
    static let kinds = ["v1", "v2"]

    /// Plays with one kind of token, and with no patience for old ones unless it is said.
    private func play(
        _ kind: String, reuseInterval: Int = 0, _ test: (Stage, inout OtherProgram) async throws -> Void
    ) async throws {
        let settings: JSON = ["refresh_tokens": .string(kind), "reuse_interval": .integer(reuseInterval)]
        try await Stage.playProject(settings) { stage in
            var program = try await OtherProgram.share(on: stage)
            try await test(stage, &program)
        }
    }

    private func refresh(_ stage: Stage) async throws -> Answer {
        try await stage.api("POST", "/v1/accounts/app/refresh", ["force": true])
    }

    /// Refreshes, which the session survives.
    private func expectAlive(_ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let answer = try await refresh(stage)
        #expect(answer.status == 200, "\(answer)", sourceLocation: sourceLocation)
        #expect(answer["state"] == "authenticated", sourceLocation: sourceLocation)
    }

    /// Refreshes, and the server says that the session has ended.
    private func expectDead(_ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let answer = try await refresh(stage)
        #expect(answer.status == 401 && answer.code == "session_expired", "\(answer)", sourceLocation: sourceLocation)
        try await expectNobody(stage, sourceLocation: sourceLocation)
    }

    /// Nobody is signed in, and everybody is told why.
    private func expectNobody(_ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let session = try await stage.api("GET", "/v1/accounts/app/session")
        #expect(session.status == 401 && session.code == "session_expired", sourceLocation: sourceLocation)
        let account = try await stage.account("app")
        #expect(account["state"] == "unauthenticated" && account["subject"] == nil, sourceLocation: sourceLocation)
        #expect(account["error"]?["code"] == "session_expired", sourceLocation: sourceLocation)
    }

    /// The proofs of second factors that the project has seen.
    private func proofs(_ stage: Stage) async throws -> [JSON] {
        let log = try await stage.sandbox.log(issuer: "/supabase")
        return log.filter { $0["endpoint"] == "supabase_factors" && $0["path"]?.string?.hasSuffix("/verify") == true }
    }

    private func refreshes(_ stage: Stage) async throws -> Int {
        try await stage.sandbox.counters(issuer: "/supabase").tokenRequests("refresh_token")
    }

    // MARK: D.2

    @Test(arguments: kinds) func `D.2: the current token brings another, each time`(kind: String) async throws {
        try await play(kind) { stage, _ in
            var tokens: Set<String> = [try #require(try await stage.token("app"))]
            for _ in 0..<3 {
                // Tokens of one second are the same text.
                try await stage.sandbox.control(["advance_clock": 1], issuer: "/supabase")
                try await expectAlive(stage)
                tokens.insert(try #require(try await stage.token("app")))
            }
            #expect(tokens.count == 4)
        }
    }

    @Test(arguments: kinds)
    func `D.2: the parent of the active token is answered at any time`(kind: String) async throws {
        try await play(kind) { stage, program in
            // Twice: to the daemon's token, and one further. Now the daemon is one step behind.
            #expect(try await program.refresh().status == 200)
            #expect(try await program.refresh().status == 200)
            try await stage.sandbox.control(["advance_clock": 1_800], issuer: "/supabase")
            try await expectAlive(stage)
            try await expectAlive(stage)
        }
    }

    @Test(arguments: kinds)
    func `D.2: an older token is answered within the interval`(kind: String) async throws {
        try await play(kind, reuseInterval: 600) { stage, program in
            for _ in 0..<4 { #expect(try await program.refresh().status == 200) }
            try await expectAlive(stage)
        }
    }

    @Test(arguments: kinds)
    func `D.2: an older token after the interval ends the session, for everybody`(kind: String) async throws {
        try await play(kind) { stage, program in
            for _ in 0..<3 { #expect(try await program.refresh().status == 200) }
            // The interval of the first kind counts whole seconds, and includes its end.
            try await stage.sandbox.control(["advance_clock": 2], issuer: "/supabase")
            try await expectDead(stage)
            try await stage.sandbox.control(["advance_clock": 2], issuer: "/supabase")
            #expect(try await program.refresh().status == 400)
        }
    }

    @Test(arguments: kinds)
    func `D.2: an older token is answered for ever where the project allows it`(kind: String) async throws {
        try await play(kind) { stage, program in
            try await stage.setProject(["allow_reuse": true])
            for _ in 0..<4 { #expect(try await program.refresh().status == 200) }
            try await stage.sandbox.control(["advance_clock": 1_800], issuer: "/supabase")
            try await expectAlive(stage)
        }
    }

    @Test(
        arguments: kinds,
        [
            ["end_sessions": true], ["delete_users": ["mira@example.org"]], ["ban": ["mira@example.org"]],
            ["session_timebox": 60], ["session_inactivity": 60],
        ] as [JSON])
    func `D.2: what the server has ended ends here`(kind: String, deed: JSON) async throws {
        try await play(kind) { stage, _ in
            try await stage.setProject(deed)
            try await stage.sandbox.control(["advance_clock": 120], issuer: "/supabase")
            try await expectDead(stage)
        }
    }

    @Test(arguments: kinds)
    func `D.2: a newer sign-in elsewhere ends this one, where there may be one alone`(kind: String) async throws {
        try await play(kind) { stage, program in
            try await stage.setProject(["single_session": true])
            try await stage.sandbox.control(["advance_clock": 10], issuer: "/supabase")
            try await program.signIn()
            try await expectDead(stage)
        }
    }

    @Test(arguments: kinds) func `D.2: a row that is locked is asked for again`(kind: String) async throws {
        try await play(kind) { stage, _ in
            try await stage.sandbox.control(
                [
                    "faults": [
                        [
                            "endpoint": "supabase_token", "kind": "error", "status": 409, "error": "conflict",
                            "count": 1,
                        ]
                    ]
                ], issuer: "/supabase")
            let answer = try await refresh(stage)
            #expect(answer.status == 503 && answer.code == "provider_unreachable", "\(answer)")
            #expect(try await stage.account("app")["state"] == "authenticated")
            try await expectAlive(stage)
        }
    }

    // MARK: D.3

    @Test(arguments: kinds) func `D.3: a gateway's no keeps the session, and says what is wrong`(kind: String)
        async throws
    {
        try await play(kind) { stage, _ in
            try await stage.setProject(["api_keys": ["sb_publishable_another"]])
            let answer = try await refresh(stage)
            #expect(answer.status >= 400 && answer["recovery"] == "fix_configuration", "\(answer)")
            #expect(try await stage.account("app")["state"] == "authenticated")
            try await stage.setProject(["api_keys": ["sb_publishable_sandbox"]])
            try await expectAlive(stage)
        }
    }

    @Test(arguments: kinds, ["session_not_found", "bad_jwt"])
    func `D.3: at other endpoints a session is dead by one word, a token old by another`(
        kind: String, word: String
    ) async throws {
        try await play(kind) { stage, _ in
            try await stage.sandbox.control(
                [
                    "faults": [
                        [
                            "endpoint": "supabase_user", "kind": "error", "status": 403, "error": .string(word),
                            "count": 1,
                        ]
                    ]
                ], issuer: "/supabase")
            let before = try await refreshes(stage)
            let answer = try await stage.api("GET", "/v1/accounts/app/user")
            if word == "bad_jwt" {
                #expect(answer.status == 200, "\(answer)")
                #expect(try await refreshes(stage) == before + 1)
            } else {
                #expect(answer.status == 401 && answer.code == "session_expired", "\(answer)")
                try await expectNobody(stage)
            }
        }
    }

    // MARK: D.4

    @Test(arguments: kinds) func `D.4: eight refreshes at once are one request`(kind: String) async throws {
        try await play(kind) { stage, _ in
            let before = try await refreshes(stage)
            let gate: JSON = ["endpoint": "supabase_token", "kind": "gate", "count": 1]
            try await stage.sandbox.control(["faults": .array([gate])], issuer: "/supabase")
            let callers = try (0..<8).map { _ in try stage.connect() }
            let request = Stage.request("POST", "/v1/accounts/app/refresh", "{}")
            for caller in callers { try await caller.send(request) }
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            try await stage.sandbox.control(["release": "supabase_token"], issuer: "/supabase")
            for caller in callers {
                let answer = try await caller.answer()
                #expect(answer.status == 200, "\(answer)")
            }
            #expect(try await refreshes(stage) == before + 1)
            try await expectAlive(stage)
        }
    }

    @Test(arguments: kinds) func `D.4: a second factor waits for the refresh before it`(kind: String) async throws {
        try await play(kind) { stage, _ in
            let factor = try await stage.api("POST", "/v1/accounts/app/factors", ["factor_type": "totp"])
            let path = "/v1/accounts/app/factors/\(factor["id"]?.string ?? "")"
            let code = Authenticator.code(factor["totp"]?["secret"]?.string ?? "")
            let challenge = try await stage.api("POST", "\(path)/challenge", [:])
            let gate: JSON = [
                "endpoint": "supabase_token", "grant_type": "refresh_token", "kind": "gate", "count": 1,
            ]
            // Tokens of one second are the same text.
            let old = try #require(try await stage.token("app"))
            try await stage.sandbox.control(
                ["faults": .array([gate]), "advance_clock": 2], issuer: "/supabase")
            let (refreshing, proving) = (try stage.connect(), try stage.connect())
            try await refreshing.send(Stage.request("POST", "/v1/accounts/app/refresh", #"{"force":true}"#))
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            let proof: JSON = ["challenge_id": challenge["id"] ?? .null, "code": .string(code)]
            try await proving.send(Stage.request("POST", "\(path)/verify", proof.text))
            // Asked after the proof, and answered: the daemon's socket has the proof, which is not at the project yet.
            #expect(try await stage.token("app") == old)
            #expect(try await proofs(stage).isEmpty)
            try await stage.sandbox.control(["release": "supabase_token"], issuer: "/supabase")
            let (first, second) = (try await refreshing.answer(), try await proving.answer())
            #expect(first.status == 200, "\(first)")
            #expect(second.status == 200, "\(second)")
            // The proof was made with the token that the refresh brought: so it went out after the answer.
            let shown = try await proofs(stage).compactMap { $0["headers"]?["authorization"]?.string }
            #expect(shown.count == 1 && shown != ["Bearer \(old)"], "\(shown.count)")
            #expect(try await stage.account("app")["aal"] == "aal2")
            // The server counts on without patience: a token of before the proof would end the session.
            try await stage.sandbox.control(["advance_clock": 2], issuer: "/supabase")
            try await expectAlive(stage)
        }
    }

    @Test(arguments: kinds, ["logout?scope=others", "user"])
    func `D.4: what another program ends is told by the next refresh`(kind: String, path: String) async throws {
        try await play(kind) { stage, program in
            // A session beside: by its word, this one's ends.
            try await program.signIn()
            let deed =
                path == "user"
                ? try await program.call("PUT", path, ["password": "longer12"])
                : try await program.call("POST", path, [:])
            #expect((200..<300).contains(deed.status), "\(deed)")
            #expect(try await stage.token("app") != nil)
            try await expectDead(stage)
        }
    }

    @Test(arguments: kinds) func `D.4: an answer that was lost is made up for by the next`(kind: String) async throws {
        try await play(kind) { stage, _ in
            for _ in 0..<2 {
                let loss: JSON = [
                    "endpoint": "supabase_token", "kind": "status", "status": 504, "processed": true, "count": 1,
                ]
                try await stage.sandbox.control(["faults": .array([loss])], issuer: "/supabase")
                #expect(try await refresh(stage).status == 503)
                try await stage.sandbox.control(["advance_clock": 60], issuer: "/supabase")
                try await expectAlive(stage)
            }
        }
    }
}
