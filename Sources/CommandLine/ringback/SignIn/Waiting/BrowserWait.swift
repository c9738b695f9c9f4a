import RingbackClient
import Terminal

/// The wait for a flow after a browser was started with its page. The user is told if the page does not open; then its
/// address is shown.
struct BrowserWait {
    let calls: BrokerCalls
    let flow: Flow
    /// The caller's own deadline.
    let end: ContinuousClock.Instant?
    let progress: ProgressLine
    /// Draws the progress line.
    let show: () -> Void
    /// Shows the page's address; true if a callback URL can be pasted here.
    let showPage: (Bool) -> Void
    /// Reads a pasted callback URL, and waits for the flow's end; nil if nothing can be pasted here.
    let paste: (() throws(RingbackError) -> Flow)?

    /// The flow once it has ended, or as it is at the deadline.
    ///
    /// - Parameter browser: the pid of the program that was started with the page.
    func finish(_ browser: Int32) throws(RingbackError) -> Flow {
        var opener: Int32? = browser
        var hasFailed = false
        var isShown = false
        var opening = PageOpening(of: flow)
        func showPageOnce(takesPaste: Bool) {
            guard !isShown else { return }
            isShown = true
            showPage(takesPaste)
        }
        func tick() {
            // An opener that fails has shown nothing. An opener that succeeds, as most do at once, says nothing about
            // the browser that it started.
            if let pid = opener, let status = Subprocess.endedStatus(pid) {
                opener = nil
                if status != 0 {
                    hasFailed = true
                    progress.clear()
                    Output.note(BrowserFailure.ended(status))
                    if paste == nil || opening.isSettled { showPageOnce(takesPaste: false) }
                }
            }
            let isPrompted = hasFailed && paste != nil && !opening.isSettled
            if !isPrompted { show() }
        }
        // Looks again every few seconds until a browser of this user has fetched the page: a browser that is slow to
        // start may also be one of another user.
        let patient = ContinuousClock.now + PageOpening.patience
        while !opening.isSettled {
            let now = ContinuousClock.now
            // An opener that fails does so at once, and is followed by a prompt where there is a user at the terminal.
            let isEarly = now < patient
            let soon =
                !isEarly ? now + PageOpening.patience : opener == nil || paste == nil ? patient : now + .seconds(1)
            let later = try calls.wait(forFlow: flow.id, until: end.map { min($0, soon) } ?? soon, onTick: tick).0
            if later.status != .pending || end.map({ .now >= $0 }) ?? false { return later }
            tick()
            if hasFailed, let paste {
                progress.clear()
                showPageOnce(takesPaste: true)
                return try paste()
            }
            // If the opener failed, the address has been printed already, and that it was not opened is known.
            guard .now >= patient, let news = opening.news(in: later), !(isShown && news == .notOpened) else {
                continue
            }
            progress.clear()
            Output.note(news.text)
            showPageOnce(takesPaste: false)
        }
        return try calls.wait(forFlow: flow.id, until: end, onTick: tick).0
    }
}
