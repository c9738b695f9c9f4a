import RingbackAPI
import RingbackBase
import Testing

@testable import RingbackClient

private struct Reading: Equatable {
    var status: Int?
    var body: [UInt8] = []
    var failure: RingbackError.Kind?
    var isWhole = false

    init(_ text: String, cutInto size: Int = .max) {
        var reader = HTTPResponseReader()
        var rest = Array(text.utf8)[...]
        do throws(RingbackError) {
            while !isWhole {
                switch try reader.next() {
                case .head(let head): status = head.status
                case .piece(let piece): body += piece
                case .end: isWhole = true
                case .needsMore where rest.isEmpty: reader.close()
                case .needsMore:
                    reader.append(Array(rest.prefix(size)))
                    rest = rest.dropFirst(size)
                }
            }
        } catch {
            failure = error.kind
        }
    }

    var text: String { String(decoding: body, as: UTF8.self) }
}

private func chunked(_ chunks: String, version: String = "1.1") -> String {
    "HTTP/\(version) 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)"
}

private func answer(_ fields: String, _ body: String = "hello") -> String { "HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)" }

@Suite struct `The reader of answers` {
    @Test(arguments: [
        chunked("5\r\nhello\r\n0\r\n\r\n"), chunked("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        chunked("0000005\r\nhello\r\n000\r\n\r\n"), chunked("5;a=b\r\nhello\r\n0;c\r\nT: x\r\nU: y\r\n\r\n"),
        chunked("5;\tname=\"a b\"\r\nhello\r\n0\r\n\r\n"), answer("Content-Length: 5\r\n"),
        answer("content-length:\t5 \t\r\nX:\r\n"), answer("Content-Length: 5\r\nContent-Length: 5\r\n"),
        answer("Content-Length: 00005\r\n"), answer("Content-Length: 5\r\n", "hello and more"), answer(""),
        "HTTP/1.0 200 OK\r\n\r\nhello", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nA: b\r\n\r\n" + answer("Content-Length: 5\r\n"),
        answer("Transfer-Encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ]) func `a body is its bytes, however they were cut`(text: String) {
        for size in [1, 2, 3, 7, 1_000] {
            let reading = Reading(text, cutInto: size)
            #expect(reading.status == 200)
            #expect(reading.text == "hello")
            #expect(reading.isWhole)
            #expect(reading.failure == nil)
        }
    }

    @Test func `a chunk has at most 256 MiB, and is given as it comes`() {
        let reading = Reading(chunked("fFfffff\r\nhe"))
        #expect(reading.text == "he")
        #expect(reading.failure == .badResponse)
    }

    /// One word for one size: what Int would read in another way, other readers do too.
    @Test(arguments: [
        "+5", "-5", "-0", "0x5", "5h", " 5", "5 ", "\t5", "5 ;a", "", ";a=b", "00000005", "80000000",
        "FFFFFFFFFFFFFFFF5",
        "10000000000000005", "５", "5\u{301}", "5\0", "5;\u{0}", "5;\u{7F}", "5.0", "5e0", "0_5", "5,5", "5\r", "zz",
    ]) func `a chunk's size is one to seven hexadecimal digits`(size: String) {
        for size in [size, "1\r\nh\r\n\(size)"] {
            let reading = Reading(chunked("\(size)\r\nhello\r\n0\r\n\r\n"))
            #expect(reading.failure == .badResponse, "\(size)")
            #expect(!reading.isWhole)
        }
    }

    @Test(arguments: [
        "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello!\r\n0\r\n\r\n", "5\r\nhell\r\n0\r\n\r\n", "5\r\nhello", "5\r\nhello\r\n", "5\r\nhello\r\n0\r\n",
        "5\r\nhello\r\n0\r\nT: a\u{0}\r\n\r\n", "5\r\nhello\r\n0\r\nT: a\nb\r\n\r\n", "5\r\n", "5", "\r\n",
    ]) func `chunks have their line breaks and their end`(chunks: String) {
        #expect(Reading(chunked(chunks)).failure == .badResponse)
    }

    @Test func `a line between chunks and the trailers have an end`() {
        let longest = String(repeating: "x", count: HTTPResponseReader.maxLine - 2)
        #expect(Reading(chunked("5;\(longest)\r\nhello\r\n0\r\n\r\n")).isWhole)
        let trailers = String(repeating: "T: x\r\n", count: HTTPResponseReader.maxTrailers)
        #expect(Reading(chunked("5\r\nhello\r\n0\r\n\(trailers)\r\n")).isWhole)
        for size in [1, 1_000_000] {
            #expect(Reading(chunked("5;\(longest)x\r\nhello\r\n0\r\n\r\n"), cutInto: size).failure == .badResponse)
            let long = chunked("5\r\nhello\r\n0\r\n\(trailers)T: x\r\n\r\n")
            #expect(Reading(long, cutInto: size).failure == .badResponse)
        }
    }

    @Test(arguments: [
        "Content-Length: +5\r\n", "Content-Length: -5\r\n", "Content-Length: 5,5\r\n", "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n", "Content-Length:\r\n", "Content-Length: ５\r\n", "Content-Length: 5\u{301}\r\n",
        "Content-Length: 99999999999999999999\r\n", "Content-Length: 5\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: +4\r\n", "Content-Length: 5\r\nContent-Length: 05\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding:\r\n", "Transfer-Encoding: chun\u{212A}ed\r\n",
        "Transfer-Encoding: \u{0B}chunked\r\n",
    ]) func `a body has one end, and one word for it`(fields: String) {
        let reading = Reading(answer(fields, "5\r\nhello\r\n0\r\n\r\n"))
        #expect(reading.failure == .badResponse)
        #expect(reading.status == nil)
    }

    @Test(arguments: [
        "A: b\nC: d\r\n", "A: b\rC: d\r\n", "A: b\r\r\n", "A: \u{0}\r\n", "A: \u{7F}\r\n", "A : b\r\n", " A: b\r\n",
        "A: b\r\n c\r\n", "A: b\r\n\tc\r\n", "A\r\n", ": b\r\n", "A\u{301}: b\r\n", "A b: c\r\n",
        "Content-Length : 5\r\n",
        "A\u{3A}\u{301}b\nC: d\r\n", "\n",
    ]) func `a field is a name, a colon and one line`(fields: String) {
        #expect(Reading(answer(fields)).failure == .badResponse)
    }

    @Test func `a colon with an accent on it is a colon`() throws {
        let head = try HTTPExchange.Head(parsing: Array("HTTP/1.1 200 OK\r\nA:\u{301}b\r\nB: \u{301}".utf8)[...])
        #expect(head.field("a") == "\u{301}b")
        #expect(head.field("b") == "\u{301}")
    }

    @Test(arguments: [
        "HTTP/1.1 2O0 OK", "HTTP/1.1 +20 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 099 OK", "HTTP/1.2 200 OK", "HTTP/1. 200 OK", "HTTP/1.10 200 OK", "HTTP/2 200 OK", "HTTP/ 1.1 200 OK",
        "http/1.1 200 OK", " HTTP/1.1 200 OK", "HTTP/1.1 200\tOK", "HTTP/1.1 200 O\u{0}K", "HTTP/1.1 ２00 OK", "",
        "\r\n",
        "SSH-2.0-OpenSSH_9.2",
    ]) func `a status line is HTTP/1 and three digits`(line: String) {
        #expect(Reading("\(line)\r\nContent-Length: 5\r\n\r\nhello").failure == .badResponse)
    }

    @Test func `chunks are of HTTP/1.1 alone`() {
        #expect(Reading(chunked("5\r\nhello\r\n0\r\n\r\n", version: "1.0")).failure == .badResponse)
    }

    @Test(arguments: [204, 304]) func `some answers have no body, whatever their fields say`(status: Int) {
        let reading = Reading("HTTP/1.1 \(status) X\r\nContent-Length: 5\r\n\r\nhello")
        #expect(reading.status == status)
        #expect(reading.isWhole)
        #expect(reading.body.isEmpty)
    }

    @Test func `an answer cut off anywhere is not whole`() {
        for whole in [chunked("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), answer("Content-Length: 5\r\n")] {
            for count in 0..<whole.utf8.count {
                let reading = Reading(String(decoding: whole.utf8.prefix(count), as: UTF8.self))
                #expect(reading.failure == (count == 0 ? .noDaemon : .badResponse))
                #expect("hello".hasPrefix(reading.text))
            }
        }
    }

    @Test func `a head has an end`() {
        let start = "HTTP/1.1 200 OK\r\nA: "
        let longest = start + String(repeating: "x", count: HTTPResponseReader.maxHead - start.utf8.count)
        #expect(Reading(longest + "\r\n\r\nhello").isWhole)
        for size in [1, 1_000_000] {
            #expect(Reading(longest + "x\r\n\r\nhello", cutInto: size).failure == .badResponse)
        }
    }
}

@Suite struct `Request target` {
    @Test(arguments: ["work", "a", "0", "org.swisscoin.app", "a-b_c.d", String(repeating: "a", count: 64)])
    func `an account's name is taken as it is`(name: String) throws {
        #expect(try RequestTarget.of(.getSession, [name]) == "/v1/accounts/\(name)/session")
    }

    @Test(arguments: [
        "", "Work", "-a", ".a", "a/b", "a b", "a?b", "../status", "é", "a\n", String(repeating: "a", count: 65),
    ])
    func `what no account can be called is refused before it is sent`(name: String) {
        #expect(kind { () throws(RingbackError) in try RequestTarget.of(.getAccount, [name]) } == .accountNotFound)
    }

    @Test func `a value in a path cannot become another path`() throws {
        let target = try RequestTarget.of(.removeFactor, ["work", "../x?y"], query: [("a", "b")])
        #expect(target == "/v1/accounts/work/factors/..%2Fx%3Fy?a=b")
        #expect(kind { () throws(RingbackError) in try RequestTarget.of(.getAccount) } == .accountNotFound)
        for endpoint in Endpoint.allCases {
            let values = endpoint.parameters.map { "v-\($0)" }
            let path = try RequestTarget.of(endpoint, values)
            #expect(values.allSatisfy(path.contains) && !path.contains("{"), "\(endpoint)")
        }
    }

    @Test func `a value cannot become another parameter`() throws {
        let target = try RequestTarget.of(
            .streamEvents, query: [("scope", "a b&c=d"), ("x", nil), ("y", "é+~-._%"), ("z", "\n")])
        #expect(target == "/v1/events?scope=a%20b%26c%3Dd&y=%C3%A9%2B~-._%25&z=%0A")
        #expect(try RequestTarget.of(.streamEvents, query: [("x", nil)]) == "/v1/events")
    }
}

@Suite struct `A kept connection to the daemon` {
    private func next(_ connection: KeptConnection) throws(RingbackError) -> KeptConnection.Response {
        while true { if let response = try connection.next() { return response } }
    }

    @Test func `brings the responses in order, and says when it has ended`() throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
        let daemon = try FakeDaemon { _ in .bytes("\(head){\"a\":1}HTTP/1.1 204 No\r\n\r\n\(head){\"a\":2}") }
        let calls = BrokerCalls(socket: daemon.path, application: "test")
        let connection = try KeptConnection(calls)
        #expect(!connection.hasServed)
        #expect(connection.send(try calls.request(.getSession, ["work"])))
        #expect(try BrokerCalls.json(next(connection))["a"] == 1)
        #expect(connection.hasServed && connection.isKept)
        #expect(try next(connection).body.isEmpty)
        #expect(try BrokerCalls.json(next(connection))["a"] == 2)
        #expect(kind { () throws(RingbackError) in try next(connection) } == .noDaemon)
        #expect(!connection.isKept)
        #expect(daemon.requests.first?.hasPrefix("GET /v1/accounts/work/session HTTP/1.1\r\n") == true)
    }

    @Test func `is not kept when the daemon closes it`() throws {
        let daemon = try FakeDaemon { _ in
            .hold("HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        }
        let calls = BrokerCalls(socket: daemon.path, application: "test")
        let connection = try KeptConnection(calls)
        #expect(connection.send(try calls.request(.getMCPServer, ["work"])))
        #expect(kind { () throws(RingbackError) in try BrokerCalls.json(next(connection)) } != nil)
        #expect(connection.hasServed && !connection.isKept)
    }
}
