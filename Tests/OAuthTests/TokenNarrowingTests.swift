import OAuth
import Testing

@Suite struct `What a token is narrowed to` {
    @Test(arguments: ["openid", "https://mail.google.com/", "a:b", "!", "#", "user.read~"])
    func `a scope is`(text: String) { #expect(TokenNarrowing.isScope(text)) }

    @Test(arguments: ["", "a b", "a\"", "a\\", "ä", "a\n", "a\u{7F}", String(repeating: "a", count: 2_001)])
    func `a scope is not`(text: String) { #expect(!TokenNarrowing.isScope(text)) }

    /// RFC 8707 section 2.
    @Test(arguments: ["https://api.example", "https://api.example/v1?x=y", "urn:example:api", "a+b-c.1:x"])
    func `a resource is an absolute URI`(text: String) { #expect(TokenNarrowing.isResource(text)) }

    @Test(arguments: [
        "", "api", "/api", "//api.example", "https:", ":x", "1a:x", "https://api.example/#part", "https://a b",
        "https://ä.example", "a_b:x", "https://api.example\n",
    ])
    func `a resource is no other text`(text: String) { #expect(!TokenNarrowing.isResource(text)) }

    @Test func `an audience is a text`() {
        #expect(TokenNarrowing.isAudience("Büro 7"))
        for text in ["", "a\nb", "a\u{1B}[31m", String(repeating: "a", count: 2_001)] {
            #expect(!TokenNarrowing.isAudience(text))
        }
    }
}
