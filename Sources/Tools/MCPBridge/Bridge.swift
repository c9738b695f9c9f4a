internal import RingbackBase
internal import RingbackClient
public import Terminal

// A bridge between a client that speaks MCP over standard input and output, and a server that speaks it over HTTP. It is
// a value: what happens goes in, what is to be done comes out. Messages are not changed on their way.

/// The state of one bridge: session, pending requests, streams.
public struct Bridge: Sendable {
    public enum Event: Sendable {
        case line(JSONLines.Piece)
        /// The client will write no more.
        case inputEnded
        /// Of an attempt.
        case reply(Int, RelayReply)
        /// The connection of an attempt ended before its response was whole, or was never made.
        case broke(Int)
        /// The time of ``Bridge/deadline`` has come.
        case time
    }

    public enum Action: Sendable, Equatable {
        /// Send a request as attempt of this number, with this body.
        case open(Int, RelayRequest, body: [UInt8])
        /// Close an attempt's connection.
        case close(Int)
        /// Write a message to the client, with its line feed.
        case write([UInt8])
        /// Tell the user on standard error.
        case note(String)
        case exit
    }

    /// What later messages wait for.
    enum Gate: Sendable {
        /// The response to `initialize`.
        case initialize
        /// That the server took `notifications/initialized`.
        case confirmation
        /// A new session in place of one that the server forgot.
        case replay
    }

    /// The longest wait for a sign-in before `initialize` gets an error, in seconds.
    public static let signInWait = 8
    /// Attempts in a row that bring nothing.
    static let mostFailures = 5
    /// Streams that the server keeps open after their response.
    static let mostAnswered = 16
    /// How long pending requests are waited for after the end of the input, and then the end of the session.
    static let lastWait = (requests: Duration.seconds(5), session: Duration.seconds(1))

    public let account: String
    let signIn: @Sendable (_ scope: String?, _ again: Bool) -> ShownCommand
    let intro: String
    /// Why every request gets an error: there is no server behind this bridge.
    private var refusal: (RelayRefusal, command: ShownCommand?)?
    var attempts: [Int: Attempt] = [:]
    /// What is sent when its time has come.
    var later: [(at: Duration, outgoing: OutgoingRequest)] = []
    var held: [OutgoingRequest] = []
    var gate: Gate?
    var actions: [Action] = []
    var now = Duration.zero
    /// The session of an older revision, and its revision.
    var session: String?
    var version: String?
    var initialize: Message?
    var initialized: Message?
    /// A stream has found a session's end since the client's last message.
    var streamFoundEnd = false
    var togglesSlash = false
    var saysSignIn = true
    var endsAt: Duration?
    var isEnding = false
    var parameters = ToolParameters()
    private var nextAttempt = 1

    /// - Parameters:
    ///   - intro: comes before a command in a sentence.
    ///   - signIn: the command that signs in to the account, with more scopes if some are named, and although the account
    ///     is signed in.
    public init(
        account: String, intro: String = "Run:",
        signIn: @escaping @Sendable (_ scope: String?, _ again: Bool) -> ShownCommand
    ) {
        self.account = account
        self.intro = intro
        self.signIn = signIn
    }

    /// A bridge that cannot reach a server. It answers every request with the reason, since a client shows its user that,
    /// and of a program that ends only that it ended.
    ///
    /// - Parameter command: what helps. The reason names it too.
    public init(refusing refusal: RelayRefusal, command: ShownCommand?) {
        self.init(account: "") { _, _ in "" }
        self.refusal = (refusal, command)
    }

    /// Takes an event. Returns what is to be done, in this order.
    ///
    /// - Parameter now: the time since any fixed moment.
    public mutating func handle(_ event: Event, at now: Duration) -> [Action] {
        self.now = now
        switch event {
        case .line(.message(let bytes)): take(bytes)
        case .line(.tooLong(let id)):
            let sentence = "The message is larger than \(JSONLines.limit >> 20) MiB."
            write(ErrorResponse.bytes(id, code: -32600, message: sentence, data: ["code": "message_too_long"]))
        case .inputEnded: endsAt = endsAt ?? now + Bridge.lastWait.requests
        case .reply(let number, let reply): take(reply, of: number)
        case .broke(let number):
            if let attempt = attempts.removeValue(forKey: number) { broke(attempt) }
        case .time: break
        }
        let due = later.filter { $0.at <= now }
        later.removeAll { $0.at <= now }
        for entry in due { launch(entry.outgoing) }
        finishIfDone()
        defer { actions = [] }
        return actions
    }

    /// When ``Event/time`` is to be told; nil for never.
    public var deadline: Duration? { (later.map(\.at) + (endsAt.map { [$0] } ?? [])).min() }

    /// Bytes of messages that wait: while there are many, no more should be read from the client.
    public var waitingBytes: Int {
        held.reduce(0) { $0 + ($1.message?.bytes.count ?? 0) }
            + later.reduce(0) { $0 + ($1.outgoing.message?.bytes.count ?? 0) }
    }

    private mutating func take(_ bytes: [UInt8]) {
        streamFoundEnd = false
        let message: Message
        do {
            message = try Message(parsing: bytes)
        } catch {
            let said =
                switch error {
                case .batch: (-32600, "Batches of messages are not carried: send each message on a line of its own.")
                case .malformed: (-32700, "The line is not a JSON-RPC message.")
                }
            return write(ErrorResponse.bytes(nil, code: said.0, message: said.1))
        }
        if let refusal {
            guard message.request != nil else { return }
            return fail(
                OutgoingRequest(.message(message)), refusal.0.detail, code: refusal.0.code, command: refusal.command,
                isNamed: true)
        }
        if let id = message.cancelled { return cancel(id, message) }
        let outgoing = OutgoingRequest(.message(message))
        guard gate == nil else { return held.append(outgoing) }
        if outgoing.beginsSession {
            closeStream()
            (initialize, initialized, session, version, gate) = (message, nil, nil, nil, .initialize)
        } else if message.isConfirmation {
            initialized = message
            gate = .confirmation
        }
        launch(outgoing)
    }

    /// The newer revisions cancel by closing the request's stream, the older ones by a message.
    private mutating func cancel(_ id: MessageID, _ message: Message) {
        let isWaiting = held.contains { $0.request == id } || later.contains { $0.outgoing.request == id }
        held.removeAll { $0.request == id }
        later.removeAll { $0.outgoing.request == id }
        guard !isWaiting else { return }
        let number = attempts.first { $0.value.outgoing.request == id && !$0.value.isAnswered }?.key
        if let number, attempts[number]?.outgoing.message?.statesVersion == true { return close(number) }
        if let number { attempts[number]?.outgoing.isCancelled = true }
        guard gate == nil else { return held.append(OutgoingRequest(.message(message))) }
        launch(OutgoingRequest(.message(message)))
    }

    mutating func launch(_ outgoing: OutgoingRequest) {
        var outgoing = outgoing
        let method = outgoing.httpMethod
        let types = method == "POST" ? "application/json, text/event-stream" : "text/event-stream"
        var fields = [HTTPFields.Field("Accept", types)]
        if method == "POST" { fields.append(.init("Content-Type", "application/json")) }
        if let message = outgoing.message, message.statesVersion {
            do throws(ToolParameters.Refusal) {
                fields += try message.statedFields(parameters)
            } catch {
                return fail(outgoing, error.sentence, code: "invalid_tool")
            }
        } else if !outgoing.beginsSession {
            outgoing.session = session
            if let session { fields.append(.init("Mcp-Session-Id", session)) }
            if let version { fields.append(.init("MCP-Protocol-Version", FieldRules.value(version))) }
        }
        if let id = outgoing.lastEventID { fields.append(.init("Last-Event-ID", id)) }
        let body = method == "POST" ? outgoing.message?.bytes ?? [] : []
        var request = RelayRequest(account: account, method: method, fields: fields, length: body.count)
        request.rejected = outgoing.rejected
        request.signInWait = outgoing.waitsForSignIn ? Bridge.signInWait : nil
        request.togglesSlash = togglesSlash
        let number = nextAttempt
        nextAttempt += 1
        attempts[number] = Attempt(outgoing: outgoing)
        actions.append(.open(number, request, body: body))
    }

    mutating func launch(_ outgoing: OutgoingRequest, after pause: Duration) {
        later.append((now + pause, outgoing))
    }

    /// Messages that waited are sent, in their order, until one of them is waited for again.
    mutating func openGate() {
        gate = nil
        let waiting = held
        held = []
        for outgoing in waiting {
            guard gate == nil else {
                held.append(outgoing)
                continue
            }
            if case .message(let message) = outgoing.purpose, message.isConfirmation, !outgoing.wasReplayed {
                initialized = message
                gate = .confirmation
            }
            launch(outgoing)
        }
    }

    mutating func close(_ number: Int) {
        attempts[number] = nil
        actions.append(.close(number))
    }

    mutating func write(_ message: [UInt8], isLine: Bool = false) {
        actions.append(.write(isLine ? message : JSONLines.line(of: message)))
    }

    private var hasPending: Bool {
        !held.isEmpty || later.contains { !$0.outgoing.isStream }
            || attempts.values.contains { !$0.outgoing.isStream && !$0.isAnswered && !$0.outgoing.isCancelled }
    }

    private mutating func finishIfDone() {
        guard let endsAt else { return }
        if isEnding {
            guard attempts.isEmpty || endsAt <= now else { return }
            return actions.append(.exit)
        }
        guard !hasPending || endsAt <= now else { return }
        isEnding = true
        for number in attempts.keys.sorted() { actions.append(.close(number)) }
        (attempts, held, later) = ([:], [], [])
        self.endsAt = now + Bridge.lastWait.session
        guard session != nil else { return actions.append(.exit) }
        launch(OutgoingRequest(.end))
    }
}

// Sessions of the older revisions: a session that the server forgot, and the standing stream.

extension Bridge {
    /// The server has forgotten the session. It is sent the client's `initialize` again, then the messages that it has not
    /// taken.
    mutating func sessionEnded(_ outgoing: OutgoingRequest) {
        // The server had begun to respond to it. The next message begins the session again.
        if outgoing.lastEventID != nil, let message = outgoing.message, !message.isRepeatable || outgoing.hasSpoken {
            return giveUp(outgoing)
        }
        var outgoing = outgoing
        outgoing.wasReplayed = true
        outgoing.lastEventID = nil
        guard let initialize else {
            return fail(outgoing, "The MCP server of \(account) has ended the session. Start the client again.")
        }
        // What the server asked for in the old session needs no response in the new one.
        if case .response? = outgoing.message?.kind { return }
        // The session that was begun again has ended already.
        if case .replayEnd = outgoing.purpose { return replayFailed() }
        // The gate waits for this message alone, which the new session needs, too.
        let isConfirmation = gate == .confirmation && outgoing.message?.isConfirmation == true
        // Another message got this error before. The new session has a stream of its own.
        guard outgoing.session == session, gate == nil || isConfirmation else {
            guard !outgoing.isStream else { return }
            guard gate == nil else { return held.append(outgoing) }
            return launch(outgoing)
        }
        // A server may respond so to each stream that is connected again. The next message finds out.
        if outgoing.isStream, streamFoundEnd { return }
        streamFoundEnd = outgoing.isStream
        // The ended session stays until there is a new one: if that fails, the next message finds the same out.
        gate = .replay
        if !isConfirmation, !outgoing.isStream { held.append(outgoing) }
        closeStream()
        launch(OutgoingRequest(.replay(initialize)))
    }

    mutating func replayed() {
        guard let initialized else { return openGate() }
        launch(OutgoingRequest(.replayEnd(initialized)))
    }

    mutating func replayFailed() {
        let waiting = held
        held = []
        gate = nil
        for outgoing in waiting {
            fail(outgoing, "The MCP server of \(account) has ended the session and begins no new one.")
        }
    }

    mutating func openStream() {
        closeStream()
        guard endsAt == nil else { return }
        launch(OutgoingRequest(.stream))
    }

    mutating func closeStream() {
        later.removeAll { $0.outgoing.isStream }
        for (number, attempt) in attempts where attempt.outgoing.isStream { close(number) }
    }
}

/// Where `ringback-relay` listens.
public enum RelaySocket {
    /// `ringback.sock` has `ringback-relay.sock` beside it.
    public static func path(beside daemon: String) -> String {
        (daemon.hasSuffix(".sock") ? String(daemon.dropLast(5)) : daemon) + "-relay.sock"
    }
}
