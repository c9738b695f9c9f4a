import Glibc
import RingbackBase
import Testing

@Suite struct `ringback env` {
    private static let paths = [
        "/run/user/1000/ringback/ringback.sock", "/tmp/a b/s.sock", "/tmp/it's $(touch x) `id` $HOME/s.sock",
        "/tmp/\\back\\\\slash\"quote\"/s.sock", "/tmp/bang!bang;&|<>*?[]{}~#/s.sock", "/tmp/ключ/s.sock",
    ]
    /// The shells that are there, each with how it takes the line.
    private static let shells = [
        ("sh", "/bin/sh", "eval \"$(%)\""), ("bash", "/bin/bash", "eval \"$(%)\""),
        ("zsh", "/usr/bin/zsh", "eval \"$(%)\""), ("fish", "/usr/bin/fish", "% | source"),
        ("csh", "/bin/tcsh", "eval \"`%`\""),
    ].filter { unsafe access($0.1, X_OK) == 0 }

    @Test func `ringback env prints a line that each shell reads alike`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (name, program, way) in Self.shells {
                for path in Self.paths {
                    let command = "\(Programs.path("ringback")) env --shell \(name)"
                    // Named by the environment: what the shell under test does with a word of ours is not the question.
                    let script = way.replacing("%", with: command) + "\n/usr/bin/printenv RINGBACK_SOCK\n"
                    let told = try await stage.run(
                        program, ["-c", script], environment: ["RINGBACK_SOCK": path], status: 0, out: path + "\n")
                    #expect(told.err.isEmpty, "\(told)")
                }
            }
        }
    }

    @Test func `ringback env quotes no plain path`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let sock = "/run/user/1000/ringback/ringback.sock"
            for (shell, line) in [
                ("sh", "export RINGBACK_SOCK=\(sock)"), ("bash", "export RINGBACK_SOCK=\(sock)"),
                ("zsh", "export RINGBACK_SOCK=\(sock)"), ("fish", "set -gx RINGBACK_SOCK \(sock)"),
                ("csh", "setenv RINGBACK_SOCK \(sock);"),
            ] {
                try await stage.ringback("env", "--shell", shell, "--socket", sock, status: 0, out: line + "\n")
            }
            try await stage.ringback("env", out: "export RINGBACK_SOCK=\(stage.socket)\n")
            let json = try JSON(parsing: try await stage.ringback("env", "--json").out.utf8)
            #expect(json["RINGBACK_SOCK"]?.string == stage.socket)
        }
    }

    @Test func `ringback env makes a path absolute and refuses control characters`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let relative = try await stage.run(
                "/bin/sh", ["-c", "cd \(stage.directory) && \(Programs.path("ringback")) env --socket run/s.sock"])
            #expect(relative.out == "export RINGBACK_SOCK=\(stage.directory)/run/s.sock\n", "\(relative)")
            try await stage.ringback("env", "--socket", "/tmp/a\nb", status: 1, out: "", says: "control character")
            try await stage.ringback("env", "--shell", "powershell", status: 64)
            try await stage.ringback(
                "env", environment: ["RINGBACK_SOCK": "", "XDG_RUNTIME_DIR": ""], status: 2, says: "XDG_RUNTIME_DIR")
        }
    }
}
