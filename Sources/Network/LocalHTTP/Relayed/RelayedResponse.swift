public import RingbackBase

/// A response on its way from the server to the client of a relay. Its body goes through a ``SecretMask``.
public struct RelayedResponse: Sendable {
    private enum Framing: Sendable {
        /// There is no body, or its length is in the head.
        case none
        case chunked
        /// The end of the connection is the end of the body, for HTTP/1.0.
        case close
    }

    public let head: [UInt8]
    /// False for a response whose end is that of the connection.
    public var keepsAlive: Bool { framing != .close }
    private let framing: Framing

    private static let dropped: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authentication-info", "te",
        "trailer", "transfer-encoding", "upgrade", "content-length",
        // A session of the server is a credential, too.
        "set-cookie", "set-cookie2",
        // For the relay's own proofs.
        "dpop-nonce",
        // They send the client to other addresses of the server, or tell it of TLS there.
        "alt-svc", "strict-transport-security",
    ]

    /// - Parameters:
    ///   - isDecoded: the body's content coding has been undone.
    ///   - mask: hides the token, also in the fields.
    /// - Throws: for a body that cannot be searched.
    public init(
        _ status: Int, _ fields: HTTPFields, isDecoded: Bool, to request: RelayedRequest, of origin: RelayedOrigin,
        _ mask: SecretMask
    ) throws(RelayedRequest.Refusal) {
        let hasBody = request.method != "HEAD" && status != 204 && status != 304
        let isEncoded = fields[all: "Content-Encoding"].contains { !HTTPFields.isSame($0, "identity") }
        guard !hasBody || !isEncoded || isDecoded else {
            throw RelayedRequest.Refusal(
                502, "\(origin.url.place) sent a response in a coding that the relay cannot read.",
                code: "server_unreachable")
        }
        let lengths = fields[all: "Content-Length"]
        let length = lengths.count == 1 && lengths[0].utf8.allSatisfy(\.isDigit) && !isDecoded ? lengths[0] : nil
        framing = !hasBody || length != nil ? .none : request.isCurrent ? .chunked : .close
        let named = HTTPFields.options(of: fields)
        var text = "HTTP/1.1 \(status) \(ServerResponse.reason(status))\r\n"
        for field in fields.lines {
            let name = field.name.lowercased()
            guard !RelayedResponse.dropped.contains(name), !named.contains(name),
                !(isDecoded && name == "content-encoding"), field.name.utf8.allSatisfy(HTTPFields.isTokenByte),
                field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
            else { continue }
            let value =
                switch name {
                case "location": origin.reference(field.value)
                case "link": origin.links(field.value)
                default: field.value
                }
            text += "\(field.name): \(mask.masked(value))\r\n"
        }
        // RFC 9110 section 8.6.
        if let length, status != 204 { text += "Content-Length: \(length)\r\n" }
        if framing == .chunked { text += "Transfer-Encoding: chunked\r\n" }
        if !request.keepsAlive || framing == .close { text += "Connection: close\r\n" }
        head = Array((text + "\r\n").utf8)
    }

    /// A part of the body, as it is sent; it has passed the mask.
    public func piece(_ bytes: [UInt8]) -> [UInt8] {
        guard framing == .chunked, !bytes.isEmpty else { return bytes }
        return Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [0x0D, 0x0A]
    }

    /// What ends a body that is whole.
    public var end: [UInt8] { framing == .chunked ? Array("0\r\n\r\n".utf8) : [] }

    /// The client has to send the body now.
    public static let proceed = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// The relay's own response, after which the connection is closed: a problem document (RFC 9457).
    public static func refusal(_ refusal: RelayedRequest.Refusal) -> [UInt8] {
        let reason = ServerResponse.reason(refusal.status)
        let body = JSON.object([
            "title": reason, "status": refusal.status, "code": refusal.code, "detail": "ringback: \(refusal.detail)",
        ]).serialized()
        let head = """
            HTTP/1.1 \(refusal.status) \(reason)\r
            Content-Type: application/problem+json\r
            Content-Length: \(body.count)\r
            Connection: close\r
            \r

            """
        return Array(head.utf8) + body
    }
}
