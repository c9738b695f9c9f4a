internal import HTTPMessages
internal import NIOCore
internal import Synchronization

/// One connection, on the event loop: one request at a time, in the order they came. This file is its life and its
/// input side; the answers are in HTTPConnection+Answers.
///
/// Whatever happens to a connection ends in ``turn()``, the only place where it goes on: no event can find it half-way.
final class HTTPConnection: ChannelInboundHandler, ChannelOutboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case reading
        /// A request is being answered.
        case answering(Exchange?)
        /// The last answer is on its way; then the connection closes.
        case closing
        /// The last answer is on its way while the client still sends. So many bytes more are thrown away, so that the
        /// client can read the answer instead of a reset.
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
    /// Bytes that were written but not flushed.
    var unflushed = 0
    /// The client lets an answer stand: nothing more is read or answered until it has taken that one.
    var isBlocked = false
    private var stage: RequestReader.Stage
    private var deadline: NIODeadline?
    private var writeDeadline: NIODeadline?
    private var isReadPending = false
    private var isInTurn = false
    /// Orders connections by age.
    let number: UInt64
    private static let counter = Atomic<UInt64>(0)
    /// A client may send ahead this much while its request is answered.
    private static let maxPipelined = 128 * 1_024
    /// How long a client that was refused may go on sending, and how much.
    private static let lingerTimeout = TimeAmount.seconds(2)
    private static let maxLingering = 4 << 20

    var registry: ConnectionRegistry { server.registry }

    init(server: HTTPServer) {
        self.server = server
        reader = RequestReader(limits: server.limits)
        stage = server.limits.isSingleRequest ? .head : .none
        number = HTTPConnection.counter.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// No request is complete, and none is being answered: the connection may give way to another.
    var isIdle: Bool {
        switch phase {
        case .reading, .lingering: true
        case .answering, .closing, .closed: false
        }
    }

    /// True if ``check(at:)`` has something to watch.
    var hasDeadline: Bool { deadline != nil || writeDeadline != nil }

    // MARK: Life

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        guard let peer = Peer(of: context.channel), server.accepts(peer), registry.admit(self)
        else { return context.close(promise: nil) }
        self.peer = peer
        // Who is to send one request must not sit here without it.
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

    /// Closes without an answer.
    func drop() {
        registry.remove(self)
        context?.close(promise: nil)
    }

    /// Closes, but for a last answer that is on its way.
    func end() {
        switch phase {
        case .reading, .answering: drop()
        case .closing, .lingering, .closed: break
        }
    }

    /// Enforces the deadlines.
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

    /// A client that sends ahead without end waits in the kernel instead of filling our memory.
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

    /// Goes on: takes requests while there are any, sends what was answered, and closes if that was all.
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
            case .holdsBodyBack: tellToContinue()
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

    /// The head has a bound, and so has the body: no clock is asked about a request that comes whole.
    private func noteStage() {
        // Who is to send one request has been on the clock since it came.
        let reached = server.limits.isSingleRequest && reader.stage == .none ? .head : reader.stage
        guard reached != stage else { return }
        stage = reached
        if reached == .none { deadline = nil } else { startDeadline() }
    }

    /// Throws away what the client still sends; see ``Phase/lingering(_:)``.
    func linger() {
        guard let context else { return }
        phase = .lingering(HTTPConnection.maxLingering)
        deadline = .now() + HTTPConnection.lingerTimeout
        registry.watch()
        reader = RequestReader(limits: server.limits)
        // Behind what is still to be written: the client sees the end of the answer.
        context.close(mode: .output, promise: nil)
    }

    // MARK: Writing

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard isBlocked, context.channel.isWritable else { return }
        isBlocked = false
        writeDeadline = nil
        turn()
    }

    /// Sends what was written. The channel counts as writable when the kernel has taken every byte: see
    /// ``HTTPServer/listen(at:)``.
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
    /// For the event loop's clock.
    fileprivate var amount: TimeAmount {
        .nanoseconds(components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000)
    }
}
