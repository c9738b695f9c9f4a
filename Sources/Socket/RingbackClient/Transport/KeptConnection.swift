package import RingbackAPI

/// A connection to the daemon that is kept for many calls, for a loop that waits for other things too: only its making may
/// take a moment. Only GET requests are sent over it: one that was lost with the connection can be sent again.
package final class KeptConnection {
    /// A response of any status.
    package struct Response: Sendable {
        let head: HTTPExchange.Head
        package let body: [UInt8]
    }

    /// Bytes of a response's body.
    private static let maxBody = 8 << 20
    /// How long a daemon may take to accept it.
    private static let acceptBound = Duration.seconds(1)

    private let connection: SocketConnection
    private var reader = HTTPResponseReader()
    private var head: HTTPExchange.Head?
    private var body: [UInt8] = []
    /// True once a response has come over it: then the daemon may have closed it since.
    package private(set) var hasServed = false
    /// True as long as the daemon has not said that it closes it.
    package private(set) var isKept = true

    /// - Throws: as ``SocketConnection`` does.
    package init(_ calls: BrokerCalls) throws(RingbackError) {
        connection = try SocketConnection(unixPath: calls.socket, deadline: .now + KeptConnection.acceptBound)
    }

    /// Readable when more of a response is there.
    package var descriptor: Int32 { connection.descriptor }

    /// Sends requests (``BrokerCalls/request(_:_:)``), whose responses come in the same order. False if the connection is
    /// broken.
    package func send(_ requests: [UInt8]) -> Bool {
        // They are small, and nothing else waits in the socket's buffer.
        connection.sendSome(requests[...]) == requests.count
    }

    /// The next response; nil if it is not whole yet.
    ///
    /// - Throws: `no_daemon` if the connection ended before it, `bad_response` if it is none.
    package func next() throws(RingbackError) -> Response? {
        while true {
            switch try reader.next() {
            case .head(let next): (head, body) = (next, [])
            case .piece(let piece):
                body += piece
                guard body.count <= KeptConnection.maxBody else {
                    throw RingbackError(.badResponse, "The daemon sent a response of over \(body.count) bytes.")
                }
            case .end:
                guard let head else { throw RingbackError(.badResponse, "The daemon's response has no head.") }
                hasServed = true
                if !head.isCurrent || head.field("connection") != nil { isKept = false }
                reader.beginNext()
                defer { (self.head, body) = (nil, []) }
                return Response(head: head, body: body)
            case .needsMore:
                guard let more = connection.receiveSome() else {
                    isKept = false
                    reader.close()
                    continue
                }
                guard !more.isEmpty else { return nil }
                reader.append(more)
            }
        }
    }
}

extension BrokerCalls {
    /// A GET request as it is sent.
    ///
    /// - Throws: `account_not_found` for what no account can be called.
    package func request(_ endpoint: Endpoint, _ values: [String]) throws(RingbackError) -> [UInt8] {
        HTTPExchange.bytes("GET", try RequestTarget.of(endpoint, values), fields: fields)
    }
}
