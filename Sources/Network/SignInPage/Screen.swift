/// A screen of the sign-in page. The raw value is its path.
public enum Screen: String, Sendable, CaseIterable {
    case login = "/"
    case signUp = "/sign-up"
    case forgotten = "/forgotten"
    /// An address is asked for, to send a code and a link to it.
    case mail = "/mail"
    /// The same for a phone.
    case sms = "/sms"
    /// A message was sent; its code is asked for.
    case code = "/code"
    case resend = "/resend"
    /// The project is being asked.
    case wait = "/wait"
    case factor = "/factor"
    case newPassword = "/new-password"
    case done = "/done"
    /// Nothing is left to do, but what was typed last was not used.
    case unused = "/unused"
    /// The sign-in has ended without a session.
    case ended = "/ended"
    /// For a browser that did not come by the start address.
    case elsewhere = "/elsewhere"

    /// Those that a user may go to while the sign-in is pending.
    public var isFree: Bool {
        switch self {
        case .login, .signUp, .forgotten, .mail, .sms: true
        case .code, .resend, .wait, .factor, .newPassword, .done, .unused, .ended, .elsewhere: false
        }
    }
}

/// What a screen shows. Nothing of it is HTML.
public struct ScreenContent: Sendable {
    /// What a project offers.
    public struct Offers: Sendable {
        public var email = false
        public var phone = false
        public var signUp = false

        public init() {}
    }

    /// A link to a provider's page.
    public struct ProviderLink: Sendable {
        /// As the project calls it, such as `google`.
        public let provider: String
        /// A path of the page that works once.
        public let path: String

        public init(provider: String, path: String) {
            self.provider = provider
            self.path = path
        }
    }

    /// A second factor of the user.
    public struct Factor: Sendable {
        public let id: String
        public let name: String?
        /// Codes are sent to it; otherwise an authenticator app shows them.
        public let isPhone: Bool
        /// A code has been sent.
        public let hasMessage: Bool
        /// Seconds until another code may be sent.
        public let secondsLeft: Int

        public init(id: String, name: String?, isPhone: Bool, hasMessage: Bool, secondsLeft: Int = 0) {
            self.id = id
            self.name = name
            self.isPhone = isPhone
            self.hasMessage = hasMessage
            self.secondsLeft = secondsLeft
        }
    }

    /// What was wrong with the form that was sent last.
    public struct Complaint: Sendable {
        /// The field, by its name in the form; nil if it is about the whole form.
        public let field: String?
        public let sentence: String

        public init(field: String?, sentence: String) {
            self.field = field
            self.sentence = sentence
        }
    }

    public let screen: Screen
    public let account: String
    public let host: String
    /// Two words, which the program that began the sign-in shows too.
    public let words: String
    /// Of every form.
    public let token: String
    public var offers = Offers()
    public var providers: [ProviderLink] = []
    public var complaint: Complaint?
    /// Another user than the account's has signed in, and may take the account over.
    public var offersSwitch = false
    /// What was typed before.
    public var email = ""
    public var phone = ""
    /// Where the message went.
    public var sentTo = ""
    /// The message has a link as well as a code.
    public var hasLink = false
    /// Seconds until another message may be sent.
    public var secondsLeft = 0
    /// Seconds until the page's time is over.
    public var lifetime = 0
    public var factors: [Factor] = []

    public init(_ screen: Screen, account: String, host: String, words: String, token: String) {
        self.screen = screen
        self.account = account
        self.host = host
        self.words = words
        self.token = token
    }
}
