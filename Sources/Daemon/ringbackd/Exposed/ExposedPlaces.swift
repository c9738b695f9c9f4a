// Where restricted sockets are. Every directory on the way belongs to the user and is closed to others, or the socket
// is not made. A socket at which a program listens is never removed; one that a crash left is.

import APIServer
import BrokerCore
import Glibc
import LocalHTTP
import MCPBridge
import RingbackBase
import Terminal

/// `$XDG_RUNTIME_DIR/ringback/exposed` and what belongs to it; beside the daemon's socket where there is no such variable.
struct ExposedPlaces: Sendable {
    /// `exposed/NAME.sock` is for programs that are given a path. `mount/NAME/socket` is alone in its directory, for
    /// containers that must see no other socket.
    let base: String
    /// Flatpak's directories of running apps; nil without `XDG_RUNTIME_DIR`, and for a private daemon.
    let apps: String?
    private let isPrivate: Bool

    /// - Parameter isPrivate: the daemon has a directory of its own, and does not use the user's.
    init(socket: String, isPrivate: Bool) {
        self.isPrivate = isPrivate
        if !isPrivate, let runtime = environment("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") {
            base = "\(runtime)/ringback"
            apps = "\(runtime)/app"
        } else {
            base = socket.lastIndex(of: "/").map { String(socket[..<$0]) } ?? "."
            apps = nil
        }
    }

    func place(of exposedSocket: ExposedSocket) -> ExposedPlace {
        ExposedPlace(
            socket: "\(base)/exposed/\(exposedSocket.name).sock", directory: "\(base)/mount/\(exposedSocket.name)",
            flatpakSocket: exposedSocket.order.flatpak.flatMap { id in
                apps.map { "\($0)/\(id)/\(exposedSocket.name).sock" }
            })
    }

    /// All paths to listen at.
    func sockets(of exposedSocket: ExposedSocket) -> [String] {
        let place = place(of: exposedSocket)
        return [place.socket, "\(place.directory)/socket", place.flatpakSocket].compactMap(\.self)
    }

    /// Where `ringback-relay` listens for a socket that serves an MCP server: beside each of its paths.
    func relaySockets(of exposedSocket: ExposedSocket) -> [String] {
        guard exposedSocket.order.mcp != nil else { return [] }
        return sockets(of: exposedSocket).map(RelaySocket.path(beside:))
    }

    /// Where the daemon serves that relay. No program of a container is given this path.
    func socketForRelay(of exposedSocket: ExposedSocket) -> String? {
        exposedSocket.order.mcp.map { _ in "\(base)/relay/\(exposedSocket.name).sock" }
    }

    /// Makes the directories of an exposed socket, with the modes that those who may connect need.
    func prepare(_ exposedSocket: ExposedSocket) throws(PlaceError) {
        let isShared = !exposedSocket.order.allowedUIDs.isEmpty
        try makeDirectory(base)
        // Other users reach only what is mounted for them: the directory above is closed to them.
        try makeDirectory("\(base)/exposed", mode: isShared ? 0o711 : nil)
        try makeDirectory("\(base)/mount")
        if exposedSocket.order.mcp != nil { try makeDirectory("\(base)/relay") }
        try makeDirectory("\(base)/mount/\(exposedSocket.name)", mode: isShared ? 0o711 : 0o700)
        guard let id = exposedSocket.order.flatpak else { return }
        guard let apps else {
            throw PlaceError(
                reason: "there is no place for a Flatpak app's socket: "
                    + (isPrivate
                        ? "this daemon is private and keeps to its own directory. Ask the user's own daemon"
                        : "XDG_RUNTIME_DIR is not set"))
        }
        try makeDirectory(apps)
        try makeDirectory("\(apps)/\(id)")
    }

    /// Makes a directory, or checks one that exists: it must be the user's own, and no symbolic link. The mode is set
    /// where one is given; 0711 lets others pass through, but not list it.
    private func makeDirectory(_ path: String, mode: mode_t? = 0o700) throws(PlaceError) {
        if unsafe mkdir(path, 0o700) != 0 {
            let code = errno
            guard code == EEXIST else { throw PlaceError(reason: "cannot make \(path): \(reason(code))") }
        }
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw PlaceError(reason: "\(path) is not a directory (a symbolic link is refused). Remove it")
        }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_uid == getuid() else {
            throw PlaceError(reason: "\(path) belongs to another user. Remove it")
        }
        let isOurs = path.hasPrefix("\(base)/")
        // Others may pass through directories that we made. The base must be closed to others, and Flatpak's
        // directories at least not writable by them.
        guard status.st_mode & (isOurs ? 0o066 : path == base ? 0o077 : 0o022) == 0 else {
            throw PlaceError(reason: "\(path) is open to others", step: .remedy(.openToOthers, path))
        }
        guard isOurs, let mode, status.st_mode & 0o7777 != mode else { return }
        guard fchmod(descriptor, mode) == 0 else { throw PlaceError(reason: "the mode of \(path) cannot be set") }
    }

    /// Removes the directory of an exposed socket whose sockets are removed, if it is empty.
    func removeDirectory(of exposedSocket: ExposedSocket) { removeUnused(place(of: exposedSocket).directory) }

    /// A program that has mounted an empty directory, and is about to have its socket made again, holds a lock on it.
    private func removeUnused(_ path: String) {
        let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unsafe rmdir(path) }
    }

    /// Removes the sockets at which no program listens, which a killed daemon left. To be called before any is made.
    func sweep() {
        for name in Directory.names(in: "\(base)/exposed") where name.hasSuffix(".sock") {
            let isDead = removeDead("\(base)/exposed/\(name)")
            guard isDead, let apps else { continue }
            for id in Directory.names(in: apps) { removeDead("\(apps)/\(id)/\(name)") }
        }
        for name in Directory.names(in: "\(base)/mount") {
            let path = "\(base)/mount/\(name)/socket"
            removeDead(path)
            removeDead(RelaySocket.path(beside: path))
        }
        for name in Directory.names(in: "\(base)/relay") { removeDead("\(base)/relay/\(name)") }
    }

    /// Removes the directories that are empty. To be called when every socket is open.
    func tidy() {
        for name in Directory.names(in: "\(base)/mount") { removeUnused("\(base)/mount/\(name)") }
    }

    /// Removes a socket of this user at which no program listens. False if one does.
    @discardableResult
    private func removeDead(_ path: String) -> Bool {
        let found = SocketFile(at: path)
        guard !SocketFile.isLive(path) else { return false }
        found?.remove()
        return true
    }
}
