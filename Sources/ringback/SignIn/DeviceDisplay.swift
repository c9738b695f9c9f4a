import RingbackClient
import Terminal

/// What a person needs for a sign-in on another device: the address, the code, and the code once more for a camera. The
/// code is shown even where the address holds it, since the page shows it too, and the two are to be compared
/// (RFC 8628 section 3.3.1).
enum DeviceDisplay {
    static func show(_ flow: Flow, hasQR: Bool) {
        guard let code = flow.userCode, let address = flow.verificationURI else { return }
        let name = Sanitizer.line(flow.account)
        let shown = Style.bold.apply(Sanitizer.line(code), on: .errors)
        Output.note(
            """
            To sign in to \(name), open this page on any device with a browser:
              \(Sanitizer.line(address, limit: 2_048))
            and enter the code:  \(shown)
            """)
        if hasQR {
            QRDisplay.show(
                flow.verificationURIComplete ?? address,
                after: "Or scan this; go on if the page shows the same code:")
        }
        // Section 5.4: the code works for whoever sends it, too.
        Output.note("Enter no code that somebody else sent you: it would sign them in to your account.")
    }
}
