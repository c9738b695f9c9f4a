import Testing

@testable import RingbackClient

@Suite struct `Request target` {
    @Test(arguments: ["work", "a", "0", "org.swisscoin.app", "a-b_c.d", String(repeating: "a", count: 64)])
    func `an account's name is taken as it is`(name: String) throws {
        #expect(try RequestTarget.account(name, "/session") == "/v1/accounts/\(name)/session")
    }

    @Test(arguments: [
        "", "Work", "-a", ".a", "a/b", "a b", "a?b", "../status", "é", "a\n", String(repeating: "a", count: 65),
    ])
    func `what no account can be called is refused before it is sent`(name: String) {
        #expect(kind { () throws(RingbackError) in try RequestTarget.account(name) } == .accountNotFound)
    }

    @Test func `a value cannot become another parameter`() {
        let target = RequestTarget.query("/p", [("scope", "a b&c=d"), ("x", nil), ("y", "é+~-._%")])
        #expect(target == "/p?scope=a%20b%26c%3Dd&y=%C3%A9%2B~-._%25")
        #expect(RequestTarget.query("/p", [("x", nil)]) == "/p")
        #expect(RequestTarget.escape("\n") == "%0A")
    }
}
