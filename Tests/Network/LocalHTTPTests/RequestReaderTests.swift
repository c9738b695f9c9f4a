import RingbackBase
import Testing

@testable import LocalHTTP

@Suite struct `The request reader` {
    private struct Outcome: Equatable {
        struct Request: Equatable {
            let method: String
            let target: String
            let fields: [String]
            let body: [UInt8]
            let keepsAlive: Bool
        }
        var requests: [Request] = []
        var continues = 0
        var refusal: Int?

        var word: String {
            if let refusal { return "\(refusal)" }
            return requests.isEmpty ? (continues > 0 ? "continue" : "incomplete") : "ok"
        }
    }

    private static func read(_ bytes: [UInt8], by size: Int, limits: ServerLimits = ServerLimits()) -> Outcome {
        var reader = RequestReader(limits: limits)
        var outcome = Outcome()
        for start in stride(from: 0, to: bytes.count, by: size) {
            reader.append(bytes[start..<min(start + size, bytes.count)])
            steps: while true {
                switch reader.next() {
                case .incomplete: break steps
                case .expectsContinue: outcome.continues += 1
                case .refusal(let status):
                    outcome.refusal = status
                    return outcome
                case .request(let head, let body):
                    outcome.requests.append(
                        .init(
                            method: head.method, target: head.target,
                            fields: head.fields.lines.map { "\($0.name): \($0.value)" },
                            body: body, keepsAlive: head.keepsAlive))
                }
            }
        }
        return outcome
    }

    @Test func `has its vectors`() {
        #expect(RequestVector.all.count > 90)
    }

    @Test(arguments: RequestVector.all, [false, true])
    func `takes a head as RFC 9112 writes it and no other way`(vector: RequestVector, isSingleRequest: Bool) {
        var limits = ServerLimits()
        limits.isSingleRequest = isSingleRequest
        let outcome = Self.read(vector.bytes, by: .max, limits: limits)
        #expect(outcome.word == vector.expectation(isSingleRequest: isSingleRequest))
        guard let first = outcome.requests.first else { return }
        #expect(outcome.requests.count == vector["requests"].flatMap { Int($0) } ?? 1)
        if let method = vector["method"] { #expect(first.method == method) }
        if let target = vector["target"] { #expect(first.target == target) }
        if let host = vector["host"] {
            #expect(first.fields.filter { $0.lowercased().hasPrefix("host:") } == ["Host: \(host)"])
        }
        #expect(first.body == Array((vector["body"] ?? "").utf8))
        if let keepsAlive = vector["keeps-alive"] { #expect(first.keepsAlive == (keepsAlive == "yes")) }
    }

    @Test(arguments: RequestVector.all, [1, 2, 3, 7])
    func `LB-20: makes nothing of where the pieces were cut`(vector: RequestVector, size: Int) {
        var pieces = Self.read(vector.bytes, by: size)
        var whole = Self.read(vector.bytes, by: .max)
        // Whether the body was there already when the head was is the one thing that may differ.
        if whole.word != "continue" { (pieces.continues, whole.continues) = (0, 0) }
        #expect(pieces == whole)
    }

    @Test func `gives names and values without the space around them`() {
        let outcome = Self.read(Array("GET / HTTP/1.1\r\nhost: \t a b \t\r\nX:\r\nx:y:z\r\n\r\n".utf8), by: .max)
        #expect(outcome.requests.first?.fields == ["host: a b", "X: ", "x: y:z"])
    }

    @Test func `takes 64 fields and 32 letters of method, and no more`() {
        func request(fields: Int, method: Int = 3) -> [UInt8] {
            let lines = (1..<fields).map { "X-\($0): y\r\n" }.joined()
            return Array("\(String(repeating: "M", count: method)) / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n".utf8)
        }
        #expect(Self.read(request(fields: 64), by: .max).word == "ok")
        #expect(Self.read(request(fields: 65), by: .max).word == "431")
        #expect(Self.read(request(fields: 2, method: 32), by: .max).word == "ok")
        #expect(Self.read(request(fields: 2, method: 33), by: .max).word == "400")
    }

    /// LB-17: a head of any length is never waited for.
    @Test(arguments: [1_000, 4_096, .max]) func `takes a head of the longest length, and no longer one`(size: Int) {
        var limits = ServerLimits()
        limits.maxHead = 2_000
        func request(length: Int) -> [UInt8] {
            let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
            return Array((start + String(repeating: "x", count: length - start.utf8.count - 4) + "\r\n\r\n").utf8)
        }
        #expect(Self.read(request(length: 2_000), by: size, limits: limits).word == "ok")
        #expect(Self.read(request(length: 2_001), by: size, limits: limits).word == "431")
        let line = Array("GET /".utf8) + [UInt8](repeating: 0x78, count: 1_000_000)
        #expect(Self.read(line, by: size, limits: limits).word == "431")
        // A body that comes along is not part of the head.
        let post =
            Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n".utf8)
            + [UInt8](repeating: 1, count: 5_000)
        #expect(Self.read(post, by: size, limits: limits).word == "ok")
    }

    @Test func `takes a body of the largest size, and no larger one`() {
        func request(_ length: Int) -> [UInt8] {
            Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n".utf8)
                + [UInt8](repeating: 7, count: length)
        }
        let outcome = Self.read(request(65_536), by: 4_096)
        #expect(outcome.requests.first?.body.count == 65_536)
        #expect(Self.read(request(65_537), by: 4_096).word == "413")
    }

    @Test func `keeps no more than what waits`() throws {
        var reader = RequestReader(limits: ServerLimits())
        let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        // There is always a part of the next request behind a whole one.
        reader.append(request.prefix(5))
        for _ in 0..<2_000 {
            reader.append(request.dropFirst(5) + request.prefix(5))
            guard case .request = reader.next() else { throw Unexpected("no request") }
            #expect(reader.waitingBytes == 5)
        }
        #expect(reader.capacity < 64 * 1_024)
    }

    @Test func `knows how far a request has come`() throws {
        var reader = RequestReader(limits: ServerLimits())
        #expect(reader.stage == .none)
        reader.append(Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n".utf8))
        _ = reader.next()
        #expect(reader.stage == .head)
        reader.append(Array("\r\nx".utf8))
        _ = reader.next()
        #expect(reader.stage == .body)
        reader.append(Array("y".utf8))
        guard case .request = reader.next() else { throw Unexpected("no request") }
        #expect(reader.stage == .none)
        #expect(reader.waitingBytes == 0)
    }

    /// A buffer serves one connection after another.
    @Test(arguments: [1, 2, 7, 1_000])
    func `nothing of a request is left in the memory that it was received in`(pieces: Int) throws {
        let secret = "refresh-token-of-a-request"
        let body = #"{"refresh_token":"\#(secret)"}"#
        let text = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        let bytes = Array(text.utf8)
        let size = (bytes.count + pieces - 1) / pieces
        var reader = RequestReader(limits: ServerLimits())
        var spare: ReceiveBuffer? = ReceiveBuffer()
        var taken: [UInt8]?
        for start in stride(from: 0, to: bytes.count, by: size) {
            reader.append(bytes[start..<min(start + size, bytes.count)], spare: &spare)
            if case .request(_, let body) = reader.next() { taken = body }
        }
        #expect(taken == Array(body.utf8))
        #expect(reader.waitingBytes == 0)
        reader.release(to: &spare)
        #expect(reader.capacity == 0)
        let isErased = spare.take()?.isErased
        #expect(isErased == true)
    }

    @Test func `nothing is left where bytes were before they were moved`() {
        var buffer = ReceiveBuffer()
        func fill(_ most: Int) {
            _ = unsafe buffer.receive { room in
                let count = min(most, room.count)
                unsafe room.prefix(count).copyBytes(from: repeatElement(0x78, count: count))
                return count
            }
        }
        // To the front, over a part of themselves or not, and into larger memory.
        for consumed in [4_000, 2_100, 1_000, 10] {
            while buffer.count < 4_000 { fill(4_000) }
            buffer.consume(consumed)
            fill(50)
            #expect(buffer.isErased == true)
        }
        #expect(buffer.capacity > 4_096)
        buffer.consume(buffer.count)
        #expect(buffer.count == 0)
        #expect(buffer.isErased == true)
    }

    @Test func `takes a head that it knows for what it was`() throws {
        let cache = HeadCache()
        let known = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
        for text in [known, known + known, "GET /b HTTP/1.1\r\nHost: a\r\n\r\n" + known, known + "GET"] {
            var with = RequestReader(limits: ServerLimits(), cache: cache)
            var without = RequestReader(limits: ServerLimits())
            with.append(Array(text.utf8))
            without.append(Array(text.utf8))
            while case .request(let head, _) = without.next() {
                guard case .request(let found, _) = with.next() else { throw Unexpected("no request") }
                cache.keep()
                #expect(found.path == head.path)
                #expect(found.fields.lines.map(\.value) == head.fields.lines.map(\.value))
            }
            #expect(with.waitingBytes == without.waitingBytes)
        }
    }

    @Test func `replaces the oldest of sixteen heads by the next one`() throws {
        let cache = HeadCache()
        let heads = (0...16).map { Array("GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n".utf8) }
        for head in heads {
            var reader = RequestReader(limits: ServerLimits(), cache: cache)
            reader.append(head)
            guard case .request = reader.next() else { throw Unexpected("no request") }
            cache.keep()
        }
        #expect(heads.map { cache.find($0.span)?.head.path } == [nil] + (1...16).map { "/\($0)" })
    }

    /// A cached head stays in memory.
    @Test(arguments: [
        "POST /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?token=x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    ])
    func `does not keep a head that may hold a secret`(text: String) throws {
        let cache = HeadCache()
        var reader = RequestReader(limits: ServerLimits(), cache: cache)
        reader.append(Array(text.utf8))
        guard case .request = reader.next() else { throw Unexpected("no request") }
        cache.keep()
        let bytes = Array(text.utf8)
        #expect(cache.find(bytes.span) == nil)
    }
}

extension RequestReader {
    fileprivate mutating func append(_ bytes: some Sequence<UInt8>) {
        var spare: ReceiveBuffer?
        append(bytes, spare: &spare)
    }

    fileprivate mutating func append(_ bytes: some Sequence<UInt8>, spare: inout ReceiveBuffer?) {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let (count, _) = unsafe receive(spare: &spare) { room in
                unsafe room.copyBytes(from: rest.prefix(room.count))
                return min(room.count, rest.count)
            }
            rest = rest.dropFirst(count)
        }
    }
}
