internal import Glibc
internal import RingbackBase

/// The output side of a connection: runs the handler for a request and writes its response.
extension HTTPConnection {
    /// A larger body is sent from its own memory, after the output buffer.
    private static let largeBody = 8 * 1_024
    /// About how many bytes of responses to pipelined requests are sent together.
    private static let sentTogether = 32 * 1_024

    /// By the immediate handler if it responds, otherwise by an ``Exchange``.
    func answer(_ head: consuming RequestHead, _ body: [UInt8]) {
        keepsAlive = head.keepsAlive && !server.limits.isSingleRequest
        let isHead = head.method == "HEAD"
        let received = ServerRequest(
            head, body: body, peer: peer, owner: owner(of: peer, over: number),
            process: process(of: peer, over: number), memory: memory)
        if let response = server.immediate?(received) {
            server.heads?.keep()
            phase = .answering(nil)
            return begin(response, isHead: isHead, isImmediate: true)
        }
        server.heads?.forget()
        var request = received
        // The memory already has the information about the process: a waiting request need not keep it open.
        if memory.value != nil { request.process = nil }
        let exchange = Exchange(request: request, connection: self)
        phase = .answering(exchange)
        if !server.handOver(exchange) { refuse(503) }
    }

    /// For a request that is invalid or too late. The connection closes afterwards.
    func refuse(_ status: Int) {
        keepsAlive = false
        var response = server.refusal(status)
        if case .stream = response.body { response = ServerResponse(status: status) }
        write(response, withBody: true)
        linger()
    }

    func sendContinue() {
        loop.output.append(fixed: "HTTP/1.1 100 Continue\r\n\r\n")
    }

    /// False if the exchange's client has disconnected; this object may then already serve another client.
    private func isAnswering(_ exchange: Exchange) -> Bool {
        if case .answering(let current) = phase { current === exchange } else { false }
    }

    /// Of a handler, or the head of a streamed response.
    func send(_ response: ServerResponse, of exchange: Exchange, isHead: Bool) {
        guard isAnswering(exchange) else { return }
        begin(response, isHead: isHead)
        turn()
    }

    /// `written` gets true when the kernel has accepted the piece, false if the client has disconnected.
    func writeStream(_ bytes: [UInt8], of exchange: Exchange, _ written: @escaping @Sendable (Bool) -> Void) {
        guard isAnswering(exchange) else { return written(false) }
        streamWrite = written
        write(body: bytes)
        turn()
    }

    func finishStream(of exchange: Exchange) {
        guard isAnswering(exchange) else { return }
        finish()
        turn()
    }

    private func begin(_ response: ServerResponse, isHead: Bool, isImmediate: Bool = false) {
        if server.registry.isClosing { keepsAlive = false }
        if case .stream = response.body {
            // A streamed response ends with the connection.
            keepsAlive = false
            return write(response, withBody: false)
        }
        write(response, withBody: !isHead, isImmediate: isImmediate)
        finish()
    }

    /// After the last bytes of a response: reads the next request, or closes the connection.
    private func finish() {
        // The write may have found that the client has disconnected.
        guard case .answering = phase else { return }
        if keepsAlive {
            phase = .reading
        } else if reader.stage == .none, !hasInput {
            phase = .closing
        } else {
            linger()
        }
    }

    private func write(_ response: ServerResponse, withBody: Bool, isImmediate: Bool = false) {
        guard case .bytes(let bytes) = response.body else {
            return response.writeHead(to: &loop.output, keepsAlive: keepsAlive)
        }
        if isImmediate, response.status == 200 {
            server.repeatedHead.write(
                response.fields, length: bytes.count, to: &loop.output, keepsAlive: keepsAlive)
        } else {
            response.writeHead(to: &loop.output, keepsAlive: keepsAlive)
        }
        if withBody { write(body: bytes) }
    }

    private func write(body: [UInt8]) {
        guard body.count > HTTPConnection.largeBody else {
            loop.output.append(body)
            if loop.output.count > HTTPConnection.sentTogether { flush() }
            return
        }
        flush(with: body)
    }

    /// Sends the bytes that were written in this turn, followed by a body.
    func flush(with body: [UInt8] = []) {
        // All connections of the loop share the buffer: bytes that are left in it would be sent to another client.
        guard number >= 0 else { return loop.output.clear() }
        guard !loop.output.isEmpty || !body.isEmpty else { return finishWrite() }
        if isBlocked {
            // This is an error response, and the client has not read the previous response yet.
            unsent.append(loop.output.bytes(from: 0) + body)
            return loop.output.clear()
        }
        let written = loop.output.count
        let count = body.isEmpty ? sendOutput() : sendOutput(with: body)
        guard let count else {
            loop.output.clear()
            return drop()
        }
        if count < written + body.count {
            unsent =
                count >= written
                ? UnsentBytes(body, from: count - written)
                : UnsentBytes(loop.output.bytes(from: count) + body, from: 0)
            startWriteDeadline()
            watchOutput(true)
        }
        loop.output.clear()
        finishWrite()
    }

    /// Returns how many bytes the kernel has accepted; nil if the client has disconnected.
    private func sendOutput() -> Int? {
        let socket = number
        return unsafe loop.output.withBytes { unsafe HTTPConnection.send($0, over: socket) }
    }

    private func sendOutput(with body: [UInt8]) -> Int? {
        let socket = number
        return unsafe loop.output.withBytes { head in
            unsafe body.withUnsafeBytes { body in
                var pieces = unsafe (
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress), iov_len: head.count),
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: body.baseAddress), iov_len: body.count)
                )
                return unsafe withUnsafeMutablePointer(to: &pieces) { pieces in
                    unsafe pieces.withMemoryRebound(to: iovec.self, capacity: 2) { pieces in
                        var message = unsafe msghdr()
                        unsafe message.msg_iov = pieces
                        unsafe message.msg_iovlen = 2
                        let sent = unsafe sendmsg(socket, &message, Int32(MSG_NOSIGNAL))
                        return sent < 0 ? HTTPConnection.accepted(errno) : sent
                    }
                }
            }
        }
    }

    private static func send(_ bytes: UnsafeRawBufferPointer, over socket: Int32) -> Int? {
        let sent = unsafe Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return sent < 0 ? accepted(errno) : sent
    }

    private static func accepted(_ failure: Int32) -> Int? {
        failure == EAGAIN || failure == EINTR ? 0 : nil
    }

    /// Called when the socket accepts bytes again.
    func sendRest() {
        let socket = number
        guard let sent = unsafe unsent.withBytes({ unsafe HTTPConnection.send($0, over: socket) }) else {
            return drop()
        }
        unsent.consume(sent)
        guard !isBlocked else { return }
        clearWriteDeadline()
        watchOutput(false)
        server.noteSent()
        finishWrite()
    }

    /// If all bytes are sent, reports that the current piece of a streamed response is sent.
    private func finishWrite() {
        guard !isBlocked, number >= 0 else { return }
        streamWrite.take()?(true)
    }
}

extension HTTPFields {
    fileprivate func write(to buffer: inout OutputBuffer) {
        for field in lines {
            buffer.append(field.name)
            buffer.append(fixed: ": ")
            // Values come from Ringback's own code. With a line break by mistake, the rest would be another field.
            buffer.append(field.value.utf8.contains { $0 < 0x20 && $0 != 0x09 } ? "" : field.value)
            buffer.append(fixed: "\r\n")
        }
    }
}

/// RFC 9112 section 4.
extension ServerResponse {
    func writeHead(to buffer: inout OutputBuffer, keepsAlive: Bool) {
        if status == 200 {
            buffer.append(fixed: "HTTP/1.1 200 OK\r\n")
        } else {
            buffer.append("HTTP/1.1 \(status) \(ServerResponse.reason(status))\r\n")
        }
        fields.write(to: &buffer)
        // RFC 9110 section 8.6: a 204 response has no Content-Length.
        if case .bytes(let bytes) = body, status != 204 {
            buffer.append(fixed: "Content-Length: ")
            buffer.append(number: bytes.count)
            buffer.append(fixed: "\r\n")
        }
        buffer.append(fixed: keepsAlive ? "\r\n" : "Connection: close\r\n\r\n")
    }

    static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 204: "No Content"
        case 302: "Found"
        case 303: "See Other"
        case 307: "Temporary Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 421: "Misdirected Request"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 423: "Locked"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }
}

/// The last 200 response's head, up to the value of `Content-Length`. The immediate handler usually responds with the
/// same fields, which are then copied instead of being serialized again. They stay in memory, so they must not contain
/// a secret.
struct RepeatedHead {
    private var fields = HTTPFields()
    private var bytes: [UInt8] = []

    /// `length` is the body's.
    mutating func write(_ fields: HTTPFields, length: Int, to buffer: inout OutputBuffer, keepsAlive: Bool) {
        if bytes.isEmpty || !isSame(fields) {
            let start = buffer.count
            buffer.append(fixed: "HTTP/1.1 200 OK\r\n")
            fields.write(to: &buffer)
            buffer.append(fixed: "Content-Length: ")
            self.fields = fields
            bytes = buffer.bytes(from: start)
        } else {
            buffer.append(bytes)
        }
        buffer.append(number: length)
        buffer.append(fixed: keepsAlive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n")
    }

    private func isSame(_ others: HTTPFields) -> Bool {
        guard fields.lines.count == others.lines.count else { return false }
        for index in fields.lines.indices {
            let (one, other) = (fields.lines[index], others.lines[index])
            guard one.name == other.name, one.value == other.value else { return false }
        }
        return true
    }
}

/// Memory in which responses are assembled. All connections of a loop share one buffer, which is empty at the end of
/// each connection's turn. Used bytes are zeroed, because responses contain tokens.
@safe struct OutputBuffer: ~Copyable {
    private static let usual = 16 * 1_024
    private var memory: UnsafeMutableRawPointer
    private var capacity = usual
    private(set) var count = 0

    init() {
        unsafe memory = .allocate(byteCount: OutputBuffer.usual, alignment: 16)
    }

    deinit {
        unsafe explicit_bzero(memory, count)
        unsafe memory.deallocate()
    }

    var isEmpty: Bool { count == 0 }

    mutating func append(fixed text: StaticString) {
        unsafe append(text.utf8Start, text.utf8CodeUnitCount)
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            if let start = bytes.baseAddress { unsafe append(start, bytes.count) }
        }
    }

    mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { unsafe append(start, bytes.count) }
        }
    }

    /// Decimal digits of a number that is not negative.
    mutating func append(number: Int) {
        var divisor = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            var digit = UInt8(ascii: "0") + UInt8(number / divisor % 10)
            unsafe append(&digit, 1)
            divisor /= 10
        }
    }

    private mutating func append(_ source: UnsafeRawPointer, _ more: Int) {
        if capacity - count < more { resize(to: max(capacity * 2, count + more)) }
        unsafe memory.advanced(by: count).copyMemory(from: source, byteCount: more)
        count += more
    }

    private mutating func resize(to size: Int) {
        let other = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        unsafe other.copyMemory(from: memory, byteCount: min(count, size))
        unsafe explicit_bzero(memory, count)
        unsafe memory.deallocate()
        unsafe memory = other
        capacity = size
    }

    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        unsafe body(UnsafeRawBufferPointer(start: memory, count: count))
    }

    func bytes(from offset: Int) -> [UInt8] {
        unsafe withBytes { bytes in unsafe Array(bytes[offset...]) }
    }

    mutating func clear() {
        unsafe explicit_bzero(memory, count)
        count = 0
        if capacity > OutputBuffer.usual { resize(to: OutputBuffer.usual) }
    }
}

/// The bytes of responses that the kernel has not accepted yet.
struct UnsentBytes {
    private var bytes: [UInt8] = []
    private var offset = 0

    init() {}

    init(_ bytes: [UInt8], from offset: Int) {
        self.bytes = bytes
        self.offset = offset
    }

    var isEmpty: Bool { offset == bytes.count }

    mutating func append(_ more: [UInt8]) {
        bytes.append(contentsOf: more)
    }

    mutating func consume(_ count: Int) {
        offset += count
        if isEmpty { self = UnsentBytes() }
    }

    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        unsafe bytes.withUnsafeBytes { bytes in unsafe body(UnsafeRawBufferPointer(rebasing: bytes[offset...])) }
    }
}
