import BrokerCore
import CLinux
import Configuration
import Desktop
import Dispatch
import Glibc
import Logging
import RingbackBase
import ServiceLifecycle
import SessionVault
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
