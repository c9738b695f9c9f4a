import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `The daemon's life` {
    @Test func `the daemon ends soon after SIGTERM and answers everybody who waits`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired("home", issuer: "/tenant-a", as: "bob")
            try await stage.sandbox.control(["faults": [["endpoint": "token", "kind": "hang"]]], issuer: "/tenant-a")
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let url = try await login.line()
            let id = try await stage.account()["flow"]?["id"]?.string ?? ""
            let events = try stage.connect()
            await events.send(Stage.request("GET", "/v1/events"))
            _ = try await events.read(through: "initial_session")
            async let poll = stage.api("GET", "/v1/flows/\(id)?wait=600")
            async let waiting = stage.api("GET", "/v1/accounts/work/session?sign_in=wait&timeout=600")
            async let refreshing = stage.api("GET", "/v1/accounts/home/session")
            try await stage.sandbox.wait("token", issuer: "/tenant-a")

            stage.daemon?.send(SIGTERM)
            // Somebody waits for a provider that says nothing for twenty seconds: it does not wait for that.
            let daemon = try await stage.daemon?.end(within: .seconds(15))
            #expect(daemon?.status == 0, "\(daemon?.description ?? "")")
            try await login.end().expect(2, out: url + "\n")
            for answer in [try await poll, try await waiting, try await refreshing] {
                #expect(answer.status == 503 && answer.code == "shutting_down", "\(answer)")
            }
            _ = try await events.readToEnd()
            // Nothing is left that would fool the next client.
            #expect(FileTree.names(in: "\(stage.directory)/run") == [])
            #expect(throws: SystemError.self) { try Connection(to: .ipv4(LocalURL(url.redirectPort).port)) }
            try await stage.startDaemon()
            #expect(try await stage.api("GET", "/v1/status").status == 200)
        }
    }

    /// Whoever can connect may have told somebody else that the daemon runs, who ends it. Many rounds, since each is a race.
    @Test(arguments: [SIGTERM, SIGINT])
    func `the daemon ends cleanly by a signal during the first connection`(signal: Int32) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for round in 0..<40 {
                let daemon = try stage.start("ringbackd", ["--state", stage.state])
                let connection = try await Connection.first(to: .unix(stage.socket))
                daemon.send(signal)
                // Impatient people repeat themselves.
                if round.isMultiple(of: 2) { daemon.send(signal) }
                let ended = try await daemon.end()
                #expect(ended.status == 0, "round \(round): \(ended)")
                #expect(try await connection.readToEnd() == "")
                #expect(FileTree.names(in: "\(stage.directory)/run") == [], "round \(round)")
            }
        }
    }

    @Test func `the daemon notifies systemd of readiness, reload and stop`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("reload", status: 0)
            try await stage.notices.wait(for: "RELOADING=1", after: 1)
            try await stage.notices.wait(for: "READY=1", after: 2)
            #expect(try await stage.stopDaemon().status == 0)
            try await stage.notices.wait(for: "STOPPING=1", after: 3)
        }
    }

    @Test func `SK-09: a second daemon on the same state names the holder and goes`() async throws {
        try await Stage.playSignedIn { stage in
            let holder = try #require(stage.daemon)
            for socket in [stage.socket, "\(stage.directory)/run/other.sock"] {
                try await stage.run(
                    "ringbackd", ["--config", stage.configuration, "--socket", socket, "--state", stage.state],
                    status: 69, out: "", says: ", pid \(holder.pid), uses the state directory \(stage.state)",
                    "--state")
            }
            // The first is not disturbed.
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock"])
            #expect(try await stage.token() != nil)
        }
    }

    @Test func `SK-09: a killed daemon's socket and lock are taken over`() async throws {
        try await Stage.play { stage in
            let first = try #require(stage.daemon)
            first.send(SIGKILL)
            #expect(try await first.end().status == 128 + SIGKILL)
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock"])
            try await stage.ringback("status", status: 2)
            try await stage.startDaemon()
            try await stage.ringback("status", status: 0)
        }
    }

    @Test func `the autostart entry starts the daemon only where systemd has no socket unit for it`() async throws {
        let lines = try Document(path: "systemd/ringbackd.desktop").lines
        let line = try #require(lines.first { $0.hasPrefix("Exec=") })
        let command = String(line).replacing("Exec=", with: "exec ").replacing(
            "/usr/bin/ringbackd", with: Programs.path("ringbackd"))
        // What the specification makes of the quotes is what a shell makes of them.
        #expect(!command.contains { "\\`$%".contains($0) })
        try await Stage.play(startsDaemon: false) { stage in
            func answerAsSystemctl(_ status: Int) throws {
                let script = "#!/bin/sh\n[ \"$*\" = '--user cat ringback.socket' ] && exit \(status)\nexit 0\n"
                try stage.write(script, to: "\(stage.directory)/bin/systemctl", mode: 0o700)
            }
            try answerAsSystemctl(0)
            try await stage.run("/bin/sh", ["-c", command], status: 0, out: "")
            #expect(FileTree.names(in: "\(stage.directory)/run") == [])

            try answerAsSystemctl(1)
            let ready = ["NOTIFY_SOCKET": stage.notices.path]
            let daemon = try stage.start("/bin/sh", ["-c", command], environment: ready)
            try await stage.notices.wait(for: "READY=1", after: 0)
            #expect(try await stage.api("GET", "/v1/status", status: 200)["pid"]?.integer == Int(daemon.pid))
            // The log-in to a second desktop.
            try await stage.run("/bin/sh", ["-c", command], status: 69, out: "")
            daemon.send(SIGTERM)
            #expect(try await daemon.end().status == 0)
        }
    }

    @Test func `the daemon ends when its socket is removed, and the next one has the session`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let first = try #require(stage.daemon)
            // Another file that goes does not count.
            FileTree.makeDirectory("\(stage.directory)/run/other")
            FileTree.remove("\(stage.directory)/run/other")
            try await stage.ringback("status", status: 0)
            FileTree.remove("\(stage.directory)/run")
            try await first.end().expect(0, says: "\(stage.socket) was removed")
            FileTree.makeDirectory("\(stage.directory)/run")
            try await stage.startDaemon()
            #expect(try await stage.token() != nil)
        }
    }

    @Test func `the daemon leaves another daemon's socket at its path`() async throws {
        try await Stage.play { stage in
            let former = "\(stage.socket).former"
            #expect(unsafe rename(stage.socket, former) == 0)
            let other = try stage.start(
                "ringbackd",
                ["--config", stage.configuration, "--socket", stage.socket, "--state", "\(stage.directory)/other"])
            _ = try await Connection.first(to: .unix(stage.socket))
            #expect(try await stage.stopDaemon().status == 0)
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock", "ringback.sock.former"])
            try await stage.ringback("status", status: 0)
            other.send(SIGTERM)
            #expect(try await other.end().status == 0)
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock.former"])
        }
    }

    @Test func `SK-08: the daemon's files are closed to others`() async throws {
        try await Stage.play { stage in
            #expect(FileTree.mode(of: stage.socket) == 0o600)
            #expect(FileTree.mode(of: "\(stage.directory)/run") == 0o700)
            #expect(FileTree.mode(of: stage.state) == 0o700)
            try await stage.signIn()
            for name in FileTree.names(in: stage.state) where name != "vault" {
                #expect(FileTree.mode(of: "\(stage.state)/\(name)") == 0o600, "\(name)")
            }
            #expect(FileTree.mode(of: "\(stage.state)/vault") == 0o700)
            #expect(FileTree.names(in: "\(stage.state)/vault").count == 1)
            for name in FileTree.names(in: "\(stage.state)/vault") {
                #expect(FileTree.mode(of: "\(stage.state)/vault/\(name)") == 0o600, "\(name)")
            }
        }
    }

    @Test func `the daemon reports the peer as the kernel does`() async throws {
        try await Stage.play { stage in
            let peer = try await stage.api("GET", "/v1/peer")
            #expect(peer["uid"]?.integer == Int(getuid()) && peer["pid"]?.integer == Int(getpid()))
            #expect(peer["policy"]?.string == "same-uid")
            #expect(peer["operations"]?.array?.contains("token") == true)
        }
    }
}

extension String {
    /// The redirect URI that an authorization URL names, unescaped as far as it is needed here.
    fileprivate var redirectPort: String {
        let escaped = (try? LocalURL(self))?["redirect_uri"] ?? ""
        return escaped.replacing("%3A", with: ":").replacing("%2F", with: "/")
    }
}
