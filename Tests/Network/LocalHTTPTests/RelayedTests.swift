import RingbackBase
import Testing

@testable import LocalHTTP

private func origin(_ text: String = "https://api.example.org/v1") throws -> RelayedOrigin {
    try #require(RelayedOrigin(try WebURL(parsing: text), port: 8701))
}

private func request(
    _ line: String, _ fields: String = "", host: String = "127.0.0.1:8701", version: String = "1.1"
) throws -> RelayedRequest? {
    var input = Array("\(line) HTTP/\(version)\r\nHost: \(host)\r\n\(fields)\r\n".utf8)
    var searched = 0
    return try RelayedRequest.take(from: &input, searched: &searched, for: origin())
}

private func status(of line: String, _ fields: String = "", host: String = "127.0.0.1:8701") -> Int? {
    do {
        _ = try request(line, fields, host: host)
        return nil
    } catch let refusal as RelayedRequest.Refusal {
        return refusal.status
    } catch {
        return 0
    }
}

@Suite struct `A relayed request` {
    @Test(arguments: [
        ("CONNECT api.example.org:443", "", 400), ("CONNECT /v1", "", 405), ("TRACE /v1", "", 405),
        ("TRACK /v1", "", 405), ("get /v1", "", 405), ("GET *", "", 400),
        ("GET /v1", "Upgrade: websocket\r\nConnection: Upgrade\r\n", 501),
        ("GET /v1", "Origin: https://a.example\r\n", 403),
        ("GET /v1", "Origin: null\r\n", 403), ("GET /v1", "Origin: http://localhost:8701\r\n", 403),
        ("GET /v1", "Origin: http://127.0.0.1:8701\r\nOrigin: https://a.example\r\n", 403),
        ("GET /v1", "Sec-Fetch-Site: cross-site\r\n", 403), ("GET /v1", "Sec-Fetch-Site: same-site\r\n", 403),
        ("GET http://api.example.org/v1", "", 421), ("GET /v1", "Expect: magic\r\n", 417),
        ("POST /v1", "Transfer-Encoding: gzip, chunked\r\n", 400), ("POST /v1", "Transfer-Encoding: identity\r\n", 400),
        ("POST /v1", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
        ("POST /v1", "Content-Length: 5\r\nContent-Length: 5\r\n", 400), ("HEAD /v1", "Content-Length: 5\r\n", 400),
        ("GET /", "", 403), ("GET /v2", "", 403), ("GET /v10", "", 403), ("GET /v1/../admin", "", 403),
        ("GET /v1/%2e%2e/admin", "", 403), ("GET /v1/..;/admin", "", 403), ("GET /v1%2Fa", "", 403),
        ("GET //v1/a", "", 403), ("GET /v1/a#b", "", 403),
    ])
    func `a relay refuses what is not for its origin`(_ line: String, _ fields: String, _ expected: Int) {
        #expect(status(of: line, fields) == expected, "\(line) \(fields)")
    }

    @Test(arguments: ["localhost:8701", "127.0.0.1", "127.0.0.1:8702", "rebound.example:8701", "api.example.org", ""])
    func `a relay refuses another host than its own`(host: String) {
        #expect(status(of: "GET /v1", host: host) == 421)
    }

    @Test(arguments: [
        ("/v1", "https://api.example.org/v1"), ("/v1/", "https://api.example.org/v1/"),
        ("/v1/chat?stream=1&q=a%2Fb", "https://api.example.org/v1/chat?stream=1&q=a%2Fb"),
        ("/%76%31/chat", "https://api.example.org/%76%31/chat"),
    ])
    func `a target below the path goes to the same place at the server`(target: String, url: String) throws {
        let found = try #require(try request("GET \(target)", "Sec-Fetch-Mode: cors\r\nSec-Fetch-Site: none\r\n"))
        #expect(found.url.text == url)
    }

    @Test func `a relayed request has no credential of the client and no field of its connection`() throws {
        let fields = [
            "Authorization: Bearer mine", "dpop: mine", "x-api-key: mine", "COOKIE: a=b",
            "Proxy-Authorization: Basic eA==",
            "Connection: keep-alive, X-Hop", "Keep-Alive: 5", "X-Hop: 1", "TE: trailers", "Trailer: X",
            "Expect: 100-continue",
            "Accept-Encoding: br", "Origin: http://127.0.0.1:8701", "Referer: http://127.0.0.1:8701/v1",
            "Sec-Fetch-Mode: cors", "Content-Length: 3", "Content-Type: text/plain", "X-Kept: yes",
        ]
        let found = try #require(try request("POST /v1/a", fields.map { $0 + "\r\n" }.joined()))
        #expect(
            found.fields.lines.map { "\($0.name): \($0.value)" }
                == ["Content-Type: text/plain", "X-Kept: yes", "Accept-Encoding: identity"])
        #expect(found.body == .length(3) && found.expectsContinue && found.keepsAlive)
    }

    @Test(arguments: [
        ("GET", "", RelayedRequest.Body.none), ("GET", "Content-Length: 2\r\n", .length(2)), ("POST", "", .length(0)),
        ("DELETE", "Content-Length: 0\r\n", .none), ("PUT", "Transfer-Encoding: Chunked\r\n", .chunked),
    ])
    func `a body has the length that the head states`(_ method: String, _ fields: String, _ body: RelayedRequest.Body)
        throws
    {
        #expect(try request("\(method) /v1", fields)?.body == body)
    }

    @Test func `a head that comes byte by byte is read once it is whole`() throws {
        let bytes = Array("GET /v1 HTTP/1.1\r\nHost: 127.0.0.1:8701\r\n\r\nrest".utf8)
        var (input, searched) = ([UInt8](), 0)
        for (index, byte) in bytes.enumerated() {
            input.append(byte)
            let found = try RelayedRequest.take(from: &input, searched: &searched, for: origin())
            #expect((found != nil) == (index == bytes.count - 5))
        }
        #expect(input == Array("rest".utf8))
    }

    @Test(arguments: [
        "http://api.example.org/v1", "https://api.example.org/v1?a=b", "https://api.example.org/a/../b",
        "ftp://a.example",
        "https://api.example.org/v1#a",
    ])
    func `there is no relay to a URL that is not secure or not clear`(url: String) throws {
        #expect(RelayedOrigin(try WebURL(parsing: url), port: 1) == nil)
    }
}

@Suite struct `The body of a relayed request` {
    /// Takes the input in pieces of a size. Nil for one that is refused.
    private func taken(_ text: String, _ body: RelayedRequest.Body, step: Int) -> (body: String, rest: String)? {
        var (reader, input, taken) = (RelayedBody(body), [UInt8](), [UInt8]())
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: step) {
            input += bytes[start..<min(start + step, bytes.count)]
            while let piece = try? reader.take(from: &input, atMost: 3) {
                taken += piece
                if piece.isEmpty { break }
            }
            guard (try? reader.take(from: &input, atMost: 0)) != nil else { return nil }
        }
        return reader.isOver ? (String(decoding: taken, as: UTF8.self), String(decoding: input, as: UTF8.self)) : nil
    }

    @Test(arguments: [
        ("hello", RelayedRequest.Body.length(5), "hello", ""), ("hello GET", .length(5), "hello", " GET"),
        ("5\r\nhello\r\n0\r\n\r\nGET", .chunked, "hello", "GET"), ("0\r\n\r\n", .chunked, "", ""),
        ("00002\r\nab\r\nA\r\n0123456789\r\n000\r\n\r\n", .chunked, "ab0123456789", ""),
    ])
    func `however it is cut, it is read as the same`(
        _ text: String, _ body: RelayedRequest.Body, _ expected: String, _ rest: String
    ) {
        for step in 1...text.utf8.count {
            let found = taken(text, body, step: step)
            #expect(found?.body == expected && found?.rest == rest, "pieces of \(step)")
        }
    }

    @Test(arguments: [
        "5;a=b\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", " 5\r\nhello\r\n", "+5\r\nhello", "\r\n", "5\r\nhelloX0\r\n",
        "0\r\nX-Trailer: a\r\n\r\n", "0x5\r\nhello", "1234567890123456\r\n",
    ])
    func `a chunk that two readers may read in two ways is refused`(text: String) {
        for step in 1...text.utf8.count { #expect(taken(text, .chunked, step: step) == nil, "pieces of \(step)") }
    }
}

@Suite struct `A relayed response` {
    private func head(
        _ fields: [(String, String)], status: Int = 200, method: String = "GET", isDecoded: Bool = false,
        token: String = "a-secret-token"
    ) throws -> [String] {
        let asked = try #require(try request("\(method) /v1"))
        let response = try RelayedResponse(
            status, HTTPFields(fields), isDecoded: isDecoded, to: asked, of: origin(), SecretMask(Secret(token)))
        return String(decoding: response.head, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    @Test(arguments: [
        ("https://api.example.org/v1/a?b=c#d", "http://127.0.0.1:8701/v1/a?b=c#d"),
        ("https://API.example.org:443/v1", "http://127.0.0.1:8701/v1"),
        ("//api.example.org/v1", "http://127.0.0.1:8701/v1"), ("/v1/a", "/v1/a"), ("a", "a"),
        ("http://api.example.org/v1", "http://api.example.org/v1"),
        ("https://other.example/v1", "https://other.example/v1"), ("//other.example/v1", "https://other.example/v1"),
        ("https://api.example.org.other.example/", "https://api.example.org.other.example/"),
        ("https://api.example.org@other.example/", "https://api.example.org@other.example/"),
    ])
    func `a redirect within the origin leads to the relay, any other one stays`(from: String, to: String) throws {
        #expect(try head([("Location", from)], status: 302).contains("Location: \(to)"))
    }

    @Test(arguments: [
        (
            "<https://api.example.org/v1?page=2>; rel=\"next\", <https://other.example/>; rel=\"last\"",
            "<http://127.0.0.1:8701/v1?page=2>; rel=\"next\", <https://other.example/>; rel=\"last\""
        ),
        ("</a>; title=\"<https://api.example.org/>\\\"<\"", "</a>; title=\"<https://api.example.org/>\\\"<\""),
        ("<https://api.example.org/v1", "<https://api.example.org/v1"),
    ])
    func `links to the origin lead to the relay`(from: String, to: String) throws {
        #expect(try head([("Link", from)]).contains("Link: \(to)"))
    }

    @Test func `a response has no session of the server, no field of its connection and no token`() throws {
        let fields = [
            ("Set-Cookie", "session=1"), ("dpop-nonce", "n"), ("Connection", "close, X-Hop"), ("X-Hop", "1"),
            ("Keep-Alive", "5"),
            ("Alt-Svc", "h3=\":443\""), ("Transfer-Encoding", "chunked"), ("Content-Type", "text/plain"),
            ("X-Echo", "Bearer a-secret-token!"), ("Location", "https://api.example.org/a?t=a-secret-token"),
        ]
        #expect(
            try head(fields) == [
                "HTTP/1.1 200 OK", "Content-Type: text/plain", "X-Echo: Bearer **************!",
                "Location: http://127.0.0.1:8701/a?t=**************", "Transfer-Encoding: chunked",
            ])
    }

    @Test func `a response without content has no length, and one to HEAD or of the status 304 may have`() throws {
        let fields = [("Content-Length", "5")]
        #expect(try head(fields, status: 204) == ["HTTP/1.1 204 No Content"])
        #expect(try head(fields, status: 304).contains("Content-Length: 5"))
        #expect(try head(fields, method: "HEAD").contains("Content-Length: 5"))
    }

    @Test func `a body with a length keeps it, unless it was decoded`() throws {
        let fields = [("Content-Length", "5"), ("Content-Encoding", "gzip")]
        #expect(try head([("Content-Length", "5")]).contains("Content-Length: 5"))
        let decoded = try head(fields, isDecoded: true)
        #expect(decoded == ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"])
        #expect(throws: RelayedRequest.Refusal.self) { try head(fields) }
        #expect(try head(fields, method: "HEAD").contains("Content-Length: 5"))
    }

    @Test(arguments: [
        ("1.1", [("Content-Length", "3")], "abc", "", true), ("1.1", [], "3\r\nabc\r\n", "0\r\n\r\n", true),
        ("1.0", [], "abc", "", false),
    ])
    func `a body without a length is sent in chunks, to HTTP/1.0 until the connection ends`(
        _ version: String, _ fields: [(String, String)], _ piece: String, _ end: String, _ keepsAlive: Bool
    ) throws {
        let asked = try #require(try request("GET /v1", version: version))
        let response = try RelayedResponse(
            200, HTTPFields(fields), isDecoded: false, to: asked, of: origin(), SecretMask(Secret("a-secret-token")))
        #expect(String(decoding: response.piece(Array("abc".utf8)), as: UTF8.self) == piece)
        #expect(String(decoding: response.end, as: UTF8.self) == end && response.keepsAlive == keepsAlive)
    }

    @Test func `the relay's own refusal is a problem document with its length`() throws {
        let text = String(decoding: RelayedResponse.refusal(.init(403, "No.")), as: UTF8.self)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1).map(String.init)
        let body = try #require(parts.last)
        #expect(
            parts.first?.split(separator: "\r\n") == [
                "HTTP/1.1 403 Forbidden", "Content-Type: application/problem+json",
                "Content-Length: \(body.utf8.count)", "Connection: close",
            ])
        let problem = try JSON(parsing: Array(body.utf8))
        #expect(problem["code"] == "invalid_request" && problem["detail"] == "ringback: No.")
    }
}
