import Glibc
import RingbackBase
import Testing

@Suite struct `An HTTP proxy` {
    private func configuration(_ proxy: Trap, _ more: String = "") -> String {
        """
        [network]
        proxy = "http://127.0.0.1:\(proxy.port)"
        no_proxy = ["direct.test"]

        [accounts.far]
        issuer = "https://provider.test"
        client_id = "c"

        [accounts.direct]
        issuer = "https://id.direct.test"
        client_id = "c"

        [accounts.none]
        issuer = "https://none.test"
        client_id = "c"
        proxy = "none"

        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"

        \(more)
        """
    }

    @Test func `is asked for providers elsewhere, and for no other`() async throws {
        let proxy = try Trap()
        try await Stage.play(configuration(proxy), startsDaemon: false) { stage in
            let other = try Trap()
            var environment = ["NOTIFY_SOCKET": stage.notices.path]
            for name in ["http_proxy", "https_proxy", "ALL_PROXY"] {
                environment[name] = "http://u:pw@127.0.0.1:\(other.port)"
            }
            _ = try stage.start("ringbackd", ["--state", stage.state], environment: environment)
            try await stage.notices.wait(for: "READY=1", after: 0)
            for account in ["direct", "none"] {
                try await stage.api("POST", "/v1/accounts/\(account)/sign-in", status: 503)
            }
            // This machine is not behind it.
            try await stage.signIn()
            #expect(try await !proxy.hasVisitor())
            async let far = stage.api("POST", "/v1/accounts/far/sign-in")
            #expect(try await proxy.hasVisitor(within: Bound.usual))
            let answer = try await far
            #expect(answer.status == 503 && answer.code == "provider_unreachable", "\(answer)")
            #expect(try await !other.hasVisitor())

            let doctor = try await stage.ringback("doctor", "--json", environment: ["DISPLAY": ":99"])
            let checks = try doctor.json["checks"]?.array ?? []
            let network = checks.filter { $0["check"] == "network" }.compactMap { $0["message"]?.string }
            #expect(
                network.contains { $0.contains("127.0.0.1:\(proxy.port)") && $0.contains("resolves") }, "\(network)")
            #expect(network.contains { $0.contains("http_proxy, https_proxy, ALL_PROXY") }, "\(network)")
            #expect(!doctor.out.contains("pw@"))

            // Without [network], what the environment says is worth a warning.
            try stage.write(configuration: "")
            try await stage.ringback("reload", status: 0)
            let later = try await stage.ringback("doctor", "--json", environment: ["DISPLAY": ":99"])
            let warning = try later.json["checks"]?.array?.first { $0["check"] == "network" }
            #expect(warning?["level"] == "warning", "\(later)")
            #expect(warning?["message"]?.string?.contains("[network]") == true, "\(later)")
        }
    }

    @Test func `that inspects TLS is passed with its authority in ca_file, and is named without it`() async throws {
        let arguments = ["--public-origin", "https://provider.test", "--auto-approve", "alice"]
        try await Stage.play("", sandboxArguments: arguments, startsDaemon: false) { stage in
            let port = stage.sandbox.origin.split(separator: ":").last.map(String.init) ?? ""
            let proxy = try stage.start(
                "/usr/bin/env",
                ["python3", "-B", "\(Document.root)/Tests/Programs/tls_proxy.py", stage.directory, port])
            let place = try await proxy.line("the proxy's port")
            let provider = "issuer = \"https://provider.test\"\nclient_id = \"ringback-demo\""
            try stage.write(
                configuration: """
                    [network]
                    proxy = "http://127.0.0.1:\(place)"

                    [accounts.work]
                    \(provider)
                    scopes = ["openid", "email", "offline_access"]
                    ca_file = "{stage}/authority.pem"

                    [accounts.stranger]
                    \(provider)

                    [accounts.other]
                    issuer = "https://other.test"
                    client_id = "c"

                    """)
            try await stage.startDaemon()
            let flow = try await stage.begin()
            #expect(flow.authorizationURL.hasPrefix("https://provider.test/"), "\(flow)")
            // The browser has a way of its own to the provider.
            let page = flow.authorizationURL.replacing("https://provider.test", with: stage.sandbox.origin)
            #expect(try await Browser.deliver(Browser.signIn(at: page)).answer.location == "/done")
            #expect(try await stage.ended(flow)["status"]?.string == "completed")
            let session = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(session["issuer"] == "https://provider.test" && session["subject"] == "alice", "\(session)")
            try await stage.ringback("refresh", "work", "--force", status: 0)
            let doctor = try await stage.ringback("doctor", "work", "--json")
            let checks = try doctor.json["checks"]?.array ?? []
            #expect(checks.contains { $0["check"] == "discovery" && $0["level"] == "ok" }, "\(doctor)")
            let passed = proxy.output.value.lines.dropFirst()
            #expect(passed.count >= 3 && passed.allSatisfy { $0 == "CONNECT provider.test:443" }, "\(passed)")

            let requests = try await stage.sandbox.counters().requests("discovery")
            try await stage.ringback("login", "stranger", "--no-browser", status: 5, says: "inspects TLS", "ca_file")
            #expect(try await stage.sandbox.counters().requests("discovery") == requests)
            #expect(proxy.output.value.lines.count > passed.count + 1, "\(proxy.output.value.lines)")
            try await stage.ringback(
                "login", "other", "--no-browser", status: 5,
                says: "127.0.0.1:\(place) responded with HTTP 403 to CONNECT")
        }
    }

    /// `{sandbox}` is a server that is no proxy; nobody listens at port 1.
    private static let broken = """
        [accounts.closed]
        issuer = "https://provider.test"
        client_id = "c"
        proxy = "http://127.0.0.1:1"
        ca_file = "{stage}/ca file.pem"

        [accounts.refusing]
        issuer = "https://provider.test"
        client_id = "c"
        proxy = "{sandbox}"

        [accounts.unnamed]
        issuer = "https://provider.test"
        client_id = "c"
        proxy = "http://proxy.invalid:3128"

        [accounts.none]
        issuer = "https://none.test"
        client_id = "c"
        proxy = "none"

        """

    @Test func `of an account that fails is named with what shows more, and the internet is not blamed`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write(
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                to: "\(stage.directory)/ca file.pem", mode: 0o600)
            try stage.write(configuration: Self.broken)
            try await stage.startDaemon()
            for (account, words) in [
                ("closed", "the connection to the proxy 127.0.0.1:1 was refused"), ("refusing", "127.0.0.1:"),
                ("unnamed", "the name of the proxy proxy.invalid:3128 could not be resolved"),
            ] {
                let login = try await stage.ringback(
                    "login", account, "--no-browser", status: 5, says: words, "Run: ringback doctor \(account)")
                #expect(!login.err.contains("internet") && !login.err.contains("Try again later."), "\(login)")
                let checks = try await doctor(account, stage)
                let network = checks.first { $0["check"] == "network" }
                #expect(network?["account"]?.string == account, "\(checks)")
                #expect(network?["message"]?.string?.contains("through the proxy http://") == true, "\(checks)")
            }
            let command = try await doctor("closed", stage).first { $0["level"] == "wrong" }?["command"]?.string
            #expect(
                command == "curl -v --proxy http://127.0.0.1:1 --cacert '\(stage.directory)/ca file.pem' "
                    + "https://provider.test/.well-known/openid-configuration")
            let direct = try await doctor("none", stage)
            #expect(
                direct.first { $0["check"] == "network" }?["message"]?.string?.contains("without a proxy") == true,
                "\(direct)")
            #expect(
                direct.first { $0["level"] == "wrong" }?["command"]
                    == "curl -v --noproxy '*' https://none.test/.well-known/openid-configuration", "\(direct)")
        }
    }

    private func doctor(_ account: String, _ stage: Stage) async throws -> [JSON] {
        let output = try await stage.ringback("doctor", account, "--json", environment: ["DISPLAY": ":99"])
        return try output.json["checks"]?.array ?? []
    }

    @Test func `has no part in a server that does not speak TLS, which nobody is told to wait for`() async throws {
        try await Stage.play("[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"c\"\n") { stage in
            let secure = stage.sandbox.origin.replacing("http://", with: "https://")
            try stage.write(configuration: "[accounts.work]\nissuer = \"\(secure)\"\nclient_id = \"c\"\n")
            try await stage.ringback("reload", status: 0)
            let login = try await stage.ringback("login", "work", "--no-browser", status: 5, says: "does not speak TLS")
            #expect(!login.err.contains("certificate"), "\(login)")
            let answer = try await stage.api("POST", "/v1/accounts/work/sign-in")
            #expect(answer["cause"] == "wrong_scheme" && answer["code"] == "provider_unreachable", "\(answer)")
            #expect(!login.err.contains("later") && login.err.contains("Run: ringback doctor work"), "\(login)")
        }
    }

    private static let mistakes = [
        ("proxy = \"socks5://p:1\"", "must be http://HOST:PORT"), ("proxy = \"http://p\"", "must be http://HOST:PORT"),
        ("proxy = \"http://u:pw@p:1\"", "proxy_credentials_file"), ("proxy = \"none\"", "must be http://HOST:PORT"),
        ("no_proxy = [\"a\"]", "goes with proxy"),
        ("proxy = \"http://p:1\"\nno_proxy = [\"https://a\"]", "a host name"),
        ("proxy = \"http://p:1\"\nproxy_credentials_file = \"/nowhere/x\"", "/nowhere/x"),
        ("proxy = \"http://p:1\"\nproxy_credentials_file = \"{stage}/none\"", "USER:PASSWORD"),
    ]

    @Test func `that is configured with a mistake is refused with what to write`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (table, words) in Self.mistakes {
                try stage.write(configuration: "[network]\n\(table)\n")
                try stage.write("sesame\n", to: "\(stage.directory)/none", mode: 0o600)
                let check = try await stage.ringback("config", "check", status: 78)
                #expect((check.out + check.err).contains(words), "\(check)")
                #expect(!(check.out + check.err).contains("sesame"))
            }
        }
    }

    /// Who may read root's own file is root's decision, so as root it is taken.
    @Test func `has credentials in a file that others cannot read or write`() async throws {
        let network = "[network]\nproxy = \"http://p:1\"\nproxy_credentials_file = \"{stage}/credentials\"\n"
        try await Stage.play(network, startsDaemon: false) { stage in
            for mode in [0o644, 0o640, 0o622, 0o600] as [mode_t] {
                try stage.write("alice:sesame\n", to: "\(stage.directory)/credentials", mode: mode)
                let check = try await stage.ringback("config", "check")
                let advice: String? =
                    switch mode {
                    case 0o600: nil
                    case 0o622: "chmod go-w"
                    default: geteuid() == 0 ? nil : "chmod 600"
                    }
                #expect(check.status == (advice == nil ? 0 : 78), "\(check)")
                #expect((check.out + check.err).contains(advice ?? ""), "\(check)")
                #expect(!(check.out + check.err).contains("sesame"))
            }
        }
    }
}
