import Testing

@testable import Configuration

@Suite struct `The key table` {
    @Test func `has every key of a section once`() {
        let names = Key.all.map { "\($0.section.rawValue).\($0.name)" }
        #expect(Set(names).count == names.count)
    }

    @Test func `lets drop-ins offer accounts and schemes and nothing else`() {
        #expect(Set(Key.allowed(in: .file).values.filter(\.isForDropIns).map(\.name)) == ["accounts", "schemes"])
    }

    @Test func `writes paths as TOML does`() {
        #expect(KeyCheck.display(["accounts", "org.example", "url"]) == "accounts.\"org.example\".url")
        #expect(KeyCheck.display(["a\"\\\u{1B}[31m\u{202E}\n", ""]) == "\"a\\\"\\\\\\u{1b}[31m\\u{202e}\\u{a}\".\"\"")
    }
}
