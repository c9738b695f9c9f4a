public import HTTPMessages
internal import Synchronization

/// A request to one of our own servers, whole.
public struct ServerRequest: Sendable {
    public let method: String
    /// The request target as it came (`/path?query`), ASCII without spaces and controls.
    public let target: String
    /// The target up to `?`, undecoded.
    public let path: String
    /// The target after `?`, undecoded.
    public let query: String?
    public let fields: HTTPFields
    public let body: [UInt8]
    public let peer: Peer
    /// The uid of the client's socket, where the server looks for it; nil is nobody.
    public let owner: UInt32?
    /// The process of a local peer, with the first request of a connection alone.
    public let process: PeerProcess?
    /// What is remembered from one request of a connection to the next.
    public let memory: ConnectionMemory

    public init(
        method: String, target: String, fields: HTTPFields, body: [UInt8], peer: Peer,
        owner: UInt32? = nil, process: PeerProcess? = nil, memory: ConnectionMemory = ConnectionMemory()
    ) {
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        self.method = method
        self.target = target
        self.path = String(target[..<(mark ?? target.endIndex)])
        self.query = mark.map { String(target[target.utf8.index(after: $0)...]) }
        self.fields = fields
        self.body = body
        self.peer = peer
        self.owner = owner
        self.process = process
        self.memory = memory
    }
}

/// A value that lives as long as a connection: what was decided once need not be decided for every request.
public final class ConnectionMemory: Sendable {
    private let slot = Mutex<(any Sendable)?>(nil)

    public init() {}

    /// What was kept, if anything.
    public var value: (any Sendable)? {
        get { slot.withLock { $0 } }
        set { slot.withLock { $0 = newValue } }
    }
}

/// Who is at the other end of a connection.
public enum Peer: Sendable, Hashable {
    /// By the kernel's word at connect time (SO_PEERCRED).
    case local(uid: UInt32, pid: Int32)
    /// By address; network byte order, ports in host order.
    case network(client: [UInt8], clientPort: UInt16, server: [UInt8], serverPort: UInt16)
}

/// An answer of one of our own servers. `Content-Length` and `Connection` are the server's business; there is no `Date`,
/// since nobody keeps a local answer.
public struct ServerResponse: Sendable {
    /// The body of an answer.
    public enum Body: Sendable {
        case bytes([UInt8])
        /// Sent as it comes; the connection closes when the stream ends. The stream's consumer going away ends it.
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

/// Where a server listens.
public enum ListenAddress: Sendable {
    /// A new Unix socket at the path; a stale one there is replaced (the caller holds the lock). Mode 0600, unless who
    /// connects is checked and others must get that far.
    case unix(path: String, mode: UInt32 = 0o600)
    /// A listening socket that is already open (socket activation).
    case descriptor(Int32)
    /// TCP on a loopback address: `127.0.0.1` or `::1`. Port 0 is a free one.
    case loopback(host: String, port: Int)
}

/// What a connection may cost.
public struct ServerLimits: Sendable {
    /// Bytes of request line and header fields.
    public var maxHead = 16_384
    public var maxBody = 65_536
    /// For a request's head, and again for its body, once its first byte has come (or the connection, if the server
    /// serves one request per connection).
    public var requestTimeout: Duration = .seconds(5)
    /// How long a client may let an answer stand unread.
    public var writeTimeout: Duration = .seconds(10)
    /// Over all listening sockets. When it is reached, the oldest connection that has no request under way gives way.
    public var maxConnections = 4_096
    /// One request per connection; a request with `Expect` or `Upgrade` is refused with 400.
    public var isSingleRequest = false
    /// Handlers that wait are cancelled as soon as the shutdown begins, so that they can say so to their clients.
    public var cancelsAtShutdown = false

    public init() {}
}
