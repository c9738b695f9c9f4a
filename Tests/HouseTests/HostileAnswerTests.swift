// What a project, or a daemon at the far end of a connection, calls a thing becomes part of a line that a person types
// next: there it is one word, whatever is in it.

import StrictJSON
import Testing

@Suite struct `A line to type next` {
    private static let name = "x'; touch owned; $(touch owned) `touch owned` \"\\ #"

    /// Runs `ringback` where every answer is this one.
    private func ask(
        _ answer: JSON, _ verb: String..., stdin: String? = nil, on stage: Stage
    ) async throws -> Output {
        let socket = "\(stage.directory)/run/far.sock"
        let far = try stage.start(
            "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/hostile_daemon.py", socket, answer.text])
        _ = try await far.line("who listens") { $0 == "listening" }
        return try await stage.run("ringback", verb + ["--socket", socket], stdin: stdin)
    }

    /// The words that a shell makes of what follows `ringback` in a line, up to what a person puts in its place.
    private func words(of line: String, on stage: Stage) async throws -> [String] {
        let start = try #require(line.firstIndex(of: ":"))
        let script = "ringback() { printf '%s\\n' \"$@\"; }; cd \"$0\" &&\(line[start...].dropFirst())"
        let run = try await stage.run("/bin/sh", ["-c", script, stage.directory])
        #expect(run.status == 0 && FileTree.text(of: "\(stage.directory)/owned") == nil, "\(run)")
        return run.lines
    }

    @Test func `SC-05: has a second factor's identifier as one word`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let answer: JSON = [
                "id": .string(Self.name), "type": "phone", "factor_type": "phone", "status": "unverified",
            ]
            let run = try await ask(
                answer, "supabase", "enroll", "app", "--phone", "+4915112345678", "--no-verify", on: stage)
            #expect(run.status == 0, "\(run)")
            let line = try #require(run.err.split(separator: "\n").first { $0.contains(" verify-factor ") })
            #expect(try await words(of: String(line), on: stage) == ["supabase", "verify-factor", "app", Self.name])
        }
    }

    @Test func `SC-05: has a passkey's identifier as one word`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let answer: JSON = [
                "challenge_id": "c", "options": ["challenge": "\u{9B}31m\u{202E}"], "id": .string(Self.name),
            ]
            let run = try await ask(
                answer, "supabase", "register-passkey", "app", stdin: #"{"id":"x","response":{"clientDataJSON":"y"}}"#,
                on: stage)
            #expect(run.status == 0, "\(run)")
            #expect(run.out.hasPrefix(#"{"challenge":"\u009b31m\u202e"}"#), "\(run)")
            let line = try #require(run.err.split(separator: "\n").first { $0.contains(" rename-passkey ") })
            #expect(
                try await words(of: String(line), on: stage) == [
                    "supabase", "rename-passkey", "app", Self.name, "NAME",
                ])
        }
    }

    @Test func `names no account whose name is none`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let answer: JSON = [
                "version": "0", "uptime": 1, "vault": ["locked": false], "accounts": [:],
                "grant": ["name": "far", "accounts": ["work", .string(Self.name)]],
            ]
            let run = try await ask(answer, "doctor", on: stage)
            #expect(run.lines.filter { $0.contains(" session ") }.map { $0.contains(" work: ") } == [true], "\(run)")
        }
    }
}
