import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Takes a pasted callback URL on the terminal where the sign-in was begun, while the daemon still listens for the
/// browser. Whichever comes first ends the flow. A pasted URL is handled like every callback: a wrong one changes
/// nothing, and the user is told and asked again.
struct PasteEntry {
    let calls: BrokerCalls
    let input: SecretInput
    /// The caller's own deadline.
    var end: ContinuousClock.Instant?

    /// True if there is a user at the terminal and this process is in the foreground: a background process must not
    /// read from the terminal.
    static var isPossible: Bool {
        guard SecretInput.asksUser(nil) else { return false }
        let foreground = tcgetpgrp(0)
        return foreground < 0 || foreground == getpgrp()
    }

    /// The flow once it has ended, or as it is at the caller's deadline.
    ///
    /// - Parameter onTick: as ``BrokerCalls/wait(forFlow:until:onTick:)``, once the user has ended the input.
    func finish(_ flow: Flow, onTick: @escaping () -> Void) throws(RingbackError) -> Flow {
        let watch = try FlowWatch(calls, flow: flow.id, until: end)
        defer { watch.stop() }
        while true {
            let line = try input.line(
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

    /// The flow, if the URL ended it. Otherwise the reason has been printed.
    private func deliver(_ url: String, _ flow: Flow) throws(RingbackError) -> Flow? {
        if let mistake = Callback.mistake(url) ?? PasteEntry.mistake(url, flow) {
            Output.note("ringback: \(mistake)")
            return nil
        }
        // A request that is being sent is not interrupted: its response says what happened to the URL.
        var patient = calls
        patient.interruption = nil
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
