internal import Glibc

/// The desktop's notification server (`org.freedesktop.Notifications`, Desktop Notifications Specification 1.2 and 1.3)
/// over one connection: what it can do is asked once, and its signals are read as they come. A server sends its signals
/// to whoever showed the notice, and some take a notice away when that connection ends; so one connection does it all.
final class NotificationServer {
    static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    /// The `.desktop` file that says who we are, for servers that group or rule by it.
    private static let desktopEntry = "ringback-callback"
    /// A token is some bytes of the compositor's own choice.
    private static let maxToken = 512

    let bus: BusConnection
    /// What a server can do, by its unique name: there may be another one tomorrow.
    private var capabilities: (server: String, words: Set<String>)?
    /// The notices that are shown, as far as we know, and by whom.
    private var shown: [UInt32: String] = [:]
    /// Tokens come before the answers that they are for.
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

    /// True if a server is there already; one that the bus would start is not asked for.
    func isThere() throws(BusFailure) -> Bool {
        let driver = "org.freedesktop.DBus"
        let request = try bus.request("NameHasOwner", of: driver, at: "/org/freedesktop/DBus", in: driver)
        try request.append(NotificationServer.name)
        return try bus.call(request).readBool()
    }

    // MARK: Showing

    /// Shows a notice, in the place of another one if that is still shown.
    func show(_ notice: Notice, replacing former: UInt32?) throws(BusFailure) -> ShownNotice {
        let can = try askCapabilities()
        let hasActions = can.contains("actions")
        var body = hasActions ? notice.body : notice.bodyWithoutActions ?? notice.body
        if can.contains("body-markup") { body = NotificationServer.escape(body) }
        let request = try call("Notify")
        try request.append("Ringback")
        // Of another server, or dismissed: the number may be somebody else's by now.
        try request.append(former.map { shown[$0] == nil ? 0 : $0 } ?? 0)
        try request.append("dialog-password")
        try request.append(notice.summary)
        try request.append(body)
        try request.append(texts: hasActions ? notice.actions.flatMap { [$0.key, $0.label] } : [])
        try request.append(hintsOf: notice, desktopEntry: NotificationServer.desktopEntry)
        // As long as the server finds right, or without end.
        try request.append(signed: notice.staysUntilAnswered ? 0 : -1)
        let answer = try bus.call(request)
        let id = try answer.readNumber()
        // Where two servers take turns, this is what tells whose the notice is: news of the change may be yet unread.
        guard id != 0, let server = answer.sender else { throw .malformed }
        shown[id] = server
        return ShownNotice(id: id, server: server)
    }

    /// Takes a notice away. One that is not shown any more is no error.
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

    /// Text in a body that may have markup: an account's or a person's name is no tag.
    static func escape(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    // MARK: Hearing

    /// What a message of the bus means to us.
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
