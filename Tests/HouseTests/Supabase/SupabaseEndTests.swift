// A session that another sign-in has replaced, as the project sees it.

import RingbackBase
import Testing

@Suite struct `A session of a Supabase project` {
    private func login(_ stage: Stage, _ arguments: String...) async throws {
        let login = try await stage.run(
            "ringback", ["login", "app", "--method", "password", "--email", "mira@example.org"] + arguments,
            stdin: "secret12\n")
        #expect(login.status == 0, "\(login)")
    }

    @Test(arguments: [[], ["--no-persist"]])
    func `a replaced session is ended at the project, after a restart if the project was away`(
        options: [String]
    ) async throws {
        try await Stage.playProject(["users": [["email": "mira@example.org", "password": "secret12"]]]) { stage in
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
}
