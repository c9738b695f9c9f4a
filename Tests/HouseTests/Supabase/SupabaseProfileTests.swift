// The app's own row at a project: asked for without being asked after a sign-in, a start and a change of the person,
// and told as it is: there, missing, switched off.

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
            #expect(try await stage.ringback("reload").status == 0)
            try await test(stage)
        }
    }

    /// The requests to the project's tables so far.
    private func looks(_ stage: Stage, _ path: String = "profiles") async throws -> [JSON] {
        try await stage.sandbox.log(issuer: "/supabase").filter { request in
            request["endpoint"] == "supabase_rest" && request["path"]?.string?.hasSuffix("/\(path)") == true
        }
    }

    private func shown(_ stage: Stage, _ options: String...) async throws -> JSON {
        let session = try await stage.run(
            "ringback", ["session", "app", "--include", "profile", "--json"] + options)
        #expect(session.status == 0, "\(session)")
        return try JSON(parsing: session.out.utf8)
    }

    @Test func `is fetched after a sign-in, a start and a change of the person, unasked`() async throws {
        try await play(Self.rules) { stage in
            try await stage.signUp()
            let subject = try #require(try await stage.account("app")["subject"]?.string)
            try await stage.eventually("the row after the sign-in") { try await looks(stage).count == 1 }
            let asked = try #require(try await looks(stage).first)
            #expect(asked["method"] == "GET" && asked["parameters"]?["id"]?.string == "eq.\(subject)", "\(asked)")
            let token = try await stage.token("app") ?? "none"
            #expect(asked["headers"]?["authorization"]?.string == "Bearer \(token)")
            #expect(asked["headers"]?["apikey"] == "sb_publishable_sandbox")
            // Whoever asks gets what was fetched.
            #expect(try await shown(stage)["profile"]?["email"] == "mira@example.org")
            #expect(try await looks(stage).count == 1)

            let update = try await stage.ringback(
                "supabase", "update-user", "app", "--data", #"{"full_name":"Mira Nordlys"}"#)
            #expect(update.status == 0, "\(update)")
            try await stage.eventually("the row after the change") { try await looks(stage).count == 2 }

            try await stage.stopDaemon()
            try await stage.startDaemon()
            try await stage.eventually("the row after the start") { try await looks(stage).count == 3 }
            #expect(try await shown(stage)["profile_status"] == "active")

            let renamed = try await stage.ringback(
                "supabase", "rpc", "app", "update_profile", #"{"full_name":"M. N."}"#)
            #expect(renamed.status == 0 && renamed.out.contains("M. N."), "\(renamed)")
            try await stage.eventually("the new name") { try await shown(stage)["profile"]?["full_name"] == "M. N." }
            #expect(try await looks(stage, "rpc/get_or_create_profile").isEmpty)
            let answer = try await stage.api("GET", "/v1/accounts/app/session?include=profile")
            #expect(answer["profile"]?["id"]?.string == subject && answer["profile_status"] == "active", "\(answer)")
            #expect(try await stage.api("GET", "/v1/accounts/app/session")["profile"] == nil)
        }
    }

    @Test func `that is missing is so told`() async throws {
        try await play("profile = { table = \"profiles\", key = \"id\" }\n", ["profile_trigger": false]) { stage in
            try await stage.signUp()
            let session = try await shown(stage)
            #expect(session["profile_status"] == "missing" && session["profile"] == nil, "\(session)")
            let text = try await stage.ringback("session", "app", "--include", "profile")
            #expect(text.status == 0 && text.out.contains("Profile    missing\n"), "\(text)")
        }
    }

    @Test func `that is missing is made by the function, and may be switched off`() async throws {
        try await play(Self.rules, ["profile_trigger": false]) { stage in
            try await stage.signUp()
            let subject = try await stage.account("app")["subject"]
            let session = try await shown(stage)
            #expect(session["profile_status"] == "active" && session["profile"]?["id"] == subject, "\(session)")
            #expect(try await looks(stage, "rpc/get_or_create_profile").count == 1)
            let off = try await stage.ringback("supabase", "rpc", "app", "deactivate_account")
            #expect(off.status == 0, "\(off)")
            try await stage.eventually("a row that is off") {
                try await stage.ringback("session", "app", "--include", "profile").out.contains("Profile    inactive\n")
            }
            #expect(try await shown(stage)["profile"]?["is_active"] == false)
            #expect(try await stage.token("app") != nil)
        }
    }

    @Test func `that was switched off or on is never told as it was before`() async throws {
        try await play(Self.rules) { stage in
            try await stage.signUp()
            for _ in 0..<8 {
                for (function, status) in [("deactivate_account", "inactive"), ("reactivate_account", "active")] {
                    let done = try await stage.ringback("supabase", "rpc", "app", function)
                    #expect(done.status == 0, "\(done)")
                    let session = try await shown(stage)
                    #expect(session["profile_status"]?.string == status, "\(session)")
                    #expect(session["profile"]?["is_active"]?.bool == (status == "active"), "\(session)")
                }
            }
        }
    }

    @Test func `that cannot be had leaves the session as it is`() async throws {
        try await play("profile = { table = \"nothing_here\" }\n") { stage in
            try await stage.signUp()
            let session = try await shown(stage)
            #expect(session["profile_status"] == "unavailable" && session["access_token"] == nil)
            let whole = try await shown(stage, "--show-token")
            #expect(whole["profile_status"] == "unavailable" && whole["access_token"] != nil)
        }
    }

    @Test(arguments: [
        #"profile = { table = "profiles; drop" }"#, #"profile = { table = "1st" }"#,
        #"profile = { table = "profils/x" }"#,
        #"profile = { table = "p", key = "id=eq.1&x" }"#, #"profile = { table = "p", key = "" }"#,
        #"profile = { key = "id" }"#, #"rpc = ["a/b"]"#, #"rpc = ["a b"]"#,
        "profile = { table = \"\(String(repeating: "t", count: 64))\" }", #"profile_rpc = "make""#,
    ])
    func `by a name that is none is refused with the line`(line: String) async throws {
        try await Stage.play(Stage.project, startsDaemon: false) { stage in
            let account = Stage.project.replacing("rpc = [\"echo\"]\n", with: "")
            try stage.write(configuration: account + line + "\n")
            let check = try await stage.ringback("config", "check")
            #expect(check.status == 78, "\(check)")
            let said = check.out + check.err
            #expect(said.contains(line.hasPrefix("rpc") ? "rpc" : "profile") && said.contains(":5"), "\(said)")
        }
    }

    @Test func `has functions of its own, and none but those that are listed is asked of the project`() async throws {
        try await play(Self.rules) { stage in
            try await stage.signUp()
            for function in ["fail", "get_or_create_profile", "no/name", "update_profile%20"] {
                let refused = try await stage.ringback("supabase", "rpc", "app", function)
                #expect(refused.status == 64 && refused.out.isEmpty, "\(refused)")
                let escaped = function.replacing("%", with: "%25").replacing("/", with: "%2F")
                let answer = try await stage.api("POST", "/v1/accounts/app/rpc/\(escaped)", [:])
                #expect(answer.status == 404 || answer.status == 400 || answer.status == 403, "\(answer)")
            }
            #expect(try await looks(stage, "rpc/fail").isEmpty)
            let mistaken = try await stage.ringback("supabase", "rpc", "app", "update_profile", "[1]")
            #expect(mistaken.status == 64, "\(mistaken)")
        }
    }
}
