import APIServer
import BrokerCore
import Configuration
import Desktop
import LocalHTTP
import Logging
import MCPBridge
import RingbackBase
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
