import APIServer
import Configuration
import Glibc
import RingbackBase
import SessionVault
import Terminal

/// The daemon's command line. Read by hand: a daemon has few options, and starts often.
struct Options {
    var configuration: String?
    var socket: String?
    var state: String?
    var checksConfiguration = false
    /// A drop-in that is not in its place yet, for `ringback account add`.
    var candidate: String?
    /// A changed copy of a configuration file, and the file, for `ringback account edit`.
    var draft: (path: String?, original: String?) = (nil, nil)
    var isJSON = false
    var logLevel = "info"
    /// Everything is in this directory: the daemon belongs to one program.
    var privateDirectory: String?
    /// The daemon of `ringback agent`: it uses this directory, has its sessions in memory only, and ends with the
    /// agent.
    var agentDirectory: String?
    var exitsWithParent = false
    /// The parent's pid, as the parent stated it.
    var parent: Int32?
    /// Secrets that are read from descriptors at the start.
    var credentials: [(name: String, descriptor: Int32)] = []
    var database: DatabaseOrder?
    /// This process is the helper (see ``Helper``).
    var isHelper = false

    static let usage = """
        usage: ringbackd [--config FILE] [--socket PATH] [--state DIRECTORY]
                         [--log-level LEVEL] [--credential-fd NAME=N]... [--exit-with-parent[=PID]]
               ringbackd --private DIRECTORY [--config FILE]
                         [--exit-with-parent[=PID]] [...]
               ringbackd --check-config [--config FILE] [--json]
                         [--candidate FILE | --draft FILE --draft-of FILE]
               ringbackd --database init --url URL --owner NAME [--host-url URL]
                         [--server-uid UID] [--credential-fd password=N]
               ringbackd --database migrate|facts --url URL [--server-uid UID]
                         [--credential-fd password=N]
               ringbackd --version | --help

        The Ringback daemon: signs in, keeps sessions fresh, and issues short-lived
        access tokens to local programs.
        LEVEL is trace, debug, info, notice, warning, error or critical.
        """

    /// Reads the arguments, or prints what is wrong and exits: 0 for --help and --version, else 64.
    static func read(_ arguments: [String], version: String) -> Options {
        var options = Options()
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
            let name = argument.hasPrefix("--") ? parts[0] : argument
            func value() -> String {
                if parts.count == 2 { return parts[1] }
                guard let next = rest.popFirst() else { fail("\(name) needs a value") }
                return next
            }
            switch name {
            case "--config": options.configuration = value()
            case "--socket": options.socket = value()
            case "--state": options.state = value()
            case "--candidate": options.candidate = value()
            case "--draft": options.draft.path = value()
            case "--draft-of": options.draft.original = value()
            case "--log-level": options.logLevel = value()
            case "--private": options.privateDirectory = whole(value())
            case "--agent": options.agentDirectory = whole(value())
            case "--exit-with-parent":
                options.exitsWithParent = true
                if argument.contains("=") {
                    guard let pid = parts.last.flatMap({ Int32($0) }), pid > 0 else {
                        fail("\(name)=PID needs a process's number")
                    }
                    options.parent = pid
                }
            case "--credential-fd": options.credentials.append(credential(value()))
            case "--check-config": options.checksConfiguration = true
            case "--json": options.isJSON = true
            case "--database":
                guard let verb = DatabaseOrder.Verb(rawValue: value()) else {
                    fail("--database is init, migrate or facts")
                }
                options.database = DatabaseOrder(verb)
            case "--url", "--owner", "--host-url", "--server-uid":
                let text = value()
                guard options.database != nil else { fail("\(name) is for --database, and comes after it") }
                switch name {
                case "--url": options.database?.url = text
                case "--owner": options.database?.owner = text
                case "--server-uid":
                    guard let uid = UInt32(text) else { fail("--server-uid needs a user's number") }
                    options.database?.serverUID = uid
                default: options.database?.hostURL = text
                }
            case "--helper": options.isHelper = true
            case "--version":
                print("ringbackd \(version)")
                exit(0)
            case "--help", "-h":
                print(usage)
                exit(0)
            default: fail("unknown argument \(argument)")
            }
        }
        if options.ownDirectory != nil, options.socket != nil || options.state != nil {
            fail("--private says where the socket and the state are: leave --socket and --state out")
        }
        if let mistake = options.database?.mistake { fail(mistake) }
        if (options.draft.path == nil) != (options.draft.original == nil) {
            fail("--draft and --draft-of belong together")
        }
        if options.privateDirectory != nil, options.agentDirectory != nil { fail("--private or --agent, not both") }
        return options
    }

    /// `NAME=N`
    private static func credential(_ text: String) -> (name: String, descriptor: Int32) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, CredentialFile.isName(parts[0]), let descriptor = Int32(parts[1]),
            descriptor == 0 || descriptor > 2
        else { fail("--credential-fd is NAME=N: a credential's name, and an open descriptor's number (0, 3, ...)") }
        return (parts[0], descriptor)
    }

    private static func whole(_ path: String) -> String { Path.absolute(path) ?? path }

    private static func fail(_ reason: String) -> Never {
        complain("\(reason)\n\(usage)")
        exit(ExitStatus.usage)
    }
}

enum ExitStatus {
    static let failed: Int32 = 1
    static let usage: Int32 = 64
    static let stateHeld: Int32 = 69
    /// EX_OSERR of sysexits.h.
    static let system: Int32 = 71
    static let badConfiguration: Int32 = 78
}

func complain(_ text: String) {
    let bytes = Array("ringbackd: \(text)\n".utf8)
    _ = unsafe write(STDERR_FILENO, bytes, bytes.count)
}

/// What to type after a start that failed. It is printed on standard error.
/// This is the only place in the daemon with commands: what the socket serves has none.
enum StartAdvice {
    static func text(_ error: PlaceError) -> String {
        error.step.map { "\(error.reason). \(words(for: $0))\(error.otherwise.map { "\n\($0)" } ?? "")" }
            ?? ([error.reason] + [error.otherwise].compactMap { $0 }).joined(separator: ". ")
    }

    static func text(_ error: StateLockError) -> String {
        switch error {
        case .openToOthers(let directory, _): "\(error.text). \(words(for: .remedy(.openToOthers, directory)))"
        case .untrustedParent(let failure) where failure.reason == .writableByOthers && isOwn(failure.path):
            "\(error.text). \(words(for: .remedy(.writableByOthers, failure.path)))"
        default: error.text
        }
    }

    /// One line for each mistake, with the command that mends it.
    static func text(_ errors: [ConfigurationError]) -> String {
        errors.map { error in
            guard case .unsafe(let unsafe)? = error.cause else { return error.description }
            return "\(error): \(shown: unsafe.trouble.command(for: unsafe.path, user: geteuid()))"
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
            return "\(path): \(reason(code)) (\(call))"
        }
    }
}
