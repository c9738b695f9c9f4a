import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `A host that only the metadata name` {
    @Test(arguments: [
        ("https://id.example", "https://id.example/token", false),
        ("https://id.example", "https://tokens.example/token", true),
        ("https://id.example", "https://localhost/token", true),
        // Addresses as such are judged where the metadata are read.
        ("https://id.example", "https://192.0.2.1/token", false),
        ("https://id.example", "https://[2001:db8::1]/token", false),
        // A provider on this machine, as in development, may name this machine.
        ("http://127.0.0.1:8080", "http://localhost:8080/token", false),
        ("http://[::1]:8080", "http://localhost:8080/token", false),
    ])
    func `PR-04: is not to lead back to this machine`(issuer: String, url: String, isStrange: Bool) {
        #expect(House.account(issuer: issuer).isStrange(url) == isStrange)
    }
}
