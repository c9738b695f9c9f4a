import RingbackBase
import Testing

@Suite struct `A web URL` {
    @Test func `is taken apart byte for byte`() throws {
        let url = try WebURL(parsing: "HTTPS://ID.Example.org:8443/Realms/%6Dain/../x;y?a=%20&b=?/#frag?ment#x")
        #expect(url.text == "HTTPS://ID.Example.org:8443/Realms/%6Dain/../x;y?a=%20&b=?/#frag?ment#x")
        #expect(url.scheme == "https")
        #expect(url.host == "id.example.org")
        #expect(url.port == 8_443)
        #expect(url.path == "/Realms/%6Dain/../x;y")
        #expect(url.query == "a=%20&b=?/")
        #expect(url.fragment == "frag?ment#x")
    }

    @Test func `may lack everything but its scheme and host`() throws {
        let url = try WebURL(parsing: "http://a")
        #expect(url.path.isEmpty)
        #expect(url.query == nil)
        #expect(url.fragment == nil)
        #expect(url.port == nil)
        let empty = try WebURL(parsing: "https://a/?#")
        #expect(empty.query?.isEmpty == true)
        #expect(empty.fragment?.isEmpty == true)
        let bare = try WebURL(parsing: "https://a?x=//b")
        #expect(bare.host == "a")
        #expect(bare.query == "x=//b")
        #expect(try WebURL(parsing: "https://a#@b").host == "a")
    }

    @Test func `of an app's scheme needs no host`() throws {
        let url = try WebURL(parsing: "SwissCoin://auth-callback?code=1")
        #expect(url.scheme == "swisscoin")
        #expect(url.host == "auth-callback")
        #expect(url.query == "code=1")
        let opaque = try WebURL(parsing: "com.example.app:/callback?code=1")
        #expect(opaque.scheme == "com.example.app")
        #expect(opaque.host == nil)
        #expect(opaque.path == "/callback")
        #expect(try WebURL(parsing: "mailto:a@b").path == "a@b")
    }

    @Test(
        arguments: [
            ("", .noScheme), ("example.org", .noScheme), ("//example.org/", .noScheme), ("/path", .noScheme),
            ("1http://a", .noScheme), (":a", .noScheme), ("ht_tp://a", .noScheme), ("ht%74p://a", .noScheme),
            ("http:", .noHost), ("http:/a", .noHost), ("http:///a", .noHost), ("https://", .noHost),
            ("https:a", .noHost),
            ("https://:443/", .noHost), ("http://[]/", .noHost), ("http://[::1", .noHost), ("http://?a", .noHost),
            ("https://[a.example]/", .noHost), ("https://[127.0.0.1]/", .noHost), ("http://[localhost]/", .noHost),
            ("https://[[::1]]/", .noHost), ("https://[[::1]/", .noHost), ("https://a]/", .noHost),
            ("https://a[b/", .noHost), ("https://a[::1]/", .noHost), ("https://]/", .noHost),
            ("app://[done]/", .noHost), ("http://[::1]]/", .invalidPort), ("http://[::1][::2]/", .invalidPort),
            ("https://user@a/", .userInformation), ("https://user:pass@a/", .userInformation),
            ("https://a@b@c/", .userInformation), ("https://127.0.0.1:80@evil.example/", .userInformation),
            ("https://@a/", .userInformation),
            ("http://a:/", .invalidPort), ("http://a:65536/", .invalidPort), ("http://a:-1/", .invalidPort),
            ("http://a:+1/", .invalidPort), ("http://a:8x/", .invalidPort), ("http://a:000080/", .invalidPort),
            ("http://a:1:2/", .invalidPort), ("http://[::1]x/", .invalidPort), ("http://[::1]:/", .invalidPort),
            ("http://::1/", .invalidPort),
            ("http://a b/", .invalidCharacter), (" http://a/", .invalidCharacter), ("http://a/\n", .invalidCharacter),
            ("http://a/\u{0}", .invalidCharacter), ("http://a\\@b/", .invalidCharacter),
            ("http://a/<b>", .invalidCharacter),
            ("http://a/\"", .invalidCharacter), ("http://é/", .invalidCharacter),
            ("http://\u{FF41}/", .invalidCharacter),
            ("http://a/\u{7F}", .invalidCharacter), ("http://a/{b}", .invalidCharacter),
            ("http://a/`", .invalidCharacter),
            ("http://a/^", .invalidCharacter), ("http://a/|", .invalidCharacter),
        ] as [(String, WebURL.Failure)]) func `is refused`(text: String, failure: WebURL.Failure)
    {
        #expect(throws: failure) { try WebURL(parsing: text) }
    }

    @Test func `has a longest length`() {
        let start = "https://a/"
        let longest = start + String(repeating: "x", count: WebURL.maxLength - start.utf8.count)
        #expect(throws: Never.self) { try WebURL(parsing: longest) }
        #expect(throws: WebURL.Failure.tooLong) { try WebURL(parsing: longest + "x") }
    }

    @Test(arguments: [
        ("https://A.example/x", "https://a.example"), ("https://a.example:443/", "https://a.example"),
        ("http://a.example:80", "http://a.example"), ("https://a.example:80/", "https://a.example:80"),
        ("http://a.example:443/", "http://a.example:443"), ("http://127.0.0.1:8400/x", "http://127.0.0.1:8400"),
        ("http://[::1]:8400/x", "http://[::1]:8400"), ("https://a.example:0443/", "https://a.example"),
        ("https://[2001:DB8::1]/", "https://[2001:db8::1]"), ("https://a.example./", "https://a.example."),
    ]) func `has an origin`(text: String, origin: String) throws {
        #expect(try WebURL(parsing: text).origin == origin)
    }

    @Test(arguments: [
        "127.0.0.1", "127.0.0.1:80", "127.255.255.254", "127.1.2.3", "[::1]", "[::1]:9", "localhost", "LocalHost:1",
    ])
    func `is on loopback if its host is written as one`(host: String) throws {
        let url = try WebURL(parsing: "http://\(host)/")
        #expect(url.isLoopback)
        #expect(url.isSecure)
    }

    /// Some resolvers read these as loopback, others as a name that anybody may own: plain http goes to none of them.
    @Test(arguments: [
        "127.1", "127", "127.0.1", "0x7f.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1",
        "127.0.0.01", "127.010.0.1", "127.0.0.08", "127.00.0.1", "127.0.0.1.", "127.0.0.01x", "127.0.0.256",
        "127.0.0.0001", "127..0.1", "127.0.0.1.evil.example", ".127.0.0.1",
        "127.0.0.1%2eevil.example", "128.0.0.1", "1127.0.0.1", "0.0.0.0", "0", "[::]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::2]", "localhost.", "localhost.evil.example", "evil-localhost",
        "a.localhost",
        "local%68ost", "example.org",
    ]) func `is not on loopback for any other spelling`(host: String) {
        guard let url = try? WebURL(parsing: "http://\(host)/") else { return }
        #expect(!url.isLoopback)
        #expect(!url.isSecure)
    }

    @Test func `may take secrets over https, and over http on loopback`() throws {
        #expect(try WebURL(parsing: "https://example.org/").isSecure)
        #expect(try WebURL(parsing: "http://127.0.0.1/").isSecure)
        #expect(try !WebURL(parsing: "http://example.org/").isSecure)
        #expect(try !WebURL(parsing: "ftp://localhost/").isSecure)
        #expect(try !WebURL(parsing: "file:///etc/passwd").isSecure)
        #expect(try !WebURL(parsing: "localhost:x").isSecure)
    }
}
