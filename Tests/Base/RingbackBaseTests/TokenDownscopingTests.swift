import RingbackBase
import Testing

@Suite struct `What a token is downscoped to` {
    @Test(arguments: ["openid", "https://mail.google.com/", "a:b", "!", "#", "user.read~"])
    func `a scope is`(text: String) { #expect(TokenDownscoping.isScope(text)) }

    @Test(arguments: ["", "a b", "a\"", "a\\", "ä", "a\n", "a\u{7F}", String(repeating: "a", count: 2_001)])
    func `a scope is not`(text: String) { #expect(!TokenDownscoping.isScope(text)) }

    /// RFC 8707 section 2.
    @Test(arguments: ["https://api.example", "https://api.example/v1?x=y", "urn:example:api", "a+b-c.1:x"])
    func `a resource is an absolute URI`(text: String) { #expect(TokenDownscoping.isResource(text)) }

    @Test(arguments: [
        "", "api", "/api", "//api.example", "https:", ":x", "1a:x", "https://api.example/#part", "https://a b",
        "https://ä.example", "a_b:x", "https://api.example\n",
    ])
    func `a resource is no other text`(text: String) { #expect(!TokenDownscoping.isResource(text)) }

    @Test func `an audience is a text`() {
        #expect(TokenDownscoping.isAudience("Büro 7"))
        for text in ["", "a\nb", "a\u{1B}[31m", String(repeating: "a", count: 2_001)] {
            #expect(!TokenDownscoping.isAudience(text))
        }
    }

    /// RFC 6749 section 6: what was not granted is not asked for.
    @Test func `of a ceiling, what was granted can be had; all of it where nobody knows`() {
        #expect(TokenDownscoping.reachable(["a", "b"], of: ["b", "c"]) == ["b"])
        #expect(TokenDownscoping.reachable(["a"], of: ["b"]) == [])
        #expect(TokenDownscoping.reachable(["a", "b"], of: [String]()) == ["a", "b"])
    }

    /// Scopes that were permitted, what the provider states, and what of it is too much.
    @Test(arguments: [
        // Google renames, and adds openid.
        ("email", "https://www.googleapis.com/auth/userinfo.email openid", ""),
        ("profile", "https://www.googleapis.com/auth/userinfo.profile openid", ""),
        ("https://www.googleapis.com/auth/userinfo.email", "email", ""),
        (
            "email", "https://www.googleapis.com/auth/userinfo.profile",
            "https://www.googleapis.com/auth/userinfo.profile"
        ),
        ("email", "https://www.googleapis.com/auth/gmail.readonly", "https://www.googleapis.com/auth/gmail.readonly"),
        // Entra shortens the names of Graph, and adds what tells who the user is.
        ("https://graph.microsoft.com/User.Read", "User.Read profile openid email", ""),
        ("User.Read", "https://graph.microsoft.com/User.Read openid", ""),
        ("api://app/read", "api://app/read openid profile email offline_access", ""),
        ("api://app/read", "api://app/read api://app/write openid", "api://app/write"),
        ("User.Read", "User.Read Mail.Read", "Mail.Read"),
        ("https://vault.azure.net/.default", "https://vault.azure.net/user_impersonation", ""),
        (
            "https://vault.azure.net/.default", "https://vault.azure.net.evil/user_impersonation",
            "https://vault.azure.net.evil/user_impersonation"
        ),
        (".default", "read", "read"), ("/.default", "/read", "/read"),
        // A token for the user's data alone has no more of it than was permitted.
        ("email", "email profile openid", "profile"), ("openid", "openid email", "email"),
        ("calendar", "email openid", "email"),
        // Names are compared byte for byte.
        ("read", "Read", "Read"), ("read", "https://www.googleapis.com/read", "https://www.googleapis.com/read"),
    ])
    func `scopes beyond the permitted ones are found under any name, and identity beside another scope is accepted`(
        permitted: String, stated: String, excess: String
    ) {
        func scopes(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
        #expect(TokenDownscoping.excess(of: scopes(stated), beyond: scopes(permitted)) == scopes(excess))
    }

    @Test func `a ceiling that does not fit an account is remarked on`() {
        func remark(_ ceiling: [String], _ granted: [String]) -> String? {
            TokenDownscoping.remark(on: "mail", below: ceiling, of: granted)
        }
        #expect(remark(["a"], ["a", "b"]) == nil && remark(["a"], []) == nil)
        // What is good for less than the ceiling is within it.
        #expect(remark(["a", "b"], ["a"]) == nil)
        #expect(remark(["x"], ["a"])?.contains("“x”: none of its tokens is within the scope") == true)
        #expect(remark(["a", "x"], ["a", "b"])?.contains("“x”: its tokens will have the scope “a” at most") == true)
    }
}
