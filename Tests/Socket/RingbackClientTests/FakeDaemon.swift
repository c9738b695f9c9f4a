import Glibc
import Synchronization
import Testing

@testable import RingbackClient

/// A small honest daemon: a Unix socket, one connection after another, each answered by a closure that sees the
/// request's text. It ends with its value.
final class FakeDaemon: Sendable {
    enum Answer: Sendable {
        case bytes(String)
        case json(Int, String)
        /// These bytes, and then nothing until the daemon's end.
        case hold(String)
    }

    let path: String
    private let directory: String
    private let listener: Int32
    private let held = Mutex<[Int32]>([])
    private let received = Mutex<[String]>([])
    var client: BrokerClient { BrokerClient(application: "test", socket: path) }
    var requests: [String] { received.withLock { $0 } }

    init(_ answer: @escaping @Sendable (_ request: String) -> Answer) throws {
        var template = Array("/tmp/fake-daemon.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        path = directory + "/s"
        listener = try FakeDaemon.listen(at: path)
        let listener = listener
        let serve: @Sendable () -> Void = { [weak self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { break }
                self?.serve(client, answer)
            }
            close(listener)
        }
        try #require(Blocking.start(serve) == 0)
    }

    deinit {
        // Ends the accept; the thread that accepts closes, or the number could be another's by then.
        shutdown(listener, Int32(SHUT_RDWR))
        for client in held.withLock({ $0 }) { close(client) }
        unsafe unlink(path)
        unsafe rmdir(directory)
    }

    private func serve(_ client: Int32, _ answer: @Sendable (String) -> Answer) {
        let request = FakeDaemon.readRequest(client)
        received.withLock { $0.append(request) }
        switch answer(request) {
        case .bytes(let text):
            FakeDaemon.send(text, client)
            close(client)
        case .json(let status, let text):
            FakeDaemon.send(
                "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n\r\n"
                    + text, client)
            close(client)
        case .hold(let text):
            FakeDaemon.send(text, client)
            held.withLock { $0.append(client) }
        }
    }

    /// Closes the connections that are held open, as a daemon does that ends.
    func dropAll() {
        held.withLock { clients in
            for client in clients { close(client) }
            clients = []
        }
    }

    private static func listen(at path: String) throws -> Int32 {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: Array(path.utf8)) }
        let bound = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        try #require(Glibc.listen(listener, 64) == 0)
        return listener
    }

    private static func readRequest(_ client: Int32) -> String {
        var bytes: [UInt8] = []
        while true {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = unsafe read(client, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
            let text = String(decoding: bytes, as: UTF8.self)
            guard let end = text.range(ofHeadEnd: ()) else { continue }
            let length = text.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
                .flatMap { Int($0.dropFirst(16)) }
            if text[end...].utf8.count >= length ?? 0 { break }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func send(_ text: String, _ client: Int32) {
        let bytes = Array(text.utf8)
        _ = unsafe Glibc.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}

extension String {
    /// Where the body begins.
    fileprivate func range(ofHeadEnd: Void) -> String.Index? {
        var index = startIndex
        while index < endIndex {
            if self[index...].hasPrefix("\r\n\r\n") { return self.index(index, offsetBy: 2) }
            index = self.index(after: index)
        }
        return nil
    }
}

extension BrokerCalls {
    init(_ daemon: FakeDaemon, _ interruption: Interruption? = nil) {
        self.init(socket: daemon.path, application: "test", interruption: interruption)
    }
}

func kind<Value>(_ work: () throws(RingbackError) -> Value) -> RingbackError.Kind? {
    do throws(RingbackError) {
        _ = try work()
        return nil
    } catch {
        return error.kind
    }
}
