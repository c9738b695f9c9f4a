import Glibc
import Testing

@Suite struct `What names an account that is removed` {
    private static let more = """
        [[origin]]
        url = "https://git.example.org"
        account = "work"
        match_username = "ada"

        [[file]]
        path = "{stage}/work-token"
        account = "work"

        [[expose]]
        name = "ci"
        accounts = ["home", "work"]

        """

    @Test func `an account that other tables or a restricted socket name stays, with commands to run`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            #expect(unsafe mkdir(stage.dropIns, 0o700) == 0)
            for name in ["work", "home"] {
                let account = "issuer = \"\(stage.sandbox.origin)\"\nclient_id = \"ringback-demo\"\n"
                try stage.write("[accounts.\(name)]\n\(account)", to: "\(stage.dropIns)/\(name).toml")
            }
            try stage.write(configuration: Self.more)
            let text = FileTree.text(of: stage.configuration)
            try await stage.startDaemon()
            try await stage.signIn()
            #expect(unsafe symlink(Programs.path("ringback"), "\(stage.directory)/bin/ringback") == 0)
            let origin = "ringback origin remove 'https://git.example.org/*' --match-username=ada"
            let rest = "${EDITOR:-vi} \(stage.configuration); ringback account remove work"
            let refused = try await stage.ringback(
                "account", "remove", "work", "--yes", status: 78, out: "", says: "\(origin); \(rest)")
            for line in [1, 6, 10] { #expect(refused.err.contains("config.toml:\(line): "), "\(refused)") }
            #expect(FileTree.text(of: stage.configuration) == text)
            #expect(try await stage.token() != nil)

            // What was printed is done.
            try await stage.run("/bin/sh", ["-c", origin], status: 0)
            let less = try await stage.ringback("account", "remove", "work", "--yes", status: 78, says: rest)
            #expect(!less.err.contains("origin remove"), "\(less)")
            try stage.write("#!/bin/sh\n: >\"$1\"\n", to: "\(stage.directory)/bin/empty", mode: 0o700)
            try await stage.run(
                "/bin/sh", ["-c", "${EDITOR:-vi} \(stage.configuration)"], environment: ["EDITOR": "empty"], status: 0)
            try await stage.ringback(
                "account", "remove", "work", "--yes", status: 0, prints: "Removed the account work")
            try await stage.ringback("config", "check", status: 0)
        }
    }
}
