import APIServer
import BrokerCore
import CErasedHeap
import CLinux
import CallbackListener
import Configuration
import CurlTransport
import DeepLinks
import Desktop
import Glibc
import LocalHTTP
import Logging
import Records
import ServiceLifecycle
import SessionVault
import Synchronization
import UnixSignals

/// The daemon. Its first lines run in one thread and in this order: crash signals, dumps, environment, the helper
/// process, the configuration, the state lock; only then anything that makes threads.
@main
enum Main {
    static let version = "0.1.0"
    /// The commit of which this program was built.
    static var build: String { unsafe String(cString: clinux_commit()) }

    static func main() async {
        Hardening.apply()
        let options = Options.read(CommandLine.arguments, version: "\(version) (\(build))")
        let place = ConfigurationPlace(options)
        if options.isHelper { exit(runHelper(place)) }
        if options.checksConfiguration { exit(CheckCommand.run(place, options)) }
        if let order = options.database { _exit(await DatabaseCommand.run(order, readCredentials(options))) }

        if options.ownDirectory != nil { PrivateMode.forgetServiceManager() }
        // Checked before anything opens a descriptor that could get one of these numbers.
        for (name, number) in options.credentials where fcntl(number, F_GETFD) < 0 {
            stop("--credential-fd \(name)=\(number): that descriptor is not open", ExitStatus.failed)
        }
        let parent = options.exitsWithParent ? ParentWatch.begin(stated: options.parent) : nil
        let credentials = readCredentials(options)
        let helper = startHelper(options.helperArguments(for: place))
        let readAt = BrokerClock.system.wallInstant
        let configuration = loadConfiguration(place)
        let (lock, places, activated) = claimPlaces(options)

        let logger = makeLogger(options)
        if !cerasedheap_is_active() { logger.warning("Memory that is freed is not zeroed: tokens may stay in it") }
        let http = CurlClient(version: version)
        let peers = PeerUIDs()
        let arrivals = Arrivals()
        let listener = LoopbackListener(visit: arrivals.visit, deliver: arrivals.deliver)
        let records = RecordKeeper(
            audit: AuditLog(
                path: "\(places.state)/audit.jsonl",
                options: AuditLog.Options(now: BrokerClock.system.now) { logger.warning("\($0)") }))
        let daemonVault = DaemonVault(
            SealedFileVault(configuration.vault, state: places.state, helper: helper), configuration.vault, records)
        let vault = daemonVault.vault
        let work = Work()
        let notices = Notices()
        let keptFiles = KeptFiles()
        let activity = Activity()
        let broker = Broker(
            vault: vault, http: http, callbackReceiver: CallbackReceiver(listener, peers: peers), work: work,
            firstEvent: EventNumbers.next(in: places.state, now: EventBus.now())
        ) { fact in
            records.note(fact)
            notices.note(fact)
            keptFiles.note(fact)
            activity.note()
        }
        arrivals.connect(broker)
        daemonVault.connect(broker)
        notices.connect(broker, helper, logger)
        keptFiles.connect(broker, state: places.state, records, logger)
        let links = DeepLinkRegistry(broker, helper: helper, work: work, record: records.note, logger: logger)
        let reloader = Reloader(
            place: place, readAt: readAt, broker: broker, http: http, helper: helper, vault: vault, peers: peers,
            credentials: credentials, links: links, logger: logger)
        reloader.notices.set(notices)
        reloader.keptFiles.set(keptFiles)
        await reloader.apply(configuration)
        await keptFiles.begin()

        let exposed = ExposedSocketServers(
            ExposedPlaces(socket: places.socket, isPrivate: options.ownDirectory != nil), records: records,
            logger: logger)
        let exposedSockets = ExposedSocketRegistry(exposed, state: places.state, broker: broker, records: records)
        var daemon = SocketAPI.Daemon(version: version, build: build, certificates: readCertificates) {
            await reloader.reload()
        }
        daemon.places = [
            .init(name: "socket", path: places.socket), .init(name: "state", path: places.state),
            .init(name: "configuration", path: place.userFile ?? "none"),
        ]
        daemon.maxConnections = DescriptorBudget.current.connections
        daemon.configurationReadAt = { reloader.readAt }
        daemon.configurationNumber = { reloader.configurationNumber }
        daemon.readAccount = Account.reader(place, helper: helper, vault: vault, credentials: credentials)
        daemon.network = { reloader.network }
        daemon.exposedSockets = exposedSockets
        daemon.origins = reloader.origins
        daemon.keptFiles = keptFiles.views
        daemon.vaultHosts = daemonVault.hosts
        daemon.exposedAt = exposed.places.place
        daemon.tellOfCallback = notices.tell
        daemon.tellOfRefusal = notices.tellOfRefusal
        let api = SocketAPI(
            broker: broker, policy: Policy(owner: getuid()), daemon: daemon, records: records,
            deepLinks: links)
        let server = api.server {
            logger.critical(
                "\(places.socket) accepts no connections any more: another process has shut it down. Restart ringbackd."
            )
        }
        // Both are trapped before any program can reach the daemon: an earlier signal would end it without cleaning up.
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        let ends = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        // Whoever connects right after the start is told whether the vault is locked, and who is signed in. A keyring that
        // asks the user first takes longer; then the vault counts as locked until the user has answered.
        await broker.accountsSettled(atMost: .seconds(1))
        // What was exposed before is open again before a caller can ask for more.
        await exposed.begin(api, exposedSockets, configuration)
        reloader.exposedSockets.set(exposedSockets)
        listen(server, places, activated)
        parent?.start()
        ServiceManager.notify("READY=1")
        logger.info("Listening at \(places.socket)", metadata: ["accounts": "\(configuration.accounts.count)"])

        // Services are shut down in reverse order: waiting callers get a response before what they wait for ends.
        var group = ServiceGroupConfiguration(
            services: [
                // Named: a name made by reflection would walk through everything that a service holds.
                .init(
                    service: LastOut(broker: broker, http: http, audit: records.audit, logger: logger),
                    serviceName: "last out"),
                .init(
                    service: Freshness(
                        broker: broker, vault: daemonVault, helper: helper, configuration: configuration.vault,
                        activity: activity, logger: logger),
                    serviceName: "freshness"),
                .init(service: LeaseKeeper(lock: lock, logger: logger), serviceName: "lease"),
                .init(service: ReloadOnSignal(reloader: reloader, signals: hangups), serviceName: "reload"),
                .init(service: notices, serviceName: "notices"),
                .init(service: keptFiles, serviceName: "kept files"),
                .init(service: listener, serviceName: "callbacks"),
                .init(service: exposed, serviceName: "restricted sockets"),
                .init(service: server, serviceName: "socket API"),
            ],
            logger: logger)
        daemonVault.addService(to: &group)
        if let watchdog = Watchdog(broker) {
            group.services.append(.init(service: watchdog, serviceName: "watchdog"))
        }
        group.maximumGracefulShutdownDuration = Duration.milliseconds(4_500)
        do {
            let services = ServiceGroup(configuration: group)
            try await withThrowingDiscardingTaskGroup { tasks in
                tasks.addTask {
                    for await _ in ends { await services.triggerGracefulShutdown() }
                }
                try await services.run()
                tasks.cancelAll()
            }
        } catch {
            logger.error("Ended by a failure: \(error)")
        }
        ServiceManager.notify("STOPPING=1")
        server.removeSocketFiles()
        // While the state is locked, no other daemon can have made anything in the directory.
        if let directory = options.agentDirectory { PrivateMode.remove(directory) }
        lock.release()
        // Not by `exit`: it runs the cleanup of OpenSSL and libcurl. If the daemon ends right after its start, a thread
        // may still be loading them. Nothing of ours is left to be written.
        _exit(0)
    }

    // MARK: The steps

    private static func readCredentials(_ options: Options) -> Credentials {
        do throws(PlaceError) {
            return try Credentials(options.credentials, directory: environment("CREDENTIALS_DIRECTORY"))
        } catch {
            stop(error.reason, ExitStatus.failed)
        }
    }

    private static func startHelper(_ arguments: [String]) -> HelperConnection {
        // The helper reads the configuration itself, so that the daemon can name an account but no program. A file that
        // RINGBACK_CONFIG named is passed as an argument, since the helper's environment is a clean one.
        do throws(HelperError) {
            return try HelperConnection.start(arguments: arguments)
        } catch {
            stop("\(error)", ExitStatus.failed)
        }
    }

    private static func runHelper(_ place: ConfigurationPlace) -> Int32 {
        Helper.run(
            application: { (try? DaemonConfiguration.load(place))?.scheme($0)?.command },
            command: { (try? DaemonConfiguration.load(place))?[$0]?.clientSecretCommand })
    }

    private static func loadConfiguration(_ place: ConfigurationPlace) -> DaemonConfiguration {
        do throws(ConfigurationErrors) {
            return try DaemonConfiguration.load(place)
        } catch {
            stop("the configuration has mistakes:\n\(StartAdvice.text(error.errors))", ExitStatus.badConfiguration)
        }
    }

    private static func claimPlaces(_ options: Options) -> (StateLock, Places, Int32?) {
        let places: Places
        let activated: Int32?
        do throws(PlaceError) {
            places = try Places(options)
            activated = try ServiceManager.takeSocket()
            if activated == nil { try places.prepareSocketDirectory() }
        } catch {
            stop(StartAdvice.text(error), ExitStatus.failed)
        }
        let lock: StateLock
        do throws(StateLockError) {
            lock = try StateLock(directory: places.state)
        } catch {
            if case .held = error { stop(error.text, ExitStatus.stateHeld) }
            stop(StartAdvice.text(error), ExitStatus.failed)
        }
        do throws(PlaceError) {
            if activated == nil { try places.refuseLiveSocket() }
        } catch {
            stop(StartAdvice.text(error), ExitStatus.failed)
        }
        return (lock, places, activated)
    }

    private static func listen(_ server: HTTPServer, _ places: Places, _ activated: Int32?) {
        do throws(ServerError) {
            _ = try server.listen(at: activated.map { .descriptor($0) } ?? .unix(path: places.socket))
        } catch {
            switch error {
            case .pathOccupied(let path): stop("\(path) is not a socket of yours. Remove it.", ExitStatus.failed)
            case .pathTooLong(let path):
                stop("the socket's path is too long: \(path). Choose a shorter one with --socket.", ExitStatus.failed)
            case .system(let call, let code):
                let reason = unsafe String(cString: strerror(code))
                stop("cannot listen at \(places.socket): \(call): \(reason)", ExitStatus.system)
            default: stop("cannot listen at \(places.socket): \(error)", ExitStatus.failed)
            }
        }
    }

    private static func makeLogger(_ options: Options) -> Logger {
        var logger = Logger(label: "ringbackd") { StreamLogHandler.standardError(label: $0) }
        guard let level = Logger.Level(rawValue: options.logLevel) else {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            stop("--log-level is one of: \(levels)", ExitStatus.usage)
        }
        logger.logLevel = level
        return logger
    }

    private static func stop(_ reason: String, _ status: Int32) -> Never {
        complain(reason)
        // Other threads may be running already: exit(3) would clean up libraries that they use.
        _exit(status)
    }
}

/// A value that is set once, before it is read.
final class OnceBox<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)

    var value: Value? { content.withLock { $0 } }

    func set(_ value: Value) { content.withLock { $0 = $0 ?? value } }
}
