import Testing

@testable import Configuration

@Suite struct `Positions in TOML` {
    private func lines(_ text: String) -> [String: Int] {
        let lines = TOMLPositions(scanning: Array(text.utf8)).lines
        return Dictionary(
            uniqueKeysWithValues: lines.map { path, line in
                (path.map { $0.hasPrefix("\0") ? "[\($0.dropFirst())]" : $0 }.joined(separator: "/"), line)
            })
    }

    @Test func `are those of tables and keys`() {
        let found = lines("# head\n\na = 1\n[t]\nb = 2\n  c = 3 # d = 4\n[ t . \"u.v\" ]\r\nw=1\r\n")
        #expect(found == ["a": 3, "t": 4, "t/b": 5, "t/c": 6, "t/u.v": 7, "t/u.v/w": 8])
    }

    @Test func `are those of dotted and quoted keys`() {
        let found = lines("a.b.\"c d\" = 1\n'x\\y'.z = 2\n\"\\u0041\\n\" = 3\n\"\" = 4\na . e = 5\n")
        #expect(found == ["a": 1, "a/b": 1, "a/b/c d": 1, "x\\y": 2, "x\\y/z": 2, "A\n": 3, "": 4, "a/e": 5])
    }

    @Test func `skip what stands in strings`() {
        let text =
            "a = \"\"\"\nb = 1\n\\\"\"\" x = 2\n\"\"\"\"\"\nc = '''\n[t]\n''''\nd = \"[u] \\\" e = 1\"\nf = '#'\ng = 1\n"
        #expect(lines(text) == ["a": 1, "c": 5, "d": 8, "f": 9, "g": 10])
    }

    @Test func `reach into arrays and inline tables`() {
        let text = "a = [\n 1, # x = 1 ]\n \"]\",\n [2,\n 3],\n]\nt = { u = 1, v = { w = [\n{ x = 1 }] } }\nz = 1\n"
        let found = lines(text)
        #expect(found["a/[0]"] == 2)
        #expect(found["a/[1]"] == 3)
        #expect(found["a/[2]/[1]"] == 5)
        #expect(found["t/v/w/[0]/x"] == 8)
        #expect(found["z"] == 9)
    }

    @Test func `tell the elements of arrays of tables apart`() {
        let found = lines("[[p]]\nn = 1\n[[p]]\nn = 2\n[p.s]\nm = 3\n[[p.q]]\nk = 4\n")
        #expect(found["p"] == 1)
        #expect(found["p/[0]/n"] == 2)
        #expect(found["p/[1]/n"] == 4)
        #expect(found["p/[1]/s/m"] == 6)
        #expect(found["p/[1]/q/[0]/k"] == 8)
    }

    @Test func `come to an end for any text at all`() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("[]{}\"'=.,#\n\r \tab\\u0".utf8)
        for _ in 0..<5_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
            }
            let found = TOMLPositions(scanning: bytes)
            let last = 1 + bytes.count { $0 == 0x0A }
            #expect(found.lines.values.allSatisfy { (1...last).contains($0) })
        }
    }

    /// Over each of these the parser ends the program; the last ones would take all the memory there is.
    @Test(arguments: [
        "[.a]", "[[.a]]", "[ \t.a]", "[é]", "[\n]", "[\r\n]", "[,]", "[=]", "[#]", "[{]", "[}]", "[+a]", "[[ [a]]]",
        "[\u{2028}a]", "a = [}", "a = [1,}", "a = [ # x\n}", "a = [\u{85}", "a = [\u{2028}", "a = [[1, \u{2029}",
        "a = {b = [}", "a = 1979-05-27Tx", "a = 1979-05-27 1", "a = [1979-05-27 1, 2]", "a = 1979-05-27T", "a = 12:x",
        "a = x", "a = 1\u{2028}", "a = https://id.example.org", "a" + String(repeating: ".a", count: 500_000),
        "[a" + String(repeating: ".a", count: 500_000),
        "a = " + String(repeating: "[", count: 1_000_000), "a = " + String(repeating: "{a=", count: 300_000),
    ]) func `refuse what would end the parser`(text: String) {
        for text in [text, "a = 1\n[b]\n\(text)"] {
            #expect(TOMLPositions(scanning: Array(text.utf8)).refusal != nil)
            #expect(throws: TOMLDocument.SyntaxError.self) { try TOMLDocument(parsing: Array(text.utf8)) }
        }
    }

    @Test(arguments: [
        "[\"é\"]", "['[']\n", "[ a ]", "[[ a ]]", "[-]", "[_1]", "[1]", "a = '[é]'", "a = \"\"\"\n[é]\n\"\"\"",
        "a = '''\n[.]\n'''", "# [é]", "a = [ # [é]\n1,\n]", "a = ['}']", "a = [ {}, ]", "a = []", "a = [\r\n]",
        "a = [1 , 2]", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p = 1", "a = \"\\\"\"\n[b]", "a = '\\'\n[b]",
        "a = \"\"\"x\"\"\"\"\"\n[b]", "a = " + String(repeating: "[", count: 63) + String(repeating: "]", count: 63),
    ]) func `refuse nothing that is TOML`(text: String) throws {
        #expect(TOMLPositions(scanning: Array(text.utf8)).refusal == nil)
        _ = try TOMLDocument(parsing: Array(text.utf8))
    }

    @Test func `name every key that the parser finds`() throws {
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
        let document = try TOMLDocument(parsing: Array(text.utf8))
        #expect(
            flattened(document.root).sorted() == [
                "accounts 2", "accounts.a 2", "accounts.a.accounts 4", "accounts.a.accounts.b 4", "accounts.a.x 3",
                "accounts.a.x.q q 3", "accounts.a.x.y 3", "accounts.a.é 5", "list 7", "top 1",
            ])
    }

    private func flattened(_ members: [TOMLDocument.Member], _ prefix: String = "") -> [String] {
        members.flatMap { member -> [String] in
            let name = prefix + member.key
            guard case .table(let inner) = member.node.value else { return ["\(name) \(member.node.line)"] }
            return ["\(name) \(member.node.line)"] + flattened(inner, name + ".")
        }
    }
}
