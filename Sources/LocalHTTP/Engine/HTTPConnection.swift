internal import Glibc

/// One connection. Requests are handled one at a time, in the order of their arrival. This file has the connection's life
/// and its turns; HTTPConnection+Input and HTTPConnection+Responses have its two sides.
///
/// Whatever happens to a connection ends with ``turn()``, the only function that advances it. So no function sees a
/// half-finished step. A connection that is answered at once is closed within its first turn and never watched.
///
/// Used on the loop's thread only, hence `@unchecked Sendable`. An object serves one client after another: whoever keeps
/// one beyond a turn checks that it is still the same client's (the exchange, the generation of the registration, the
/// deadlines).
///
/// In release builds the variables that every request changes are not checked for overlapping accesses at run time, which
/// would cost a quarter of the time outside the kernel. Debug builds check them, and so do the tests.
final class HTTPConnection: @unchecked Sendable {
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

    let loop: EventLoop
    private(set) var server: ConnectionRules
    /// Of the listener; nil without one.
    private(set) var processes: KnownProcesses?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var socket: Descriptor?
    /// The socket's number; -1 once it is closed.
    private(set) var number: Int32 = -1
    private(set) var peer = Peer.local(uid: .max, pid: 0)
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var memory = ConnectionMemory()
    var phase = Phase.closed
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var reader: RequestReader
    var keepsAlive = true
    /// There may be input that was not read yet.
    var hasInput = false
    /// The last read got less than there was room for.
    var wasShort = false
    /// The kernel has reported the end of the input. It is behind the bytes that were not read yet.
    var mustReadEnd = false
    /// The output is to be shut down after the pending bytes, so that the client sees the end of the response.
    var endsOutput = false
    /// Bytes that the kernel has not accepted yet, because the client does not read. No further request is handled until
    /// it has.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var unsent = UnsentBytes()
    /// Called when the piece of a streamed response is sent that is being sent, or when the client has disconnected.
    var streamWrite: (@Sendable (Bool) -> Void)?
    private var stage = RequestReader.Stage.none
    /// For the request that is being received, or for lingering.
    var deadline: Int64?
    /// For the response that the client does not read.
    var writeDeadline: Int64?
    /// The token of its events; nil if it is not watched.
    private var token: UInt64?
    private var isInTurn = false
    private var isPostponed = false

    /// Its place in ``ConnectionRegistry``.
    var older: HTTPConnection?
    var younger: HTTPConnection?
    /// Its place in ``DeadlineWheel``.
    var deadlinePlace: (tick: Int64, index: Int)?
    /// A larger number is younger.
    private(set) var age: UInt64 = 0

    /// How many times a connection reads in a turn, and how many requests are handled in one, before the others have
    /// theirs.
    private static let readsPerTurn = 16
    private static let requestsPerTurn = 64

    init(loop: EventLoop) {
        self.loop = loop
        server = .nobody
        reader = RequestReader(limits: ConnectionRules.nobody.limits)
    }

    /// True if no complete request is being handled. Such a connection may be closed to make room for another, at last one
    /// whose response is still being sent.
    var isIdle: Bool {
        switch phase {
        case .reading, .lingering: true
        case .answering, .closing, .closed: false
        }
    }

    var isBlocked: Bool { !unsent.isEmpty }

    // MARK: Life

    /// Serves a client.
    func open(
        _ socket: consuming Descriptor, _ peer: Peer, _ server: ConnectionRules, _ processes: KnownProcesses? = nil
    ) {
        number = socket.number
        self.socket = consume socket
        self.peer = peer
        self.server = server
        self.processes = processes
        phase = .reading
        guard server.admit(self) else {
            closeSocket()
            return
        }
        reader = RequestReader(limits: server.limits, cache: server.heads)
        stage = .none
        keepsAlive = true
        (hasInput, wasShort) = (true, false)
        mustReadEnd = false
        endsOutput = false
        (deadline, writeDeadline) = (nil, nil)
        age = loop.nextAge()
        // On a single-request listener a client must send its request before the deadline.
        if server.limits.isSingleRequest {
            stage = .head
            startDeadline()
        }
        turn()
    }

    /// Closes without a response.
    func drop() {
        guard number >= 0 else { return }
        server.registry.remove(self)
        if case .answering(let exchange) = phase { exchange?.clientLeft() }
        streamWrite.take()?(false)
        unsent = UnsentBytes()
        server.noteSent()
        reader.discard()
        reader.release(to: &loop.spare)
        closeSocket()
    }

    private func closeSocket() {
        if token != nil { loop.forget(number) }
        if deadlinePlace != nil { loop.unschedule(self) }
        token = nil
        phase = .closed
        (deadline, writeDeadline) = (nil, nil)
        number = -1
        socket = nil
        server = .nobody
        processes = nil
        if isKnownUniquelyReferenced(&memory) { memory.value = nil } else { memory = ConnectionMemory() }
        loop.retire(self)
    }

    /// Closes. A last response that is being sent is still completed.
    func end() {
        switch phase {
        // The response before is still being sent.
        case .reading where isBlocked:
            phase = .closing
            reader.discard()
        case .reading, .answering: drop()
        case .closing, .lingering, .closed: break
        }
    }

    // MARK: Events

    /// What the kernel reports of the socket.
    func handle(_ events: Poller.Events) {
        if !events.isDisjoint(with: [.input, .inputEnd, .hangUp]) { hasInput = true }
        if !events.isDisjoint(with: [.inputEnd, .hangUp]) { mustReadEnd = true }
        if isBlocked, !events.isDisjoint(with: [.output, .hangUp]) { sendRest() }
        // The end of the input is noticed even while nothing is read.
        if number >= 0, holdsReads, mustReadEnd { inputEnded() }
        turn()
    }

    /// The others have had their turn.
    func continueReading() {
        isPostponed = false
        turn()
    }

    // MARK: Turns

    /// Reads and handles complete requests while there are any, sends the responses, and closes if the last response is
    /// done.
    func turn() {
        guard !isInTurn, number >= 0 else { return }
        isInTurn = true
        defer { isInTurn = false }
        var reads = 0
        var requests = HTTPConnection.requestsPerTurn
        while true {
            takeRequests(&requests)
            flush()
            guard number >= 0 else { return }
            if !isBlocked {
                if case .closing = phase { return drop() }
                if endsOutput {
                    endsOutput = false
                    shutdown(number, Int32(SHUT_WR))
                }
            }
            guard requests == 0 || (hasInput && !holdsReads) else { break }
            guard requests > 0, reads < HTTPConnection.readsPerTurn else {
                if !isPostponed { loop.postpone(self) }
                isPostponed = true
                break
            }
            reads += 1
            receive()
            guard number >= 0 else { return }
        }
        // No further event reports the end that is behind what is not read.
        if holdsReads, mustReadEnd { inputEnded() }
        guard number >= 0 else { return }
        reader.release(to: &loop.spare)
        watch()
    }

    /// Handles the complete requests that have arrived, at most so many.
    private func takeRequests(_ left: inout Int) {
        while case .reading = phase, !isBlocked, left > 0 {
            switch reader.next() {
            case .request(let head, let body):
                left -= 1
                deadline = nil
                stage = .none
                answer(head, body)
            case .expectsContinue: sendContinue()
            case .refusal(let status): refuse(status)
            case .incomplete:
                // Bytes with a descriptor, and urgent ones, end a read early. Behind them may be the rest, which the kernel
                // does not report again.
                if wasShort, reader.stage != .none { hasInput = true }
                wasShort = false
                return noteStage()
            }
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

    /// Watches the socket from its second turn on: most connections do not have one.
    private func watch() {
        guard token == nil else { return }
        token = loop.register(self, number, isBlocked ? HTTPConnection.withOutput : HTTPConnection.inputOnly)
        if token == nil { drop() }
    }

    /// Whether the socket is watched for output as well. If it always were, each response that a client takes would be
    /// reported.
    func watchOutput(_ isWanted: Bool) {
        guard let token else { return }
        loop.change(number, isWanted ? HTTPConnection.withOutput : HTTPConnection.inputOnly, token: token)
    }

    private static let inputOnly: Poller.Events = [.input, .inputEnd, .edges]
    private static let withOutput: Poller.Events = [.input, .inputEnd, .output, .edges]
}
