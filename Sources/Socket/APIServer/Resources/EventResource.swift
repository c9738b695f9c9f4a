internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import SessionVault
internal import StrictJSON
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

    /// Server-sent events (WHATWG HTML section 9.2).
    func streamEvents(_ call: Call) async throws(Problem) -> ServerResponse {
        var account: AccountName?
        if let text = call.query("account") {
            account = AccountName(text)
            guard account != nil else { throw Problem(.accountNotFound, "There is no such account.") }
        }
        if try call.flag("telemetry") { return try telemetry(of: account, call) }
        let lastSeen = call.request.fields["Last-Event-ID"].flatMap(UInt64.init)
        let feed: EventFeed
        do throws(BrokerError) {
            let events = try await broker.events(of: account, after: lastSeen, process: call.process)
            feed = EventFeed(broker: broker, live: events.live, initial: events.initial, language: call.language)
        } catch {
            throw Problem(error, language: call.language)
        }
        let fields = HTTPFields([("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")])
        return ServerResponse(
            status: 200, fields: fields,
            stream: AsyncStream(unfolding: { await feed.next() }, onCancel: { feed.stop() }))
    }
}

extension EventResource {
    /// The stream of telemetry, in place of the events.
    private func telemetry(of account: AccountName?, _ call: Call) throws(Problem) -> ServerResponse {
        guard let records else { throw Problem(.notFound, "This daemon keeps no records.") }
        let feed = records.telemetry.listen(to: account?.rawValue)
        let fields = HTTPFields([("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")])
        let hello = Array(": telemetry\n\n".utf8)
        let isFirst = Mutex(true)
        return ServerResponse(
            status: 200, fields: fields,
            stream: AsyncStream(
                unfolding: {
                    let greets = isFirst.withLock { value in
                        defer { value = false }
                        return value
                    }
                    return greets ? hello : await feed.next()
                }, onCancel: { feed.stop() }))
    }
}

/// The events for one listener: first the accounts as they are, then what happens.
final class EventFeed: Sendable {
    private let broker: Broker
    private let live: EventSubscription
    private let language: Language
    private let state: Mutex<(initial: [UInt8]?, isOver: Bool)>

    /// How often a comment is sent, so that a broken connection is noticed.
    private static let heartbeat: Duration = .seconds(15)

    init(broker: Broker, live: EventSubscription, initial: [BrokerEvent], language: Language) {
        self.broker = broker
        self.live = live
        self.language = language
        // Something is sent at once, so that the client knows that the stream has begun.
        let text = initial.flatMap { EventFeed.encode(nil, $0, language) }
        state = Mutex((text.isEmpty ? Array(": no accounts\n\n".utf8) : text, false))
    }

    /// The next bytes; nil at the end.
    func next() async -> [UInt8]? {
        let (initial, isOver) = state.withLock { state in
            defer { state.initial = nil }
            return state
        }
        if let initial { return initial }
        guard !isOver else { return nil }
        switch await live.next(within: EventFeed.heartbeat) {
        case .events(let events): return events.flatMap { EventFeed.encode($0.id, $0.event, language) }
        case .quiet: return Array(": still here\n\n".utf8)
        case .overflowed:
            stop()
            return StreamEnd.dropped.bytes(["reason": "the events were not read fast enough"])
        case .cancelled:
            stop()
            return nil
        }
    }

    /// If a client disappears between two events, nothing is cancelled: the stream is released, and with it the
    /// listener.
    deinit { broker.stopListening(live) }

    func stop() {
        state.withLock { $0.isOver = true }
        broker.stopListening(live)
    }

    static func encode(_ id: UInt64?, _ event: BrokerEvent, _ language: Language) -> [UInt8] {
        var object = JSONObject()
        object["account"] = event.account.map { .string($0.rawValue) }
        object["state"] = event.state.map { .string($0.rawValue) }
        object["scheme"] = event.scheme.map { .string($0) }
        switch event.database {
        case .away(let reason)?: object["reason"] = .string(reason.sentence)
        case .returned(let span)?: object["seconds"] = .integer(Int(span.components.seconds))
        case nil: break
        }
        object["subject"] = event.subject.map { .string($0) }
        object["user"] = event.user.map { .object($0) }
        object["expires_at"] = event.expiresAt.map { .integer($0.seconds) }
        object["ends_at"] = event.endsAt.map { .integer($0.seconds) }
        object["error"] = event.error.map {
            Problem($0, language: language, endedSignIn: event.kind == .signInFailed).json
        }
        object["at"] = .integer(event.at.seconds)
        return event.kind.bytes(id: id.map { String($0) }, .object(object))
    }
}

extension Component {
    fileprivate static let event = Component.event(
        "Event", BrokerEvent.Kind.allCases + StreamEnd.allCases + TelemetryEvent.allCases)
}
