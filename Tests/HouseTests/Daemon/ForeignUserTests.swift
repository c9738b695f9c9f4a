import Glibc
import RingbackBase
import Testing

/// What another user of the machine can do. Only root can become one: elsewhere these tests are skipped.
private let canBecomeNobody = geteuid() == 0 && ["/usr/bin/setpriv", "/bin/bash"].allSatisfy(isProgram)

private func isProgram(_ path: String) -> Bool { unsafe access(path, X_OK) == 0 }

@Suite(.enabled(if: canBecomeNobody, "needs root, setpriv and bash")) struct `Another user of the machine` {
    /// Runs a script of bash as nobody, with the callback in `TARGET`, `HOST` and `PORT`.
    private func asNobody(_ script: String, _ callback: LocalURL, _ stage: Stage) async throws -> Output {
        try await stage.run(
            "/usr/bin/setpriv",
            ["--reuid=65534", "--regid=65534", "--clear-groups", "/bin/bash", "-c", "cd /; \(script)"],
            environment: ["TARGET": callback.target, "HOST": callback.authority, "PORT": String(callback.port)])
    }

    private let request = #"printf 'GET %s HTTP/1.1\r\nHost: %s\r\n\r\n' "$TARGET" "$HOST" >&3"#

    @Test func `NAT-43: another user cannot complete a sign-in with the genuine callback`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let callback = try await Browser.signIn(at: flow.authorizationURL)
            let foreign = try await asNobody("exec 3<>/dev/tcp/127.0.0.1/$PORT; \(request); cat <&3", callback, stage)
            #expect(foreign.out.hasPrefix("HTTP/1.1 404 "), "\(foreign)")
            let denial = try callback.setting("code", to: nil).setting("error", to: "access_denied")
            let denied = try await asNobody("exec 3<>/dev/tcp/127.0.0.1/$PORT; \(request); cat <&3", denial, stage)
            // Not to be told from a path that nobody waits at.
            let elsewhere = try await asNobody(
                "exec 3<>/dev/tcp/127.0.0.1/$PORT; \(request); cat <&3", LocalURL("http://\(callback.authority)/x"),
                stage)
            #expect(denied.out == foreign.out && elsewhere.out == foreign.out)
            try await expectUntouched(flow, callback, stage)
        }
    }

    @Test func `another user cannot complete a sign-in by closing the connection at once`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let callback = try await Browser.signIn(at: flow.authorizationURL)
            // A socket that has vanished is nobody's: its uid must not be read as the owner's.
            let script = "for n in {1..50}; do exec 3<>/dev/tcp/127.0.0.1/$PORT; \(request); exec 3>&-; done"
            try await asNobody(script, callback, stage).expect(0)
            try await expectUntouched(flow, callback, stage)
        }
    }

    @Test(.enabled(if: isProgram("/usr/bin/perl"), "needs perl"))
    func `SK-01: another user's connection to the socket is closed without a byte`() async throws {
        let script = #"""
            use IO::Socket::UNIX;
            my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or do { print "refused"; exit };
            print "connected, ";
            $SIG{PIPE} = "IGNORE";
            syswrite $s, "GET /v1/status HTTP/1.1\r\nHost: ringback\r\n\r\n";
            print sysread($s, my $answer, 4096) ? "answered $answer" : "no byte";
            """#
        try await Stage.play { stage in
            let arguments = [
                "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/perl", "-e", script, stage.socket,
            ]
            try await stage.run("/usr/bin/setpriv", arguments, out: "refused")
            // Somebody opened the way to it: the kernel's word on the peer still stands.
            for path in [stage.directory, "\(stage.directory)/run"] { FileTree.setMode(0o755, of: path) }
            FileTree.setMode(0o666, of: stage.socket)
            let foreign = try await stage.run("/usr/bin/setpriv", arguments)
            #expect(foreign.out == "connected, no byte", "\(foreign)")
            try await stage.ringback("status", status: 0)
        }
    }

    /// As root the stage's programs have another uid than the directory, which is how it is after sudo or su.
    @Test(arguments: [false, true])
    func `the command line names a runtime directory that sudo kept`(hasDaemon: Bool) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let runtime = "\(stage.directory)/runtime"
            for path in [runtime, "\(runtime)/ringback"] {
                FileTree.makeDirectory(path)
                unsafe chown(path, Stranger.uid, Stranger.uid)
            }
            FileTree.setMode(0o711, of: stage.directory)
            if hasDaemon {
                let script = #"""
                    use IO::Socket::UNIX;
                    my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 16) or die "no socket";
                    $| = 1;
                    print "listening\n";
                    while (my $c = $s->accept) { close $c }
                    """#
                let server = try stage.start(
                    Stranger.setpriv,
                    Stranger.becoming(Stranger.uid) + [
                        "/usr/bin/perl", "-e", script, "\(runtime)/ringback/ringback.sock",
                    ])
                _ = try await server.line("the other user's server")
            }
            let environment = ["XDG_RUNTIME_DIR": runtime, "RINGBACK_SOCK": ""]
            for arguments in [["status"], ["token", "work"], ["doctor", "--json"]] {
                let output = try await stage.run("ringback", arguments, environment: environment)
                let isDoctor = arguments[0] == "doctor"
                let checks = isDoctor ? try output.json["checks"]?.array ?? [] : []
                // Other checks have commands of their own.
                let text = isDoctor ? checks.first { $0["check"] == "socket" }?.text ?? "" : output.out + output.err
                #expect(output.status == (isDoctor ? 1 : 2), "\(output)")
                for words in [
                    "XDG_RUNTIME_DIR belongs to uid \(Stranger.uid), and this process has uid 0: sudo and su keep",
                    "run the command as that user, without sudo and su",
                ] { #expect(text.contains(words), "\(arguments): \(output)") }
                #expect(!text.contains("ringbackd &") && !text.contains("systemctl"), "\(arguments): \(output)")
                #expect(text.contains("RINGBACK_SERVER_UID=\(Stranger.uid)") == hasDaemon, "\(arguments): \(output)")
            }
        }
    }

    private func expectUntouched(_ flow: Stage.PendingFlow, _ callback: LocalURL, _ stage: Stage) async throws {
        #expect(try await stage.api("GET", "/v1/flows/\(flow.id)")["status"]?.string == "pending")
        #expect(try await stage.sandbox.counters().requests("token") == 0)
        #expect(try await Browser.deliver(callback).answer.location == "/done")
    }
}
