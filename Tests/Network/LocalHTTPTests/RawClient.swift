import FoundationEssentials
import Glibc
import TestSupport

/// An HTTP client at the level of bytes. Every wait has a bound.
final class RawClient: Sendable {
    struct Answer: Equatable {
        var status: Int
        var head: [String]
        var body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }
        var isLast: Bool { head.contains("Connection: close") }
    }

    let descriptor: Int32

    convenience init(_ place: ServerPlace) throws { self.init(descriptor: try place.connect()) }

    init(descriptor: Int32) {
        self.descriptor = descriptor
        var bound = timeval(tv_sec: 60, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { Glibc.close(descriptor) }

    /// Resets the TCP connection, and returns when the kernel has no connection with this client's port any more.
    func reset() {
        let port = String(port, radix: 16, uppercase: true)
        let suffix = ":" + String(repeating: "0", count: 4 - port.count) + port
        var nothing = sockaddr()
        nothing.sa_family = sa_family_t(AF_UNSPEC)
        unsafe Glibc.connect(descriptor, &nothing, socklen_t(MemoryLayout<sockaddr>.size))
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end, RawClient.isEstablished(suffix) { sched_yield() }
    }

    /// True if `/proc/net/tcp` has an established connection to a remote port, given as `:` and four hexadecimal digits.
    private static func isEstablished(_ port: String) -> Bool {
        guard let table = try? String(contentsOfFile: "/proc/net/tcp", encoding: .utf8) else { return false }
        return table.split(separator: "\n").dropFirst().contains { line in
            let fields = line.split(separator: " ")
            return fields.count > 3 && fields[2].hasSuffix(port) && fields[3] == "01"
        }
    }

    static func waitUntilRefused(_ place: ServerPlace) async throws {
        try await onThread {
            let clock = ContinuousClock()
            let end = clock.now + .seconds(60)
            while (try? RawClient(place)) != nil {
                guard clock.now < end else { throw SystemError(call: "still listening", code: ETIMEDOUT) }
                sched_yield()
            }
        }
    }

    var port: Int { localPort(of: descriptor) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool { sendAll(bytes, to: descriptor) }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    func get(_ target: String, _ fields: String = "") { send("GET \(target) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n") }

    /// What is there, at least a byte; empty at the end of the connection.
    func receive(atMost count: Int = 65_536) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let received = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, count, 0) }
        // A reset is an end like any other.
        if received < 0, errno != ECONNRESET { throw SystemError(call: "recv", code: errno) }
        return Array(buffer.prefix(max(0, received)))
    }

    func readToEnd() throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let piece = try receive()
            guard !piece.isEmpty else { return all }
            all += piece
        }
    }

    func answer(toHead: Bool = false) throws -> Answer {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            let byte = try receive(atMost: 1)
            guard !byte.isEmpty else {
                throw SystemError(call: "answer ends early: \(String(decoding: head, as: UTF8.self))", code: 0)
            }
            head += byte
        }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n").map(String.init)
        let length = lines.lazy.filter { $0.hasPrefix("Content-Length: ") }.first.flatMap { Int($0.dropFirst(16)) }
        let status = lines.first.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") }
        var body: [UInt8] = []
        while !toHead, let length, body.count < length {
            let piece = try receive(atMost: length - body.count)
            guard !piece.isEmpty else { throw SystemError(call: "body ends early", code: 0) }
            body += piece
        }
        return Answer(status: status ?? 0, head: lines, body: body)
    }

    /// Sends the piece again and again until neither the server nor the kernel takes more; false if the server has closed.
    @discardableResult
    func sendUntilFull(_ piece: [UInt8]) -> Bool {
        while true {
            let sent = unsafe piece.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if sent < 0, errno != EAGAIN { return false }
            if sent < piece.count, !hasEvent(POLLOUT, on: descriptor, within: 300) { return true }
        }
    }

    /// Returns when the server has closed the connection, whatever is still to be read.
    func waitForEnd() throws {
        guard hasEvent(0, on: descriptor, within: 60_000) else { throw SystemError(call: "poll", code: ETIMEDOUT) }
    }

    func hasAnswer(within milliseconds: Int32) -> Bool { hasEvent(POLLIN, on: descriptor, within: milliseconds) }

    /// Says that no more will come; the other way stays open.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Gone, and whoever sends to us is told so.
    func leave() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
