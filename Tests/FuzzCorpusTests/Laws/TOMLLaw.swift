@testable import Configuration

/// TOML as a tree: mistakes have a line and one line of text, and a key's line shows the key.
enum TOMLLaw {
    static func check(_ bytes: [UInt8]) throws {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        switch Result(catching: { () throws(TOMLDocument.SyntaxError) in try TOMLDocument(parsing: bytes) }) {
        case .failure(let error):
            try hold("an error is in the file", (1...(lines.count + 1)).contains(error.line ?? 1))
            let isOneLine = error.message.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            try hold("an error is one line", isOneLine && !error.message.isEmpty)
        case .success(let document):
            // An escape may write any key; without one, every key stands there as it is.
            try check(document.root, bytes.contains(UInt8(ascii: "\\")) ? nil : lines, count: lines.count)
        }
    }

    private static func check(_ members: [TOMLDocument.Member], _ lines: [ArraySlice<UInt8>]?, count: Int) throws {
        for member in members {
            try hold("a key is in the file", (1...count).contains(member.node.line))
            if let line = lines?[member.node.line - 1] {
                let name = Array(member.key.utf8)
                let shows = line.indices.contains { line[$0...].starts(with: name) } || name.isEmpty
                try hold("a key's line shows it", shows)
            }
            try check(member.node, lines, count: count)
        }
    }

    private static func check(_ node: TOMLDocument.Node, _ lines: [ArraySlice<UInt8>]?, count: Int) throws {
        try hold("a value is in the file", (1...count).contains(node.line))
        switch node.value {
        case .array(let elements): for element in elements { try check(element, lines, count: count) }
        case .table(let members): try check(members, lines, count: count)
        default: break
        }
    }
}
