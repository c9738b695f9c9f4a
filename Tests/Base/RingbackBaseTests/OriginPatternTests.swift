import FoundationEssentials
import RingbackBase
import Testing

/// The lines of a table in Tests/Vectors/origins, as their columns.
private func rows(_ name: String) throws -> [[String]] {
    let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Vectors/origins/\(name)")
    let text = String(decoding: try Data(contentsOf: path), as: UTF8.self)
    return text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
}

@Suite struct `Patterns of origins` {
    @Test func `fit the URLs of the table, and no others`() throws {
        let rows = try rows("matching.txt")
        #expect(rows.count > 60)
        for row in rows {
            let pattern = try OriginPattern(parsing: row[0])
            let url = try? WebURL(parsing: row[1])
            let result = url.map { pattern.matches(OriginPlace($0)) ? "yes" : "no" } ?? "refused"
            #expect(result == row[2], "\(row)")
        }
    }

    @Test func `are refused for the reasons of the table`() throws {
        for row in try rows("patterns-refused.txt") {
            let failure = #expect(throws: OriginPattern.Failure.self, "\(row)") { try OriginPattern(parsing: row[0]) }
            #expect(failure.map { "\($0)" } == row[1], "\(row)")
        }
    }

    @Test(arguments: [
        ("https://git.example.org", "https://git.example.org/*"),
        ("HTTPS://Git.Example.org:443/", "https://git.example.org/*"),
        ("https://git.example.org/a/b", "https://git.example.org/a/b/*"),
        ("https://git.example.org/%61%c3%a9/*", "https://git.example.org/a%C3%A9/*"),
        ("http://[::1]:80/*", "http://[::1]/*"), ("smtp://mail.example.org:587", "smtp://mail.example.org:587/*"),
    ])
    func `have one form`(text: String, form: String) throws {
        let pattern = try OriginPattern(parsing: text)
        #expect(pattern.text == form)
        #expect(try OriginPattern(parsing: form) == pattern)
    }

    @Test func `a rule with a user name fits only tools that say it`() throws {
        let rules = [
            OriginRule(try OriginPattern(parsing: "https://git.example.org/*"), username: "ada"),
            OriginRule(try OriginPattern(parsing: "https://git.example.org/*"), username: "bob"),
        ]
        let place = OriginPlace(try WebURL(parsing: "https://git.example.org/x"))
        #expect(OriginRule.mostSpecific(of: rules, for: place, username: "ada") == 0)
        #expect(OriginRule.mostSpecific(of: rules, for: place, username: "bob") == 1)
        #expect(OriginRule.mostSpecific(of: rules, for: place, username: "Ada") == nil)
        #expect(OriginRule.mostSpecific(of: rules, for: place, username: nil) == nil)
    }

    @Test func `the longest path wins, then the user name`() throws {
        let rules = [
            OriginRule(try OriginPattern(parsing: "https://git.example.org/*"), username: "ada"),
            OriginRule(try OriginPattern(parsing: "https://git.example.org/team/*")),
            OriginRule(try OriginPattern(parsing: "https://git.example.org/team/*"), username: "ada"),
            OriginRule(try OriginPattern(parsing: "https://git.example.org/*")),
            OriginRule(try OriginPattern(parsing: "https://git.example.org/team/inner/*")),
        ]
        func found(_ url: String, _ username: String?) throws -> Int? {
            OriginRule.mostSpecific(of: rules, for: OriginPlace(try WebURL(parsing: url)), username: username)
        }
        #expect(try found("https://git.example.org/x", nil) == 3)
        #expect(try found("https://git.example.org/x", "ada") == 0)
        #expect(try found("https://git.example.org/team/x", nil) == 1)
        #expect(try found("https://git.example.org/team/x", "ada") == 2)
        #expect(try found("https://git.example.org/team/x", "bob") == 1)
        #expect(try found("https://git.example.org/team/inner", "ada") == 4)
        // An ambiguous path fits no rule with a path.
        #expect(try found("https://git.example.org/team/../x", nil) == 3)
        #expect(try found("https://other.example.org/team", nil) == nil)
    }
}

@Suite struct `Header fields of origins` {
    @Test func `get the token, and the user name where they have its place`() throws {
        #expect(OriginHeader.usual.line(token: "t", username: nil) == "Authorization: Bearer t")
        let header = try OriginHeader(parsing: "X-Token: {username}/{token}")
        #expect(header.line(token: "t", username: "ada") == "X-Token: ada/t")
        // What is filled in is not read again.
        #expect(header.line(token: "{username}", username: "{token}") == "X-Token: {token}/{username}")
        let keyed = try OriginHeader(parsing: "apikey: {api_key}").setting("api_key", to: "k")
        #expect(keyed.line(token: "t", username: nil) == "apikey: k")
        #expect(try OriginHeader(parsing: header.text) == header)
    }

    @Test(arguments: [
        ("Authorization: Bearer {token}", "Authorization: DPoP t"),
        ("authorization:bearer {token}", "authorization: DPoP t"), ("X-Token: {token}", "X-Token: t"),
    ]) func `never call a token Bearer that is bound to a key`(text: String, line: String) throws {
        #expect(try OriginHeader(parsing: text).ofBoundToken.line(token: "t", username: nil) == line)
    }

    @Test(
        arguments: [
            ("", .notAField), ("Authorization", .notAField), (": x", .notAField), ("A: ", .notAField),
            ("A b: x", .notAField), ("A: x\r\nB: y", .notAField), ("A: é", .notAField), ("A: x ", .notAField),
            ("Host: {token}", .reserved), ("content-length: {token}", .reserved), ("Connection: {token}", .reserved),
            ("A: {secret}", .unknownPlaceholder("secret")), ("A: {token", .unknownPlaceholder("")),
            ("A: }", .unknownPlaceholder("")), ("A: {{token}}", .unknownPlaceholder("{token")),
        ] as [(String, OriginHeader.Failure)])
    func `are refused`(text: String, failure: OriginHeader.Failure) {
        #expect(throws: failure) { try OriginHeader(parsing: text) }
    }
}
