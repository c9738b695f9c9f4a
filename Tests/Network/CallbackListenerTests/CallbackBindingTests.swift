import Testing

@testable import CallbackListener

@Suite struct `A redirect URI to listen behind` {
    @Test(arguments: [
        ("http://127.0.0.1:{port}/callback", 0, "/callback", "http://127.0.0.1:5000/callback", "127.0.0.1:5000"),
        ("http://127.0.0.1:0/callback", 0, "/callback", "http://127.0.0.1:5000/callback", "127.0.0.1:5000"),
        ("http://[::1]:{port}/cb?a=b", 0, "/cb", "http://[::1]:5000/cb?a=b", "[::1]:5000"),
        ("http://localhost:{port}", 0, "/", "http://localhost:5000", "localhost:5000"),
        ("http://LOCALHOST:5000/x", 5_000, "/x", "http://LOCALHOST:5000/x", "localhost:5000"),
    ])
    func `is kept byte for byte but for its port`(
        text: String, port: Int, path: String, redirectURI: String, authority: String
    ) throws {
        let binding = try CallbackBinding(parsing: text)
        #expect(binding.port == port)
        #expect(binding.path == path)
        #expect(binding.redirectURI(port: 5_000) == redirectURI)
        #expect(binding.authority(port: 5_000) == authority)
    }

    @Test(arguments: ["http://127.0.0.1/cb", "http://127.0.0.1:80/cb"])
    func `on port 80 is asked for without a port`(text: String) throws {
        let binding = try CallbackBinding(parsing: text)
        #expect(binding.port == 80)
        #expect(binding.redirectURI(port: 80) == text)
        #expect(binding.authority(port: 80) == "127.0.0.1")
    }

    @Test func `at localhost is bound in both families`() throws {
        #expect(try CallbackBinding(parsing: "http://localhost:1/x").families == [.ipv4, .ipv6])
        #expect(try CallbackBinding(parsing: "http://127.0.0.1:1/x").families == [.ipv4])
        #expect(try CallbackBinding(parsing: "http://[::1]:1/x").families == [.ipv6])
    }

    @Test(arguments: [
        "https://127.0.0.1:1/x", "http://example.com:1/x", "http://127.0.0.2:1/x", "swisscoin://auth-callback",
        "http://127.0.0.1:1/x#y", "http://127.0.0.1:1/done", "http://127.0.0.1:1/noted",
        "http://127.0.0.1:{port}/failed", "http://127.0.0.1:1/start/x", "/callback", "",
        "http://127.0.0.1:1/{port}", "http://0.0.0.0:1/x", "http://127.0.0.1:99999/x", "http://me@127.0.0.1:1/x",
    ])
    func `that the listener cannot serve is refused`(text: String) {
        #expect(throws: CallbackListenerError.self) { try CallbackBinding(parsing: text) }
    }

    @Test func `a site is at a name below localhost that is one label`() throws {
        let binding = try CallbackBinding.site("rb-x", "work", [], on: [.ipv4])
        #expect(binding.authority(port: 5_000) == "rb-x.localhost:5000" && binding.families == [.ipv4])
        for name in ["a/b", "a@b"] {
            #expect(throws: CallbackListenerError.self) { try CallbackBinding.site(name, "work", [], on: [.ipv4]) }
        }
    }
}
