import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A sign-in from its start to its end, for `login` and `token --sign-in`: shows the page, waits, and cancels the flow
/// when it is interrupted.
struct SignInRun {
    let account: String
    var opensBrowser: Bool
    var endpoint = Endpoint.signIn
    var fields: JSONObject = ["method": "browser"]
    /// Seconds. Also the limit of this run's own wait, if another caller began the flow and it lasts longer.
    var timeout: Int?
    /// If no browser can be opened, a code to be entered on another device is requested first.
    var mayChooseDevice = false
    var showsQR = true
    /// Where a code is read, if the flow wants one; nil for the terminal or standard input.
    var codeFD: Int32?
    var credentialFD: Int32?
    /// True to wait even if no code can be read: the user may open the link, or pass the code to `ringback verify`.
    var waitsWithoutInput = false
    var known: JSON?
    /// How the flow's start is printed: its JSON, or what the user needs of it; nil if it is not.
    var printsJSON: Bool?
    private let shown = ShownPage()

    /// - Throws: `cancelled` after a signal, `timeout` at the run's own limit. This caller no longer waits for the flow
    ///   then.
    func finish(_ calls: BrokerCalls) throws(RingbackError) -> JSON {
        let beginning: Beginning
        let known = endpoint == .signIn ? known ?? (try? calls.patient.account(account)) : nil
        do throws(RingbackError) {
            beginning = try begin(calls, known)
        } catch {
            guard !isAnotherSubject(error, known) else {
                throw SignInAdvice.switching(error, account, projectAdvice.options)
            }
            if endpoint == .signIn, error.problem?.extensions.cause == .signInPending {
                throw SignInAdvice.replacing(error, account, projectAdvice.options)
            }
            throw projectAdvice.advised(error)
        }
        let flow: Flow
        let document: JSON
        switch beginning.started {
        case .done(let account): return account
        case .flow(let started, let json): (flow, document) = (started, json)
        }
        let ended: Flow
        var calls = calls
        calls.refusals = RefusalWatch { error in
            ProgressLine.erase()
            Output.note("ringback: \(Sanitizer.line(error.detail, limit: 600)) The sign-in still waits.")
        }
        do throws(RingbackError) {
            // A signal may have come while the flow began. Then nothing may be shown.
            if Signals.isInterrupted { throw RingbackError(.cancelled, "") }
            printStart(of: flow, document)
            if flow.id == known?["flow"]?["id"]?.string { Output.note(SignInAdvice.joined(flow)) }
            beginning.reason.map { Output.note($0) }
            ended = try wait(for: flow, opensBrowser: beginning.opensBrowser, calls)
        } catch {
            // A wrong code ends this run too, if there is no user to ask again. If no code could be read, the flow
            // stays, since another program may still give the code. Without a daemon there is no flow.
            let isAnswered = CodeEntry.isAwaited(by: flow) || PasskeyEntry.isAwaited(by: flow)
            if error.kind != CodeEntry.inputNeeded, isAnswered || error.kind == .cancelled {
                try? calls.cancel(flow: flow.id)
            }
            guard error.kind == .cancelled else { throw error }
            // The advice says what was missing.
            let reason = error.advice == nil ? "" : "\(error.detail) "
            throw RingbackError(.cancelled, "\(reason)The sign-in to \(account) was cancelled.", advice: error.advice)
        }
        if ended.status == .pending, let timeout {
            try? calls.cancel(flow: flow.id)
            throw RingbackError(
                .timeout,
                "The sign-in to \(account) was not finished within the \(timeout) s of --timeout. Another caller "
                    + "started it before, and it still waits for them.")
        }
        if let failure = ended.failure {
            throw projectAdvice.advised(
                endpoint == .signIn ? SignInAdvice.advised(failure, of: ended, projectAdvice.options) : failure)
        }
        // On a page the user chooses the new password there.
        if ended.method.rawValue == SignInMethod.page.rawValue, let next = ended.userMessage {
            Output.note(
                "\(Sanitizer.line(next)) The page asks for it. Without the page, run: "
                    + "\(shown: "ringback supabase update-user \(account) --password")")
        }
        return try calls.patient.account(account)
    }

    private func printStart(of flow: Flow, _ document: JSON) {
        guard let printsJSON else { return }
        if opensBrowser, endpoint == .signIn, let warning = SchemeDesktop.warning(flow.redirectURI) {
            Output.note(warning)
        }
        if printsJSON {
            Output.json(document)
        } else if let options = flow.passkeyOptions {
            Output.line(options)
        } else if !opensBrowser, let url = flow.pageURL {
            Output.line(Sanitizer.line(url, limit: 16_384))
        }
    }

    private var projectAdvice: SupabaseAdvice { SupabaseAdvice(account: account, fields: fields) }

    /// A conflict at the start may also be with another pending sign-in. Then there is no session to switch from.
    private func isAnotherSubject(_ error: RingbackError, _ known: JSON?) -> Bool {
        guard error.kind == .stateConflict, let known else { return false }
        return known["flow"] == nil && (try? Account(reading: known).state.hasSession) == true
    }

    /// Starts or joins the flow. Without the response the flow could not be cancelled, so this is not interrupted: a
    /// signal takes effect when the flow is known.
    private func begin(_ calls: BrokerCalls, _ known: JSON?) throws(RingbackError) -> Beginning {
        var fields = fields
        if let timeout { fields["timeout"] = .integer(timeout) }
        guard mayChooseDevice, !Display.hasBrowser, hasChoice(known) else {
            let started = try explaining(try begin(fields, calls)) { error in
                fields["method"]?.string == "device" ? SignInAdvice.withoutDevice(error, account) : error
            }
            return Beginning(started: started, opensBrowser: opensBrowser)
        }
        do throws(RingbackError) {
            var asked = fields
            asked["method"] = "device"
            return Beginning(started: try begin(asked, calls), opensBrowser: false, reason: SignInAdvice.deviceChosen)
        } catch {
            // The provider offers no device codes, or not to this client. The page can still be shown, and its callback
            // URL pasted. No browser is opened, since there is no display.
            let refusals: [RingbackError.Kind] = [.methodUnsupported, .providerError, .invalidProviderResponse]
            guard refusals.contains(error.kind) else { throw error }
            return Beginning(
                started: try begin(fields, calls), opensBrowser: false, reason: SignInAdvice.deviceRefused(error))
        }
    }

    private struct Beginning {
        let started: BrokerCalls.Started
        let opensBrowser: Bool
        var reason: String?
    }

    /// False for a sign-in that was begun with a browser, which is joined, and for a service, which needs none.
    private func hasChoice(_ known: JSON?) -> Bool {
        guard let known else { return true }
        return known["grant"] == nil && ["device", nil].contains(known["flow"]?["method"]?.string)
    }

    private func begin(_ fields: JSONObject, _ calls: BrokerCalls) throws(RingbackError) -> BrokerCalls.Started {
        let asksForPage = ["browser", "device"].contains(fields["method"]?.string)
        let progress = ProgressLine()
        defer { progress.clear() }
        return try calls.patient.begin(endpoint, account, fields) {
            let name = Sanitizer.line(account)
            guard !Signals.isInterrupted else {
                return progress.show("Cancelling the sign-in to \(name)…", ending: " (Ctrl-C again ends at once)")
            }
            let asked = asksForPage ? "provider of \(name) how to sign in" : "project of \(name)"
            progress.show("Asking the \(asked)…", ending: SignInRun.cancelHint)
        }
    }

    static func result(_ name: String, _ account: JSON) -> String {
        "Signed in to \(Sanitizer.line(name)) as \(who(account))"
    }

    static func who(_ account: JSON) -> String {
        let user = User(reading: account["user"])
        let nobody = account["grant"] == nil ? "an unnamed subject" : "a service"
        return Sanitizer.line(user?.email ?? user?.phone ?? account["subject"]?.string ?? nobody)
    }

    private func wait(for flow: Flow, opensBrowser mayOpen: Bool, _ calls: BrokerCalls) throws(RingbackError) -> Flow {
        let starts = opensBrowser && mayOpen
        let program = AccountBrowser(of: starts ? known ?? (try? calls.patient.account(account)) : nil, by: calls)
        var browser: Int32?
        if flow.userCode != nil {
            DeviceDisplay.show(flow, hasQR: showsQR)
        } else if !opensBrowser || flow.pageURL != nil {
            flow.words.map { Output.note(SignInAdvice.words($0)) }
            if starts, program.command != nil || !SSHForwarding.hasNoBrowser {
                browser = startBrowser(program, for: flow)
            }
            if browser == nil { showPage(flow, takesPaste: PasteEntry.isPossible) }
        }
        // A page of our own is opened by an address that works once.
        let keys = browser == nil || flow.authorizationURL == nil ? nil : TerminalKeys()
        defer { keys?.end() }
        let progress = ProgressLine()
        defer { progress.clear() }
        let texts = flow.waitingTexts
        // A flow that this run began ends by `timeout` in the daemon, which then says what was awaited. Only a flow
        // that another caller began can last longer. A difference of one second may come from two clocks.
        let ownEnd = timeout.map { TimeText.now() + $0 }
        let flowEnd = flow.expiresAt?.secondsSince1970
        let lastsLonger = ownEnd.map { (flowEnd ?? .max) > $0 + 1 } ?? false
        let bound = lastsLonger ? timeout.map { ContinuousClock.now + .seconds($0) } : nil
        let shownEnd = lastsLonger ? ownEnd : flowEnd
        func show() {
            let left = shownEnd.map { ", \(TimeText.clock($0 - TimeText.now())) left" } ?? ""
            progress.show(texts, ending: left, hint: keys == nil ? SignInRun.cancelHint : SignInRun.keysHint)
        }
        if CodeEntry.isAwaited(by: flow) {
            let entry = CodeEntry(
                calls: calls, descriptor: codeFD, end: bound, waitsWithoutInput: waitsWithoutInput)
            if waitsWithoutInput, !SecretInput.asksUser(codeFD) { show() }
            return try entry.finish(flow, onTick: show)
        }
        if PasskeyEntry.isAwaited(by: flow) {
            if !SecretInput.asksUser(credentialFD) { show() }
            return try PasskeyEntry(descriptor: credentialFD).finish(flow, calls, until: bound)
        }
        let takesPaste = flow.waitingFor == .callback && PasteEntry.isPossible
        let paste = takesPaste ? PasteEntry(calls: calls, end: bound) : nil
        if browser == nil, let paste { return try paste.finish(flow, onTick: show) }
        show()
        guard let browser else { return try calls.wait(forFlow: flow.id, until: bound, onTick: show).0 }
        func watch() {
            // The address is good for another browser, or another profile, while this one is open.
            if keys?.wasPressed("c") == true {
                progress.clear()
                showPage(flow, takesPaste: false)
            }
            show()
        }
        return try wait(for: flow, in: (program, browser), calls, paste, until: bound, progress, watch)
    }

    /// Nil if no browser was started. It is never started with the page's own address, which every user of the machine
    /// could read then.
    private func startBrowser(_ browser: AccountBrowser, for flow: Flow) -> Int32? {
        guard let url = flow.openURL else {
            Output.note(PageOpening.noAddress(flow.openURLError))
            return nil
        }
        let started = browser.start(url)
        if started == nil { Output.note(browser.notStarted(url)) }
        return started
    }

    private func showPage(_ flow: Flow, takesPaste: Bool) {
        shown.isShown = true
        if opensBrowser, let url = flow.pageURL {
            // Not cut: a URL without its end does not work.
            Output.note("Open this page in a browser:\n  \(Sanitizer.line(url, limit: 16_384))")
        }
        SignInGuide.show(for: flow, hasQR: showsQR, takesPaste: takesPaste)
    }

    private static let cancelHint = " (Ctrl-C cancels)"
    private static let keysHint = " (c: address, Ctrl-C cancels)"

    /// The wait after a browser was started. The user is told if the page does not open; then its address is shown.
    private func wait(
        for flow: Flow, in browser: (program: AccountBrowser, pid: Int32), _ calls: BrokerCalls, _ paste: PasteEntry?,
        until end: ContinuousClock.Instant?, _ progress: ProgressLine, _ show: @escaping () -> Void
    ) throws(RingbackError) -> Flow {
        var opener: Int32? = browser.pid
        var hasFailed = false
        var opening = PageOpening(of: flow)
        func showPageOnce(takesPaste: Bool) {
            guard !shown.isShown else { return }
            showPage(flow, takesPaste: takesPaste)
        }
        func tick() {
            // An opener that fails has shown nothing. An opener that succeeds, as most do at once, says nothing about
            // the browser that it started.
            if let pid = opener, let status = Subprocess.endedStatus(pid) {
                opener = nil
                if status != 0 {
                    hasFailed = true
                    progress.clear()
                    Output.note(browser.program.ended(status) + " Run: ringback doctor")
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
            let hasNoPrompt = opener == nil || paste == nil
            let soon = !isEarly ? now + PageOpening.patience : hasNoPrompt ? patient : now + .seconds(1)
            let later = try calls.wait(forFlow: flow.id, until: end.map { min($0, soon) } ?? soon, onTick: tick).0
            if later.status != .pending || end.map({ .now >= $0 }) ?? false { return later }
            tick()
            if hasFailed, let paste {
                progress.clear()
                showPageOnce(takesPaste: true)
                return try paste.finish(flow, onTick: show)
            }
            // If the opener failed, the address has been printed already, and that it was not opened is known.
            guard .now >= patient, let news = opening.news(in: later), !(shown.isShown && news == .notOpened) else {
                continue
            }
            progress.clear()
            Output.note(news.text)
            showPageOnce(takesPaste: false)
        }
        return try calls.wait(forFlow: flow.id, until: end, onTick: tick).0
    }
}

/// Whether the page's address was printed: a key prints it again, and a notice does not.
private final class ShownPage { var isShown = false }

/// Why no browser shows a page, as far as this process can tell.
enum BrowserFailure {
    static func notStarted(_ url: String) -> String {
        guard LoopbackURL.isSafeToOpen(url) else {
            return "No browser was started: the page's address is neither https nor http on this machine."
        }
        return stated.map { "No browser was started: BROWSER is “\($0)”, which cannot be started." }
            ?? "No browser was started: there is no xdg-open (package xdg-utils), and BROWSER is not set."
    }

    static func ended(_ status: Int32) -> String {
        stated.map { "No browser was opened: BROWSER is “\($0)”, which ended with status \(status)." }
            ?? "No browser was opened: xdg-open ended with status \(status)."
    }

    private static var stated: String? {
        SocketPlace.variable("BROWSER").flatMap { $0.isEmpty ? nil : Sanitizer.line($0, limit: 200) }
    }
}

extension Flow {
    var pageURL: String? { waitingFor == .page ? openURL : authorizationURL }

    /// For the progress line: the first text says the most; the others are for terminals where it does not fit.
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
        case .emailConfirmation?: return ["Waiting for the confirmation by email for \(name)"]
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
    /// The delay before the user is told anything. A browser that has to be started may need longer.
    static let patience: Duration = .seconds(5)

    enum News: Equatable {
        /// The page has not been fetched yet. The browser may only be slow.
        case notOpened
        /// Another user asked for the page and was not sent to it. Nil if the system does not tell who.
        case foreign(uid: Int?)
        /// Newer addresses have replaced it, and no fetch of the page was observed.
        case replaced

        var text: String {
            switch self {
            case .notOpened: return "The sign-in page has not been opened yet. Your browser may still be starting."
            case .replaced:
                return
                    "The address that the browser was started with may not work any more: newer sign-in calls have got "
                    + "theirs since."
            case .foreign(let uid):
                let who = uid.map { "uid \($0)" } ?? "a program that is not known to be yours"
                return "The sign-in page was requested by \(who), not by you (uid \(getuid())), and was not sent. "
                    + "If that is your browser in a container, name its uid in callback_peer_uids."
            }
        }
    }

    private let url: String?
    private var hasToldNotOpened = false
    private var hasToldForeign = false
    private(set) var isSettled = false

    init(of flow: Flow) { url = flow.openURL }

    static func noAddress(_ error: RingbackError?) -> String {
        let reason = error?.detail ?? "The daemon has no address for a browser to open."
        return
            "No browser was started. \(Sanitizer.line(reason, limit: 400)) The page's own address is not passed to a "
            + "program, because other users of this machine could read it there and sign you in as themselves. Copy it "
            + "into the address bar of a browser."
    }

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
