internal import Glibc
internal import RingbackBase
internal import Synchronization

/// One connection. Requests are handled one at a time, in the order of their arrival. Used on the loop's thread only.
///
/// Every event handler ends by calling ``turn()``, the only function that advances the connection. A handler therefore
/// never sees a half-finished step. If the only request of a connection gets its response at once, the connection is
/// closed within its first turn and its socket is never watched.
///
/// One object serves several clients, one after the other. Code that keeps a reference after a turn must check that the
/// object still serves the same client (by the exchange, the generation of the registration, or the deadlines).
///
/// In release builds no check that accesses do not overlap is made for variables that every request changes: it would
/// take a quarter of the time outside the kernel. It is on in debug builds and therefore in the tests.
final class HTTPConnection: @unchecked Sendable {
    enum Phase {
        case reading
        /// A request is being handled.
        case answering(Exchange?)
        /// The last response is being sent. The connection closes afterwards.
        case closing
        /// As ``closing``, while the client is still sending. Up to this many bytes are read and discarded: if the
        /// socket were closed with unread bytes, the kernel would reset the connection and the client could lose the
        /// response.
        case lingering(Int)
        case closed
    }

    let loop: EventLoop
    private(set) var server: ConnectionRules
    /// Of the listener that accepted it.
    private(set) var listener: UInt64?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var socket: Descriptor?
    /// -1 once the socket is closed.
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
    /// The last read returned fewer bytes than were asked for.
    var wasShort = false
    /// The kernel has reported the end of the input. Unread bytes may precede it.
    var mustReadEnd = false
    /// The sending side must be shut down after the pending bytes, so that the client sees the end of the response.
    var endsOutput = false
    /// Not accepted by the kernel, because the client does not read. No further request is handled until it has.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var unsent = UnsentBytes()
    /// With true when the current piece of a streamed response is sent, with false if the client disconnects.
    var streamWrite: (@Sendable (Bool) -> Void)?
    private var stage = RequestReader.Stage.none
    /// For the request that is being received, or for lingering.
    var deadline: Int64?
    /// For sending the unsent bytes.
    var writeDeadline: Int64?
    /// Of the socket's events; nil if it is not watched.
    private var token: UInt64?
    private var isInTurn = false
    private var isPostponed = false
    /// Its place in ``ConnectionRegistry``.
    var older: HTTPConnection?
    var younger: HTTPConnection?
    /// Its place in ``DeadlineWheel``.
    var deadlinePlace: (tick: Int64, index: Int)?
    /// Larger for younger connections.
    private(set) var age: UInt64 = 0
    /// Before the other connections have a turn.
    private static let readsPerTurn = 16
    private static let requestsPerTurn = 64

    init(loop: EventLoop) {
        self.loop = loop
        server = .nobody
        reader = RequestReader(limits: ConnectionRules.nobody.limits)
    }

    /// No complete request is being handled. Such a connection may be closed to make room for another one, one whose
    /// response is still being sent last.
    var isIdle: Bool {
        switch phase {
        // What was made for as long as a connection lasts keeps it from giving way.
        case .reading: !memory.hasEndings
        case .lingering, .closing: true
        case .answering, .closed: false
        }
    }

    var isBlocked: Bool { !unsent.isEmpty }

    func open(_ socket: consuming Descriptor, _ peer: Peer, _ server: ConnectionRules, listener: UInt64? = nil) {
        number = socket.number
        self.socket = consume socket
        self.peer = peer
        self.server = server
        self.listener = listener
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

    /// Unsent bytes are lost.
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
        listener = nil
        let isReused = isKnownUniquelyReferenced(&memory)
        memory.end(isReused: isReused)
        if !isReused { memory = ConnectionMemory() }
        loop.retire(self)
    }

    /// If the last response is being sent, it is completed first.
    func end() {
        switch phase {
        // The previous response is still being sent.
        case .reading where isBlocked:
            phase = .closing
            reader.discard()
        case .reading, .answering: drop()
        case .closing, .lingering, .closed: break
        }
    }

    func handle(_ events: Poller.Events) {
        if !events.isDisjoint(with: [.input, .inputEnd, .hangUp]) { hasInput = true }
        if !events.isDisjoint(with: [.inputEnd, .hangUp]) { mustReadEnd = true }
        if isBlocked, !events.isDisjoint(with: [.output, .hangUp]) { sendRest() }
        // The end of the input is handled even while reading is paused.
        if number >= 0, holdsReads, mustReadEnd { inputEnded() }
        turn()
    }

    /// Called after the other connections have had a turn.
    func continueReading() {
        isPostponed = false
        turn()
    }

    /// Reads and handles complete requests while there are any, sends the responses, and closes the connection after
    /// the last.
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
        // The kernel has already reported the end of the input and does not report it again.
        if holdsReads, mustReadEnd { inputEnded() }
        guard number >= 0 else { return }
        reader.release(to: &loop.spare)
        watch()
    }

    /// At most `left`, which is reduced by the number of requests.
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
                // A read also ends early at urgent bytes and at bytes that carry a descriptor. The kernel does not
                // report the bytes after them again.
                if wasShort, reader.stage != .none { hasInput = true }
                wasShort = false
                return noteStage()
            }
        }
    }

    /// Head and body have one deadline each. If a whole request arrives at once, none is set and the clock is not read.
    private func noteStage() {
        // On a single-request listener the deadline starts when the connection is accepted.
        let reached = server.limits.isSingleRequest && reader.stage == .none ? .head : reader.stage
        guard reached != stage else { return }
        stage = reached
        if reached == .none { deadline = nil } else { startDeadline() }
    }

    /// At the end of a turn, because most connections are closed within their first turn and need not be watched.
    private func watch() {
        guard token == nil else { return }
        token = loop.register(self, number, isBlocked ? HTTPConnection.withOutput : HTTPConnection.inputOnly)
        if token == nil { drop() }
    }

    /// Not for output all the time: the kernel would then report an event for each response that the client reads.
    func watchOutput(_ isWanted: Bool) {
        guard let token else { return }
        loop.change(number, isWanted ? HTTPConnection.withOutput : HTTPConnection.inputOnly, token: token)
    }

    private static let inputOnly: Poller.Events = [.input, .inputEnd, .edges]
    private static let withOutput: Poller.Events = [.input, .inputEnd, .output, .edges]
}

/// For receiving a request, for sending a response, and for lingering.
extension HTTPConnection {
    /// In nanoseconds, and the bytes that a lingering connection discards.
    private static let lingerTimeout: Int64 = 2_000_000_000
    private static let maxLingering = 4 << 20

    /// Closes the connection, or responds 408.
    func check(at now: Int64) {
        if let writeDeadline, writeDeadline < now { return drop() }
        if let deadline, deadline < now {
            self.deadline = nil
            switch phase {
            case .reading:
                refuse(408)
                turn()
            // While the response is still being sent, only `writeDeadline` counts.
            case .lingering where isBlocked: startDeadline(in: HTTPConnection.lingerTimeout)
            case .lingering: return drop()
            case .answering, .closing, .closed: break
            }
        }
        let next = min(deadline ?? .max, writeDeadline ?? .max)
        if next < .max { loop.schedule(self, at: next) }
    }

    func startDeadline() {
        startDeadline(in: server.limits.requestTimeout.nanoseconds)
    }

    private func startDeadline(in time: Int64) {
        let due = loop.now + time
        deadline = due
        loop.schedule(self, at: due)
    }

    /// Called when the kernel has not accepted all bytes of a response.
    func startWriteDeadline() {
        let due = loop.now + server.limits.writeTimeout.nanoseconds
        writeDeadline = due
        loop.schedule(self, at: due)
    }

    func clearWriteDeadline() { writeDeadline = nil }

    /// See ``Phase/lingering(_:)``.
    func linger() {
        // The write may have found that the client has disconnected.
        guard number >= 0 else { return }
        phase = .lingering(HTTPConnection.maxLingering)
        startDeadline(in: HTTPConnection.lingerTimeout)
        reader.discard()
        endsOutput = true
    }
}

extension Duration {
    /// At most about 95 years, so that adding it to an instant does not overflow.
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return min(seconds, 3_000_000_000) * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}

/// The input side of a connection.
extension HTTPConnection {
    /// Bytes that a client may send while an earlier request is being handled.
    private static let maxPipelined = 128 * 1_024

    /// The client has sent too many bytes after the current request. Further bytes stay in the kernel's buffer.
    var holdsReads: Bool {
        guard reader.waitingBytes > HTTPConnection.maxPipelined else { return false }
        if case .answering = phase { return true }
        return isBlocked
    }

    /// Reads from the socket once.
    func receive() {
        let socket = number
        let (count, isFull) = unsafe reader.receive(spare: &loop.spare) { room in
            let count = unsafe recv(socket, room.baseAddress, room.count, 0)
            return count < 0 ? -Int(errno) : count
        }
        guard count > 0 else {
            switch Int32(-count) {
            case 0: inputEnded()
            case EAGAIN: hasInput = false
            case EINTR: break
            default: drop()
            }
            return
        }
        // If there were fewer bytes than asked for, no more are there. The kernel reports later ones as a new edge.
        hasInput = isFull || mustReadEnd
        wasShort = !hasInput
        switch phase {
        case .reading, .answering: break
        case .lingering(let remaining):
            reader.discard()
            phase = .lingering(remaining - count)
            if remaining < count { drop() }
        case .closing, .closed: reader.discard()
        }
    }

    /// Called when the client has closed the connection or its sending side.
    func inputEnded() {
        (hasInput, mustReadEnd) = (false, false)
        switch phase {
        case .closed: break
        case .reading, .closing, .lingering:
            // The client may still read the rest of a response.
            guard isBlocked else { return drop() }
            phase = .closing
            reader.discard()
        case .answering: drop()
        }
    }
}

/// One request whose handler is running, and the connection to which its response is written.
final class Exchange: Sendable {
    let request: ServerRequest
    let connection: HTTPConnection
    private let progress = Mutex(Progress())

    private struct Progress {
        var hasClientLeft = false
        var work: Task<Void, Never>?
    }

    init(request: ServerRequest, connection: HTTPConnection) {
        self.request = request
        self.connection = connection
    }

    /// The handler is cancelled if the caller is cancelled or the client disconnects.
    func perform(_ handler: @escaping @Sendable (ServerRequest) async -> ServerResponse) async {
        let work = Task { await send(handler(request)) }
        let isTooLate = progress.withLock { progress in
            progress.work = work
            return progress.hasClientLeft
        }
        if isTooLate { work.cancel() }
        await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        progress.withLock { $0.work = nil }
    }

    func clientLeft() {
        let work = progress.withLock { progress in
            progress.hasClientLeft = true
            return progress.work
        }
        // Outside the lock, because cancellation handlers may run here synchronously.
        work?.cancel()
    }

    private func send(_ response: ServerResponse) async {
        let isHead = request.method == "HEAD"
        onLoop { $0.send(response, of: $1, isHead: isHead) }
        guard case .stream(let stream) = response.body else { return }
        if !isHead {
            for await bytes in stream {
                guard await write(bytes), !Task.isCancelled else { break }
            }
        }
        onLoop { $0.finishStream(of: $1) }
    }

    private func onLoop(_ body: @escaping @Sendable (HTTPConnection, Exchange) -> Void) {
        connection.loop.execute { [self] in body(connection, self) }
    }

    /// True after the kernel has accepted the bytes, false if the client has disconnected.
    private func write(_ bytes: [UInt8]) async -> Bool {
        await withCheckedContinuation { written in
            onLoop { $0.writeStream(bytes, of: $1) { written.resume(returning: $0) } }
        }
    }
}
