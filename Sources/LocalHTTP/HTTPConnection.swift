internal import HTTPMessages
internal import NIOCore
internal import Synchronization

/// One connection, on the event loop. Requests are handled one at a time, in the order of their arrival. This file has
/// the connection's life cycle and its input side; HTTPConnection+Answers has the output side.
///
/// Every event handler ends by calling ``turn()``, the only function that advances the connection. A handler therefore
/// never sees a half-finished step.
final class HTTPConnection: ChannelInboundHandler, ChannelOutboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case reading
        /// A request is being handled.
        case answering(Exchange?)
        /// The last response is being sent; then the connection closes.
        case closing
        /// The last response is being sent while the client is still sending. Up to this many bytes are read and
        /// discarded. If the socket were closed with unread bytes, the kernel would reset the connection and the client
        /// could lose the response.
        case lingering(Int)
        case closed
    }

    let server: HTTPServer
    let memory = ConnectionMemory()
    private(set) var peer: Peer?
    private(set) var context: ChannelHandlerContext?
    var phase = Phase.reading
    var reader: RequestReader
    var keepsAlive = true
    /// Bytes that are written but not flushed yet.
    var unflushed = 0
    /// The kernel's send buffer is full because the client does not read. No further request is read or handled until
    /// the client has read the response.
    var isBlocked = false
    private var stage: RequestReader.Stage
    private var deadline: NIODeadline?
    private var writeDeadline: NIODeadline?
    private var isReadPending = false
    private var isInTurn = false
    /// The age of the connection: a larger number is younger.
    let number: UInt64
    private static let counter = Atomic<UInt64>(0)
    /// How many bytes a client may send while an earlier request is being handled.
    private static let maxPipelined = 128 * 1_024
    /// After an error response: for how long and how many bytes the client's further input is discarded.
    private static let lingerTimeout = TimeAmount.seconds(2)
    private static let maxLingering = 4 << 20

    var registry: ConnectionRegistry { server.registry }

    init(server: HTTPServer) {
        self.server = server
        reader = RequestReader(limits: server.limits)
        stage = server.limits.isSingleRequest ? .head : .none
        number = HTTPConnection.counter.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// True if no complete request is being handled. Such a connection may be closed to make room for another.
    var isIdle: Bool {
        switch phase {
        case .reading, .lingering: true
        case .answering, .closing, .closed: false
        }
    }

    /// True if ``check(at:)`` has a deadline to check.
    var hasDeadline: Bool { deadline != nil || writeDeadline != nil }

    // MARK: Life

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        guard let peer = Peer(of: context.channel), server.accepts(peer), registry.admit(self)
        else { return context.close(promise: nil) }
        self.peer = peer
        // On a single-request listener a client must send its request before the deadline.
        if server.limits.isSingleRequest { startDeadline() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .answering(let exchange) = phase { exchange?.clientLeft() }
        phase = .closed
        registry.remove(self)
        self.context = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// Closes without a response.
    func drop() {
        registry.remove(self)
        context?.close(promise: nil)
    }

    /// Closes. A last response that is being sent is still completed.
    func end() {
        switch phase {
        case .reading, .answering: drop()
        case .closing, .lingering, .closed: break
        }
    }

    /// Closes the connection, or responds 408, if a deadline has passed.
    func check(at now: NIODeadline) {
        if let writeDeadline, writeDeadline < now { return drop() }
        guard let deadline, deadline < now else { return }
        self.deadline = nil
        switch phase {
        case .reading:
            refuse(408)
            turn()
        case .lingering: drop()
        case .answering, .closing, .closed: break
        }
    }

    private func startDeadline() {
        deadline = .now() + server.limits.requestTimeout.amount
        registry.watch()
    }

    // MARK: Reading

    func read(context: ChannelHandlerContext) {
        if holdsReads { isReadPending = true } else { context.read() }
    }

    /// True if the client has sent too much ahead. Further bytes then stay in the kernel's buffer instead of our
    /// memory.
    private var holdsReads: Bool {
        guard reader.waitingBytes > HTTPConnection.maxPipelined else { return false }
        if case .answering = phase { return true }
        return isBlocked
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard peer != nil else { return }
        let received = unwrapInboundIn(data)
        switch phase {
        case .reading, .answering:
            reader.append(received)
            turn()
        case .lingering(let remaining):
            phase = .lingering(remaining - received.readableBytes)
            if remaining < received.readableBytes { drop() }
        case .closing, .closed: break
        }
    }

    // MARK: Turns

    /// Handles complete requests while there are any, flushes the responses, and closes if the last response is done.
    func turn() {
        guard !isInTurn else { return }
        isInTurn = true
        defer { isInTurn = false }
        taking: while case .reading = phase, !isBlocked {
            switch reader.next() {
            case .request(let head, let body):
                deadline = nil
                stage = .none
                answer(head, body)
            case .expectsContinue: sendContinue()
            case .refusal(let status): refuse(status)
            case .incomplete:
                noteStage()
                break taking
            }
        }
        flush()
        guard !isBlocked else { return }
        if case .closing = phase {
            context?.close(promise: nil)
        } else if isReadPending, !holdsReads {
            isReadPending = false
            context?.read()
        }
    }

    /// Starts or clears the deadline when the request's stage changes; head and body have one deadline each. A request
    /// that arrives complete at once never reads the clock.
    private func noteStage() {
        // On a single-request listener the deadline runs since the connection was accepted.
        let reached = server.limits.isSingleRequest && reader.stage == .none ? .head : reader.stage
        guard reached != stage else { return }
        stage = reached
        if reached == .none { deadline = nil } else { startDeadline() }
    }

    /// Discards what the client still sends, see ``Phase/lingering(_:)``.
    func linger() {
        guard let context else { return }
        phase = .lingering(HTTPConnection.maxLingering)
        deadline = .now() + HTTPConnection.lingerTimeout
        registry.watch()
        reader = RequestReader(limits: server.limits)
        // Shuts down the output after the pending bytes, so that the client sees the end of the response.
        context.close(mode: .output, promise: nil)
    }

    // MARK: Writing

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard isBlocked, context.channel.isWritable else { return }
        isBlocked = false
        writeDeadline = nil
        turn()
    }

    /// Flushes what was written. The channel is writable only when the kernel has accepted every byte, see `tune(_:)`.
    func flush() {
        guard unflushed > 0, let context else { return }
        unflushed = 0
        context.flush()
        if case .closed = phase { return }
        guard !context.channel.isWritable else { return }
        isBlocked = true
        writeDeadline = .now() + server.limits.writeTimeout.amount
        registry.watch()
    }
}

extension Duration {
    /// The duration as the event loop's type.
    fileprivate var amount: TimeAmount {
        .nanoseconds(components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000)
    }
}
