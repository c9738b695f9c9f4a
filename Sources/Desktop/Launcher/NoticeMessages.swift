public import DesktopBus
internal import RingbackBase

// The encoding of notifications and their events between daemon and helper, the same for both directions.

extension Notice {
    var members: JSONObject {
        var members = JSONObject([
            .init("summary", .string(summary)), .init("body", .string(body)),
            .init("urgency", .integer(Int(urgency.rawValue))), .init("stays", .bool(staysUntilAnswered)),
        ])
        members["body_without_actions"] = bodyWithoutActions.map { .string($0) }
        members["actions"] = .array(
            actions.map { ["key": .string($0.key), "label": .string($0.label)] })
        return members
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
        case .shown(let notice):
            JSONObject([
                .init("shown", true), .init("notice", .integer(Int(notice.id))),
                .init("server", .string(notice.server)),
            ])
        case .notShown(let reason): JSONObject([.init("shown", false), .init("reason", .string(reason))])
        }
    }

    init?(members: JSONObject) {
        guard let isShown = members["shown"]?.bool else { return nil }
        guard isShown else {
            self = .notShown(reason: members["reason"]?.string ?? "")
            return
        }
        guard let id = members["notice"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let server = members["server"]?.string
        else { return nil }
        self = .shown(ShownNotice(id: id, server: server))
    }
}

extension NoticeEvent {
    /// The value of the member `event` in such a line.
    static let event = "notice"

    var members: JSONObject {
        var members = JSONObject([.init("event", .string(NoticeEvent.event))])
        switch self {
        case .answered(let notice, let action, let token):
            members["kind"] = "answered"
            members["notice"] = .integer(Int(notice))
            members["action"] = .string(action)
            members["activation_token"] = token.map { .string($0) }
        case .closed(let notice, let closing):
            members["kind"] = "closed"
            members["notice"] = .integer(Int(notice))
            members["closing"] = .integer(Int(closing.rawValue))
        case .serverCame: members["kind"] = "server_came"
        case .serverGone(let server):
            members["kind"] = "server_gone"
            members["server"] = .string(server)
        }
        return members
    }

    init?(members: JSONObject) {
        let notice = members["notice"]?.integer.flatMap { UInt32(exactly: $0) }
        switch (members["kind"]?.string, notice) {
        case ("answered", let notice?):
            guard let action = members["action"]?.string else { return nil }
            self = .answered(
                notice: notice, action: action, activationToken: members["activation_token"]?.string)
        case ("closed", let notice?):
            let closing = members["closing"]?.integer.flatMap { UInt32(exactly: $0) }.flatMap { Closing(rawValue: $0) }
            self = .closed(notice: notice, closing ?? .unknown)
        case ("server_came", _): self = .serverCame
        case ("server_gone", _):
            guard let server = members["server"]?.string else { return nil }
            self = .serverGone(server: server)
        default: return nil
        }
    }
}

// Desktop notifications, through the helper.
extension HelperConnection {
    /// Showing one takes up to three D-Bus calls, each with a timeout of a few seconds.
    private static let timeout: Duration = .seconds(20)

    /// Shows a notification and replaces another one if that is still shown. If there is no notification server, the
    /// result is `notShown`, not an error. Throws ``HelperError`` if the helper fails.
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

    /// Closes a notification if it is still shown. Throws ``HelperError`` if the helper fails.
    public func closeNotice(_ notice: ShownNotice) async throws(HelperError) {
        let members = JSONObject([.init("do", "close_notice"), .init("notice", .integer(Int(notice.id)))])
        _ = try await request(members, timeout: HelperConnection.timeout)
    }
}
