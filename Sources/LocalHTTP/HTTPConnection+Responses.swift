internal import HTTPMessages
internal import NIOCore

/// The output side of a connection: runs the handler for a request and writes its response.
extension HTTPConnection {
    /// Starts handling a request: the immediate handler if it responds, otherwise an ``Exchange``.
    func answer(_ head: RequestHead, _ body: [UInt8]) {
        guard let peer, let context else { return }
        keepsAlive = head.keepsAlive && !server.limits.isSingleRequest
        let request = ServerRequest(
            method: head.method, target: head.target, fields: head.fields, body: body, peer: peer,
            owner: owner(of: peer, over: context.channel), process: process(of: peer, over: context.channel),
            memory: memory)
        if let response = server.immediate?(request) {
            phase = .answering(nil)
            return begin(response, to: request)
        }
        let exchange = Exchange(request: request, connection: NIOLoopBound(self, eventLoop: context.eventLoop))
        phase = .answering(exchange)
        // The stream of exchanges has ended because the server is shutting down.
        if case .terminated = server.exchanges.yield(exchange) { refuse(503) }
    }

    /// Sends an error response for a request that is invalid or too late, and closes the connection afterwards.
    func refuse(_ status: Int) {
        keepsAlive = false
        var response = server.refusal(status)
        if case .stream = response.body { response = ServerResponse(status: status) }
        write(response, withBody: true)
        flush()
        linger()
    }

    func sendContinue() {
        write(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"))
    }

    /// Sends a handler's response, or the head of a streamed one.
    func send(_ response: ServerResponse, to request: ServerRequest) {
        guard case .answering = phase else { return }
        begin(response, to: request)
        turn()
    }

    private func begin(_ response: ServerResponse, to request: ServerRequest) {
        let isHead = request.method == "HEAD"
        if registry.isClosing { keepsAlive = false }
        switch response.body {
        case .bytes:
            write(response, withBody: !isHead)
            finish()
        case .stream:
            // A streamed response ends with the connection.
            keepsAlive = false
            write(response, withBody: false)
        }
    }

    /// Sends one piece of a streamed response. The promise fails if the client has disconnected.
    func writeStream(_ bytes: [UInt8], promise: EventLoopPromise<Void>) {
        guard case .answering = phase else { return promise.fail(ChannelError.ioOnClosedChannel) }
        write(ByteBuffer(bytes: bytes), promise: promise)
        turn()
    }

    /// Ends a streamed response.
    func finishStream() {
        guard case .answering = phase else { return }
        finish()
        turn()
    }

    /// After the last bytes of a response: read the next request, or close the connection.
    private func finish() {
        // The write may have found that the client has disconnected.
        guard case .answering = phase else { return }
        if keepsAlive {
            phase = .reading
        } else if reader.stage == .none {
            phase = .closing
        } else {
            flush()
            linger()
        }
    }

    private func write(_ response: ServerResponse, withBody: Bool) {
        guard let context else { return }
        var body: [UInt8] = []
        if withBody, case .bytes(let bytes) = response.body { body = bytes }
        var buffer = context.channel.allocator.buffer(capacity: 512 + body.count)
        response.writeHead(to: &buffer, keepsAlive: keepsAlive)
        buffer.writeBytes(body)
        write(buffer)
    }

    private func write(_ buffer: ByteBuffer, promise: EventLoopPromise<Void>? = nil) {
        guard let context else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        unflushed += buffer.readableBytes
        context.write(wrapOutboundOut(buffer), promise: promise)
        // The responses to pipelined requests are flushed together, up to this many bytes.
        if unflushed > 64 * 1_024 { flush() }
    }
}
