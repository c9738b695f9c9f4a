public import PostgresClient
public import RingbackBase
public import SharedVault
internal import Synchronization

/// How hosts come and go. Each function asks as the host that this database is connected for, and reaches only hosts of
/// the same owner.
extension RowDatabase {
    /// Accepts the invitation with which this database is connected: names the host and replaces the password by
    /// `password`, with which to connect from now on. The same call again changes nothing. Throws `invitationUsed`,
    /// `nameTaken` (1 to 64 bytes), and ``HostFailure`` for everything else.
    public func accept(
        as name: String, password: Secret, publicKey: [UInt8]
    ) async throws(HostFailure) {
        let verifier = try verifier(of: password)
        _ = try await ask(
            "SELECT ringback.accept($1, $2, $3, $4)", [.text(verifier), .text(name), .bytes(publicKey)])
    }

    /// What this host knows of itself. Throws `noHost` after it was removed.
    public func identity() async throws(HostFailure) -> HostIdentity {
        let rows = try await ask("SELECT * FROM ringback.me($1)", [])
        return try read { () throws(PostgresFailure) in
            guard rows.count == 1 else { throw .malformed }
            return HostIdentity(
                ownerName: try rows[0].text(0), owner: try rows[0].bytes(1), name: try rows[0].text(2),
                wrappedKey: try rows[0].isNull(3) ? nil : rows[0].bytes(3))
        }
    }

    /// All hosts of the owner, those that were invited last.
    public func hosts() async throws(HostFailure) -> [Host] {
        let rows = try await ask("SELECT * FROM ringback.list_hosts($1)", [])
        return try read { () throws(PostgresFailure) in
            var hosts: [Host] = []
            for index in 0..<rows.count { hosts.append(try Host(rows[index])) }
            return hosts
        }
    }

    /// Makes a login role for one more host, which has `lasting` (a minute to a week) to accept it. The database gets
    /// only a verifier of the password. Throws `tooManyHosts`.
    public func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        let password = Invitation.newPassword()
        let verifier = try verifier(of: password)
        let rows = try await ask(
            "SELECT ringback.invite($1, $2, $3)", [.text(verifier), .integer(Int64(lasting / .seconds(1)))])
        await dropRemoved(nil)
        return try read { () throws(PostgresFailure) in
            guard rows.count == 1 else { throw .malformed }
            return Invitation(role: try rows[0].text(0), password: password)
        }
    }

    /// Leaves the data key, encrypted for that host's public key, for a host that has joined. False if there is none.
    public func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool {
        try await flag("SELECT ringback.give_key($1, $2, $3)", [.text(role), .bytes(wrapped)])
    }

    /// Removes a host: its connections end, its role cannot log in and is dropped, if that is possible now. What it had read
    /// it still has. False if the owner has no such host.
    public func remove(host role: String) async throws(HostFailure) -> Bool {
        guard try await flag("SELECT ringback.remove_host($1, $2)", [.text(role)]) else { return false }
        await dropRemoved(role)
        await dropRemoved(nil)
        return true
    }

    /// Drops the role of a removed host; nil: one of those that could not be dropped before. It is tried again with the next
    /// host that comes or goes.
    private func dropRemoved(_ role: String?) async {
        _ = try? await flag("SELECT ringback.drop_removed($1, $2)", [role.map { .text($0) } ?? .null])
    }

    private func flag(_ statement: String, _ values: [PostgresValue]) async throws(HostFailure) -> Bool {
        let rows = try await ask(statement, values)
        return try read { () throws(PostgresFailure) in
            guard rows.count == 1 else { throw .malformed }
            return try rows[0].flag(0)
        }
    }

    private func ask(_ statement: String, _ values: [PostgresValue]) async throws(HostFailure) -> PostgresRows {
        do throws(PostgresFailure) {
            return try await repeated(statement, [.integer(Schema.version)] + values)
        } catch {
            throw HostFailure(error)
        }
    }

    private func read<Value>(_ body: () throws(PostgresFailure) -> Value) throws(HostFailure) -> Value {
        do throws(PostgresFailure) { return try body() } catch { throw HostFailure(error) }
    }

    private func verifier(of password: Secret) throws(HostFailure) -> String {
        try read { () throws(PostgresFailure) in try PostgresClient.verifier(of: password) }
    }
}

extension Host {
    fileprivate init(_ row: PostgresRow) throws(PostgresFailure) {
        self.init(
            role: try row.text(0), name: try row.isNull(1) ? nil : row.text(1), isSelf: try row.flag(2),
            joined: try row.isNull(3) ? nil : row.integer(3), seen: try row.isNull(4) ? nil : row.integer(4),
            hasKey: try row.flag(5), publicKey: try row.isNull(6) ? nil : row.bytes(6))
    }
}

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

extension HostFailure {
    init(_ failure: PostgresFailure) {
        guard case .refused(let state, _) = failure else {
            self = .database(RowError(failure))
            return
        }
        switch state {
        case "RB002": self = .noHost
        case "RB003": self = .notJoined
        case "RB005": self = .invitationUsed
        case "RB006": self = .tooManyHosts
        case "23505": self = .nameTaken
        default: self = .database(RowError(failure))
        }
    }
}
