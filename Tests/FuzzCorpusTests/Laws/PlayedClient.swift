import Glibc
import RingbackBase

@testable import LocalHTTP

/// One client of ``ConnectionLaw``, and the model of what it must get: the responses to its requests in order, then perhaps
/// one error response.
final class PlayedClient {
    static let refusalBody = Array("refused".utf8)
    /// No deadline of the server's is shorter, in nanoseconds.
    private static let shortestDeadline: Int64 = 2_000_000_000

    private let socket: Int32
    /// How long something has been unfinished: a request that is not sent as a whole, or a response that is not read.
    /// In nanoseconds.
    private var elapsed: Int64 = 0
    /// The server was shutting down while a request of it may have come.
    var mayBeRefused = false
    /// It may have given way to another connection, or the server has ended.
    var mayBeCut = false
    private var script: [UInt8] = []
    private var sent = 0
    private var count = 0
    private var responses: [UInt8] = []
    /// After how many bytes of the script each request is complete, and after how many bytes its response.
    private var complete: [(at: Int, answered: Int)] = []
    /// How many bytes of the responses were received, and what came after that.
    private var matched = 0
    private var rest: [UInt8] = []
    private var hasEndedSending = false
    /// The last request is answered by a stream.
    private var hasStream = false
    /// After how many bytes of the script comes something that is no HTTP.
    private var nonsenseAt: Int?
    private var isOver = false
    private var isClosed = false

    init(_ socket: Int32) {
        self.socket = socket
    }

    deinit { leave() }

    /// The response to a path: the same for every way of answering, different for each request.
    static func response(to path: String) -> ServerResponse {
        let parts = path.split(separator: "/")
        let number = parts.first.flatMap { Int($0) } ?? 0
        let size = parts.dropFirst().first == "large" ? 9_000 : 20
        let start = number % 251
        return ServerResponse(status: 200, body: Array(pattern[start..<(start + size)]))
    }

    /// The response to a path that ends with `/stream`. The connection ends after it.
    static let pieces = [1, 700, 9_000].map { Array(pattern[7..<(7 + $0)]) }
    private static let pattern = (0..<9_251).map { UInt8(truncatingIfNeeded: $0 % 251) }

    private func addRequest() {
        guard !hasStream else { return }
        let size = count % 5 == 3 ? "large" : "small"
        hasStream = count % 13 == 12
        let way = hasStream ? "stream" : count % 3 == 1 ? "later" : "now"
        let path = "/\(count)/\(size)/\(way)"
        let isHead = count % 7 == 5
        let request =
            count % 4 == 2
            ? "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nno secret"
            : "\(isHead ? "HEAD" : "GET") \(path) HTTP/1.1\r\nHost: a\r\n\r\n"
        script += Array(request.utf8)
        if hasStream {
            responses += Array("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".utf8)
            for piece in PlayedClient.pieces { responses += piece }
        } else if case .bytes(let body) = PlayedClient.response(to: path).body {
            responses += Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
            if !isHead || count % 4 == 2 { responses += body }
        }
        complete.append((script.count, responses.count))
        count += 1
    }

    /// Time passes. No deadline runs while nothing is unfinished.
    func pass(_ time: Int64) {
        let isQuiet =
            nonsenseAt == nil && rest.isEmpty && matched == expected
            && (sent == 0 || complete.contains { $0.at == sent })
        elapsed = isQuiet ? 0 : elapsed + time
    }

    /// Sends up to the end of the request that is begun, and more whole requests.
    func send(pieces: Int) {
        guard nonsenseAt == nil else { return }
        for _ in 0..<pieces where script.count - sent < 4_096 { addRequest() }
        push(script.count - sent)
    }

    func send(bytes: Int) {
        while nonsenseAt == nil, !hasStream, script.count - sent < bytes { addRequest() }
        push(bytes)
    }

    /// Sends what no server understands, where a request would begin.
    func sendNonsense() {
        guard nonsenseAt == nil, !hasStream, sent == script.count else { return }
        nonsenseAt = sent
        script += Array("\u{1}\r\n\r\n".utf8)
        push(script.count - sent)
    }

    private func push(_ most: Int) {
        guard !hasEndedSending, !isClosed else { return }
        let bytes = script[sent..<min(sent + most, script.count)]
        guard !bytes.isEmpty else { return }
        let accepted = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if accepted > 0 { sent += accepted }
    }

    func endSending() {
        guard !hasEndedSending, !isClosed else { return }
        hasEndedSending = true
        shutdown(socket, Int32(SHUT_WR))
    }

    func leave() {
        guard !isClosed else { return }
        isClosed = true
        close(socket)
    }

    @discardableResult
    func read(atMost most: Int) throws -> Int {
        guard !isOver, !isClosed else { return 0 }
        var buffer = [UInt8](repeating: 0, count: min(most, 65_536))
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, $0.count, 0) }
        if count == 0 || (count < 0 && errno != EAGAIN) { isOver = true }
        guard count > 0 else { return 0 }
        try compare(buffer[..<count])
        return count
    }

    /// The length of the responses to the requests that are sent as a whole.
    private var expected: Int {
        complete.last { $0.at <= sent }?.answered ?? 0
    }

    private static func refusal(_ status: String) -> [UInt8] {
        Array("HTTP/1.1 \(status)\r\nContent-Length: 7\r\nConnection: close\r\n\r\n".utf8) + refusalBody
    }

    private func compare(_ bytes: ArraySlice<UInt8>) throws {
        let most = min(bytes.count, expected - matched)
        if rest.isEmpty {
            let same =
                PlayedClient.isSame(bytes.prefix(most), responses[matched..<(matched + most)])
                ? most : zip(bytes.prefix(most), responses[matched...]).prefix { $0.0 == $0.1 }.count
            matched += same
            rest += bytes.dropFirst(same)
        } else {
            rest += bytes
        }
        if rest.isEmpty { return }
        // Behind a response may come the refusal of a request. They begin alike.
        let begins = [0] + complete.map(\.answered)
        let isRefused = ["400 Bad Request", "408 Request Timeout", PlayedClient.unavailable].contains { status in
            mayBeRefused(status)
                && begins.contains { begin in
                    begin <= matched
                        && PlayedClient.refusal(status).starts(with: responses[begin..<matched] + rest)
                }
        }
        try hold("a client gets the responses to its requests, in order", isRefused)
    }

    private static func isSame(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
        unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                guard let one = left.baseAddress, let other = right.baseAddress else {
                    return left.count == right.count
                }
                return unsafe left.count == right.count && memcmp(one, other, left.count) == 0
            }
        }
    }

    private func mayBeRefused(_ status: String) -> Bool {
        switch status.prefix(3) {
        case "400": nonsenseAt != nil
        case "503": mayBeRefused
        default: elapsed >= PlayedClient.shortestDeadline
        }
    }

    private static let unavailable = "503 Service Unavailable"

    private var hasEndedEarly: Bool { isOver && (mayBeCut || mayBeRefused) }

    private func isRefused(_ status: String) -> Bool {
        matched >= expected && responses[expected..<matched] + rest == PlayedClient.refusal(status)[...]
    }

    func checkComplete() throws {
        if isOver, mayBeCut, elapsed < PlayedClient.shortestDeadline, !hasEndedSending, rest.isEmpty, !hasStream {
            let ends = [0] + complete.map(\.answered)
            try hold("a response that is begun is sent to its end", ends.contains(matched))
        }
        guard !hasEndedSending, !hasEndedEarly, elapsed < PlayedClient.shortestDeadline else { return }
        if nonsenseAt != nil, sent == script.count {
            try hold("what is no HTTP is refused", isRefused("400 Bad Request"))
            try hold("and its connection ends", isOver)
        } else if nonsenseAt == nil {
            try hold("every request is answered", matched == expected && rest.isEmpty)
            try hold("a connection stays open but after a stream", isOver == (hasStream && sent == script.count))
        }
    }

    /// More time has passed than any deadline allows.
    func checkAfterDeadlines() throws {
        if hasEndedEarly || hasStream { return }
        if hasEndedSending {
            try hold("a client that sends no more is let go", isOver)
        } else if nonsenseAt == nil, !complete.contains(where: { $0.at == sent }), sent > 0 {
            try hold("a request that does not become complete is not waited for", isOver)
        } else if nonsenseAt == nil, elapsed - 8_000_000_000 < PlayedClient.shortestDeadline {
            try hold("an idle connection stays open", !isOver)
        }
    }
}
