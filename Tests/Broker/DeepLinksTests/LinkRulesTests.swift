import RingbackBase
import Testing

@testable import DeepLinks

@Suite struct `What a link is` {
    private let rules = LinkRules(
        schemes: ["org.example.notes"],
        redirectURIs: [
            "swisscoin://auth-callback", "com.example.app:/oauth/done", "http://127.0.0.1:{port}/callback",
            "https://app.example/done",
        ])

    /// `access_token` as `accessToken`, or as `AccessToken` from the first word on.
    private func camel(_ name: String, from first: Int = 1) -> String {
        name.split(separator: "_").enumerated().map {
            $0 < first ? String($1) : $1.prefix(1).uppercased() + $1.dropFirst()
        }
        .joined()
    }

    private func kind(_ text: String) throws -> LinkRules.Kind { rules.kind(of: try WebURL(parsing: text)) }

    @Test(arguments: [
        "swisscoin://pay/7?amount=1&to=bob", "swisscoin://open", "SWISSCOIN://open", "swisscoin:open",
        "swisscoin://auth-callback/other", "swisscoin://auth-callback.evil/", "swisscoin://auth-callback:80/",
        "org.example.notes:/note?code=SUMMER", "org.example.notes://x?state=open", "com.example.app:/oauth",
        "org.example.notes://x?error=none&topic=access_token", "org.example.notes:///a?b=refresh_tokens",
        "org.example.notes://x#/settings?tab=%zz", "com.example.app:/OAuth/done",
        "org.example.notes://docs/access_token", "org.example.notes://x?android_token=1",
        "org.example.notes://x?paidToken=1",
        "org.example.notes://x?promo_code=c&state=open", "org.example.notes://x?q=code,state",
        "org.example.notes://state/7",
    ])
    func `is for the app`(text: String) throws {
        let scheme = text.prefix { $0 != ":" }.lowercased()
        #expect(try kind(text) == .deepLink(scheme: scheme))
    }

    @Test(arguments: [
        "swisscoin://auth-callback", "swisscoin://auth-callback/", "SwissCoin://Auth-Callback//",
        "swisscoin://auth-callback?utm=1", "swisscoin://auth-callback#x", "swisscoin://auth-callback/?a=b#c",
        "swisscoin://auth%2Dcallback", "swisscoin://auth-callback/.", "swisscoin://auth-callback/x/..",
        "swisscoin:///auth-callback", "com.example.app:/oauth/done", "com.example.app:/oauth/done/?x",
        "COM.EXAMPLE.APP:/oauth/./done", "com.example.app:/oauth/%64one",
    ])
    func `at a redirect URI is none for the app`(text: String) throws { #expect(try kind(text) == .callback) }

    @Test(arguments: [
        "access_token", "refresh_token", "id_token", "provider_token", "provider_refresh_token", "token_hash",
    ])
    func `with a token is none for the app`(name: String) throws {
        let escaped = name.replacing("_", with: "%5F")
        let twice = name.replacing("_", with: "%255f")
        for text in [
            "?\(name)=x", "#\(name)=x", "?a=b&\(name)=x", "#a=b&\(name)", "?\(escaped)=x", "#\(escaped)=x",
            "#a&\(twice)=x",
            "?\(name.uppercased())=x", "?%20\(name)+=x", "?a=%zz&\(name)=x", "?a;\(name)=x", "#/route?\(name)=x",
            "%3F\(name)=x", "?next=other%3A%2F%2Fy%23\(name)%3Dx", "#/\(name)=x", "#!\(name)=x", "#!/\(name)=x",
            "?q=1,\(name)=x", "?\(name)[]=x", "?\(name)%5B0%5D=x", "?user[\(name)]=x", "?a.\(name)=x", "/\(name)=x",
            "/\(name)/x", "/a/\(name):x/b", "?\(camel(name))=x", "#/\(camel(name))=x", "?user\(camel(name, from: 0))=x",
            "?\(name.replacing("_", with: "-"))=x", "?\(name.replacing("_", with: ""))=x",
            "?data=%7B%22\(name)%22:%22x%22%7D",
            "?a=b=\(name)=x", "?\(name)s=x", "?%7C\(name)%7C=x",
        ] {
            #expect(try kind("org.example.notes://x\(text)") == .callback, "\(text)")
            // Nobody's link with a token goes anywhere else either.
            #expect(try kind("unknown://x\(text)") == .callback, "\(text)")
        }
    }

    @Test(arguments: [
        "?code=c&flow=k", "?flow=k&code=c", "?code=c&state=s", "?c%6Fde=c&%66low=k", "#code=c&state=s",
        "?code=c#state=s",
        "?code&flow", "?Code=c&State=s", "?code=%zz&state=s", "?a=b;code=c;state=s", "#code%3Dc%26state%3Ds",
        "?u=x%3A%2Fcallback%3Fcode%3Dc%26state%3Ds", "/callback%3Fcode=c&state=s", "#/code=c&state=s",
        "#!code=c&state=s", "#/x?code=c&state=s", "/code=c&state=s", "?code[]=c&state[]=s", "?q=1,code=c,state=s",
        "/code/c/state/s", "?a=%7B%22code%22:%22c%22,%22state%22:%22s%22%7D", "#/state=s&code=c",
    ])
    func `with a code and a flow's key is none for the app`(query: String) throws {
        #expect(try kind("org.example.notes://x\(query)") == .callback)
    }

    @Test func `of a web page or of nobody's scheme is none for the app`() throws {
        #expect(try kind("https://app.example/anything") == .callback)
        #expect(try kind("http://127.0.0.1:4711/callback") == .callback)
        #expect(try kind("other://x") == .foreign(scheme: "other"))
        #expect(try kind("notes://x") == .foreign(scheme: "notes"))
    }

    @Test func `at an address that a pending flow has of an earlier configuration is none for the app`() throws {
        let rules = LinkRules(
            schemes: ["swisscoin"], redirectURIs: [String](), awaited: ["swisscoin://old-callback?flow=KEY"])
        #expect(rules.kind(of: try WebURL(parsing: "swisscoin://old-callback?code=c")) == .callback)
        #expect(rules.kind(of: try WebURL(parsing: "swisscoin://new?code=c")) == .deepLink(scheme: "swisscoin"))
        #expect(rules.schemes == ["swisscoin"])
    }

    @Test func `tells what may be a flow's key`() throws {
        let url = try WebURL(parsing: "a://b?state=one%20two&x=y&%66low=three#state=four&flow")
        #expect(LinkRules.keys(in: url) == ["one two", "three", "four", ""])
    }

    @Test func `is the same with its escapes undone only where they are whole`() {
        #expect(Escapes.decoded("a%41%4") == "aA%4")
        #expect(Escapes.decoded("%zz%25%2541") == "%zz%%41")
        #expect(Escapes.decoded("%") == "%")
    }
}
