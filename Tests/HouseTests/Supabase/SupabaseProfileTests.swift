import RingbackBase
import Testing

@Suite struct `The app's own row at a project` {
    private static let rules = """
        profile = { table = "profiles", key = "id" }
        profile_rpc = "get_or_create_profile"

        """

    /// Plays with an account that names its row: `rules` takes the place of the usual account's list of functions.
    private func play(
        _ rules: String, _ settings: JSON = [:], _ test: (Stage) async throws -> Void
    ) async throws {
        try await Stage.playProject(settings) { stage in
            let functions = #"rpc = ["update_profile", "deactivate_account", "reactivate_account"]"#
            let account = Stage.project.replacing(#"rpc = ["echo"]"#, with: functions)
            try stage.write(configuration: account + rules)
            try await stage.ringback("reload", status: 0)
            try await test(stage)
        }
    }

    private func looks(_ stage: Stage, _ path: String = "profiles") async throws -> [JSON] {
        try await stage.sandbox.log(issuer: "/supabase").filter { request in
            request["endpoint"] == "supabase_rest" && request["path"]?.string?.hasSuffix("/\(path)") == true
        }
    }

    private func shown(_ stage: Stage, _ options: String...) async throws -> JSON {
        let session = try await stage.run(
            "ringback", ["session", "app", "--include", "profile", "--json"] + options, status: 0)
        return try session.json
    }

    @Test func `the profile row is fetched unasked after a sign-in, a start and a change of the user`() async throws {
        try await play(Self.rules) { stage in
            try await stage.signUp()
            let subject = try #require(try await stage.account("app")["subject"]?.string)
            try await stage.eventually("the row after the sign-in") { try await looks(stage).count == 1 }
            let asked = try #require(try await looks(stage).first)
            #expect(asked["method"] == "GET" && asked["parameters"]?["id"]?.string == "eq.\(subject)", "\(asked)")
            let token = try await stage.token("app") ?? "none"
            #expect(asked["headers"]?["authorization"]?.string == "Bearer \(token)")
            #expect(asked["headers"]?["apikey"] == "sb_publishable_sandbox")
            #expect(try await shown(stage)["profile"]?["email"] == "mira@example.org")
            #expect(try await looks(stage).count == 1)

            try await stage.ringback(
                "supabase", "update-user", "app", "--data", #"{"full_name":"Mira Nordlys"}"#, status: 0)
            try await stage.eventually("the row after the change") { try await looks(stage).count == 2 }

            try await stage.stopDaemon()
            try await stage.startDaemon()
            try await stage.eventually("the row after the start") { try await looks(stage).count == 3 }
            #expect(try await shown(stage)["profile_status"] == "active")

            try await stage.ringback(
                "supabase", "rpc", "app", "update_profile", #"{"full_name":"M. N."}"#, status: 0, prints: "M. N.")
            try await stage.eventually("the new name") { try await shown(stage)["profile"]?["full_name"] == "M. N." }
            #expect(try await looks(stage, "rpc/get_or_create_profile").isEmpty)
            let answer = try await stage.api("GET", "/v1/accounts/app/session?include=profile")
            #expect(answer["profile"]?["id"]?.string == subject && answer["profile_status"] == "active", "\(answer)")
            #expect(try await stage.api("GET", "/v1/accounts/app/session")["profile"] == nil)
        }
    }
}
