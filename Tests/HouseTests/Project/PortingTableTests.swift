// The table of docs/supabase.md for those who come from another client library.

import Foundation
import Testing

@Suite struct `The porting table` {
    @Test func `names only what the client library declares, and how supabase-swift gets a token of it`() throws {
        let page = try Document(path: "docs/supabase.md")
        let lines = page.lines.map(String.init)
        let head = try #require(lines.firstIndex { $0.hasPrefix("| supabase-js, supabase-swift | here | in Swift |") })
        let rows = lines[(head + 2)...].prefix { $0.hasPrefix("|") }
        #expect(rows.count >= 20)
        let library = try SourceTree.project.get().files(of: "RingbackClient").flatMap(\.source.lines)
        for row in rows {
            let cell = row.split(separator: "|").last.map(String.init) ?? ""
            for span in cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            where span.offset % 2 == 1 && !span.element.contains("AuthOptions") {
                // `.signIn(with: .browser("google"))` is looked for by its first name.
                let name = span.element.drop { $0 == "." }.prefix { $0.isLetter }
                let isDeclared = library.contains { line in
                    ["func \(name)(", "var \(name):", "let \(name):"].contains { line.contains($0) }
                }
                #expect(isDeclared, "\(span.element)")
            }
        }
        #expect(rows.contains { $0.contains("AuthOptions(accessToken: {") && $0.contains("session(") })
    }
}
