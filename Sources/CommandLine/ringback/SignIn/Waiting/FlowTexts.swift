import RingbackClient
import Terminal

extension Flow {
    /// The page that the user is to open: the provider's, or our own.
    var pageURL: String? { waitingFor == .page ? openURL : authorizationURL }

    /// What the sign-in waits for, as the progress line shows it. The first text says the most; the others are shorter,
    /// for terminals where it does not fit.
    var waitingTexts: [String] {
        let name = Sanitizer.line(account)
        switch waitingFor {
        case nil, .callback?:
            let signIn = "Waiting for the sign-in to \(name)"
            let place = authorizationURL.map { " at " + Sanitizer.line(Flow.authority(of: $0)) } ?? ""
            return ["\(signIn)\(place) in your browser", "\(signIn) in your browser", signIn]
        case .code?:
            let code = "Waiting for the code that was sent for \(name)"
            return ["\(code) (ringback verify takes it too)", code]
        case .page?: return ["Waiting for the sign-in to \(name) on the page in your browser"]
        case .passkey?: return ["Waiting for the passkey's response for \(name)"]
        case .emailConfirmation?: return ["Waiting for the confirmation by e-mail for \(name)"]
        // The code once more, since the text above may have scrolled away.
        case .device?:
            let code = Sanitizer.line(userCode ?? "")
            let waiting = "Waiting for the code \(code)"
            return ["\(waiting) to be entered, for \(name)", "\(waiting) for \(name)", "Code \(code)"]
        case let other?: return ["Waiting for \(Sanitizer.line(other.rawValue)) for \(name)"]
        }
    }

    /// The authority of a URL, for display only.
    private static func authority(of url: String) -> String {
        guard let scheme = url.firstIndex(of: ":") else { return url }
        return String(url[url.index(after: scheme)...].drop { $0 == "/" }.prefix { !"/?#".contains($0) })
    }
}
