import CurlTransport
import Glibc
import RingbackBase
import Synchronization
import TestSupport

/// Listens on a free port of 127.0.0.1 and runs the script for every connection, until it goes.
final class ScriptedServer: Sendable {
    let port: Int
    private let listener: Int32
    private let connections = Mutex(0)

    /// - Parameter isOnAllInterfaces: it listens on every address of the machine, not on loopback alone.
    init(isOnAllInterfaces: Bool = false, _ script: @escaping @Sendable (ScriptedConnection) -> Void) {
        // A socket that was never bound listens on every address.
        let unbound = isOnAllInterfaces ? socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0) : nil
        let descriptor = unbound ?? (try? ServerPlace.ipv4(0).bind()) ?? -1
        listen(descriptor, 64)
        listener = descriptor
        port = localPort(of: descriptor)
        startThread { [weak self] in
            while true {
                let accepted = accept(descriptor, nil, nil)
                guard accepted >= 0 else { break }
                guard let self else {
                    close(accepted)
                    break
                }
                connections.withLock { $0 += 1 }
                startThread {
                    script(ScriptedConnection(accepted))
                    // Ends the connection even if a child process of another test holds a copy of the descriptor.
                    shutdown(accepted, Int32(SHUT_RDWR))
                    close(accepted)
                }
            }
            close(descriptor)
        }
    }

    deinit {
        // Wakes the accept that waits.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    static func answering(
        _ status: String = "200 OK", fields: String = "", body: String = ""
    ) -> ScriptedServer {
        ScriptedServer { connection in
            _ = connection.readRequest()
            connection.answer(status, fields: fields, body: body)
        }
    }

    static func writing(_ text: String) -> ScriptedServer {
        ScriptedServer { connection in
            _ = connection.readRequest()
            connection.write(text)
        }
    }

    var connectionCount: Int { connections.withLock { $0 } }

    func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }
}

/// A port where nobody listens, and nobody else can as long as this is there.
final class UnusedPort: Sendable {
    let number: Int
    private let descriptor: Int32

    init() throws {
        descriptor = try ServerPlace.ipv4(0).bind()
        number = localPort(of: descriptor)
    }

    deinit { close(descriptor) }
}

struct ScriptedConnection: Sendable {
    private let descriptor: Int32

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    func readRequest() -> String? {
        var text = ""
        while true {
            if let end = text.firstRange(of: "\r\n\r\n") {
                let length = text[..<end.lowerBound].split(separator: "\r\n")
                    .first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) }
                if text[end.upperBound...].utf8.count >= length ?? 0 { return text }
            }
            guard let piece = readSome() else { return nil }
            text += piece
        }
    }

    @discardableResult
    func write(_ text: String) -> Bool { write(Array(text.utf8)) }

    @discardableResult
    func write(_ message: [UInt8]) -> Bool { sendAll(message, to: descriptor) }

    func answer(_ status: String = "200 OK", fields: String = "", body: String = "") {
        write("HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Breaks the connection: the client is told that it was reset, after what was sent before.
    func reset() {
        var nobody = sockaddr()
        nobody.sa_family = sa_family_t(AF_UNSPEC)
        _ = unsafe connect(descriptor, &nobody, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// Opens a tunnel to a port of 127.0.0.1, as a proxy does: what either end sends goes to the other one, until one
    /// of them closes.
    func tunnel(to port: Int) {
        guard let other = try? ServerPlace.ipv4(port).connect() else { return answer("502 Bad Gateway") }
        defer { close(other) }
        write("HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            var entries = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&entries, 2, 60_000) > 0 else { return }
            for (entry, target) in zip(entries, [other, descriptor]) where entry.revents != 0 {
                let count = unsafe recv(entry.fd, &buffer, buffer.count, 0)
                guard count > 0, unsafe send(target, &buffer, count, Int32(MSG_NOSIGNAL)) == count else { return }
            }
        }
    }

    func waitUntilClosed() {
        while readSome() != nil {}
    }

    private func readSome() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}

/// The IPv4 addresses of the machine's interfaces other than loopback, as in a URL.
func interfaceAddresses() -> [String] {
    var interfaces: UnsafeMutablePointer<ifaddrs>?
    guard unsafe getifaddrs(&interfaces) == 0 else { return [] }
    defer { unsafe freeifaddrs(interfaces) }
    var addresses: [String] = []
    var next = unsafe interfaces
    while let each = unsafe next {
        if let address = unsafe each.pointee.ifa_addr, unsafe address.pointee.sa_family == sa_family_t(AF_INET) {
            let bytes = unsafe UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr
            let text = unsafe withUnsafeBytes(of: bytes) { unsafe $0.map(String.init).joined(separator: ".") }
            if !text.hasPrefix("127.") { addresses.append(text) }
        }
        unsafe next = each.pointee.ifa_next
    }
    return addresses
}

func failureOf(_ client: CurlClient, _ request: HTTPRequest) async -> HTTPClientError? {
    do throws(HTTPClientError) {
        _ = try await client.send(request)
        return nil
    } catch {
        return error
    }
}

struct Unexpected: Error {
    let what: String
    init<Value>(_ what: Value) { self.what = "\(what)" }
}
