internal import DesktopBus
internal import Dispatch
internal import Glibc
internal import Secrets
internal import StrictJSON

/// A response of the helper: the members of its line, and the secret that followed it.
struct HelperResponse: Sendable {
    var members: JSONObject
    var secret: Secret?
}

/// One helper process as seen by the daemon: the socket and the responses that are incomplete.
struct HelperProcess {
    /// The result of a request.
    typealias Answer = Result<HelperResponse, HelperError>

    let id: pid_t
    let socket: Int32
    /// Signals that there is something to read. Its cancellation closes the socket.
    var source: (any DispatchSourceRead)?
    private var reader = FrameReader(limit: RunningCommand.Bounds().maxOutput)
    /// The request whose secret is the next frame, and the members of its response.
    private var awaitsSecret: (request: Int, members: JSONObject)?

    /// Starts the executable with these arguments. Its descriptor ``Helper/descriptor`` is one end of a socket.
    static func start(_ executable: String, _ arguments: [String]) throws(HelperError) -> HelperProcess {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            let code = errno
            throw .notStarted(reason: reason(code))
        }
        defer { close(ends[1]) }
        // A process list must show the daemon's own name, not `/proc/self/exe`.
        let name = executable.hasPrefix("/proc/self/") ? CommandLine.arguments.first ?? executable : executable
        let spawn = Spawn(
            program: executable, arguments: [name] + arguments, environment: CleanEnvironment.current(forHelper: true),
            descriptor: ends[1], target: Helper.descriptor
        )
        do throws(Spawn.Failure) {
            return HelperProcess(id: try spawn.start(), socket: ends[0])
        } catch {
            close(ends[0])
            throw .notStarted(reason: reason(error.code))
        }
    }

    init(id: pid_t, socket: Int32) {
        self.id = id
        self.socket = socket
    }

    /// False if the process has ended or does not read any more: after a partial write the framing would be lost.
    func send(_ message: [UInt8]) -> Bool {
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        return unsafe Glibc.send(socket, message, message.count, flags) == message.count
    }

    /// What was received from the process.
    struct Arrivals {
        var answers: [(request: Int, answer: Answer)] = []
        var events: [BusEvent] = []
        var notices: [NoticeEvent] = []
        /// No more will come: the process has ended or violated the protocol.
        var isOver = false
    }

    /// Reads everything that is available.
    mutating func receive() -> Arrivals {
        var arrivals = Arrivals()
        var buffer = [UInt8](repeating: 0, count: 16_384)
        defer { erase(&buffer) }
        while true {
            let count = unsafe recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                arrivals.isOver = code != EAGAIN
                return arrivals
            }
            guard count > 0 else {
                arrivals.isOver = true
                return arrivals
            }
            reader.append(buffer[0..<count])
            do {
                while var frame = try reader.next() {
                    defer { erase(&frame) }
                    try read(frame, into: &arrivals)
                }
            } catch {
                arrivals.isOver = true
                return arrivals
            }
        }
    }

    private struct BrokenProtocol: Error {}

    private mutating func read(_ frame: [UInt8], into arrivals: inout Arrivals) throws {
        if let (request, members) = awaitsSecret {
            awaitsSecret = nil
            let answer = HelperResponse(members: members, secret: Secret(bytes: frame))
            return arrivals.answers.append((request, .success(answer)))
        }
        guard let line = try JSON(parsing: frame).object else { throw BrokenProtocol() }
        if line["event"]?.string == NoticeEvent.event {
            guard let event = NoticeEvent(members: line) else { throw BrokenProtocol() }
            return arrivals.notices.append(event)
        }
        if let name = line["event"]?.string {
            guard let event = BusEvent(rawValue: name) else { throw BrokenProtocol() }
            return arrivals.events.append(event)
        }
        guard let request = line["id"]?.integer, let isGood = line["ok"]?.bool else { throw BrokenProtocol() }
        guard isGood else {
            let error =
                SecretServiceError(members: line).map { HelperError.secretService($0) }
                ?? .commandFailed(reason: line["reason"]?.string ?? "failed")
            return arrivals.answers.append((request, .failure(error)))
        }
        if line["secret"]?.bool == true {
            awaitsSecret = (request, line)
        } else {
            arrivals.answers.append((request, .success(HelperResponse(members: line, secret: nil))))
        }
    }

    /// Closes the socket. A helper that works then kills its commands and ends.
    func hangUp() {
        if let source { source.cancel() } else { close(socket) }
    }

    /// Closes the socket and kills the process, which has violated the protocol or hangs.
    func end() {
        hangUp()
        kill(id, SIGKILL)
    }

    /// Waits for the end of a killed process. Blocks for a moment.
    static func reap(_ id: pid_t) {
        var status: Int32 = 0
        while unsafe waitpid(id, &status, 0) < 0, errno == EINTR {}
    }
}
