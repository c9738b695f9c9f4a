public import RingbackBase

// Attack: a page in a browser sends requests to the relay's address, by its own name that leads there (Host), or across
// origins (Origin, Sec-Fetch-Site). Or a request leaves the relay in another form than it was judged in: so the head is
// parsed strictly and written anew.

/// A request at a relay, as it goes to the server: without the credentials that the relay itself adds.
public struct RelayedRequest: Sendable {
    public enum Body: Sendable, Equatable {
        case none
        case length(Int)
        /// RFC 9112 section 7.1.
        case chunked
    }

    /// Why a request goes nowhere, or its response does not come back.
    public struct Refusal: Error, Sendable, Equatable {
        public let status: Int
        public let code: String
        public let detail: String

        public init(_ status: Int, _ detail: String, code: String = "invalid_request") {
            self.status = status
            self.code = code
            self.detail = detail
        }
    }

    public let method: String
    public let url: WebURL
    public let fields: HTTPFields
    public let body: Body
    /// The client waits for the status 100 before it sends the body.
    public let expectsContinue: Bool
    public let keepsAlive: Bool
    /// False for HTTP/1.0.
    let isCurrent: Bool

    /// In bytes, of the request line and the header fields.
    private static let longestHead = 65_536

    /// Removes a head from the beginning of the input. Nil if it is not whole.
    ///
    /// - Parameter searched: how many bytes were there at the last call, 0 at the first.
    public static func take(
        from input: inout [UInt8], searched: inout Int, for origin: RelayedOrigin
    ) throws(Refusal) -> RelayedRequest? {
        let found: (head: RequestHead, length: Int)?
        do throws(HeadError) {
            found = try RequestHead.read(input, searched: &searched, longest: longestHead)
        } catch {
            throw Refusal(error.status, "This is no request of HTTP/1.1 that the relay can read.")
        }
        guard let found else { return nil }
        input.removeFirst(found.length)
        return try RelayedRequest(found.head, origin)
    }

    init(_ head: RequestHead, _ origin: RelayedOrigin) throws(Refusal) {
        try RelayedRequest.checkSender(head, origin)
        guard head.method.utf8.allSatisfy({ (0x41...0x5A).contains($0) }),
            !["CONNECT", "TRACE", "TRACK"].contains(head.method)
        else { throw Refusal(405, "The relay carries no request with the method \(head.method).") }
        guard !head.hasUpgrade else {
            throw Refusal(501, "The relay carries no other protocol than HTTP (Upgrade), so no WebSocket either.")
        }
        guard head.expectation != .unknown else { throw Refusal(417, "The relay knows no such Expect.") }
        guard let url = origin.url(of: head.target) else {
            throw Refusal(
                403, "The relay carries requests to \(origin.url.text) and below, and this one goes elsewhere.",
                code: "policy_denied")
        }
        method = head.method
        self.url = url
        body = try RelayedRequest.body(of: head)
        expectsContinue = head.expectation == .toContinue && head.isCurrent
        keepsAlive = head.keepsAlive
        isCurrent = head.isCurrent
        fields = RelayedRequest.passed(head.fields)
    }

    private static func checkSender(_ head: RequestHead, _ origin: RelayedOrigin) throws(Refusal) {
        guard head.fields["Host"] == origin.authority else {
            throw Refusal(421, "The relay is \(origin.authority), and the request names another host.")
        }
        let origins = head.fields[all: "Origin"]
        // A browser names no Origin in a GET for an image, say. Programs use Sec-Fetch-Mode, too, and not this field.
        let sites = head.fields[all: "Sec-Fetch-Site"]
        guard origins.allSatisfy({ $0 == origin.address }), sites.allSatisfy({ ["same-origin", "none"].contains($0) })
        else { throw Refusal(403, "The relay serves no pages of the web.", code: "policy_denied") }
    }

    private static func body(of head: RequestHead) throws(Refusal) -> Body {
        let hasLength = head.fields.contains("Content-Length")
        if head.hasTransferEncoding {
            // RFC 9112 section 6.1: with both, two readers may see two bodies.
            guard head.isCurrent, !hasLength, head.method != "HEAD",
                head.fields[all: "Transfer-Encoding"].map({ $0.lowercased() }) == ["chunked"]
            else { throw Refusal(400, "The body has a transfer coding that the relay does not read.") }
            return .chunked
        }
        guard head.contentLength == 0 else {
            guard head.method != "HEAD" else { throw Refusal(400, "A HEAD request has no body.") }
            return .length(head.contentLength)
        }
        return ["POST", "PUT", "PATCH"].contains(head.method) ? .length(0) : .none
    }

    private static let dropped: Set<String> = [
        // Credentials: the relay has its own.
        "authorization", "dpop", "x-api-key", "cookie", "proxy-authorization",
        // Of the connection to the relay.
        "host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "content-length",
        "expect", "http2-settings", "origin", "referer",
        // A compressed response could not be searched.
        "accept-encoding",
    ]

    private static func passed(_ fields: HTTPFields) -> HTTPFields {
        let named = HTTPFields.options(of: fields)
        var passed = HTTPFields()
        for field in fields.lines {
            let name = field.name.lowercased()
            guard !dropped.contains(name), !named.contains(name), !name.hasPrefix("sec-fetch-") else { continue }
            passed.append(field.name, field.value)
        }
        passed.set("Accept-Encoding", "identity")
        return passed
    }
}

extension HTTPFields {
    /// The names in `Connection`, lower-cased: fields of this connection alone (RFC 9110 section 7.6.1).
    static func options(of fields: HTTPFields) -> Set<String> {
        Set(
            fields[all: "Connection"].flatMap { $0.split(separator: ",") }
                .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() })
    }
}

/// Takes the body of a relayed request from what the client sends.
public struct RelayedBody: Sendable {
    private enum Stage: Sendable, Equatable {
        /// Bytes that are left, of the body or of a chunk.
        case data(Int)
        case size
        case chunkEnd, lastLine
        case over
    }

    private let isChunked: Bool
    private var stage: Stage
    /// A size of 15 hexadecimal digits, and its line end.
    private static let longestLine = 17

    public init(_ body: RelayedRequest.Body) {
        isChunked = body == .chunked
        switch body {
        case .none, .length(0): stage = .over
        case .length(let count): stage = .data(count)
        case .chunked: stage = .size
        }
    }

    public var isOver: Bool { stage == .over }

    /// Removes bytes of the body from the beginning of the input, and what stands between its chunks. Chunks have no
    /// extensions and the body has no trailers: clients do not send them, and parsers read them differently.
    public mutating func take(
        from input: inout [UInt8], atMost room: Int
    ) throws(RelayedRequest.Refusal) -> [UInt8] {
        var taken: [UInt8] = []
        var place = 0
        defer { input.removeFirst(place) }
        while true {
            let rest = input[place...]
            switch stage {
            case .over: return taken
            case .data(let left):
                let piece = rest.prefix(min(left, room - taken.count))
                guard !piece.isEmpty else { return taken }
                taken += piece
                place += piece.count
                stage = left > piece.count ? .data(left - piece.count) : isChunked ? .chunkEnd : .over
            case .size:
                guard let end = rest.prefix(RelayedBody.longestLine).firstIndex(of: 0x0A) else {
                    guard rest.count < RelayedBody.longestLine else { return try failed(taken) }
                    return taken
                }
                guard let count = RelayedBody.size(input[place...end]) else { return try failed(taken) }
                place = end + 1
                stage = count == 0 ? .lastLine : .data(count)
            case .chunkEnd, .lastLine:
                guard rest.count >= 2 else { return taken }
                guard rest.prefix(2).elementsEqual([0x0D, 0x0A]) else { return try failed(taken) }
                place += 2
                stage = stage == .chunkEnd ? .size : .over
            }
        }
    }

    /// What was read before the fault is given first.
    private func failed(_ taken: [UInt8]) throws(RelayedRequest.Refusal) -> [UInt8] {
        guard taken.isEmpty else { return taken }
        throw RelayedRequest.Refusal(400, "The chunks of the body cannot be read.")
    }

    /// Of a line with its end.
    private static func size(_ line: ArraySlice<UInt8>) -> Int? {
        let digits = line.dropLast(2)
        guard line.suffix(2).elementsEqual([0x0D, 0x0A]), !digits.isEmpty else { return nil }
        var size = 0
        for digit in digits {
            guard let value = digit.hexValue else { return nil }
            size = size << 4 | Int(value)
        }
        return size
    }
}
