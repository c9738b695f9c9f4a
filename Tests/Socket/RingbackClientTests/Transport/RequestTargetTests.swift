import RingbackAPI
import Testing

@testable import RingbackClient

@Suite struct `Request target` {
    @Test(arguments: ["work", "a", "0", "org.swisscoin.app", "a-b_c.d", String(repeating: "a", count: 64)])
    func `an account's name is taken as it is`(name: String) throws {
        #expect(try RequestTarget.of(.getSession, [name]) == "/v1/accounts/\(name)/session")
    }

    @Test(arguments: [
        "", "Work", "-a", ".a", "a/b", "a b", "a?b", "../status", "é", "a\n", String(repeating: "a", count: 65),
    ])
    func `what no account can be called is refused before it is sent`(name: String) {
        #expect(kind { () throws(RingbackError) in try RequestTarget.of(.getAccount, [name]) } == .accountNotFound)
    }

    @Test func `a value in a path cannot become another path`() throws {
        let target = try RequestTarget.of(.removeFactor, ["work", "../x?y"], query: [("a", "b")])
        #expect(target == "/v1/accounts/work/factors/..%2Fx%3Fy?a=b")
        #expect(kind { () throws(RingbackError) in try RequestTarget.of(.getAccount) } == .accountNotFound)
        for endpoint in Endpoint.allCases {
            let values = endpoint.parameters.map { "v-\($0)" }
            let path = try RequestTarget.of(endpoint, values)
            #expect(values.allSatisfy(path.contains) && !path.contains("{"), "\(endpoint)")
        }
    }

    @Test func `a value cannot become another parameter`() throws {
        let target = try RequestTarget.of(
            .streamEvents, query: [("scope", "a b&c=d"), ("x", nil), ("y", "é+~-._%"), ("z", "\n")])
        #expect(target == "/v1/events?scope=a%20b%26c%3Dd&y=%C3%A9%2B~-._%25&z=%0A")
        #expect(try RequestTarget.of(.streamEvents, query: [("x", nil)]) == "/v1/events")
    }
}
