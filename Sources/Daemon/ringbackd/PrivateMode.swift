import CLinux
import Configuration
import Dispatch
import FilePaths
import Glibc
import Secrets

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

/// Ends the daemon when the program that started it has ended, in whatever way (`--exit-with-parent`).
///
/// It watches a descriptor of the parent. A death signal would come too early: it is sent when the parent's thread ends
/// that started us, and programs start others from threads that do not last.
final class ParentWatch: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Opens a descriptor of the parent. `stated` is its pid as it stated it.
    ///
    /// Ends the process if the parent has ended already: then our parent is not the stated one, or changes while we
    /// look.
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
