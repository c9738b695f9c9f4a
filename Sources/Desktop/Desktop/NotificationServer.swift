internal import Dispatch
internal import Glibc
internal import RingbackBase
internal import Synchronization

/// The desktop's notification server (`org.freedesktop.Notifications`, Desktop Notifications Specification 1.2 and
/// 1.3). All calls use one connection: a server sends its signals only to the connection that showed the notification,
/// and some close a notification when that connection ends.
final class NotificationServer {
    static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    /// The id of our `.desktop` file, by which servers group notifications and apply settings.
    private static let desktopEntry = "ringback-callback"

    let bus: BusConnection
    /// The server's capabilities, with its unique name: another server may replace it.
    private var capabilities: (server: String, words: Set<String>)?
    /// The notifications that are shown as far as we know, with the unique name of their server.
    private var shown: [UInt32: String] = [:]
    /// Activation tokens. The signal with the token comes before the signal with the action.
    private var tokens: [UInt32: String] = [:]

    init(_ place: BusPlace) throws(BusFailure) {
        bus = try BusConnection(place)
        try bus.addMatch(
            "type='signal',sender='\(NotificationServer.name)',interface='\(NotificationServer.name)',"
                + "path='\(NotificationServer.path)'")
        try bus.addOwnerMatch(NotificationServer.name)
    }

    func show(_ notice: Notice, replacing former: UInt32?) throws(BusFailure) -> ShownNotice {
        let can = try askCapabilities()
        let hasActions = can.contains("actions")
        var body = hasActions ? notice.body : notice.bodyWithoutActions ?? notice.body
        if can.contains("body-markup") { body = Markup.escaped(body, quotes: false) }
        let hints: [BusValue] = [
            .entry("urgency", .variant(.byte(notice.urgency.rawValue))),
            .entry("desktop-entry", .variant(.text(NotificationServer.desktopEntry))),
        ]
        let answer = try call(
            "Notify", .text("Ringback"),
            // Only a notification that is still shown is replaced. Otherwise the number may belong to another program's
            // notification by now.
            .number(former.map { shown[$0] == nil ? 0 : $0 } ?? 0), .text("dialog-password"), .text(notice.summary),
            .text(body), .texts(hasActions ? notice.actions.flatMap { [$0.key, $0.label] } : []),
            .array(of: "{sv}", hints),
            // 0 means that it never expires, -1 that the server decides.
            .signed(notice.staysUntilAnswered ? 0 : -1))
        let id = try answer.readNumber()
        // The reply's sender is the server that shows it. If the server was replaced, the signal about that may not be
        // read yet.
        guard id != 0, let server = answer.sender else { throw .malformed }
        shown[id] = server
        return ShownNotice(id: id, server: server)
    }

    /// Closes a notification. It is no error if it is not shown any more.
    func close(_ notice: UInt32) throws(BusFailure) {
        guard shown[notice] != nil else { return }
        _ = try call("CloseNotification", .number(notice))
    }

    private func askCapabilities() throws(BusFailure) -> Set<String> {
        if let capabilities { return capabilities.words }
        let answer = try call("GetCapabilities")
        let words = Set(try answer.readTexts())
        capabilities = answer.sender.map { ($0, words) }
        return words
    }

    private func call(_ member: String, _ arguments: BusValue...) throws(BusFailure) -> BusMessage {
        try bus.call(
            member, of: NotificationServer.name, at: NotificationServer.path, in: NotificationServer.name, arguments)
    }

    /// The events that a message of the bus reports.
    func read(_ message: BusMessage) throws(BusFailure) -> [NoticeEvent] {
        if message.isSignal("NameOwnerChanged", of: "org.freedesktop.DBus") { return try readOwner(message) }
        let server = NotificationServer.name
        if message.isSignal("ActivationToken", of: server) {
            let id = try message.readNumber()
            let token = try message.readText()
            if shown[id] != nil, Application.isActivationToken(token) { tokens[id] = token }
            return []
        }
        if message.isSignal("ActionInvoked", of: server) {
            let id = try message.readNumber()
            let key = try message.readText()
            guard shown[id] != nil else { return [] }
            return [.answered(notice: id, action: key, activationToken: tokens.removeValue(forKey: id))]
        }
        guard message.isSignal("NotificationClosed", of: server) else { return [] }
        let id = try message.readNumber()
        let reason = try message.readNumber()
        tokens[id] = nil
        guard shown.removeValue(forKey: id) != nil else { return [] }
        return [.closed(notice: id, NoticeEvent.Closing(rawValue: reason) ?? .unknown)]
    }

    private func readOwner(_ message: BusMessage) throws(BusFailure) -> [NoticeEvent] {
        guard try message.readText() == NotificationServer.name else { return [] }
        let former = try message.readText()
        let owner = try message.readText()
        if capabilities?.server != owner { capabilities = nil }
        shown = shown.filter { $0.value != former }
        tokens = tokens.filter { shown[$0.key] != nil }
        return (former.isEmpty ? [] : [.serverGone(server: former)]) + (owner.isEmpty ? [] : [.serverCame])
    }
}

/// The content of a desktop notification. It contains no secret, because notifications are kept in histories and shown
/// on locked screens.
public struct Notice: Sendable, Equatable {
    public struct Action: Sendable, Equatable {
        /// The action's identifier. `default` is a click on the notification itself.
        public var key: String
        public var label: String

        public init(key: String, label: String) {
            self.key = key
            self.label = label
        }
    }

    public enum Urgency: UInt8, Sendable {
        case low = 0
        case normal = 1
        case critical = 2
    }

    public var summary: String
    /// Plain text.
    public var body: String
    /// The body for a notification server without actions, where the text must say what to do.
    public var bodyWithoutActions: String?
    public var actions: [Action]
    public var urgency: Urgency
    /// True if it should stay until the user reacts. Servers may ignore this.
    public var staysUntilAnswered: Bool

    public init(
        summary: String, body: String, bodyWithoutActions: String? = nil, actions: [Action] = [],
        urgency: Urgency = .normal, staysUntilAnswered: Bool = false
    ) {
        self.summary = summary
        self.body = body
        self.bodyWithoutActions = bodyWithoutActions
        self.actions = actions
        self.urgency = urgency
        self.staysUntilAnswered = staysUntilAnswered
    }
}

public enum NoticeEvent: Sendable, Equatable {
    /// Why a notification was closed (the numbers of the specification).
    public enum Closing: UInt32, Sendable {
        case expired = 1
        case dismissed = 2
        /// Closed by our request.
        case closed = 3
        case unknown = 4
    }

    /// The user chose an action. The token, if there is one, lets a program that is started for it bring its window to
    /// the front.
    case answered(notice: UInt32, action: String, activationToken: String?)
    case closed(notice: UInt32, Closing)
    /// A notification server has appeared or changed. What could not be shown before may be shown now.
    case serverCame
    /// A server has disappeared, together with the notifications that it showed: those whose ``ShownNotice/server``
    /// begins with this text. No events will come for them.
    case serverGone(server: String)
}

public struct ShownNotice: Sendable, Equatable {
    /// The number that the server gave it.
    public let id: UInt32
    public let server: String

    public init(id: UInt32, server: String) {
        self.id = id
        self.server = server
    }
}

/// Shows desktop notifications and reports their events, on a thread of its own. Without a bus or a notification server
/// it reports that, and keeps trying to find one.
public final class NotificationPresenter: Sendable {
    public enum Showing: Sendable, Equatable {
        case shown(ShownNotice)
        /// There is no notification server, or it failed; the reason is our own text.
        case notShown(reason: String)
    }

    private enum Job: Sendable {
        case show(Notice, replacing: UInt32?, answer: @Sendable (Showing) -> Void)
        case close(UInt32, done: @Sendable () -> Void)
    }

    private static let patience: ClosedRange<Duration> = .seconds(1) ... .seconds(60)

    private let jobs = Mutex<[Job]>([])
    private let wakeup: Wakeup?

    /// Uses the session bus at `place`. `report` is called on the presenter's thread.
    init(place: BusPlace, report: @escaping @Sendable (NoticeEvent) -> Void) {
        wakeup = try? Wakeup()
        guard let wakeup else { return }
        DispatchQueue(label: "ringback.notices").async { [weak self] in
            NotificationPresenter.work(place, wakeup, report) { self?.takeJobs() }
        }
    }

    deinit {
        // The thread finds no jobs to take any more, and stops.
        wakeup?.wake()
    }

    /// Shows a notification and replaces another one if that is still shown.
    func show(_ notice: Notice, replacing former: UInt32?, answer: @escaping @Sendable (Showing) -> Void) {
        put(.show(notice, replacing: former, answer: answer))
    }

    /// Closes a notification if it is still shown. `done` is called after the attempt.
    func close(_ notice: UInt32, done: @escaping @Sendable () -> Void = {}) { put(.close(notice, done: done)) }

    private func put(_ job: Job) {
        jobs.withLock { $0.append(job) }
        wakeup?.wake()
    }

    private func takeJobs() -> [Job] {
        jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
    }

    // MARK: The thread

    /// - Parameter take: returns and removes the jobs; nil when the presenter was released.
    private static func work(
        _ place: BusPlace, _ wakeup: Wakeup, _ report: @Sendable (NoticeEvent) -> Void, _ take: () -> [Job]?
    ) {
        var server: NotificationServer?
        var wait = patience.lowerBound
        // The first job makes the thread connect. From then on it keeps trying.
        var isWanted = false
        while true {
            guard let jobs = take() else { return }
            isWanted = isWanted || !jobs.isEmpty
            if isWanted, server == nil { server = find(place, &wait, isNew: jobs.isEmpty, report) }
            for job in jobs { perform(job, &server, report) }
            do throws(BusFailure) {
                try hear(server, report)
                try sleep(server, wakeup, isWanted && server == nil ? wait : nil)
            } catch {
                server = nil
                report(.serverGone(server: ""))
            }
            // Emptied before the jobs are taken. A job that arrives in between writes another byte.
            wakeup.empty()
        }
    }

    private static func find(
        _ place: BusPlace, _ wait: inout Duration, isNew: Bool, _ report: @Sendable (NoticeEvent) -> Void
    ) -> NotificationServer? {
        guard let server = try? NotificationServer(place) else {
            wait = min(wait * 2, patience.upperBound)
            return nil
        }
        wait = patience.lowerBound
        // Requests that failed before there was a bus may be repeated now.
        if isNew, (try? server.bus.hasOwner(NotificationServer.name)) == true { report(.serverCame) }
        return server
    }

    private static func perform(
        _ job: Job, _ server: inout NotificationServer?, _ report: @Sendable (NoticeEvent) -> Void
    ) {
        switch job {
        case .show(let notice, let former, let answer):
            guard let there = server else { return answer(.notShown(reason: "there is no session bus")) }
            do throws(BusFailure) {
                answer(.shown(try there.show(notice, replacing: former)))
            } catch {
                answer(.notShown(reason: error.reasonOfNotices))
                guard error == .lost else { return }
                server = nil
                report(.serverGone(server: ""))
            }
        case .close(let notice, let done):
            try? server?.close(notice)
            done()
        }
    }

    private static func hear(_ server: NotificationServer?, _ report: @Sendable (NoticeEvent) -> Void)
        throws(BusFailure)
    {
        while let server, let message = try server.bus.next() {
            // A malformed message is ignored.
            for event in (try? server.read(message)) ?? [] { report(event) }
        }
    }

    private static func sleep(_ server: NotificationServer?, _ wakeup: Wakeup, _ bound: Duration?) throws(BusFailure) {
        var waiting = [wakeup.interest]
        var milliseconds = bound.map { Int32($0 / .milliseconds(1)) } ?? -1
        if let server {
            let interest = try server.bus.interest()
            waiting.append(interest.waiting)
            milliseconds = interest.milliseconds
        }
        _ = unsafe poll(&waiting, nfds_t(waiting.count), milliseconds)
    }
}

extension BusFailure {
    fileprivate var reasonOfNotices: String {
        switch self {
        case .noLibrary, .noBus, .lost: "there is no session bus"
        case .timedOut: "the notification server does not respond"
        case .refused(let name):
            name.hasPrefix("org.freedesktop.DBus.Error.Spawn") || name.hasSuffix(".ServiceUnknown")
                || name.hasSuffix(".NameHasNoOwner")
                ? "there is no notification server" : "the notification server returned the error \(name)"
        default: "the notification server violates its interface"
        }
    }
}

// The encoding of notifications and their events between daemon and helper, the same for both directions.

extension Notice {
    var members: JSONObject {
        [
            "summary": summary, "body": body, "urgency": Int(urgency.rawValue), "stays": staysUntilAnswered,
            "body_without_actions": bodyWithoutActions,
            "actions": actions.map { action -> JSONObject in ["key": action.key, "label": action.label] },
        ]
    }

    init?(members: JSON) {
        guard let summary = members["summary"]?.string, let body = members["body"]?.string else { return nil }
        let actions = (members["actions"]?.array ?? []).compactMap { member -> Action? in
            guard let key = member["key"]?.string, let label = member["label"]?.string else { return nil }
            return Action(key: key, label: label)
        }
        let urgency = members["urgency"]?.integer.flatMap { UInt8(exactly: $0) }.flatMap { Urgency(rawValue: $0) }
        self.init(
            summary: summary, body: body, bodyWithoutActions: members["body_without_actions"]?.string,
            actions: actions, urgency: urgency ?? .normal, staysUntilAnswered: members["stays"]?.bool ?? false)
    }
}

extension NotificationPresenter.Showing {
    var members: JSONObject {
        switch self {
        case .shown(let notice): ["shown": true, "notice": Int(notice.id), "server": notice.server]
        case .notShown(let reason): ["shown": false, "reason": reason]
        }
    }

    init?(members: JSONObject) {
        guard let isShown = members["shown"]?.bool else { return nil }
        guard isShown else {
            self = .notShown(reason: members["reason"]?.string ?? "")
            return
        }
        guard let id = members["notice"]?.number, let server = members["server"]?.string else { return nil }
        self = .shown(ShownNotice(id: id, server: server))
    }
}

extension NoticeEvent {
    /// The value of the member `event` in such a line.
    static let event = "notice"

    var members: JSONObject {
        var members: JSONObject =
            switch self {
            case .answered(let notice, let action, let token):
                ["kind": "answered", "notice": Int(notice), "action": action, "activation_token": token]
            case .closed(let notice, let closing):
                ["kind": "closed", "notice": Int(notice), "closing": Int(closing.rawValue)]
            case .serverCame: ["kind": "server_came"]
            case .serverGone(let server): ["kind": "server_gone", "server": server]
            }
        members["event"] = .string(NoticeEvent.event)
        return members
    }

    init?(members: JSONObject) {
        switch (members["kind"]?.string, members["notice"]?.number) {
        case ("answered", let notice?):
            guard let action = members["action"]?.string else { return nil }
            self = .answered(notice: notice, action: action, activationToken: members["activation_token"]?.string)
        case ("closed", let notice?):
            self = .closed(notice: notice, members["closing"]?.number.flatMap(Closing.init) ?? .unknown)
        case ("server_came", _): self = .serverCame
        case ("server_gone", _):
            guard let server = members["server"]?.string else { return nil }
            self = .serverGone(server: server)
        default: return nil
        }
    }
}

extension JSON {
    /// An integer of 32 bits without a sign.
    var number: UInt32? { integer.flatMap { UInt32(exactly: $0) } }
}

// Desktop notifications, through the helper.
extension HelperConnection {
    /// Showing one takes up to three D-Bus calls, each with a timeout of a few seconds.
    private static let timeout: Duration = .seconds(20)

    /// Shows a notification and replaces another one if that is still shown. If there is no notification server, the
    /// result is `notShown`, not an error.
    public func notify(
        _ notice: Notice, replacing former: ShownNotice? = nil
    ) async throws(HelperError) -> NotificationPresenter.Showing {
        var members = notice.members
        members["do"] = "notify"
        members["replaces"] = former.map { .integer(Int($0.id)) }
        let answer = try await request(members, timeout: HelperConnection.timeout)
        guard let showing = NotificationPresenter.Showing(members: answer.members) else { throw .ended }
        return showing
    }

    public func closeNotice(_ notice: ShownNotice) async throws(HelperError) {
        _ = try await request(["do": "close_notice", "notice": Int(notice.id)], timeout: HelperConnection.timeout)
    }
}
