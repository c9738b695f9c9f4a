/// The content of a desktop notification. It contains no secret, because notifications are kept in histories and shown
/// on locked screens.
public struct Notice: Sendable, Equatable {
    /// A button of a notification.
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

/// An event of a notification or of the notification server.
public enum NoticeEvent: Sendable, Equatable {
    /// Why a notification was closed (the numbers of the specification).
    public enum Closing: UInt32, Sendable {
        /// Its time has expired.
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

/// A notification that is shown.
public struct ShownNotice: Sendable, Equatable {
    /// The number that the server gave it.
    public let id: UInt32
    /// The server that shows it.
    public let server: String

    public init(id: UInt32, server: String) {
        self.id = id
        self.server = server
    }
}
