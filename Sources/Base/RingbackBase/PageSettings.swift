/// How an account's sign-in page is opened, and what it is told.
public struct PageSettings: Sendable, Equatable {
    /// The program that opens the page (an absolute path, or a name in PATH) and its arguments; nil for the user's
    /// default browser.
    public var browser: [String]?

    /// True if the page is told which user is signed in (`login_hint`).
    public var sendsLoginHint = true

    public init() {}

    /// Stands for the page's address in an argument of ``browser``.
    public static let placeholder = "{url}"

    /// The argument vector that opens an address. Without the placeholder the address is the last argument.
    public static func command(_ browser: [String], opening url: String) -> [String] {
        guard browser.contains(where: { $0.contains(placeholder) }) else { return browser + [url] }
        return browser.map { $0.replacing(placeholder, with: url) }
    }
}
