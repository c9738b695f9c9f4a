import RingbackBase
import Testing

@Suite struct `At a Supabase project` {
    private func password(_ stage: Stage, _ more: String...) async throws -> Output {
        try await stage.run(
            "ringback", ["login", "app", "--method", "password", "--email", "mira@example.org"] + more,
            stdin: "secret12\n")
    }

    private let mira: JSON = [["email": "mira@example.org", "password": "secret12"]]

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
}
