import Foundation
import Testing

/// The commands that no test can run as they stand, each with the reason. Nothing else may stand in a `console` block.
private let commandsForPeople = [
    "make demo": "builds the release executables; `ringback demo`, which it then runs, is run below",
    "make test": "is what runs this",
    "make deb": "packages the release executables; run by make test-packages",
    "make dist": "the same",
    "tar -xf dist/ringback-*.tar.xz": "unpacks what make dist made; make test-packages does, elsewhere",
    "./ringback-*/install": "the same, and writes to the home directory",
    "make vendor": "fetches the sources of the dependencies",
    "make test-packages": "installs the package in a Debian of its own; its short form is run by make test",
    "sudo apt-get install ./dist/ringback_*.deb": "writes to the system; make test-packages does, elsewhere",
    "systemctl --user start ringback.socket": "changes the user's own service manager",
    "make release": "builds the release executables, which takes minutes",
    "sudo make install": "writes to the system; run with a DESTDIR by the tests of the manual",
    "systemctl --user daemon-reload": "changes the user's own service manager",
    "systemctl --user enable --now ringback.socket": "changes the user's own service manager",
    "systemctl --user enable --now ringback-metrics.timer": "the same",
    "make build": "builds the debug executables",
    "make check": "is a part of what runs this",
    "make": "prints the list of targets",
    "ringback account add mail --provider google --client-id 1234.apps.googleusercontent.com --client-secret-file ~/.config/ringback/google.secret --scope openid --scope email --scope https://mail.google.com/":
        "needs a client of one's own at Google; `account add` with a preset is run by the tests of descriptions",
    "ringback login mail": "needs a person at Google",
    "ringback account add linear --mcp https://mcp.linear.app/mcp":
        "asks that server; run at a server of its own by the tests of accounts at MCP servers",
    "ringback account add tools --mcp https://mcp.example.com/mcp --grant client_credentials --client-id ID --credential tools":
        "the same",
    "ringback login linear": "the same",
    "ringback token linear --format json-headers": "the same",
    "ringback login work --no-browser": "waits for a person to carry its output to a browser",
    "~/.local/share/ringback/install --undo": "writes to the home directory; run by the tests of the installer",
    "make uninstall PREFIX=~/.local": "the same; run by the tests of the manual",
    "ringback login work --method device": "waits for a person; run by the tests of device sign-ins",
    "ringback login work --no-browser --callback-port 8400": "waits for a person, on a port that may be taken",
    "ringback scheme register org.example.app --account work":
        "changes the desktop; run by the tests of ringback scheme",
    "ringback scheme list": "the same",
    "ringback doctor": "the same, by those of ringback doctor",
    "ringback scheme unregister org.example.app": "the same",
    "ringback scheme register swisscoin": "the same",
    "ringback links swisscoin": "runs until Ctrl-C; run by the tests of deep links",
    #"curl -N --unix-socket "$XDG_RUNTIME_DIR/ringback/ringback.sock" 'http://ringback/v1/deep-links?scheme=swisscoin'"#:
        "the same",
    #"curl -X POST --unix-socket "$XDG_RUNTIME_DIR/ringback/ringback.sock" http://ringback/v1/deep-links/ID/ack"#:
        "the same",
    "ringback agent --config ci.toml --credential-fd deploy=3 -- ./deploy.sh 3< <(pass show ci/deploy)":
        "needs a provider and a password store; run like this by the tests of ringback agent",
    #"ringback agent --config ci.toml --credential-fd deploy=3 -- env -u SECRET ./deploy.sh 3<<<"$SECRET""#: "the same",
    "ssh -N -o StreamLocalBindUnlink=yes -L ~/.ringback-db/.s.PGSQL.5432:/run/postgresql/.s.PGSQL.5432 db.example.org":
        "needs another machine",
    "ssh -R /run/user/1000/ringback.sock:$XDG_RUNTIME_DIR/ringback/exposed/ci.sock far.example.org":
        "needs another machine; run at this one by make test-ssh",
    "podman run -v $XDG_RUNTIME_DIR/ringback/mount/ci:/run/ringback:ro -e RINGBACK_SOCK=/run/ringback/socket IMAGE":
        "needs podman; the same is run in namespaces by the tests of restricted sockets",
    "ringback expose agent --account linear --mcp --tool list_issues --tool get_issue":
        "there is no MCP server: ExposedServerTests run it",
    "ringback expose calendar --account work --flatpak org.example.Calendar":
        "is for an app that is not there; run by the tests of restricted sockets",
    #"psql -f /usr/share/ringback/supabase/profiles.sql "$DATABASE_URL""#:
        "needs a Supabase project; run by the tests of the profile table where PostgreSQL is installed",
    #"psql -v table=users -f /usr/share/ringback/supabase/profiles.sql -f /usr/share/ringback/supabase/profiles-full.sql "$DATABASE_URL""#:
        "the same",
    "ringback supabase update-user app --email new@example.org": "asks a person for codes; run by the tests of changes",
    "ringback supabase update-user app --email new@example.org </dev/null": "the same",
    "ringback verify app <code-of-one-address": "the same",
    "ringback verify app <code-of-the-other": "the same",
    "ringback login app --method anonymous": "the same",
    "ringback supabase update-user app --email mira@example.org --password": "the same",
    "ringback verify app": "the same",
    "ringback login app --method id_token --with apple --data '{\"full_name\":\"Mira Nordlys\"}'":
        "needs a token of Apple's; run by the tests of sign-ins with one",
    "ringback login site --method id_token --from google": "needs two providers; run by the tests of changes",
    "kubectl config set-credentials work --exec-api-version=client.authentication.k8s.io/v1 --exec-command=kubectl-ringback --exec-interactive-mode=IfAvailable --exec-provide-cluster-info":
        "needs kubectl; run by the tests of kubectl, where it is installed",
    #"curl -sSf -u ada@example.org -K <(printf 'oauth2-bearer = "%s"' "$(ringback token --origin imaps://mail.example.org)") imaps://mail.example.org/ -X 'STATUS INBOX (MESSAGES)'"#:
        "needs a mail server; run by make test-tools, as are the lines of configuration of the same page",
    "curl -sSf -H @<(ringback token --origin https://files.example.org --format header) https://files.example.org/a.txt":
        "needs a server; run by make test-tools",
    "LC_ALL=C wget --use-askpass=/usr/lib/ringback/ringback-askpass https://files.example.org/a.txt":
        "needs a server; wget's prompts are read by the tests of the adapters, and git runs the program in those of git",
    "ringback setup go":
        "needs go; run by make test-tools, and with a program in its place by the tests of ringback setup",
    "ringback vault init postgresql://postgres@db.example.org/ringback --owner ada":
        "needs a PostgreSQL; run with one by make test-hosts",
    "ringback vault join": "the same", "ringback vault move": "the same",
    "ringback vault invite": "the same",
    "ringback vault share": "the same", "ringback vault hosts": "the same",
    "ringback vault remove-host old-laptop": "the same", "ringback vault status": "the same",
    "ringback vault status postgresql://postgres@db.example.org/ringback": "the same",
    "ringback vault migrate postgresql://postgres@db.example.org/ringback": "the same",
    "ringback run -- python3 -m http.server":
        "needs bubblewrap and a person who is not root; run by make test-confined",
    "ringback run --account work --scope email -- ./report": "the same",
    "ringback run --explain --read ~/data -- ./train": "the same",
    "ringback run --mcp linear --tool list_issues -- ./agent": "the same",
    "ringback run --relay OPENAI_BASE_URL=https://api.example.org/v1 -- ./agent": "the same",
    "ringback exec work --relay API=https://api.example.org/v1 -- ./report":
        "needs that server; run with another one by the tests of ringback exec and by make test-confined",
    "ringback run claude": "the same, with a program in its place", "ringback run codex": "the same",
    "ringback run aider": "the same", "ringback run shell": "the same",
    "ringback run claude -- claude --continue": "the same",
    "ringback run claude --write ~/data --network intranet": "the same",
    "ringback-sandbox --port 8123 --user alice": "runs until Ctrl-C, on a port that may be taken: the stage has one",
]

/// The pages in the order in which a reader would read them; their commands are run in this order.
private let pagePaths =
    ["README.md"]
    + [
        "sign-in", "sessions", "configuration", "api", "command-line", "services", "many-hosts", "tools", "supabase",
        "coming-from",
        "confined", "consent", "sandbox", "desktop", "troubleshooting", "security", "contributing", "architecture",
        "performance",
    ].map { "docs/\($0).md" }

/// The verbs of `ringback` that have verbs below them.
private let verbsWithVerbs: Set<String> = [
    "account", "config", "consent", "vault", "supabase", "scheme", "expose", "origin", "mcp",
]

@Suite struct `README and docs` {
    let readme: Document
    let pages: [Document]

    init() throws {
        readme = try Document(path: "README.md")
        pages = try pagePaths.map { try Document(path: $0) }
    }

    private func blocks(in language: String) -> [String] { pages.flatMap { $0.blocks(in: language) } }

    @Test func `every page of docs is tested, and every link leads to a file that is there`() throws {
        let folder = try FileManager.default.contentsOfDirectory(atPath: "\(Document.root)/docs")
        #expect(Set(folder.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }) == Set(pagePaths.dropFirst()))
        for (path, page) in zip(pagePaths, pages) {
            for target in page.links where !target.hasPrefix("http") {
                let file = target.prefix { $0 != "#" }
                guard !file.isEmpty else { continue }
                let base = path.hasPrefix("docs/") ? "docs/" : ""
                #expect(
                    FileManager.default.fileExists(atPath: "\(Document.root)/\(base)\(file)"), "\(path): \(target)")
            }
        }
    }

    @Test func `every command works as it is printed, in order`() async throws {
        let blocks = blocks(in: "sh")
        #expect(blocks.count >= 12)
        try await Stage.playReader { stage in
            for block in blocks { try await stage.type(block) }
        }
    }

    @Test func `what no test runs is listed with its reason`() throws {
        let lines = blocks(in: "console").joined().split(separator: "\n")
        let commands = lines.map { String($0.prefix { $0 != "#" }).trimmed }
        #expect(Set(commands) == Set(commandsForPeople.keys))
        let targets = try Document(path: "Makefile").lines.compactMap { $0.split(separator: ":").first }
        for command in commands {
            let words = command.split(separator: " ")
            guard let make = words.firstIndex(of: "make"), make + 1 < words.count else { continue }
            #expect(targets.contains(words[make + 1]), "\(command)")
        }
        let languages = Set(pages.flatMap { $0.blocks.map(\.language) })
        #expect(languages == ["conf", "console", "mermaid", "sh", "swift", "toml"])
    }

    @Test func `from the package to the first token a person types less than 300 characters`() throws {
        let lines = readme.blocks.filter { $0.language == "console" || $0.language == "sh" }
            .flatMap { $0.text.split(separator: "\n").map(String.init) }.filter { !$0.hasPrefix("#") }
        let first = try #require(lines.firstIndex { $0.hasPrefix("sudo apt-get install") })
        let end = try #require(lines.firstIndex { $0 == "ringback token play" })
        // The other ways to install, and what is not needed for the first token, stand between the two.
        let typed = lines[first...end].filter { line in
            ["sudo apt-get", "ringback-sandbox"].contains { line.hasPrefix($0) } || line.contains(" play")
        }
        let units = lines[first...].dropFirst().prefix { $0.hasPrefix("systemctl") }
        let count = (typed + units).reduce(0) { $0 + $1.count + 1 }
        #expect(typed.count == 5 && units.count == 2, "\(typed), \(units)")
        #expect(count < 300)
    }

    @Test func `the first screen has the two commands, where to get Swift, and the honest sentence`() {
        let screen = readme.lines.prefix(32).joined(separator: "\n")
        for words in ["make demo", "make test", "https://www.swift.org/install/linux/", "is not lost"] {
            #expect(screen.contains(words))
        }
        #expect(screen.contains("any program that runs as your user can get any token from Ringback"))
    }

    /// The headings and the steps, without ports and pids.
    private func steps(_ text: String) -> [String] {
        let lines = text.split(separator: "\n").map { line in String(line.filter { !$0.isNumber }) }
        return lines.filter { $0.hasPrefix(". ") || $0.hasPrefix("   ✓ ") }
    }

    @Test func `the demo ends well, and is as the picture shows it`() async throws {
        let picture = try Document(path: "docs/demo.svg").text
            .replacing(#/<[^>]*>/#, with: "").replacing("\u{A0}", with: " ").replacing("&#x27;", with: "'")
        let shown = steps(picture)
        #expect(shown.count > 20 && readme.text.contains("(docs/demo.svg)"), "\(shown)")
        try await Stage.play("", startsDaemon: false) { stage in
            let demo = try await stage.ringback("demo", within: Bound.seconds(60), status: 0)
            #expect(steps(demo.out) == shown, "make pictures, then copy the picture: \(demo)")
        }
    }

    @Test func `the configuration passes the daemon's check`() async throws {
        let blocks = blocks(in: "toml")
        #expect(!blocks.isEmpty)
        try await Stage.play("", startsDaemon: false) { stage in
            // A token to trade and a key have to be there when they are asked for; here they never are.
            let (assertion, key) = ("\(stage.directory)/assertion", "\(stage.directory)/key")
            try stage.write("a.b.c", to: assertion)
            try stage.write(`A client's own key`.key, to: key)
            try stage.write(
                configuration: blocks.joined(separator: "\n")
                    .replacing("/var/run/secrets/tokens/ringback", with: assertion)
                    .replacing("~/.config/ringback/robot.pem", with: key))
            try await stage.ringback("config", "check", status: 0, prints: "mail: google", "other: oauth2")
        }
    }

    @Test func `the program is the example's, line for line`() throws {
        let example = try Document(path: "Examples/ListenToSessions/Sources/ListenToSessions/main.swift")
        #expect(blocks(in: "swift") == [example.text])
    }

    @Test func `the commands for those who come from another program exist, with their options`() async throws {
        let spans = try Document(path: "docs/coming-from.md").codeSpans.filter { $0.hasPrefix("ringback ") }
        #expect(spans.count > 40)
        try await Stage.play("", startsDaemon: false) { stage in
            var helps: [[String]: String] = [:]
            for span in spans {
                // What follows `--` is the other program's.
                let words = Array(span.split(separator: " ").dropFirst().map(String.init).prefix { $0 != "--" })
                let verb = Array(words.prefix(verbsWithVerbs.contains(words[0]) ? 2 : 1))
                if helps[verb] == nil {
                    let answer = try await stage.run("ringback", verb + ["--help"], status: 0)
                    helps[verb] = answer.out
                }
                let help = helps[verb] ?? ""
                for option in words where option.hasPrefix("--") {
                    #expect(help.contains(option), "\(option) of \(span)")
                }
            }
        }
    }

    @Test func `the words of its symptoms are words that the programs say`() async throws {
        let tables = readme.tableRows + (try Document(path: "docs/troubleshooting.md").tableRows)
        let symptoms = tables.map { $0.first ?? "" }.filter { $0.hasPrefix("`") && !$0.hasPrefix("`ringback ") }
        let spans: [String] = symptoms.flatMap { Document.codeSpans(in: $0) }.filter { $0.contains(" ") }
        #expect(spans.count > 8)
        try await Stage.play("", startsDaemon: false) { stage in
            let pieces: [String] = spans.flatMap { $0.split(separator: "…").map { String($0).trimmed } }
            for piece in pieces where piece.count > 1 {
                try await stage.run(
                    "/usr/bin/grep", ["-rqF", "--include=*.swift", "--", piece, "\(Document.root)/Sources"], status: 0)
            }
        }
    }

    @Test func `the verbs that a page mentions exist`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let verbs = try await stage.verbs()
            for path in pagePaths + ["SECURITY.md", "CHANGES.md"] {
                for span in try Document(path: path).codeSpans where span.hasPrefix("ringback ") {
                    let word = String(span.split(separator: " ")[1])
                    let isKnown = verbs.contains(word) || ["help", "--help", "--help-all"].contains(word)
                    #expect(isKnown, "\(path): \(span)")
                }
            }
        }
    }
}

extension Stage {
    func verbs() async throws -> [String] { Stage.verbs(in: try await ringback("--help-all").out) }

    static func verbs(in help: String) -> [String] {
        let lines = help.split(separator: "\n")
        return lines.drop { !$0.hasSuffix("SUBCOMMANDS:") }.dropFirst().compactMap { line in
            // Deeper lines go on with what a verb does; the last is a sentence.
            let word = line.split(separator: " ").first
            return line.hasPrefix("  ") && !line.hasPrefix("   ") && word?.first?.isLowercase == true
                ? word.map(String.init) : nil
        }
    }
}
