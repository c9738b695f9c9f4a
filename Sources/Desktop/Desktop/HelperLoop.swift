internal import Glibc
internal import RingbackBase

/// The helper's main loop. It receives requests, runs the configured command of each or passes it to ``BusRequests``,
/// and sends the responses, all with one `poll`. When the daemon's end of the socket closes, all running commands are
/// killed and the loop ends.
struct HelperLoop {
    /// The maximum size of a request in bytes. The largest one contains a link.
    static let maxRequest = Application.maxURL + 4_096
    /// The maximum number of commands at the same time. More would be an error of the daemon; each may show a prompt
    /// for a passphrase.
    static let maxCommands = 16

    private let socket: Int32
    private let command: (String) -> [String]?
    private let application: (String) -> [String]?
    private let environment: [String]
    private let applicationEnvironment: [String]
    private let bounds: RunningCommand.Bounds
    private let places: BusRequests.Places
    /// Created with the first request that needs a bus.
    private var presenter: BusRequests?
    /// The request whose secret is the next frame.
    private var awaitsSecret: (request: JSON, id: Int)?
    private var reader = FrameReader(limit: maxRequest)
    private var output: [UInt8] = []
    private var running: [RunningCommand] = []
    /// Killed, but not reaped yet.
    private var unreaped: [pid_t] = []

    init(
        socket: Int32, environment: [String], bounds: RunningCommand.Bounds = .init(),
        places: BusRequests.Places = .init(), applicationEnvironment: [String]? = nil,
        application: @escaping (String) -> [String]? = { _ in nil }, command: @escaping (String) -> [String]?
    ) {
        self.application = application
        self.applicationEnvironment = applicationEnvironment ?? environment
        self.places = places
        self.socket = socket
        self.command = command
        self.environment = environment
        self.bounds = bounds
    }

    var hasUsedBus: Bool { presenter != nil }

    /// Runs until the socket is closed.
    mutating func run() {
        setNonBlocking(socket)
        while true {
            var waiting = [pollfd(fd: socket, events: Int16(output.isEmpty ? POLLIN : POLLIN | POLLOUT), revents: 0)]
            waiting += running.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            if let presenter { waiting.append(presenter.wakeup.interest) }
            _ = unsafe poll(&waiting, nfds_t(waiting.count), patience)
            guard waiting[0].revents == 0 || takeRequests() else { break }
            serveCommands()
            serveBus()
            unreaped.removeAll { process in
                var status: Int32 = 0
                return unsafe waitpid(process, &status, WNOHANG) != 0
            }
            guard sendResponses() else { break }
        }
        for index in running.indices { _ = running[index].abandon("") }
        presenter?.endWatches()
        erase(&output)
        close(socket)
    }

    /// The poll timeout in milliseconds; -1 for none. Needed because the end of a process causes no event in `poll`.
    private var patience: Int32 {
        var shortest: Duration? = unreaped.isEmpty ? nil : .milliseconds(100)
        for command in running {
            let next = min(command.nextCheck, max(.zero, SuspendingClock.now.duration(to: command.deadline)))
            shortest = min(shortest ?? next, next)
        }
        guard let shortest else { return -1 }
        return Int32(shortest / .milliseconds(1)) + 1
    }

    /// False when the daemon has closed the socket or violates the protocol.
    private mutating func takeRequests() -> Bool {
        var buffer = [UInt8](repeating: 0, count: HelperLoop.maxRequest)
        defer { erase(&buffer) }
        let count = unsafe recv(socket, &buffer, buffer.count, 0)
        if count < 0 {
            let code = errno
            return code == EAGAIN || code == EINTR
        }
        guard count > 0 else { return false }
        reader.append(buffer[0..<count])
        do {
            while var frame = try reader.next() {
                defer { erase(&frame) }
                if let (request, id) = awaitsSecret {
                    awaitsSecret = nil
                    startBusWork(request, id: id, secret: Secret(bytes: frame))
                    continue
                }
                guard let request = try? JSON(parsing: frame), let id = request["id"]?.integer else { return false }
                if request["secret"]?.bool == true { awaitsSecret = (request, id) } else { start(request, id: id) }
            }
        } catch {
            return false
        }
        return true
    }

    private mutating func start(_ request: JSON, id: Int) {
        if request["do"]?.string != "client_secret" { return startBusWork(request, id: id, secret: nil) }
        guard let account = request["account"]?.string else {
            return answer(id, .failure("is not what was asked for"))
        }
        guard let words = command(account), !words.isEmpty else {
            return answer(id, .failure("is not in the configuration of account '\(account)'"))
        }
        guard running.count < HelperLoop.maxCommands else {
            return answer(id, .failure("was not started: \(HelperLoop.maxCommands) commands run already"))
        }
        do throws(Spawn.Failure) {
            running.append(
                try RunningCommand(request: id, command: words, environment: environment, bounds: bounds)
            )
        } catch {
            answer(id, .failure("could not be started: \(reason(error.code))"))
        }
    }

    private mutating func startBusWork(_ request: JSON, id: Int, secret: Secret?) {
        let verb = request["do"]?.string ?? ""
        guard HelperLoop.busVerbs.contains(verb) else { return answer(id, .failure("is not what was asked for")) }
        let presenter: BusRequests
        do throws(Spawn.Failure) {
            if let open = self.presenter { presenter = open } else { presenter = try BusRequests(places) }
        } catch {
            return answer(id, .failure(.failed(reason: "the helper could not open a socket: \(reason(error.code))")))
        }
        self.presenter = presenter
        switch verb {
        case "watch":
            guard let event = request["event"]?.string.flatMap({ BusEvent(rawValue: $0) }) else {
                return answer(id, .failure("is not what was asked for"))
            }
            presenter.watch(event)
            answer(id, .success((JSONObject(), nil)))
        case "secret_service": presenter.converse(request, id: id, secret: secret)
        case "notify", "close_notice": presenter.notify(request, id: id)
        default: startProgram(request, id: id, url: secret?.revealed() ?? "", presenter)
        }
    }

    private static let busVerbs: Set<String> = [
        "watch", "secret_service", "notify", "close_notice", "start_application", "open_page",
    ]

    /// The daemon names a scheme, and the configuration names the program. The desktop's opener gets web pages only.
    private mutating func startProgram(_ request: JSON, id: Int, url: String, _ presenter: BusRequests) {
        let program: Application?
        if request["do"]?.string == "open_page" {
            program = Application(page: url, activationToken: request["activation_token"]?.string)
        } else {
            let scheme = request["scheme"]?.string ?? ""
            guard let words = application(scheme), !words.isEmpty else {
                return answer(id, .failure("is not in the configuration of scheme '\(scheme)'"))
            }
            program = Application(scheme: scheme, command: words, url: url)
        }
        guard let program else { return answer(id, .failure("was not started: the URL is not valid for this scheme")) }
        presenter.start(program, environment: applicationEnvironment, id: id)
    }

    private mutating func serveBus() {
        guard let (outcomes, events, notices) = presenter?.take() else { return }
        for (id, outcome) in outcomes { answer(id, outcome) }
        for event in events {
            appendFrame((["event": .string(event.rawValue)] as JSON).serialized(), to: &output)
        }
        for event in notices { appendFrame(JSON.object(event.members).serialized(), to: &output) }
    }

    private mutating func serveCommands() {
        for index in running.indices.reversed() {
            guard let end = running[index].readOutput() ?? running[index].look() else { continue }
            let command = running.remove(at: index)
            if !command.isReaped { unreaped.append(command.process) }
            answer(command.request, end)
        }
    }

    private mutating func answer(_ id: Int, _ end: RunningCommand.End) {
        switch end {
        case .secret(var secret):
            output.reserveCapacity(output.count + secret.count + 64)
            let line: JSON = ["id": .integer(id), "ok": true, "secret": true]
            appendFrame(line.serialized(), to: &output)
            appendFrame(secret, to: &output)
            erase(&secret)
        case .failure(let reason):
            let text: JSON = ["id": .integer(id), "ok": false, "reason": .string(reason)]
            appendFrame(text.serialized(), to: &output)
        }
    }

    private mutating func answer(_ id: Int, _ outcome: BusRequests.Outcome) {
        let isGood: Bool
        var line: JSONObject
        var secret: Secret?
        switch outcome {
        case .success(let result):
            isGood = true
            line = result.members
            secret = result.secret
        case .failure(let error):
            isGood = false
            line = error.members
        }
        line["id"] = .integer(id)
        line["ok"] = .bool(isGood)
        guard let secret else { return appendFrame(JSON.object(line).serialized(), to: &output) }
        line["secret"] = true
        var bytes = secret.revealedBytes()
        defer { erase(&bytes) }
        output.reserveCapacity(output.count + bytes.count + 256)
        appendFrame(JSON.object(line).serialized(), to: &output)
        appendFrame(bytes, to: &output)
    }

    /// False when the daemon has closed the socket.
    private mutating func sendResponses() -> Bool {
        while !output.isEmpty {
            let count = unsafe send(socket, output, output.count, Int32(MSG_NOSIGNAL))
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                return code == EAGAIN
            }
            let rest = Array(output[count...])
            erase(&output)
            output = rest
        }
        return true
    }
}

/// The framing of messages between daemon and helper: four bytes of length, big-endian, then that many bytes.
///
/// A length above the reader's limit ends the connection, so that neither process can make the other use unlimited
/// memory.
struct FrameReader {
    /// The announced length exceeds the limit.
    struct TooLong: Error {}

    private let limit: Int
    private var bytes: [UInt8] = []

    init(limit: Int) {
        self.limit = limit
    }

    mutating func append(_ received: some Sequence<UInt8>) {
        bytes.append(contentsOf: received)
    }

    /// The next complete frame; nil if it is incomplete. The bytes that were taken are zeroed in the buffer, because
    /// they may be a secret.
    mutating func next() throws(TooLong) -> [UInt8]? {
        guard bytes.count >= 4 else { return nil }
        let length = bytes[0..<4].reduce(0) { $0 << 8 | Int($1) }
        guard length <= limit else { throw TooLong() }
        guard bytes.count >= 4 + length else { return nil }
        let frame = Array(bytes[4..<(4 + length)])
        let rest = Array(bytes[(4 + length)...])
        erase(&bytes)
        bytes = rest
        return frame
    }
}

/// Appends a frame to the output.
func appendFrame(_ content: some Collection<UInt8>, to output: inout [UInt8]) {
    let length = UInt32(content.count)
    output.append(contentsOf: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) })
    output.append(contentsOf: content)
}
