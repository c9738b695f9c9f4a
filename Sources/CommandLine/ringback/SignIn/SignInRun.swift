import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A sign-in from its start to its end, for `login` and `token --sign-in`: shows the page, waits, and cancels the flow
/// when it is interrupted.
struct SignInRun {
    let account: String
    /// Shows the page itself; otherwise `began` has to.
    var opensBrowser: Bool
    var endpoint = Endpoint.signIn
    var fields = JSONObject([.init("method", "browser")])
    /// Seconds. Also the limit of this run's own wait, if another caller began the flow and it lasts longer.
    var timeout: Int?
    /// If no browser can be opened, a code to be entered on another device is requested first.
    var mayChooseDevice = false
    var showsQR = true
    /// Where a code is read, if the flow wants one; nil for the terminal or standard input.
    var codeDescriptor: Int32?
    /// The same for a passkey's response.
    var credentialDescriptor: Int32?
    /// True to wait even if no code can be read: the user may open the link, or pass the code to `ringback verify`.
    var waitsWithoutInput = false
    /// The account's JSON, if it was asked for just now.
    var known: JSON?
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
        let known = endpoint == .signIn ? known ?? (try? calls.patient.account(account)) : nil
        do throws(RingbackError) {
            beginning = try begin(calls, known)
            switch beginning.started {
            case .done(let account): return account
            case .flow(let started, let json): (flow, document) = (started, json)
            }
        } catch {
            guard !isAnotherSubject(error, known) else {
                throw SignInAdvice.switching(error, account, projectAdvice.options)
            }
            if endpoint == .signIn, error.problem?.extensions.cause == .signInPending {
                throw SignInAdvice.replacing(error, account, projectAdvice.options)
            }
            throw projectAdvice.advised(error)
        }
        let ended: Flow
        var calls = calls
        calls.refusals = RefusalWatch { error in
            ProgressLine.erase()
            Output.note("ringback: \(Sanitizer.line(error.detail, limit: 600)) The sign-in still waits.")
        }
        do throws(RingbackError) {
            // A signal may have come while the flow began. Then nothing may be shown.
            if calls.interruption?.isInterrupted == true { throw RingbackError(.cancelled, "") }
            began(flow, document)
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
            var cancelled = RingbackError(.cancelled, "\(reason)The sign-in to \(account) was cancelled.")
            cancelled.advice = error.advice
            throw cancelled
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
            do throws(RingbackError) {
                return Beginning(started: try begin(fields, calls), opensBrowser: opensBrowser)
            } catch {
                throw fields["method"]?.string == "device" ? SignInAdvice.withoutDevice(error, account) : error
            }
        }
        let refusal: RingbackError
        do throws(RingbackError) {
            var asked = fields
            asked["method"] = "device"
            return Beginning(
                started: try begin(asked, calls), opensBrowser: false, reason: SignInAdvice.deviceChosen)
        } catch {
            // The provider offers no device codes, or not to this client. The page can still be shown, and its callback
            // URL pasted. No browser is opened, since there is no display.
            guard SignInAdvice.refusesDevice(error) else { throw error }
            refusal = error
        }
        return Beginning(
            started: try begin(fields, calls), opensBrowser: false,
            reason: SignInAdvice.deviceRefused(refusal))
    }

    private struct Beginning {
        let started: BrokerCalls.Started
        let opensBrowser: Bool
        /// Why this method was chosen, if the user did not choose it.
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

    static func result(_ name: String, _ account: JSON) -> String {
        "Signed in to \(Sanitizer.line(name)) as \(who(account))"
    }

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
        } else if opensBrowser, let url = flow.pageURL {
            flow.words.map { Output.note(SignInAdvice.words($0)) }
            if mayOpen { browser = startBrowser(for: flow) }
            if browser == nil { showPage(url, flow, takesPaste: PasteEntry.isPossible) }
        } else if !opensBrowser {
            flow.words.map { Output.note(SignInAdvice.words($0)) }
            SignInGuide.show(for: flow, hasQR: showsQR, takesPaste: PasteEntry.isPossible)
        }
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
            progress.show(texts, ending: left, hint: SignInRun.cancelHint)
        }
        if CodeEntry.isAwaited(by: flow), let interruption = calls.interruption {
            var entry = CodeEntry(calls, interruption, from: codeDescriptor)
            entry.end = bound
            entry.waitsWithoutInput = waitsWithoutInput
            if waitsWithoutInput, !SecretInput.asksUser(codeDescriptor) { show() }
            return try entry.finish(flow, onTick: show)
        }
        if PasskeyEntry.isAwaited(by: flow), let interruption = calls.interruption {
            let entry = PasskeyEntry(
                input: SecretInput(interruption: interruption), descriptor: credentialDescriptor)
            if !SecretInput.asksUser(credentialDescriptor) { show() }
            return try entry.finish(flow, calls, until: bound)
        }
        if browser == nil, let paste = paste(of: flow, calls, until: bound, onTick: show) { return try paste() }
        show()
        guard let browser, let url = flow.pageURL else {
            return try calls.wait(forFlow: flow.id, until: bound, onTick: show).0
        }
        return try BrowserWait(
            calls: calls, flow: flow, end: bound, progress: progress, show: show,
            showPage: { showPage(url, flow, takesPaste: $0) }, paste: paste(of: flow, calls, until: bound, onTick: show)
        ).finish(browser)
    }

    /// Takes a pasted callback URL; nil if the flow awaits none, or the user cannot paste here.
    private func paste(
        of flow: Flow, _ calls: BrokerCalls, until end: ContinuousClock.Instant?, onTick: @escaping () -> Void
    ) -> (() throws(RingbackError) -> Flow)? {
        guard flow.waitingFor == .callback, let interruption = calls.interruption, PasteEntry.isPossible else {
            return nil
        }
        var entry = PasteEntry(calls: calls, input: SecretInput(interruption: interruption))
        entry.end = end
        return { [entry] () throws(RingbackError) -> Flow in try entry.finish(flow, onTick: onTick) }
    }

    /// Nil if no browser was started. It is never started with the page's own address, which every user of the machine
    /// could read then.
    private func startBrowser(for flow: Flow) -> Int32? {
        guard let url = flow.openURL else {
            Output.note(PageOpening.noAddress(flow.openURLError))
            return nil
        }
        let started = Browser.start(url)
        if started == nil { Output.note(BrowserFailure.notStarted(url)) }
        return started
    }

    private func showPage(_ url: String, _ flow: Flow, takesPaste: Bool) {
        // Not cut: a URL without its end does not work.
        Output.note("Open this page in a browser:\n  \(Sanitizer.line(url, limit: 16_384))")
        SignInGuide.show(for: flow, hasQR: showsQR, takesPaste: takesPaste)
    }

    private static let cancelHint = " (Ctrl-C cancels)"
}
