import RingbackClient
import Terminal

/// Why no browser shows a page, as far as this process can tell.
enum BrowserFailure {
    /// No program could be started with the page.
    static func notStarted(_ url: String) -> String {
        guard LoopbackURL.isSafeToOpen(url) else {
            return "No browser was started: the page's address is neither https nor http on this machine."
        }
        return stated.map { "No browser was started: BROWSER is “\($0)”, which cannot be started." }
            ?? "No browser was started: there is no xdg-open (package xdg-utils), and BROWSER is not set."
    }

    /// The program that was started with the page has failed.
    ///
    /// - Parameter status: its exit status, or 128 and the signal.
    static func ended(_ status: Int32) -> String {
        stated.map { "No browser was opened: BROWSER is “\($0)”, which ended with status \(status)." }
            ?? "No browser was opened: xdg-open ended with status \(status). Run: ringback doctor"
    }

    private static var stated: String? {
        SocketPlace.variable("BROWSER").flatMap { $0.isEmpty ? nil : Sanitizer.line($0, limit: 200) }
    }
}
