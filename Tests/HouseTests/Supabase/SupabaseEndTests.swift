// Sessions of a Supabase project at their edges: one that is handed in late, one whose person is gone, one that was
// refused here. By the command line, with what the project sees of it.

import RingbackBase
import Testing

@Suite struct `A session of a Supabase project` {
    /// A session of another program's, which nobody has told the daemon of.
    private func foreign(_ stage: Stage, _ email: String = "mira@example.org") async throws -> [String] {
        let grant = try await stage.run(
            "/usr/bin/curl",
            [
                "-sS", "-H", "apikey: sb_publishable_sandbox", "-H", "Content-Type: application/json", "-d",
                #"{"email":"\#(email)","password":"secret12"}"#,
                "\(stage.sandbox.origin)/supabase/auth/v1/token?grant_type=password",
            ])
        let session = try JSON(parsing: grant.out.utf8)
        return ["access_token", "refresh_token"].map { session[$0]?.string ?? "" }
    }

    private static let people: JSON = [
        ["email": "mira@example.org", "password": "secret12"], ["email": "bob@example.org", "password": "secret12"],
    ]

    private func play(_ settings: [(String, JSON)] = [], _ test: (Stage) async throws -> Void) async throws {
        let members = [("users", Self.people)] + settings
        try await Stage.playProject(.object(JSONObject(members.map { JSONObject.Member($0.0, $0.1) })), test)
    }

    @Test func `may be handed in when its access token has expired, though only the server could check that one`()
        async throws
    {
        try await play([("access_token_lifetime", 60)]) { stage in
            let tokens = try await foreign(stage)
            try await stage.sandbox.control(["advance_clock": 90], issuer: "/supabase")
            try await stage.setProject(["access_token_lifetime": 3_600])
            let login = try await stage.ringback(
                "login", "app", "--method", "session", stdin: tokens.joined(separator: "\n"))
            #expect(login.status == 0 && login.out == "Signed in to app as mira@example.org\n", "\(login)")
        }
    }

    @Test func `that was handed in late is not kept if it is of somebody else`() async throws {
        try await play([("access_token_lifetime", 60)]) { stage in
            let mine = try await foreign(stage)
            let other = try await foreign(stage, "bob@example.org")
            try await stage.sandbox.control(["advance_clock": 90], issuer: "/supabase")
            let login = try await stage.ringback(
                "login", "app", "--method", "session", stdin: "\(mine[0])\n\(other[1])\n")
            #expect(login.status == 64 && login.err.contains("another session"), "\(login)")
            #expect(try await stage.account("app")["state"] == "unauthenticated")
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == 0)
        }
    }

    @Test func `ends at once when the project knows its person no more`() async throws {
        try await play { stage in
            let login = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(login.status == 0, "\(login)")
            try await stage.setProject(["delete_users": ["mira@example.org"]])
            let shown = try await stage.ringback("supabase", "user", "app")
            #expect(shown.status == 3 && shown.err.contains("Session expired."), "\(shown)")
            #expect(try await stage.account("app")["state"] == "unauthenticated")
            #expect(try await stage.ringback("token", "app").status == 3)
        }
    }

    private func login(_ stage: Stage, _ arguments: String...) async throws {
        let login = try await stage.run(
            "ringback", ["login", "app", "--method", "password", "--email", "mira@example.org"] + arguments,
            stdin: "secret12\n")
        #expect(login.status == 0, "\(login)")
    }

    @Test(arguments: [[], ["--no-persist"]])
    func `that another sign-in has replaced is ended at the project, after a restart if the project was away`(
        options: [String]
    ) async throws {
        try await play { stage in
            try await login(stage)
            let fault: JSON = ["endpoint": "supabase_logout", "kind": "status", "status": 503]
            try await stage.sandbox.control(["faults": [fault]], issuer: "/supabase")
            let again = try await stage.run(
                "ringback", ["login", "app", "--method", "password", "--email", "mira@example.org"] + options,
                stdin: "secret12\n")
            #expect(again.status == 0, "\(again)")
            try await stage.eventually("a sign-out at the project") {
                try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") > 0
            }
            try await stage.restartAfterKill()
            let before = try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout")
            try await stage.sandbox.control(["clear": true], issuer: "/supabase")
            try await stage.eventually("the sign-out that was owed") {
                try await stage.ringback("audit", "--json").out.contains("revocation_delivered")
            }
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") >= before)
            if options.isEmpty {
                #expect(try await stage.ringback("refresh", "app").status == 0)
            } else {
                #expect(try await stage.account("app")["state"] == "unauthenticated")
            }
        }
    }

    @Test func `that was refused here is ended at the project, and the one that is held lives on`() async throws {
        try await play { stage in
            for (email, status) in [("mira@example.org", Int32(0)), ("bob@example.org", 1)] {
                let login = try await stage.ringback(
                    "login", "app", "--method", "password", "--email", email, stdin: "secret12\n")
                #expect(login.status == status, "\(login)")
            }
            try await stage.eventually("a sign-out at the project") {
                try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == 1
            }
            #expect(try await stage.ringback("refresh", "app").status == 0)
            #expect(try await stage.account("app")["user"]?["email"] == "mira@example.org")
        }
    }
}
