import RingbackBase
import Testing

@Suite struct `A scheme of an app` {
    @Test(arguments: ["org.example.app", "swisscoin", "a", "x-app+2.b-c", "ORG.Example.App"])
    func `is a letter and what may follow it`(text: String) throws {
        #expect(try URLScheme(parsing: text).name == text.lowercased())
    }

    @Test(arguments: [
        "", "1app", "-app", ".app", "a b", "a:", "a://", "a/b", "a\n", "é", "a_b", "a%20",
        String(repeating: "a", count: 65),
    ])
    func `is nothing else`(text: String) {
        #expect(throws: URLScheme.Failure.malformed) { try URLScheme(parsing: text) }
    }

    @Test(arguments: [
        "http", "HTTPS", "file", "mailto", "javascript", "data", "ftp", "about", "ssh", "sftp", "vbscript", "blob",
        "tel",
        "x-scheme-handler", "ws", "intent", "view-source",
    ])
    func `is none that browsers and desktops keep for themselves`(text: String) {
        #expect(throws: URLScheme.Failure.reserved(text.lowercased())) { try URLScheme(parsing: text) }
    }

    @Test func `NAT-03: with a dot it is after a domain name`() throws {
        for (text, isReverse) in [
            ("org.example.app", true), ("a.b", true), ("swisscoin", false), ("app.", false), ("a..b", false),
        ] {
            #expect(try URLScheme(parsing: text).isReverseDNS == isReverse, "\(text)")
        }
    }
}

@Suite struct `The place of a callback` {
    private func isPlace(_ callback: String, _ redirect: String) throws -> Bool {
        try WebURL(parsing: callback).isPlace(of: try WebURL(parsing: redirect))
    }

    @Test(arguments: [
        ("swisscoin://auth-callback?code=a", "swisscoin://auth-callback"),
        ("swisscoin://auth-callback/?code=a", "swisscoin://auth-callback"),
        ("SwissCoin://Auth-Callback", "swisscoin://auth-callback/"),
        ("org.example.app:/cb?x#y", "org.example.app:/cb"), ("org.example.app:/cb/", "org.example.app:/cb"),
        ("org.example.app:", "org.example.app://"), ("org.example.app:/", "org.example.app://"),
    ])
    func `of a scheme is told without letter case of scheme and host, and without the last slash`(
        callback: String, redirect: String
    ) throws {
        #expect(try isPlace(callback, redirect))
    }

    @Test(arguments: [
        ("swisscoin://auth-callback2", "swisscoin://auth-callback"),
        ("swisscoin://auth-callback/x", "swisscoin://auth-callback"),
        ("swisscoin://auth-callback//", "swisscoin://auth-callback"), ("org.example.app:/CB", "org.example.app:/cb"),
        ("org.example.app://cb", "org.example.app:/cb"), ("swisscoin2://auth-callback", "swisscoin://auth-callback"),
        ("swisscoin://auth-callback:1", "swisscoin://auth-callback"),
        ("http://127.0.0.1:1/cb/", "http://127.0.0.1:1/cb"), ("https://a.example/cb/", "https://a.example/cb"),
    ])
    func `is no other one`(callback: String, redirect: String) throws {
        #expect(try !isPlace(callback, redirect))
    }
}
