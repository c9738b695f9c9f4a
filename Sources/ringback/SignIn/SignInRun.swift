import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// A sign-in from its start to its end, for `login` and `token --sign-in`: shows the page, waits, and cancels the flow
/// when it is interrupted.
struct SignInRun {
    let account: String
    /// Shows the page itself; otherwise `began` has to.
    var opensBrowser: Bool
    /// The request below the account.
    var endpoint = Endpoint.signIn
    /// Its body.
    var fields = JSONObject([.init("method", "browser")])
    /// Seconds. Also the limit of this run's own wait, if another caller began the flow and it lasts longer.
    var timeout: Int?
    /// If no browser can be opened, a code to be entered on another device is requested first.
    var mayChooseDevice = false
    /// Draws QR codes of addresses.
    var showsQR = true
    /// Where a code is read, if the flow wants one; nil for the terminal or standard input.
    var codeDescriptor: Int32?
    /// The same for a passkey's response.
    var credentialDescriptor: Int32?
    /// True to wait even if no code can be read: the user may open the link, or pass the code to `ringback verify`.
    var waitsWithoutInput = false
    /// Called with the flow once there is one.
    var began: (Flow, JSON) -> Void = { _, _ in }

    init(account: String, opensBrowser: Bool) {
        self.account = account
        self.opensBrowser = opensBrowser
    }

    /// Returns the account's JSON once a user is signed in.
    ///
    /// - Throws: `cancelled` after a signal, `timeout` at the run's own limit. This caller no longer waits for the flow
    ///   then.
    func finish(_ calls: BrokerCalls) throws(RingbackError) -> JSON {
        let flow: Flow
        let document: JSON
        let beginning: Beginning
        do throws(RingbackError) {
            beginning = try begin(calls)
            switch beginning.started {
            case .done(let account): return account
            case .flow(let started, let json): (flow, document) = (started, json)
            }
        } catch {
            guard !isAnotherSubject(error, calls) else {
                throw SignInAdvice.switching(error, account, projectAdvice.options)
            }
            throw projectAdvice.advised(error)
        }
        let ended: Flow
        do throws(RingbackError) {
            // A signal may have come while the flow began. Then nothing may be shown.
            if calls.interruption?.isInterrupted == true { throw RingbackError(.cancelled, "") }
            began(flow, document)
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
            throw RingbackError(.cancelled, "The sign-in to \(account) was cancelled.")
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
        var patient = calls
        patient.interruption = nil
        return try patient.account(account)
    }

    private var projectAdvice: SupabaseAdvice { SupabaseAdvice(account: account, fields: fields) }

    /// A conflict at the start may also be with another pending sign-in. Then there is no session to switch from.
    private func isAnotherSubject(_ error: RingbackError, _ calls: BrokerCalls) -> Bool {
        guard error.kind == .stateConflict, endpoint == .signIn, let known = try? calls.account(account) else {
            return false
        }
        return known["flow"] == nil && (try? Account(reading: known).state.hasSession) == true
    }

    /// Starts or joins the flow. Without the response the flow could not be cancelled, so this is not interrupted: a
    /// signal takes effect when the flow is known.
    private func begin(_ calls: BrokerCalls) throws(RingbackError) -> Beginning {
        var patient = calls
        patient.interruption = nil
        var fields = fields
        if let timeout { fields["timeout"] = .integer(timeout) }
        guard mayChooseDevice, !Display.hasBrowser, hasChoice(patient) else {
            do throws(RingbackError) {
                return Beginning(started: try begin(fields, patient, calls), opensBrowser: opensBrowser)
            } catch {
                throw fields["method"]?.string == "device" ? SignInAdvice.withoutDevice(error, account) : error
            }
        }
        let refusal: RingbackError
        do throws(RingbackError) {
            var asked = fields
            asked["method"] = "device"
            return Beginning(
                started: try begin(asked, patient, calls), opensBrowser: false, reason: SignInAdvice.deviceChosen)
        } catch {
            // The provider offers no device codes, or not to this client. The page can still be shown, and its callback
            // URL pasted. No browser is opened, since there is no display.
            guard SignInAdvice.refusesDevice(error) else { throw error }
            refusal = error
        }
        return Beginning(
            started: try begin(fields, patient, calls), opensBrowser: false,
            reason: SignInAdvice.deviceRefused(refusal))
    }

    /// What has begun, and how it is to be shown.
    private struct Beginning {
        let started: BrokerCalls.Started
        let opensBrowser: Bool
        /// Why this method was chosen, if the user did not choose it.
        var reason: String?
    }

    /// False for a sign-in that was begun with a browser, which is joined, and for a service, which needs none.
    private func hasChoice(_ calls: BrokerCalls) -> Bool {
        guard let known = try? calls.account(account) else { return true }
        return known["grant"] == nil && ["device", nil].contains(known["flow"]?["method"]?.string)
    }

    private func begin(
        _ fields: JSONObject, _ patient: BrokerCalls, _ calls: BrokerCalls
    ) throws(RingbackError) -> BrokerCalls.Started {
        let asksForPage = ["browser", "device"].contains(fields["method"]?.string)
        let progress = ProgressLine()
        defer { progress.clear() }
        return try patient.begin(endpoint, account, fields) {
            let isInterrupted = calls.interruption?.isInterrupted == true
            let name = Sanitizer.line(account)
            if isInterrupted {
                progress.show("Cancelling the sign-in to \(name)…", ending: " (Ctrl-C again ends at once)")
            } else {
                let asked =
                    asksForPage ? "Asking the provider of \(name) how to sign in…" : "Asking the project of \(name)…"
                progress.show(asked, ending: SignInRun.cancelHint)
            }
        }
    }

    /// `Signed in to ACCOUNT as EMAIL-or-subject`
    static func result(_ name: String, _ account: JSON) -> String {
        "Signed in to \(Sanitizer.line(name)) as \(who(account))"
    }

    /// EMAIL-or-subject
    static func who(_ account: JSON) -> String {
        let user = User(reading: account["user"])
        let nobody = account["grant"] == nil ? "an unnamed subject" : "a service"
        return Sanitizer.line(user?.email ?? user?.phone ?? account["subject"]?.string ?? nobody)
    }

    private func wait(
        for flow: Flow, opensBrowser mayOpen: Bool, _ calls: BrokerCalls
    ) throws(RingbackError) -> Flow {
        var browser: Int32?
        if flow.userCode != nil {
            DeviceDisplay.show(flow, hasQR: showsQR)
        } else if opensBrowser, let url = flow.authorizationURL {
            if mayOpen { browser = startBrowser(for: flow) }
            if browser == nil { showPage(url, flow, takesPaste: PasteEntry.isPossible) }
        } else if !opensBrowser {
            SignInGuide.show(for: flow, hasQR: showsQR, takesPaste: PasteEntry.isPossible)
        }
        let progress = ProgressLine()
        defer { progress.clear() }
        let waitingFor = SignInRun.describe(flow)
        // A flow that this run began ends by `timeout` in the daemon, which then says what was awaited. Only a flow
        // that another caller began can last longer. A difference of one second may come from two clocks.
        let ownEnd = timeout.map { TimeText.now() + $0 }
        let flowEnd = flow.expiresAt?.secondsSince1970
        let lastsLonger = ownEnd.map { (flowEnd ?? .max) > $0 + 1 } ?? false
        let bound = lastsLonger ? timeout.map { ContinuousClock.now + .seconds($0) } : nil
        let shownEnd = lastsLonger ? ownEnd : flowEnd
        func show() {
            let left = shownEnd.map { ", \(TimeText.clock($0 - TimeText.now())) left" } ?? ""
            progress.show("Waiting for \(waitingFor)", ending: left + SignInRun.cancelHint)
        }
        if CodeEntry.isAwaited(by: flow), let interruption = calls.interruption {
            var entry = CodeEntry(calls, interruption, from: codeDescriptor)
            entry.end = bound
            entry.waitsWithoutInput = waitsWithoutInput
            if waitsWithoutInput, !SecretInput.asksPerson(codeDescriptor) { show() }
            return try entry.finish(flow, onTick: show)
        }
        if PasskeyEntry.isAwaited(by: flow), let interruption = calls.interruption {
            let entry = PasskeyEntry(
                input: SecretInput(interruption: interruption), descriptor: credentialDescriptor)
            if !SecretInput.asksPerson(credentialDescriptor) { show() }
            return try entry.finish(flow, calls, until: bound)
        }
        if browser == nil, flow.waitingFor == .callback, let interruption = calls.interruption, PasteEntry.isPossible {
            var entry = PasteEntry(calls: calls, input: SecretInput(interruption: interruption))
            entry.end = bound
            return try entry.finish(flow, onTick: show)
        }
        show()
        var isShown = false
        func showPageOnce() {
            guard !isShown, let url = flow.authorizationURL else { return }
            isShown = true
            showPage(url, flow, takesPaste: false)
        }
        func tick() {
            // An opener that fails has shown nothing, so the page's address is printed. An opener that succeeds, as
            // most do at once, says nothing about the browser that it started.
            if let pid = browser, let status = Subprocess.endedStatus(pid) {
                browser = nil
                if status != 0 {
                    progress.clear()
                    showPageOnce()
                }
            }
            show()
        }
        guard browser != nil else { return try calls.wait(forFlow: flow.id, until: bound, onTick: tick).0 }
        // Looks again every few seconds until a browser of this user has fetched the page: a browser that is slow to
        // start may also be one of another user.
        var opening = PageOpening(of: flow)
        while !opening.isSettled {
            let soon = ContinuousClock.now + PageOpening.patience
            let later = try calls.wait(forFlow: flow.id, until: bound.map { min($0, soon) } ?? soon, onTick: tick).0
            let isOver = later.status != .pending || bound.map { .now >= $0 } ?? false
            if isOver { return later }
            // If the opener failed, the address has been printed already, and that it was not opened is known.
            guard let news = opening.news(in: later), !(isShown && news == .notOpened) else { continue }
            progress.clear()
            Output.note(news.text)
            showPageOnce()
        }
        return try calls.wait(forFlow: flow.id, until: bound, onTick: tick).0
    }

    /// Nil if no browser was started. It is never started with the page's own address, which every user of the machine
    /// could read then.
    private func startBrowser(for flow: Flow) -> Int32? {
        if let url = flow.openURL { return Browser.start(url) }
        Output.note(PageOpening.noAddress(flow.openURLError))
        return nil
    }

    private func showPage(_ url: String, _ flow: Flow, takesPaste: Bool) {
        // Not cut: a URL without its end does not work.
        Output.note("Open this page in a browser:\n  \(Sanitizer.line(url, limit: 16_384))")
        SignInGuide.show(for: flow, hasQR: showsQR, takesPaste: takesPaste)
    }

    private static let cancelHint = " (Ctrl-C cancels)"

    private static func describe(_ flow: Flow) -> String {
        let place = flow.authorizationURL.map { " at " + Sanitizer.line(host(of: $0)) } ?? ""
        let name = Sanitizer.line(flow.account)
        return switch flow.waitingFor {
        case nil, .callback?: "the sign-in to \(name)\(place) in your browser"
        case .code?: "the code that was sent for \(name) (ringback verify takes it too)"
        case .passkey?: "the passkey's response for \(name)"
        case .emailConfirmation?: "the confirmation by e-mail for \(name)"
        // The code once more, since the text above may have scrolled away.
        case .device?: "the code \(Sanitizer.line(flow.userCode ?? "")) to be entered, for \(name)"
        case let other?: "\(Sanitizer.line(other.rawValue)) for \(name)"
        }
    }

    /// The authority of a URL, for display only.
    private static func host(of url: String) -> String {
        guard let scheme = url.firstIndex(of: ":") else { return url }
        return String(url[url.index(after: scheme)...].drop { $0 == "/" }.prefix { !"/?#".contains($0) })
    }
}
