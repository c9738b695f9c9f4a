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
        case .openToOthers(let directory, _): "\(error). \(words(for: .remedy(.openToOthers, directory)))"
        case .untrustedParent(let failure) where failure.isWritable:
            "\(error). \(words(for: .remedy(.writableByOthers, failure.path)))"
        default: "\(error)"
        }
    }

    /// One line for each mistake, with the command that mends it.
    static func text(_ errors: [ConfigurationError]) -> String {
        errors.map { error in
            guard case .unsafe(let unsafe)? = error.cause, let remedy = PathRemedy(rawValue: unsafe.trouble.rawValue)
            else { return error.description }
            return "\(error): \(remedy.command(for: unsafe.path, user: geteuid()))"
        }.joined(separator: "\n")
    }

    private static func words(for step: PlaceError.Step) -> String {
        switch step {
        case .remedy(let remedy, let path): "Run: \(remedy.command(for: path, user: geteuid()))"
        case .linger: "To have it without a login, run: loginctl enable-linger"
        case .ownLogin: "A login of its own sets it: machinectl shell USER@, or ssh"
        case .variable(let directory):
            "XDG_RUNTIME_DIR=\(directory) ringbackd uses it. A shell that sudo or su started lacks the variable; "
                + "machinectl shell USER@, or ssh, sets it."
        }
    }
}
