import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `The other end of the socket` {
    /// Sends a request over `client` and prints the response, if there is one.
    private static let asking = """
        try:
            client.settimeout(20)
            client.sendall(b"GET /v1/peer HTTP/1.1\\r\\nHost: r\\r\\nConnection: close\\r\\n\\r\\n")
            while piece := client.recv(65536):
                sys.stdout.write(piece.decode())
        except OSError:
            pass
        """

    /// Connects from an abstract address whose name looks like somebody's uid.
    private static let named = """
        import os, socket, sys
        client = socket.socket(socket.AF_UNIX)
        client.bind(f"\\0@;uid={sys.argv[2]};{os.getpid()}")
        client.connect(sys.argv[1])
        \(asking)
        """

    /// Connects as one user and hands the connection to another.
    private static let handedOn = """
        import os, socket, sys
        def become(uid):
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        here, there = socket.socketpair()
        if os.fork() == 0:
            become(int(sys.argv[2]))
            opened = socket.socket(socket.AF_UNIX)
            opened.connect(sys.argv[1])
            socket.send_fds(there, [b"x"], [opened.fileno()])
            os._exit(0)
        _, descriptors, _, _ = socket.recv_fds(here, 1, 1)
        os.wait()
        become(int(sys.argv[3]))
        client = socket.socket(fileno=descriptors[0])
        \(asking)
        """

    /// A daemon of an ordinary user, whose socket everybody can reach.
    private func playOpen(_ test: (Stage, String) async throws -> Void) async throws {
        guard try await Stranger.canRunTheDaemon() else {
            try Test.cancel("nobody cannot run \(Programs.path("ringbackd")) on this machine")
        }
        try await Stage.play(startsDaemon: false) { stage in
            let ordinary = try await stage.startOrdinaryDaemon(environment: [:])
            for path in ["theirs", "theirs/run"] { FileTree.setMode(0o777, of: "\(stage.directory)/\(path)") }
            FileTree.setMode(0o666, of: ordinary.socket)
            try await test(stage, ordinary.socket)
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `SK-02, ADV-09: an address that names a uid makes nobody that user`() async throws {
        try await playOpen { stage, socket in
            for name in ["0", "\(Stranger.uid)"] {
                let arguments = ["/usr/bin/python3", "-c", Self.named, socket, name]
                let own = try await stage.run(asUser: Stranger.uid, arguments)
                #expect(own.status == 0 && own.out.contains("\"uid\":\(Stranger.uid)"), "\(own)")
                let other = try await stage.run(asUser: Stranger.namedUID, arguments)
                #expect(other.out.isEmpty, "\(other)")
            }
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `SK-04: a connection that is handed on counts as its opener's`() async throws {
        try await playOpen { stage, socket in
            for (opener, user) in [
                (Stranger.uid, Stranger.namedUID), (Stranger.namedUID, Stranger.uid),
            ] {
                let asked = try await stage.run(
                    "/usr/bin/python3", ["-c", Self.handedOn, socket, "\(opener)", "\(user)"])
                let isServed = asked.out.contains("\"uid\":\(Stranger.uid)")
                #expect(asked.status == 0 && isServed == (opener == Stranger.uid), "\(asked)")
                #expect(isServed || asked.out.isEmpty, "\(asked)")
            }
        }
    }

    @Test func `SK-11: more connections than the daemon has descriptors for do not end its work`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let ready = stage.notices.count
            _ = try stage.start(
                "/usr/bin/prlimit", ["--nofile=64:64", Programs.path("ringbackd"), "--state", stage.state],
                environment: ["NOTIFY_SOCKET": stage.notices.path])
            try await stage.notices.wait(for: "READY=1", after: ready)
            try await stage.signIn()
            var crowd: [Connection] = []
            for _ in 0..<120 { crowd.append(try stage.connect()) }
            await Connection.send("GET /v1/status HTTP/1.1\r\nHost: r", to: crowd)
            crowd.removeAll()
            #expect(try await stage.api("GET", "/v1/status").status == 200)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.token() != nil)
        }
    }

    @Test func `SK-14, ADV-08: a library that a request names is read as certificates, and not loaded`() async throws {
        try await Stage.playSignedIn { stage in
            let daemon = try #require(stage.daemon)
            let places: [String] = ["x86_64", "aarch64"].map { "/lib/\($0)-linux-gnu/libBrokenLocale.so.1" }
            let library = try #require(places.first { FileTree.mode(of: $0) != nil })
            let registration: JSON = [
                "account": "play", "issuer": .string(stage.sandbox.origin), "ca_file": .string(library),
            ]
            let refused = try await stage.api("POST", "/v1/registrations", registration, status: 400)
            #expect(refused["detail"]?.string?.contains("ca_file") == true, "\(refused)")
            for pid in [daemon.pid] + Processes.descendants(of: daemon.pid) {
                #expect(FileTree.text(of: "/proc/\(pid)/maps")?.contains(library) != true)
            }
            // A restricted socket, which may be forwarded to another machine, reads no file at all.
            let exposed = try await stage.ringback("expose", "guest", "--account", "work", "--json")
            let socket = try #require(try exposed.json["socket"]?.string, "\(exposed)")
            let guest = try Connection(to: .unix(socket))
            await guest.send(Stage.request("POST", "/v1/registrations", registration.text))
            #expect(try await guest.answer().status == 403)
        }
    }
}
