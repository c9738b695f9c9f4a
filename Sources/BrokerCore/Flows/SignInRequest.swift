/// What a caller asks of a sign-in. Equal requests share one flow.
public struct SignInRequest: Sendable, Equatable {
    public var method: SignInMethod
    /// Nil: the account's.
    public var scopes: [String]?
    public var parameters: [(String, String)]
    /// How long it may take; nil: the account's.
    public var timeout: Duration?
    /// Another user than the one who is signed in may take the account over.
    public var switchesSubject: Bool
    /// Fields for one kind of provider.
    public var details: (any SignInDetails)?
    /// The port that the callback is to come to; nil for the configured one, or any that is free.
    public var callbackPort: Int?
    /// It takes the place of a different sign-in of the account that is pending.
    public var replaces = false
    /// Who asks: a flow whose processes listen is waited for.
    public var process: Int32?
    /// What it is for, as its provider has found by ``SignInProvider/check(_:)``.
    public var purpose = Purpose.signIn
    /// It is on its way when it is asked for; a flow may follow.
    public var startsAtOnce = false
    /// It ends in a browser or a mail program, not in the program that asked for it, as its provider has found.
    public var endsElsewhere = false
    /// The way in as sign-ins are recorded: a provider's name, `email` or `phone`.
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

    /// Of a user who is signed in and stays so however it ends.
    var concernsHeldUser: Bool { purpose != .signIn }

    /// The same without what was needed once: a pending flow keeps no password, and is found without it.
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

/// What a sign-in at one kind of provider takes beside what every sign-in does.
public protocol SignInDetails: Sendable {
    /// Equal ones are one sign-in.
    func isSame(as other: any SignInDetails) -> Bool
    /// The same without what was needed once.
    var withoutSecrets: any SignInDetails { get }
}

extension SignInDetails where Self: Equatable {
    public func isSame(as other: any SignInDetails) -> Bool { other as? Self == self }
}
