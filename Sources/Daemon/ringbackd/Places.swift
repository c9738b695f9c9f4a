import APIServer
import CLinux
import Configuration
import Dispatch
import Glibc
import LocalHTTP
import RingbackBase
import SessionVault
import Terminal

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
        guard code == EEXIST else { throw PlaceError(reason: "cannot make \(directory): \(reason(code))") }
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
                step: error.reason == .writableByOthers && isOwn(error.path)
                    ? .remedy(.writableByOthers, error.path) : nil,
                otherwise: isPrivate
                    ? "Or choose another directory" : "Or choose another place for the socket with --socket PATH")
        }
    }

    static func refuseLiveSocket(at socket: String) throws(PlaceError) {
        guard SocketFile.isLive(socket) else { return }
        throw PlaceError(
            reason: "another program answers at \(socket), perhaps a ringbackd with another state directory. "
                + "Stop it, or choose another place with --socket PATH")
    }
}

struct PlaceError: Error {
    enum Step {
        case remedy(PathTrouble, String)
        /// The user's runtime directory lasts only as long as a login.
        case linger
        /// The runtime directory is another user's.
        case ownLogin
        /// There is a runtime directory, and the environment does not name it.
        case variable(String)
    }

    /// A sentence without its full stop.
    let reason: String
    var step: Step?
    /// What else can be done, as a sentence.
    var otherwise: String?
}

func reason(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

/// True if the path is this user's. Root's directories are not to be changed for Ringback.
func isOwn(_ path: String) -> Bool {
    var status = stat()
    return unsafe lstat(path, &status) == 0 && status.st_uid == geteuid()
}

/// The path of this program's file; nil if the kernel does not say it.
func executablePath() -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0, count < buffer.count else { return nil }
    return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// A variable that is set and not empty.
func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
}

func environmentVariables() -> [String: String] {
    var variables: [String: String] = [:]
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
        // By bytes: a combining mark after the sign would make one character of the two.
        let bytes = unsafe String(cString: text).utf8
        if let mark = bytes.firstIndex(of: UInt8(ascii: "=")) {
            variables[String(bytes[..<mark]) ?? ""] = String(bytes[bytes.index(after: mark)...]) ?? ""
        }
        unsafe entry += 1
    }
    return variables
}

/// The user's runtime directory (XDG Base Directory Specification): the user's own, and closed to others.
enum RuntimeDirectory {
    static func find() throws(PlaceError) -> String {
        guard let directory = environment("XDG_RUNTIME_DIR") else { throw missing }
        guard directory.hasPrefix("/") else { throw refused(directory, "is not an absolute path") }
        var status = stat()
        guard unsafe stat(directory, &status) == 0 else {
            let code = errno
            guard code == ENOENT else { throw refused(directory, reason(code)) }
            throw refused(
                directory, "does not exist. It is made at login and removed when the last login ends", .linger)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw refused(directory, "is not a directory") }
        guard status.st_uid == geteuid() else {
            throw refused(
                directory,
                "belongs to uid \(status.st_uid), and this process has uid \(geteuid()): sudo and su keep the variable of "
                    + "the user that called them. Start ringbackd as a user of its own login", .ownLogin)
        }
        guard status.st_mode & 0o022 == 0 else {
            throw refused(directory, "can be written by others", .remedy(.openToOthers, directory))
        }
        return directory
    }

    private static func refused(_ directory: String, _ reason: String, _ step: PlaceError.Step? = nil) -> PlaceError {
        PlaceError(reason: "XDG_RUNTIME_DIR=\(directory) \(reason)", step: step, otherwise: elsewhere)
    }

    /// Why there is none, as far as this process can tell.
    private static var missing: PlaceError {
        let usual = "/run/user/\(geteuid())"
        var status = stat()
        let (reason, step): (String, PlaceError.Step?) =
            if unsafe stat(usual, &status) == 0, status.st_uid == geteuid() {
                ("\(usual) is there", .variable(usual))
            } else if unsafe stat("/run/systemd/system", &status) == 0 {
                ("systemd makes one at login", .linger)
            } else {
                ("This system makes none, as is usual without systemd-logind and in containers", nil)
            }
        return PlaceError(
            reason: "there is no place for the socket: XDG_RUNTIME_DIR is not set. \(reason)", step: step,
            otherwise: elsewhere)
    }

    private static let elsewhere =
        "Or name a place in a directory of your own that is closed to others, for the daemon and for ringback: "
        + "--socket PATH or RINGBACK_SOCK=PATH"
}

/// A daemon that belongs to one program (`--private DIR`, `--agent DIR`): everything that it keeps is in one directory,
/// closed to others, and nothing of the user's own daemon is touched.
extension ConfigurationPlace {
    init(_ options: Options) {
        if let directory = options.privateDirectory {
            let named = options.configuration.map { Path.absolute($0) ?? $0 }
            self.init(
                userFile: named ?? "\(directory)/config.toml", isExplicit: named != nil,
                dropInDirectories: ["\(directory)/accounts.d"],
                home: environment("HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }, user: geteuid())
            // A key beside the state is copied with it, but this directory is the only one that the daemon has.
            usualVault.keySource = .keyFile
            usualVault.keyDirectory = "\(directory)/keys"
        } else {
            self = .standard(option: options.configuration, environment: environmentVariables())
            if options.agentDirectory != nil {
                var vault = VaultConfiguration.standard
                vault.keySource = .memory
                onlyVault = vault
            }
        }
    }
}

extension Options {
    /// The directory that holds everything, if there is one.
    var ownDirectory: String? { privateDirectory ?? agentDirectory }

    /// The arguments with which the helper reads the same configuration.
    func helperArguments(for place: ConfigurationPlace) -> [String] {
        let named = place.isExplicit ? place.userFile.map { ["--config", $0] } ?? [] : []
        return ["--helper"] + (privateDirectory.map { ["--private", $0] } ?? []) + named
    }
}

/// A daemon with a directory of its own.
enum PrivateMode {
    /// Removes the service manager's variables. They belong to the program that started this daemon, which may be a
    /// service.
    static func forgetServiceManager() {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            unsafe unsetenv(name)
        }
    }

    /// Removes what an agent's daemon made in its directory, and the directory if nothing else is in it. The program
    /// that started the agent does so too; this is for an agent that was killed.
    static func remove(_ directory: String) {
        for name in ["state", "exposed", "mount", "relay"] { removeFiles(in: "\(directory)/\(name)", depth: 4) }
        unsafe rmdir(directory)
    }

    /// Removes files and directories. Symbolic links are removed, never followed.
    private static func removeFiles(in directory: String, depth: Int) {
        guard depth > 0 else { return }
        for name in Directory.names(in: directory) {
            let path = "\(directory)/\(name)"
            if unsafe unlink(path) != 0 { removeFiles(in: path, depth: depth - 1) }
        }
        unsafe rmdir(directory)
    }
}

/// Ends the daemon when the program that started it has ended, in whatever way (`--exit-with-parent`). It watches a
/// descriptor of the parent. A death signal would come too early: it is sent when the parent's thread ends that started
/// us, and programs start others from threads that do not last.
final class ParentWatch: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Opens a descriptor of the parent. `stated` is its pid as it stated it. Ends the process if the parent has ended
    /// already: then our parent is not the stated one, or changes while we look.
    static func begin(stated: Int32?) -> ParentWatch? {
        let parent = getppid()
        if let stated, stated != parent { gone() }
        let descriptor = clinux_open_process(parent)
        // A kernel before 5.3 has no such descriptors, and a sandbox may forbid them. Then the death signal is used.
        if descriptor < 0, descriptor != -ESRCH, clinux_die_with_parent(SIGTERM) != 0 {
            complain("--exit-with-parent: this system cannot report its parent's end")
            exit(ExitStatus.failed)
        }
        // If the parent ended before this line, we have another parent now. A later end is reported by the descriptor.
        guard descriptor != -ESRCH, getppid() == parent else { gone() }
        return descriptor < 0 ? nil : ParentWatch(descriptor)
    }

    /// From now on the parent's end has the effect of SIGTERM. An end since ``begin(stated:)`` counts too.
    func start() {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .global())
        source.setEventHandler {
            source.cancel()
            kill(getpid(), SIGTERM)
        }
        source.activate()
    }

    private static func gone() -> Never {
        complain("the program that started this daemon has ended")
        exit(0)
    }
}
