// An upgrade restarts nobody's daemon: what runs may be of another commit than the command line.

import Glibc
import RingbackBase
import Testing

extension Stage {
    /// A copy of `ringbackd` with the name of another commit in it.
    fileprivate func daemonOfAnotherCommit() async throws -> String {
        let version = try await run("ringbackd", ["--version"]).out
        let commit = try #require(version.split(separator: "(").last?.split(separator: ")").first.map { String($0) })
        let other = commit.dropLast() + (commit.hasSuffix("0") ? "1" : "0")
        let path = "\(directory)/bin/ringbackd"
        let copied = try await run(
            "/bin/sh",
            ["-c", #"LC_ALL=C sed "s/$1/$2/g" "$3" >"$4" && chmod 700 "$4""#, "sh", commit, String(other)]
                + [Programs.path("ringbackd"), path])
        #expect(copied.status == 0, "\(copied)")
        #expect(try await run(path, ["--version"]).out.contains("(\(other))"))
        return path
    }

    /// What `ringback` without a verb shows on a terminal, without escape sequences.
    fileprivate func overview() async throws -> String {
        let environment = environment.merging(["BROWSER": "true", "NO_COLOR": "1"]) { $1 }
        let ended = try await TerminalProgram([], environment: environment, columns: 80, rows: 24).end()
        let screen = TerminalScreen(ended.text, columns: 80, rows: 24)
        #expect(ended.status == 0 && screen.scrolledAway == [], "\(ended)")
        return ended.text
    }

    fileprivate func versionCheck() async throws -> JSON? {
        let doctor = try await ringback("doctor", "--json")
        return try doctor.json["checks"]?.array?.first { $0["check"]?.string == "version" }
    }
}

@Suite struct `A daemon of another commit` {
    @Test func `a daemon of another commit is named with the command that restarts it`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let path = try await stage.daemonOfAnotherCommit()
            let daemon = try await stage.startDaemon(of: path)
            let places = "--config \(stage.configuration) --socket \(stage.socket) --state \(stage.state)"
            let command = "kill \(daemon.pid) && tail --pid=\(daemon.pid) -f /dev/null && \(path) \(places) &"
            let seen = try await stage.overview()
            #expect(seen.contains("! version") && seen.contains("→ \(command)\r\n"), "\(seen)")
            #expect(seen.contains("Next: ringback login home"), "\(seen)")
            let status = try await stage.ringback("status")
            let told = try #require(status.lines.first { $0.hasPrefix("Differs") })
            #expect(told.hasSuffix("To restart it: \(command)"), "\(status)")
            let check = try await stage.versionCheck()
            #expect(check?["level"] == "warning" && check?["command"]?.string == command, "\(check ?? .null)")

            // The upgrade, and the command as it is printed.
            try await stage.run("/bin/cp", ["--remove-destination", Programs.path("ringbackd"), path], status: 0)
            let readiness = stage.notices.count
            try await stage.run(
                "/bin/sh", ["-c", "exec >\(stage.directory)/restarted 2>&1; \(command)"],
                environment: ["NOTIFY_SOCKET": stage.notices.path], status: 0)
            try await stage.notices.wait(for: "READY=1", after: readiness)
            #expect(try await daemon.end().status == 0)
            let now = try await stage.ringback("status", "--json")
            let pid = try #require(pid_t(exactly: try now.json["pid"]?.integer ?? 0))
            defer { kill(pid, SIGTERM) }
            #expect(pid != daemon.pid && pid > 1, "\(now)")
            #expect(try await stage.versionCheck()?["level"] == "ok")
            #expect(try await !stage.ringback("status").out.contains("Differs"))
            #expect(try await !stage.overview().contains("version"))
            #expect(try await stage.ringback("doctor").out.contains("state: \(stage.state)"))
        }
    }

    @Test func `no command is shown for a daemon of another commit that a program started`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let path = try await stage.daemonOfAnotherCommit()
            // The same file, from whatever directory this runs in.
            let file = String(repeating: "../", count: 20) + stage.configuration.dropFirst()
            let relative = try await stage.startDaemon(["--log-level", "info", "--config", file], of: path)
            let status = try await stage.ringback("status")
            let told = try #require(status.lines.first { $0.hasPrefix("Differs") })
            #expect(
                told.contains("To restart it, in the directory where it was started: kill \(relative.pid)"), "\(told)")
            #expect(try await stage.versionCheck()?["command"] == nil)
            _ = try await stage.stopDaemon()

            let owned = try await stage.startDaemon(["--exit-with-parent"], of: path)
            let check = try await stage.versionCheck()
            #expect(check?["command"] == nil, "\(check ?? .null)")
            #expect(check?["message"]?.string?.hasSuffix("started it: restart that program.") == true)
            #expect(owned.endedStatus == nil)
        }
    }
}
