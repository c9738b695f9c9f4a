import Glibc
import MCPBridge
import RingbackBase
import RingbackClient
import Terminal

/// The input and output of a bridge, on one thread: the client, and a connection to the relay for each request that is
/// under way. Two are kept for later requests.
final class BridgeLoop {
    private final class Exchange {
        let connection: SocketConnection
        var unsent: ArraySlice<UInt8>
        var reader = RelayReplyReader()

        init(_ connection: SocketConnection, _ bytes: [UInt8]) {
            self.connection = connection
            unsent = bytes[...]
        }
    }

    /// Bytes for a client that does not read: while there are more, nothing is taken from the servers.
    private static let window = 256 << 10
    private static let piece = 128 << 10

    private var bridge: Bridge
    /// Nil for a bridge that refuses everything.
    private let relay: RelayPlace?
    private let interruption: Interruption
    private let start = ContinuousClock.now
    private var exchanges: [Int: Exchange] = [:]
    private var idle: [SocketConnection] = []
    private var lines = JSONLines()
    private var isInputOver = false
    private var output = ClientOutput()
    private var isDone = false

    init(_ bridge: Bridge, _ relay: RelayPlace?, _ interruption: Interruption) {
        self.bridge = bridge
        self.relay = relay
        self.interruption = interruption
    }

    /// Runs until the client has ended its output or reads no more, or a signal asks for the end.
    func run() { while !isDone || output.isPending, wait(), output.flush() {} }

    private enum Source {
        case interruption
        case input
        case output
        case exchange(Int)
        case idle(Int32)
    }

    private func wait() -> Bool {
        var sources: [Source] = [.interruption]
        var entries = [pollfd(fd: interruption.descriptor, events: Int16(POLLIN), revents: 0)]
        if !isInputOver, backlog < JSONLines.limit {
            sources.append(.input)
            entries.append(pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0))
        }
        if output.isPending {
            sources.append(.output)
            entries.append(pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0))
        }
        let takesMore = output.count < BridgeLoop.window
        // poll(2) reports a closed connection at once, also if no event is requested. So a connection that is not read
        // now is left out.
        for (number, exchange) in exchanges where takesMore || !exchange.unsent.isEmpty {
            let events = (takesMore ? POLLIN : 0) | (exchange.unsent.isEmpty ? 0 : POLLOUT)
            sources.append(.exchange(number))
            entries.append(pollfd(fd: exchange.connection.descriptor, events: Int16(events), revents: 0))
        }
        for connection in idle {
            sources.append(.idle(connection.descriptor))
            entries.append(pollfd(fd: connection.descriptor, events: Int16(POLLIN), revents: 0))
        }
        let ready = unsafe poll(&entries, nfds_t(entries.count), milliseconds)
        if let deadline = bridge.deadline, deadline <= now { perform(bridge.handle(.time, at: now)) }
        guard ready > 0 else { return true }
        for (source, entry) in zip(sources, entries) where entry.revents != 0 {
            switch source {
            case .interruption: return false
            case .input: readInput()
            case .output: break
            case .exchange(let number): advance(number, takesMore: takesMore)
            // The relay says nothing over it, so it has ended.
            case .idle(let descriptor): idle.removeAll { $0.descriptor == descriptor }
            }
        }
        return true
    }

    private var now: Duration { ContinuousClock.now - start }

    private var milliseconds: Int32 {
        guard let deadline = bridge.deadline else { return -1 }
        return Int32(max(0, min((deadline - now) / .milliseconds(1), 60_000))) + 1
    }

    /// Bytes of the client's whole messages that the relay has not taken. What is there of the next one does not count:
    /// it could reach the limit only with more input.
    private var backlog: Int { exchanges.values.reduce(bridge.waitingBytes) { $0 + $1.unsent.count } }

    private func readInput() {
        var failure: Int32 = 0
        var count = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
            count = unsafe read(STDIN_FILENO, buffer.baseAddress, buffer.count)
            failure = errno
            initialized = max(0, count)
        }
        if count < 0, failure == EINTR || failure == EAGAIN { return }
        for piece in lines.append(bytes) { perform(bridge.handle(.line(piece), at: now)) }
        guard count <= 0 else { return }
        isInputOver = true
        if let piece = lines.finish() { perform(bridge.handle(.line(piece), at: now)) }
        perform(bridge.handle(.inputEnded, at: now))
    }

    private func advance(_ number: Int, takesMore: Bool) {
        guard let exchange = exchanges[number] else { return }
        if !exchange.unsent.isEmpty {
            // If the relay takes no more, reading shows what it said before.
            let count = exchange.connection.sendSome(exchange.unsent) ?? exchange.unsent.count
            exchange.unsent = exchange.unsent.dropFirst(count)
        }
        guard takesMore else { return }
        guard let bytes = exchange.connection.receiveSome(atMost: BridgeLoop.piece) else { return lose(number) }
        guard let replies = exchange.reader.append(bytes) else { return lose(number) }
        for reply in replies {
            guard exchanges[number] != nil else { return }
            if case .end = reply { keep(exchanges.removeValue(forKey: number)) }
            if case .refusal = reply { exchanges[number] = nil }
            perform(bridge.handle(.reply(number, reply), at: now))
        }
    }

    private func keep(_ exchange: Exchange?) {
        guard let exchange, exchange.unsent.isEmpty, idle.count < 2 else { return }
        idle.append(exchange.connection)
    }

    private func lose(_ number: Int) {
        exchanges[number] = nil
        perform(bridge.handle(.broke(number), at: now))
    }

    private func open(_ number: Int, _ request: RelayRequest, _ body: [UInt8]) {
        guard let relay else { return }
        do throws(RingbackError) {
            let kept = idle.popLast()
            let connection = if let kept { kept } else { try relay.connect() }
            let exchange = Exchange(connection, request.line + body)
            // What is small goes out now. If the relay has gone, reading shows it.
            exchange.unsent = exchange.unsent.dropFirst(connection.sendSome(exchange.unsent) ?? exchange.unsent.count)
            exchanges[number] = exchange
        } catch {
            let refusal = RelayRefusal(code: error.kind.rawValue, detail: error.detail)
            perform(bridge.handle(.reply(number, .refusal(refusal)), at: now))
        }
    }

    private func perform(_ actions: [Bridge.Action]) {
        for action in actions {
            switch action {
            case .open(let number, let request, let body): open(number, request, body)
            case .close(let number): exchanges[number] = nil
            case .write(let bytes): output.append(bytes)
            case .note(let sentence): Output.note("ringback: " + Sanitizer.line(sentence, limit: 16_384))
            case .exit: isDone = true
            }
        }
    }
}

/// What the client has not read yet. Writing never waits: a client that does not read must not keep its own messages
/// from being read.
struct ClientOutput {
    private enum Way {
        case socket
        /// A pipe that is open here once more, for this program alone: its writes do not wait.
        case ownPipe(Int32)
        case other
    }

    /// Bytes of a pipe's buffer for a client that takes much. Any program may have so many; the kernel's limit for all
    /// pipes of a user is 64 MiB.
    private static let pipeSize: Int32 = 256 << 10
    /// F_SETPIPE_SZ of <fcntl.h>, which the module does not show.
    private static let setPipeSize: Int32 = 1031

    private var bytes = ByteQueue()
    private var isPipeLarge = false
    private let way: Way

    init() {
        var status = stat()
        guard unsafe fstat(STDOUT_FILENO, &status) == 0 else {
            way = .other
            return
        }
        switch status.st_mode & S_IFMT {
        case S_IFSOCK: way = .socket
        case S_IFIFO:
            // The mode of standard output itself is not changed: other programs may have it too.
            let descriptor = unsafe open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            way = descriptor >= 0 ? .ownPipe(descriptor) : .other
        default: way = .other
        }
    }

    var count: Int { bytes.count }
    var isPending: Bool { !bytes.isEmpty }

    mutating func append(_ message: [UInt8]) { bytes.append(message) }

    /// Writes what the client takes now. False if it reads no more.
    mutating func flush() -> Bool {
        while isPending {
            guard let result = writeSome() else { return false }
            guard result > 0 else { return true }
            bytes.drop(result)
            if isPending { enlargePipe() }
        }
        return true
    }

    /// The pipe was full: with a larger one, both ends wait for each other less often.
    private mutating func enlargePipe() {
        guard !isPipeLarge, case .ownPipe(let descriptor) = way else { return }
        isPipeLarge = true
        _ = fcntl(descriptor, ClientOutput.setPipeSize, ClientOutput.pipeSize)
    }

    private func writeSome() -> Int? {
        let count = unsafe bytes.waiting.withUnsafeBytes { buffer in
            switch way {
            case .socket:
                unsafe send(STDOUT_FILENO, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            case .ownPipe(let descriptor): unsafe write(descriptor, buffer.baseAddress, buffer.count)
            case .other: unsafe ClientOutput.writeWhenReady(buffer)
            }
        }
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }

    /// A pipe that is ready takes PIPE_BUF bytes without a wait (pipe(7)).
    private static func writeWhenReady(_ buffer: UnsafeRawBufferPointer) -> Int {
        var entry = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        guard unsafe poll(&entry, 1, 0) > 0 else { return 0 }
        return unsafe write(STDOUT_FILENO, buffer.baseAddress, min(buffer.count, 4_096))
    }
}

/// Where `ringback-relay` listens, beside the daemon's socket. It is started when nobody listens there.
final class RelayPlace {
    private let daemon: String
    private let socket: String
    /// On an exposed socket the daemon starts the relay, on its own machine.
    private let isExposed: Bool

    init(daemon: String, isExposed: Bool = false) throws(RingbackError) {
        self.isExposed = isExposed
        // The relay has another working directory.
        guard let path = Path.absolute(daemon) else {
            throw RingbackError(.noDaemon, "The working directory was deleted, where the daemon's socket is: \(daemon)")
        }
        self.daemon = path
        socket = RelaySocket.path(beside: path)
    }

    func connect() throws(RingbackError) -> SocketConnection {
        let end = ContinuousClock.now + .seconds(5)
        var isStarted = false
        while true {
            do throws(RingbackError) {
                return try SocketConnection(unixPath: socket, deadline: end)
            } catch {
                guard error.kind == .noDaemon, ContinuousClock.now < end else { throw error }
            }
            if !isExposed, !isStarted {
                try start(until: end)
                isStarted = true
            } else {
                // Another one is being started, or is about to end.
                poll(nil, 0, 20)
                isStarted = false
            }
        }
    }

    /// Starts it and waits until it listens, or has ended because another one does.
    private func start(until end: ContinuousClock.Instant) throws(RingbackError) {
        let pipe = try Pipe()
        let words = [Programs.path("ringback-relay"), "--socket", socket, "--daemon", daemon]
        guard let pid = Subprocess.start(words, output: .descriptor(pipe.writeEnd), errors: .nothing) else {
            throw RelayProcess.missing
        }
        _ = Subprocess.forget(pid)
        pipe.closeWriteEnd()
        _ = pipe.read(until: end)
    }
}
