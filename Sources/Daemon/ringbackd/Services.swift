import APIServer
import BrokerCore
import Configuration
import CurlTransport
import DeepLinks
import Desktop
import DesktopNotices
import Dispatch
import Glibc
import KeptFiles
import LocalHTTP
import Logging
import OAuth
import Records
import RingbackBase
import ServiceLifecycle
import SessionVault
import Synchronization
import UnixSignals

/// The configuration that is in force. A reload replaces all of it, or nothing.
final class Reloader: Sendable {
    /// What a configuration is applied to.
    struct Parts: Sendable {
        let broker: Broker
        let http: CurlClient
        let secrets: AccountSecrets
        let peers: PeerUIDs
        let links: DeepLinkRegistry
        let notices: SignInNotices
        let keptFiles: FileKeeper
        let consents: ConsentDesk
    }

    private let place: ConfigurationPlace
    private let parts: Parts
    let origins: OriginRegistry
    private let logger: Logger
    private let vaultAtStart = OnceBox<VaultConfiguration>()
    /// When the reading of the configuration in force began.
    private let read: Mutex<WallInstant>
    /// Set when what was exposed before is open again.
    let exposedSockets = OnceBox<ExposedSocketRegistry>()

    init(place: ConfigurationPlace, readAt: WallInstant, _ parts: Parts, _ logger: Logger) {
        read = Mutex(readAt)
        self.place = place
        self.parts = parts
        origins = OriginRegistry(parts.broker)
        self.logger = logger
    }

    private let proxy = Mutex<HTTPProxy?>(nil)
    private let applied = Atomic<UInt64>(0)
    var configurationNumber: UInt64 { applied.load(ordering: .acquiring) }
    /// The accounts as they were configured last.
    private let configured = Mutex<[String: AccountConfiguration]>([:])
    private let lastReload = Mutex<Task<SocketAPI.Reloaded, Never>?>(nil)

    /// How the network is used: the proxy that is in force, and proxy variables that are ignored.
    var network: SocketAPI.Network {
        SocketAPI.Network(
            proxy: proxy.withLock { $0 }, ignoredVariables: Hardening.ignoredProxyVariables.withLock { $0 })
    }

    var readAt: WallInstant { read.withLock { $0 } }

    /// Reads the configuration again. Returns what of it takes effect only at the next start. Reloads wait for each other:
    /// all parts are of one configuration afterwards.
    func reload() async -> SocketAPI.Reloaded {
        let turn = lastReload.withLock { last in
            let turn = Task { [last] in
                _ = await last?.value
                return await reloadInTurn()
            }
            last = turn
            return turn
        }
        return await turn.value
    }

    private func reloadInTurn() async -> SocketAPI.Reloaded {
        ServiceManager.notify("RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds())")
        defer { ServiceManager.notify("READY=1") }
        do throws(ConfigurationErrors) {
            let now = BrokerClock.system.wallInstant
            let configuration = try DaemonConfiguration.load(place)
            let clashes = configuration.clashes(with: await exposedSockets.value?.namesOfCalls ?? [])
            guard clashes.isEmpty else { throw ConfigurationErrors(clashes) }
            await apply(configuration)
            await parts.broker.accountsSettled(atMost: .seconds(1))
            read.withLock { $0 = now }
            logger.info("Configuration reloaded")
            return SocketAPI.Reloaded(restartNeeded: ignored(of: configuration))
        } catch {
            logger.error("Configuration not reloaded: \(error)")
            return SocketAPI.Reloaded(errors: error.errors.map(\.json))
        }
    }

    /// A vault that has been opened at the start is kept, since sessions are in it.
    private func ignored(of configuration: DaemonConfiguration) -> [String] {
        guard vaultAtStart.value != configuration.vault else { return [] }
        logger.warning("The changes in [vault] take effect with the next start of the daemon")
        return ["vault"]
    }

    func apply(_ configuration: DaemonConfiguration) async {
        applied.wrappingAdd(1, ordering: .acquiringAndReleasing)
        defer { applied.wrappingAdd(1, ordering: .acquiringAndReleasing) }
        if vaultAtStart.value == nil { vaultAtStart.set(configuration.vault) }
        // First: an account that the broker knows is already guarded.
        parts.consents.configure(configuration)
        parts.peers.replace(with: configuration)
        parts.http.configure(proxy: configuration.proxy)
        proxy.withLock { $0 = configuration.proxy }
        let table = configuration.origins.compactMap { Origin($0, in: configuration) }
        origins.retain(table)
        await parts.broker.configure(
            configuration.accounts.compactMap { entry in
                var account = Account(entry, parts.secrets)
                account?.isDefault = entry.name == configuration.defaultAccount?.name
                return account
            }, unchanged: unchanged(of: configuration))
        origins.configure(table)
        // After the accounts, since their redirect URIs have schemes too.
        await parts.links.configure(configuration.schemes.map(LinkScheme.init))
        await exposedSockets.value?.configure(configuration)
        parts.notices.configure(configuration)
        parts.keptFiles.configure(configuration)
    }

    /// The accounts whose settings are what they were before.
    private func unchanged(of configuration: DaemonConfiguration) -> Set<AccountName> {
        let now = Dictionary(configuration.accounts.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let former = configured.withLock { former in
            defer { former = now }
            return former
        }
        let same = now.values.filter { former[$0.name]?.hasSameSettings(as: $0) == true }
        return Set(same.compactMap { AccountName($0.name) })
    }

    private func monotonicMicroseconds() -> Int {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int(time.tv_sec) * 1_000_000 + Int(time.tv_nsec) / 1_000
    }
}

/// The other uids whose browsers may bring an account's callback, and whether it comes as a form.
final class PeerUIDs: Sendable {
    private let accounts = Mutex<[String: (uids: Set<UInt32>, postsForm: Bool)]>([:])

    func replace(with configuration: DaemonConfiguration) {
        let entries = configuration.accounts.map { ($0.name, (Set($0.callbackPeerUIDs), $0.responseMode == .formPost)) }
        accounts.withLock { $0 = Dictionary(uniqueKeysWithValues: entries) }
    }

    func postsForm(_ account: AccountName) -> Bool { accounts.withLock { $0[account.rawValue]?.postsForm ?? false } }
    func of(_ account: AccountName) -> Set<UInt32> { accounts.withLock { $0[account.rawValue]?.uids ?? [] } }
}

/// Works until the daemon ends, then leaves.
struct Leaving: Service {
    let work: @Sendable () async -> Void
    let leave: @Sendable () async -> Void

    func run() async throws {
        await withDiscardingTaskGroup { group in
            group.addTask { await work() }
            try? await gracefulShutdown()
            await leave()
            group.cancelAll()
        }
    }
}

/// SIGHUP re-reads the configuration.
struct ReloadOnSignal: Service {
    let reloader: Reloader
    /// Trapped before the daemon can be reached.
    let signals: UnixSignalsSequence

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in signals { _ = await reloader.reload() }
        }
    }
}

/// Renews the lease on the state directory, so that no daemon starts on another host with the same home directory.
struct LeaseKeeper: Service {
    let lock: StateLock
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: StateLock.renewalInterval)) != nil {
                do throws(StateLockError) {
                    try lock.renew()
                } catch {
                    // Two daemons with the same refresh tokens would end the sessions of both.
                    logger.critical("\(error.text)")
                    kill(getpid(), SIGTERM)
                    return
                }
            }
        }
    }
}

/// Shut down last: lets running changes finish, then ends what talks to the network.
struct LastOut: Service {
    let broker: Broker
    let http: CurlClient
    let audit: AuditLog
    let logger: Logger

    /// How long the end waits for running refreshes, whose responses may hold rotated refresh tokens. The whole end
    /// takes five seconds at most.
    private static let drainTimeout: Duration = .milliseconds(3_800)

    func run() async throws {
        // Loading libcurl takes as long as the whole start. It is done after the daemon is ready and on no thread of the
        // task pool, so that the first sign-in need not wait for it.
        DispatchQueue.global().async { [logger] in
            if !CurlClient.prepare() { logger.critical("libcurl cannot be loaded: no provider can be reached") }
        }
        try? await gracefulShutdown()
        await broker.drain(atMost: LastOut.drainTimeout)
        http.shutdown()
        await audit.flush()
    }
}
