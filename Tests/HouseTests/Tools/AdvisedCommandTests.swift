import Foundation
import Testing

@Suite struct `A command that a message names` {
    /// What somebody is told to type, as it stands in a string of the sources. What is put in is an argument.
    private struct Advice: Hashable {
        let words: [String]
        let place: String
    }

    private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Sources")

    /// Before a command, where it is no sentence about the program.
    private static let openings = [
        "`", "“", "\"", "run ", "Run: ", "run: ", ": ", "use ", "or ", "with ", "into ", "after ",
    ]

    /// What follows the program's name where a sentence speaks of it.
    private static let prose: Set = ["and", "is"]

    private static func advice() throws -> Set<Advice> {
        var found: Set<Advice> = []
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
        for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            // No comments, and no labels of keys.
            for line in lines where !line.drop(while: { $0 == " " }).hasPrefix("//") && !line.contains("purpose") {
                for rest in commands(in: String(line)) {
                    found.insert(Advice(words: rest, place: file.lastPathComponent))
                }
            }
        }
        return found
    }

    /// The words after `ringback` up to the end of the sentence or of the string.
    private static func commands(in line: String) -> [[String]] {
        var found: [[String]] = []
        var rest = line[...]
        while let match = rest.range(of: "ringback ") {
            let before = rest[..<match.lowerBound]
            rest = rest[match.upperBound...]
            guard openings.contains(where: { before.hasSuffix($0) }) else { continue }
            var words: [String] = []
            for word in rest.prefix(while: { !"`\"”".contains($0) }).split(separator: " ") {
                let bare = word.trimmingCharacters(in: CharacterSet(charactersIn: ".,;:)"))
                words.append(bare)
                if bare != word { break }
            }
            if let first = words.first, first.first?.isLetter == true, !prose.contains(first) { found.append(words) }
        }
        return found
    }

    @Test func `every command that a message names exists with its options`() async throws {
        let advice = try Self.advice()
        // Those that were looked for when this was written.
        let firsts = Set(advice.compactMap(\.words.first))
        #expect(firsts.isSuperset(of: ["login", "unlock", "supabase", "config", "accounts", "verify", "cancel"]))
        let main = try await help([])
        for advice in advice.sorted(by: { ($0.words.joined(), $0.place) < ($1.words.joined(), $1.place) }) {
            let place = "\(advice.place): ringback \(advice.words.joined(separator: " "))"
            guard let verb = advice.words.first, Self.names(main).contains(verb) else {
                Issue.record("no such verb: \(place)")
                continue
            }
            var path = [verb]
            var text = try await help(path)
            if let second = advice.words.dropFirst().first, !second.hasPrefix("\\("), Self.hasVerbs(text) {
                #expect(Self.names(text).contains(second) || text.contains("(default)"), "\(place)")
                path.append(second)
                text = try await help(path)
            }
            for option in advice.words where option.hasPrefix("--") && option != "--" {
                let name = option.prefix { $0 != "=" }
                #expect([" ", "\n", ",", "]"].contains { text.contains("\(name)\($0)") }, "\(place)")
            }
        }
    }

    private static func hasVerbs(_ help: String) -> Bool { help.contains("SUBCOMMANDS:") }

    private static func names(_ help: String) -> Set<String> {
        Set(
            help.split(separator: "\n").filter { $0.hasPrefix("  ") }
                .compactMap { $0.split(separator: " ").first.map(String.init) })
    }

    private func help(_ path: [String]) async throws -> String {
        let program = try Program(
            "ringback", (path.isEmpty ? ["--help-all"] : path + ["--help"]), environment: ["COLUMNS": "200"])
        let ended = try await program.end().expect(0)
        return ended.out
    }
}
