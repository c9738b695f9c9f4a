import CurlTransport
import Glibc
import RingbackBase
import Synchronization
import Testing

private func text(_ response: HTTPResponse) -> String { response.body.revealed() }

private struct Answer: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String

    init(_ name: String, _ text: String) {
        testDescription = name
        self.text = text
    }
}

@Suite(.timeLimit(.minutes(5))) struct `The curl client` {
    let client = CurlClient(version: "0.1-test")

    @Test func `PR-04, MD-05: a name that somebody else chose leads to nobody on this machine`() async throws {
        let server = ScriptedServer.answering("200 OK", fields: "", body: "inside")
        let url = server.url("/").replacing("127.0.0.1", with: "localhost")
        var request = HTTPRequest(url: url)
        #expect(try await client.send(request).status == 200)
        request.refusesInsideAddresses = true
        request.method = "POST"
        guard case .unreachable = await failureOf(client, request) else { throw Unexpected("it was connected to") }
    }

    @Test(.enabled(if: !interfaceAddresses().isEmpty, "The machine has no interface besides loopback."))
    func `a name that somebody else chose leads to no other address of this machine either`() async throws {
        // TLS fails here. What counts is whether there was a connection.
        let server = ScriptedServer(isOnAllInterfaces: true) { _ = $0.readRequest() }
        let address = try #require(interfaceAddresses().first)
        for host in [address, "[::ffff:\(address)]"] {
            var request = HTTPRequest(url: "https://\(host):\(server.port)/")
            request.refusesInsideAddresses = true
            let found = await failureOf(client, request)
            guard case .unreachable = found else { throw Unexpected("\(host): \(String(describing: found))") }
        }
        #expect(server.connectionCount == 0)
        #expect(await failureOf(client, HTTPRequest(url: "https://\(address):\(server.port)/")) != nil)
        #expect(server.connectionCount == 1)
    }

    @Test func `PR-05: sends a request and returns the whole answer`() async throws {
        let seen = Mutex("")
        let server = ScriptedServer { connection in
            let request = connection.readRequest() ?? ""
            seen.withLock { $0 = request }
            connection.answer("201 Created", fields: "X-One: a\r\nx-one:  b \r\nEmpty:\r\n", body: "hello")
        }
        var request = HTTPRequest(
            url: server.url("/a/../b?x=%2F"), fields: HTTPFields([("Accept", "application/json")]))
        request.authorization = Secret("Bearer s3cret")
        let response = try await client.send(request)
        #expect(response.status == 201)
        #expect(text(response) == "hello")
        #expect(response.fields[all: "X-ONE"] == ["a", "b"])
        #expect(response.fields["empty"] == "")
        let sent = seen.withLock { $0 }
        #expect(sent.hasPrefix("GET /a/../b?x=%2F HTTP/1.1\r\n"))
        #expect(sent.contains("\r\nUser-Agent: ringback/0.1-test\r\n"))
        #expect(sent.contains("\r\nAuthorization: Bearer s3cret\r\n"))
        #expect(sent.contains("\r\nAccept: application/json\r\n"))
        #expect(!sent.lowercased().contains("accept-encoding"))
        #expect(!sent.lowercased().contains("cookie"))
    }

    @Test(arguments: [0, 1, 200_000, 1_500_000])
    func `posts a body as it is, without asking for leave`(length: Int) async throws {
        let body = String(repeating: "x", count: length)
        let seen = Mutex("")
        let server = ScriptedServer { connection in
            let request = connection.readRequest() ?? ""
            seen.withLock { $0 = request }
            connection.answer()
        }
        let form = HTTPFields([("Content-Type", "application/x-www-form-urlencoded")])
        _ = try await client.send(HTTPRequest(method: "POST", url: server.url(), fields: form, body: Secret(body)))
        let sent = seen.withLock { $0 }
        #expect(sent.hasPrefix("POST / HTTP/1.1\r\n"))
        #expect(sent.hasSuffix("\r\n\r\n\(body)"))
        #expect(sent.contains("\r\nContent-Length: \(body.utf8.count)\r\n"))
        #expect(!sent.lowercased().contains("expect"))
    }

    @Test(arguments: ["PUT", "DELETE", "HEAD"])
    func `sends the method it was given`(method: String) async throws {
        let server = ScriptedServer { connection in
            let request = connection.readRequest() ?? ""
            connection.write(
                "HTTP/1.1 200 OK\r\nX-Method: \(request.prefix { $0 != " " })\r\nContent-Length: 0\r\n\r\n")
        }
        #expect(try await client.send(HTTPRequest(method: method, url: server.url())).fields["x-method"] == method)
    }

    @Test(arguments: ["POST", "PUT", "DELETE"])
    func `says no type of a body that there is not`(method: String) async throws {
        let seen = Mutex("")
        let server = ScriptedServer { connection in
            let request = connection.readRequest() ?? ""
            seen.withLock { $0 = request.lowercased() }
            connection.answer()
        }
        _ = try await client.send(HTTPRequest(method: method, url: server.url()))
        #expect(seen.withLock { !$0.contains("content-type") && $0.contains("\r\ncontent-length: 0\r\n") })
    }

    @Test(arguments: [
        "file:///etc/hostname", "ftp://127.0.0.1/", "http://example.com/", "http://127.0.0.1.example.com/",
        "http://10.0.0.1/", "gopher://127.0.0.1/", "https://user:word@example.com/", "https:///x", "", "localhost",
    ])
    func `PR-02, NAT-44: refuses a URL that secrets must not go to`(url: String) async {
        #expect(await failureOf(client, HTTPRequest(url: url)) == .refusedURL)
    }

    @Test(arguments: [("X-A", "1\r\nX-B: 2"), ("X-A", "a\nb"), ("X A", "1"), ("", "1"), ("X-A", "\u{0}")])
    func `refuses a header field that would be two`(name: String, value: String) async throws {
        let server = ScriptedServer { $0.waitUntilClosed() }
        let request = HTTPRequest(url: server.url(), fields: HTTPFields([(name, value)]))
        guard case .unreachable = await failureOf(client, request) else { throw Unexpected("sent") }
        var secret = HTTPRequest(url: server.url())
        secret.authorization = Secret("Bearer \(value)\n")
        #expect(await failureOf(client, secret) != nil)
        #expect(server.connectionCount == 0)
    }

    /// In processes of their own: the environment is not for changing while threads run.
    @Test func `goes past the environment's proxy`() async {
        await #expect(processExitsWith: .success) {
            let proxy = ScriptedServer.answering(body: "proxy")
            let server = ScriptedServer.answering(body: "server")
            for name in ["http_proxy", "all_proxy", "ALL_PROXY"] {
                unsafe setenv(name, "http://127.0.0.1:\(proxy.port)", 1)
            }
            let response = try await CurlClient(version: "0.1-test").send(HTTPRequest(url: server.url()))
            #expect(response.body.revealed() == "server")
            #expect(proxy.connectionCount == 0)
        }
    }

    @Test func `preparing keeps connection keys out of SSLKEYLOGFILE`() async {
        await #expect(processExitsWith: .success) {
            unsafe setenv("SSLKEYLOGFILE", "/nonexistent/keys", 1)
            #expect(CurlClient.prepare())
            #expect(unsafe getenv("SSLKEYLOGFILE") == nil)
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `PR-03, ADV-20: a redirect is an answer`(status: Int) async throws {
        let other = ScriptedServer.answering()
        let location = other.url("/stolen")
        let server = ScriptedServer.answering("\(status) Elsewhere", fields: "Location: \(location)\r\n")
        let request = HTTPRequest(method: "POST", url: server.url(), body: Secret("refresh_token=R"))
        let response = try await client.send(request)
        #expect(response.status == status)
        #expect(response.fields["location"] == location)
        #expect(other.connectionCount == 0)
    }

    @Test func `PR-23: sets no cookie`() async throws {
        let cookies = Mutex<[Bool]>([])
        let server = ScriptedServer { connection in
            while let request = connection.readRequest() {
                cookies.withLock { $0.append(request.lowercased().contains("cookie")) }
                connection.answer(fields: "Set-Cookie: a=b\r\nAlt-Svc: h2=\":1\"\r\n")
            }
        }
        for _ in 0..<2 { _ = try await client.send(HTTPRequest(url: server.url())) }
        #expect(cookies.withLock { $0 } == [false, false])
    }

    @Test(arguments: [
        Answer(
            "one byte over", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "x", count: 1_001)),
        Answer("a length that lies", "HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\nx"),
        Answer("no length", "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 5_000)),
        Answer(
            "chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + String(repeating: "10\r\n0123456789abcdef\r\n", count: 99)),
    ])
    private func `PR-05: a body over the limit ends the transfer`(answer: Answer) async {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write(answer.text)
            connection.waitUntilClosed()
        }
        let limits = HTTPLimits(timeout: .seconds(60), maxBody: 1_000)
        #expect(
            await failureOf(client, HTTPRequest(url: server.url(), limits: limits))
                == .tooLarge(host: "127.0.0.1:\(server.port)"))
    }

    @Test func `a body of exactly the limit is taken`() async throws {
        let body = String(repeating: "x", count: 100_000)
        let server = ScriptedServer.answering(body: body)
        let limits = HTTPLimits(timeout: .seconds(60), maxBody: 100_000)
        #expect(text(try await client.send(HTTPRequest(url: server.url(), limits: limits))) == body)
    }

    @Test func `PR-05: an endless head ends the transfer`() async {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 200 OK\r\n")
            while connection.write("X-More: \(String(repeating: "x", count: 1_000))\r\n") {}
        }
        #expect(await failureOf(client, HTTPRequest(url: server.url())) == .tooLarge(host: "127.0.0.1:\(server.port)"))
    }

    @Test(arguments: [
        Answer("short of its length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
        Answer("no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"),
        Answer("bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        Answer("bad length", "HTTP/1.1 200 OK\r\nContent-Length: pear\r\n\r\n"),
        Answer("HTML", "<html>not HTTP at all</html>"),
        Answer("another protocol", "SSH-2.0-OpenSSH_9.2\r\n"),
    ])
    private func `an answer that breaks HTTP or ends early is malformed`(answer: Answer) async {
        let server = ScriptedServer.writing(answer.text)
        #expect(await failureOf(client, HTTPRequest(url: server.url())) == .malformed(host: "127.0.0.1:\(server.port)"))
    }

    @Test func `interim answers and trailers are passed over`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n")
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Final: 1\r\n\r\n2\r\nok\r\n0\r\n")
            connection.write("X-Trailer: 1\r\n\r\n")
        }
        let response = try await client.send(HTTPRequest(url: server.url()))
        #expect(response.status == 200)
        #expect(response.fields.lines.map(\.name) == ["Transfer-Encoding", "X-Final"])
        #expect(text(response) == "ok")
    }
}
