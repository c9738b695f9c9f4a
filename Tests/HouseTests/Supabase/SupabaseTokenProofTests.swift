// Whose an access token is: told by the keys that the project publishes, or by the project itself where it signs with a
// secret of its own; and never taken at its word.

import RingbackBase
import Testing

@Suite struct `An access token that is handed in` {
    /// What the project was asked, below `/auth/v1/`, without the sandbox's own.
    private func asked(_ stage: Stage, after number: Int = 0) async throws -> [String] {
        try await stage.sandbox.log(issuer: "/supabase").filter { ($0["number"]?.integer ?? 0) > number }.compactMap {
            guard $0["headers"]?["user-agent"]?.string?.hasPrefix("ringback/") == true else { return nil }
            return ($0["path"]?.string ?? "").split(separator: "/").last.map(String.init)
        }
    }

    private func grant(_ stage: Stage) async throws -> (access: String, refresh: String) {
        let answer = try await stage.sandbox.request(
            "POST", "/supabase/auth/v1/token?grant_type=password",
            ["email": "mira@example.org", "password": "secret12"], fields: [("apikey", "sb_publishable_sandbox")])
        return (try #require(answer["access_token"]?.string), try #require(answer["refresh_token"]?.string))
    }

    /// The same with another person's signature, which is as long.
    private func forged(_ token: String, by other: String) -> String {
        let signature = other.split(separator: ".").last ?? ""
        return token.split(separator: ".").dropLast().joined(separator: ".") + "." + signature
    }

    @Test(arguments: ["ES256", "HS256"])
    func
        `a session with a forged access token is not kept, and its refresh token is not sent`(
            algorithm: String
        ) async throws
    {
        let settings: JSON = [
            "algorithm": .string(algorithm), "users": [["email": "mira@example.org", "password": "secret12"]],
        ]
        try await Stage.playProject(settings) { stage in
            let (one, other) = (try await grant(stage), try await grant(stage))
            let lie = forged(one.access, by: other.access)
            #expect(lie != one.access)
            let refused = try await stage.ringback(
                "login", "app", "--method", "session", stdin: "\(lie)\n\(one.refresh)\n")
            #expect(refused.status != 0 && refused.out.isEmpty, "\(refused)")
            #expect(try await stage.account("app")["state"] == "unauthenticated")
            let before = try await asked(stage)
            #expect(!before.contains("token"), "\(before)")

            let login = try await stage.ringback(
                "login", "app", "--method", "session", stdin: "\(one.access)\n\(one.refresh)\n")
            #expect(login.status == 0 && login.out == "Signed in to app as mira@example.org\n", "\(login)")
            let all = try await asked(stage)
            // Where there are keys nobody else is asked; where there are none is told by looking.
            #expect(all.contains("user") == (algorithm == "HS256"), "\(all)")
            #expect(all.contains("jwks.json"), "\(all)")
            // Refreshed at once: what was handed in is nobody's any more.
            #expect(all.contains("token"), "\(all)")
            #expect(try await stage.ringback("supabase", "user", "app").status == 0)
        }
    }
}
