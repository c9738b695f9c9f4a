internal import CLinux
internal import Glibc
internal import RingbackBase

/// The helper's main loop. It receives requests, runs the configured command of each or passes it to ``BusRequests``,
/// and sends the responses, all with one `poll`. When the daemon's end of the socket closes, all running commands are
/// killed and the loop ends.
struct HelperLoop {
    /// The maximum size of a request in bytes. The largest one contains a link.
    static let maxRequest = Application.maxURL + 4_096
    /// Commands at a time. More would be an error of the daemon; each may show a prompt for a passphrase.
    static let maxCommands = 16

    private let socket: Int32
    private let command: (String) -> [String]?
    private let application: (String) -> [String]?
    /// The outer nil: the account's configuration cannot be read.
    private let browser: (String) -> [String]??
    private let relay: String
    private let environment: [String]
    private let applicationEnvironment: [String]
    private let bounds: RunningCommand.Bounds
    private let places: BusRequests.Places
    private var presenter: BusRequests?
    private var reader = MessageReader(limit: maxRequest)
    private var output: [UInt8] = []
    private var running: [RunningCommand] = []
    /// Killed, but not reaped yet.
    private var unreaped: [pid_t] = []
    /// Each with its pidfd, which is -1 on kernels without.
    private var relays: [(process: pid_t, descriptor: Int32)] = []
    /// Received with messages that are not complete yet.
    private var descriptors: [Int32] = []

    init(
        socket: Int32, environment: [String], bounds: RunningCommand.Bounds = .init(),
        places: BusRequests.Places = .init(), applicationEnvironment: [String]? = nil,
        application: @escaping (String) -> [String]? = { _ in nil },
        browser: @escaping (String) -> [String]?? = { _ in .some(nil) }, relay: String = "ringback-relay",
        command: @escaping (String) -> [String]?
    ) {
        self.application = application
        self.browser = browser
        self.relay = relay
        self.applicationEnvironment = applicationEnvironment ?? environment
        self.places = places
        self.socket = socket
        self.command = command
        self.environment = environment
        self.bounds = bounds
    }

    var hasUsedBus: Bool { presenter != nil }

    mutating func run() {
        setNonBlocking(socket)
        while true {
            var waiting = [pollfd(fd: socket, events: Int16(output.isEmpty ? POLLIN : POLLIN | POLLOUT), revents: 0)]
            waiting += running.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            if let presenter { waiting.append(presenter.wakeup.interest) }
            waiting += relays.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            _ = unsafe poll(&waiting, nfds_t(waiting.count), patience)
            guard waiting[0].revents == 0 || takeRequests() else { break }
            serveCommands()
            serveBus()
            unreaped.removeAll { process in
                var status: Int32 = 0
                return unsafe waitpid(process, &status, WNOHANG) != 0
            }
            reapRelays()
            guard sendResponses() else { break }
        }
        for index in running.indices { _ = running[index].abandon("") }
        presenter?.endWatches()
        for descriptor in descriptors { close(descriptor) }
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
        var (received, number) = ([Int32](repeating: -1, count: clinux_most_descriptors), 0)
        let count = unsafe clinux_receive_with_descriptors(socket, &buffer, buffer.count, &received, &number, 0)
        descriptors += received[..<number]
        if count < 0 { return count == -Int(EAGAIN) }
        guard count > 0, descriptors.count <= HelperLoop.maxCommands else { return false }
        reader.append(buffer[0..<count])
        do {
            while let message = try reader.next() {
                guard let id = message.members["id"]?.integer else { return false }
                start(message, id: id)
            }
        } catch {
            return false
        }
        return true
    }

    private mutating func start(_ request: HelperMessage, id: Int) {
        let members = request.members
        switch members["do"]?.string {
        case "client_secret":
            guard let account = members["account"]?.string else { return refuse(id, HelperLoop.unknown) }
            run(account, id)
        case "watch":
            guard let event = members["event"]?.string.flatMap({ BusEvent(rawValue: $0) }) else {
                return refuse(id, HelperLoop.unknown)
            }
            guard let presenter = openPresenter(for: id) else { return }
            presenter.watch(event)
            answer(id, .success(HelperMessage()))
        case "secret_service": openPresenter(for: id)?.converse(request, id: id)
        case "notify", "close_notice": openPresenter(for: id)?.notify(.object(members), id: id)
        case "start_application", "open_page": startProgram(request, id: id)
        case "start_relay": startRelay(daemon: members["daemon"]?.string ?? "", id: id)
        default: refuse(id, HelperLoop.unknown)
        }
    }

    private static let unknown = "is not what was asked for"

    private mutating func refuse(_ id: Int, _ reason: String) { answer(id, .failure(.commandFailed(reason: reason))) }

    private mutating func run(_ account: String, _ id: Int) {
        guard let words = command(account), !words.isEmpty else {
            return refuse(id, "is not in the configuration of account '\(account)'")
        }
        guard running.count < HelperLoop.maxCommands else {
            return refuse(id, "was not started: \(HelperLoop.maxCommands) commands run already")
        }
        do throws(Spawn.Failure) {
            running.append(try RunningCommand(request: id, command: words, environment: environment, bounds: bounds))
        } catch {
            refuse(id, "could not be started: \(reason(error.code))")
        }
    }

    /// Nil after a response that says why there is none.
    private mutating func openPresenter(for id: Int) -> BusRequests? {
        do throws(Spawn.Failure) {
            let opened = if let presenter { presenter } else { try BusRequests(places) }
            presenter = opened
            return opened
        } catch {
            let text = "the helper could not open a socket: \(reason(error.code))"
            answer(id, .failure(.secretService(.failed(reason: text))))
            return nil
        }
    }

    /// The daemon names a scheme or an account, and the configuration names the program. Browsers and the desktop's
    /// opener get web pages only.
    private mutating func startProgram(_ request: HelperMessage, id: Int) {
        let url = request.secret?.revealed() ?? ""
        let program: Application?
        if request.members["do"]?.string == "open_page" {
            var words: [String]?
            if let account = request.members["account"]?.string {
                // The default browser may be signed in as another user.
                guard let chosen = browser(account) else {
                    return refuse(id, "was not started: the configuration of \(account) cannot be read")
                }
                words = chosen
            }
            program = Application(
                page: url, browser: words, activationToken: request.members["activation_token"]?.string)
        } else {
            let scheme = request.members["scheme"]?.string ?? ""
            guard let words = application(scheme), !words.isEmpty else {
                return refuse(id, "is not in the configuration of scheme '\(scheme)'")
            }
            program = Application(scheme: scheme, command: words, url: url)
        }
        guard let program else { return refuse(id, "was not started: the URL is not valid for this scheme") }
        openPresenter(for: id)?.start(program, environment: applicationEnvironment, id: id)
    }

    /// The relay's socket came with the request. The relay ends when the daemon closes the other end.
    private mutating func startRelay(daemon: String, id: Int) {
        guard let socket = descriptors.popLast() else { return refuse(id, HelperLoop.unknown) }
        defer { close(socket) }
        let spawn = Spawn(
            program: relay, arguments: [relay, "--exposed", "--daemon", daemon], environment: environment,
            descriptor: socket, target: Helper.descriptor, hasEmptyInput: true)
        do throws(Spawn.Failure) {
            let process = try spawn.start()
            relays.append((process, clinux_open_process(process)))
            answer(id, .success(HelperMessage(["process": Int(process)])))
        } catch {
            refuse(id, "\(relay) was not started: \(reason(error.code))")
        }
    }

    private mutating func reapRelays() {
        relays.removeAll { process, descriptor in
            var status: Int32 = 0
            guard unsafe waitpid(process, &status, WNOHANG) != 0 else { return false }
            if descriptor >= 0 { close(descriptor) }
            return true
        }
    }

    private mutating func serveBus() {
        guard let results = presenter?.take() else { return }
        for (id, outcome) in results.outcomes { answer(id, outcome) }
        for event in BusEvent.allCases where results.events.contains(event) {
            HelperMessage(["event": event.rawValue]).append(to: &output)
        }
        for event in results.notices { HelperMessage(event.members).append(to: &output) }
    }

    private mutating func serveCommands() {
        for index in running.indices.reversed() {
            guard let end = running[index].readOutput() ?? running[index].look() else { continue }
            let command = running.remove(at: index)
            if !command.isReaped { unreaped.append(command.process) }
            answer(command.request, end)
        }
    }

    private mutating func answer(_ id: Int, _ outcome: HelperProcess.Answer) {
        var (message, isGood) =
            switch outcome {
            case .success(let good): (good, true)
            case .failure(let error): (HelperMessage(error.members), false)
            }
        message.members["id"] = .integer(id)
        message.members["ok"] = .bool(isGood)
        message.append(to: &output)
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

/// A message between daemon and helper: a line of JSON, and a secret, which follows it in a frame of its own.
struct HelperMessage: Sendable {
    var members: JSONObject
    let secret: Secret?

    init(_ members: JSONObject = JSONObject(), secret: Secret? = nil) {
        self.members = members
        self.secret = secret
    }

    /// Appends the frames to the output, which the caller erases.
    func append(to output: inout [UInt8]) {
        var line = members
        if secret != nil { line["secret"] = true }
        let text = JSON.object(line).serialized()
        // At once: an array that grows would leave copies of a secret in memory.
        output.reserveCapacity(output.count + text.count + (secret?.count ?? 0) + 8)
        appendFrame(text, to: &output)
        guard let secret else { return }
        var bytes = secret.revealedBytes()
        defer { erase(&bytes) }
        appendFrame(bytes, to: &output)
    }
}

/// Reads messages from the bytes of a connection. The framing: four bytes of length, big-endian, then that many bytes.
///
/// A length above the limit ends the connection, so that neither process can make the other use unlimited memory.
struct MessageReader {
    struct Broken: Error {}

    private let limit: Int
    private var bytes: [UInt8] = []
    /// The line whose secret is the next frame.
    private var line: JSONObject?

    init(limit: Int) { self.limit = limit }
    mutating func append(_ received: some Sequence<UInt8>) { bytes.append(contentsOf: received) }

    /// The next complete message; nil if it is incomplete.
    mutating func next() throws -> HelperMessage? {
        while var frame = try nextFrame() {
            defer { erase(&frame) }
            if let members = line {
                line = nil
                return HelperMessage(members, secret: Secret(bytes: frame))
            }
            guard let members = try JSON(parsing: frame).object else { throw Broken() }
            guard members["secret"]?.bool == true else { return HelperMessage(members) }
            line = members
        }
        return nil
    }

    /// The next complete frame; nil if it is incomplete. The bytes that were taken are zeroed in the buffer, because
    /// they may be a secret.
    mutating func nextFrame() throws(Broken) -> [UInt8]? {
        guard bytes.count >= 4 else { return nil }
        let length = bytes[0..<4].reduce(0) { $0 << 8 | Int($1) }
        guard length <= limit else { throw Broken() }
        guard bytes.count >= 4 + length else { return nil }
        let frame = Array(bytes[4..<(4 + length)])
        let rest = Array(bytes[(4 + length)...])
        erase(&bytes)
        bytes = rest
        return frame
    }
}

func appendFrame(_ content: some Collection<UInt8>, to output: inout [UInt8]) {
    let length = UInt32(content.count)
    output.append(contentsOf: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) })
    output.append(contentsOf: content)
}
