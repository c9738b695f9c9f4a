import CurlTransport
import RingbackBase
import Synchronization
import Testing

/// A proxy that knows one name, provider.test, and remembers what it was asked.
private final class TestProxy: Sendable {
    let server: ScriptedServer
    private let seen: Seen

    /// - Parameters:
    ///   - port: of 127.0.0.1, where provider.test is.
    ///   - credentials: in base64, without which nobody passes.
    init(to port: Int, credentials: String? = nil) {
        let heads = Seen()
        seen = heads
        server = ScriptedServer { connection in
            guard let head = connection.readRequest() else { return }
            heads.add(head)
            guard head.hasPrefix("CONNECT provider.test:443 ") else { return connection.answer("403 Forbidden") }
            if let credentials, !head.contains("Proxy-Authorization: Basic \(credentials)\r\n") {
                return connection.answer("407 Proxy Authentication Required", fields: "Proxy-Authenticate: Basic\r\n")
            }
            connection.tunnel(to: port)
        }
    }

    var requests: [String] { seen.all }

    func proxy(credentials: HTTPProxy.Credentials? = nil, exceptions: [String] = []) throws -> HTTPProxy {
        HTTPProxy(
            url: try WebURL(parsing: "http://127.0.0.1:\(server.port)"), credentials: credentials,
            exceptions: exceptions)
    }
}

private final class Seen: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }
    func add(_ text: String) { texts.withLock { $0.append(text) } }
}

@Suite(.enabled(if: TLSServer.isPossible, "needs the openssl command"), .timeLimit(.minutes(5)))
struct `Requests through a proxy` {
    let client = CurlClient(version: "0.1-test")

    private func send(_ request: HTTPRequest) async -> Result<HTTPResponse, HTTPClientError> {
        do throws(HTTPClientError) {
            return .success(try await client.send(request))
        } catch {
            return .failure(error)
        }
    }

    private func reason(_ result: Result<HTTPResponse, HTTPClientError>) -> String {
        switch result {
        case .success: "an answer"
        case .failure(.unreachable(_, let reason, _)), .failure(.untrusted(_, let reason)): reason
        case .failure(let error): "\(error)"
        }
    }

    private func request(_ server: TLSServer, _ route: HTTPRoute = .standard) -> HTTPRequest {
        var request = HTTPRequest(
            url: "https://provider.test/", authorization: Secret("Bearer sesame"),
            trust: ServerTrust(certificateAuthorities: server.certificate))
        request.route = route
        request.fields.set("X-Ours", "1")
        request.refusesInsideAddresses = true
        return request
    }

    @Test func `go through the tunnel that it opens, and it sees the host alone`() async throws {
        let server = try TLSServer()
        let proxy = TestProxy(to: server.port)
        client.configure(proxy: try proxy.proxy())
        guard case .success(let response) = await send(request(server)) else { throw Failed(what: "no answer") }
        #expect(response.status == 200 && response.fields["via"] == nil)
        var posting = request(server)
        posting.method = "POST"
        posting.body = Secret("code=abc")
        _ = await send(posting)
        #expect(proxy.requests.count == 2)
        for head in proxy.requests {
            #expect(head.hasPrefix("CONNECT provider.test:443 HTTP/1.1\r\n") && !head.contains("sesame"), "\(head)")
            #expect(
                !head.contains("X-Ours") && !head.contains("code=") && !head.contains("Proxy-Authorization"), "\(head)")
        }
    }

    @Test func `of an account with a proxy of its own, or with none, do not go through the usual one`() async throws {
        let server = try TLSServer()
        let (usual, own) = (TestProxy(to: server.port), TestProxy(to: server.port))
        client.configure(proxy: try usual.proxy())
        #expect(reason(await send(request(server, .proxy(try own.proxy())))) == "an answer")
        #expect(own.requests.count == 1 && usual.requests.isEmpty)
        // Nobody else knows the name.
        #expect(reason(await send(request(server, .direct))) == "the name could not be resolved")
        #expect(usual.requests.isEmpty)
        client.configure(proxy: nil)
        #expect(reason(await send(request(server))) == "the name could not be resolved")
    }

    @Test func `to this machine and to the exceptions do not go through it`() async throws {
        let server = try TLSServer()
        let proxy = TestProxy(to: server.port)
        client.configure(proxy: try proxy.proxy(exceptions: ["test"]))
        #expect(reason(await send(request(server))) == "the name could not be resolved")
        var local = request(server)
        local.url = server.url
        local.refusesInsideAddresses = false
        #expect(reason(await send(local)) == "an answer")
        #expect(proxy.requests.isEmpty)
    }

    @Test func `bring the credentials`() async throws {
        let server = try TLSServer()
        // base64 of both, joined by a colon: every character arrives as it is written.
        let proxy = TestProxy(to: server.port, credentials: "YWwlNjljZSslOnBhOnMlNDFzICUlKyYiw7w=")
        let right = HTTPProxy.Credentials(user: "al%69ce+%", password: Secret(#"pa:s%41s %%+&"ü"#))
        client.configure(proxy: try proxy.proxy(credentials: right))
        #expect(reason(await send(request(server))) == "an answer")
        client.configure(proxy: try proxy.proxy(credentials: .init(user: "alice", password: Secret("wrong"))))
        #expect(reason(await send(request(server))).contains("did not accept the user name and password"))
        client.configure(proxy: try proxy.proxy())
        #expect(reason(await send(request(server))).contains("requires a user name and a password"))
    }

    @Test func `that it does not let through say so, and name it`() async throws {
        let server = try TLSServer()
        let proxy = TestProxy(to: server.port)
        client.configure(proxy: try proxy.proxy())
        var other = request(server)
        other.url = "https://other.test/"
        let rejected = "the proxy 127.0.0.1:\(proxy.server.port) responded with HTTP 403 to CONNECT"
        #expect(reason(await send(other)) == rejected)
        let nobody = try UnusedPort()
        client.configure(proxy: HTTPProxy(url: try WebURL(parsing: "http://127.0.0.1:\(nobody.number)")))
        #expect(
            reason(await send(request(server))) == "the connection to the proxy 127.0.0.1:\(nobody.number) was refused")
        let noProxy = ScriptedServer.writing("hello\r\n\r\n")
        client.configure(proxy: HTTPProxy(url: try WebURL(parsing: "http://127.0.0.1:\(noProxy.port)")))
        #expect(reason(await send(request(server))).contains("does not respond like an HTTP proxy"))
    }

    @Test func `whose answer is certified by an unknown authority lead to ca_file`() async throws {
        let server = try TLSServer()
        let proxy = TestProxy(to: server.port)
        client.configure(proxy: try proxy.proxy())
        var request = request(server)
        request.trust = .system
        let unknown = reason(await send(request))
        #expect(unknown.contains("inspects TLS") && unknown.contains("ca_file"), "\(unknown)")
        let other = try TLSServer()
        request.trust = ServerTrust(certificateAuthorities: other.certificate)
        #expect(reason(await send(request)).contains("was not issued by an authority in ca_file"))
        withExtendedLifetime(proxy) {}
    }
}

@Suite struct `A proxy's exceptions` {
    @Test(arguments: [
        ("https://a.example/", ["example"], false), ("https://a.example/", [".example"], false),
        ("https://a.example/", ["A.EXAMPLE".lowercased()], false), ("https://ba.example/", ["a.example"], true),
        ("https://10.0.0.1/", ["10.0.0.1"], false), ("https://10.0.0.1/", ["0.0.1"], true),
        ("https://a.example/", ["*"], false), ("https://[2001:db8::1]/", ["2001:db8::1"], false),
        ("https://a.example/", [], true), ("http://127.0.0.1:1/", [], false), ("https://localhost/", [], false),
    ])
    func `are names with those below them, and addresses`(url: String, exceptions: [String], isCovered: Bool) throws {
        let proxy = HTTPProxy(url: try WebURL(parsing: "http://proxy:1"), exceptions: exceptions)
        #expect(proxy.covers(try WebURL(parsing: url)) == isCovered)
    }
}
