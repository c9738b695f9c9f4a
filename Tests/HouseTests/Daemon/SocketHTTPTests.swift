import RingbackBase
import Testing

@Suite struct `The socket's HTTP` {
    @Test func `answers requests that come ahead in their order, over one connection`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let connection = try stage.connect()
            let paths = [
                "/v1/accounts/work/session", "/v1/nothing", "/v1/status", "/v1/accounts/none", "/v1/peer",
                "/v1/accounts/work/session?include=user", "/v1/accounts/home/session",
            ]
            let body = "{\"force\":true}"
            let round = paths.map { Stage.request("GET", $0) }.joined()
            // A slow one in the middle holds back those behind it, and only those.
            await connection.send(round + Stage.request("POST", "/v1/accounts/work/refresh", body) + round)
            let expected = [200, 404, 200, 404, 200, 200, 401]
            for status in expected + [200] + expected {
                #expect(try await connection.answer().status == status)
            }
            // Byte by byte is as good as at once.
            for byte in Array(Stage.request("POST", "/v1/accounts/work/refresh", "{}").utf8) {
                await connection.send([byte])
            }
            #expect(try await connection.answer()["name"]?.string == "work")
        }
    }

    @Test func `serves HTTP/1.0, and closes when asked`() async throws {
        try await Stage.play { stage in
            for request in [
                "GET /v1/status HTTP/1.0\r\n\r\n", "GET /v1/status HTTP/1.0\r\nHost: ringback\r\n\r\n",
                Stage.request("GET", "/v1/status", fields: [("Connection", "close")]),
                Stage.request("GET", "/v1/status", fields: [("Connection", "x, Close")]),
            ] {
                let connection = try stage.connect()
                await connection.send(request)
                let answer = try await connection.answer()
                #expect(answer.status == 200 && answer.fields["connection"] == "close", "\(answer)")
                #expect(try await connection.readToEnd() == "")
            }
            // Without a request in between, a connection is kept.
            let kept = try stage.connect()
            for _ in 0..<3 {
                await kept.send(Stage.request("GET", "/v1/status"))
                let answer = try await kept.answer()
                #expect(answer.status == 200 && answer.fields["connection"] != "close", "\(answer)")
            }
        }
    }

    @Test func `refuses what others read in two ways, and reads nothing behind it`() async throws {
        try await Stage.play { stage in
            let hidden = Stage.request("POST", "/v1/accounts/work/sign-in", "{}")
            let chunk = "5\r\nhello\r\n0\r\n\r\n"
            let broken: [(String, Int, String)] = [
                ("chunked", 400, "Transfer-Encoding: chunked\r\n\r\n" + chunk),
                ("TE.CL", 400, "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
                ("CL.TE", 400, "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"),
                ("TE in disguise", 400, "Transfer-Encoding: xchunked\r\n\r\n" + chunk),
                ("TE with a space", 400, "Transfer-Encoding : chunked\r\n\r\n" + chunk),
                ("TE folded", 400, "X: y\r\n Transfer-Encoding: chunked\r\n\r\n" + chunk),
                ("two lengths", 400, "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"),
                ("a list of lengths", 400, "Content-Length: 2, 2\r\n\r\n{}"),
                ("a negative length", 400, "Content-Length: -2\r\n\r\n{}"),
                ("a hexadecimal length", 400, "Content-Length: 0x2\r\n\r\n{}"),
                ("an empty length", 400, "Content-Length: \r\n\r\n{}"),
                ("a length beyond numbers", 400, "Content-Length: 18446744073709551618\r\n\r\n{}"),
                ("two Hosts", 400, "Host: ringback\r\n\r\n"),
                ("a field without a colon", 400, "Nonsense\r\n\r\n"), ("NUL", 400, "X: a\0b\r\n\r\n"),
                ("a bare CR", 400, "X: a\rb\r\n\r\n"), ("a bare LF", 400, "X: a\n\r\n"),
                ("an unknown expectation", 400, "Expect: something\r\n\r\n"),
                ("65 fields", 431, String(repeating: "X: y\r\n", count: 65) + "\r\n"),
                ("17 KiB of fields", 431, "X: \(String(repeating: "y", count: 17_408))\r\n\r\n"),
            ]
            for (name, status, rest) in broken {
                let connection = try stage.connect()
                await connection.send("POST /v1/reload HTTP/1.1\r\nHost: ringback\r\n" + rest + hidden)
                let answer = try await connection.answer()
                #expect(answer.status == status && answer.isProblem, "\(name): \(answer)")
                #expect(answer["status"]?.integer == status && answer.fields["connection"] == "close", "\(name)")
                #expect(try await connection.readToEnd() == "", "\(name)")
            }
            let lines: [(String, Int)] = [
                ("GET /v1/status HTTP/2.0\r\nHost: x\r\n\r\n", 505),
                ("GET /v1/status HTTP/1.2\r\nHost: x\r\n\r\n", 505),
                ("GET /v1/status\r\n\r\n", 400), ("GET  /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", 400),
                ("CONNECT ringback:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("GET /v1/status HTTP/1.1\r\n\r\n", 400),
                ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\u{1}\u{0}", 400),
                ("GET /v1/\u{e9}tat HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("{\"json\":1}\r\n\r\n", 400),
            ]
            for (line, status) in lines {
                let answer = try await stage.raw(line)
                #expect(answer.status == status && answer.isProblem, "\(line): \(answer)")
            }
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            #expect(try await stage.api("GET", "/v1/status").status == 200)
        }
    }

    @Test func `gives a request five seconds, and tells who may send its body`() async throws {
        try await Stage.play { stage in
            let slow = try stage.connect()
            await slow.send("GET /v1/status HTTP/1.1\r\nHost: ring")
            let polite = try stage.connect()
            await polite.send(
                "POST /v1/accounts/work/refresh HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
                    + "Content-Type: application/json\r\n\r\n")
            #expect(try await polite.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 100 "))
            await polite.send("{}")
            #expect(try await polite.answer().status == 401)
            let answer = try await slow.answer()
            #expect(answer.status == 408 && answer.isProblem, "\(answer)")
            #expect(try await slow.readToEnd() == "")
        }
    }

    @Test func `serves two hundred connections at once`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let connections = try (0..<200).map { _ in try stage.connect() }
            await Connection.send("GET /v1/accounts/work/ses", to: connections)
            #expect(try await stage.token() != nil)
            await Connection.send("sion HTTP/1.1\r\nHost: x\r\n\r\n", to: connections)
            for connection in connections { #expect(try await connection.answer().status == 200) }
        }
    }
}
