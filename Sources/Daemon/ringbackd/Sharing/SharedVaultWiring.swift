import APIServer
import BrokerCore
import Configuration
import Cryptography
import Glibc
import PostgresClient
import Records
import RingbackBase
import RowDatabase
import ServiceLifecycle
import SessionVault
import SharedVault
import Synchronization

/// The daemon's vault: of this host alone, or the rows that several hosts share over it.
struct DaemonVault: Sendable {
    let vault: any Vault
    /// Joins hosts; nil if the vault is this host's alone.
    let hosts: DaemonHosts?
    private let shared: (vault: SharedVault, database: RowDatabase)?

    /// `broker` gets the events; it is set before the vault is opened.
    init(
        _ local: SealedFileVault, _ configuration: VaultConfiguration, _ records: RecordKeeper,
        _ broker: OnceBox<Broker>
    ) {
        guard var url = configuration.store else {
            (vault, hosts, shared) = (local, nil, nil)
            return
        }
        url.serverUID = configuration.storeUID
        let clock = BrokerClock.system
        let now: @Sendable () -> Duration = { .milliseconds(clock.boot()) }
        let database = RowDatabase(
            url, password: configuration.passwordFile.map { .file($0) } ?? .passwordFile, now: now)
        let made = SharedVault(
            local: local, rows: database, hosts: database,
            place: DatabasePlace(shown: url.place, role: url.user, database: url.database),
            now: now, random: { RandomToken.bytes($0) },
            tell: { turn in
                records.note(.databaseTurned(turn))
                if let broker = broker.value { broker.bus.post(BrokerEvent(turn, at: broker.now)) }
            })
        records.audit.setHost { made.hostName }
        (vault, hosts, shared) = (made, DaemonHosts(sharing: Sharing(made), url: url), (made, database))
    }

    /// Whenever what a vault lacked that is shared may be there.
    var mayOpen: AsyncStream<Void> { shared?.vault.mayOpen ?? AsyncStream { $0.finish() } }

    /// Adds what follows the rows, if there are any: it ends after everything that changes sessions.
    func addService(to group: inout ServiceGroupConfiguration) {
        guard let shared else { return }
        let service = SharedRowsService(vault: shared.vault, database: shared.database)
        // After the first one, which is shut down last.
        group.services.insert(.init(service: service, serviceName: "shared rows"), at: 1)
    }

    func keepRemovals(_ broker: Broker) async {
        guard let hosts else { return }
        await RemovalKeeper(sharing: hosts.sharing, broker: broker).run()
    }

    func networkReturned() { shared?.database.tryAgain() }
}

/// Keeps the rows in view as long as sessions may change.
struct SharedRowsService: Service {
    let vault: SharedVault
    let database: RowDatabase

    func run() async throws {
        await cancelWhenGracefulShutdown {
            database.start()
            await vault.follow()
        }
        database.shutdown()
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

struct DaemonHosts: VaultHosts {
    let sharing: Sharing
    let url: PostgresURL

    func join(as name: String?, invitation: Secret?) async throws(HostFailure) -> JoinedHost {
        try await sharing.join(as: name, otherwise: DaemonHosts.machineName, invitation: invitation)
    }

    func invite(lasting: Duration) async throws(HostFailure) -> (invitation: Invitation, store: String) {
        let invitation = try await sharing.invite(lasting: lasting)
        return (invitation, url.text(for: invitation.role))
    }

    func share(with code: HostCode) async throws(HostFailure) -> String { try await sharing.share(with: code) }
    func list() async throws(HostFailure) -> [Host] { try await sharing.list() }
    func remove(host: String) async throws(HostFailure) -> String { try await sharing.remove(host: host) }
    func isStale(_ slot: VaultSlot) async -> Bool { await sharing.isStale(slot) }
    func refreshStale() { sharing.lookAtRemovals() }

    /// The machine's name as a host's: letters, digits, dots and hyphens.
    private static var machineName: String {
        var name = utsname()
        unsafe uname(&name)
        let bytes = unsafe withUnsafeBytes(of: &name.nodename) { unsafe Array($0.prefix { $0 != 0 }) }
        let letters = bytes.filter { $0.isLetterOrDigit || ".-".utf8.contains($0) }.drop { ".-".utf8.contains($0) }
        return letters.isEmpty ? "host" : String(decoding: letters.prefix(64), as: UTF8.self)
    }
}

/// Goes on with removals of hosts that were interrupted, here or on another host, and refreshes what removed hosts had
/// read, until nothing of that is left.
struct RemovalKeeper: Sendable {
    let sharing: Sharing
    let broker: Broker

    func run() async {
        let plan = RepeatedAttempts()
        await withDiscardingTaskGroup { group in
            for await _ in sharing.removalNews {
                guard let pause = plan.pause(after: await isDone()) else { continue }
                group.addTask {
                    try? await Task.sleep(for: pause)
                    plan.pauseEnded()
                    sharing.lookAtRemovals()
                }
            }
        }
    }

    /// One attempt. False if something is left to be done.
    private func isDone() async -> Bool {
        await broker.vaultSettled()
        let isResumed = (try? await sharing.resumeRemovals()) != nil
        await broker.accountsSettled(atMost: .seconds(30))
        let outcomes = await EverySession(of: broker).refresh { await sharing.isStale($0) }
        return isResumed && outcomes.allSatisfy { $0.error == nil }
    }
}

/// When the next attempt is made: the pauses grow, and there is one at a time.
private final class RepeatedAttempts: Sendable {
    private static let shortest: Duration = .seconds(30)
    private static let longest: Duration = .seconds(900)

    private let state = Mutex((next: RepeatedAttempts.shortest, isPlanned: false))

    /// The pause before the next attempt; nil if none is needed, or one is planned already.
    func pause(after isDone: Bool) -> Duration? {
        state.withLock { state in
            guard !isDone else {
                state.next = RepeatedAttempts.shortest
                return nil
            }
            guard !state.isPlanned else { return nil }
            defer { state = (min(state.next * 2, RepeatedAttempts.longest), true) }
            return state.next
        }
    }

    func pauseEnded() { state.withLock { $0.isPlanned = false } }
}
