// The walks of docs/architecture.md: lists of functions in the order in which a reader opens them, each with its file.

import Testing

private struct Walk {
    struct Step: Equatable {
        /// `Type.member`, or the name of a global function. A main file has none.
        let symbols: [String]
        /// From the project's root; empty if the step names no file of Sources.
        let path: String

        /// Nil if the text is no item of a numbered list.
        init?(_ item: String) {
            let number = item.prefix { $0.isNumber }
            guard !number.isEmpty, item.dropFirst(number.count).hasPrefix(". ") else { return nil }
            let spans = Document.codeSpans(in: item)
            let place = spans.firstIndex { $0.hasPrefix("Sources/") } ?? spans.endIndex
            symbols = Array(spans[..<place])
            path = place < spans.endIndex ? spans[place] : ""
        }

        init(_ symbols: [String], _ path: String) {
            self.symbols = symbols
            self.path = path
        }
    }

    let title: String
    /// The number of files that the heading allows; 0 if it states none.
    let mostFiles: Int
    var steps: [Step] = []

    init(heading: String) {
        title = heading
        mostFiles = heading.firstMatch(of: #/\(at most ([0-9]+) files\)/#).flatMap { Int($0.1) } ?? 0
    }

    static func all(in page: Document) -> [Walk] {
        let section = page.lines.drop { $0 != "## Walks" }.dropFirst().prefix { !$0.hasPrefix("## ") }
        var items: [String] = []
        for line in section {
            if line.hasPrefix("   "), let last = items.indices.last {
                items[last] += " " + String(line).trimmed
            } else {
                items.append(String(line))
            }
        }
        return items.reduce(into: []) { walks, item in
            if item.hasPrefix("### ") {
                walks.append(Walk(heading: item))
            } else if let step = Step(item), let last = walks.indices.last {
                walks[last].steps.append(step)
            }
        }
    }
}

extension SourceText {
    private static let declarations: Set<Substring> = [
        "func", "var", "let", "case", "struct", "class", "enum", "actor", "protocol",
    ]

    /// True if the file declares the member in the type or in an extension of it. A name without a dot is that of a type
    /// or a global function.
    fileprivate func declares(_ symbol: String) -> Bool {
        let names = symbol.split(separator: ".")
        guard let member = names.last else { return false }
        let type = names.dropLast().joined(separator: ".")
        guard type.isEmpty || parts.contains(where: { $0.name == type || $0.name.hasSuffix(".\(type)") }) else {
            return false
        }
        return lines.contains { line in
            // With the dot: the call `self.init` declares nothing.
            let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == ".") }
            if member == "init" { return words.contains("init") }
            return zip(words, words.dropFirst()).contains { SourceText.declarations.contains($0) && $1 == member }
        }
    }
}

@Suite struct `The walks of docs/architecture.md` {
    private let walks: [Walk]
    /// By their paths from the project's root.
    private let files: [String: SourceTree.File]

    init() throws {
        walks = Walk.all(in: try Document(path: "docs/architecture.md"))
        files = try SourceTree.project.get().files.reduce(into: [:]) { $0["Sources/\($1.path)"] = $1 }
    }

    @Test func `a callback, an expired token, login and a git lookup each have a walk with steps`() {
        let subjects = ["callback", "expired token", "ringback login", "git"]
        #expect(walks.count == subjects.count)
        for (walk, subject) in zip(walks, subjects) {
            #expect(walk.title.contains(subject))
            #expect(walk.steps.count > 10, "\(walk.title)")
        }
    }

    @Test func `the file of each step of a walk exists and declares the symbols of the step`() {
        for walk in walks {
            for step in walk.steps {
                guard let file = files[step.path] else {
                    Issue.record("\(walk.title): no file of Sources for \(step.symbols) at “\(step.path)”")
                    continue
                }
                #expect(!step.symbols.isEmpty || file.name == "main", "\(walk.title): \(step.path)")
                for symbol in step.symbols {
                    #expect(file.source.declares(symbol), "\(walk.title): \(symbol) is not in \(step.path)")
                }
            }
        }
    }

    @Test func `a walk opens no more files than its heading allows`() {
        for walk in walks {
            let opened = Set(walk.steps.map(\.path)).count
            #expect(opened <= walk.mostFiles, "\(walk.title): \(opened)")
        }
    }

    @Test func `the reader of walks finds the limit, the symbols and the file of an item over two lines`() throws {
        let page = Document(
            """
            1. `No.walk` — `Sources/No.swift`

            ## Walks

            ### A (at most 12 files)

            1. `One.first`, `Two.second`,
               `three` — `Sources/Wing/Target/A.swift`: not `Four.fourth`.
            2. `Sources/main.swift`
            3. `Lost.symbol`

            `Five.fifth` is prose.

            ### B

            ## Other

            4. `No.walk` — `Sources/No.swift`
            """)
        let walks = Walk.all(in: page)
        #expect(walks.map(\.mostFiles) == [12, 0])
        let first = try #require(walks.first)
        #expect(
            first.steps == [
                Walk.Step(["One.first", "Two.second", "three"], "Sources/Wing/Target/A.swift"),
                Walk.Step([], "Sources/main.swift"), Walk.Step(["Lost.symbol"], ""),
            ])
    }

    @Test func `a call, a comment and a string do not declare a symbol`() {
        let source = SourceText(
            """
            extension Outer {
                struct Inner {
                    init?(_ a: Int) { self.run(a) }
                    static func run(_ a: Int) {}  // func commented()
                }
            }
            extension Other { func go() { .init(); call("func said") } }
            """)
        for symbol in ["Inner.init", "Outer.Inner.run", "Other.go"] {
            #expect(source.declares(symbol), "\(symbol)")
        }
        for symbol in ["Inner.commented", "Other.said", "Other.call", "Missing.run", "commented"] {
            #expect(!source.declares(symbol), "\(symbol)")
        }
    }
}
