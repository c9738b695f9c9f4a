import Glibc
import RingbackClient
import Terminal

/// The wait for a flow after a browser was started with its page. The user is told if the page does not open; then its
/// address is shown.
struct BrowserWait {
    let calls: BrokerCalls
    let flow: Flow
    let end: ContinuousClock.Instant?
    let progress: ProgressLine
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

/// Why no browser shows a page, as far as this process can tell.
enum BrowserFailure {
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

extension Flow {
    /// The page that the user is to open: the provider's, or our own.
    var pageURL: String? { waitingFor == .page ? openURL : authorizationURL }

    /// What the sign-in waits for, as the progress line shows it. The first text says the most; the others are shorter,
    /// for terminals where it does not fit.
    var waitingTexts: [String] {
        let name = Sanitizer.line(account)
        switch waitingFor {
        case nil, .callback?:
            let signIn = "Waiting for the sign-in to \(name)"
            let place = authorizationURL.map { " at " + Sanitizer.line(Flow.authority(of: $0)) } ?? ""
            return ["\(signIn)\(place) in your browser", "\(signIn) in your browser", signIn]
        case .code?:
            let code = "Waiting for the code that was sent for \(name)"
            return ["\(code) (ringback verify takes it too)", code]
        case .page?: return ["Waiting for the sign-in to \(name) on the page in your browser"]
        case .passkey?: return ["Waiting for the passkey's response for \(name)"]
        case .emailConfirmation?: return ["Waiting for the confirmation by e-mail for \(name)"]
        // The code once more, since the text above may have scrolled away.
        case .device?:
            let code = Sanitizer.line(userCode ?? "")
            let waiting = "Waiting for the code \(code)"
            return ["\(waiting) to be entered, for \(name)", "\(waiting) for \(name)", "Code \(code)"]
        case let other?: return ["Waiting for \(Sanitizer.line(other.rawValue)) for \(name)"]
        }
    }

    /// The authority of a URL, for display only.
    private static func authority(of url: String) -> String {
        guard let scheme = url.firstIndex(of: ":") else { return url }
        return String(url[url.index(after: scheme)...].drop { $0 == "/" }.prefix { !"/?#".contains($0) })
    }
}

/// What has become of the address that a browser was started with, and what the user has been told of it. Each thing is
/// told once.
struct PageOpening {
    /// The delay before the user is told anything. A running browser fetches the page sooner. A browser that has to be
    /// started may need longer.
    static let patience: Duration = .seconds(5)

    enum News: Equatable {
        /// The page has not been fetched yet. The browser may only be slow.
        case notOpened
        /// Another user asked for the page and was not sent to it. Nil if the system does not tell who.
        case foreign(uid: Int?)
        /// Newer addresses have replaced it, and no fetch of the page was observed.
        case replaced
    }

    /// The address that was opened.
    private let url: String?
    private var hasToldNotOpened = false
    private var hasToldForeign = false
    /// Nothing is to be told any more.
    private(set) var isSettled = false

    /// - Parameter flow: as it began, with the address that was opened.
    init(of flow: Flow) { url = flow.openURL }

    static func noAddress(_ error: RingbackError?) -> String {
        let reason = error?.detail ?? "The daemon has no address for a browser to open."
        return
            "No browser was started. \(Sanitizer.line(reason, limit: 400)) The page's own address is not passed to a "
            + "program, because other users of this machine could read it there and sign you in as themselves. Copy it "
            + "into the address bar of a browser."
    }

    /// - Parameter later: the same flow after a while.
    mutating func news(in later: Flow) -> News? {
        guard let opened = later.openAddresses.first(where: { $0.url == url }) else {
            isSettled = true
            return url == nil ? nil : .replaced
        }
        switch opened.status {
        case .unused:
            defer { hasToldNotOpened = true }
            return hasToldNotOpened ? nil : .notOpened
        case .foreign:
            defer { hasToldForeign = true }
            return hasToldForeign ? nil : .foreign(uid: opened.uid)
        default:
            isSettled = true
            return nil
        }
    }
}

extension PageOpening.News {
    var text: String {
        switch self {
        case .notOpened:
            return "The sign-in page has not been opened yet. Your browser may still be starting."
        case .replaced:
            return "The address that the browser was started with may not work any more: newer sign-in calls have got "
                + "theirs since."
        case .foreign(let uid):
            let who = uid.map { "uid \($0)" } ?? "a program that is not known to be yours"
            return "The sign-in page was requested by \(who), not by you (uid \(getuid())), and was not sent. "
                + "If that is your browser in a container, name its uid in callback_peer_uids."
        }
    }
}
