import CurlTransport
import RingbackBase
import Testing

/// What a client made of a response, in words; SERVER stands for the request's host and port.
private func outcome(_ client: CurlClient, _ request: HTTPRequest) async -> String {
    let server = String(request.url.split(separator: "/", omittingEmptySubsequences: true)[1])
    do throws(HTTPClientError) {
        let response = try await client.send(request)
        let truncation = response.truncation.map { ", \($0)" } ?? ""
        return "\(response.status) “\(response.body.revealed())”\(truncation.replacing(server, with: "SERVER"))"
    } catch {
        return "\(error)".replacing(server, with: "SERVER")
    }
}

private let malformed = "\(HTTPClientError.malformed(host: "SERVER"))"
private let timedOut = "\(HTTPClientError.timedOut(host: "SERVER"))"
private let tooLarge = "\(HTTPClientError.tooLarge(host: "SERVER"))"

@Suite(.timeLimit(.minutes(1))) struct `An answer that breaks off` {
    private let client = CurlClient(version: "0.1-test")
    private let body = #"{"access_token":"a1","token_type":"Bearer","refresh_token":"r2","expires_in":3600}"#

    private func server(
        _ text: String, then end: @escaping @Sendable (ScriptedConnection) -> Void = { _ in }
    ) -> ScriptedServer {
        ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write(text)
            end(connection)
        }
    }

    private func request(
        _ server: ScriptedServer, keeping: Bool = true, timeout: Duration = .seconds(10), maxBody: Int = 1 << 20
    ) -> HTTPRequest {
        HTTPRequest(
            method: "POST", url: server.url(), body: Secret("grant_type=refresh_token"),
            limits: HTTPLimits(timeout: timeout, maxBody: maxBody), keepsPartialBody: keeping)
    }

    @Test func `after any byte of a body of known length gives what came, to who asks for it`() async {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        for count in 0...body.utf8.count {
            let part = String(body.prefix(count))
            let server = server(head + part)
            let expected =
                switch count {
                case 0: malformed
                case body.utf8.count: "200 “\(body)”"
                default: "200 “\(part)”, \(malformed)"
                }
            #expect(await outcome(client, request(server)) == expected)
            let plain = count == body.utf8.count ? "200 “\(body)”" : malformed
            #expect(await outcome(client, request(server, keeping: false)) == plain)
        }
    }

    @Test func `after any byte of head, chunks and trailers gives what came of the body`() async {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let (one, two) = (body.prefix(40), body.dropFirst(40))
        let chunks = [one, two].map { "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n" }
        // With the zero chunk a body is whole (RFC 9112 section 8), whatever becomes of the trailers.
        let whole = head + chunks.joined() + "0\r\n"
        let starts = [head.utf8.count + 4, head.utf8.count + chunks[0].utf8.count + 4]
        for count in 0..<whole.utf8.count {
            let server = server(String(decoding: whole.utf8.prefix(count), as: UTF8.self))
            let came = zip(starts, [one, two]).map { $1.prefix(max(0, count - $0)) }.joined()
            let result = await outcome(client, request(server))
            if came.isEmpty {
                let plain = await outcome(client, request(server, keeping: false))
                #expect(result == plain && !result.hasPrefix("200"), "\(count) bytes")
            } else {
                #expect(result == "200 “\(came)”, \(malformed)", "\(count) bytes")
            }
        }
        let complete = server(whole + "\r\n")
        #expect(await outcome(client, request(complete)) == "200 “\(body)”")
    }

    @Test func `by a reset gives what came`() async {
        let server = server("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n\(body)") { $0.reset() }
        #expect(await outcome(client, request(server)) == "200 “\(body)”, \(malformed)")
    }

    @Test func `by a chunk that is none gives what came`() async {
        let server = server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{\"\r\nzz\r\n")
        #expect(await outcome(client, request(server)) == "200 “{\"”, \(malformed)")
    }

    @Test func `by silence gives what came when the time is over`() async {
        let server = server("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n\(body)") { $0.waitUntilClosed() }
        let request = request(server, timeout: .milliseconds(300))
        #expect(await outcome(client, request) == "200 “\(body)”, \(timedOut)")
        var plain = request
        plain.keepsPartialBody = false
        #expect(await outcome(client, plain) == timedOut)
    }

    @Test(arguments: ["Content-Length: 5000000000", "Content-Length: 1001", "X-Length: none"])
    func `by growing too large gives as much as is allowed`(field: String) async {
        let text = String(repeating: "0123456789", count: 100) + "x"
        let server = server("HTTP/1.1 200 OK\r\n\(field)\r\n\r\n\(text)") { $0.waitUntilClosed() }
        let expected = "200 “\(text.dropLast())”, \(tooLarge)"
        #expect(await outcome(client, request(server, maxBody: 1_000)) == expected)
        #expect(await outcome(client, request(server, keeping: false, maxBody: 1_000)) == tooLarge)
    }

    @Test func `of exactly the size allowed does not break off`() async {
        let server = server("HTTP/1.1 200 OK\r\n\r\n\(body)")
        #expect(await outcome(client, request(server, maxBody: body.utf8.count)) == "200 “\(body)”")
    }

    @Test(arguments: ["302 Found", "400 Bad Request", "503 Service Unavailable"])
    func `is an error unless it is a success`(status: String) async {
        let server = server("HTTP/1.1 \(status)\r\nContent-Length: 99\r\n\r\n\(body)")
        #expect(await outcome(client, request(server)) == malformed)
    }

    @Test func `is not begun by an interim answer`() async {
        let server = server("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Le")
        #expect(!(await outcome(client, request(server))).hasPrefix("200"))
    }
}
