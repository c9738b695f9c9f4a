import RingbackBase
import Testing

@testable import SupabaseAuth

private let key = "8f3aK_x-1"

@Suite struct `The address to come back to` {
    @Test(
        arguments: [
            ("http://127.0.0.1:43117/callback/work", "http://127.0.0.1:43117/callback/work/8f3aK_x-1", nil),
            ("http://127.0.0.1:43117/callback/work/", "http://127.0.0.1:43117/callback/work/8f3aK_x-1", nil),
            ("http://[::1]:43117/cb", "http://[::1]:43117/cb/8f3aK_x-1", nil),
            ("http://127.0.0.1:43117/cb?app=1", "http://127.0.0.1:43117/cb/8f3aK_x-1?app=1", nil),
            ("http://127.0.0.1:43117", "http://127.0.0.1:43117/8f3aK_x-1", nil),
            ("http://localhost:8400/cb", "http://localhost:8400/cb/8f3aK_x-1", "http://localhost:8400/cb/**"),
        ] as [(String, String, String?)])
    func `on loopback the key is the last path segment`(base: String, url: String, entry: String?) throws {
        for isKeyless in [false, true] {
            let redirect = try SupabaseRedirect(base: base, key: key, isKeyless: isKeyless)
            #expect(redirect.url == url)
            #expect(redirect.keyPlace == .path)
            #expect(redirect.allowListEntry == entry)
        }
    }

    @Test func `of a free port the entry has every port`() throws {
        for (base, entry) in [
            ("http://localhost:43117/cb", "http://localhost:*/cb/**"),
            ("http://localhost:43117", "http://localhost:*/**"),
            ("http://127.0.0.1:43117/cb", nil),
        ] {
            #expect(try SupabaseRedirect(base: base, key: key, hasFreePort: true).allowListEntry == entry)
        }
    }

    @Test(
        arguments: [
            ("swisscoin://auth-callback", "swisscoin://auth-callback?flow=8f3aK_x-1", "swisscoin://auth-callback?*"),
            ("app.id:/cb", "app.id:/cb?flow=8f3aK_x-1", "app.id:/cb?*"),
            ("myapp:cb", "myapp:cb?flow=8f3aK_x-1", "myapp:cb?*"),
            ("app.id://cb?", "app.id://cb?flow=8f3aK_x-1", "app.id://cb?*"),
            ("app.id://cb?v=1", "app.id://cb?v=1&flow=8f3aK_x-1", "app.id://cb?*"),
            ("app.id://cb?v=1.2", "app.id://cb?v=1.2&flow=8f3aK_x-1", "app.id://cb?**"),
            ("https://app.example/cb", "https://app.example/cb?flow=8f3aK_x-1", "https://app.example/cb?*"),
        ])
    func `elsewhere it is a parameter`(base: String, url: String, entry: String) throws {
        let redirect = try SupabaseRedirect(base: base, key: key)
        #expect(redirect.url == url)
        #expect(redirect.keyPlace == .query)
        #expect(redirect.allowListEntry == entry)
    }

    @Test func `for an exact allow list the address is sent unchanged`() throws {
        let redirect = try SupabaseRedirect(base: "swisscoin://auth-callback", key: key, isKeyless: true)
        #expect(redirect.url == "swisscoin://auth-callback")
        #expect(redirect.keyPlace == .none)
        #expect(redirect.allowListEntry == "swisscoin://auth-callback")
    }

    @Test(
        arguments: [
            "", "no url", "app://cb#x", "app://cb?code=1", "app://cb?flow=1", "app://cb?error=x", "app://cb?type=1",
            "app://cb?message=1", "http://127.0.0.1/cb?access_token=1",
        ])
    func `an address that could not come back as it went is refused`(base: String) {
        let error = #expect(throws: FieldError.self) { try SupabaseRedirect(base: base, key: key) }
        #expect(error?.field == "redirect_uri")
    }

    @Test(
        arguments: [
            ("swisscoin://auth-callback", "swisscoin://auth-callback?code=c&flow=8f3aK_x-1", true),
            ("swisscoin://auth-callback", "SwissCoin://auth-callback?code=c", true),
            ("swisscoin://auth-callback", "swisscoin://auth-callback/?code=c", true),
            ("swisscoin://auth-callback", "swisscoin://auth-callback/x?code=c", false),
            ("swisscoin://auth-callback", "swisscoin://other?code=c", false),
            ("com.example.app://", "com.example.app:?code=c&flow=1", true),
            ("app.id://cb?v=1.2", "app.id://cb?code=c&flow=1&v=1.2", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb/8f3aK_x-1?code=c", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb/8f3aK_x-1?code=c", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb/other?code=c", false),
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb/8f3aK_x-1?code=c", false),
        ])
    func `a callback's place is all but its query, which the server re-encodes`(
        base: String, callback: String, isPlace: Bool
    ) throws {
        let redirect = try SupabaseRedirect(base: base, key: key)
        #expect(try redirect.isPlace(of: WebURL(parsing: callback)) == isPlace)
    }
}
