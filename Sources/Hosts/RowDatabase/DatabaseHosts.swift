public import PostgresClient
public import Secrets
public import SharedVault
internal import Synchronization

/// The database as one host of an owner uses it: its rows and its hosts. The password of its role is the one that it was
/// given when it joined, else what the configuration says.
public final class DatabaseHosts: SharedHosts {
    public let rows: RowDatabase
    private let url: PostgresURL
    private let configured: PostgresPassword
    private let password: Password

    /// The password that is used before the configured one. A class of its own, since the connections are asked for it.
    private final class Password: Sendable {
        let value = Mutex<Secret?>(nil)
    }

    /// Connects when it is first asked.
    ///
    /// - Parameter now: the time since boot.
    public init(
        _ url: PostgresURL, password configured: PostgresPassword, now: (@Sendable () -> Duration)? = nil
    ) {
        let password = Password()
        self.url = url
        self.configured = configured
        self.password = password
        rows = RowDatabase(url, password: .first({ password.value.withLock { $0 } }, else: configured), now: now)
    }

    public func use(_ password: Secret?) {
        self.password.value.withLock { $0 = password }
        // What failed with another password is tried again at once.
        rows.tryAgain()
    }

    public func accept(
        as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?
    ) async throws(HostFailure) {
        let first = RowDatabase(url, password: invitation.map { secret in .given { secret } } ?? configured)
        defer { first.shutdown() }
        try await first.accept(as: name, password: password, publicKey: publicKey)
    }

    public func identity() async throws(HostFailure) -> HostIdentity { try await rows.identity() }

    public func hosts() async throws(HostFailure) -> [Host] { try await rows.hosts() }

    public func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        try await rows.invite(lasting: lasting)
    }

    public func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool {
        try await rows.give(key: wrapped, to: role)
    }

    public func remove(host role: String) async throws(HostFailure) -> Bool { try await rows.remove(host: role) }
}
