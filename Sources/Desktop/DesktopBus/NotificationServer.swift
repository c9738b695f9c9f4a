internal import Encodings
internal import Glibc

/// The desktop's notification server (`org.freedesktop.Notifications`, Desktop Notifications Specification 1.2 and
/// 1.3). All calls use one connection: a server sends its signals only to the connection that showed the notification,
/// and some close a notification when that connection ends.
final class NotificationServer {
    static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    /// The id of our `.desktop` file, by which servers group notifications and apply settings.
    private static let desktopEntry = "ringback-callback"
    /// The maximum length of an activation token in bytes. Compositors choose its content.
    private static let maxToken = 512

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
        try bus.addMatch(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                + "arg0='\(NotificationServer.name)'")
    }

    /// True if a server is running. One that the bus could start is not started.
    func isThere() throws(BusFailure) -> Bool {
        let driver = "org.freedesktop.DBus"
        let request = try bus.request("NameHasOwner", of: driver, at: "/org/freedesktop/DBus", in: driver)
        try request.append(NotificationServer.name)
        return try bus.call(request).readBool()
    }

    // MARK: Showing

    /// Shows a notification and replaces another one if that is still shown.
    func show(_ notice: Notice, replacing former: UInt32?) throws(BusFailure) -> ShownNotice {
        let can = try askCapabilities()
        let hasActions = can.contains("actions")
        var body = hasActions ? notice.body : notice.bodyWithoutActions ?? notice.body
        if can.contains("body-markup") { body = Markup.escaped(body, quotes: false) }
        let request = try call("Notify")
        try request.append("Ringback")
        // Only a notification that is still shown is replaced. Otherwise the number may belong to another program's
        // notification by now.
        try request.append(former.map { shown[$0] == nil ? 0 : $0 } ?? 0)
        try request.append("dialog-password")
        try request.append(notice.summary)
        try request.append(body)
        try request.append(texts: hasActions ? notice.actions.flatMap { [$0.key, $0.label] } : [])
        try request.append(hintsOf: notice, desktopEntry: NotificationServer.desktopEntry)
        // 0 means that it never expires, -1 that the server decides.
        try request.append(signed: notice.staysUntilAnswered ? 0 : -1)
        let answer = try bus.call(request)
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
        let request = try call("CloseNotification")
        try request.append(notice)
        _ = try bus.call(request)
    }

    private func askCapabilities() throws(BusFailure) -> Set<String> {
        if let capabilities { return capabilities.words }
        let answer = try bus.call(try call("GetCapabilities"))
        let words = Set(try answer.readTexts())
        capabilities = answer.sender.map { ($0, words) }
        return words
    }

    private func call(_ member: String) throws(BusFailure) -> BusMessage {
        try bus.request(
            member, of: NotificationServer.name, at: NotificationServer.path, in: NotificationServer.name)
    }

    // MARK: Hearing

    /// The events that a message of the bus reports.
    func read(_ message: BusMessage) throws(BusFailure) -> [NoticeEvent] {
        if message.isSignal("NameOwnerChanged", of: "org.freedesktop.DBus") { return try readOwner(message) }
        let server = NotificationServer.name
        if message.isSignal("ActivationToken", of: server) {
            let id = try message.readNumber()
            let token = try message.readText()
            if shown[id] != nil, NotificationServer.isToken(token) { tokens[id] = token }
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

    private static func isToken(_ token: String) -> Bool {
        (1...maxToken).contains(token.utf8.count) && token.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

extension BusMessage {
    fileprivate func append(hintsOf notice: Notice, desktopEntry: String) throws(BusFailure) {
        try open("a", "{sv}")
        try open("e", "sv")
        try append("urgency")
        try open("v", "y")
        try append(byte: notice.urgency.rawValue)
        try close(2)
        try open("e", "sv")
        try append("desktop-entry")
        try open("v", "s")
        try append(desktopEntry)
        try close(3)
    }
}
