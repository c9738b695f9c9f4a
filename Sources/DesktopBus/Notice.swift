/// What a notification on the person's desktop is to say and to ask. Nothing in it is a secret: notifications are kept
/// in histories, and shown on locked screens.
public struct Notice: Sendable, Equatable {
    /// Something that the person may answer with.
    public struct Action: Sendable, Equatable {
        /// What the answer is called here. `default` is a click on the notification itself.
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
    /// The body where the notification server has no actions: there the person must be told another way.
    public var bodyWithoutActions: String?
    public var actions: [Action]
    public var urgency: Urgency
    /// It stays until it is answered, where the server knows how.
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

/// What happened to notices.
public enum NoticeEvent: Sendable, Equatable {
    /// Why a notice is there no more (the server's numbers).
    public enum Closing: UInt32, Sendable {
        /// Its time was over.
        case expired = 1
        case dismissed = 2
        /// We closed it.
        case closed = 3
        case unknown = 4
    }

    /// The person chose an action of the notice. The token, where there is one, lets a program that is started for it
    /// bring its window forward.
    case answered(notice: UInt32, action: String, activationToken: String?)
    case closed(notice: UInt32, Closing)
    /// There is a notification server now, or another one: what could not be shown before can be shown.
    case serverCame
    /// A server has gone, and the notices with it that it showed: no answer to them will come. They are those whose
    /// ``ShownNotice/server`` begins so.
    case serverGone(server: String)
}

/// A notice that is shown.
public struct ShownNotice: Sendable, Equatable {
    /// The server's number for it.
    public let id: UInt32
    /// Which server that is.
    public let server: String

    public init(id: UInt32, server: String) {
        self.id = id
        self.server = server
    }
}
