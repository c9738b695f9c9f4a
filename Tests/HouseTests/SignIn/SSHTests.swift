import Glibc
import RingbackBase
import Testing

@Suite struct `Signing in over SSH` {
    private static let user: String = {
        let id = String(getuid())
        let lines = FileTree.text(of: "/etc/passwd")?.split(separator: "\n") ?? []
        let fields = lines.map { $0.split(separator: ":", omittingEmptySubsequences: false) }
        return fields.first { $0.count > 2 && $0[2] == id }.map { String($0[0]) } ?? ""
    }()

    @Test func `login over SSH prints the ssh command that forwards the callback's port`() async throws {
        try await Stage.play { stage in
            for (connection, place) in [
                ("192.0.2.9 50122 192.0.2.7 22", "192.0.2.7"), ("2001:db8::9 50122 2001:db8::7 22", "2001:db8::7"),
                ("192.0.2.9 50122 192.0.2.7 2222", "192.0.2.7 -p 2222"), ("::1 1 ::ffff:192.0.2.7 22", "192.0.2.7"),
            ] {
                let login = try stage.start(
                    "ringback", ["login", "work", "--no-browser", "--again"],
                    environment: ["SSH_CONNECTION": connection])
                let address = try await login.line()
                let line = try await login.errorLine("the line") { $0.hasPrefix("  ssh ") }
                let callback = try #require(try LocalURL(address)["redirect_uri"])
                let port = try LocalURL(callback.replacing("%3A", with: ":").replacing("%2F", with: "/")).port
                #expect(line == "  ssh -L \(port):127.0.0.1:\(port) \(Self.user)@\(place)")
                _ = try await Browser.deliver(Browser.signIn(at: address))
                let ended = try await login.end().expect(0)
                #expect(ended.lines.count == 2, "\(ended)")
            }
        }
    }

    @Test func `login over SSH prints the ssh command beside a page that could not be opened`() async throws {
        try await Stage.play { stage in
            try stage.write("#!/bin/sh\nexit 3\n", to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
            for (connection, isKnown) in [
                ("192.0.2.9 50122 192.0.2.7 22", true), ("", false), ("a b $(reboot) 22", false), ("a b c", false),
                ("192.0.2.9 50122 192.0.2.7 x;y", false), ("UNKNOWN 65535 UNKNOWN 65535", false),
            ] {
                let login = try stage.start(
                    "ringback", ["login", "work", "--method", "browser"], environment: ["SSH_CONNECTION": connection])
                _ = try await login.errorLine("the way by hand") { $0.contains("ringback complete") }
                login.send(SIGINT)
                let ended = try await login.end()
                #expect(ended.err.contains("ssh -L") == isKnown, "\(ended)")
                // The command, or the pasted address: one of the two is enough.
                #expect(ended.err.contains("\nor let the sign-in end at a page") == isKnown, "\(ended)")
                #expect(!ended.err.contains("$("), "\(ended)")
            }
        }
    }

    @Test func `the sign-in page of a project over SSH comes with the ssh command and a way without a browser`()
        async throws
    {
        try await Stage.playProject { stage in
            // The daemon's own desktop is seen by nobody.
            let started = "\(stage.directory)/started"
            try stage.write("#!/bin/sh\n: >'\(started)'\n", to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
            for arguments in [["--page"], ["--page", "--no-browser"]] {
                let login = try stage.start(
                    "ringback", ["login", "app"] + arguments,
                    environment: ["SSH_CONNECTION": "192.0.2.9 50122 192.0.2.7 22"])
                let address =
                    arguments.count > 1
                    ? try await login.line()
                    : try await login.errorLine("the page") { $0.hasPrefix("  http://") }.dropFirst(2).description
                let port = try LocalURL(address).port
                let line = try await login.errorLine("the line") { $0.hasPrefix("  ssh ") }
                #expect(line == "  ssh -L \(port):127.0.0.1:\(port) \(Self.user)@192.0.2.7")
                _ = try await login.errorLine("the way without a browser") {
                    $0 == "Without a browser: ringback login app --method otp --email ADDRESS"
                }
                login.send(SIGINT)
                let ended = try await login.end()
                #expect(ended.status == 4 && !ended.err.contains("No browser was"), "\(ended)")
            }
            #expect(FileTree.mode(of: started) == nil)
        }
    }

    @Test func `--callback-port fixes the port, and says when somebody has it`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await login.line()
            let flow = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first
            let port = try LocalURL(flow?["redirect_uri"]?.string ?? "").port
            login.send(SIGINT)
            _ = try await login.end()
            try await stage.stopDaemon()
            try await stage.startDaemon()
            let connection = ["SSH_CONNECTION": "192.0.2.9 50122 192.0.2.7 22"]
            let fixed = try stage.start(
                "ringback", ["login", "work", "--no-browser", "--callback-port", "\(port)"], environment: connection)
            let address = try await fixed.line()
            #expect(address.contains("%3A\(port)%2Fcallback%2Fwork"))
            let line = try await fixed.errorLine("the line") { $0.hasPrefix("  ssh ") }
            #expect(line == "  ssh -L \(port):127.0.0.1:\(port) \(Self.user)@192.0.2.7")
            _ = try await Browser.deliver(Browser.signIn(at: address))
            #expect(try await fixed.end().status == 0)
            // The sandbox sits on its own port.
            let taken = try LocalURL(stage.sandbox.origin).port
            let refused = try await stage.ringback(
                "login", "home", "--no-browser", "--callback-port", "\(taken)", status: 1, out: "")
            // Which port, whose program has it, how to see which, and what else can be done.
            let told = [
                "port \(taken) is in use by a program of yours", "ss -ltnp 'sport = :\(taken)'", "--callback-port",
                "redirect_uri",
            ]
            for words in told { #expect(refused.err.contains(words), "\(refused)") }
            try await stage.api(
                "POST", "/v1/accounts/home/sign-in", ["callback_port": .integer(taken)], status: 409,
                code: "port_in_use")
        }
    }
}
