// Schemes on a desktop of the stage's own: a clean home, the real xdg-open and xdg-mime, and gio where it is installed.

import Glibc
import RingbackBase
import Testing

private enum Opener: String, CaseIterable {
    case generic, gnome, gio

    static let installed = allCases.filter { $0 == .generic || hasGIO }
    private static let hasGIO = unsafe access("/usr/bin/gio", X_OK) == 0

    var environment: [String: String] {
        switch self {
        case .generic: ["DISPLAY": ":99"]
        case .gnome: ["DISPLAY": ":99", "XDG_CURRENT_DESKTOP": "GNOME"]
        case .gio: [:]
        }
    }

    func command(_ url: String) -> [String] {
        self == .gio ? ["/usr/bin/gio", "open", url] : ["/usr/bin/xdg-open", url]
    }
}

extension Stage {
    static let scheme = "org.example.ringback-test"

    /// An account at each kind of provider that comes back by a scheme.
    static let withSchemes = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        redirect_uri = "\(scheme):/callback"

        [accounts.app]
        provider = "supabase"
        url = "{sandbox}/supabase"
        api_key = "sb_publishable_sandbox"
        redirect_uri = "swisscoin://auth-callback"

        """

    static func playSchemes(_ configuration: String = withSchemes, _ test: (Stage) async throws -> Void) async throws {
        try await play(
            configuration,
            sandboxArguments: ["--user", "alice", "--auto-approve", "alice", "--redirect-uri", "\(scheme):/callback"]
        ) { stage in
            // The project's own page of redirects that it accepts.
            try await stage.sandbox.control(
                ["supabase": ["allow_list": ["swisscoin://auth-callback?*", "swisscoin://auth-callback"]]],
                issuer: "/supabase")
            try await test(stage)
        }
    }

    var applications: String { "\(directory)/home/.local/share/applications" }
    var defaults: String { "\(directory)/home/.config/mimeapps.list" }

    func makeDirectories(_ path: String) {
        var parent = ""
        for part in path.split(separator: "/") {
            parent += "/\(part)"
            FileTree.makeDirectory(parent)
        }
    }

    /// A program that writes down its arguments, each between brackets, and the desktop file of it.
    func installApp(_ name: String, scheme: String, isDefault: Bool = true) throws {
        try write(
            "#!/bin/sh\nprintf '[%s]' \"$@\" >>'\(directory)/\(name).log'\n", to: "\(directory)/bin/\(name)",
            mode: 0o700)
        makeDirectories(applications)
        try write(
            "[Desktop Entry]\nType=Application\nName=\(name)\nExec=\(directory)/bin/\(name) %u\n"
                + "MimeType=x-scheme-handler/\(scheme);\n", to: "\(applications)/\(name).desktop")
        guard isDefault else { return }
        makeDirectories("\(directory)/home/.config")
        try write("[Default Applications]\nx-scheme-handler/\(scheme)=\(name).desktop;\n", to: defaults)
    }

    func queryDefault(_ scheme: String) async throws -> String {
        try await run("/usr/bin/xdg-mime", ["query", "default", "x-scheme-handler/\(scheme)"]).out
    }
}

@Suite struct `ringback scheme` {
    @Test func `register, list and unregister give and give back, as xdg-mime says`() async throws {
        try await Stage.playSchemes { stage in
            try stage.installApp("app", scheme: Stage.scheme)
            let before = try #require(FileTree.text(of: stage.defaults))
            #expect(try await stage.queryDefault(Stage.scheme) == "app.desktop\n")
            let done = try await stage.ringback(
                "scheme", "register", Stage.scheme, "--account", "work", status: 0, prints: "(before: app.desktop)")
            #expect(done.err.isEmpty, "\(done)")
            let name = "ringback-\(Stage.scheme).desktop"
            #expect(try await stage.queryDefault(Stage.scheme) == "\(name)\n")
            let text = try #require(FileTree.text(of: "\(stage.applications)/\(name)"))
            let lines = text.split(separator: "\n")
            #expect(lines.contains("Exec=\(Programs.path("ringback")) open %u"), "\(text)")
            #expect(lines.contains("NoDisplay=true") && lines.contains("MimeType=x-scheme-handler/\(Stage.scheme);"))

            let list = try JSON(parsing: await stage.ringback("scheme", "list", "--json").out.utf8)
            let rows = try #require(list["schemes"]?.array)
            #expect(rows.map { $0["scheme"]?.string } == [Stage.scheme, "swisscoin"])
            #expect(rows[0]["ours"] == true && rows[0]["handler"]?.string == name && rows[0]["accounts"] == ["work"])
            #expect(rows[0]["former_handler"] == "app.desktop" && rows[0]["registered"] == true)
            #expect(rows[1]["ours"] == false && rows[1]["handler"] == nil && rows[1]["accounts"] == ["app"])
            let table = try await stage.ringback(
                "scheme", "list", status: 0, says: "ringback scheme register swisscoin")
            #expect(table.lines.count == 3 && table.lines[0].hasPrefix("SCHEME"), "\(table)")

            // Another program of the person's pushes ours aside: the list shows what the desktop would start.
            try await stage.run(
                "/usr/bin/xdg-mime", ["default", "app.desktop", "x-scheme-handler/\(Stage.scheme)"], status: 0)
            let other = try JSON(parsing: await stage.ringback("scheme", "list", "--json").out.utf8)["schemes"]?.array
            #expect(other?.first?["ours"] == false && other?.first?["handler"] == "app.desktop")
            try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            #expect(try await stage.queryDefault(Stage.scheme) == "\(name)\n")

            // With a mistake in the configuration, what stands there is not known, and that is no success.
            try stage.write(configuration: "[accounts.work]\nisuer = \"https://a.example\"\n")
            try await stage.ringback("scheme", "list", status: 78, prints: Stage.scheme, says: "isuer")
            let unknown = try await stage.ringback("scheme", "list", "--json")
            let row = try unknown.json["schemes"]?.array?.first
            #expect(unknown.status == 78 && row?["registered"] == true && row?["configured"] == nil, "\(unknown)")
            try stage.write(configuration: Stage.withSchemes)

            let gone = try await stage.ringback("scheme", "unregister", Stage.scheme, "--json")
            let json = try gone.json
            #expect(json["was_registered"] == true && json["handler"] == "app.desktop", "\(gone)")
            #expect(FileTree.text(of: stage.defaults) == before)
            #expect(FileTree.names(in: stage.applications).filter { $0.hasPrefix("ringback") } == [])
            try await stage.ringback("scheme", "unregister", Stage.scheme, status: 0, says: "was not registered")
        }
    }

    @Test func `NAT-03: one without a dot is warned of, with the reason`() async throws {
        try await Stage.playSchemes { stage in
            try await stage.ringback(
                "scheme", "register", "swisscoin", status: 0, says: "any other app may claim the scheme swisscoin")
            let reverse = try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            #expect(reverse.err.isEmpty, "\(reverse)")
            let check = try await stage.ringback(
                "config", "check", status: 0, prints: "Another app may claim the scheme swisscoin")
            #expect(!check.out.contains("claim the scheme \(Stage.scheme)"))
            #expect(check.out.split(separator: "may claim the scheme").count == 2, "\(check)")
            let list = try await stage.ringback("scheme", "list", status: 0)
            #expect(!list.err.contains("may claim the scheme"), "\(list)")
            try await stage.ringback(
                "scheme", "register", "org.example.unused", status: 0, says: "no account uses the scheme")
        }
    }

    @Test func `SC-02: a sign-in whose answer would go to another program says so at its start`() async throws {
        try await Stage.playSchemes { stage in
            try stage.installApp("app", scheme: Stage.scheme)
            let environment = ["DISPLAY": ":99", "BROWSER": "true"]
            let foreign = try stage.start("ringback", ["login", "work"], environment: environment)
            let line = try await foreign.errorLine("a warning") { $0.hasPrefix("warning: ") }
            #expect(line.contains("app.desktop") && line.contains("ringback scheme register \(Stage.scheme)"))
            foreign.send(SIGINT)
            #expect(try await foreign.end().status == 4)
            try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            let own = try stage.start("ringback", ["login", "work"], environment: environment)
            try await stage.eventually("a flow") {
                try await stage.api("GET", "/v1/flows")["flows"]?.array?.contains { $0["status"] == "pending" } == true
            }
            own.send(SIGINT)
            #expect(try await !own.end().err.contains("warning"))
        }
    }

    @Test func `an account must come back by the scheme, and a foreign file is not replaced`() async throws {
        try await Stage.playSchemes { stage in
            try await stage.ringback(
                "scheme", "register", Stage.scheme, "--account", "app", status: 1, says: "redirect_uri = ")
            try await stage.ringback("scheme", "register", Stage.scheme, "--account", "none", status: 64)
            stage.makeDirectories(stage.applications)
            let path = "\(stage.applications)/ringback-\(Stage.scheme).desktop"
            try stage.write("[Desktop Entry]\nExec=/bin/true %u\n", to: path)
            try await stage.ringback("scheme", "register", Stage.scheme, status: 1, says: "--force")
            #expect(FileTree.text(of: path)?.contains("/bin/true") == true)
            try await stage.ringback("scheme", "register", Stage.scheme, "--force", status: 0)
            #expect(FileTree.text(of: path)?.contains("ringback open %u") == true)
        }
    }

    @Test(arguments: Opener.installed) private func `a link that the desktop opens completes a sign-in`(
        opener: Opener
    ) async throws {
        try await Stage.playSchemes { stage in
            try await stage.expectWay(opener, "work", Stage.scheme, query: "code=")
            try await stage.expectWay(opener, "app", "swisscoin", query: "flow=", body: ["oauth_provider": "github"])
        }
    }

    @Test(arguments: Opener.installed) private func `SC-03: whatever a link holds arrives as one argument, verbatim`(
        opener: Opener
    ) async throws {
        try await Stage.playSchemes { stage in
            try await stage.ringback("scheme", "register", Stage.scheme, status: 0)
            // The same file, and a program in its place that shows what it was given.
            let path = "\(stage.applications)/ringback-\(Stage.scheme).desktop"
            let text = try #require(FileTree.text(of: path))
            try stage.installApp("recorder", scheme: "x", isDefault: false)
            try stage.write(
                text.replacing(Programs.path("ringback"), with: "\(stage.directory)/bin/recorder"), to: path)
            var expected = ""
            for tail in [
                "$(id)", "`id`", ";id", "&id", "|id", "%20", "%F%u%%", "a'b", "#x", "*?", "~", "\\n", "(a)", "!1",
                "{a,b}",
                "--help", "a=1&b=2", "[x]",
            ] {
                let url = "\(Stage.scheme):/callback?q=\(tail)"
                expected += "[open][\(url)]"
                let command = opener.command(url)
                try await stage.run(command[0], Array(command.dropFirst()), environment: opener.environment, status: 0)
                try await stage.eventually("\(tail)") {
                    FileTree.text(of: "\(stage.directory)/recorder.log")?.utf8.count == expected.utf8.count
                }
            }
            #expect(FileTree.text(of: "\(stage.directory)/recorder.log") == expected)
        }
    }
}

extension Stage {
    func callback(of flow: PendingFlow) async throws -> String {
        var url = flow.authorizationURL
        for _ in 0..<6 where url.hasPrefix("http") {
            guard let location = try await Browser.load(LocalURL(url)).location else { break }
            url = location.hasPrefix("/") ? try LocalURL(url).following(location).text : location
        }
        return url
    }

    fileprivate func expectWay(
        _ opener: Opener, _ account: String, _ scheme: String, query: String, body: JSON = [:]
    ) async throws {
        #expect(try await ringback("scheme", "register", scheme).status == 0)
        let flow = try await begin(account, body)
        let callback = try await callback(of: flow)
        #expect(callback.hasPrefix("\(scheme):") && callback.contains(query), "\(callback)")
        let command = opener.command(callback)
        let opened = try await run(command[0], Array(command.dropFirst()), environment: opener.environment)
        #expect(opened.status == 0, "\(opened)")
        #expect(try await ended(flow)["status"] == "completed")
        #expect(try await token(account) != nil)
    }
}
