import APIServer
import BrokerCore
import CErasedHeap
import CLinux
import CallbackListener
import Configuration
import CurlTransport
import DeepLinks
import Desktop
import DesktopNotices
import Glibc
import KeptFiles
import LocalHTTP
import Logging
import Records
import RingbackBase
import ServiceLifecycle
import SessionVault
import Synchronization
import UnixSignals

/// The daemon. Its first lines run in one thread and in this order: crash signals, dumps, environment, the helper
/// process, the filter of system calls, the configuration, the state lock; only then anything that makes threads.
@main
enum Main {
    static let version = "0.1.0"
    static var build: String { unsafe String(cString: clinux_commit()) }

    static func main() async {
        Hardening.apply()
        let options = Options.read(CommandLine.arguments, version: "\(version) (\(build))")
        let place = ConfigurationPlace(options)
        if options.isHelper { exit(runHelper(place)) }
        if options.checksConfiguration { exit(CheckCommand.run(place, options)) }
        if let order = options.database { _exit(await DatabaseCommand.run(order, readCredentials(options))) }

        let start = Start(options, place)
        let logger = makeLogger(options)
        if let reason = start.unconfined { logger.warning("The kernel does not confine the daemon: \(reason)") }
        if !cerasedheap_is_active() { logger.warning("Memory that is freed is not zeroed: tokens may stay in it") }
        let daemon = Daemon(start, logger)
        await daemon.reloader.apply(start.configuration)
        await daemon.keptFiles.begin()
        // Both are trapped before any program can reach the daemon: an earlier signal would end it without cleaning up.
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        let ends = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        // Whoever connects right after the start is told whether the vault is locked, and who is signed in. A keyring that
        // asks the user first takes longer; then the vault counts as locked until the user has answered.
        await daemon.broker.accountsSettled(atMost: .seconds(1))
        // What was exposed before is open again before a caller can ask for more.
        await daemon.exposed.begin(daemon.api, daemon.exposedSockets, start.configuration)
        daemon.reloader.exposedSockets.set(daemon.exposedSockets)
        listen(daemon.server, start.places, start.activated)
        // A socket of systemd's is systemd's to watch.
        let socketWatch = start.activated == nil ? SocketWatch(start.places.socket, logger) : nil
        start.parent?.start()
        ServiceManager.notify("READY=1")
        logger.info(
            "Listening at \(start.places.socket)", metadata: ["accounts": "\(start.configuration.accounts.count)"])

        let keepsHelper = await serve(daemon, start, reloadingOn: hangups, endingOn: ends, logger)
        ServiceManager.notify("STOPPING=1")
        socketWatch?.end()
        daemon.server.removeSocketFiles()
        // While the state is locked, no other daemon can have made anything in the directory.
        if let directory = options.agentDirectory { PrivateMode.remove(directory) }
        start.lock.release()
        // Not by `exit`: it runs the cleanup of OpenSSL and libcurl. If the daemon ends right after its start, a thread
        // may still be loading them. All writes have completed.
        _exit(keepsHelper ? 0 : ExitStatus.failed)
    }

    /// Runs the services until a signal ends them; false if the helper process ended before.
    private static func serve(
        _ daemon: Daemon, _ start: Start, reloadingOn hangups: UnixSignalsSequence, endingOn ends: UnixSignalsSequence,
        _ logger: Logger
    ) async -> Bool {
        let isWithoutHelper = OnceBox<Bool>()
        do {
            let services = ServiceGroup(configuration: daemon.services(reloadingOn: hangups))
            try await withThrowingDiscardingTaskGroup { tasks in
                tasks.addTask {
                    for await _ in ends { await services.triggerGracefulShutdown() }
                }
                tasks.addTask {
                    await start.helper.waitUntilEnded()
                    guard !Task.isCancelled else { return }
                    // Without a service manager nobody would start the daemon again, and most of its work needs no helper.
                    guard environment("NOTIFY_SOCKET") != nil else {
                        return logger.critical(
                            "The helper process has ended. The daemon goes on without one until it is started again")
                    }
                    logger.critical("The helper process has ended. The daemon cannot start another, and ends too")
                    isWithoutHelper.set(true)
                    await services.triggerGracefulShutdown()
                }
                try await services.run()
                tasks.cancelAll()
            }
        } catch {
            logger.error("Ended by a failure: \(error)")
        }
        return isWithoutHelper.value == nil
    }

    /// The result of `body`. A failure ends the process.
    static func require<Value, Failure: Error>(
        _ text: (Failure) -> String, _ body: () throws(Failure) -> Value
    ) -> Value {
        do throws(Failure) { return try body() } catch { stop(text(error), ExitStatus.failed) }
    }

    static func readCredentials(_ options: Options) -> Credentials {
        require(\.reason) { () throws(PlaceError) in
            try Credentials(options.credentials, directory: environment("CREDENTIALS_DIRECTORY"))
        }
    }

    private static func runHelper(_ place: ConfigurationPlace) -> Int32 {
        Helper.run(
            application: { (try? DaemonConfiguration.load(place))?.scheme($0)?.command },
            browser: { name in (try? DaemonConfiguration.load(place)).flatMap { $0[name].map(\.page.browser) } },
            relay: ExposedRelay.program,
            command: { (try? DaemonConfiguration.load(place))?[$0]?.clientSecretCommand })
    }

    static func loadConfiguration(_ place: ConfigurationPlace) -> DaemonConfiguration {
        do throws(ConfigurationErrors) {
            return try DaemonConfiguration.load(place)
        } catch {
            stop("the configuration has mistakes:\n\(StartAdvice.text(error.errors))", ExitStatus.badConfiguration)
        }
    }

    static func claimPlaces(_ options: Options) -> (StateLock, Places, Int32?) {
        let (places, activated) = require(StartAdvice.text) { () throws(PlaceError) in
            let places = try Places(options)
            let activated = try ServiceManager.takeSocket()
            if activated == nil { try places.prepareSocketDirectory() }
            return (places, activated)
        }
        let lock: StateLock
        do throws(StateLockError) {
            lock = try StateLock(directory: places.state)
        } catch {
            if case .held = error { stop(error.text, ExitStatus.stateHeld) }
            stop(StartAdvice.text(error), ExitStatus.failed)
        }
        // The state lock keeps out only a second daemon with the same state. One with another state would take over the
        // socket, and the first one's clients would find themselves signed out.
        require(StartAdvice.text) { () throws(PlaceError) in
            if activated == nil { try Places.refuseLiveSocket(at: places.socket) }
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
                stop("cannot listen at \(places.socket): \(call): \(reason(code))", ExitStatus.system)
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

    static func stop(_ reason: String, _ status: Int32) -> Never {
        complain(reason)
        // Other threads may be running already: exit(3) would clean up libraries that they use.
        _exit(status)
    }
}

/// What the daemon claims before it makes any thread. A failure ends the process.
struct Start {
    let options: Options
    let place: ConfigurationPlace
    let parent: ParentWatch?
    let credentials: Credentials
    let helper: HelperConnection
    /// Nil, or why the kernel would let the daemon start programs.
    let unconfined: String?
    let readAt: WallInstant
    let configuration: DaemonConfiguration
    let lock: StateLock
    let places: Places
    /// The socket that the service manager has opened.
    let activated: Int32?

    init(_ options: Options, _ place: ConfigurationPlace) {
        self.options = options
        self.place = place
        if options.ownDirectory != nil { PrivateMode.forgetServiceManager() }
        // Checked before anything opens a descriptor that could get one of these numbers.
        for (name, number) in options.credentials where fcntl(number, F_GETFD) < 0 {
            Main.stop("--credential-fd \(name)=\(number): that descriptor is not open", ExitStatus.failed)
        }
        parent = options.exitsWithParent ? ParentWatch.begin(stated: options.parent) : nil
        credentials = Main.readCredentials(options)
        // The helper reads the configuration itself, so that the daemon can name an account but no program. A file that
        // RINGBACK_CONFIG named is passed as an argument, since the helper's environment is a clean one.
        helper = Main.require({ "\($0)" }) { () throws(HelperError) in
            try HelperConnection.start(arguments: options.helperArguments(for: place))
        }
        unconfined = Hardening.forbidPrograms()
        readAt = BrokerClock.system.wallInstant
        configuration = Main.loadConfiguration(place)
        (lock, places, activated) = Main.claimPlaces(options)
    }
}

/// The parts of the running daemon, joined.
struct Daemon {
    private let start: Start
    private let logger: Logger
    private let http = CurlClient(version: Main.version)
    private let listener: LoopbackListener
    private let records: RecordKeeper
    private let vault: DaemonVault
    private let notices: SignInNotices
    let keptFiles: FileKeeper
    private let consents: ConsentDesk
    private let activity = Activity()
    /// How long the daemon's end waits for the desktop to remove notices that nobody would react to any more.
    private static let farewell: Duration = .milliseconds(500)
    let broker: Broker
    let reloader: Reloader
    let exposed: ExposedSocketServers
    let exposedSockets: ExposedSocketRegistry
    let api: SocketAPI
    let server: HTTPServer

    init(_ start: Start, _ logger: Logger) {
        self.start = start
        self.logger = logger
        let (places, helper) = (start.places, start.helper)
        let (peers, work, connected) = (PeerUIDs(), Work(), OnceBox<Broker>())
        let arrivals = Arrivals(broker: connected)
        let watchers = OnceBox<@Sendable (BrokerFact) -> Void>()
        listener = LoopbackListener(visit: arrivals.visit, deliver: arrivals.deliver)
        records = RecordKeeper(
            audit: AuditLog(
                path: "\(places.state)/audit.jsonl",
                options: AuditLog.Options(now: BrokerClock.system.now) { logger.warning("\($0)") }))
        let configured = start.configuration.vault
        vault = DaemonVault(
            SealedFileVault(configured, state: places.state, helper: helper), configured, records, connected)
        broker = Broker(
            vault: vault.vault, http: http, callbackReceiver: CallbackReceiver(listener, peers: peers), work: work,
            clock: vault.hosts == nil ? .system : .system.ofSharedVault(),
            firstEvent: EventNumbers.next(in: places.state, now: EventBus.now())
        ) { [records, activity] fact in
            records.note(fact)
            watchers.value?(fact)
            activity.note()
        }
        connected.set(broker)
        consents = ConsentDesk(file: StateFile(directory: places.state, name: "consents.json"), tell: broker.tell)
        notices = SignInNotices(broker, consents, helper, logger)
        keptFiles = FileKeeper(broker, state: places.state, records, logger)
        watchers.set { [notices, keptFiles] fact in
            notices.note(fact)
            keptFiles.note(fact)
        }
        let links = DeepLinkRegistry(broker, helper: helper, work: work, record: records.note, logger: logger)
        let secrets = AccountSecrets(broker: broker, helper: helper, vault: vault.vault, credentials: start.credentials)
        reloader = Reloader(
            place: start.place, readAt: start.readAt,
            Reloader.Parts(
                broker: broker, http: http, secrets: secrets, peers: peers, links: links, notices: notices,
                keptFiles: keptFiles, consents: consents), logger)
        exposed = ExposedSocketServers(
            ExposedPlaces(socket: places.socket, isPrivate: start.options.ownDirectory != nil), helper: helper,
            records: records, logger: logger)
        exposedSockets = ExposedSocketRegistry(exposed, state: places.state, broker: broker, records: records)

        var daemon = SocketAPI.Daemon(
            version: Main.version, build: Main.build, certificates: Main.readCertificates
        ) { [reloader] in
            await reloader.reload()
        }
        daemon.places = [
            .init(name: "socket", path: places.socket), .init(name: "state", path: places.state),
            .init(name: "configuration", path: start.place.userFile ?? "none"),
        ]
        daemon.maxConnections = DescriptorBudget.current.connections
        daemon.configurationReadAt = { [reloader] in reloader.readAt }
        daemon.configurationNumber = { [reloader] in reloader.configurationNumber }
        daemon.readAccount = Account.reader(start.place, secrets)
        daemon.network = { [reloader] in reloader.network }
        daemon.exposedSockets = exposedSockets
        daemon.origins = reloader.origins
        daemon.keptFiles = { [keptFiles] in keptFiles.views }
        daemon.consents = consents
        daemon.vaultHosts = vault.hosts
        daemon.unconfined = start.unconfined
        daemon.exposedAt = exposed.places.place
        daemon.tellOfCallback = notices.tell
        daemon.tellOfRefusal = notices.tellOfRefusal
        daemon.openPage = { [helper] url, account, token in
            await helper.failure(ofOpening: url, account, token, logger)
        }
        api = SocketAPI(
            broker: broker, policy: Policy(owner: getuid()), daemon: daemon, records: records, deepLinks: links)
        server = api.server {
            logger.critical(
                "\(places.socket) accepts no connections any more: another process has shut it down. Restart ringbackd."
            )
        }
    }

    func services(reloadingOn hangups: UnixSignalsSequence) -> ServiceGroupConfiguration {
        // Named: a name made by reflection would walk through everything that a service holds.
        func named(_ name: String, _ service: any Service) -> ServiceGroupConfiguration.ServiceConfiguration {
            .init(service: service, serviceName: name)
        }
        // Services are shut down in reverse order: waiting callers get a response before what they wait for ends.
        var group = ServiceGroupConfiguration(
            services: [
                named("last out", LastOut(broker: broker, http: http, audit: records.audit, logger: logger)),
                named(
                    "freshness",
                    Freshness(
                        broker: broker, vault: vault, helper: start.helper, configuration: start.configuration.vault,
                        activity: activity, logger: logger)),
                named("lease", LeaseKeeper(lock: start.lock, logger: logger)),
                named("reload", ReloadOnSignal(reloader: reloader, signals: hangups)),
                named(
                    "notices",
                    Leaving(work: notices.run) { [notices] in await notices.leave(atMost: Daemon.farewell) }),
                named("kept files", Leaving(work: keptFiles.run, leave: keptFiles.leave)),
                named("callbacks", listener),
                named("restricted sockets", exposed), named("socket API", server),
            ],
            logger: logger)
        vault.addService(to: &group)
        if let watchdog = Watchdog(broker) { group.services.append(named("watchdog", watchdog)) }
        group.maximumGracefulShutdownDuration = Duration.milliseconds(4_500)
        return group
    }
}

/// A value that is set once, before it is read.
final class OnceBox<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)

    var value: Value? { content.withLock { $0 } }
    func set(_ value: Value) { content.withLock { $0 = $0 ?? value } }
}
