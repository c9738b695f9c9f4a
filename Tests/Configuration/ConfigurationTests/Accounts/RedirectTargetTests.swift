import Testing

@testable import Configuration

@Suite struct `A redirect URI` {
    @Test(arguments: [
        ("http://127.0.0.1:8400/callback", "http://127.0.0.1:8400/callback", "http://127.0.0.1:8400/callback"),
        ("http://127.0.0.1:{port}/cb", "http://127.0.0.1:7/cb", "http://127.0.0.1:{port}/cb"),
        ("http://127.0.0.1:0/cb", "http://127.0.0.1:7/cb", "http://127.0.0.1:{port}/cb"),
        ("http://[::1]:{port}/cb", "http://[::1]:7/cb", "http://[::1]:{port}/cb"),
        ("http://localhost:{port}", "http://localhost:7", "http://localhost:{port}"),
        ("http://localhost:{port}/", "http://localhost:7/", "http://localhost:{port}/"),
        ("http://localhost:80/a%20b", "http://localhost:80/a%20b", "http://localhost:80/a%20b"),
        ("com.example.app:/cb", "com.example.app:/cb", "com.example.app:/cb"),
        ("Swisscoin://Auth-Callback", "Swisscoin://Auth-Callback", "Swisscoin://Auth-Callback"),
        ("https://example.org/cb?x=1", "https://example.org/cb?x=1", "https://example.org/cb?x=1"),
    ]) func `is sent as it was written`(written: String, sent: String, shown: String) throws {
        let target = try RedirectTarget(parsing: written)
        #expect(target.uri(port: 7) == sent)
        #expect(target.template == shown)
    }

    @Test(arguments: [
        "", "callback", "http://", "http://127.0.0.1", "http://127.0.0.1/cb", "http://example.org:{port}/cb",
        "http://127.0.0.1.example.org:{port}/cb", "http://127.1:{port}/cb", "http://0.0.0.0:{port}/cb",
        "http://[::]:{port}/cb", "http://me@127.0.0.1:{port}/cb", "http://127.0.0.1:{port}/cb?x",
        "http://127.0.0.1:{port}#",
        "http://127.0.0.1:{port}/./cb", "http://127.0.0.1:{port}/%2E%2e/cb", "http://127.0.0.1:{port}/done",
        "http://127.0.0.1:{port}/failed", "http://127.0.0.1:8{port}/cb", "http://127.0.0.1:{port}0/cb",
        "http://127.0.0.1:8400/{port}", "http://127.0.0.1:8400/a:{port}", "http://127.0.0.1:8400/:{port}/b",
        "http://127.0.0.1:8400/:{port}?x", "https://example.org:{port}/cb", "app://x:{port}",
        "https://example.org/cb#x",
        "JavaScript:alert(1)", "file:///etc/passwd", "data:text/html,x", "mailto:me@example.org", "ws://127.0.0.1:1/",
    ]) func `is refused where no answer could come, or somebody else would get it`(written: String) {
        #expect(throws: RedirectTarget.Failure.self) { try RedirectTarget(parsing: written) }
    }
}
