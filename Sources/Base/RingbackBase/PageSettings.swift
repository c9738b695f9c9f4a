/// How an account's sign-in page is opened, what it is told, and how the account is called there.
public struct PageSettings: Sendable, Equatable {
    /// The program that opens the page (an absolute path, or a name in PATH) and its arguments; nil for the user's
    /// default browser.
    public var browser: [String]?

    /// True if the page is told which user is signed in (`login_hint`).
    public var sendsLoginHint = true

    /// True if the page is opened as soon as a tool waits on a terminal; otherwise the user presses Enter.
    public var opensAtOnce = false
    /// The app's name for the user, see ``isDisplayName(_:)``. It is always shown beside the provider's host.
    public var displayName: String?

    public init() {}

    /// True for one line of at most 64 characters without control characters and without invisible ones, some of which
    /// change the direction of the text around them.
    public static func isDisplayName(_ text: String) -> Bool {
        let scalars = text.unicodeScalars
        guard (1...64).contains(scalars.count), scalars.first?.properties.isWhitespace == false,
            scalars.last?.properties.isWhitespace == false
        else { return false }
        // A wide gap would push the host, which stands beside the name, out of sight.
        guard !text.contains("  ") else { return false }
        // U+2800 is a letter of Braille without a dot.
        return scalars.allSatisfy { $0.isVisible && $0.value != 0x2800 }
    }

    /// What an account is called where the host of its provider does not stand beside the name anyway. The drop-in of a
    /// package may choose any name; the host shows where a password goes.
    public func label(of account: String, at host: String?) -> String {
        guard let displayName, let host else { return account }
        return "\(displayName) (\(host))"
    }

    /// Stands for the page's address in an argument of ``browser``.
    public static let placeholder = "{url}"

    /// The argument vector that opens an address. Without the placeholder the address is the last argument.
    public static func command(_ browser: [String], opening url: String) -> [String] {
        guard browser.contains(where: { $0.contains(placeholder) }) else { return browser + [url] }
        return browser.map { $0.replacing(placeholder, with: url) }
    }
}
