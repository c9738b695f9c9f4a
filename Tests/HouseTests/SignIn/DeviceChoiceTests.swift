import Glibc
import RingbackBase
import Testing

@Suite struct `Choosing another device` {
    private static let reason = "There is no display here and no BROWSER"

    private func refuse(_ stage: Stage, _ code: String) async throws {
        try await stage.sandbox.control([
            "faults": [
                [
                    "endpoint": "device_authorization", "kind": "error", "error": .string(code),
                    "status": 400, "count": 1,
                ]
            ]
        ])
    }

    @Test func `a provider that refuses this client device codes leads to login --no-browser`() async throws {
        try await Stage.play { stage in
            let code = "unauthorized_client"
            try await refuse(stage, code)
            let refused = try await stage.ringback(
                "login", "work", "--method", "device", status: 1, out: "", says: code,
                "ringback login work --no-browser")
            // Nobody chose anything for the person, so that nothing is to be explained.
            #expect(!refused.err.contains(Self.reason), "\(refused)")
            // The line that it names works.
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await Browser.deliver(Browser.signIn(at: try await login.line()))
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `login without a display says why it shows a device code`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work"])
            _ = try await login.errorLine("the reason") { $0.hasPrefix(Self.reason) }
            _ = try await login.errorLine("the code") { $0.hasPrefix("and enter the code:  ") }
            login.send(SIGINT)
            try await login.end().expect(4, out: "")
            let asked = try stage.start("ringback", ["login", "work", "--method", "device"])
            _ = try await asked.errorLine("the code") { $0.hasPrefix("and enter the code:  ") }
            asked.send(SIGINT)
            #expect(try await asked.end().err.contains(Self.reason) == false)
        }
    }

    @Test func `login without a display continues with a pasted callback if device codes are refused`() async throws {
        try await Stage.play { stage in
            try stage.write("#!/bin/sh\necho opened >&2\n", to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
            try await refuse(stage, "unauthorized_client")
            let login = try TerminalProgram(["login", "work"], environment: stage.environment, columns: 200)
            try await login.shows(Self.reason)
            try await login.shows("the provider gives no codes (unauthorized_client)")
            try await login.shows("Open this page in a browser:")
            try await login.shows("Paste the callback URL")
            let flow = try #require(try await stage.api("GET", "/v1/flows")["flows"]?.array?.first)
            #expect(flow["method"] == "browser")
            login.type(try await Browser.signIn(at: flow["authorization_url"]?.string ?? "").text)
            let (status, text) = try await login.end()
            #expect(status == 0 && text.contains("Signed in to work as alice@example.org"), "\(text)")
            #expect(!text.contains("opened"), "\(text)")
        }
    }

    @Test func `login without a display prints the page if the provider has no device codes`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control(["device_grant": false])
            let login = try stage.start("ringback", ["login", "work", "--json"])
            let flow = try JSON(parsing: Array(try await login.line().utf8))
            _ = try await login.errorLine("the reason") { $0.contains("the provider offers no codes") }
            _ = try await Browser.deliver(Browser.signIn(at: flow["authorization_url"]?.string ?? ""))
            let ended = try await login.end().expect(0)
            #expect(ended.lines.count == 2, "\(ended)")
        }
    }

    @Test func `login without a display asks an unreachable provider once`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control([
                "faults": [["endpoint": "device_authorization", "kind": "status", "status": 503]]
            ])
            let login = try await stage.ringback("login", "work", status: 5)
            #expect(!login.err.contains("Open this page"), "\(login)")
        }
    }

    @Test func `login of a service account refuses options of a sign-in`() async throws {
        try await Stage.playService("grant = \"client_credentials\"") { stage in
            let device = try await stage.ringback(
                "login", "build", "--method", "device", status: 1, out: "", says: "needs no sign-in")
            #expect(!device.err.contains("--no-browser"), "\(device)")
            try await stage.api(
                "POST", "/v1/accounts/build/sign-in", ["method": "device"], status: 400, code: "method_unsupported")
            // Nothing that was asked for is taken in silence.
            for (option, value) in [("--scopes", "wide"), ("--param", "prompt=consent"), ("--callback-port", "8400")] {
                let login = try await stage.ringback("login", "build", option, value)
                #expect(login.status != 0 && login.out.isEmpty && login.err.contains("is a service"), "\(login)")
            }
            // Without a word about displays: there is nothing to show.
            let plain = try await stage.ringback("login", "build", status: 0, out: "Signed in to build as a service\n")
            #expect(!plain.err.contains(Self.reason), "\(plain)")
        }
    }
}
