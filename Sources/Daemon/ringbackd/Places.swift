import APIServer
import Glibc
import LocalHTTP
import SessionVault
import Terminal

/// Where the daemon's files are.
struct Places {
    var socket: String
    var state: String
    /// Both are in the directory of `--private`, which allows no other option for a place.
    private let isPrivate: Bool

    /// Options come first, then `RINGBACK_*`, then the XDG directories.
    init(_ options: Options) throws(PlaceError) {
        isPrivate = options.ownDirectory != nil
        if let directory = options.ownDirectory {
            socket = "\(directory)/ringback.sock"
            state = "\(directory)/state"
            return
        }
        if let socket = options.socket ?? environment("RINGBACK_SOCK") {
            self.socket = socket
        } else {
            socket = "\(try RuntimeDirectory.find())/ringback/ringback.sock"
        }
        guard let state = Places.state(options) else {
            throw PlaceError(reason: "there is no place for the state: HOME is not set. Use --state DIRECTORY")
        }
        self.state = state
    }

    /// The state directory of a daemon that is started with these options; nil if there is no place for it.
    static func state(_ options: Options) -> String? {
        if let directory = options.ownDirectory { return "\(directory)/state" }
        if let state = options.state ?? environment("RINGBACK_STATE") { return state }
        let base = environment("XDG_STATE_HOME") ?? environment("HOME").map { "\($0)/.local/state" }
        return base.map { "\($0)/ringback" }
    }

    /// Makes the socket's directory if it is missing, and refuses one that is not the user's alone.
    func prepareSocketDirectory() throws(PlaceError) {
        guard let slash = socket.lastIndex(of: "/") else {
            throw PlaceError(reason: "the socket's path must name its directory: \(socket)")
        }
        let directory = slash == socket.startIndex ? "/" : String(socket[..<slash])
        try Places.checkParents(of: directory, isPrivate: isPrivate)
        if unsafe mkdir(directory, 0o700) == 0 { return }
        let code = errno
        guard code == EEXIST else {
            throw PlaceError(reason: "cannot make \(directory): \(unsafe String(cString: strerror(code)))")
        }
        var status = stat()
        guard unsafe lstat(directory, &status) == 0 else { throw PlaceError(reason: "cannot look at \(directory)") }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw PlaceError(reason: "\(directory) is not a directory (a symbolic link is refused). Remove it")
        }
        guard status.st_uid == getuid() else {
            throw PlaceError(
                reason: "\(directory) belongs to another user. Choose another\(isPrivate ? "" : " with --socket PATH")")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw PlaceError(reason: "\(directory) is open to others", step: .remedy(.openToOthers, directory))
        }
    }
}

extension Places {
    /// Refuses a directory that other users could replace.
    static func checkParents(of directory: String, isPrivate: Bool = false) throws(PlaceError) {
        do throws(DirectoryTrust.Failure) {
            try DirectoryTrust.check(parentsOf: directory)
        } catch {
            throw PlaceError(
                reason: "\(error.path) \(error.reason.sentence)",
                step: error.reason == .writableByOthers ? .remedy(.writableByOthers, error.path) : nil,
                otherwise: isPrivate
                    ? "Or choose another directory" : "Or choose another place for the socket with --socket PATH")
        }
    }

    /// Refuses a socket at which another program listens. The state lock keeps out only a second daemon with the same
    /// state. One with another state would take over the socket, and the first one's clients would find themselves
    /// signed out.
    func refuseLiveSocket() throws(PlaceError) { try Places.refuseLiveSocket(at: socket) }

    static func refuseLiveSocket(at socket: String) throws(PlaceError) {
        guard SocketFile.isLive(socket) else { return }
        throw PlaceError(
            reason: "another program answers at \(socket), perhaps a ringbackd with another state directory. "
                + "Stop it, or choose another place with --socket PATH")
    }
}

/// Why a path cannot be used.
struct PlaceError: Error {
    /// What helps, for ``StartAdvice``.
    enum Step {
        case remedy(PathRemedy, String)
        /// The user's runtime directory lasts only as long as a login.
        case linger
        /// The runtime directory is another user's.
        case ownLogin
        /// There is a runtime directory, and the environment does not name it.
        case variable(String)
    }

    /// A sentence without its full stop.
    let reason: String
    let step: Step?
    /// What else can be done, as a sentence.
    let otherwise: String?

    init(reason: String, step: Step? = nil, otherwise: String? = nil) {
        self.reason = reason
        self.step = step
        self.otherwise = otherwise
    }
}

/// A variable that is set and not empty.
func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
}

/// Every variable.
func environmentVariables() -> [String: String] {
    var variables: [String: String] = [:]
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
        let parts = unsafe String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
        unsafe entry += 1
    }
    return variables
}
