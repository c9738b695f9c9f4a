internal import RingbackClient

/// One request to the MCP server, over all its attempts.
struct OutgoingRequest: Sendable {
    /// What it is for.
    enum Purpose: Sendable {
        /// A message of the client.
        case message(Message)
        /// The client's `initialize` again, after the server forgot the session.
        case replay(Message)
        /// The client's `notifications/initialized` again.
        case replayEnd(Message)
        /// The standing stream for what the server says by itself.
        case stream
        /// The end of the session.
        case end
    }

    var purpose: Purpose
    /// The session that the last attempt was sent in.
    var session: String?
    /// The SHA-256 of the token that the server refused.
    var rejected: String?
    /// The daemon asks the user to sign in, and this waits for it.
    var waitsForSignIn = false
    /// The request goes on after this event.
    var lastEventID: String?
    /// Attempts in a row that brought nothing.
    var failures = 0
    var wasRefused = false
    var wasRepeated = false
    var wasReplayed = false
    /// The client wants no response any more.
    var isCancelled = false
    /// Messages that belong to the request have been passed on.
    var hasSpoken = false

    init(_ purpose: Purpose) { self.purpose = purpose }

    /// The message that is sent.
    var message: Message? {
        switch purpose {
        case .message(let message), .replay(let message), .replayEnd(let message): message
        case .stream, .end: nil
        }
    }

    /// The client's request that waits for a response.
    var request: MessageID? {
        if case .message(let message) = purpose { message.request } else { nil }
    }

    var isReplay: Bool {
        if case .replay = purpose { true } else { false }
    }

    var isStream: Bool {
        if case .stream = purpose { true } else { false }
    }

    /// True for a message that begins a session of an older revision.
    var beginsSession: Bool { message?.method == "initialize" && message?.statesVersion == false }

    /// The HTTP method of the next attempt.
    var httpMethod: String {
        switch purpose {
        case .end: "DELETE"
        case .stream: "GET"
        default: lastEventID == nil ? "POST" : "GET"
        }
    }
}

/// An attempt of a request: what has come back so far.
struct Attempt: Sendable {
    enum Body: Sendable {
        case none
        case json
        case events
        /// Of an HTTP error.
        case error(RelayHead)
    }

    var outgoing: OutgoingRequest
    var isSent = false
    var head: RelayHead?
    var kind = Body.none
    var body: [UInt8] = []
    var events = ServerSentEvents(limit: JSONLines.limit, endsWithLineFeed: true)
    /// The response has been passed on.
    var isAnswered = false
}
