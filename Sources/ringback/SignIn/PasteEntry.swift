import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Takes a pasted callback URL on the terminal where the sign-in was begun, while the daemon still listens for the
/// browser: whichever comes first ends the flow. What is pasted goes the way of every callback, so a wrong one changes
/// nothing, is told, and asked for again.
struct PasteEntry {
    let calls: BrokerCalls
    let input: SecretInput
    /// The caller's own bound.
    var end: ContinuousClock.Instant?

    /// True if a person sits there and this program may ask: one in the background must not touch the terminal.
    static var isPossible: Bool {
        guard SecretInput.asksPerson(nil) else { return false }
        let foreground = tcgetpgrp(0)
        return foreground < 0 || foreground == getpgrp()
    }

    /// The flow once it is over, or as it is at the caller's bound.
    ///
    /// - Parameter onTick: as ``BrokerCalls/wait(forFlow:until:onTick:)``, once the person has ended the input.
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

    /// The flow, if the URL ended it; otherwise the person has been told why not.
    private func deliver(_ url: String, _ flow: Flow) throws(RingbackError) -> Flow? {
        if let mistake = Callback.mistake(url) ?? PasteEntry.mistake(url, flow) {
            Output.note("ringback: \(mistake)")
            return nil
        }
        // What is being sent is not cut short: its answer says what became of it.
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

    /// Another sign-in's callback is not finished here, where nobody was asked about it.
    private static func mistake(_ url: String, _ flow: Flow) -> String? {
        guard let redirectURI = flow.redirectURI, Callback.place(of: url) != Callback.place(of: redirectURI) else {
            return nil
        }
        return "This is not the callback of this sign-in. It begins with \(Sanitizer.line(redirectURI, limit: 400))"
    }
}
