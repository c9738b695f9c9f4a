// The project's own pages, taken apart: what they tell a reader to type is what the tests run.

import Glibc
import TestSupport

struct Document: Sendable {
    let text: String

    /// The directory that holds `Package.swift`.
    static let root: String = {
        // Tests/HouseTests/Support/Document.swift
        var path = #filePath[...]
        for _ in 0..<4 { path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }
        return String(path)
    }()

    init(_ text: String) {
        self.text = text
    }

    /// - Parameter path: from the project's root.
    init(path: String) throws {
        guard let bytes = FileTree.bytes(of: "\(Document.root)/\(path)") else {
            throw SystemError(call: "open \(path)", code: errno)
        }
        text = String(decoding: bytes, as: UTF8.self)
    }

    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

    struct Block: Sendable {
        /// The word after the fence.
        let language: String
        var text = ""
    }

    var blocks: [Block] {
        var blocks: [Block] = []
        var open: Block?
        for line in lines {
            if line.hasPrefix("```") {
                if let block = open { blocks.append(block) }
                open = open == nil ? Block(language: String(line.dropFirst(3))) : nil
            } else {
                open?.text += "\(line)\n"
            }
        }
        return blocks
    }

    func blocks(in language: String) -> [String] { blocks.filter { $0.language == language }.map(\.text) }

    var tableRows: [[String]] {
        lines.filter { $0.hasPrefix("| ") }.map { line in
            line.replacing("\\|", with: "\u{1}").split(separator: "|").map {
                $0.replacing("\u{1}", with: "|").trimmed
            }
        }
    }

    /// What stands between single backticks, outside of fenced blocks.
    var codeSpans: [String] {
        var isFenced = false
        return lines.flatMap { line -> [String] in
            if line.hasPrefix("```") { isFenced.toggle() }
            return isFenced ? [] : Document.codeSpans(in: line)
        }
    }

    var links: [String] {
        var isFenced = false
        return lines.flatMap { line -> [String] in
            if line.hasPrefix("```") { isFenced.toggle() }
            guard !isFenced else { return [] }
            return line.split(separator: "](").dropFirst().map { String($0.prefix { $0 != ")" }) }
        }
    }

    static func codeSpans(in line: some StringProtocol) -> [String] {
        let parts = line.split(separator: "`", omittingEmptySubsequences: false)
        return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
    }

    /// The examples of a manual page: what stands between `.EX` and `.EE`, as a reader sees it.
    var manualExamples: [String] {
        var examples: [String] = []
        var open: String?
        for line in lines {
            switch line {
            case ".EX": open = ""
            case ".EE":
                if let example = open { examples.append(example) }
                open = nil
            default:
                let escapes = [("\\-", "-"), ("\\(aq", "'"), ("\\(dq", "\""), ("\\&", ""), ("\\e", "\\")]
                open?.append(escapes.reduce(String(line)) { $0.replacing($1.0, with: $1.1) } + "\n")
            }
        }
        return examples
    }
}

extension Substring {
    fileprivate var trimmed: String { String(self).trimmed }
}

extension String {
    var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
