package import RingbackAPI
package import RingbackBase

/// The socket API as blocking calls: a connection for each call, a time limit for every wait.
package struct BrokerCalls: Sendable {
    package var socket: String
    package var application: String
    /// The language of `user_message`, such as `ru`.
    package var language: String?
    /// The process for which a relay calls.
    package var client: Int32?
    package var interruption: Interruption?
    package var refusals: RefusalWatch?

    package init(socket: String, application: String, interruption: Interruption? = nil) {
        self.socket = socket
        self.application = application
        self.interruption = interruption
        language = BrokerCalls.language(SocketPlace.variable)
    }

    /// Makes one call. Returns the response's JSON for any 2xx status.
    ///
    /// - Parameters:
    ///   - values: in place of the parameters of the endpoint's path, in order.
    ///   - onTick: called once the request is sent, then about once a second while it waits.
    /// - Throws: the daemon's error, with its `code` as `kind`; or `no_daemon`, `foreign_server`, `bad_response`,
    ///   `timed_out`, `cancelled`, `system_error`.
    package func call(
        _ endpoint: Endpoint, _ values: [String] = [], query: [(String, String?)] = [], body: JSON? = nil,
        timeout: Duration = .seconds(30), onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> JSON {
        var target = try RequestTarget(endpoint, values)
        for (name, value) in query { target.add(name, value) }
        return try call(endpoint, at: target, body: body, timeout: timeout, onTick: onTick)
    }

    /// True if the daemon runs on this machine. What another machine's says must not name a program to start here.
    package var isServedHere: Bool {
        (try? SocketConnection(unixPath: socket, deadline: .now + .seconds(1)))?.isServedHere == true
    }

    /// Makes an exposed socket that ends with the connection, which is returned with it.
    package func exposeWhileConnected(_ order: JSONObject) throws(RingbackError) -> (JSON, SocketConnection) {
        var order = order
        order["until"] = "disconnect"
        return try exchange(
            .createExposedSocket, at: try RequestTarget(.createExposedSocket, []), body: .object(order),
            timeout: .seconds(30))
    }

    func call(
        _ endpoint: Endpoint, at target: RequestTarget, body: JSON? = nil, timeout: Duration,
        onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> JSON {
        try exchange(endpoint, at: target, body: body, timeout: timeout, onTick: onTick).0
    }

    private func exchange(
        _ endpoint: Endpoint, at target: RequestTarget, body: JSON? = nil, timeout: Duration,
        onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> (JSON, SocketConnection) {
        let method = endpoint.method.rawValue
        let connection = try SocketConnection(unixPath: socket, deadline: .now + timeout, interruption: interruption)
        connection.onTick = onTick
        let exchange = HTTPExchange(connection)
        var fields = self.fields
        if body != nil { fields.append(HTTPFields.Field("Content-Type", "application/json")) }
        // A POST without a body states its length too, since servers differ in what they expect otherwise.
        try exchange.send(
            method, target.text, fields: fields, body: body?.serialized() ?? (method == "POST" ? [] : nil))
        onTick?()
        return (try BrokerCalls.readJSON(exchange), connection)
    }

    package func text(_ endpoint: Endpoint, timeout: Duration = .seconds(30)) throws(RingbackError) -> String {
        let accept = HTTPFields.Field("Accept", "text/plain, application/problem+json")
        let exchange = try open(RequestTarget.of(endpoint), [accept], "text/plain", "text", within: timeout).exchange
        return String(decoding: try exchange.readBody(), as: UTF8.self)
    }

    /// Sends a GET request, and reads the head of a response of this media type. `what` names it in an error.
    private func open(
        _ target: String, _ more: [HTTPFields.Field], _ type: String, _ what: String, within timeout: Duration
    ) throws(RingbackError) -> (connection: SocketConnection, exchange: HTTPExchange) {
        let connection = try SocketConnection(unixPath: socket, deadline: .now + timeout, interruption: interruption)
        let exchange = HTTPExchange(connection)
        try exchange.send("GET", target, fields: fields.filter { $0.name != "Accept" } + more)
        let head = try exchange.readHead()
        guard head.status == 200, head.field("content-type")?.hasPrefix(type) == true else {
            _ = try BrokerCalls.readJSON(exchange, head)
            throw RingbackError(.badResponse, "The daemon's response is not \(what).")
        }
        return (connection, exchange)
    }

    /// Opens the stream of events. A wait fails with `timed_out` after `silence`: there is a comment every 15 s.
    package func openEvents(
        account: String?, lastEventID: String? = nil, isTelemetry: Bool = false, silence: Duration = .seconds(45)
    ) throws(RingbackError) -> EventReader {
        let target = try RequestTarget.of(
            .streamEvents, query: [("account", account), ("telemetry", isTelemetry ? "true" : nil)])
        return try openStream(target, lastEventID: lastEventID, silence: silence)
    }

    /// Opens the stream of a scheme's links. It replaces the program that listens for them now.
    package func openDeepLinks(scheme: String, silence: Duration = .seconds(45)) throws(RingbackError) -> EventReader {
        try openStream(
            RequestTarget.of(.streamDeepLinks, query: [("scheme", scheme)]), lastEventID: nil, silence: silence)
    }

    private func openStream(
        _ target: String, lastEventID: String?, silence: Duration
    ) throws(RingbackError) -> EventReader {
        let type = "text/event-stream"
        var fields = [HTTPFields.Field("Accept", type)]
        if let lastEventID { fields.append(HTTPFields.Field("Last-Event-ID", BrokerCalls.fieldText(lastEventID))) }
        let (connection, exchange) = try open(target, fields, type, "a stream of events", within: silence)
        return EventReader(connection, exchange, silence: silence)
    }

    var fields: [HTTPFields.Field] {
        var fields = [
            HTTPFields.Field("Host", "ringback"),
            HTTPFields.Field("Accept", "application/json, application/problem+json"),
            HTTPFields.Field("Ringback-Application", BrokerCalls.fieldText(application)),
        ]
        if let language { fields.append(HTTPFields.Field("Accept-Language", language)) }
        if let client { fields.append(HTTPFields.Field("Ringback-Client", "\(client)")) }
        return fields
    }

    private static func readJSON(
        _ exchange: HTTPExchange, _ known: HTTPExchange.Head? = nil
    ) throws(RingbackError) -> JSON {
        let head = if let known { known } else { try exchange.readHead() }
        return try json(KeptConnection.Response(head: head, body: try exchange.readBody()))
    }

    /// The JSON of a response with a 2xx status. Throws the daemon's error, or `bad_response`.
    package static func json(_ response: KeptConnection.Response) throws(RingbackError) -> JSON {
        let (head, body) = (response.head, response.body)
        let isSuccess = (200..<300).contains(head.status)
        guard let json = try? JSON(parsing: body) else {
            if isSuccess, body.isEmpty { return .object(JSONObject()) }
            throw RingbackError(.badResponse, "The daemon responded with status \(head.status) without valid JSON.")
        }
        guard !isSuccess else { return json }
        var problem = Problem(reading: json, status: head.status)
        if problem.retryAfter == nil { problem.retryAfter = head.field("retry-after").flatMap { Int($0) } }
        throw RingbackError(problem)
    }

    /// Visible ASCII, at most 64 characters.
    static func fieldText(_ text: String) -> String {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars.prefix(64) {
            bytes.append((0x20..<0x7F).contains(scalar.value) ? UInt8(scalar.value) : UInt8(ascii: "?"))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func language(_ environment: (String) -> String?) -> String? {
        let named = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(environment).first { !$0.isEmpty }
        guard let code = named?.prefix(2), code.utf8.count == 2, code.utf8.allSatisfy({ (0x61...0x7A).contains($0) })
        else { return nil }
        return String(code)
    }
}

package final class EventReader {
    private let connection: SocketConnection
    private let exchange: HTTPExchange
    private let silence: Duration
    private var parser = ServerSentEvents()
    private var ready: ArraySlice<ServerSentEvents.Event> = []

    init(_ connection: SocketConnection, _ exchange: HTTPExchange, silence: Duration) {
        self.connection = connection
        self.exchange = exchange
        self.silence = silence
    }

    /// The next event, after a wait if need be; nil when the daemon ends the stream.
    package func next() throws(RingbackError) -> ServerSentEvents.Event? {
        while ready.isEmpty {
            connection.deadline = .now + silence
            guard let piece = try exchange.nextPiece() else { return nil }
            ready = try parser.append(piece)[...]
        }
        return ready.removeFirst()
    }
}

extension BrokerCalls {
    package enum Started: Sendable {
        case flow(Flow, JSON)
        case done(JSON)
    }

    /// `onTick` is called once the request is sent, then about once a second: the daemon may ask the provider first.
    package func signIn(
        _ account: String, _ fields: JSONObject, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> Started {
        let answer = try call(.signIn, [account], body: .object(fields), onTick: onTick)
        if let flow = Flow(reading: answer) { return .flow(flow, answer) }
        return .done(answer)
    }

    /// Waits until the flow has ended, or until `end`. Each poll ends within half a minute: a lost daemon is noticed.
    package func wait(
        forFlow id: String, until end: ContinuousClock.Instant? = nil, onTick: (() -> Void)? = nil
    ) throws(RingbackError) -> (Flow, JSON) {
        while true {
            var seconds = 25
            // Rounded up: the daemon takes whole seconds, and 0 would not wait at all.
            if let end { seconds = min(seconds, max(1, Int((end - .now).components.seconds) + 1)) }
            let answer = try call(
                .getFlow, [id], query: [("wait", String(seconds))], timeout: .seconds(seconds + 15),
                onTick: onTick)
            guard let flow = Flow(reading: answer) else { throw .missing("id", in: "flow") }
            if flow.status != .pending { return (flow, answer) }
            refusals?.look(at: flow)
            if let end, .now >= end { return (flow, answer) }
            onTick?()
        }
    }

    package func flows() throws(RingbackError) -> [Flow] {
        try call(.listFlows)["flows"]?.array?.compactMap { Flow(reading: $0) } ?? []
    }

    /// This caller no longer waits for the flow. Sent even after the interruption: it is the caller's last call.
    package func cancel(flow id: String) throws(RingbackError) {
        var calls = self
        calls.interruption = nil
        _ = try calls.call(.cancelFlow, [id], timeout: .seconds(5))
    }

    package func account(_ name: String) throws(RingbackError) -> JSON { try call(.getAccount, [name]) }

    /// Waits for the flow's end and returns the account. After an interruption the caller no longer waits for it.
    func finish(_ flow: Flow) throws(RingbackError) -> Account {
        let ended: Flow
        do throws(RingbackError) { ended = try wait(forFlow: flow.id).0 } catch {
            if error.kind == .cancelled { try? cancel(flow: flow.id) }
            throw error
        }
        if let failure = ended.failure { throw failure }
        return try Account(reading: try account(flow.account))
    }
}
