import RingbackBase
import Testing

@Suite struct `At a Supabase project` {
    private func password(_ stage: Stage, _ more: String...) async throws -> Output {
        try await stage.run(
            "ringback", ["login", "app", "--method", "password", "--email", "mira@example.org"] + more,
            stdin: "secret12\n")
    }

    private let mira: JSON = [["email": "mira@example.org", "password": "secret12"]]

    private func asked(_ stage: Stage, _ word: String) async throws -> Int {
        try await stage.sandbox.log(issuer: "/supabase").count { entry in
            entry["path"]?.string?.contains(word) == true
                && entry["headers"]?["user-agent"]?.string?.hasPrefix("ringback/") == true
        }
    }

    @Test func `a token that no published key signed is not served`() async throws {
        try await Stage.playProject(["algorithm": "ES256", "users": mira]) { stage in
            for forgery in ["key", "secret"] {
                try await stage.setProject(["forgery": .null])
                #expect(try await password(stage).status == 0)
                let held = try await stage.ringback("token", "app", status: 0)
                try await stage.setProject(["forgery": .string(forgery)])
                try await stage.ringback("refresh", "app", "--force", status: 5, says: "is not valid")
                #expect(try await stage.ringback("token", "app").out == held.out)
                try await stage.setProject(["forgery": .null])
                // The refresh token that came with the forged one was kept.
                try await stage.ringback("refresh", "app", "--force", status: 0)
                try await stage.ringback("logout", "app", status: 0)
                try await stage.setProject(["forgery": .string(forgery)])
                let login = try await password(stage)
                #expect(login.status != 0 && login.out.isEmpty, "\(login)")
                #expect(try await stage.account("app")["state"] == "unauthenticated")
            }
        }
    }

    @Test func `a token of another issuer is refused, and token_issuer is named`() async throws {
        let settings: JSON = ["algorithm": "ES256", "users": mira, "issuer": "https://auth.example.org/auth/v1"]
        try await Stage.playProject(settings) { stage in
            let login = try await password(stage).expect(
                5, says: "issuer is https://auth.example.org/auth/v1, not \(stage.sandbox.origin)/supabase/",
                "set it as token_issuer of app.")
            // Three lines of a terminal, with the program's name before it.
            let message = login.err.split(separator: "\n").first { $0.contains("token_issuer") } ?? ""
            #expect(!message.isEmpty && message.count <= 3 * 80, "\(login)")
        }
    }

    /// There is no gateway in front of the Auth server: nothing asks for an API key, and there are no tables.
    @Test func `an Auth server without a gateway gets no API key, and has no profile`() async throws {
        let bare = """
            [accounts.app]
            provider = "supabase"
            url = "{sandbox}/supabase/auth/v1"
            gateway = false

            """
        try await Stage.playProject(["api_keys": [], "users": mira], configuration: bare) { stage in
            try await password(stage).expect(0, out: "Signed in to app as mira@example.org\n")
            try await stage.ringback("token", "app", status: 0)
            try await stage.ringback("refresh", "app", "--force", status: 0)
            #expect(try await asked(stage, "/auth/v1/token") == 2)
            try await stage.ringback("supabase", "user", "app", status: 0, prints: "mira@example.org")
            let doctor = try await stage.ringback("doctor", "app", "--json")
            let provider = try doctor.json["checks"]?.array?.first { $0["check"] == "provider" }
            #expect(provider?["level"] == "ok", "\(doctor)")
            let profile = try await stage.api("GET", "/v1/accounts/app/session?include=profile")
            #expect(profile.status >= 400 && profile.text.contains("has no profile"), "\(profile)")
            let log = try await stage.sandbox.log(issuer: "/supabase").filter {
                $0["headers"]?["user-agent"]?.string?.hasPrefix("ringback/") == true
            }
            for word in ["/token", "/user"] {
                #expect(log.contains { $0["path"]?.string?.hasSuffix("/auth/v1\(word)") == true }, "\(word)")
            }
            #expect(!log.contains { $0["headers"]?["apikey"] != nil || $0["path"]?.string?.contains("/rest/") == true })
            try await stage.ringback("logout", "app", status: 0)
            // Its tables cannot be named.
            for line in ["profile = { table = \"profiles\" }", "rpc = [\"echo\"]"] {
                try stage.write(configuration: bare + line + "\n")
                try await stage.ringback("config", "check", status: 78, says: "gateway = false")
            }
        }
    }

    @Test func `an Auth server without a gateway is added by account add, and asked without a key`() async throws {
        try await Stage.playProject(["api_keys": [], "users": mira], configuration: "") { stage in
            let options = ["--provider", "supabase", "--url", "\(stage.sandbox.origin)/supabase/auth/v1"]
            try await stage.run("ringback", ["account", "add", "app"] + options, status: 64, says: "--api-key")
            try await stage.run("ringback", ["account", "add", "app"] + options + ["--no-gateway"], status: 0)
            #expect(FileTree.text(of: "\(stage.dropIns)/app.toml")?.contains("gateway = false\n") == true)
            let log = try await stage.sandbox.log(issuer: "/supabase")
            #expect(log.contains { $0["path"]?.string?.hasSuffix("/auth/v1/settings") == true }, "\(log)")
            #expect(!log.contains { $0["headers"]?["apikey"] != nil }, "\(log)")
            try await password(stage).expect(0, out: "Signed in to app as mira@example.org\n")
            let other = try await stage.ringback(
                "account", "add", "work", "--issuer", stage.sandbox.origin, "--client-id", "x", "--no-gateway")
            #expect(other.status == 64 || other.status == 78, "\(other)")
            #expect(other.err.contains("--no-gateway"), "\(other)")
        }
    }

    /// The hook before a user is created is asked while the browser is on its way back, the one before a token is made
    /// when the code is redeemed. At both the sign-in ends with the hook's text, and a later one succeeds.
    @Test func `the text of a hook that refuses a browser sign-in is shown`() async throws {
        try await Stage.playProject { stage in
            for (hook, status) in [("user_hook", 403), ("token_hook", 500)] {
                let browser = Browser.environment
                try await stage.setProject([hook: ["status": .integer(status), "message": "Not on Sundays"]])
                let refused = try await stage.ringback(
                    "login", "app", "--with", "github", environment: browser, status: 1, out: "", says: "Not on Sundays"
                )
                #expect(!refused.err.contains("not available"), "\(refused)")
                let error = try await stage.account("app")["error"]
                #expect(error?["provider_message"] == "Not on Sundays", "\(error?.text ?? "")")
                try await stage.setProject([hook: .null])
                try await stage.ringback(
                    "login", "app", "--with", "github", environment: browser, status: 0,
                    out: "Signed in to app as alice@example.org\n")
                try await stage.ringback("logout", "app", status: 0)
                try await stage.setProject(["delete_users": ["alice@example.org"]])
            }
        }
    }
}
