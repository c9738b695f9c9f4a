import RingbackClient
import StrictJSON
import Terminal

/// The provider's page that ends the user's session in the browser, after the sign-out here. Ringback does not wait for
/// the browser to come back, and reads nothing of it.
struct EndSessionPage {
    /// To be shown.
    private let url: String?
    /// To be opened: an address of the daemon that leads there once. The page's URL may have the ID token in it, and every
    /// user of the machine can read a browser's arguments.
    private let openURL: String?
    private let openURLError: RingbackError?
    private let problem: String?
    private let opensBrowser: Bool

    /// - Parameter answer: the daemon's response to the sign-out.
    init(_ answer: JSON, opensBrowser: Bool) {
        url = answer["end_session_url"]?.string
        openURL = answer["end_session_open_url"]?.string
        openURLError = RingbackError(reading: answer["end_session_open_url_error"])
        problem = RingbackError(reading: answer["end_session_error"])?.detail
        self.opensBrowser = opensBrowser
    }

    /// The session has ended here, whatever happens to the page.
    func show(_ isJSON: Bool) {
        guard let url else {
            let reason = problem.map { problem in
                "could not be asked for the page: \(Sanitizer.line(problem.hasSuffix(".") ? String(problem.dropLast()) : problem, limit: 400))"
            }
            Output.note(
                "The provider \(reason ?? "has no page to sign out in the browser"). A browser that is signed in there "
                    + "stays signed in.")
            return
        }
        if isJSON { return }
        guard opensBrowser else { return Output.line(Sanitizer.line(url, limit: 16_384)) }
        if openURL == nil {
            let reason = openURLError?.detail ?? "The daemon has no address for a browser to open."
            Output.note("No browser was started. \(Sanitizer.line(reason, limit: 400))")
        }
        guard let openURL, Browser.open(openURL) else {
            return Output.note("Open this page in a browser:\n  \(Sanitizer.line(url, limit: 16_384))")
        }
    }
}
