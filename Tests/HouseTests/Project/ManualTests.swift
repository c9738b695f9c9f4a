import Glibc
import RingbackAPI
import RingbackBase
import Testing

@Suite struct `The manual` {
    @Test func `every example works as it is printed, in order`() async throws {
        let examples = try Manual.pages.flatMap { try Document(path: "man/\($0)").manualExamples }
        #expect(examples.count >= 3)
        try await Stage.playReader { stage in
            for example in examples { try await stage.type(example) }
        }
    }

    @Test func `each verb has a page, of which groff does not complain`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let directory = "\(stage.directory)/pages"
            let made = try await stage.run(
                "\(Document.root)/Scripts/manual", ["\(Programs.directory)/ringback", directory])
            try #require(made.status == 0, "\(made)")
            let pages = FileTree.names(in: directory)
            let verbs = try await stage.verbs().map { "ringback-\($0).1" }
            #expect(Set(pages) == Set(verbs + ["ringback.1", "ringback.toml.5"]))
            guard Manual.hasGroff else { return }
            for page in pages {
                let shown = try await stage.run("/usr/bin/groff", ["-man", "-ww", "-Tutf8", "\(directory)/\(page)"])
                #expect(shown.status == 0 && shown.err.isEmpty, "\(page): \(shown.err)")
            }
        }
    }

    @Test func `docs/command-line.md has each verb, and only options that there are`() async throws {
        let text = try Document(path: "docs/command-line.md").text
        try await Stage.play("", startsDaemon: false) { stage in
            let help = try JSON(parsing: try await stage.ringback("--experimental-dump-help").out.utf8)
            let leaves = CommandLineWords.leaves(in: try #require(help["command"]))
            #expect(leaves.count > 40)
            for (verb, _) in leaves {
                #expect(text.contains("`ringback \(verb)") || text.contains("`\(verb)"), "\(verb)")
            }
            // `systemctl --user`; a row of dashes in a table.
            let known = leaves.reduce(into: Set(["help-all", "user", "-"])) { $0.formUnion($1.options) }
            let unknown = Manual.options(in: text).subtracting(known.map { "--\($0)" })
            #expect(unknown.isEmpty, "\(unknown.sorted())")
        }
    }

    @Test(arguments: ["ringbackd", "ringback-relay", "ringback-sandbox"])
    func `its options are those of the programs`(program: String) async throws {
        let page = program == "ringbackd" ? "ringbackd.8" : "\(program).1"
        let text = try Document(path: "man/\(page)").text.replacing("\\-", with: "-")
        try await Stage.play("", startsDaemon: false) { stage in
            let help = Manual.options(in: try await stage.run(program, ["--help"]).out)
            // The options of the other programs in the examples and of `systemctl`.
            let foreign: Set = ["--unix-socket", "--user", "--now"]
            #expect(Manual.options(in: text).subtracting(foreign.subtracting(help)) == help)
        }
    }

    @Test func `docs/configuration.md has a row for every key of the configuration`() throws {
        let page = try Document(path: "docs/configuration.md").lines
        let rows = page.filter { $0.hasPrefix("| `") }
        // A row begins with the table that its keys belong to; without one, they belong to an account.
        let tables = [
            "vault": "vault", "network": "network", "notifications": "notifications", "schemes": "scheme",
            "expose": "expose", "origin": "origin", "file": "keptFile", "accounts": "account", "profile": "profile",
            "endpoints": "endpoints", "run": "run", "consent": "consent",
        ]
        var documented: [String: Set<String>] = [:]
        for row in rows {
            let words = Manual.codeWords(row)
            let table = row.hasPrefix("| `[") ? words.prefix { tables[$0] != nil || $0 == "NAME" } : []
            let section = table.last { $0 != "NAME" }.flatMap { tables[$0] } ?? "account"
            documented[section, default: []].formUnion(words.dropFirst(table.count))
            documented["file", default: []].formUnion(table.prefix(1))
            // `accounts.NAME.profile` is the key `profile` of an account.
            documented["account", default: []].formUnion(table.dropFirst())
        }
        // The key before the first table has a section of its own.
        if page.contains("## The default account") { documented["file", default: []].insert("default") }
        let keys = try Manual.keys()
        #expect(keys.count > 50)
        for key in keys {
            #expect(documented[key.section]?.contains(key.name) == true, "\(key.section): \(key.name)")
        }
    }

    @Test func `docs/api.md has a row for every route, and no other`() async throws {
        let rows = try Document(path: "docs/api.md").lines.filter { $0.hasPrefix("| `") }
        let documented = rows.flatMap { row in
            Manual.codeSpans(row).compactMap { span -> String? in
                let parts = span.split(separator: " ", maxSplits: 1)
                guard parts.count == 2, parts[1].hasPrefix("/v1/") else { return nil }
                return "\(parts[0]) \(parts[1].prefix { $0 != "?" })"
            }
        }
        let routes = Endpoint.allCases.map { "\($0.method.rawValue) \($0.path)" }
        #expect(Set(routes).subtracting(documented).sorted() == [])
        #expect(Set(documented).subtracting(routes).sorted() == [])
    }

    @Test func `the daemon knows each of these keys`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let tables = [
                "file": "", "account": "[accounts.a]\n", "endpoints": "[accounts.b.endpoints]\n",
                "profile": "[accounts.c.profile]\n", "vault": "[vault]\n",
                "scheme": "[schemes.d]\n",
                "notifications": "[notifications]\n", "consent": "[consent]\n", "network": "[network]\n",
                "expose": "[[expose]]\n",
                "origin": "[[origin]]\n", "keptFile": "[[file]]\n", "run": "[run.e]\n",
            ]
            let keys = try Manual.keys()
            for section in Set(keys.map(\.section)) {
                // A value that fits none: every key is spoken of, and none as an unknown one.
                let lines = keys.filter { $0.section == section }.map { "\($0.name) = [[[]]]\n" }
                let table = try #require(tables[section], "\(section)")
                try stage.write(configuration: table + lines.joined() + "unheard_of = 1\n")
                let check = try await stage.ringback("config", "check", status: 78)
                let unknown = check.err.split(separator: "\n").filter { $0.contains("unknown key") }
                #expect(unknown.count == 1 && unknown[0].contains("unheard_of"), "\(section): \(check)")
            }
        }
    }

    @Test(.enabled(if: Manual.hasGroff, "groff is not installed"), arguments: Manual.pages)
    func `groff has no complaint`(page: String) async throws {
        let arguments = ["-man", "-ww", "-Tutf8", "\(Document.root)/man/\(page)"]
        let ended = try await Program("/usr/bin/groff", arguments, environment: ["PATH": "/usr/bin:/bin"]).end().expect(
            0)
        #expect(ended.err.isEmpty && !ended.out.isEmpty, "\(ended.err)")
    }

    @Test func `make install brings everything, and make uninstall takes it away`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let destination = "\(stage.directory)/a destination"
            let arguments = [
                "--no-print-directory", "-C", Document.root, "RELEASE=\(Programs.directory)", "DESTDIR=\(destination)",
                "PREFIX=/usr",
            ]
            try await stage.run(
                "/bin/sh", ["-c", "umask 077; exec /usr/bin/make install \"$@\"", "make"] + arguments, status: 0)
            #expect(
                try await stage.run("/usr/bin/find", [destination, "-type", "d", "!", "-perm", "755"]).out.isEmpty)
            let files = try await stage.run("/usr/bin/find", [destination, "-type", "f", "-printf", "/%P %m\n"]).lines
            let verbs = Set(try await stage.verbs().map { "/usr/share/man/man1/ringback-\($0).1 644" })
            #expect(verbs.isSubset(of: files))
            #expect(
                files.filter { !verbs.contains($0) }.sorted()
                    == [
                        "/usr/bin/ringback 755", "/usr/bin/ringback-relay 755", "/usr/bin/ringback-sandbox 755",
                        "/usr/bin/ringbackd 755",
                        "/usr/lib/systemd/user/ringback.service 644", "/usr/lib/systemd/user/ringback.socket 644",
                        "/usr/share/bash-completion/completions/ringback 644",
                        "/usr/share/fish/vendor_completions.d/ringback.fish 644",
                        "/usr/share/man/man1/ringback-relay.1 644",
                        "/usr/share/man/man1/ringback-sandbox.1 644", "/usr/share/man/man1/ringback.1 644",
                        "/usr/share/man/man5/ringback.toml.5 644", "/usr/share/man/man8/ringbackd.8 644",
                        "/usr/share/ringback/50-ringback.conf 644",
                        "/usr/share/ringback/ringback-callback.desktop 644",
                        "/usr/share/ringback/ringbackd.desktop 644",
                        "/usr/share/ringback/supabase/profiles-full.sql 644",
                        "/usr/share/ringback/supabase/profiles.sql 644",
                        "/usr/share/zsh/site-functions/_ringback 644",
                    ])
            try await stage.run(
                "/usr/bin/make", ["install"] + arguments + ["PREFIX=/opt/my own"], status: 2,
                says: "is no path that make install takes")
            try await stage.run("/usr/bin/make", ["uninstall"] + arguments, status: 0)
            #expect(try await stage.run("/usr/bin/find", [destination, "-type", "f"]).out.isEmpty)
        }
    }

    @Test func `make install below ~/.local puts the units where systemd looks, and is undone`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let home = "\(stage.directory)/home"
            let arguments = ["--no-print-directory", "-C", Document.root, "RELEASE=\(Programs.directory)"]
            let installed = try await stage.run("/usr/bin/make", ["install", "PREFIX=~/.local"] + arguments, status: 0)
            let next = "systemctl --user daemon-reload && systemctl --user enable --now ringback.socket"
            #expect(installed.out.contains(next), "\(installed)")
            let unit = FileTree.text(of: "\(home)/.local/share/systemd/user/ringback.service") ?? ""
            #expect(unit.contains("ExecStart=\(home)/.local/bin/ringbackd\n"))
            try await stage.run("/usr/bin/make", ["uninstall", "PREFIX=~/.local"] + arguments, status: 0)
            #expect(try await stage.run("/usr/bin/find", [home, "!", "-type", "d"]).out.isEmpty)
        }
    }
}

private enum Manual {
    static let pages = ["ringback-relay.1", "ringback-sandbox.1", "ringbackd.8"]
    static let hasGroff = unsafe access("/usr/bin/groff", X_OK) == 0

    /// The table of keys, as its source has it: section and name.
    static func keys() throws -> [(section: String, name: String)] {
        let table = try Document(path: "Sources/Configuration/Configuration/TOML/KeyTable.swift").text
        return table.split(separator: "Key(").dropFirst().compactMap { part in
            let start = part.drop { $0.isWhitespace }
            guard start.hasPrefix("."), let quote = start.firstIndex(of: "\"") else { return nil }
            let section = start.dropFirst().prefix { $0.isLetter }
            return (String(section), String(start[start.index(after: quote)...].prefix { $0 != "\"" }))
        }
    }

    /// What stands between backquotes in a line of Markdown.
    static func codeSpans(_ line: some StringProtocol) -> [Substring] {
        let parts = Substring(line).split(separator: "`", omittingEmptySubsequences: false)
        return parts.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    }

    /// The words between backquotes in a line of Markdown, without marks between them.
    static func codeWords(_ line: some StringProtocol) -> [String] {
        codeSpans(line).flatMap { span in
            span.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(String.init)
        }
    }

    /// Every `--option` in a text.
    static func options(in text: String) -> Set<String> {
        let words = text.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_")) }
        return Set(words.filter { $0.hasPrefix("--") && $0.count > 2 }.map(String.init))
    }
}

extension CommandLineWords {
    /// Each verb that does something, as it is typed, with its long options.
    static func leaves(in command: JSON, below path: [String] = []) -> [(verb: String, options: Set<String>)] {
        let verbs = (command["subcommands"]?.array ?? []).filter { $0["commandName"]?.string != "help" }
        guard !verbs.isEmpty else { return [(path.joined(separator: " "), all(in: command).options)] }
        return verbs.flatMap { leaves(in: $0, below: path + [$0["commandName"]?.string ?? ""]) }
    }
}
