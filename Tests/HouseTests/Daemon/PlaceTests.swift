import Glibc
import RingbackBase
import Testing

@Suite struct `The daemon's places` {
    private func refused(
        _ stage: Stage, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> Output {
        let ended = try await stage.run("ringbackd", arguments, environment: environment)
        #expect(ended.out.isEmpty && ended.err.hasPrefix("ringbackd: "), "\(ended)")
        return ended
    }

    private func link(_ path: String, to target: String) { unsafe symlink(target, path) }
    private func give(_ path: String, to uid: UInt32) { unsafe chown(path, uid, uid) }

    @Test func `a socket that another daemon answers at is not taken from it`() async throws {
        try await Stage.playSignedIn { stage in
            try await refused(stage, ["--state", "\(stage.directory)/other-state"]).expect(
                1, says: stage.socket, "--socket PATH")
            // The first one's clients did not notice, and the second keeps nothing.
            #expect(try await stage.token() != nil)
            #expect(try await stage.api("GET", "/v1/status")["pid"]?.integer == stage.daemon.map { Int($0.pid) })
            let third = try stage.start(
                "ringbackd",
                ["--state", "\(stage.directory)/other-state", "--socket", "\(stage.directory)/run/2.sock"],
                environment: ["NOTIFY_SOCKET": stage.notices.path])
            try await stage.notices.wait(for: "READY=1", after: 1)
            let status = try await stage.ringback(
                "status", "--json", environment: ["RINGBACK_SOCK": "\(stage.directory)/run/2.sock"])
            #expect(try status.json["pid"]?.integer == Int(third.pid), "\(status)")
        }
    }

    @Test func `a socket that a killed daemon of another state left is replaced`() async throws {
        try await Stage.play { stage in
            stage.daemon?.send(SIGKILL)
            _ = try await stage.daemon?.end()
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock"])
            try await stage.startDaemon(["--state", "\(stage.directory)/other-state"])
            try await stage.ringback("status", status: 0)
            #expect(FileTree.mode(of: stage.socket) == 0o600)
        }
    }

    @Test func `SK-06: what stands at the socket's path and is none is left there`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write("somebody's file", to: stage.socket)
            try await refused(stage, ["--state", stage.state]).expect(
                1, says: "\(stage.socket) is not a socket of yours")
            #expect(FileTree.text(of: stage.socket) == "somebody's file")
            FileTree.remove(stage.socket)
            link(stage.socket, to: "\(stage.directory)/elsewhere.sock")
            try await refused(stage, ["--state", stage.state]).expect(1, says: stage.socket)
            #expect(FileTree.names(in: stage.directory).contains("elsewhere.sock") == false)
            let long = "\(stage.directory)/run/" + String(repeating: "s", count: 100)
            try await refused(stage, ["--state", stage.state, "--socket", long]).expect(1, says: "--socket")
        }
    }

    /// SK-06.
    @Test func `a socket directory that is a link, missing its parent, or open to others is refused`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let run = "\(stage.directory)/run"
            link("\(stage.directory)/link", to: run)
            try await refused(stage, ["--state", stage.state, "--socket", "\(stage.directory)/link/s"]).expect(
                1, says: "symbolic link")
            for mode: mode_t in [0o710, 0o701, 0o755, 0o777, 0o1777] {
                FileTree.setMode(mode, of: run)
                try await refused(stage, ["--state", stage.state]).expect(1, says: "chmod 700 \(run)")
            }
            FileTree.setMode(0o700, of: run)
            try await refused(stage, ["--state", stage.state, "--socket", "/tmp/ringback-test.sock"]).expect(
                1, says: "/tmp")
            try await refused(stage, ["--state", stage.state, "--socket", "\(run)/a/b/ringback.sock"]).expect(
                1, says: "\(run)/a/b")
            try await refused(stage, ["--state", stage.state, "--socket", "ringback.sock"]).expect(1, says: "directory")
            #expect(FileTree.names(in: run) == [])
            // The directory itself is made, for the user alone.
            try await stage.startDaemon(["--socket", "\(run)/new/ringback.sock"])
            #expect(FileTree.mode(of: "\(run)/new") == 0o700)
            #expect(FileTree.mode(of: "\(run)/new/ringback.sock") == 0o600)
        }
    }

    @Test func `SK-08: a state directory that is a link, a file, or open to others is refused`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            FileTree.makeDirectory(stage.state)
            let link = "\(stage.directory)/link"
            self.link(link, to: stage.state)
            for path in [link, "\(link)/"] {
                try await refused(stage, ["--state", path]).expect(
                    1, says: "\(link) is a symbolic link or not a directory; remove it", "--state")
            }
            try await refused(stage, ["--state", stage.configuration]).expect(1, says: stage.configuration)
            for mode: mode_t in [0o710, 0o701, 0o755] {
                FileTree.setMode(mode, of: stage.state)
                let advice = "(mode \(String(mode, radix: 8))). Run: chmod 700 \(stage.state)"
                try await refused(stage, ["--state", stage.state]).expect(1, says: stage.state, advice)
            }
            FileTree.setMode(0o700, of: stage.state)
            #expect(FileTree.names(in: "\(stage.directory)/run") == [])
            // Made with its parents, each for the user alone.
            try await stage.startDaemon(["--state", "\(stage.directory)/a/b"])
            for path in ["a", "a/b"] { #expect(FileTree.mode(of: "\(stage.directory)/\(path)") == 0o700) }
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `what belongs to another user is refused, and they are named`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let run = "\(stage.directory)/run"
            FileTree.makeDirectory(stage.state)
            give(run, to: Stranger.uid)
            try await refused(stage, ["--state", stage.state]).expect(1, says: "\(run) belongs to another user")
            give(run, to: 0)
            give(stage.state, to: Stranger.uid)
            try await refused(stage, ["--state", stage.state]).expect(
                1, says: "\(stage.state) belongs to uid \(Stranger.uid), not to uid 0", "--state")
            give(stage.state, to: 0)
            for path in [stage.configuration, "\(stage.directory)/config"] {
                give(path, to: Stranger.uid)
                try await refused(stage, ["--state", stage.state]).expect(78, says: "chown 0 \(path)")
                give(path, to: 0)
            }
        }
    }

    @Test func `a directory above the socket or the state that others can write to is refused`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let shared = "\(stage.directory)/shared"
            for name in ["", "/a", "/a/b"] { FileTree.makeDirectory(shared + name) }
            link("\(stage.directory)/link", to: "shared/a")
            for mode: mode_t in [0o777, 0o707] {
                FileTree.setMode(mode, of: shared)
                for place in ["\(shared)/a/b", "\(stage.directory)/link/b", "\(shared)/a/../a/new"] {
                    for arguments in [
                        ["--state", "\(place)/state"],
                        ["--state", stage.state, "--socket", "\(place)/s/ringback.sock"],
                    ] {
                        try await refused(stage, arguments).expect(
                            1, says: "\(shared) can be written by others", "chmod go-w \(shared)")
                    }
                }
                let own = try await stage.run(
                    "ringbackd", ["--private", "\(shared)/a/own"], status: 1,
                    says: "chmod go-w \(shared)\nOr choose another")
                #expect(!own.err.contains("--socket"), "\(own)")
            }
            #expect(FileTree.names(in: "\(shared)/a") == ["b"] && FileTree.names(in: "\(shared)/a/b") == [])
            // Nobody else can rename what is ours in a directory like /tmp.
            FileTree.setMode(0o1777, of: shared)
            try await stage.startDaemon(["--state", "\(shared)/a/b/state"])
            #expect(try await stage.stopDaemon().status == 0)
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `SK-06: a directory or a link of another user above the socket or the state is refused`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let theirs = "\(stage.directory)/theirs"
            for name in ["", "/a"] { FileTree.makeDirectory(theirs + name) }
            give(theirs, to: Stranger.uid)
            let link = "\(stage.directory)/link"
            self.link(link, to: "\(stage.directory)/run")
            unsafe lchown(link, Stranger.uid, Stranger.uid)
            for (place, path) in [("\(theirs)/a", theirs), ("\(link)/a", link)] {
                for arguments in [
                    ["--state", "\(place)/state"], ["--state", stage.state, "--socket", "\(place)/s/ringback.sock"],
                    ["--private", "\(place)/own"],
                ] {
                    try await refused(stage, arguments).expect(1, says: "\(path) belongs to uid \(Stranger.uid)")
                }
            }
        }
    }

    /// SK-07.
    @Test func `a runtime directory that is missing, foreign or open to others is refused, with advice`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let runtime = "\(stage.directory)/runtime"
            func start(_ directory: String?) async throws -> Output {
                var environment = ["HOME": "\(stage.directory)/home", "PATH": "/usr/bin:/bin"]
                environment["XDG_RUNTIME_DIR"] = directory
                environment["RINGBACK_CONFIG"] = stage.configuration
                return try await Program("ringbackd", [], environment: environment).end().expect(
                    1, says: "RINGBACK_SOCK=PATH")
            }
            #expect(try await start(nil).err.contains("XDG_RUNTIME_DIR is not set"))
            #expect(try await start(runtime).err.contains("loginctl enable-linger"))
            #expect(try await start("run").err.contains("not an absolute path"))
            FileTree.makeDirectory(runtime)
            for mode: mode_t in [0o777, 0o720, 0o702, 0o1777] {
                FileTree.setMode(mode, of: runtime)
                #expect(try await start(runtime).err.contains("chmod 700 \(runtime)"))
            }
            FileTree.setMode(0o700, of: runtime)
            guard Stranger.isPossible else { return }
            give(runtime, to: Stranger.uid)
            let foreign = try await start(runtime)
            #expect(
                foreign.err.contains("belongs to uid \(Stranger.uid)") && foreign.err.contains("sudo"), "\(foreign)")
            #expect(FileTree.names(in: runtime) == [])
        }
    }

    @Test func `what others can write is no configuration`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let directory = "\(stage.directory)/config"
            FileTree.makeDirectory(stage.dropIns)
            let dropIn = "\(stage.dropIns)/play.toml"
            try stage.write(
                "[accounts.play]\nissuer = \"https://id.example.org\"\nclient_id = \"c\"\n", to: dropIn)
            try await stage.ringback("config", "check", status: 0)
            for (path, wrong, right) in [
                (stage.configuration, 0o620, 0o600), (stage.configuration, 0o602, 0o600),
                (stage.configuration, 0o666, 0o600), (directory, 0o770, 0o700), (directory, 0o777, 0o700),
                (dropIn, 0o666, 0o600), (stage.dropIns, 0o775, 0o700),
            ] as [(String, mode_t, mode_t)] {
                FileTree.setMode(wrong, of: path)
                try await refused(stage, ["--state", stage.state]).expect(78, says: "chmod go-w \(path)")
                try await stage.ringback("config", "check", status: 78, says: "chmod go-w \(path)")
                FileTree.setMode(right, of: path)
            }
            // A directory for all users, such as /tmp, is left as it is.
            FileTree.setMode(0o1777, of: directory)
            let shared = try await stage.ringback("config", "check", status: 78, says: "move the file to a directory")
            #expect(!shared.err.contains("chmod"), "\(shared)")
            FileTree.setMode(0o700, of: directory)
            // Others may read what holds no secret.
            FileTree.setMode(0o644, of: stage.configuration)
            try await stage.ringback("config", "check", status: 0)
        }
    }

    @Test func `SK-07: without XDG_RUNTIME_DIR the socket's place must be named`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let nothing = ["RINGBACK_SOCK": "", "XDG_RUNTIME_DIR": ""]
            try await refused(stage, ["--state", stage.state], environment: nothing).expect(
                1, says: "XDG_RUNTIME_DIR", "--socket PATH", "RINGBACK_SOCK")
            try await stage.ringback("status", environment: nothing, status: 2, says: "XDG_RUNTIME_DIR")

            let named = ["RINGBACK_SOCK": stage.socket, "XDG_RUNTIME_DIR": ""]
            let program = try stage.start(
                "ringbackd", ["--state", stage.state],
                environment: named.merging(["NOTIFY_SOCKET": stage.notices.path]) { first, _ in first })
            try await stage.notices.wait(for: "READY=1", after: 0)
            try await stage.ringback("status", environment: named, status: 0)
            program.send(SIGTERM)
            #expect(try await program.end().status == 0)

            // The usual place, below the directory of the session.
            let usual = ["RINGBACK_SOCK": "", "NOTIFY_SOCKET": stage.notices.path]
            let count = stage.notices.count
            _ = try stage.start("ringbackd", ["--state", stage.state], environment: usual)
            try await stage.notices.wait(for: "READY=1", after: count)
            #expect(FileTree.mode(of: "\(stage.directory)/run/ringback") == 0o700)
            #expect(FileTree.mode(of: "\(stage.directory)/run/ringback/ringback.sock") == 0o600)
            try await stage.ringback("status", environment: usual, status: 0)
        }
    }

    @Test func `without a home the state's place must be named`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try await refused(stage, [], environment: ["XDG_STATE_HOME": "", "HOME": ""]).expect(
                1, says: "--state DIRECTORY")
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `a user without a passwd entry has a daemon and a command line as others have`() async throws {
        guard try await Stranger.canRunTheDaemon() else {
            try Test.cancel("other users cannot run \(Programs.path("ringbackd")) on this machine")
        }
        let uid = Stranger.namedUID
        try #require(unsafe getpwuid(uid) == nil)
        try await Stage.play(startsDaemon: false) { stage in
            let ordinary = try await stage.startOrdinaryDaemon(environment: [:], asUser: uid)
            for verb in ["accounts", "status"] {
                let output = try await stage.run(
                    asUser: uid, [Programs.path("ringback"), verb], environment: ["RINGBACK_SOCK": ordinary.socket])
                #expect(output.status == 0 && !output.out.isEmpty, "\(output)")
            }
        }
    }
}
