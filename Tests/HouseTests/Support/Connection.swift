// A plain socket: what is sent is what the test says, byte for byte, so that wrong requests are possible too.

import Glibc
import TestSupport

/// One connection. Its methods block up to their bound: they run on threads of their own.
final class Connection: Sendable {
    enum Place: Sendable {
        case unix(String)
        /// 127.0.0.1, or ::1.
        case loopback(Int, isIPv6: Bool = false)
    }

    private let descriptor: Int32
    /// What was read beyond the last answer.
    private let rest = Watched<[UInt8]>([])

    /// - Throws: ``SystemError`` with `ECONNREFUSED` and the like.
    init(to place: Place) throws {
        let family: Int32 =
            switch place {
            case .unix: AF_UNIX
            case .loopback(_, let isIPv6): isIPv6 ? AF_INET6 : AF_INET
            }
        descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(call: "socket", code: errno) }
        let code: Int32 = unsafe Connection.withAddress(of: place) { address, length in
            unsafe connect(descriptor, address, length) == 0 ? 0 : errno
        }
        guard code == 0 else {
            Glibc.close(descriptor)
            throw SystemError(call: "connect", code: code)
        }
    }

    /// Connects in the first instant in which somebody listens there.
    static func first(to place: Place, within bound: Duration = Bound.usual) async throws -> Connection {
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

    /// No more will be sent, and nothing read.
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

    private func sendNow(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            // The server may answer and close before it has read everything.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

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
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&entry, 1, Int32(max(1, min(left / .milliseconds(1), 60_000)))) > 0 else { continue }
            var buffer = [UInt8](repeating: 0, count: 16_384)
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest.change { $0 += buffer[..<count] }
            return true
        }
    }

    static func withAddress<Value>(of place: Place, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        switch place {
        case .unix(let path):
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8.prefix(107)) }
            return unsafe withRebound(&address, body)
        case .loopback(let port, isIPv6: false):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            return unsafe withRebound(&address, body)
        case .loopback(let port, isIPv6: true):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = in_port_t(truncatingIfNeeded: port).bigEndian
            address.sin6_addr = in6addr_loopback
            return unsafe withRebound(&address, body)
        }
    }

    private static func withRebound<Address, Value>(
        _ address: inout Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}
