import Glibc
import RingbackBase
import Testing

@Suite struct `ringback exec` {
    @Test func `ringback exec gives the command the token on a descriptor only`() async throws {
        try await Stage.playSignedIn { stage in
            let token = try await stage.token() ?? ""
            let script = """
                cat <&"$RINGBACK_TOKEN_FD"; echo; cat "/dev/fd/$RINGBACK_TOKEN_FD"; echo
                echo "fd $RINGBACK_TOKEN_FD"; env; tr '\\0' ' ' </proc/$$/cmdline; echo; ls -l /proc/self/fd/
                """
            let ended = try await stage.ringback("exec", "work", "--", "sh", "-c", script, status: 0)
            #expect(ended.err.isEmpty, "\(ended)")
            #expect(ended.lines.prefix(2) == [token, token], "\(ended)")
            let rest = ended.lines.dropFirst(2).joined(separator: "\n")
            #expect(!rest.contains(token) && rest.contains("RINGBACK_TOKEN_FD="), "\(rest)")
            // Standard streams, the token, the directory that ls reads.
            #expect(!rest.contains("socket:"), "\(rest)")
            #expect(ended.lines.count { $0.contains("memfd:") } == 1, "\(rest)")
            #expect(ended.lines.count { $0.contains(" -> ") } == 5, "\(rest)")
        }
    }

    @Test func `alias prints a function that runs the program with the token in its variable`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let token = try await stage.token() ?? ""
            #expect(unsafe symlink(Programs.path("ringback"), "\(stage.directory)/bin/ringback") == 0)
            try stage.write(
                "#!/bin/sh\nprintf '%s|' \"$GH_TOKEN\" \"$@\"\n", to: "\(stage.directory)/bin/gh", mode: 0o700)
            for shell in ["sh", "bash", "zsh", "fish"] where unsafe access("/usr/bin/\(shell)", X_OK) == 0 {
                let alias = "ringback alias gh work GH_TOKEN --shell \(shell)"
                let define = shell == "fish" ? "\(alias) | source" : "eval \"$(\(alias))\""
                let ended = try await stage.run("/usr/bin/env", [shell, "-c", "\(define); gh pr 'a b' ''"], status: 0)
                #expect(ended.out == "\(token)|pr|a b||", "\(shell): \(ended)")
            }
            try await stage.ringback(
                "alias", "gh", "work", "GH_TOKEN", "--shell", "csh", status: 0, prints: "alias gh '")
            for wrong in [["gh;id", "work", "T"], ["-x", "work", "T"], ["gh", "Work", "T"], ["gh", "work", "1T"]] {
                try await stage.run("ringback", ["alias"] + wrong, status: 64, out: "")
            }
        }
    }

    @Test func `exec --fd and --env choose where the token is`() async throws {
        try await Stage.playSignedIn { stage in
            let token = try await stage.token() ?? ""
            let expected: [([String], String, String)] = [
                (["--fd", "7"], "cat <&7; echo \" $RINGBACK_TOKEN_FD\"", "\(token) 7"),
                (["--fd", "0"], "cat; echo \" $RINGBACK_TOKEN_FD\"", "\(token) 0"),
                (["--env", "API_TOKEN"], "echo \"$API_TOKEN ${RINGBACK_TOKEN_FD-none}\"", "\(token) none"),
                (["--env", "T", "--fd", "9"], "echo \"$T $RINGBACK_TOKEN_FD\"", "\(token) 9"),
            ]
            for (options, script, line) in expected {
                try await stage.run(
                    "ringback", ["exec", "work"] + options + ["--", "sh", "-c", script], status: 0, out: line + "\n")
            }
        }
    }

    @Test func `exec --relay gives an address that reaches the server with the token, and no token`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let token = try await stage.token() ?? ""
            let server = stage.sandbox.origin
            let relay = ["exec", "work", "--relay", "API=\(server)", "--"]
            let missing = try await stage.run("ringback", relay + ["echo", "ran"], says: "ringback origin add")
            #expect(missing.out.isEmpty, "\(missing)")
            try await stage.ringback("origin", "add", server, "--account", "work", status: 0)
            let script = """
                env; ls -l /proc/self/fd/
                curl -sS -i -H 'Authorization: Bearer mine' "$API/userinfo"; echo
                curl -sS -o /dev/null -w '%{http_code}\n' -H 'Origin: https://page.example' "$API/userinfo"
                """
            let ended = try await stage.run("ringback", relay + ["sh", "-c", script], status: 0)
            #expect(ended.out.contains("alice@example.org") && ended.lines.last == "403", "\(ended)")
            #expect(!ended.out.contains(token) && !ended.out.contains("RINGBACK_TOKEN_FD="), "\(ended)")
            #expect(ended.lines.contains { $0.hasPrefix("API=http://127.0.0.1:") }, "\(ended)")
            for name in ["no_proxy", "NO_PROXY"] {
                #expect(ended.lines.contains { $0.hasPrefix("\(name)=") && $0.hasSuffix("127.0.0.1") }, "\(ended)")
            }
        }
    }

    @Test func `exec becomes the command with its pid and status`() async throws {
        try await Stage.playSignedIn { stage in
            let program = try stage.start("ringback", ["exec", "work", "--", "sh", "-c", "echo $$; kill -TERM $$"])
            try await program.end().expect(128 + SIGTERM, out: "\(program.pid)\n")
            let expected: [([String], Int32)] = [
                (["sh", "-c", "exit 9"], 9), (["/none/at/all"], 127), (["/etc"], 126),
            ]
            for (command, status) in expected {
                let ended = try await stage.run("ringback", ["exec", "work", "--"] + command, status: status)
                #expect(SecretSearch.tokens(in: Array((ended.out + ended.err).utf8)) == [])
            }
        }
    }

    @Test func `exec --scope gives a downscoped token`() async throws {
        try await Stage.playSignedIn { stage in
            let script = "cat <&$RINGBACK_TOKEN_FD"
            let downscoped = try await stage.ringback(
                "exec", "work", "--scope", "openid", "--min-valid", "10", "--", "sh", "-c", script, status: 0)
            #expect(downscoped.out.hasPrefix("at-"), "\(downscoped)")
            #expect(downscoped.out != (try await stage.token()))
        }
    }

    @Test func `exec without a token starts nothing`() async throws {
        try await Stage.play { stage in
            let expected: [([String], Int32)] = [
                (["exec", "work", "--", "echo", "ran"], 3), (["exec", "none", "--", "echo", "ran"], 64),
                (["exec", "work", "--socket", "/none", "--", "echo", "ran"], 2), (["exec", "work", "echo", "ran"], 64),
                (["exec", "work"], 64), (["exec", "work", "--env", "A-B", "--", "echo", "ran"], 64),
                (["exec", "work", "--fd", "1", "--", "echo", "ran"], 64),
            ]
            for (arguments, status) in expected {
                let ended = try await stage.run("ringback", arguments, status: status)
                #expect(!ended.out.contains("ran"), "\(arguments): \(ended)")
            }
        }
    }
}
