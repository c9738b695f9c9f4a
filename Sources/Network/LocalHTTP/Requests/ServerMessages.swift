public import RingbackBase
internal import Synchronization

/// A complete request to an ``HTTPServer``.
public struct ServerRequest: Sendable {
    public let method: String
    /// As received (`/path?query`): ASCII without spaces and control characters.
    public let target: String
    /// Undecoded.
    public let path: String
    /// Undecoded.
    public let query: String?
    public let fields: HTTPFields
    public let body: [UInt8]
    public let peer: Peer
    /// Of the client's TCP socket, if the server looks it up; nil if it is unknown.
    public let owner: UInt32?
    /// Of a local peer; nil once ``memory`` has a value.
    public internal(set) var process: PeerProcess?
    /// From one request of a connection to the next.
    public let memory: ConnectionMemory

    public init(
        method: String, target: String, fields: HTTPFields, body: [UInt8], peer: Peer,
        owner: UInt32? = nil, process: PeerProcess? = nil, memory: ConnectionMemory = ConnectionMemory()
    ) {
        self.method = method
        self.target = target
        (path, query) = ServerRequest.split(target)
        self.fields = fields
        self.body = body
        self.peer = peer
        self.owner = owner
        self.process = process
        self.memory = memory
    }

    /// Without copying the head's texts.
    init(
        _ head: consuming RequestHead, body: [UInt8], peer: Peer, owner: UInt32?, process: PeerProcess?,
        memory: ConnectionMemory
    ) {
        method = head.method
        target = head.target
        path = head.path
        query = head.query
        fields = head.fields
        self.body = body
        self.peer = peer
        self.owner = owner
        self.process = process
        self.memory = memory
    }

    static func split(_ target: String) -> (path: String, query: String?) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return (target, nil) }
        return (String(target[..<mark]), String(target[target.utf8.index(after: mark)...]))
    }
}

/// A value that is kept as long as a connection is open, so that a handler need not compute it for every request, and what
/// is to be done at the connection's end.
public final class ConnectionMemory: Sendable {
    private struct State {
        var value: (any AnyObject & Sendable)?
        var endings: [@Sendable () -> Void] = []
        var hasEnded = false
    }
    private let state = Mutex(State())

    public init() {}

    /// An object, because casting an object to its type is faster.
    public var value: (any AnyObject & Sendable)? {
        get { state.withLock { $0.value } }
        set { state.withLock { $0.value = newValue } }
    }

    /// Calls `ending` once the connection is closed, on the server's thread; at once if it is closed already.
    public func atEnd(_ ending: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if !state.hasEnded { state.endings.append(ending) }
            return state.hasEnded
        }
        if isTooLate { ending() }
    }

    var hasEndings: Bool { state.withLock { !$0.endings.isEmpty } }

    /// The connection is closed.
    ///
    /// - Parameter isReused: nothing else refers to this object, and it serves the next connection.
    func end(isReused: Bool) {
        let endings = state.withLock { state in
            defer { state.endings = [] }
            state.value = nil
            state.hasEnded = !isReused
            return state.endings
        }
        for ending in endings { ending() }
    }
}

/// The other end of a connection.
public enum Peer: Sendable, Hashable {
    /// A Unix socket's, from the kernel, as it was at connect time (SO_PEERCRED).
    case local(uid: UInt32, pid: Int32)
    /// TCP: addresses in network byte order, ports in host order.
    case network(client: [UInt8], clientPort: UInt16, server: [UInt8], serverPort: UInt16)
}

/// The server itself adds `Content-Length` and `Connection`. It sends no `Date`, because local responses are not
/// cached.
public struct ServerResponse: Sendable {
    public enum Body: Sendable {
        case bytes([UInt8])
        /// Each element is sent when it arrives. The connection closes when the stream ends. If the client disconnects,
        /// the stream is terminated.
        case stream(AsyncStream<[UInt8]>)
    }

    public var status: Int
    public var fields: HTTPFields
    public var body: Body

    public init(status: Int, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = .bytes(body)
    }

    public init(status: Int, fields: HTTPFields = HTTPFields(), stream: AsyncStream<[UInt8]>) {
        self.status = status
        self.fields = fields
        self.body = .stream(stream)
    }
}

public enum ListenAddress: Sendable {
    /// A stale socket at the path is replaced; the caller holds the state lock. Another file mode than 0600 needs a
    /// check of each peer.
    case unix(path: String, mode: UInt32 = 0o600)
    /// A listening socket of another process (socket activation).
    case descriptor(Int32)
    /// `127.0.0.1` or `::1`. Port 0 selects a free port.
    case loopback(host: String, port: Int)
}
