internal import BrokerCore
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault
internal import Synchronization

struct EventResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .streamEvents, "Events, as server-sent events; first the state of every account",
            query: [
                .optional("account", .string, "Only this account"),
                .optional("telemetry", .boolean, "Telemetry events instead of the account events"),
            ], .events(.event), errors: .ofAccount.and([.validationFailed]), EventResource.streamEvents)
    ]

    func streamEvents(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = call.query("account")
        let account = name.flatMap { AccountName($0) }
        guard name == nil || account != nil else { throw Problem(.accountNotFound, "There is no such account.") }
        if try call.flag("telemetry") {
            return ServerResponse(events: try kept().telemetry.listen(to: account?.rawValue))
        }
        let lastSeen = call.request.fields["Last-Event-ID"].flatMap(UInt64.init)
        let events = try await call.ask { () throws(BrokerError) in
            try await broker.events(
                of: account, after: lastSeen, process: call.process, origin: api.answeringOrigin(call))
        }
        return ServerResponse(events: EventFeed(broker, events.live, initial: events.initial, call.language))
    }
}

/// What one listener to a stream of events gets: something at once, so that it knows that the stream has begun; then what
/// the source has; and a comment when nothing comes, so that a broken connection is noticed.
final class EventFeed: Sendable {
    enum Next: Sendable {
        case bytes([UInt8])
        case quiet
        /// The stream is over after these bytes.
        case end([UInt8]?)
    }

    private static let heartbeat: Duration = .seconds(15)
    private let state: Mutex<(first: [UInt8]?, isOver: Bool)>
    private let leave: @Sendable () -> Void
    private let source: @Sendable (_ bound: Duration) async -> Next

    /// - Parameter leave: the listener has gone; may be called more than once.
    init(
        first: [UInt8], leave: @escaping @Sendable () -> Void, source: @escaping @Sendable (Duration) async -> Next
    ) {
        state = Mutex((first, false))
        self.leave = leave
        self.source = source
    }

    func next() async -> [UInt8]? {
        let (first, isOver) = state.withLock { state in
            defer { state.first = nil }
            return state
        }
        if let first { return first }
        guard !isOver else { return nil }
        switch await source(EventFeed.heartbeat) {
        case .bytes(let bytes): return bytes
        case .quiet: return Array(": still here\n\n".utf8)
        case .end(let last):
            stop()
            return last
        }
    }

    /// If a client disappears between two events, nothing is cancelled: the stream is released, and so is the listener.
    deinit { leave() }

    func stop() {
        state.withLock { $0.isOver = true }
        leave()
    }

    /// The events of accounts: first the accounts as they are, then what happens.
    convenience init(_ broker: Broker, _ live: EventSubscription, initial: [BrokerEvent], _ language: Language) {
        let text = initial.flatMap { EventFeed.encode(nil, $0, language) }
        self.init(
            first: text.isEmpty ? Array(": no accounts\n\n".utf8) : text, leave: { broker.stopListening(live) },
            source: { bound in
                switch await live.next(within: bound) {
                case .events(let events): .bytes(events.flatMap { EventFeed.encode($0.id, $0.event, language) })
                case .quiet: .quiet
                case .overflowed: .end(StreamEnd.dropped.bytes(["reason": "the events were not read fast enough"]))
                case .cancelled: .end(nil)
                }
            })
    }

    static func encode(_ id: UInt64?, _ event: BrokerEvent, _ language: Language) -> [UInt8] {
        let endedSignIn = event.kind == .signInFailed
        var object: JSONObject = [
            "account": event.account?.rawValue, "state": event.state?.rawValue, "scheme": event.scheme,
            "subject": event.subject, "user": event.user, "expires_at": event.expiresAt?.seconds,
            "ends_at": event.endsAt?.seconds,
            "error": event.error.map { Problem($0, language: language, endedSignIn: endedSignIn).json },
            "at": event.at.seconds,
        ]
        switch event.database {
        case .away(let reason)?: object["reason"] = .string(reason.sentence)
        case .returned(let span)?: object["seconds"] = .integer(Int(span.components.seconds))
        case nil: break
        }
        if let consent = event.consent { object.members += consent.members }
        return event.kind.bytes(id: id.map { String($0) }, .object(object))
    }
}

extension Component {
    fileprivate static let event = Component.event(
        "Event", BrokerEvent.Kind.allCases + StreamEnd.allCases + TelemetryEvent.allCases)
}

/// The events of one stream. Their data are stated once: OpenAPI describes them, and the stream sends nothing else.
protocol StreamedEvent: RawRepresentable<String>, CaseIterable, Sendable {
    /// What the names of the components of these events begin with, so that two streams may have an event of one name.
    static var prefix: String { get }
    var data: [Member] { get }
    /// False for events that no client can come back to.
    var mayHaveID: Bool { get }
}

extension StreamedEvent {
    var component: Component {
        let words = rawValue.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }
        return Component(
            "\(Self.prefix)\(words.joined())Event",
            [.required("event", .words([rawValue]))] + (mayHaveID ? [.optional("id", .string)] : [])
                + [.required("data", .object(data))])
    }

    func bytes(id: String? = nil, _ values: JSON) -> [UInt8] {
        var object = JSONObject()
        for member in data { object[member.name] = values[member.name] }
        var text = Array("event: \(rawValue)\n".utf8)
        if let id { text += Array("id: \(id)\n".utf8) }
        text += Array("data: ".utf8)
        JSON.object(object).write(to: &text)
        return text + Array("\n\n".utf8)
    }
}

extension Component {
    static func event(_ name: String, _ kinds: [any StreamedEvent]) -> Component {
        Component(name, .either(kinds.map(\.component)))
    }
}

extension BrokerEvent.Kind: StreamedEvent {
    static let prefix = ""
    var mayHaveID: Bool { true }

    var data: [Member] {
        let account: [Member] = [.required("account", .string), .required("state", .oneOf(AccountState.self))]
        let subject = Member.optional("subject", .string)
        let session: [Member] = [subject, .optional("user", .anyObject), .optional("expires_at", .integer)]
        let problem = Schema.component(.problem)
        let members: [Member] =
            switch self {
            case .initialSession: account + session + [.optional("error", problem)]
            case .signedIn, .tokenRefreshed, .userUpdated, .passwordRecovery, .mfaChallengeVerified: account + session
            case .sessionEnding: account + session + [.required("ends_at", .integer)]
            case .signedOut: account + [subject, .optional("error", problem)]
            case .signInFailed, .callbackRefused, .refreshFailed: account + session + [.required("error", problem)]
            case .deepLink, .listenerReplaced: [.required("scheme", .string)]
            case .databaseAway: [.required("reason", .string)]
            case .databaseReturned: [.required("seconds", .integer)]
            case .accountUsed: ConsentNews.ofUse
            case .consentRequested:
                ConsentNews.ofUse + [
                    .required("id", .string), .optional("scope", .string), .required("requested_at", .integer),
                    .required("expires_at", .integer),
                ]
            case .consentDecided:
                ConsentNews.ofUse + [
                    .required("id", .string), .optional("scope", .string),
                    .required("decision", .oneOf(ConsentDecision.self)), .required("remember", .string),
                ]
            }
        return members + [.required("at", .integer)]
    }
}

enum StreamEnd: String, StreamedEvent {
    case dropped

    static let prefix = ""
    var mayHaveID: Bool { false }
    var data: [Member] { [.required("reason", .string)] }
}

enum SchemeEvent: String, StreamedEvent {
    case deepLink = "deep_link"
    case listenerReplaced = "listener_replaced"
    case dropped

    static let prefix = "Scheme"
    var mayHaveID: Bool { self == .deepLink }

    var data: [Member] {
        switch self {
        case .deepLink:
            [
                .required("id", .string), .required("scheme", .string), .required("url", .string),
                .required("at", .integer),
            ]
        case .listenerReplaced: [.required("scheme", .string), .required("at", .integer)]
        case .dropped: StreamEnd.dropped.data
        }
    }
}

enum TelemetryEvent: String, StreamedEvent {
    case authMethodSelected = "auth_method_selected"
    case authStarted = "auth_started"
    case authCompleted = "auth_completed"
    case authCancelled = "auth_cancelled"
    case authFailed = "auth_failed"
    case tokenRefreshAttempted = "token_refresh_attempted"
    case tokenRefreshFailed = "token_refresh_failed"
    case accountLinked = "account_linked"

    static let prefix = "Telemetry"
    var mayHaveID: Bool { false }

    var data: [Member] {
        let method = Member.required("method", .string)
        let duration = Member.required("duration_ms", .integer)
        let members: [Member] =
            switch self {
            case .authMethodSelected, .authStarted, .accountLinked: [method]
            case .authCompleted: [method, duration]
            case .authCancelled, .authFailed: [method, duration, .optional("error_type", .string)]
            case .tokenRefreshAttempted: [.required("reason", .oneOf(RefreshReason.self))]
            case .tokenRefreshFailed: [.required("error_type", .string)]
            }
        return [.required("event", .words([rawValue])), .required("account", .string)] + members
            + [.required("at", .integer)]
    }
}

extension ConsentNews {
    fileprivate static let ofUse: [Member] = .members(
        .required("account"), .required("operation", as: .oneOf(ConsentUse.self)),
        .required("program", as: .component(.program)))

    fileprivate var members: [JSONObject.Member] {
        switch self {
        case .used(_, let use, let program):
            let object: JSONObject = ["operation": use.rawValue, "program": program.json]
            return object.members
        case .requested(let question): return question.json.members.filter { $0.name != "account" }
        case .decided(let question, let decision, let remember, _):
            let object: JSONObject = ["decision": decision.rawValue, "remember": remember]
            return question.json.members.filter { $0.name != "account" } + object.members
        case .lapsed, .flooded: return []
        }
    }
}

/// How users sign in to an app, as short lines without names. Nothing is stored or sent; only listeners get them.
final class Telemetry: Sendable {
    private struct State {
        var ways: [String: String] = [:]
        var listeners: [ObjectIdentifier: TelemetryListener] = [:]
    }
    private let state = Mutex(State())
    private let now: @Sendable () -> Int
    init(now: @escaping @Sendable () -> Int) { self.now = now }

    func note(_ fact: BrokerFact) {
        let told = state.withLock { state in (lines(fact, &state.ways), Array(state.listeners.values)) }
        for line in told.0 { for listener in told.1 { listener.append(line) } }
    }

    func listen(to account: String?) -> EventFeed {
        let listener = TelemetryListener(account: account)
        state.withLock { $0.listeners[ObjectIdentifier(listener)] = listener }
        return EventFeed(
            first: Array(": telemetry\n\n".utf8),
            leave: { [weak self] in
                self?.state.withLock { _ = $0.listeners.removeValue(forKey: ObjectIdentifier(listener)) }
            }, source: { bound in await listener.next(within: bound) })
    }

    private func lines(_ fact: BrokerFact, _ ways: inout [String: String]) -> [TelemetryLine] {
        switch fact {
        case .signInChosen(let account, let way):
            ways[account.rawValue] = way
            return [line(.authMethodSelected, account, way)]
        case .signInStarted(let account, let method):
            return [line(.authStarted, account, ways[account.rawValue] ?? method.rawValue)]
        case .signInEnded(let account, let method, let outcome, let duration, let error, _):
            let event: TelemetryEvent =
                switch outcome {
                case .completed: .authCompleted
                case .cancelled: .authCancelled
                case .failed, .expired: .authFailed
                }
            let (seconds, attoseconds) = duration.components
            let milliseconds = Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
            return [
                line(
                    event, account, ways[account.rawValue] ?? method.rawValue,
                    ["duration_ms": milliseconds, "error_type": error.map(RecordKeeper.code)])
            ]
        case .refreshStarted(let account, let reason):
            return [line(.tokenRefreshAttempted, account, nil, ["reason": reason.rawValue])]
        case .refreshFailed(let account, let error), .downscopingFailed(let account, let error):
            return [line(.tokenRefreshFailed, account, nil, ["error_type": RecordKeeper.code(of: error)])]
        case .sessionEnded(let account, _, _, _):
            return [line(.tokenRefreshFailed, account, nil, ["error_type": "session_expired"])]
        case .identityLinked(let account, let provider, let sight):
            // An identity that was linked before the user first signed in here is not a step of this sign-in.
            if case .former = sight { return [] }
            return [line(.accountLinked, account, provider)]
        default: return []
        }
    }

    private func line(
        _ event: TelemetryEvent, _ account: AccountName, _ method: String?, _ more: JSONObject = [:]
    ) -> TelemetryLine {
        var data: JSONObject = [
            "event": event.rawValue, "account": account.rawValue, "method": method.map(RecordKeeper.bounded),
            "at": now(),
        ]
        data.members += more.members
        return (event, data)
    }
}

typealias TelemetryLine = (event: TelemetryEvent, data: JSONObject)

/// One listener's lines. If it does not read, the oldest are dropped.
final class TelemetryListener: Sendable {
    private let account: String?
    private let state = Mutex((lines: [TelemetryLine](), signal: Promise<Void>()))
    private static let capacity = 1_024
    init(account: String?) { self.account = account }

    func append(_ line: TelemetryLine) {
        if let account, line.data["account"]?.string != account { return }
        let signal = state.withLock { state in
            state.lines.append(line)
            if state.lines.count > TelemetryListener.capacity { state.lines.removeFirst() }
            defer { state.signal = Promise() }
            return state.signal
        }
        signal.fulfil(())
    }

    func next(within bound: Duration) async -> EventFeed.Next {
        let (ready, signal) = take()
        if !ready.isEmpty { return .bytes(ready) }
        _ = await signal.wait(atMost: bound)
        if Task.isCancelled { return .end(nil) }
        let later = take().ready
        return later.isEmpty ? .quiet : .bytes(later)
    }

    private func take() -> (ready: [UInt8], signal: Promise<Void>) {
        state.withLock { state in
            defer { state.lines = [] }
            return (state.lines.flatMap { $0.event.bytes(.object($0.data)) }, state.signal)
        }
    }
}
