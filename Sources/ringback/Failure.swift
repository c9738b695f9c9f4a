import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// A failed call for a person: what failed, for which account, and what to do next.
struct Failure {
    let error: RingbackError
    let account: String?

    init(_ error: RingbackError, account: String?) {
        self.error = error
        self.account = account
    }

    func show() { for line in lines { Output.note(line) } }

    var lines: [String] {
        let text = Sanitizer.line(error.detail, limit: 400)
        let subject = account.map { Sanitizer.line($0) }
        var lines = ["ringback: " + (subject.map { text.contains($0) ? text : "\($0): \(text)" } ?? text)]
        if let message = error.userMessage, message != error.detail { lines.append(Sanitizer.line(message)) }
        lines += Failure.mistakes(error.problem?.extensions["errors"])
        if let step = nextStep(after: text), !text.contains(step) { lines.append(step) }
        return lines
    }

    /// What to type or wait for; nil if nothing is known to help.
    private func nextStep(after text: String) -> String? {
        let login = account.map { RequestTarget.isAccountName($0) ? "Run: ringback login \($0)" : nil } ?? nil
        switch error.kind {
        case .noDaemon:
            return error.recovery == .fixConfiguration
                ? nil : "Start it: systemctl --user start ringback.service (or run ringbackd)"
        case .shuttingDown: return "Try again when the daemon is back."
        case .accountNotFound: return text.contains("ringback account") ? nil : "Run: ringback accounts"
        case .vaultLocked: return text.contains("ringback unlock") ? nil : "Run: ringback unlock"
        case .invalidConfiguration: return "Run: ringback config check"
        case .rateLimited, .providerUnreachable:
            return error.retryAfter.map { "Try again in \(TimeText.span($0))." } ?? "Try again later."
        default: return error.recovery == .signIn ? login : nil
        }
    }

    /// `file:line: key: message` for each mistake of a configuration.
    private static func mistakes(_ errors: JSON?) -> [String] {
        (errors?.array ?? []).map { entry in
            var place = entry["file"]?.string ?? "configuration"
            if let line = entry["line"]?.integer { place += ":\(line)" }
            let key = entry["key"]?.string.map { $0.isEmpty ? "" : "\($0): " } ?? ""
            return Sanitizer.line("\(place): \(key)\(entry["message"]?.string ?? "")", limit: 600)
        }
    }
}
