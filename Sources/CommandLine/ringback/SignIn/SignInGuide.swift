import RingbackClient
import Terminal

/// Helps a user whose browser is not on this machine: a QR code of the address, and how the callback gets here.
enum SignInGuide {
    /// - Parameters:
    ///   - flow: one whose address has been shown already.
    ///   - takesPaste: a callback URL can be pasted here.
    static func show(for flow: Flow, hasQR: Bool, takesPaste: Bool) {
        guard let url = flow.authorizationURL else { return }
        let notes = notes(on: flow, takesPaste)
        if hasQR {
            QRDisplay.show(
                url, after: "The sign-in page, for a camera:", beside: [Sanitizer.line(url, limit: 16_384)] + notes)
        }
        notes.forEach { Output.note($0) }
    }

    private static func notes(on flow: Flow, _ takesPaste: Bool) -> [String] {
        guard flow.waitingFor == .callback, let redirectURI = flow.redirectURI else { return [] }
        let scheme = Sanitizer.line(String(redirectURI.prefix { $0 != ":" }), limit: 100)
        switch scheme {
        case "http":
            let forwarding = SSHForwarding.line(for: redirectURI).map { line in
                """
                The callback goes to this machine. For a browser on another machine, first run there:
                  \(shown: line)
                """
            }
            let way =
                "Is the browser on another machine? It ends at a page that does not load. That page's address is the "
                + "callback URL."
            return [forwarding, handOver(way, takesPaste)].compactMap { $0 }
        case "https":
            let place = Sanitizer.line(redirectURI, limit: 400)
            return [
                handOver(
                    "The sign-in ends at a page whose address begins with \(place): it is the callback URL.", takesPaste
                )
            ]
        default:
            return [
                "A browser on this machine delivers the callback itself, if the desktop knows \(scheme): "
                    + "links (\(shown: "ringback scheme register \(scheme)")).",
                handOver(
                    "A browser on another machine cannot open that link, which is the callback URL. Firefox shows it in "
                        + "the address line, Chromium in the console of its developer tools (F12).", takesPaste),
            ]
        }
    }

    /// Where the callback URL is pasted, a question for it follows.
    private static func handOver(_ way: String, _ takesPaste: Bool) -> String {
        takesPaste ? way : "\(way) Pass it to: ringback complete"
    }
}
