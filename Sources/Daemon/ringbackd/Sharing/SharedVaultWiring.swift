import APIServer
import BrokerCore
import Configuration
import Cryptography
import PostgresClient
import Records
import RowDatabase
import ServiceLifecycle
import SessionVault
import SharedVault

/// The daemon's vault: of this host alone, or the rows that several hosts share over it.
struct DaemonVault: Sendable {
    let vault: any Vault
    /// Joins hosts; nil if the vault is this host's alone.
    let hosts: DaemonHosts?
    private let shared: (vault: SharedVault, database: RowDatabase)?
    /// Gets the events; set before the vault is opened.
    private let broker = OnceBox<Broker>()

    init(_ local: SealedFileVault, _ configuration: VaultConfiguration, _ records: RecordKeeper) {
        guard var url = configuration.store else {
            (vault, hosts, shared) = (local, nil, nil)
            return
        }
        url.serverUID = configuration.storeUID
        let clock = BrokerClock.system
        let now: @Sendable () -> Duration = { .milliseconds(clock.boot()) }
        let database = DatabaseHosts(
            url, password: configuration.passwordFile.map { .file($0) } ?? .passwordFile, now: now)
        let made = SharedVault(
            local: local, rows: database.rows, hosts: database,
            place: DatabasePlace(shown: url.place, role: url.user, database: url.database),
            now: now, random: { RandomToken.bytes($0) },
            tell: { [broker] turn in
                records.note(.databaseTurned(turn))
                if let broker = broker.value { broker.bus.post(BrokerEvent(turn, at: broker.now)) }
            })
        records.audit.setHost { made.hostName }
        (vault, hosts, shared) = (made, DaemonHosts(sharing: Sharing(made), url: url), (made, database.rows))
    }

    /// From now on events say when the database goes away, and when it is back.
    func connect(_ broker: Broker) { self.broker.set(broker) }

    /// Whenever what a vault lacked that is shared may be there.
    var mayOpen: AsyncStream<Void> { shared?.vault.mayOpen ?? AsyncStream { $0.finish() } }

    /// Adds what follows the rows, if there are any: it ends after everything that changes sessions.
    func addService(to group: inout ServiceGroupConfiguration) {
        guard shared != nil else { return }
        // After the first one, which is shut down last.
        group.services.insert(.init(service: SharedRowsService(vault: self), serviceName: "shared rows"), at: 1)
    }

    /// Follows what other hosts do, until the daemon ends.
    func follow() async {
        guard let shared else { return }
        shared.database.start()
        await shared.vault.follow()
    }

    /// Goes on with removals of hosts, until the daemon ends.
    func keepRemovals(_ broker: Broker) async {
        guard let hosts else { return }
        await RemovalKeeper(sharing: hosts.sharing, broker: broker).run()
    }

    /// The network may be back.
    func networkReturned() { shared?.database.tryAgain() }

    /// Ends the connections.
    func shutdown() { shared?.database.shutdown() }
}

/// Keeps the rows in view as long as sessions may change.
struct SharedRowsService: Service {
    let vault: DaemonVault

    func run() async throws {
        await cancelWhenGracefulShutdown { await vault.follow() }
        vault.shutdown()
    }
}

extension PostgresURL {
    /// Where the database is, for a status: without a password, which the URL never has.
    var place: String {
        let places = hosts.map { host in
            switch host.place {
            case .socket(let path): path
            case .address(let text): text.contains(":") ? "[\(text)]:\(host.port)" : "\(text):\(host.port)"
            case .name(let name): "\(name):\(host.port)"
            }
        }
        return "postgresql://\(user)@\(places.joined(separator: ","))/\(database)"
    }
}
