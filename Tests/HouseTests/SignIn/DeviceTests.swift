import Glibc
import RingbackBase
import Testing

@Suite struct `Signing in on another device` {
    private func enter(_ code: String, at address: String, _ decision: String = "user=alice&decision=allow")
        async throws
    {
        let url = try LocalURL(address)
        let page = try await Browser.load(url.with([("user_code", code.lowercased())]))
        #expect(page.status == 200 && page.text.contains(code), "\(page)")
        let answer = try await Browser.load(url, form: "user_code=\(code)&\(decision)")
        #expect(answer.status == 200, "\(answer)")
    }

    private func printed(by login: Program) async throws -> (code: String, address: String) {
        let line = try await login.errorLine("the code") { $0.hasPrefix("and enter the code:  ") }
        let address = try await login.errorLine("the address") { $0.hasPrefix("  http://") }
        return (String(line.dropFirst("and enter the code:  ".count)), String(address.dropFirst(2)))
    }

    @Test func `DEV-03, DEV-12: login --method device prints address and code and waits`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--method", "device"])
            let (code, address) = try await printed(by: login)
            #expect(address == stage.sandbox.origin + "/device")
            #expect(try await stage.account()["state"]?.string == "authenticating")
            try await enter(code, at: address)
            let ended = try await login.end().expect(
                0, out: "Signed in to work as alice@example.org\n", says: "Enter no code that another person sent you")
            // Whose page it is that takes the code.
            #expect(ended.err.contains("open the provider's page at 127.0.0.1 on any device"), "\(ended)")
            // No code is drawn for a file.
            #expect(!ended.err.contains("▀") && !ended.err.contains("\u{1B}"))
            let counters = try await stage.sandbox.counters()
            #expect(counters["early_device_questions"] == 0 && counters["device_codes_issued"] == 1)
            #expect(try await stage.token() != nil)
            try await stage.ringback("refresh", "work", status: 0)
        }
    }

    @Test func `login --method device --json prints the flow, then the account`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--method", "device", "--json"])
            let flow = try await JSON(parsing: Array(login.line().utf8))
            let code = try #require(flow["user_code"]?.string)
            #expect(flow["method"] == "device" && flow["waiting_for"] == "device" && flow["status"] == "pending")
            let address = stage.sandbox.origin + "/device"
            #expect(flow["verification_uri"]?.string == address)
            #expect(flow["verification_uri_complete"]?.string == "\(address)?user_code=\(code)")
            #expect(flow["authorization_url"] == nil && flow["redirect_uri"] == nil && flow["device_code"] == nil)
            // Somebody who cannot open the page: the other program's way to the same flow.
            let joined = try await stage.api("POST", "/v1/accounts/work/sign-in", ["method": "device"], status: 200)
            #expect(joined["id"] == flow["id"])
            try await stage.api(
                "POST", "/v1/accounts/work/sign-in", ["method": "browser"], status: 409, code: "state_conflict")
            try await enter(code, at: address)
            let ended = try await login.end().expect(0)
            #expect(ended.lines.count == 2, "\(ended)")
            let account = try JSON(parsing: Array((ended.lines.last ?? "").utf8))
            #expect(account["name"] == "work" && account["state"] == "authenticated")
            let done = try await stage.api("GET", "/v1/flows/\(flow["id"]?.string ?? "")")
            #expect(done["status"] == "completed" && done["user_code"] == nil && done["waiting_for"] == nil)
        }
    }

    @Test func `DEV-12: a device code is chosen only where no browser can be opened`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work"])
            let (code, address) = try await printed(by: login)
            try await enter(code, at: address)
            #expect(try await login.end().status == 0)
            for variable in ["DISPLAY", "WAYLAND_DISPLAY"] {
                let home = try stage.start("ringback", ["login", "home"], environment: [variable: ":7"])
                try await stage.eventually("a flow") { try await stage.account("home")["flow"] != nil }
                #expect(try await stage.account("home")["flow"]?["method"] == "browser")
                home.send(SIGINT)
                #expect(try await home.end().status == 4)
            }
            // A pending one is joined.
            try stage.write("#!/bin/sh\nexit 3\n", to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
            let pending = try await stage.begin("home")
            let joining = try stage.start("ringback", ["login", "home"])
            _ = try await joining.errorLine("the page") { $0.contains(pending.authorizationURL) }
            _ = try await Browser.deliver(Browser.signIn(at: pending.authorizationURL))
            #expect(try await joining.end().status == 0)
        }
    }

    @Test func `a refused device code ends login with 4, an expired one with 6`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work", "--method", "device"])
            let (code, address) = try await printed(by: login)
            try await enter(code, at: address, "decision=deny")
            try await login.end().expect(4, out: "")
            try await stage.expectNothingHeld(error: "access_denied")
            try await stage.sandbox.control(["device_code_lifetime": 3])
            try await stage.ringback(
                "login", "work", "--method", "device", status: 6, says: "was not finished within 3 seconds",
                "\(stage.sandbox.origin)/device")
        }
    }

    /// In place of `qrencode`: keeps what it is given, and draws one line.
    private func placeEncoder(on stage: Stage, drawing: String = "█▀▄ ") throws {
        let script =
            "#!/bin/sh\nprintf '%s ' \"$@\" >'\(stage.directory)/arguments'\n"
            + "cat >'\(stage.directory)/text'\nprintf '%s\\n' '\(drawing)'\n"
        try stage.write(script, to: "\(stage.directory)/bin/qrencode", mode: 0o700)
    }

    @Test func `qrencode gets the address by standard input alone, and its drawing is black and white`() async throws {
        try await Stage.play { stage in
            try placeEncoder(on: stage)
            let login = try stage.terminal("login", "work")
            try await login.shows("and enter the code:  ")
            try await login.shows("Or scan this")
            try await login.shows("\u{1B}[38;5;16;48;5;231m█▀▄ \u{1B}[0m")
            try await login.shows("to be entered, for work")
            let flow = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first
            #expect(FileTree.text(of: "\(stage.directory)/text") == flow?["verification_uri_complete"]?.string)
            #expect(FileTree.text(of: "\(stage.directory)/arguments") == "-t UTF8i -m 4 -o - ")
            login.send(SIGINT)
            #expect(try await login.end().status == 4)
        }
    }

    @Test func `no QR code is drawn with --no-qr, on a small terminal, or if qrencode fails`() async throws {
        try await Stage.play { stage in
            for (arguments, drawing, columns) in [
                (["login", "work", "--no-qr"], "█▀▄ ", UInt16(120)),
                (["login", "work"], String(repeating: "▀", count: 31), 30),
                (["login", "work"], "▀\u{1B}[2J", 120), (["login", "work"], "'; echo ▀; exit 1; '", 120),
            ] {
                try placeEncoder(on: stage, drawing: drawing)
                let plain = try TerminalProgram(arguments, environment: stage.environment, columns: columns)
                try await plain.shows(columns == 30 ? "Code " : "Waiting for the code ")
                plain.send(SIGINT)
                let text = try await plain.end().text
                #expect(!text.contains("▀") && !text.contains("\u{1B}[2J"), "\(text)")
            }
        }
    }

    @Test func `without qrencode one line names it, and the address and code are shown`() async throws {
        try await Stage.play { stage in
            let environment = stage.environment.merging(["PATH": "\(stage.directory)/bin"]) { $1 }
            let login = try TerminalProgram(["login", "work"], environment: environment)
            try await login.shows("and enter the code:  ")
            try await login.shows("No QR code is shown: the program qrencode draws one, if it is installed.")
            try await login.shows("to be entered, for work")
            login.send(SIGINT)
            let (status, text) = try await login.end()
            #expect(status == 4 && !text.contains("scan this"), "\(text)")
        }
    }

    @Test func `without colours a QR code follows COLORFGBG and the locale, or has a hint`() async throws {
        try await Stage.play { stage in
            try placeEncoder(on: stage)
            let expected: [(variables: [String: String], format: String, isGuessed: Bool)] = [
                (["NO_COLOR": "1"], "UTF8", true), (["TERM": "dumb"], "UTF8", true),
                (["TERM": "dumb", "LANG": "C"], "ASCIIi", true),
                (["NO_COLOR": "1", "COLORFGBG": "0;15"], "UTF8i", false),
                (["NO_COLOR": "1", "COLORFGBG": "0;default;7"], "UTF8i", false),
                (["NO_COLOR": "1", "COLORFGBG": "15;default;0"], "UTF8", false),
                (["NO_COLOR": "1", "COLORFGBG": "x"], "UTF8", false),
                (["NO_COLOR": "1", "COLORFGBG": "0;15", "LANG": "C"], "ASCII", false),
            ]
            for (variables, format, isGuessed) in expected {
                let environment = stage.environment.merging(variables) { $1 }
                let login = try TerminalProgram(["login", "work"], environment: environment)
                try await login.shows("Or scan this")
                try await login.shows("to be entered, for work")
                login.send(SIGINT)
                let (status, text) = try await login.end()
                #expect(status == 4 && text.contains("▀") && !text.contains("38;5;16"), "\(text)")
                #expect(text.contains("COLORFGBG=\"0;15\"") == isGuessed, "\(text)")
                let arguments = FileTree.text(of: "\(stage.directory)/arguments") ?? ""
                #expect(arguments.hasPrefix("-t \(format) "), "\(variables): \(arguments)")
            }
        }
    }
}
