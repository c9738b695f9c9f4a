import HTTPMessages
import RingbackClient
import Terminal

/// Shows what a user needs for a sign-in on another device: the address, the code, and a QR code. The code is shown
/// even if the address contains it, since the page shows it too and the user compares the two (RFC 8628 section 3.3.1).
enum DeviceDisplay {
    static func show(_ flow: Flow, hasQR: Bool) {
        guard let code = flow.userCode.map({ Sanitizer.line($0) }), let address = flow.verificationURI else { return }
        let name = Sanitizer.line(flow.account)
        let host = (try? WebURL(parsing: address))?.host.map { " at " + Sanitizer.line($0, limit: 260) } ?? ""
        // The page is the provider's: the daemon serves none that takes such a code.
        func introduction(_ code: String) -> String {
            """
            To sign in to \(name), open the provider's page\(host) on any device:
              \(Sanitizer.line(address, limit: 2_048))
            and enter the code:  \(code)
            """
        }
        // RFC 8628 section 5.4: an attacker may send the user a code of the attacker's own flow.
        let warning = "Enter no code that another person sent you: it would sign them in to your account."
        Output.note(introduction(Style.bold.apply(code, on: .errors)))
        if hasQR {
            QRDisplay.show(
                flow.verificationURIComplete ?? address,
                after: "Or scan this; go on if the page shows the same code:", beside: [introduction(code), warning])
        }
        Output.note(warning)
    }
}
