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
        let text = Sanitizer.line(error.detail, limit: 1_000)
        let subject = account.map { Sanitizer.line($0) }
        var lines = ["ringback: " + (subject.map { text.contains($0) ? text : "\($0): \(text)" } ?? text)]
        if let message = error.userMessage, message != error.detail { lines.append(Sanitizer.line(message)) }
        lines += Failure.mistakes(error.problem?.extensions["errors"])
        if let step = nextStep(after: text), !text.contains(step) { lines.append(step) }
        return lines
    }

    /// What to type or wait for; nil if nothing is known to help.
    private func nextStep(after text: String) -> String? {
        // Told by a restricted socket, which is used where nothing of this can be done, and says where it can.
        let isElsewhere = error.problem?.extensions["exposed_socket"] != nil
        if isElsewhere, ![.rateLimited, .providerUnreachable, .shuttingDown].contains(error.kind) { return nil }
        let login = account.map { RequestTarget.isAccountName($0) ? "Run: ringback login \($0)" : nil } ?? nil
        switch error.kind {
        case .noDaemon:
            return error.recovery == .fixConfiguration ? nil : Failure.start
        case .shuttingDown: return "Try again when the daemon is back."
        case .accountNotFound: return text.contains("ringback account") ? nil : "Run: ringback accounts"
        case .vaultLocked: return text.contains("ringback unlock") ? nil : "Run: ringback unlock"
        // What the daemon is given at its start, or later, stands in no file of the configuration.
        case .invalidConfiguration:
            let isGiven = ["LoadCredential=", "assertion_file"].contains { text.contains($0) }
            return isGiven ? nil : "Run: ringback config check"
        case .rateLimited, .providerUnreachable:
            return error.retryAfter.map { "Try again in \(TimeText.span($0))." } ?? "Try again later."
        // Where a line leads on already, with all that it needs, a shorter one would lead astray.
        default: return error.recovery == .signIn && !text.contains(" run: ringback ") ? login : nil
        }
    }

    /// A socket that was named may come from elsewhere.
    private static var start: String {
        let start = "Start it: systemctl --user start ringback.service (or run ringbackd)"
        guard SocketPlace.variable("RINGBACK_SOCK")?.isEmpty == false else { return start }
        return start + "; if RINGBACK_SOCK names a socket of another machine or of a container's host, connect it anew."
    }

    /// `file:line: key: message` for each mistake of a configuration.
    static func mistakes(_ errors: JSON?) -> [String] {
        (errors?.array ?? []).map { entry in
            var place = entry["file"]?.string ?? "configuration"
            if let line = entry["line"]?.integer { place += ":\(line)" }
            let key = entry["key"]?.string.map { $0.isEmpty ? "" : "\($0): " } ?? ""
            return Sanitizer.line("\(place): \(key)\(entry["message"]?.string ?? "")", limit: 600)
        }
    }
}
