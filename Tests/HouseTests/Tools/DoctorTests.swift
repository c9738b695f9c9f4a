import Glibc
import RingbackBase
import Testing

extension Stage {
    /// A desktop of the simplest kind.
    fileprivate static let desktop = ["DISPLAY": ":99"]

    fileprivate func doctor(
        _ arguments: [String] = [], environment: [String: String] = desktop
    ) async throws -> (output: Output, checks: [JSON]) {
        let output = try await run("ringback", ["doctor", "--json"] + arguments, environment: environment)
        let json = (try? JSON(parsing: output.out.utf8)) ?? .null
        #expect(json["healthy"]?.bool == (output.status == 0), "\(output)")
        return (output, json["checks"]?.array ?? [])
    }
}

extension [JSON] {
    fileprivate func named(_ check: String, _ subject: String? = nil) -> JSON? {
        first { line in
            let found = line["scheme"]?.string ?? line["account"]?.string
            return line["check"]?.string == check && (subject == nil || found == subject)
        }
    }

    fileprivate func level(_ check: String, _ subject: String? = nil) -> String? {
        named(check, subject)?["level"]?.string
    }

    fileprivate var wrong: [String] {
        filter { $0["level"] == "wrong" }.compactMap { $0["check"]?.string }
    }
}

@Suite struct `ringback doctor` {
    @Test func `a house that is well: links go round, providers answer, nothing is wrong`() async throws {
        try await Stage.playSchemes { stage in
            for scheme in [Stage.scheme, "swisscoin"] {
                try await stage.ringback("scheme", "register", scheme, status: 0)
            }
            let (output, checks) = try await stage.doctor()
            #expect(output.status == 0 && output.err.isEmpty && checks.wrong == [], "\(output)")
            for check in ["socket", "version", "seccomp", "configuration", "home", "vault"] {
                #expect(checks.level(check) == "ok", "\(check) \(output)")
            }
            #expect(checks.level("scheme", Stage.scheme) == "ok" && checks.level("scheme", "swisscoin") == "ok")
            // What ringback run needs may be missing, which is no mistake.
            #expect(["ok", "warning"].contains(checks.level("confinement")), "\(output)")
            #expect(checks.level("discovery", "work") == "ok" && checks.level("provider", "app") == "ok")
            #expect(checks.level("redirect", "work") == "ok" && checks.level("redirect", "app") == "warning")
            #expect(checks.named("place")?["message"]?.string?.contains(stage.socket) == true)
            // What went round was neither a callback nor a link for an app, and nothing of it is left.
            #expect(try await stage.api("GET", "/v1/flows")["flows"] == [])

            let plain = try await stage.ringback(
                "doctor", "work", environment: Stage.desktop, status: 0, prints: "Nothing is wrong.",
                "scheme \(Stage.scheme)")
            #expect(!plain.out.contains("swisscoin"), "\(plain)")
            try await stage.ringback("doctor", "nobody", status: 64)
        }
    }

    @Test func `the browser is started for a page: one that dies is shown with its last line`() async throws {
        try await Stage.play { stage in
            let well = try await stage.doctor(environment: Browser.environment)
            let fetched = well.checks.named("browser")?["message"]?.string ?? ""
            #expect(well.checks.level("browser") == "ok" && fetched.hasSuffix("has fetched a page of the daemon's."))
            let dying = "\(stage.directory)/bin/dying"
            try stage.write("#!/bin/sh\necho 'no display' >&2\nexit 3\n", to: dying, mode: 0o700)
            let (output, checks) = try await stage.doctor(environment: ["BROWSER": dying])
            let message = checks.named("browser")?["message"]?.string ?? ""
            #expect(checks.level("browser") == "warning" && output.status == 0, "\(output)")
            #expect(message.contains("which ended with status 3. Its last line: “no display”. Name one"), "\(message)")
            #expect(checks.named("browser")?["command"] == "export BROWSER=PROGRAM", "\(output)")
        }
    }

    @Test func `the silent loss of KDE is found by the link that does not come`() async throws {
        try await Stage.playSchemes { stage in
            try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            var environment = Stage.desktop
            environment["XDG_CURRENT_DESKTOP"] = "KDE"
            // An opener that says that all is well, while xdg-mime names our handler. A newer one may say that it failed.
            let opened = try await stage.run("/usr/bin/xdg-open", ["\(Stage.scheme):/x"], environment: environment)
            let (output, checks) = try await stage.doctor(["work"], environment: environment)
            #expect(output.status == 1 && checks.wrong == ["scheme"], "\(output)")
            let line = try #require(checks.named("scheme", Stage.scheme))
            let word = opened.status == 0 ? "lost" : "status \(opened.status)"
            #expect(line["message"]?.string?.contains(word) == true && line["command"]?.string?.isEmpty == false)
        }
    }

    @Test func `a scheme without a handler, or with another's, is wrong, and nobody else is started`() async throws {
        try await Stage.playSchemes { stage in
            try stage.installApp("app", scheme: Stage.scheme)
            let (output, checks) = try await stage.doctor()
            #expect(output.status == 1 && checks.wrong == ["scheme", "scheme"], "\(output)")
            #expect(checks.named("scheme", Stage.scheme)?["message"]?.string?.contains("app.desktop") == true)
            #expect(checks.named("scheme", "swisscoin")?["command"] == "ringback scheme register swisscoin")
            #expect(FileTree.text(of: "\(stage.directory)/app.log") == nil)
            // The command that it names mends it.
            for line in checks where line["check"] == "scheme" {
                let words = (line["command"]?.string ?? "").split(separator: " ").map(String.init)
                try await stage.run("ringback", Array(words.dropFirst()), status: 0)
            }
            #expect(try await stage.doctor().output.status == 0)
        }
    }

    @Test func `a handler that is gone, and no desktop at all, are told apart`() async throws {
        try await Stage.playSchemes { stage in
            try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            let bare = try await stage.doctor(["work"], environment: [:])
            #expect(bare.output.status == 0 && bare.checks.level("scheme", Stage.scheme) == "warning", "\(bare.output)")
            #expect(bare.checks.level("browser") == "warning", "\(bare.output)")
            let path = "\(stage.applications)/ringback-\(Stage.scheme).desktop"
            let text = try #require(FileTree.text(of: path))
            try stage.write(text.replacing(Programs.path("ringback"), with: "/nowhere/ringback"), to: path)
            let gone = try await stage.doctor(["work"])
            #expect(gone.output.status == 1 && gone.checks.level("scheme", Stage.scheme) == "wrong", "\(gone.output)")
        }
    }

    @Test func `no daemon, no place for one and mistakes in the configuration are wrong, with remedies`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let (output, checks) = try await stage.doctor()
            #expect(output.status == 1 && checks.wrong == ["socket"], "\(output)")
            // Nothing of systemd's is in the stage's runtime directory.
            #expect(checks.named("socket")?["command"] == "ringbackd &" && checks.level("unit") == "warning")
            let nowhere = try await stage.doctor(environment: ["RINGBACK_SOCK": "", "XDG_RUNTIME_DIR": ""])
            #expect(nowhere.checks.named("socket")?["message"]?.string?.contains("XDG_RUNTIME_DIR") == true)
            try stage.write(configuration: "[accounts.work]\nisuer = \"https://a.example\"\n")
            let bad = try await stage.doctor()
            #expect(bad.checks.wrong == ["socket", "configuration"], "\(bad.output)")
            #expect(bad.checks.named("configuration")?["command"] == "ringback config check")
            let told = bad.checks.named("configuration")?["message"]?.string ?? ""
            #expect(told.hasPrefix("\(stage.configuration):1: accounts.work.client_id: is missing"), "\(bad.output)")
        }
    }

    @Test func `a system without a usable OpenSSL 3, where no daemon can start, is told so`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            // The loader finds this file first.
            try stage.write("no library", to: "\(stage.directory)/bin/libcrypto.so.3", mode: 0o700)
            let environment = ["LD_LIBRARY_PATH": "\(stage.directory)/bin"]
            let (output, checks) = try await stage.doctor(environment: environment)
            #expect(output.status == 1 && checks.wrong == ["socket", "program"], "\(output)")
            let line = checks.named("program")
            #expect(line?["message"]?.string?.contains("cannot start: this system has no usable OpenSSL 3") == true)
            #expect(line?["command"] == "sudo apt install libssl3", "\(output)")
            let terminal = try TerminalProgram(
                [], environment: stage.environment.merging(environment) { $1 }, columns: 80, rows: 24)
            let ended = try await terminal.end()
            #expect(ended.text.contains("OpenSSL 3") && ended.text.contains("sudo apt install libssl3"), "\(ended)")
            #expect(try await stage.doctor().checks.named("program") == nil)
        }
    }

    @Test func `a locked vault is wrong, said once, and the accounts show it`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("lock", status: 0)
            let (output, checks) = try await stage.doctor()
            #expect(output.status == 1 && checks.wrong == ["vault"], "\(output)")
            #expect(checks.named("vault")?["command"] == "ringback unlock")
            #expect(checks.count { $0["message"]?.string?.contains("vault is locked") == true } == 1, "\(output)")
            #expect(checks.level("discovery", "work") == "ok" && checks.named("session") == nil, "\(output)")
            let accounts = try await stage.ringback("accounts")
            #expect(accounts.out.contains("locked") && !accounts.out.contains("loading"), "\(accounts)")
        }
    }

    @Test func `a provider that is away, and a configuration that was not read again, are found`() async throws {
        let configuration = """
            [accounts.work]
            issuer = "http://127.0.0.1:1"
            client_id = "ringback-demo"
            client_secret = "canary-secret-of-the-client"

            """
        try await Stage.play(configuration) { stage in
            let (output, checks) = try await stage.doctor()
            #expect(output.status == 1 && checks.wrong == ["discovery"], "\(output)")
            #expect(checks.named("discovery", "work")?["message"]?.string?.contains("cannot be reached") == true)
            #expect(!output.out.contains("canary") && !output.err.contains("canary"))
            try stage.write(
                configuration: configuration + "[accounts.more]\nissuer = \"{sandbox}\"\nclient_id = \"x\"\n")
            let stale = try await stage.doctor()
            #expect(stale.checks.named("configuration")?["command"] == "ringback reload", "\(stale.output)")
        }
    }

    @Test func `a scheme that the daemon has not read of is not said to be well`() async throws {
        try await Stage.playSchemes { stage in
            for scheme in [Stage.scheme, "swisscoin", "org.example.z"] {
                try await stage.ringback("scheme", "register", scheme, status: 0)
            }
            let nowhere = "\(stage.directory)/nowhere"
            try stage.write(
                configuration: Stage.withSchemes + "\n[schemes.\"org.example.z\"]\ncommand = [\"\(nowhere)\"]\n")
            let (output, checks) = try await stage.doctor()
            let lines = checks.filter { $0["scheme"] == "org.example.z" }
            #expect(output.status == 1 && checks.wrong == ["scheme", "scheme"] && lines.count == 2, "\(output)")
            #expect(
                lines.contains {
                    $0["message"]?.string
                        == "[schemes.org.example.z] starts \(nowhere), which does not exist or is not executable."
                })
            #expect(lines.contains { $0["command"] == "ringback reload" }, "\(output)")
            try stage.write("#!/bin/sh\n", to: nowhere, mode: 0o700)
            try await stage.ringback("reload", status: 0)
            #expect(try await stage.doctor().checks.level("scheme", "org.example.z") == "ok")
        }
    }

    @Test func `where the configuration has a mistake, nobody is told to unregister a scheme`() async throws {
        try await Stage.playSchemes { stage in
            try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            try stage.write(configuration: "[accounts.work]\nisuer = \"https://a.example\"\n")
            let (output, checks) = try await stage.doctor()
            #expect(checks.wrong == ["configuration"] && !output.out.contains("unregister"), "\(output)")
        }
    }

    @Test func `a change within an account that the daemon has not read is found`() async throws {
        try await Stage.play { stage in
            let readAt = try #require(
                try JSON(parsing: await stage.api("GET", "/v1/diagnostics").text.utf8)["configuration_read_at"]?.integer
            )
            #expect(try await stage.doctor().checks.level("configuration") == "ok")
            let file = stage.configuration
            try await stage.run("/usr/bin/touch", ["-d", "@\(readAt + 1)", file], status: 0)
            let stale = try await stage.doctor()
            let line = try #require(stale.checks.named("configuration"))
            #expect(line["level"] == "warning" && line["command"] == "ringback reload", "\(stale.output)")
        }
    }

    @Test func `a service that cannot start is seen behind a socket that is well`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write(
                "#!/bin/sh\ncase \"$*\" in *is-failed*) echo failed ;; *is-enabled*) echo enabled ;; "
                    + "*is-active*) echo active ;; esac\nexit 0\n", to: "\(stage.directory)/bin/systemctl", mode: 0o700)
            let (output, checks) = try await stage.doctor()
            #expect(checks.wrong == ["socket", "unit"], "\(output)")
            #expect(checks.named("socket")?["command"] == "systemctl --user status ringback.service", "\(output)")
            #expect(checks.named("unit")?["command"] == "journalctl --user -u ringback.service -n 20", "\(output)")
        }
    }

    @Test func `the state is looked at where it is, or where it would be made`() async throws {
        try await Stage.play { stage in
            let state = "\(stage.directory)/not/yet"
            for environment in [["RINGBACK_STATE": state], ["RINGBACK_STATE": "", "XDG_STATE_HOME": state]] {
                // The daemon's own word goes before what stands in this environment.
                let own = try await stage.doctor(environment: environment).checks.named("home")
                #expect(own?["level"] == "ok" && own?["message"]?.string?.contains("/not/yet") == false)
            }
            #expect(try await stage.stopDaemon().status == 0)
            for environment in [["RINGBACK_STATE": state], ["RINGBACK_STATE": "", "XDG_STATE_HOME": state]] {
                let home = try await stage.doctor(environment: environment).checks.named("home")
                #expect(home?["level"] == "ok" && home?["message"]?.string?.hasPrefix(state) == true, "\(environment)")
            }
        }
    }

    @Test func `a project without the way in that the account takes, and with another key, is told so`() async throws {
        let configuration = """
            [accounts.app]
            provider = "supabase"
            url = "{sandbox}/supabase"
            api_key = "sb_publishable_sandbox"
            oauth_provider = "github"

            """
        try await Stage.play(configuration) { stage in
            #expect(try await stage.doctor().checks.level("provider", "app") == "ok")
            try await stage.setProject(["providers": ["google"]])
            let closed = try await stage.doctor(["app"])
            let line = try #require(closed.checks.named("provider", "app"))
            #expect(
                line["level"] == "warning" && line["message"]?.string?.contains("github") == true, "\(closed.output)")
            try await stage.sandbox.control(["supabase": ["api_keys": ["sb_publishable_other"]]], issuer: "/supabase")
            let other = try await stage.doctor(["app"])
            #expect(!other.output.out.contains("sb_publishable"), "\(other.output)")
            let refused = try #require(other.checks.named("provider", "app"))
            #expect(refused["level"] == "wrong" && refused["command"] == "ringback account edit app", "\(refused.text)")
        }
    }
}
