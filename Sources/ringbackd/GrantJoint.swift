import APIServer
import BrokerCore
import Configuration
import LocalHTTP
import Logging
import ServiceLifecycle
import SessionVault
import Synchronization

/// The restricted sockets: for each exposure a server of its own, for as long as the book has it. Shut down with the
/// daemon's own socket.
final class ExposedSockets: Service {
    let places: ExposedPlaces
    private let logger: Logger
    private let api = OnceBox<SocketAPI>()
    private let book = OnceBox<ExposureBook>()
    private let isEnding = OnceBox<Bool>()
    private let servers = Mutex<[String: HTTPServer]>([:])
    private let (started, starting) = AsyncStream<HTTPServer>.makeStream()

    init(_ places: ExposedPlaces, logger: Logger) {
        self.places = places
        self.logger = logger
    }

    /// Joins what is needed to serve, and opens what the configuration says and what was open before the last end.
    func begin(_ api: SocketAPI, _ book: ExposureBook, _ configuration: DaemonConfiguration) async {
        self.api.set(api)
        self.book.set(book)
        places.sweep()
        await book.restore()
        await book.configure(configuration)
        places.tidy()
    }

    /// The book's hand on the sockets.
    var door: ExposureBook.Door {
        ExposureBook.Door(
            open: { [self] exposure throws(BrokerError) in try open(exposure) },
            close: { [self] exposure in close(exposure) })
    }

    private func open(_ exposure: Exposure) throws(BrokerError) {
        guard let api = api.value else { throw .cancelled }
        // Who connects is checked in any case; others than the owner must get that far.
        let mode: UInt32 = exposure.order.allowedUIDs.isEmpty ? 0o600 : 0o666
        let server = ExposedAPI(api, showing: exposure).server()
        var made: [String] = []
        do throws(PlaceError) {
            try places.prepare(exposure)
            for path in places.sockets(of: exposure) {
                try Places.refuseLiveSocket(at: path)
                try ExposedSockets.listen(server, path, mode)
                made.append(path)
            }
        } catch {
            server.close()
            places.remove(made, of: exposure)
            throw .conflict("\(exposure.name) cannot be exposed: \(error.reason).")
        }
        servers.withLock { $0[exposure.id] = server }
        starting.yield(server)
    }

    private static func listen(_ server: HTTPServer, _ path: String, _ mode: UInt32) throws(PlaceError) {
        do throws(ServerError) {
            _ = try server.listen(at: .unix(path: path, mode: mode))
        } catch {
            switch error {
            case .pathOccupied: throw PlaceError(reason: "\(path) is not a socket of yours. Remove it")
            case .pathTooLong: throw PlaceError(reason: "the socket's path is too long, choose a shorter name: \(path)")
            default: throw PlaceError(reason: "cannot listen at \(path): \(error)")
            }
        }
    }

    private func close(_ exposure: Exposure) {
        guard let server = servers.withLock({ $0.removeValue(forKey: exposure.id) }) else { return }
        places.remove(places.sockets(of: exposure), of: exposure, comesBack: isEnding.value == true)
        server.close()
    }

    func run() async throws {
        defer { starting.finish() }
        await withDiscardingTaskGroup { group in
            await withGracefulShutdownHandler {
                group.addTask { [book] in await cancelWhenGracefulShutdown { await book.value?.keep() } }
                for await server in started { group.addTask { try? await server.run() } }
            } onGracefulShutdown: {
                self.starting.finish()
            }
        }
        isEnding.set(true)
        await book.value?.closeAll()
    }

    /// For the log: what the book tells beside the records.
    func tell(_ fact: ExposureBook.Fact) {
        switch fact {
        case .opened(let exposure): logger.info("Exposed: \(exposure.name)")
        case .closed(let exposure, .accountChanged):
            logger.warning(
                "No longer exposed: \(exposure.name). An account that it showed has another provider or client now")
        case .closed(let exposure, let ending): logger.info("No longer exposed: \(exposure.name) (\(ending.rawValue))")
        case .failed(let name, let reason): logger.error("\(name) is not exposed. \(reason)")
        case .damaged(let reason): logger.error("What was exposed is not known any more. \(reason)")
        }
    }
}

extension ExposureBook {
    /// The daemon's book, kept in the state directory.
    init(_ sockets: ExposedSockets, state: String, broker: Broker, records: RecordKeeper) {
        self.init(
            door: sockets.door, file: ExposureBook.file(in: state), binding: { await broker.binding(of: $0) },
            record: { fact in
                records.note(fact)
                sockets.tell(fact)
            })
    }

    /// Where it is kept, below the state directory.
    static func file(in state: String) -> StateFile { StateFile(directory: state, name: "grants.json") }

    /// Takes over what the configuration says.
    func configure(_ configuration: DaemonConfiguration) async {
        await configure(configuration.exposes.map { (Exposure.Order($0), $0.source.description) })
    }
}

extension Exposure.Order {
    /// An `[[expose]]` of the configuration.
    init(_ configuration: ExposeConfiguration) {
        self.init(
            name: configuration.name, accounts: configuration.accounts.compactMap { AccountName($0) },
            ceiling: configuration.scopes, allowedUIDs: configuration.allowedUIDs,
            lifetime: configuration.lifetime)
    }
}
