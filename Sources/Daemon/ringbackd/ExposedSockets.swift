import APIServer
import BrokerCore
import Configuration
import Desktop
import Glibc
import LocalHTTP
import Logging
import MCPBridge
import RingbackBase
import RingbackClient
import ServiceLifecycle
import SessionVault
import Synchronization
import Terminal

/// The restricted sockets: a server for each exposed socket, as long as it is in the registry. Shut down with the
/// daemon's own socket.
final class ExposedSocketServers: Service {
    let places: ExposedPlaces
    private let helper: HelperConnection
    private let logger: Logger
    private let api = OnceBox<SocketAPI>()
    private let registry = OnceBox<ExposedSocketRegistry>()
    private let isEnding = OnceBox<Bool>()
    private let records: RecordKeeper
    private let servers = Mutex<[String: [HTTPServer]]>([:])
    private let relays = Mutex<[String: ExposedRelay]>([:])
    private let paths = Mutex<Set<String>>([])
    private let (started, starting) = AsyncStream<HTTPServer>.makeStream()

    init(_ places: ExposedPlaces, helper: HelperConnection, records: RecordKeeper, logger: Logger) {
        self.places = places
        self.helper = helper
        self.records = records
        self.logger = logger
    }

    /// Opens what was open before the daemon last ended, and what the configuration says.
    func begin(_ api: SocketAPI, _ registry: ExposedSocketRegistry, _ configuration: DaemonConfiguration) async {
        self.api.set(api)
        self.registry.set(registry)
        places.sweep()
        await registry.restore()
        await registry.configure(configuration)
        places.tidy()
    }

    var listening: ExposedSocketRegistry.Listening {
        ExposedSocketRegistry.Listening(
            open: { [self] exposedSocket throws(BrokerError) in try open(exposedSocket) },
            close: { [self] exposedSocket in close(exposedSocket) })
    }

    private func open(_ exposedSocket: ExposedSocket) throws(BrokerError) {
        guard let api = api.value else { throw .cancelled }
        // Every connection's uid is checked. Other users can only be checked if they can connect.
        let mode: UInt32 = exposedSocket.order.allowedUIDs.isEmpty ? 0o600 : 0o666
        let server = ExposedAPI(api, showing: exposedSocket)
            .server(maxConnections: DescriptorBudget.current.exposed)
        let forRelay = places.socketForRelay(of: exposedSocket)
        let relayServer = forRelay.map { _ in
            ExposedAPI(api, showing: exposedSocket, isForRelay: true)
                .server(maxConnections: DescriptorBudget.current.exposed)
        }
        let all = [server, relayServer].compactMap(\.self)
        do throws(PlaceError) {
            try places.prepare(exposedSocket)
            try refuseTaken(exposedSocket)
            for path in places.sockets(of: exposedSocket) {
                try Places.refuseLiveSocket(at: path)
                try ExposedSocketServers.listen(server, path, mode)
            }
            if let forRelay, let relayServer {
                try Places.refuseLiveSocket(at: forRelay)
                try ExposedSocketServers.listen(relayServer, forRelay, 0o600)
            }
        } catch {
            for server in all {
                server.removeSocketFiles()
                server.close()
            }
            places.removeDirectory(of: exposedSocket)
            var cause: ConflictCause?
            if case .remedy(.openToOthers, let path)? = error.step { cause = .openToOthers(path: path) }
            throw .conflict(.stated("\(exposedSocket.name) cannot be exposed: \(error.reason)."), cause: cause)
        }
        servers.withLock { $0[exposedSocket.id] = all }
        paths.withLock { $0.formUnion(allPaths(of: exposedSocket)) }
        for server in all { starting.yield(server) }
        guard let rule = exposedSocket.order.mcp, let forRelay else { return }
        let relay = ExposedRelay(
            exposedSocket, rule, sockets: places.relaySockets(of: exposedSocket), mode: mode, daemon: forRelay,
            helper: helper,
            records, logger)
        relays.withLock { $0[exposedSocket.id] = relay }
        relay.begin()
    }

    private func allPaths(of exposedSocket: ExposedSocket) -> [String] {
        places.sockets(of: exposedSocket) + places.relaySockets(of: exposedSocket)
            + [places.socketForRelay(of: exposedSocket)].compactMap(\.self)
    }

    /// The relay's socket of `ci` has the path that the socket of `ci-relay` has.
    private func refuseTaken(_ exposedSocket: ExposedSocket) throws(PlaceError) {
        for path in allPaths(of: exposedSocket) where paths.withLock({ $0.contains(path) }) {
            throw PlaceError(reason: "another exposed socket has the path \(path). Choose another name")
        }
        for path in places.relaySockets(of: exposedSocket) where path.utf8.count > ExposedSocketServers.longestPath {
            throw PlaceError(reason: "the relay's path is too long, choose a shorter name: \(path)")
        }
    }

    /// Bytes of the address of a Unix socket.
    private static let longestPath = 107

    private static func listen(_ server: HTTPServer, _ path: String, _ mode: UInt32) throws(PlaceError) {
        do throws(ServerError) {
            _ = try server.listen(at: .unix(path: path, mode: mode))
        } catch {
            switch error {
            case .pathOccupied: throw PlaceError(reason: "\(path) is not a socket of yours. Remove it")
            case .pathInUse:
                throw PlaceError(reason: "another program listens at \(path). Stop it, or choose another name")
            case .pathTooLong: throw PlaceError(reason: "the socket's path is too long, choose a shorter name: \(path)")
            default: throw PlaceError(reason: "cannot listen at \(path): \(error)")
            }
        }
    }

    private func close(_ exposedSocket: ExposedSocket) {
        guard let ended = servers.withLock({ $0.removeValue(forKey: exposedSocket.id) }) else { return }
        let relay = relays.withLock { $0.removeValue(forKey: exposedSocket.id) }
        relay?.end()
        paths.withLock { $0.subtract(allPaths(of: exposedSocket)) }
        for server in ended { server.removeSocketFiles() }
        // The directory of one that comes back stays, since it may be mounted somewhere.
        if isEnding.value != true { places.removeDirectory(of: exposedSocket) }
        for server in ended { server.close() }
    }

    func run() async throws {
        defer { starting.finish() }
        await withDiscardingTaskGroup { group in
            await withGracefulShutdownHandler {
                group.addTask { [registry] in
                    await cancelWhenGracefulShutdown { await registry.value?.keep() }
                }
                for await server in started { group.addTask { try? await server.run() } }
            } onGracefulShutdown: {
                self.starting.finish()
            }
        }
        isEnding.set(true)
        await registry.value?.closeAll()
    }

    func tell(_ fact: ExposedSocketRegistry.Fact) {
        switch fact {
        case .opened(let exposedSocket): logger.info("Exposed: \(exposedSocket.name)")
        case .closed(let exposedSocket, .accountChanged):
            logger.warning(
                "No longer exposed: \(exposedSocket.name). An account that it showed has another provider or client now"
            )
        case .closed(let exposedSocket, let ending):
            logger.info("No longer exposed: \(exposedSocket.name) (\(ending.rawValue))")
        case .failed(let name, let reason): logger.error("\(name) is not exposed. \(reason.sentence)")
        case .damaged(let reason): logger.error("What was exposed is not known any more. \(reason.sentence)")
        }
    }
}

extension ExposedSocketRegistry {
    init(_ sockets: ExposedSocketServers, state: String, broker: Broker, records: RecordKeeper) {
        self.init(
            listening: sockets.listening, file: ExposedSocketRegistry.file(in: state),
            binding: { await broker.binding(of: $0) },
            record: { fact in
                records.note(fact)
                sockets.tell(fact)
            })
    }

    static func file(in state: String) -> StateFile { StateFile(directory: state, name: "exposed-sockets.json") }

    func configure(_ configuration: DaemonConfiguration) async {
        await configure(configuration.exposes.map { (ExposedSocket.Order($0), $0.source.description) })
    }
}

extension ExposedSocket.Order {
    init(_ configuration: ExposeConfiguration) {
        self.init(
            name: configuration.name, accounts: configuration.accounts.compactMap { AccountName($0) },
            ceiling: configuration.scopes, allowedUIDs: configuration.allowedUIDs,
            lifetime: configuration.lifetime.map { .seconds($0) },
            mcp: configuration.mcp.map { .init(tools: $0.tools, methods: $0.methods) })
        givesProofs = configuration.givesProofs
    }
}

// Where restricted sockets are. Every directory on the way belongs to the user and is closed to others, or the socket
// is not made. A socket at which a program listens is never removed; one that a crash left is.

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

/// The `ringback-relay` of an exposed socket that serves an MCP server: a process of its own, so that programs of a
/// container share nothing with the user's bridges. The helper starts it. It runs as long as the socket is open, and is
/// started again if it ends before. It says what it did not let through, for the audit log.
final class ExposedRelay: Sendable {
    private let exposedSocket: ExposedSocket
    private let orders: [UInt8]
    private let daemon: String
    private let records: RecordKeeper
    private let logger: Logger
    private let helper: HelperConnection
    /// The process, nil when none runs, and the sockets that it made.
    private let state = Mutex<(relay: Companion?, isOver: Bool, files: [SocketFile])>((nil, false, []))
    private let keeper = Mutex<Task<Void, Never>?>(nil)

    private static let shortestPause = Duration.milliseconds(200)
    private static let longestPause = Duration.seconds(30)
    private static let maxLine = 65_536

    init(
        _ exposedSocket: ExposedSocket, _ access: ExposedSocket.MCPAccess, sockets: [String], mode: UInt32,
        daemon: String, helper: HelperConnection, _ records: RecordKeeper, _ logger: Logger
    ) {
        self.exposedSocket = exposedSocket
        self.daemon = daemon
        self.helper = helper
        self.records = records
        self.logger = logger
        let object: JSONObject = [
            "name": exposedSocket.name, "account": exposedSocket.accounts.first?.rawValue ?? "", "sockets": sockets,
            "mode": Int(mode), "allow_uids": exposedSocket.order.allowedUIDs.map { Int($0) },
            "methods": access.methods, "tools": access.tools,
        ]
        orders = JSON.object(object).serialized() + [10]
    }

    func begin() { keeper.withLock { $0 = Task { await keep() } } }

    /// Ends it, with its connections, and removes its sockets.
    func end() {
        state.withLock { state in
            state.isOver = true
            for file in state.files { file.remove() }
            guard let relay = state.relay else { return }
            // It must not listen any more when this returns. The thread that reads closes the socket.
            relay.kill()
            shutdown(relay.socket, Int32(SHUT_RDWR))
        }
        keeper.withLock { $0?.cancel() }
    }

    private func keep() async {
        var pause = ExposedRelay.shortestPause
        while !state.withLock({ $0.isOver }) {
            let begin = ContinuousClock.now
            do throws(HelperError) {
                let relay = try await helper.startRelay(daemon: daemon)
                let isWanted = state.withLock { state in
                    if !state.isOver { state.relay = relay }
                    return !state.isOver
                }
                if isWanted { await listen(to: relay.socket) }
                state.withLock { $0.relay = nil }
                relay.end()
            } catch {
                logger.error("ringback-relay of the exposed socket \(exposedSocket.name): \(error)")
            }
            guard !state.withLock({ $0.isOver }) else { return }
            logger.warning("ringback-relay of the exposed socket \(exposedSocket.name) has ended, and is started again")
            // One that ends at once is not started all the time.
            let hasServed = ContinuousClock.now - begin > .seconds(60)
            pause = hasServed ? ExposedRelay.shortestPause : min(pause * 2, ExposedRelay.longestPause)
            try? await Task.sleep(for: pause)
        }
    }

    /// Returns when the relay has ended.
    private func listen(to socket: Int32) async {
        await withCheckedContinuation { waiter in
            let failure = Blocking.start { [self] in
                read(socket)
                waiter.resume()
            }
            guard failure != 0 else { return }
            logger.error("\(exposedSocket.name): no thread for its relay")
            waiter.resume()
        }
    }

    private func read(_ socket: Int32) {
        guard unsafe send(socket, orders, orders.count, Int32(MSG_NOSIGNAL)) == orders.count else { return }
        var lines = [UInt8]()
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe recv(socket, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            lines += buffer[..<count]
            while let end = lines.firstIndex(of: 10) {
                take(Array(lines[..<end]))
                lines.removeFirst(end + 1)
            }
            guard lines.count <= ExposedRelay.maxLine else { return }
        }
    }

    private func take(_ line: [UInt8]) {
        guard let json = try? JSON(parsing: line) else { return }
        if let denied = json["denied"], let method = denied["method"]?.string {
            records.noteDenied(
                method: method, tool: denied["tool"]?.string, reason: denied["reason"]?.string ?? "",
                uid: denied["uid"]?.integer, pid: denied["pid"]?.integer, at: exposedSocket)
        }
        if let reason = json["withheld"]?.string { records.noteWithheld(reason: reason, at: exposedSocket) }
        if let uid = json["refused_uid"]?.integer.flatMap({ UInt32(exactly: $0) }) {
            records.noteRefused(uid: uid, at: exposedSocket)
        }
        if let made = json["listening"]?.array {
            let files = made.compactMap { file -> SocketFile? in
                guard let path = file["path"]?.string, let device = file["device"]?.string.flatMap({ UInt($0) }),
                    let inode = file["inode"]?.string.flatMap({ UInt($0) })
                else { return nil }
                return SocketFile(path: path, device: device, inode: inode)
            }
            let isOver = state.withLock { state in
                state.files = files
                return state.isOver
            }
            // It has listened after the exposed socket was closed.
            if isOver { for file in files { file.remove() } }
        }
        if let reason = json["failed"]?.string {
            logger.error("The MCP server of \(exposedSocket.name) is not exposed: \(reason)")
        }
    }

    /// Beside this program's file, or in PATH.
    static var program: String {
        guard let own = executablePath() else { return "ringback-relay" }
        let sibling = "\(own[..<(own.lastIndex(of: "/") ?? own.startIndex)])/ringback-relay"
        return unsafe access(sibling, X_OK) == 0 ? sibling : "ringback-relay"
    }
}
