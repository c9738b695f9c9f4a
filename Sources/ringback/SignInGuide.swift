import RingbackClient
import Terminal

/// What helps a person whose browser is not on this machine: the address for a camera, the way back for the callback.
enum SignInGuide {
    /// - Parameters:
    ///   - flow: one whose address has been shown already.
    ///   - takesPaste: a callback URL can be pasted here.
    static func show(for flow: Flow, hasQR: Bool, takesPaste: Bool) {
        guard let url = flow.authorizationURL else { return }
        if hasQR { QRDisplay.show(url, after: "The sign-in page, for a camera:") }
        guard flow.waitingFor == "callback", let redirectURI = flow.redirectURI else { return }
        guard redirectURI.hasPrefix("http://") else { return Output.note(pasting(takesPaste)) }
        if let line = SSHForwarding.line(for: redirectURI) {
            Output.note(
                """
                The browser comes back to this machine. To let one elsewhere in, run there first:
                  \(line)
                """)
        }
        Output.note(pasting(takesPaste))
    }

    private static func pasting(_ isPossibleHere: Bool) -> String {
        "A browser on another machine ends at a page that does not load: its address is the callback URL. "
            + (isPossibleHere ? "Paste it here, or give it to: ringback complete" : "Give it to: ringback complete")
    }
}
