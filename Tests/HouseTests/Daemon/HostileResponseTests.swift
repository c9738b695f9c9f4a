// What a project, or a daemon at the far end of a connection, calls a thing becomes part of a line that a person types
// next: there it is one word, whatever is in it.

import RingbackBase
import Testing

@Suite struct `A line to type next` {
    private static let name = "x'; touch owned; $(touch owned) `touch owned` \"\\ #"

    /// A socket where every answer is this one.
    private func socket(answering answer: JSON, on stage: Stage) async throws -> String {
        let socket = "\(stage.directory)/run/far.sock"
        let far = try stage.start(
            "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/hostile_daemon.py", socket, answer.text])
        _ = try await far.line("who listens") { $0 == "listening" }
        return socket
    }

    /// Runs `ringback` where every answer is this one.
    private func ask(
        _ answer: JSON, _ verb: String..., stdin: String? = nil, on stage: Stage
    ) async throws -> Output {
        let socket = try await socket(answering: answer, on: stage)
        return try await stage.run("ringback", verb + ["--socket", socket], stdin: stdin)
    }

    /// The words that a shell makes of what follows `ringback` in a line, up to what a person puts in its place.
    private func words(of line: String, on stage: Stage) async throws -> [String] {
        let start = try #require(line.firstIndex(of: ":"))
        let script = "ringback() { printf '%s\\n' \"$@\"; }; cd \"$0\" &&\(line[start...].dropFirst())"
        let run = try await stage.run("/bin/sh", ["-c", script, stage.directory], status: 0)
        #expect(FileTree.text(of: "\(stage.directory)/owned") == nil, "\(run)")
        return run.lines
    }

    @Test func `SC-05: an advised command has a hostile factor id as one word`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let answer: JSON = [
                "id": .string(Self.name), "type": "phone", "factor_type": "phone", "status": "unverified",
            ]
            let run = try await ask(
                answer, "supabase", "enroll", "app", "--phone", "+4915112345678", "--no-verify", on: stage
            ).expect(0)
            let line = try #require(run.err.split(separator: "\n").first { $0.contains(" verify-factor ") })
            #expect(try await words(of: String(line), on: stage) == ["supabase", "verify-factor", "app", Self.name])
        }
    }

    @Test func `SC-05: an advised command has a hostile passkey id as one word`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let answer: JSON = [
                "challenge_id": "c", "options": ["challenge": "\u{9B}31m\u{202E}"], "id": .string(Self.name),
            ]
            let run = try await ask(
                answer, "supabase", "register-passkey", "app", stdin: #"{"id":"x","response":{"clientDataJSON":"y"}}"#,
                on: stage
            ).expect(0)
            #expect(run.out.hasPrefix(#"{"challenge":"\u009b31m\u202e"}"#), "\(run)")
            let line = try #require(run.err.split(separator: "\n").first { $0.contains(" rename-passkey ") })
            #expect(
                try await words(of: String(line), on: stage) == [
                    "supabase", "rename-passkey", "app", Self.name, "NAME",
                ])
        }
    }

    @Test func `an advised command names no account with an invalid name`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let answer: JSON = [
                "version": "0", "uptime": 1, "vault": ["locked": false], "accounts": [:],
                "exposed_socket": ["name": "far", "accounts": ["work", .string(Self.name)]],
            ]
            let run = try await ask(answer, "doctor", on: stage)
            #expect(run.lines.filter { $0.contains(" session ") }.map { $0.contains(" work: ") } == [true], "\(run)")
        }
    }

    @Test func `SK-27, ADV-14: no verb prints terminal control characters of a daemon's response`() async throws {
        let word = JSON.string("\u{9B}31m\u{202E}\u{1B}]0;x\u{7}\u{200B}")
        var answer = JSONObject([
            .init("version", word), .init("pid", 1), .init("uptime", 1), .init("accounts", [:]),
            .init("state", "authenticated"), .init("status", "pending"), .init("access_token", "x"),
            .init("vault", ["locked": true, "kind": word, "key_source": word, "reason": word]),
            .init("user", ["id": word, "email": word, "name": word, "user_metadata": ["a": word]]),
            .init("error", ["title": word, "code": word, "detail": word, "status": 1]),
            .init("options", ["challenge": word]), .init("migration", ["from": word, "to": word]),
            .init("checks", [["check": word, "message": word, "level": "wrong", "command": word]]),
            .init("entries", [["time": 1, "event": word, "account": word, "x": word]]),
            .init(
                "exposed_sockets", [["name": word, "accounts": [word], "scope": word, "source": word, "socket": word]]),
            .init("closed", [["name": word, "detail": word]]),
            .init("passkeys", [["id": word, "friendly_name": word, "created_at": word]]),
            .init("identities", [["identity_id": word, "id": word, "provider": word]]),
            .init("factors", [["id": word, "factor_type": word, "friendly_name": word, "status": word]]),
        ])
        for name in [
            "account", "subject", "token_type", "scope", "issuer", "name", "provider", "source", "id", "socket",
            "method",
            "directory", "friendly_name", "removed", "challenge_id", "waiting_for",
        ] { answer[name] = word }
        for name in ["listeners", "warnings", "link_listeners", "notes"] { answer[name] = [word] }
        let verbs = [
            "status", "status --json", "accounts", "session x", "session x --json", "token x --format json", "doctor",
            "expose list", "expose n --account x", "expose revoke n", "audit", "supabase user x", "refresh x",
            "supabase identities x", "supabase factors x", "supabase passkeys x", "supabase rename-passkey x i n",
            "supabase remove-passkey x i", "supabase enroll x --no-verify --no-qr", "supabase unlink x i", "logout x",
            "supabase reauthenticate x", "supabase rpc x f {}", "migrate-user x --from y", "reload", "lock",
            "login x --no-browser --timeout 1", "supabase register-passkey x", "supabase consents x",
        ]
        try await Stage.play("", startsDaemon: false) { stage in
            let socket = try await socket(answering: .object(answer), on: stage)
            var shown = 0
            for verb in verbs {
                let words = verb.split(separator: " ").map(String.init)
                let run = try await stage.run("ringback", words + ["--socket", socket], stdin: "")
                let obeyed = (run.out + run.err).unicodeScalars.filter { scalar in
                    scalar != "\n" && [.control, .format].contains(scalar.properties.generalCategory)
                }
                #expect(obeyed.isEmpty && run.status != 2 && run.status != 64, "\(verb): \(run)")
                if (run.out + run.err).contains("31m") { shown += 1 }
            }
            // The words were there to be printed.
            #expect(shown >= verbs.count / 2)
        }
    }
}
