import Testing

@testable import Configuration

@Suite struct `A TOML text` {
    private static func parse(_ text: String) throws(TOMLDocument.SyntaxError) -> TOMLDocument {
        try TOMLDocument(parsing: Array(text.utf8))
    }

    /// Every key and element with its line, as `path line`.
    private static func lines(_ text: String) throws -> [String: Int] {
        var found: [String: Int] = [:]
        func walk(_ node: TOMLDocument.Node, _ path: String) {
            found[path] = node.line
            switch node.value {
            case .table(let members): for member in members { walk(member.node, "\(path)/\(member.key)") }
            case .array(let elements):
                for (index, element) in elements.enumerated() { walk(element, "\(path)/[\(index)]") }
            default: break
            }
        }
        for member in try parse(text).root { walk(member.node, member.key) }
        return found
    }

    private static func value(_ text: String) throws -> TOMLDocument.Value {
        try #require(try parse("a = \(text)\n").root.first).node.value
    }

    @Test func `gives the lines of tables and keys`() throws {
        let found = try Self.lines("# head\n\na = 1\n[t]\nb = 2\n  c = 3 # d = 4\n[ t . \"u.v\" ]\r\nw=1\r\n")
        #expect(found == ["a": 3, "t": 4, "t/b": 5, "t/c": 6, "t/u.v": 7, "t/u.v/w": 8])
    }

    @Test func `gives the lines of dotted and quoted keys`() throws {
        let found = try Self.lines("a.b.\"c d\" = 1\n'x\\y'.z = 2\n\"\\u0041\\n\" = 3\n\"\" = 4\na . e = 5\n")
        #expect(found == ["a": 1, "a/b": 1, "a/b/c d": 1, "x\\y": 2, "x\\y/z": 2, "A\n": 3, "": 4, "a/e": 5])
    }

    @Test func `counts the lines inside of strings`() throws {
        let text =
            "a = \"\"\"\nb = 1\n\\\"\"\" x = 2\n\"\"\"\"\"\nc = '''\n[t]\n''''\nd = \"[u] \\\" e = 1\"\nf = '#'\ng = 1\n"
        #expect(try Self.lines(text) == ["a": 1, "c": 5, "d": 8, "f": 9, "g": 10])
    }

    @Test func `gives the lines of values in arrays and inline tables`() throws {
        let text = "a = [\n 1, # x = 1 ]\n \"]\",\n [2,\n 3],\n]\nt = { u = 1, v = { w = [\n{ x = 1 }] } }\nz = 1\n"
        let found = try Self.lines(text)
        #expect(found["a/[0]"] == 2)
        #expect(found["a/[1]"] == 3)
        #expect(found["a/[2]/[1]"] == 5)
        #expect(found["t/v/w/[0]/x"] == 8)
        #expect(found["z"] == 9)
    }

    @Test func `gives the lines of the elements of an array of tables`() throws {
        let found = try Self.lines("[[p]]\nn = 1\n[[p]]\nn = 2\n[p.s]\nm = 3\n[[p.q]]\nk = 4\n")
        #expect(found["p"] == 1)
        #expect(found["p/[0]/n"] == 2)
        #expect(found["p/[1]/n"] == 4)
        #expect(found["p/[1]/s/m"] == 6)
        #expect(found["p/[1]/q/[0]/k"] == 8)
    }

    @Test func `is read whole`() throws {
        let text = """
            top = 1
            [accounts.a]
            x = { y = [ { z = 1 } ], 'q q' = 2 }
            accounts.b = "\\u00e9"
            "\\u00e9" = '''
            x'''
            [[list]]
            a.b.c = 1979-05-27T07:32:00Z
            """
        let found = try Self.lines(text)
        #expect(
            found == [
                "accounts": 2, "accounts/a": 2, "accounts/a/accounts": 4, "accounts/a/accounts/b": 4,
                "accounts/a/x": 3, "accounts/a/x/q q": 3, "accounts/a/x/y": 3, "accounts/a/x/y/[0]": 3,
                "accounts/a/x/y/[0]/z": 3, "accounts/a/é": 5, "list": 7, "list/[0]": 7, "list/[0]/a": 8,
                "list/[0]/a/b": 8, "list/[0]/a/b/c": 8, "top": 1,
            ])
    }

    @Test(arguments: [
        ("\"a\\tb\\u00e9\\U0001F600\\\\\\\"\"", "a\tbé😀\\\""), ("'a\\tb'", "a\\tb"), ("\"\"", ""), ("''", ""),
        ("\"\"\"\nx\ny\"\"\"", "x\ny"), ("\"\"\"\r\nx\r\ny\"\"\"", "x\ny"), ("\"\"\"a \\\n   b\"\"\"", "a b"),
        ("\"\"\"a \\  \n\n\t b\"\"\"", "a b"), ("\"\"\"\"a\"\"\"\"\"", "\"a\"\""), ("'''\n'a''''", "'a'"),
        ("\"\"\"\"\"\"", ""), ("''''''", ""),
    ]) func `has strings of four kinds`(written: String, meant: String) throws {
        #expect(try Self.value(written) == .string(meant))
    }

    @Test(arguments: [
        ("0", 0), ("-17", -17), ("+1_000", 1_000), ("0xDEAD_beef", 0xDEAD_BEEF), ("0o755", 0o755), ("0b1_0", 2),
    ])
    func `has integers`(written: String, meant: Int) throws {
        #expect(try Self.value(written) == .integer(meant))
    }

    @Test func `may begin with a byte order mark`() throws {
        #expect(try Self.lines("\u{FEFF}a = 1\n") == ["a": 1])
    }

    @Test(arguments: [
        "[.a]", "[[.a]]", "[ \t.a]", "[é]", "[\n]", "[\r\n]", "[,]", "[=]", "[#]", "[{]", "[}]", "[+a]", "[[ [a]]]",
        "[\u{2028}a]", "[a", "[[a]", "[a] b", "a = [}", "a = [1,}", "a = [ # x\n}", "a = [\u{85}", "a = [\u{2028}",
        "a = [[1, \u{2029}", "a = {b = [}", "a = 1979-05-27Tx", "a = 1979-05-27 1", "a = [1979-05-27 1, 2]",
        "a = 1979-05-27T", "a = 12:x", "a = x", "a = 1\u{2028}", "a = https://id.example.org", "a", "a =", "a = \n1",
        "a = 1 b = 2", "a = {b = 1,}", "a = {b = 1\n}", "a = {,}", "a = [,]", "a = [1 2]", "a = \"\n\"", "a = '\n'",
        "a = \"x", "a = \"\"\"x\"\"", "a = \"\\x\"", "a = \"\\ud800\"", "a = \"\\u12\"", "a = \"\\u0000\"",
        "\"\"\"a\"\"\" = 1", "a = 1\rb = 2", "a = \"\u{7F}\"", "# \u{1}", "a = 9223372036854775808", ".a = 1", "a. = 1",
        "a" + String(repeating: ".a", count: 500_000) + " = 1", "[a" + String(repeating: ".a", count: 500_000),
        "a = " + String(repeating: "[", count: 1_000_000), "a = " + String(repeating: "{a=", count: 300_000),
    ]) func `that breaks the grammar is refused with its line`(text: String) {
        for (before, line) in [("", 1), ("b = 1\n[c]\n", 3)] {
            let error = #expect(throws: TOMLDocument.SyntaxError.self) { try Self.parse(before + text) }
            #expect((line...line + 1).contains(error?.line ?? 0), "\(error?.message ?? "")")
        }
    }

    @Test(arguments: [
        ("a = 1\na = 2", 2, 1), ("[a]\n[a]", 2, 1), ("a.b = 1\n[a]", 2, 1), ("[a]\nb.c = 1\n[a.b]", 3, 2),
        ("a = {}\n[a.b]", 2, 1), ("a = {}\na.b = 1", 2, 1), ("a = [1]\n[[a]]", 2, 1), ("[[a]]\n[a]", 2, 1),
        ("[a]\n[[a]]", 2, 1), ("[a.b.c]\n[a]\nb.c.d = 1", 3, 1), ("a = {b = 1, b.c = 2}", 1, 1),
        ("a = {b.c = 1, b = 2}", 1, 1), ("a = 1\n[a.b]", 2, 1), ("a = [{x = 1}]\n[a.y]", 2, 1),
    ]) func `that defines something twice is refused, with both lines`(text: String, line: Int, first: Int) {
        let error = #expect(throws: TOMLDocument.SyntaxError.self) { try Self.parse(text) }
        #expect(error?.line == line)
        #expect(error?.message.hasSuffix("is already defined in line \(first)") == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        "[\"é\"]", "['[']\n", "[ a ]", "[[ a ]]", "[-]", "[_1]", "[1]", "a = '[é]'", "a = \"\"\"\n[é]\n\"\"\"",
        "a = '''\n[.]\n'''", "# [é]", "a = [ # [é]\n1,\n]", "a = ['}']", "a = [ {}, ]", "a = []", "a = [\r\n]",
        "a = [1 , 2]", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p = 1", "a = \"\\\"\"\n[b]", "a = '\\'\n[b]", "[a.b]\n[a]",
        "a = \"\"\"x\"\"\"\"\"\n[b]", "a = " + String(repeating: "[", count: 63) + String(repeating: "]", count: 63),
        "[a]\nb.c = 1\nb.d = 2\n[a.b.e]", "[[a]]\n[a.b]\n[[a]]\n[a.b]", "a = {b.c = 1, b.d = 2}", "", "\n", "\r\n", "#",
        "[x.y.z]\n[x]\ny.w = 1",
    ]) func `that follows the grammar is read`(text: String) throws {
        _ = try Self.parse(text)
    }
}
