import Glibc
import RingbackBase
import Testing

/// Variables that would change how a program that uses TLS, proxies and shared libraries behaves.
private func hostileEnvironment(_ stage: Stage, proxyPort: Int) -> [String: String] {
    var variables = [
        "SSLKEYLOGFILE": "\(stage.directory)/keys", "LD_LIBRARY_PATH": "\(stage.directory)/bin",
        "LD_BIND_NOW": "1", "OPENSSL_CONF": "\(stage.directory)/none", "SSL_CERT_FILE": "/dev/null",
        "CURL_CA_BUNDLE": "/dev/null", "SWIFT_BACKTRACE": "enable=yes", "GCONV_PATH": stage.directory,
    ]
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        variables[name] = "http://127.0.0.1:\(proxyPort)"
    }
    return variables
}

private let commandConfiguration = """
    [accounts.work]
    issuer = "{sandbox}"
    client_id = "ringback-demo"
    client_secret_command = ["{stage}/bin/secret"]

    """

private let openssl = "/usr/bin/openssl"
private let hasOpenSSL = unsafe access(openssl, X_OK) == 0

/// True with the capability CAP_SYS_PTRACE, the 19th. Without it nobody can look into a process that is not dumpable.
private let maySeeAll: Bool = {
    let line = (FileTree.text(of: "/proc/self/status") ?? "").split(separator: "\n").first { $0.hasPrefix("CapEff:") }
    let digits = line?.split(whereSeparator: \.isWhitespace).last ?? ""
    return (UInt64(digits, radix: 16) ?? 0) >> 19 & 1 == 1
}()

@Suite struct `The daemon's process` {
    /// SK-24, SK-26.
    @Test func `the daemon ignores proxy variables and passes none on`() async throws {
        try await Stage.play(commandConfiguration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": "s"]]])
            let seen = "\(stage.directory)/seen"
            try stage.write(
                "#!/bin/sh\nenv >\(seen)\necho s\n", to: "\(stage.directory)/bin/secret", mode: 0o700)
            let proxy = try Trap()
            var environment = hostileEnvironment(stage, proxyPort: proxy.port)
            // That there is somebody to fall for it is part of the proof.
            let victim = try stage.start(
                "/usr/bin/curl", ["-s", "\(stage.sandbox.origin)/"], environment: environment)
            #expect(try await proxy.hasVisitor(within: Bound.usual))
            _ = try await victim.end()

            // Files of curl's in the home directory are not read either.
            let home = "\(stage.directory)/home"
            try stage.write("proxy = \"http://127.0.0.1:\(proxy.port)\"\n", to: "\(home)/.curlrc")
            try stage.write("machine 127.0.0.1 login mallory password of-netrc\n", to: "\(home)/.netrc")

            environment["NOTIFY_SOCKET"] = stage.notices.path
            _ = try stage.start("ringbackd", ["--state", stage.state], environment: environment)
            try await stage.notices.wait(for: "READY=1", after: 0)
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            // As Basic authentication would have it: "mallor" in Base64.
            #expect(try await !stage.sandbox.logText().contains("bWFsbG9y"))
            #expect(try await !proxy.hasVisitor())
            let inherited = try #require(FileTree.text(of: seen))
            for name in environment.keys { #expect(!inherited.contains("\(name)="), "\(inherited)") }
            #expect(inherited.contains("HOME="))
        }
    }

    @Test(.enabled(if: maySeeAll, "needs root with CAP_SYS_PTRACE: the daemon is not dumpable"))
    func `SK-22: the daemon restarts itself without variables of the dynamic loader`() async throws {
        let places: [String] = ["x86_64", "aarch64"].map { "/lib/\($0)-linux-gnu/libBrokenLocale.so.1" }
        let library = try #require(places.first { (path: String) in unsafe access(path, R_OK) == 0 })
        try await Stage.play(startsDaemon: false) { stage in
            let variables = [
                "LD_PRELOAD": library, "LD_LIBRARY_PATH": stage.directory, "GLIBC_TUNABLES": "glibc.malloc.check=1",
            ]
            // An ordinary program keeps all of it.
            let other = try stage.start("/bin/sh", ["-c", "echo here; sleep 600; :"], environment: variables)
            _ = try await other.line()
            #expect(FileTree.text(of: "/proc/\(other.pid)/maps")?.contains(library) == true)
            var environment = variables
            environment["NOTIFY_SOCKET"] = stage.notices.path
            let daemon = try stage.start("ringbackd", ["--state", stage.state], environment: environment)
            try await stage.notices.wait(for: "READY=1", after: 0)
            for pid in [daemon.pid] + Processes.descendants(of: daemon.pid) {
                let maps = FileTree.text(of: "/proc/\(pid)/maps") ?? ""
                #expect(maps.contains("ringbackd") && !maps.contains(library), "\(maps)")
                let inherited = FileTree.text(of: "/proc/\(pid)/environ") ?? ""
                #expect(inherited.contains("HOME="))
                for name in variables.keys { #expect(!inherited.contains("\(name)="), "\(inherited)") }
                #expect(FileTree.text(of: "/proc/\(pid)/comm")?.hasPrefix("ringbackd") == true || pid != daemon.pid)
            }
            try await stage.signIn()
        }
    }

    @Test(.enabled(if: hasOpenSSL, "needs \(openssl)"))
    func `SK-22, SK-23, SK-25: the daemon logs no TLS keys and trusts the configured authority only`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let (key, certificate) = ("\(stage.directory)/key.pem", "\(stage.directory)/ca.pem")
            try await stage.run(
                openssl,
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
                ], status: 0)
            FileTree.setMode(0o600, of: certificate)
            let server = try stage.start(
                openssl, ["s_server", "-accept", "127.0.0.1:0", "-www", "-key", key, "-cert", certificate])
            let line = try await server.line("the TLS server's port") { $0.hasPrefix("ACCEPT ") }
            let origin = "https://127.0.0.1:\(line.split(separator: ":").last ?? "")"
            try stage.write(
                configuration: """
                    [accounts.known]
                    issuer = "\(origin)"
                    client_id = "c"
                    ca_file = "\(certificate)"

                    [accounts.unknown]
                    issuer = "\(origin)"
                    client_id = "c"

                    """)
            let proxy = try Trap()
            var environment = hostileEnvironment(stage, proxyPort: proxy.port)
            // Named by the environment instead of the configuration, an authority is none.
            for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE"] { environment[name] = certificate }
            environment["NOTIFY_SOCKET"] = stage.notices.path
            _ = try stage.start("ringbackd", ["--state", stage.state], environment: environment)
            try await stage.notices.wait(for: "READY=1", after: 0)
            // The handshake was done: what failed is what the server said then.
            try await stage.api("POST", "/v1/accounts/known/sign-in", status: 502, code: "invalid_provider_response")
            try await stage.api("POST", "/v1/accounts/unknown/sign-in", status: 503, code: "provider_unreachable")
            #expect(try await !proxy.hasVisitor())
            #expect(!FileTree.names(in: stage.directory).contains("keys"))
        }
    }

    /// The daemon looks whose `free` other libraries find, and says so if it is not its own.
    @Test func `every library of the daemon frees memory by a function that zeroes it`() async throws {
        try await Stage.play { stage in
            let daemon = try #require(stage.daemon)
            // It would have been said before.
            _ = try await daemon.errorLine("the last word of its start") { $0.contains("Listening at") }
            let said = daemon.errors.value.text
            #expect(!said.contains("is not zeroed"), "\(said)")
        }
    }

    @Test func `SK-15, SK-16: no process of the user can read the daemon's memory`() async throws {
        guard try await Stranger.canRunTheDaemon() else {
            try Test.cancel("nobody cannot run \(Programs.path("ringbackd")) on this machine")
        }
        try await Stage.play(startsDaemon: false) { stage in
            let ordinary = try await stage.startOrdinaryDaemon(environment: ["CANARY": "of-the-environment"])
            let helpers = Processes.descendants(of: ordinary.daemon.pid)
            #expect(helpers.count == 1, "\(helpers)")
            for pid in [ordinary.daemon.pid] + helpers {
                for name in ["environ", "maps", "mem", "auxv", "io"] {
                    let arguments = ordinary.prefix + ["/bin/cat", "/proc/\(pid)/\(name)"]
                    try await stage.run(
                        arguments[0], Array(arguments.dropFirst()), status: 1, out: "", says: "Permission denied")
                }
            }
            for pid in [ordinary.daemon.pid] + helpers {
                let limits = FileTree.text(of: "/proc/\(pid)/limits") ?? ""
                let cores = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
                #expect(cores?.split(separator: " ").dropFirst(4).prefix(2) == ["0", "0"], "\(limits)")
            }
            // An honest program of the same user can be looked at: it is not this machine that forbids it.
            let other = try stage.start(
                ordinary.prefix[0], ordinary.prefix.dropFirst() + ["/bin/sh", "-c", "echo here; exec sleep 600"],
                environment: ["CANARY": "of-the-environment"])
            _ = try await other.line()
            let arguments = ordinary.prefix + ["/bin/cat", "/proc/\(other.pid)/environ"]
            try await stage.run(arguments[0], Array(arguments.dropFirst()), status: 0)
        }
    }

    @Test(arguments: [SIGSEGV, SIGABRT, SIGILL, SIGBUS, SIGFPE, SIGTRAP, SIGQUIT])
    func `SK-16, SK-17, SK-18: a crash of the daemon prints nothing and leaves no core`(signal: Int32) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let environment = [
                "NOTIFY_SOCKET": stage.notices.path,
                // The runtime would start this program after a crash.
                "SWIFT_BACKTRACE":
                    "enable=yes,color=no,interactive=no,swift-backtrace=\(stage.directory)/bin/after-crash",
            ]
            try stage.write(
                "#!/bin/sh\necho here >'\(stage.directory)/crashed'\n", to: "\(stage.directory)/bin/after-crash",
                mode: 0o700)
            let arguments = ["--state", stage.state, "--log-level", "critical"]
            let daemon = try stage.start("ringbackd", arguments, environment: environment)
            try await stage.notices.wait(for: "READY=1", after: 0)
            try await stage.signIn()
            daemon.send(signal)
            let ended = try await daemon.end().expect(128 + signal, out: "")
            // Before its first line, the runtime may say that it has found no program to start after a crash.
            let said = ended.err.split(separator: "\n").filter { !$0.contains("unable to locate swift-backtrace") }
            #expect(said.isEmpty, "\(ended)")
            #expect(!FileTree.names(in: stage.directory).contains("crashed"))
            // The helper went with it: it shares the standard error that has just ended.
        }
    }

    @Test func `the kernel keeps the daemon, and not its helper, from starting programs`() async throws {
        try await Stage.play { stage in
            let daemon = try #require(stage.daemon)
            let helper = try #require(Processes.descendants(of: daemon.pid).first)
            func status(_ pid: Int32, _ name: String) -> String? {
                FileTree.text(of: "/proc/\(pid)/status")?.split(separator: "\n").first { $0.hasPrefix("\(name):\t") }
                    .map { String($0.dropFirst(name.count + 2)) }
            }
            #expect(status(daemon.pid, "NoNewPrivs") == "1")
            let filters = [daemon.pid, helper].map { Int(status($0, "Seccomp_filters") ?? "") ?? 0 }
            #expect(filters[0] == filters[1] + 1)
            let answer = try await stage.api("GET", "/v1/status")
            #expect(answer.json["confinement"]?["seccomp"]?.bool == true)
        }
    }

    @Test func `a daemon whose helper was killed ends with status 1`() async throws {
        try await Stage.play { stage in
            let daemon = try #require(stage.daemon)
            kill(try #require(Processes.descendants(of: daemon.pid).first), SIGKILL)
            let ended = try await daemon.end().expect(1)
            #expect(ended.err.contains("The helper process has ended"), "\(ended)")
        }
    }

    @Test func `a killed daemon leaves no command running`() async throws {
        try await Stage.play(commandConfiguration) { stage in
            // The pipe ends when the command has ended, and all that it has started.
            let pipe = "\(stage.directory)/alive"
            unsafe mkfifo(pipe, 0o600)
            try stage.write(
                "#!/bin/sh\nexec 9>'\(pipe)'\nsleep 600 &\necho \"$$ $!\" >&9\nwait\n",
                to: "\(stage.directory)/bin/secret", mode: 0o700)
            let watcher = try stage.start("/bin/cat", [pipe])
            let asking = try stage.connect()
            await asking.send(Stage.request("POST", "/v1/accounts/work/sign-in", "{}"))
            let pids = try await watcher.line("the command's word").split(separator: " ").compactMap { pid_t($0) }
            let daemon = try #require(stage.daemon)
            #expect(Set(Processes.descendants(of: daemon.pid)).isSuperset(of: pids))
            daemon.send(SIGKILL)
            #expect(try await daemon.end().status == 128 + SIGKILL)
            #expect(try await watcher.end().status == 0)
            #expect(try await asking.readToEnd() == "")
        }
    }

    @Test func `a daemon that stops ends its commands`() async throws {
        try await Stage.play(commandConfiguration) { stage in
            let pipe = "\(stage.directory)/alive"
            unsafe mkfifo(pipe, 0o600)
            try stage.write(
                "#!/bin/sh\nexec 9>'\(pipe)'\necho here >&9\nsleep 600\n", to: "\(stage.directory)/bin/secret",
                mode: 0o700)
            let watcher = try stage.start("/bin/cat", [pipe])
            async let answer = stage.api("POST", "/v1/accounts/work/sign-in")
            _ = try await watcher.line("the command's word")
            #expect(try await stage.stopDaemon().status == 0)
            #expect(try await answer.code == "shutting_down")
            #expect(try await watcher.end().status == 0)
        }
    }
}
