import APIServer
import Configuration
import FilePaths
import Glibc
import SessionVault
import Terminal

/// What to type after a start that failed. It is printed on standard error, where whoever started the daemon reads it.
/// This is the only place in the daemon with commands: what the socket serves has none.
enum StartAdvice {
    static func text(_ error: PlaceError) -> String {
        error.step.map { "\(error.reason). \(words(for: $0))\(error.otherwise.map { "\n\($0)" } ?? "")" }
            ?? ([error.reason] + [error.otherwise].compactMap { $0 }).joined(separator: ". ")
    }

    static func text(_ error: StateLockError) -> String {
        switch error {
        case .openToOthers(let directory, _): "\(error.text). \(words(for: .remedy(.openToOthers, directory)))"
        case .untrustedParent(let failure) where failure.reason == .writableByOthers:
            "\(error.text). \(words(for: .remedy(.writableByOthers, failure.path)))"
        default: error.text
        }
    }

    /// One line for each mistake, with the command that mends it.
    static func text(_ errors: [ConfigurationError]) -> String {
        errors.map { error in
            guard case .unsafe(let unsafe)? = error.cause, let remedy = PathRemedy(rawValue: unsafe.trouble.rawValue)
            else { return error.description }
            return "\(error): \(shown: remedy.command(for: unsafe.path, user: geteuid()))"
        }.joined(separator: "\n")
    }

    private static func words(for step: PlaceError.Step) -> String {
        switch step {
        case .remedy(let remedy, let path): "Run: \(shown: remedy.command(for: path, user: geteuid()))"
        case .linger: "To have it without a login, run: loginctl enable-linger"
        case .ownLogin: "A login of its own sets it: machinectl shell USER@, or ssh"
        case .variable(let directory):
            "\(shown: "XDG_RUNTIME_DIR=\(directory) ringbackd") uses it. A shell that sudo or su started lacks the variable; "
                + "machinectl shell USER@, or ssh, sets it."
        }
    }
}

extension StateLockError {
    /// For standard error and the log. It names options of ringbackd, so the socket API does not serve it.
    var text: String {
        switch self {
        case .held(let directory, let holder):
            return "another ringbackd\(holder.map { " on \($0.host), pid \($0.pid)," } ?? "") uses the state directory "
                + "\(directory); stop it, or give this one a directory of its own with --state"
        case .lost(let directory, let holder):
            return
                "the lock on the state in \(directory) was lost\(holder.map { " to \($0.host), pid \($0.pid)" } ?? "")"
        case .notADirectory(let path):
            return "\(path) is a symbolic link or not a directory; remove it, or name another place with --state"
        case .foreignOwner(let path, let uid):
            return "\(path) belongs to uid \(uid), not to uid \(geteuid()); name a directory of your own with --state"
        case .openToOthers(let directory, let mode):
            return "\(directory) is open to other users (mode \(String(mode, radix: 8)))"
        case .untrustedParent(let failure):
            return "\(failure.path) \(failure.reason.sentence); or name another place for the state with --state"
        case .notAFile(let path):
            return "\(path) is not a plain file; remove it and start again"
        case .system(let call, let path, let code):
            return "\(path): \(unsafe String(cString: strerror(code))) (\(call))"
        }
    }
}
