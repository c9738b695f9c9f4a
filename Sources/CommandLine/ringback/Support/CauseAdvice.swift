import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// What to type about a problem, by its `cause` and the members that go with it.
enum CauseAdvice {
    /// A sentence with commands; nil if nothing is known to help.
    ///
    /// - Parameter members: of a problem document, of the vault in a status, or of a check.
    static func sentence(_ members: JSONObject) -> String? {
        if let command = remedy(members) { return "Run: \(shown: command)" }
        guard let cause = members.cause else { return nil }
        let name = members["account"]?.string.flatMap { RequestTarget.isAccountName($0) ? $0 : nil } ?? "ACCOUNT"
        switch cause {
        case .signInPending: return "Finish it, or run: \(shown: "ringback cancel \(name)")"
        case .migrationPending: return "When they are moved, run: \(shown: "ringback migrate-user \(name) --done")"
        case .keySourceDiffers: return keySource(members)
        case .notJoined: return "Run: ringback vault join"
        case .noHostsKey: return "Run ringback vault join here, and on a host that has the key what it says."
        default: return nil
        }
    }

    /// The command that makes a path safe, if a path is what is wrong.
    static func remedy(_ members: JSONObject) -> ShownCommand? {
        guard let remedy = members.cause.flatMap({ PathRemedy(rawValue: $0.rawValue) }),
            let path = members["path"]?.string
        else {
            return nil
        }
        return remedy.command(for: path, user: geteuid())
    }

    /// The vault's key is kept by another source than the configured one. A passphrase must be given before its key can
    /// be moved, and the daemon asks for it only while it is the configured source.
    private static func keySource(_ members: JSONObject) -> String? {
        guard let recorded = members["key_source"]?.string.map({ Sanitizer.line($0) }),
            let configured = members["other_key_source"]?.string.map({ Sanitizer.line($0) })
        else { return nil }
        let move = ShownCommand("ringback vault rekey --key-source=\(configured)")
        return recorded == "passphrase"
            ? "To move it, set key_source = \"passphrase\", start the daemon anew, run ringback unlock and \(shown: move), and "
                + "set key_source back."
            : "To move it, run: \(shown: move); or set key_source to \"\(recorded)\" or \"auto\" and start the daemon anew."
    }
}

extension JSONObject {
    /// What is wrong; nil if the document does not say, or says it with a word that only a newer daemon knows.
    var cause: ProblemCause? { self["cause"]?.string.flatMap(ProblemCause.init) }
}
