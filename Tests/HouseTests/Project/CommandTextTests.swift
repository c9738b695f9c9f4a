// What the daemon and the libraries say names causes, and no command. `ringback` says what to type.

import Testing

/// Strings that only look like commands, and files that are the place where commands are shown, each with its reason.
private let exceptions: [String: String] = [
    "ringback vault systemd-credential ": "the purpose of a derived key",
    "ringback sealing key check 1": "the purpose of a derived key",
    "ringback setup 1": "the first line of a file, which names its format",
    "ringback mcp": "the application that the relay asks for",
]
private let places: [String: String] = [
    "RowDatabase/Schema/Schema.swift": "SQL: the schema has this name",
    "Terminal/PathRemedy.swift": "the commands that ringback and StartAdvice print",
    "ringbackd/StartAdvice.swift": "standard error of a start that failed",
    "ringbackd/Options.swift": "the usage of ringbackd",
    "ringback-relay/Main.swift": "the usage of ringback-relay",
    "DesktopNotices/NoticeWords.swift": "notices are shown as they are: no program adds to them",
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
