internal import Glibc
internal import HTTPMessages

/// The output side of a connection: runs the handler for a request and writes its response.
extension HTTPConnection {
    /// A body with more bytes is not copied into the output buffer. It is sent from its own memory, after the buffer.
    private static let largeBody = 8 * 1_024
    /// The responses to pipelined requests are sent together, up to about this many bytes.
    private static let sentTogether = 32 * 1_024

    /// Starts handling a request: the immediate handler if it responds, otherwise an ``Exchange``.
    func answer(_ head: RequestHead, _ body: [UInt8]) {
        keepsAlive = head.keepsAlive && !server.limits.isSingleRequest
        var request = ServerRequest(
            head, body: body, peer: peer, owner: owner(of: peer, over: number),
            process: process(of: peer, over: number), memory: memory)
        if let response = server.immediate?(request) {
            server.heads?.keep()
            phase = .answering(nil)
            return begin(response, isHead: head.method == "HEAD", isImmediate: true)
        }
        server.heads?.forget()
        // The connection's memory already has the information about the process. Release the process's descriptor, so
        // that a waiting request does not keep it open.
        if memory.value != nil { request.process = nil }
        let exchange = Exchange(request: request, connection: self)
        phase = .answering(exchange)
        if !server.handOver(exchange) { refuse(503) }
    }

    /// Sends an error response for a request that is invalid or too late, and closes the connection afterwards.
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

    // MARK: For exchanges

    /// True if the exchange's request is the one that is being handled. False if its client has disconnected; this
    /// object may then already serve another client.
    private func isAnswering(_ exchange: Exchange) -> Bool {
        if case .answering(let current) = phase { current === exchange } else { false }
    }

    /// Sends a handler's response, or the head of a streamed one.
    func send(_ response: ServerResponse, of exchange: Exchange, isHead: Bool) {
        guard isAnswering(exchange) else { return }
        begin(response, isHead: isHead)
        turn()
    }

    /// Sends one piece of a streamed response. `written` gets true when the kernel has accepted it, false if the client
    /// has disconnected.
    func writeStream(_ bytes: [UInt8], of exchange: Exchange, _ written: @escaping @Sendable (Bool) -> Void) {
        guard isAnswering(exchange) else { return written(false) }
        streamWrite = written
        write(body: bytes)
        turn()
    }

    /// Ends a streamed response.
    func finishStream(of exchange: Exchange) {
        guard isAnswering(exchange) else { return }
        finish()
        turn()
    }

    // MARK: Writing

    private func begin(_ response: ServerResponse, isHead: Bool, isImmediate: Bool = false) {
        if server.registry.isClosing { keepsAlive = false }
        switch response.body {
        case .bytes:
            write(response, withBody: !isHead, isImmediate: isImmediate)
            finish()
        case .stream:
            // A streamed response ends with the connection.
            keepsAlive = false
            write(response, withBody: false)
        }
    }

    /// Called after the last bytes of a response were written: reads the next request, or closes the connection.
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
        if isImmediate, response.status == 200, case .bytes(let bytes) = response.body {
            server.repeatedHead.write(
                response.fields, length: bytes.count, to: &loop.output, keepsAlive: keepsAlive)
        } else {
            response.writeHead(to: &loop.output, keepsAlive: keepsAlive)
        }
        if withBody, case .bytes(let bytes) = response.body { write(body: bytes) }
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
        // The buffer is shared by all connections of the loop. Bytes that are left in it would be sent to another
        // client.
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

    /// Sends the output buffer. Returns how many bytes the kernel has accepted; nil if the client has disconnected.
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

    /// Sends the unsent bytes. Called when the socket accepts bytes again.
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
