import Testing

@testable import Sandbox

@Suite struct `Where a Supabase sign-in may end` {
    @Test(
        arguments: [
            ("", "http://127.0.0.1:43117/cb/8f3a?x=1&y=a/b.c", true), ("", "http://127.9.8.7:1/cb", true),
            ("", "http://[::1]:43117/cb", true), ("", "https://127.0.0.1:1/cb", true),
            ("", "myapp://127.0.0.1/cb", true), ("", "http://localhost:43117/cb", false),
            ("http://localhost:*", "http://localhost:43117/cb", false),
            ("http://localhost:*/**", "http://localhost:43117/cb?state=abc", true),
            ("**", "http://192.168.1.5/cb", false), ("**", "http://2130706433/cb", false),
            ("**", "http://0.0.0.0/", false), ("**", "http://[::2]/cb", false),
            ("app.id://callback", "app.id://callback", true), ("app.id://callback", "app.id://callback#x", true),
            ("app.id://callback", "app.id://callback/", false),
            ("app.id://callback", "app.id://callback?state=abc", false),
            ("app.id://callback*", "app.id://callback?state=abc", true),
            ("app.id://callback*", "app.id://callback?state=a.b", false),
            ("app.id://callback*", "app.id://callback/abc", false),
            ("app.id://callback?*", "app.id://callback?state=abc", true),
            ("app.id://callback?*", "app.id://callback", false),
            ("app.id://callback**", "app.id://callback/a.b?c=d/e", true), ("app.id://**", "app.id://any/thing", true),
            ("app.id://callback/*", "app.id://callback/abc", true),
            ("app.id://callback/*", "app.id://callback/abc?x=1", true),
            ("app.id:/callback*", "app.id:/callback?state=abc", true),
            ("myapp:callback*", "myapp:callback?state=abc", true),
            ("https://*.example.com/cb*", "https://x.y.example.com/cb", false),
            ("https://*.example.com/cb*", "https://x.example.com/cb", true),
            ("", "https://app.example.org/any/path?x=1", true), ("", "http://app.example.org/", false),
            ("", "https://app.example.org:444/", false), ("**", "my_app://callback", false),
            ("**", "https://a_b.example/cb", false), ("**", "https://bücher.example/cb", false), ("**", "", false),
            ("APP.id://callback", "app.id://callback", false),
        ] as [(String, String, Bool)])
    func `is decided by the address first, and by the list then`(entry: String, candidate: String, isAllowed: Bool) {
        let rules = SupabaseRedirectRules(
            siteURL: "https://app.example.org", allowed: entry.isEmpty ? [] : [entry])
        #expect(rules.accepts(candidate) == isAllowed)
    }

    @Test func `may be any port of a project that is developed on localhost`() {
        let rules = SupabaseRedirectRules(siteURL: "http://localhost:3000", allowed: [])
        #expect(rules.accepts("http://localhost:43117/cb"))
        #expect(!rules.accepts("https://localhost:43117/cb"))
    }

    @Test(
        arguments: [
            ("{a,b}c", "ac", true), ("{a,b}c", "bc", true), ("{a,b}c", "cc", false), ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false), ("[!a]x", "bx", true), ("[!a]x", "ax", false), ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false), ("a?c", "abc", true), ("a?c", "a.c", false), ("a*c", "abbc", true),
            ("a*c", "a/c", false), ("a**c", "a/./c", true), ("", "", true), ("", "a", false), ("[b-a]", "a", false),
            ("[", "[", false), ("{a", "{a", true), ("a\\", "a", true),
        ] as [(String, String, Bool)])
    func `globs mean what the real server's mean`(pattern: String, text: String, isMatch: Bool) {
        #expect(SupabaseGlob.matches(pattern, text) == isMatch)
    }
}

@Suite struct `A URL that comes back` {
    @Test(
        arguments: [
            ("http://127.0.0.1:1/cb?z=1&a=2", "http://127.0.0.1:1/cb?a=2&code=C&z=1"),
            ("http://127.0.0.1:1/cb?flag", "http://127.0.0.1:1/cb?code=C&flag="),
            ("http://127.0.0.1:1/cb?a=%20b", "http://127.0.0.1:1/cb?a=+b&code=C"),
            ("http://127.0.0.1:1/cb?a;b=1&c=2&d=%ZZ", "http://127.0.0.1:1/cb?c=2&code=C"),
            ("http://127.0.0.1:1/cb?code=mine&code=too", "http://127.0.0.1:1/cb?code=C"),
            ("http://127.0.0.1:1/cb#part", "http://127.0.0.1:1/cb?code=C#part"),
            ("http://[::1]:43117/cb", "http://[::1]:43117/cb?code=C"),
            ("com.example.app://", "com.example.app:?code=C"),
            ("com.example.app://callback", "com.example.app://callback?code=C"),
            ("com.example.app:///callback", "com.example.app:///callback?code=C"),
            ("com.example.app:/callback?b=1", "com.example.app:/callback?b=1&code=C"),
            ("myapp:callback", "myapp:callback?code=C"), ("MyApp://callback", "myapp://callback?code=C"),
            ("http://127.0.0.1:1/a?x=ä", "http://127.0.0.1:1/a?code=C"),
        ] as [(String, String)])
    func `has its query sorted and encoded anew`(target: String, location: String) {
        #expect(SupabaseRedirects.with(code: "C", target) == location)
    }

    @Test func `has an error in query and fragment, where it is encoded twice`() {
        let refusal = SupabaseError(403, "otp_expired", "a: b")
        #expect(
            SupabaseRedirects.refusal(refusal, at: "app.id://cb?flow=x#old", inQuery: true, isCallback: false)
                == "app.id://cb?error=access_denied&error_code=otp_expired&error_description=a%3A+b&flow=x"
                + "#error=access_denied&error_code=otp_expired&error_description=a%253A+b&sb=")
        let other = SupabaseError(422, "some_code", "text")
        #expect(
            SupabaseRedirects.refusal(other, at: "app.id://cb?b=%20&a", inQuery: false, isCallback: false)
                == "app.id://cb?b=%20&a#error_code=some_code&error_description=text&sb=")
        #expect(other.redirectError(isCallback: true) == "server_error")
    }

    @Test(arguments: ["", "callback", "/callback", "1app://x", "my_app://x", "http://h:port/", "a b://x"])
    func `is a URL`(text: String) {
        #expect(SupabaseURL(text) == nil)
    }
}
