/// A header field of a request or a response.
package struct HeaderField: Sendable, Equatable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// One HTTP/1.1 request and its response over a connection of its own. It moves the bytes; ``HTTPResponseReader``
/// parses them.
package final class HTTPExchange {
    private let connection: SocketConnection
    private var reader = HTTPResponseReader()

    package init(_ connection: SocketConnection) { self.connection = connection }

    /// Sends a request. Field values must be free of line breaks; `Content-Length` is added where there is a body.
    package func send(
        _ method: String, _ target: String, fields: [HeaderField], body: [UInt8]? = nil
    ) throws(RingbackError) {
        // One write, so that a short request is one packet and one read for the server.
        try connection.send(HTTPExchange.bytes(method, target, fields: fields, body: body))
    }

    /// A request as it is sent.
    static func bytes(_ method: String, _ target: String, fields: [HeaderField], body: [UInt8]? = nil) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        if let body { head += "Content-Length: \(body.count)\r\n" }
        head += "\r\n"
        return Array(head.utf8) + (body ?? [])
    }

    /// Reads the response up to its body; once, before the body. Interim responses (1xx) are skipped.
    package func readHead() throws(RingbackError) -> Head {
        guard case .head(let head) = try step() else {
            throw RingbackError(.badResponse, "The server's response has no head.")
        }
        return head
    }

    /// The next piece of the body, after a wait if need be; nil at its end.
    package func nextPiece() throws(RingbackError) -> [UInt8]? {
        guard case .piece(let piece) = try step() else { return nil }
        return piece
    }

    /// The whole body.
    package func readBody(limit: Int = 8 << 20) throws(RingbackError) -> [UInt8] {
        var body: [UInt8] = []
        while let piece = try nextPiece() {
            guard body.count + piece.count <= limit else {
                throw RingbackError(.badResponse, "The server sent a response of over \(limit) bytes.")
            }
            body += piece
        }
        return body
    }

    private func step() throws(RingbackError) -> HTTPResponseReader.Step {
        while true {
            let step = try reader.next()
            guard case .needsMore = step else { return step }
            let more = try connection.receive()
            if more.isEmpty { reader.close() } else { reader.append(more) }
        }
    }
}
