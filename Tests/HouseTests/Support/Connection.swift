// A plain socket: what is sent is what the test says, byte for byte, so that wrong requests are possible too.

import Glibc
import TestSupport

/// One connection. Its methods block up to their bound: they run on threads of their own.
final class Connection: Sendable {
    private let descriptor: Int32
    /// What was read beyond the last answer.
    private let rest = Watched<[UInt8]>([])

    /// - Throws: ``SystemError`` with `ECONNREFUSED` and the like.
    init(to place: ServerPlace) throws(SystemError) { descriptor = try place.connect() }

    /// Connects in the first instant in which somebody listens there.
    static func first(to place: ServerPlace, within bound: Duration = Bound.usual) async throws -> Connection {
        let end = ContinuousClock.now + bound
        return try await onThread {
            while ContinuousClock.now < end {
                if let connection = try? Connection(to: place) { return connection }
                sched_yield()
            }
            throw Late(what: "somebody who listens")
        }
    }

    deinit { Glibc.close(descriptor) }

    func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }
    func send(_ text: String) async { await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async {
        await onThread { [self] in sendNow(bytes) }
    }

    /// The same to many, one after the other: no time passes between the first and the last.
    static func send(_ text: String, to connections: [Connection]) async {
        await onThread {
            for connection in connections { connection.sendNow(Array(text.utf8)) }
        }
    }

    /// True once a response, a part of it, or the end has come. Waits at most so many milliseconds.
    func hasAnswer(within milliseconds: Int32) async -> Bool {
        await onThread { [descriptor] in hasEvent(POLLIN, on: descriptor, within: milliseconds) }
    }

    /// The server may answer and close before it has read everything.
    private func sendNow(_ bytes: [UInt8]) { _ = sendAll(bytes, to: descriptor) }

    /// Reads one answer: by its Content-Length, or to the connection's end. ``Answer/nothing`` if it was closed first.
    func answer(within bound: Duration = Bound.usual) async throws -> Answer {
        let end = ContinuousClock.now + bound
        return try await onThread { [self] in try readAnswer(until: end) }
    }

    /// Reads until the text has come; gives everything up to and with it.
    func read(through text: String, within bound: Duration = Bound.usual) async throws -> String {
        let end = ContinuousClock.now + bound
        return try await onThread { [self] in
            let bytes = try take(through: Array(text.utf8), until: end)
            guard let bytes else { throw Late(what: "“\(text)”; the connection ended before") }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Waits for the other end to close; gives what it sent before.
    func readToEnd(within bound: Duration = Bound.usual) async throws -> String {
        let end = ContinuousClock.now + bound
        return try await onThread { [self] in
            while try receive(until: end) {}
            return String(decoding: rest.value, as: UTF8.self)
        }
    }

    private func readAnswer(until end: ContinuousClock.Instant) throws -> Answer {
        guard let bytes = try take(through: Array("\r\n\r\n".utf8), until: end) else { return .nothing }
        let head = AnswerHead(String(decoding: bytes, as: UTF8.self))
        let hasNoBody = head.status == 204 || head.status == 304 || head.status < 200
        let length = head.fields["content-length"].flatMap { Int($0) } ?? (hasNoBody ? 0 : Int.max)
        while rest.value.count < length, try receive(until: end) {}
        let body = Array(rest.value.prefix(length))
        rest.change { $0.removeFirst(body.count) }
        return Answer(status: head.status, fields: head.fields, body: body)
    }

    private func take(through mark: [UInt8], until end: ContinuousClock.Instant) throws -> [UInt8]? {
        while true {
            let bytes = rest.value
            if let range = bytes.firstRange(of: mark) {
                rest.change { $0.removeFirst(range.upperBound) }
                return Array(bytes[..<range.upperBound])
            }
            guard try receive(until: end) else { return nil }
        }
    }

    /// False at the connection's end.
    private func receive(until end: ContinuousClock.Instant) throws -> Bool {
        while true {
            let left = end - ContinuousClock.now
            guard left > .zero else { throw Late(what: "bytes from a connection") }
            let wait = Int32(max(1, min(left / .milliseconds(1), 60_000)))
            guard hasEvent(POLLIN, on: descriptor, within: wait) else { continue }
            var buffer = [UInt8](repeating: 0, count: 16_384)
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest.change { $0 += buffer[..<count] }
            return true
        }
    }
}
