// What the daemon and the libraries say names causes, and no command. `ringback` says what to type, by values that quote
// what came from outside.

import Testing

/// Strings that only look like commands, and files that are the place where commands are shown, each with its reason.
private let exceptions: [String: String] = [
    "ringback vault systemd-credential ": "the purpose of a derived key",
    "ringback sealing key check 1": "the purpose of a derived key",
    "ringback setup 1": "the first line of a file, which names its format",
    "ringback mcp": "the application that the relay asks for",
]
private let places: [String: String] = [
    "Hosts/RowDatabase/Schema/Schema.swift": "SQL: the schema has this name",
    "Base/Terminal/PathRemedy.swift": "the commands that ringback and StartAdvice print",
    "Daemon/ringbackd/Options.swift": "the usage of ringbackd, and standard error of a start that failed",
    "Tools/ringback-relay/Main.swift": "the usage of ringback-relay",
    "Desktop/DesktopNotices/NoticeSentences.swift": "notices are shown as they are: no program adds to them",
]
private let programs: Set = [
    "ringback", "ringbackd", "systemctl", "journalctl", "loginctl", "machinectl", "timedatectl", "chmod", "chown",
    "curl", "ss", "xdg-settings", "xdg-mime",
]
/// The parts whose texts reach the socket API.
private let speakers: Set = [
    "APIServer", "BrokerCore", "CallbackListener", "CurlTransport", "DeepLinks", "KeptFiles",
    "OAuth",
    "OAuthSignIn", "SessionVault", "SupabaseAuth", "SupabaseSignIn",
]
/// What may follow a program's name where a sentence speaks of it.
private let prose: Set = ["and", "are", "as", "has", "is", "or", "uses", "with"]

@Suite struct `A text with a command` {
    private let tree: SourceTree

    init() throws { tree = try SourceTree.project.get() }

    private func commands(in text: String) -> [String] {
        SourceText(text).strings.filter { string in
            guard exceptions[string] == nil else { return false }
            let words = string.split(omittingEmptySubsequences: false) { " \n`“”\"(".contains($0) }
            return zip(words, words.dropFirst()).contains { word, next in
                // `ringback(1)` is a manual page.
                guard programs.contains(String(word)), !next.hasPrefix("1)"), let first = next.unicodeScalars.first
                else { return false }
                let bare = next.prefix { $0.isLetter }
                return !prose.contains(String(bare))
                    && (("a"..."z").contains(first) || "-+~/0123456789".unicodeScalars.contains(first))
            }
        }
    }

    @Test func `is in the command line only, and where a program shows what it says itself`() {
        for file in tree.files where !["ringback", "ringback-sandbox", "Sandbox"].contains(file.target) {
            guard places[file.path] == nil else { continue }
            #expect(commands(in: file.text).isEmpty, "\(file.path)")
        }
    }

    @Test func `names no option either where it reaches the socket API`() {
        for file in tree.files where speakers.contains(file.target) {
            let options = file.source.strings.filter { text in
                text.split(separator: " ").contains { $0.count > 3 && $0.hasPrefix("--") && !$0.hasPrefix("---") }
            }
            #expect(options.isEmpty, "\(file.path)")
        }
    }

    @Test func `is found in a string, and not in a comment or a sentence`() {
        let text = ##"""
            // Run: chmod 700 /a
            let one = "Run: chmod go-w \(path)"
            let two = "Start it with " + "`ringback "
                + "login \(name)`"
            let three = "the verbs of ringback and ringbackd are"
            let four = "ringback-sandbox is a program"
            """##
        #expect(commands(in: text) == ["Run: chmod go-w ", "Start it with `ringback login `"])
    }

    @Test func `is an exception only as long as it is there`() {
        let strings = Set(tree.files.flatMap { file in file.source.strings })
        #expect(exceptions.keys.allSatisfy(strings.contains))
        for (path, reason) in places {
            let file = tree.files.first { $0.path == path }
            #expect(
                file.map { path.hasSuffix("Options.swift") || !commands(in: $0.text).isEmpty } == true,
                "\(path): \(reason)")
        }
    }
}

/// Programs, with a word, that begin a command in a string of any target.
private var beginnings: Regex<Substring> {
    #/
    (?:^|[\s“"'(`:=|])
    (?:(?:ringback|ringbackd|ringback-sandbox)\ +(?:--?[a-z]|\\\(|(?!(?:and|are|as|answers|cannot|ended|from|has|is|of|or|that|uses|with)\b)[a-z]+\b)
    |(?:systemctl|journalctl|loginctl|machinectl|timedatectl|kubectl|docker|flatpak|gcloud|xdg-mime|xdg-settings)\ +(?:--?[a-z]|\\\(|[a-z]+\ )
    |(?:chmod|chown|mkdir|rm|ln|kill|tail|curl|psql|ssh|sudo(?!\ and)|eval|export|setenv|set\ -gx|mv|cp)\ +(?:-|[0-9]|[a-z+-]+\ |\\\())
    /#
}
/// What announces a command: a value that follows must be one.
private var announcements: Regex<Substring> {
    #/(?:[Rr]un|Usage|Команда|To\ [^.:“”(]*|See|[Tt]ry\ again|[Ss]tart\ it|Then):\ *\\\((?!shown:)/#
}
/// Strings with values that are no commands, each with its reason.
private let values: [String: String] = [
    "ringback \\(": "goauth's line is compared with it",
    "ringbackd \\(": "the version",
    "ringback \\( (\\()": "the version",
    "ringbackd \\(\\(, up \\(": "what runs",
    "oidc-token of ringback \\(n": "the version",
    "ringback vault systemd-credential \\(": "the purpose of a derived key",
    "To type it instead:  \\(": "a secret for the authenticator app",
    "export \\(=\\(": "EnvShell quotes it, for this shell",
    "set -gx \\( \\(": "EnvShell quotes it, for fish",
    "setenv \\( \\(;": "EnvShell quotes it, for csh",
    "\\(; export \\(;": "TokenLine quotes the value; the name is a constant",
]

@Suite struct `A string that looks like a command` {
    private static func offences(_ text: SourceText) -> [String] {
        text.literals.filter { literal in
            guard !literal.isShownCommand, values[literal.text] == nil else { return false }
            if literal.text.contains(announcements) { return true }
            guard let begin = literal.text.firstMatch(of: beginnings) else { return false }
            return literal.text[begin.range.lowerBound...].replacing("\\(shown:", with: "").contains("\\(")
        }.map(\.text)
    }

    @Test func `has no values put in, except as a ShownCommand, which quotes them`() throws {
        for file in try SourceTree.project.get().files where !["ringback-sandbox", "Sandbox"].contains(file.target) {
            // SQL, whose comment names psql.
            guard file.path != "ringback/Supabase/SQL/Script.swift" else { continue }
            #expect(Self.offences(file.source) == [], "\(file.path)")
        }
    }

    @Test func `is an exception only as long as it is there`() throws {
        let texts = Set(try SourceTree.project.get().files.flatMap { $0.source.literals.map(\.text) })
        #expect(values.keys.filter { !texts.contains($0) } == [])
    }

    @Test(arguments: [
        (#""Run: ringback login \(name)""#, true), (#""Run: ringback " + "login \(name)""#, true),
        (#""ringback login " + name"#, true), (#""ringback \(verb) --all""#, true), (#""Run: \(command)""#, true),
        (#""mkdir \(folder)""#, true), (#""chmod 700 \(path)""#, true),
        (#""a \(b ? "ringback login \(c)" : "") d""#, true),
        (#""systemctl --user start \(unit)""#, true), (#"x("ringback scheme register \(name)")"#, true),
        (#""Run: \(shown: command)""#, false), (#""Run: \(shown: "ringback login \(name)").""#, false),
        (#"ShownCommand("ringback login \(name)")"#, false),
        (#"let a: ShownCommand = "ringback login \(name)""#, false),
        (#""\(name) is signed in. Run: ringback unlock""#, false), (#""ringback is \(version)""#, false),
        (#"// "ringback login \(name)""#, false), (#""To \(path): ringback accounts""#, false),
    ]) func `is found however it is written`(code: String, isFound: Bool) {
        #expect(Self.offences(SourceText(code)).isEmpty != isFound)
    }
}
