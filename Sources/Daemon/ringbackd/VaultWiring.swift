import APIServer
import BrokerCore
import CLinux
import Configuration
import Cryptography
import Desktop
import Dispatch
import Glibc
import Logging
import PostgresClient
import Records
import RingbackBase
import RowDatabase
import ServiceLifecycle
import SessionVault
import SharedVault
import Synchronization

extension SealedFileVault {
    init(_ configuration: VaultConfiguration, state: String, helper: HelperConnection) {
        var sources: [any KeySource] = [
            SystemdCredentialSource(directory: environment("CREDENTIALS_DIRECTORY")), PassphraseSource(),
            SecretServiceSource(helper),
        ]
        if let directory = configuration.keyDirectory ?? SealedFileVault.usualKeyDirectory {
            sources.append(KeyFileSource(directory: directory, outside: state))
        }
        self.init(directory: state, sources: sources, choice: configuration.keySource)
    }

    /// `$XDG_DATA_HOME/ringback/keys`: not in the state directory, since that is copied and synchronized.
    private static var usualKeyDirectory: String? {
        let base = environment("XDG_DATA_HOME") ?? environment("HOME").map { "\($0)/.local/share" }
        return base.flatMap { $0.hasPrefix("/") ? "\($0)/ringback/keys" : nil }
    }
}

extension SecretServiceSource {
    /// The keyring, through the helper, which alone talks to the session bus.
    fileprivate init(_ helper: HelperConnection) {
        self.init(
            available: {
                // Without a bus there is no keyring, and the helper need not be asked.
                guard environment("DBUS_SESSION_BUS_ADDRESS") != nil || environment("XDG_RUNTIME_DIR") != nil else {
                    return false
                }
                // A locked keyring is waited for: a user who has a keyring must not get a weaker key source without
                // asking for it.
                return (try? await helper.isKeyringLocked()) != nil
            },
            create: { id, key throws(KeySourceError) in
                do throws(HelperError) {
                    try await helper.createKey(id: id, key: key, mayPrompt: KeyRequest.isInteractive)
                } catch {
                    throw KeySourceError(error)
                }
            },
            read: { id throws(KeySourceError) in
                do throws(HelperError) {
                    return try await helper.readKey(id: id, mayPrompt: KeyRequest.isInteractive)
                } catch {
                    throw KeySourceError(error)
                }
            }, delete: { id in (try? await helper.deleteKey(id: id)) != nil })
    }
}

extension KeySourceError {
    fileprivate init(_ error: HelperError) {
        guard case .secretService(let error) = error else {
            self = .failed(.keyringNotAsked(cause: "\(error)"))
            return
        }
        switch error {
        case .unavailable(let reason): self = .absent(.noKeyring(cause: reason))
        case .notFound: self = .absent(.notInKeyring)
        case .locked, .dismissed: self = .locked(.keyringLocked)
        case .failed(let reason): self = .failed(.keyringFailed(cause: reason))
        }
    }
}

/// Signals that the broker did something. Many changes before the signal is taken are one signal.
struct Activity: Sendable {
    let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        // One signal at the start, so that memory used for starting is given back too.
        note()
    }

    func note() { continuation.yield() }
}

/// Refreshes sessions as long as the daemon runs, and reacts to the network's return, the keyring and the screen.
struct Freshness: Service {
    let broker: Broker
    let vault: DaemonVault
    let helper: HelperConnection
    let configuration: VaultConfiguration
    let activity: Activity
    let logger: Logger

    func run() async throws {
        let news = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let watch = NetworkWatch { news.continuation.yield() }
        defer { withExtendedLifetime(watch) { news.continuation.finish() } }
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await broker.keepFresh() }
                group.addTask { for await _ in news.stream { await networkReturned() } }
                group.addTask { for await _ in vault.mayOpen { await broker.keySourceChanged() } }
                group.addTask { await vault.keepRemovals(broker) }
                group.addTask { await watchKeyring() }
                group.addTask { await giveMemoryBack() }
                if configuration.locksWithScreen { group.addTask { await watchScreen() } }
            }
        }
    }

    private func networkReturned() async {
        vault.networkReturned()
        await broker.networkReturned()
    }

    /// Many small changes fragment the memory. Only this returns the free parts to the system; half a minute after a
    /// change, so that this causes no wake-ups while nothing happens.
    private func giveMemoryBack() async {
        for await _ in activity.stream {
            guard (try? await Task.sleep(for: .seconds(30))) != nil else { return }
            clinux_give_memory_back()
        }
    }

    /// Only for a vault whose key is in the keyring, or shall be: otherwise the helper need not connect to the bus.
    private func watchKeyring() async {
        await broker.vaultSettled()
        guard [configuration.keySource, broker.vault.status.keySource].contains(.secretService) else { return }
        for await _ in helper.events(.secretServiceChanged) { await broker.keySourceChanged() }
    }
}

/// Reports that the network may be available again: an address or a route was added (rtnetlink(7)). This is only a
/// hint; the receiver retries and sees whether it works.
final class NetworkWatch: Sendable {
    private let source: Mutex<(any DispatchSourceRead)?>

    /// Calls `onReturn` for each burst of such messages, on a queue of its own. Nil if the kernel does not give us the
    /// socket (a sandbox may forbid it); sessions are then refreshed when their back-off ends.
    init?(onReturn: @escaping @Sendable () -> Void) {
        let descriptor = clinux_open_network_news()
        guard descriptor >= 0 else { return nil }
        let source = DispatchSource.makeReadSource(
            fileDescriptor: descriptor, queue: DispatchQueue(label: "ringback.network"))
        source.setEventHandler { if clinux_read_network_news(descriptor) > 0 { onReturn() } }
        source.setCancelHandler { close(descriptor) }
        source.activate()
        self.source = Mutex(source)
    }

    deinit { source.withLock { $0?.cancel() } }
}

/// Secrets that were given to the daemon at its start, by name: through descriptors (`--credential-fd NAME=N`), or as
/// files in `$CREDENTIALS_DIRECTORY`, which systemd and containers set. The configuration has only their names. A
/// secret that came through a descriptor is kept in memory, since it cannot be read twice.
struct Credentials: Sendable {
    private let handed: [String: Secret]
    private let directory: String?

    /// Reads every descriptor to its end and closes it, so that no program that the daemon starts can read it. To be
    /// called before anything else opens descriptors: one of the numbers could then belong to the daemon.
    init(_ descriptors: [(name: String, descriptor: Int32)], directory: String?) throws(PlaceError) {
        self.directory = directory
        var handed: [String: Secret] = [:]
        for (name, descriptor) in descriptors { handed[name] = try Credentials.read(name, from: descriptor) }
        self.handed = handed
    }

    /// Throws if there is none, or if its file is not to be trusted.
    func secret(named name: String) throws(PlaceError) -> Secret {
        if let secret = handed[name] { return secret }
        guard let directory else {
            throw PlaceError(reason: "the credential \(name) was not given to the daemon when it was started")
        }
        do throws(ConfigurationError) {
            return try CredentialFile.read(name, in: directory, user: geteuid())
        } catch {
            throw PlaceError(reason: "\(error.message) (a unit is given it by LoadCredential=\(name):PATH)")
        }
    }

    /// Standard input is replaced, not closed: the next descriptor would get its number.
    private static func release(_ descriptor: Int32) {
        let nothing = descriptor == STDIN_FILENO ? unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) : -1
        if nothing > 0 {
            dup2(nothing, descriptor)
            close(nothing)
        } else {
            close(descriptor)
        }
    }

    private static func read(_ name: String, from descriptor: Int32) throws(PlaceError) -> Secret {
        do throws(CredentialDescriptor.Failure) {
            let secret = try CredentialDescriptor.read(descriptor)
            release(descriptor)
            return secret
        } catch {
            let reason =
                switch error {
                case .notOpen: "that descriptor is not open"
                case .notClosed: "the descriptor's other end does not close"
                case .unreadable: "the descriptor cannot be read"
                case .tooLong: "more than \(CredentialDescriptor.maxSize) bytes"
                }
            throw PlaceError(reason: "--credential-fd \(name)=\(descriptor): \(reason)")
        }
    }
}

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
