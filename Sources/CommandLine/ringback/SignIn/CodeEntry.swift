import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// Waits for the code of a flow. A user at a terminal is asked until the code is right; a wrong code of a script ends
/// the wait. Meanwhile the flow may end in another way: by the link in the mail, or by a code that was typed elsewhere.
struct CodeEntry {
    let calls: BrokerCalls
    /// Where the code is read; nil for the terminal or standard input.
    var descriptor: Int32?
    var end: ContinuousClock.Instant?
    /// True to wait on when no code can be read any more: for the mail's link, or for `ringback verify`.
    var waitsWithoutInput = false

    static let inputNeeded: RingbackError.Kind = "input_needed"

    static func isAwaited(by flow: Flow) -> Bool { [.code, .emailConfirmation].contains(flow.waitingFor) }

    /// - Parameter onTick: as ``BrokerCalls/wait(forFlow:until:onTick:)``, when no code can be read any more.
    /// - Throws: `cancelled` after a signal, or when the user ended the input; the project's error for a wrong code, if
    ///   there is no user to ask again; `input_needed` if there is no user to ask and no code to read.
    func finish(_ flow: Flow, onTick: (() -> Void)? = nil) throws(RingbackError) -> Flow {
        let watch = try FlowWatch(calls, flow: flow.id, until: end)
        defer { watch.stop() }
        guard SecretInput.asksUser(descriptor) else {
            while true {
                let line = try SecretInput.line("", from: descriptor, orEndedBy: watch.descriptor)
                if let (ended, _) = try watch.outcome { return ended }
                guard let code = line.map(Callback.trimmed), !code.isEmpty else { break }
                let known = try patient.verify(flow: flow.id, ["code": code]).0
                guard known.status == .pending else { return known }
                CodeEntry.show(known)
            }
            guard waitsWithoutInput else { throw unread(flow) }
            watch.stop()
            return try calls.wait(forFlow: flow.id, until: end, onTick: onTick).0
        }
        return try ask(flow, watch)
    }

    /// The flow stays: another call, or the link in the mail, can finish it.
    private func unread(_ flow: Flow) -> RingbackError {
        let name = Sanitizer.line(flow.account)
        let what = flow.method == .userUpdate ? "change" : "sign-in"
        let place = (descriptor ?? 0) == 0 ? "standard input" : "descriptor \(descriptor ?? 0)"
        let link = flow.redirectURI == nil ? "" : ", or open the link in the email on this machine"
        return RingbackError(
            CodeEntry.inputNeeded,
            "No code was read: \(place) is at its end. The \(what) of \(name) still waits for its code. To finish it, run: "
                + "\(shown: "ringback verify \(name)")\(link). To cancel it: \(shown: "ringback cancel \(name)")")
    }

    private func ask(_ flow: Flow, _ watch: FlowWatch) throws(RingbackError) -> Flow {
        Output.note(CodeEntry.introduction(to: flow))
        while true {
            let line = try SecretInput.line(
                "Code (it is not shown; “resend” sends another): ", from: descriptor, orEndedBy: watch.descriptor)
            if let (ended, _) = try watch.outcome { return ended }
            guard let line else { throw RingbackError(.cancelled, "No code was read.") }
            let word = Callback.trimmed(line)
            if word.isEmpty { continue }
            do throws(RingbackError) {
                if word == "resend" {
                    Output.note(CodeEntry.sent(try patient.resend(flow: flow.id).0))
                } else {
                    let known = try patient.verify(flow: flow.id, ["code": word]).0
                    guard known.status == .pending else { return known }
                    CodeEntry.show(known)
                }
            } catch {
                guard isPending(flow) else { throw error }
                let isUsed = CodeEntry.isPerhapsUsed(error, flow)
                let said = isUsed ? error.adding("“resend” sends another one.") : error
                Failure(error: said, account: flow.account).show()
            }
        }
    }

    /// The server has one error for a wrong code and for one that its link has used up, when only another message helps.
    private static func isPerhapsUsed(_ error: RingbackError, _ flow: Flow) -> Bool {
        error.providerCode == "otp_expired" && flow.redirectURI != nil
    }

    private var patient: BrokerCalls { calls.patient }

    /// For a script: a wrong code ends it. `advice` says how to get another one.
    func verify(_ flow: Flow, _ code: String, advice: String) throws(RingbackError) -> Flow {
        try explaining(try patient.verify(flow: flow.id, ["code": code]).0) { error in
            CodeEntry.isPerhapsUsed(error, flow) ? error.adding(advice) : error
        }
    }

    private func isPending(_ flow: Flow) -> Bool {
        guard let answer = try? patient.call(.getFlow, [flow.id]) else { return false }
        return Flow(reading: answer)?.status == .pending
    }

    private static func introduction(to flow: Flow) -> String {
        let first = flow.userMessage.map { Sanitizer.line($0) } ?? "A message with a code was sent."
        return flow.redirectURI == nil ? first : first + " Its link finishes this too, opened on this machine."
    }

    static func show(_ flow: Flow) {
        Output.note(flow.userMessage.map { Sanitizer.line($0) } ?? "Confirmed. Another code is awaited.")
        if !flow.awaiting.isEmpty {
            Output.note("Awaited: the code for \(Sanitizer.line(flow.awaiting.joined(separator: ", ")))")
        }
    }

    static func sent(_ flow: Flow) -> String {
        let left = flow.resendAfter.map { $0.secondsSince1970 - TimeText.now() } ?? 0
        return "Sent again." + (left > 0 ? " The next one can be sent in \(TimeText.span(left))." : "")
    }
}

/// Takes a pasted callback URL while the daemon still listens for the browser; whichever comes first ends the flow. A
/// wrong URL changes nothing, and the user is asked again.
struct PasteEntry {
    let calls: BrokerCalls
    var end: ContinuousClock.Instant?

    /// A background process must not read from the terminal.
    static var isPossible: Bool { SecretInput.asksUser(nil) && Console.Stream.input.isInForeground }

    func finish(_ flow: Flow, onTick: @escaping () -> Void) throws(RingbackError) -> Flow {
        let watch = try FlowWatch(calls, flow: flow.id, until: end)
        defer { watch.stop() }
        while true {
            let line = try SecretInput.line(
                "Paste the callback URL (it is not shown), or let the browser come back: ", from: nil,
                orEndedBy: watch.descriptor)
            if let (ended, _) = try watch.outcome { return ended }
            guard let line else { break }
            let url = Callback.trimmed(line)
            if !url.isEmpty, let ended = try deliver(url, flow) { return ended }
        }
        watch.stop()
        return try calls.wait(forFlow: flow.id, until: end, onTick: onTick).0
    }

    private func deliver(_ url: String, _ flow: Flow) throws(RingbackError) -> Flow? {
        if let mistake = Callback.mistake(url) ?? PasteEntry.mistake(url, flow) {
            Output.note("ringback: \(mistake)")
            return nil
        }
        let patient = calls.patient
        do throws(RingbackError) {
            let answer = try patient.call(.deliverCallback, body: ["url": .string(url)], timeout: .seconds(60))
            return answer["flow"].flatMap { Flow(reading: $0) }
        } catch {
            guard ["invalid_callback", .flowExpired].contains(error.kind) else { throw error }
            let known = try? patient.call(.getFlow, [flow.id])
            if let known = known.flatMap({ Flow(reading: $0) }), known.status != .pending { return known }
            Output.note("ringback: \(Sanitizer.line(error.detail, limit: 400)) The sign-in still waits.")
            return nil
        }
    }

    /// The callback of another sign-in is refused here, since the user was not asked about that sign-in.
    private static func mistake(_ url: String, _ flow: Flow) -> String? {
        guard let redirectURI = flow.redirectURI, Callback.place(of: url) != Callback.place(of: redirectURI) else {
            return nil
        }
        return "This is not the callback of this sign-in. It begins with \(Sanitizer.line(redirectURI, limit: 400))"
    }
}
