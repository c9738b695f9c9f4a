// Somebody else on the same machine: the user nobody, whom root can play. Their programs are a shell and curl, which
// run as them from their first instruction. Without root these tests are skipped, and say so.

import Glibc
import Testing

enum Stranger {
    static let uid: UInt32 = 65_534
    /// Another one still: no configuration may name nobody, who stands for everybody whom the system cannot name.
    static let namedUID: UInt32 = 65_533
    static let isPossible = geteuid() == 0
    static let reason: Comment = "only root can act as another user"
    static let setpriv = "/usr/bin/setpriv"

    static func becoming(_ uid: UInt32) -> [String] {
        ["--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
    }

    /// Sends bytes to a port of 127.0.0.1 and prints the answer.
    static let asking = """
        exec 3<>"/dev/tcp/127.0.0.1/$1" && printf %s "$2" >&3 && cat <&3
        """
}

extension Stranger {
    /// They can run the daemon only where its file, and what it is linked with, can be reached by them.
    static func canRunTheDaemon() async throws -> Bool {
        guard isPossible else { return true }
        let arguments = becoming(uid) + [Programs.path("ringbackd"), "--version"]
        return try await Program(setpriv, arguments, environment: [:]).end().status == 0
    }
}

extension Stage {
    func run(
        asUser uid: UInt32 = Stranger.uid, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> Output {
        try await run(Stranger.setpriv, Stranger.becoming(uid) + arguments, environment: environment)
    }

    /// Runs a script of bash as another user; `$1` and so on are the words.
    func run(asUser uid: UInt32 = Stranger.uid, script: String, _ words: String...) async throws -> Output {
        try await run(asUser: uid, ["/bin/bash", "-c", script, "stranger"] + words)
    }

    /// A daemon of the user who is not root: of nobody, or another one, if we are root, else of ourselves. With it, what
    /// reads as that same user.
    struct Ordinary: Sendable {
        let daemon: Program
        let socket: String
        /// Put before a program's arguments, it runs as the daemon's user.
        let prefix: [String]
    }

    /// Starts a daemon of an ordinary user, with two accounts and more variables. It is ended with the stage.
    func startOrdinaryDaemon(
        environment added: [String: String], asUser uid: UInt32 = Stranger.uid
    ) async throws -> Ordinary {
        guard Stranger.isPossible else {
            let environment = added.merging(["NOTIFY_SOCKET": notices.path]) { first, _ in first }
            let count = notices.count
            let daemon = try start("ringbackd", ["--state", state], environment: environment)
            try await notices.wait(for: "READY=1", after: count)
            return Ordinary(daemon: daemon, socket: socket, prefix: ["/usr/bin/env"])
        }
        let theirs = "\(directory)/theirs"
        for path in [theirs, "\(theirs)/run", "\(theirs)/state"] { FileTree.makeDirectory(path) }
        try write(FileTree.text(of: configuration) ?? "", to: "\(theirs)/config.toml")
        for path in ["", "/run", "/state", "/config.toml"] {
            unsafe chown(theirs + path, uid, uid)
        }
        // They must get to what is theirs, and to the socket that their daemon reports to.
        FileTree.setMode(0o711, of: directory)
        FileTree.setMode(0o777, of: notices.path)
        var environment = added
        environment["NOTIFY_SOCKET"] = notices.path
        environment["RINGBACK_CONFIG"] = "\(theirs)/config.toml"
        environment["RINGBACK_SOCK"] = "\(theirs)/run/ringback.sock"
        environment["RINGBACK_STATE"] = "\(theirs)/state"
        let count = notices.count
        let daemon = try start(
            Stranger.setpriv, Stranger.becoming(uid) + [Programs.path("ringbackd")], environment: environment)
        do {
            try await notices.wait(for: "READY=1", after: count)
        } catch {
            throw Late(what: "readiness of another user's ringbackd: \(daemon.errors.value.text)")
        }
        return Ordinary(
            daemon: daemon, socket: "\(theirs)/run/ringback.sock",
            prefix: [Stranger.setpriv] + Stranger.becoming(uid))
    }
}
