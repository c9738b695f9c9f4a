/// How a user signs in. The kinds of accounts name their methods; the broker compares them and passes them on.
public struct SignInMethod: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value on the wire and in the records.
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// On a page of the provider, in a browser: the method where a caller names none.
    public static let browser = SignInMethod(rawValue: "browser")

    /// On a page that the daemon serves, where the account's kind has one.
    public static let page = SignInMethod(rawValue: "page")

    public var description: String { rawValue }
}

/// What a pending flow waits for. The raw values are those of the wire.
public enum WaitingFor: String, Sendable, CaseIterable {
    /// A callback from a browser.
    case callback
    /// A code that was sent to the user.
    case code
    /// A link or a code in a mail that confirms the user's address.
    case emailConfirmation = "email_confirmation"
    /// A code that the user enters on another device (RFC 8628).
    case device
    /// An authenticator's response.
    case passkey
    /// What the user does on a page that the daemon serves.
    case page
}
