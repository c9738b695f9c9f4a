import CLinux
import Configuration
import Dispatch
import Glibc

/// A daemon of a program's own (`--private DIR`, `--agent DIR`): everything that it keeps is in one directory, closed
/// to others, and nothing of the machine's or the person's daemon is touched.
extension ConfigurationPlace {
    init(_ options: Options) {
        if let directory = options.privateDirectory {
            let named = options.configuration.map { Options.absolute($0) }
            self.init(
                userFile: named ?? "\(directory)/config.toml", isExplicit: named != nil,
                dropInDirectories: ["\(directory)/accounts.d"],
                home: environment("HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }, user: geteuid())
            // The key is copied with the state where it stands beside it, but this directory is all that there is.
            usualVault.keySource = "key-file"
            usualVault.keyDirectory = "\(directory)/keys"
        } else {
            self = .standard(option: options.configuration, environment: environmentVariables())
            if options.agentDirectory != nil {
                var vault = VaultConfiguration.standard
                vault.keySource = "memory"
                onlyVault = vault
            }
        }
    }
}

extension Options {
    /// The directory that holds everything, if there is one.
    var ownDirectory: String? { privateDirectory ?? agentDirectory }

    /// What the helper must be told to read the same configuration.
    func helperArguments(for place: ConfigurationPlace) -> [String] {
        let named = place.isExplicit ? place.userFile.map { ["--config", $0] } ?? [] : []
        return ["--helper"] + (privateDirectory.map { ["--private", $0] } ?? []) + named
    }

    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let directory = unsafe getcwd(nil, 0) else { return path }
        defer { unsafe free(directory) }
        return unsafe "\(String(cString: directory))/\(path)"
    }
}

/// A directory of this daemon's own.
enum PrivateMode {
    /// A program that is a service itself is not to be spoken for: what its service manager gave it is its own.
    static func forgetServiceManager() {
        for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            unsafe unsetenv(name)
        }
    }

    /// Removes what an agent's daemon made in its directory, and the directory if nothing else is in it. Whoever began
    /// the agent does so too; this is for an agent that was killed.
    static func remove(_ directory: String) {
        unsafe unlink("\(directory)/ringback.sock")
        for name in ["state", "exposed", "mount"] { removeFiles(in: "\(directory)/\(name)", depth: 4) }
        unsafe rmdir(directory)
    }

    /// Files and directories, links as such: none is followed.
    private static func removeFiles(in directory: String, depth: Int) {
        guard depth > 0, let stream = unsafe opendir(directory) else { return }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        unsafe closedir(stream)
        for name in names {
            let path = "\(directory)/\(name)"
            if unsafe unlink(path) != 0 { removeFiles(in: path, depth: depth - 1) }
        }
        unsafe rmdir(directory)
    }
}

/// Ends the daemon when the program that started it has ended, in whatever way (`--exit-with-parent`).
///
/// By a descriptor of the parent and not by a death signal: that comes when the parent's thread ends which started us,
/// and programs start others from threads that do not last.
final class ParentWatch: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Takes hold of the parent. `stated` is its pid by its own word.
    ///
    /// Ends the process if the parent has ended already: then our parent is another one than was stated, or becomes
    /// another one while we look.
    static func begin(stated: Int32?) -> ParentWatch? {
        let parent = getppid()
        if let stated, stated != parent { gone() }
        let descriptor = clinux_open_process(parent)
        // Of a kernel without such descriptors (before 5.3), or a sandbox that keeps them away, the signal is had.
        if descriptor < 0, descriptor != -ESRCH, clinux_die_with_parent(SIGTERM) != 0 {
            complain("--exit-with-parent: this system does not tell of its parent's end")
            exit(ExitStatus.failed)
        }
        // Whoever ended before this line has been replaced as our parent; afterwards the descriptor tells.
        guard descriptor != -ESRCH, getppid() == parent else { gone() }
        return descriptor < 0 ? nil : ParentWatch(descriptor)
    }

    /// From now on the parent's end is a request to end, as SIGTERM is; an end since ``begin(stated:)`` counts.
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
