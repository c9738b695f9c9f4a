import CLinux
import CallbackListener
import Glibc
import LocalHTTP
import Synchronization
import TestSupport

struct Answer: Sendable, Equatable {
    let status: Int
    /// Names lower-cased.
    let fields: [String: String]
    let body: String
    let text: String

    init(_ text: String) {
        self.text = text
        let end = text.firstRange(of: "\r\n\r\n")
        let head = AnswerHead(String(text[..<(end?.lowerBound ?? text.endIndex)]))
        (status, fields) = (head.status, head.fields)
        body = String(text[(end?.upperBound ?? text.endIndex)...])
    }
}

enum Visitor {
    static func send(_ text: String, to port: Int, overIPv6: Bool = false) async -> Answer {
        await onThread {
            guard let socket = connected(to: port, overIPv6: overIPv6) else { return Answer("") }
            defer { close(socket) }
            _ = sendAll(Array(text.utf8), to: socket)
            return Answer(readAll(socket))
        }
    }

    /// A GET as a browser sends it. `fields`: whole lines.
    static func get(_ target: String, at port: Int, host: String? = nil, fields: String = "") async -> Answer {
        await send("GET \(target) HTTP/1.1\r\nHost: \(host ?? "127.0.0.1:\(port)")\r\n\(fields)\r\n", to: port)
    }

    static func canConnect(to port: Int) -> Bool {
        guard let socket = connected(to: port) else { return false }
        close(socket)
        return true
    }

    /// Returns once the listener has given the port up and nobody listens at it any more; false if that takes more
    /// than a minute.
    static func sawClosed(_ port: Int, of listener: LoopbackListener) async -> Bool {
        let start = ContinuousClock.now
        // In this order: a storm of connections would fill the queue of the socket that is to be closed.
        while listener.listeners.contains("127.0.0.1:\(port)") || canConnect(to: port) {
            guard ContinuousClock.now - start < .seconds(60) else { return false }
            await Task.yield()
        }
        return true
    }

    static func isOpen(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        let count = unsafe recv(socket, &byte, 1, Int32(MSG_DONTWAIT))
        return count < 0 && errno == EAGAIN
    }

    static func connected(to port: Int, overIPv6: Bool = false) -> Int32? {
        let place = overIPv6 ? ServerPlace.ipv6(port) : .ipv4(port)
        guard let descriptor = try? place.connect() else { return nil }
        var bound = timeval(tv_sec: 60, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &bound, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }

    /// A socket that listens at a free port of ours, and the port.
    static func occupy(overIPv6: Bool = false) -> (descriptor: Int32, port: Int)? {
        guard let descriptor = try? (overIPv6 ? ServerPlace.ipv6(0) : .ipv4(0)).listen() else { return nil }
        return (descriptor, localPort(of: descriptor))
    }

    /// Runs with the file system uid of nobody, which is whose the sockets are that it makes. Of the thread alone.
    static func asNobody<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await onThread {
            typealias SetFileSystemUID = @convention(c) (UInt32) -> Int32
            if let function = unsafe dlsym(nil, "setfsuid") {
                _ = unsafe unsafeBitCast(function, to: SetFileSystemUID.self)(65_534)
            }
            return body()
        }
    }

    static func readAll(_ socket: Int32) -> String {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }
}

final class Deliveries: Sendable {
    private let outcome: CallbackOutcome
    private let arrivals = Mutex<[CallbackArrival]>([])

    init(_ outcome: CallbackOutcome) {
        self.outcome = outcome
    }

    var urls: [String] { arrivals.withLock { $0.map(\.url) } }
    var forms: [String?] { arrivals.withLock { $0.map { $0.form.map { String(decoding: $0, as: UTF8.self) } } } }
    var owners: [Set<String>] { arrivals.withLock { $0.map(\.owners) } }

    func take(_ arrival: CallbackArrival) -> CallbackOutcome {
        arrivals.withLock { $0.append(arrival) }
        return outcome
    }
}

func withListener(
    _ page: Page? = .done, of signIn: SignInLabel? = nil, linger: Duration = .seconds(600),
    ownerOf: @escaping @Sendable (Peer) -> UInt32? = SocketOwner.uid(of:),
    _ body: (LoopbackListener, Deliveries) async throws -> Void
) async throws {
    let deliveries = Deliveries(CallbackOutcome(page, of: signIn))
    let listener = LoopbackListener(linger: linger, ownerOf: ownerOf) { deliveries.take($0) }
    let running = Task { try await listener.run() }
    do {
        try await body(listener, deliveries)
    } catch {
        running.cancel()
        throw error
    }
    running.cancel()
    try await running.value
}

extension LoopbackListener {
    func openPort(_ path: String = "/callback/work", acceptsPost: Bool = false) throws -> Int {
        let redirectURI = try open(CallbackBinding(path: path, acceptsPost: acceptsPost))
        return portOf(redirectURI)
    }
}

func portOf(_ redirectURI: String) -> Int {
    let authority = redirectURI.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
    return authority.split(separator: ":").last.flatMap { Int($0) } ?? 0
}
