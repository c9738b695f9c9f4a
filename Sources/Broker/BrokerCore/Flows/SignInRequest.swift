/// What a caller asks of a sign-in. Equal requests share one flow.
public struct SignInRequest: Sendable, Equatable {
    public var method: SignInMethod
    /// Nil: the account's.
    public var scopes: [String]?
    public var parameters: [(String, String)]
    public var timeout: Duration?
    /// Another user than the one who is signed in may take the account over.
    public var switchesSubject: Bool
    public var details: (any SignInDetails)?
    /// The port that the callback is to come to; nil for the configured one, or any that is free.
    public var callbackPort: Int?
    public var replaces = false
    /// The process that asks. As long as it listens for events, a caller counts as waiting for the flow.
    public var process: Int32?
    /// What it is for. Set by ``SignInProvider/check(_:)``.
    public var purpose = Purpose.signIn
    /// The sign-in starts with the request itself, not with a flow; a flow may follow. Set by the provider.
    public var startsAtOnce = false
    /// It ends in a browser or a mail program, not in the program that asked for it. Set by the provider.
    public var endsElsewhere = false
    /// How the user signs in, as it is recorded: a provider's name, `email` or `phone`.
    public var way: String?

    public enum Purpose: Sendable {
        case signIn
        /// One more identity of the user who is signed in.
        case link
        /// A change of the user who is signed in. It uses a flow, but is no sign-in.
        case change
    }

    public init(
        method: SignInMethod = .browser, scopes: [String]? = nil, parameters: [(String, String)] = [],
        timeout: Duration? = nil, switchesSubject: Bool = false
    ) {
        self.method = method
        self.scopes = scopes
        self.parameters = parameters
        self.timeout = timeout
        self.switchesSubject = switchesSubject
    }

    var changesUser: Bool { purpose == .change }

    /// True if it concerns the user who is signed in, who stays signed in even if it fails.
    var concernsHeldUser: Bool { purpose != .signIn }

    /// Without the secrets that are needed only once: a pending flow keeps no password, and requests are compared so.
    var withoutSecrets: SignInRequest {
        var request = self
        request.details = details?.withoutSecrets
        return request
    }

    /// `timeout` and `replaces` are not compared: requests that differ only in them are equal.
    public static func == (left: SignInRequest, right: SignInRequest) -> Bool {
        left.method == right.method && left.scopes == right.scopes && left.switchesSubject == right.switchesSubject
            && SignInRequest.isSame(left.details, right.details) && left.callbackPort == right.callbackPort
            && left.parameters.count == right.parameters.count
            && zip(left.parameters, right.parameters).allSatisfy { $0 == $1 }
    }

    private static func isSame(_ left: (any SignInDetails)?, _ right: (any SignInDetails)?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.isSame(as: right)
    }
}

/// The fields of a sign-in request that only one kind of provider has.
public protocol SignInDetails: Sendable, Equatable {
    var withoutSecrets: any SignInDetails { get }
}

/// How a user signs in. The kinds of accounts name their methods; the broker compares them and passes them on.
public struct SignInMethod: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// On a page of the provider, in a browser: the method where a caller names none.
    public static let browser = SignInMethod(rawValue: "browser")
    public static let page = SignInMethod(rawValue: "page")

    public var description: String { rawValue }
}

/// What a pending flow waits for. The raw values are those of the wire.
public enum WaitingFor: String, Sendable, CaseIterable {
    case callback
    case code
    /// A link or a code in a mail that confirms the user's address.
    case emailConfirmation = "email_confirmation"
    /// A code that the user enters on another device (RFC 8628).
    case device
    case passkey
    /// What the user does on a page that the daemon serves.
    case page
}
