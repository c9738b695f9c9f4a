import RingbackClient
import StrictJSON
import Terminal

/// Takes an authenticator's response, as JSON. This program has no authenticator: an app or a web page performs
/// the ceremony and passes its result on. Text that is not a JSON object is not sent to the project, which accepts one
/// response only.
struct PasskeyEntry {
    let input: SecretInput
    /// Where it is read; nil for the terminal or standard input.
    let descriptor: Int32?

    /// The socket's own limit for a request, in bytes.
    private static let maxLength = 60_000

    /// True for a flow that a passkey ends.
    static func isAwaited(by flow: Flow) -> Bool { flow.waitingFor == .passkey }

    /// The flow once it is over.
    ///
    /// - Parameter end: the caller's own deadline.
    /// - Throws: `cancelled` after a signal, or where no credential was read.
    func finish(
        _ flow: Flow, _ calls: BrokerCalls, until end: ContinuousClock.Instant?
    ) throws(RingbackError) -> Flow {
        let watch = try FlowWatch(calls, flow: flow.id, until: end)
        defer { watch.stop() }
        let credential = try read("navigator.credentials.get()", orEndedBy: watch.descriptor)
        if let (ended, _) = try watch.outcome { return ended }
        guard let credential else { throw unread }
        // A request that is being sent is not interrupted: its response says what happened.
        var patient = calls
        patient.interruption = nil
        return try patient.verify(flow: flow.id, credential: credential).0
    }

    /// The credential; nil when `other` became readable first, or where there is none.
    ///
    /// - Parameter ceremony: what a page calls with the options.
    func read(_ ceremony: String, orEndedBy other: Int32 = -1) throws(RingbackError) -> JSONObject? {
        let asksUser = SecretInput.asksUser(descriptor)
        if asksUser { Output.note(PasskeyEntry.introduction(ceremony)) }
        var text = ""
        while true {
            let question = text.isEmpty ? "Credential (it is not shown; empty gives up): " : ""
            guard let line = try input.line(question, from: descriptor, orEndedBy: other) else {
                if !text.isEmpty { throw PasskeyEntry.malformed }
                return nil
            }
            if asksUser, text.isEmpty, line.isEmpty { return nil }
            text += line
            let first = text.utf8.first { ![0x20, 0x09].contains($0) }
            if let first, first != UInt8(ascii: "{") {
                guard asksUser else { throw PasskeyEntry.malformed }
                Output.note("ringback: \(PasskeyEntry.malformed.detail)")
                text = ""
            } else if let object = JSONInput.object(text) {
                return object
            }
            guard text.utf8.count <= PasskeyEntry.maxLength else { throw PasskeyEntry.malformed }
        }
    }

    private static func introduction(_ ceremony: String) -> String {
        """
        A passkey or security key is used by an app, or by a page in a browser, at an address that the project has \
        listed: it passes the options above to \(ceremony) and its credential to this program, as JSON. Without such \
        an app or page, use another method.
        """
    }

    /// There was no credential. The advice says how a script gives one.
    var unread: RingbackError {
        var error = RingbackError(.cancelled, "No credential was read.")
        guard !SecretInput.asksUser(descriptor) else { return error }
        error.advice =
            (descriptor ?? 0) == 0
            ? "A credential is JSON on standard input, or on a descriptor (--credential-fd)."
            : "Nothing could be read from descriptor \(descriptor ?? 0). A credential is JSON."
        return error
    }

    private static let malformed = RingbackError(
        "validation_failed", "The input is not a JSON object. PublicKeyCredential.toJSON() returns the credential."
    )
}
