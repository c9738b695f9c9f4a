internal import PostgresClient
public import RingbackBase
public import SharedVault

extension RowDatabase {
    public func accept(
        as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?
    ) async throws(HostFailure) {
        let first = RowDatabase(url, password: invitation.map { secret in .given { secret } } ?? configured)
        defer { first.shutdown() }
        try await first.accept(as: name, password: password, publicKey: publicKey)
    }

    /// Accepts the invitation with which this database is connected.
    func accept(as name: String, password: Secret, publicKey: [UInt8]) async throws(HostFailure) {
        try await ask { database throws(DatabaseReason) in
            let verifier = try PostgresClient.verifier(of: password)
            _ = try await database.rows(
                "ringback.accept($1, $2, $3, $4)", [.text(verifier), .text(name), .bytes(publicKey)])
        }
    }

    public func identity() async throws(HostFailure) -> HostIdentity {
        try await ask { database throws(DatabaseReason) in
            let row = try await database.row("ringback.me($1)")
            return HostIdentity(
                ownerName: try row.text(0), owner: try row.bytes(1), name: try row.text(2),
                wrappedKey: try row.isNull(3) ? nil : row.bytes(3))
        }
    }

    public func hosts() async throws(HostFailure) -> [Host] {
        try await ask { database throws(DatabaseReason) in
            let rows = try await database.rows("ringback.list_hosts($1)")
            var hosts: [Host] = []
            for index in 0..<rows.count { hosts.append(try Host(rows[index])) }
            return hosts
        }
    }

    /// The database gets only a verifier of the password.
    public func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        let password = Invitation.newPassword()
        let role = try await ask { database throws(DatabaseReason) in
            let verifier = try PostgresClient.verifier(of: password)
            return try await database.row(
                "ringback.invite($1, $2, $3)", [.text(verifier), .integer(Int64(lasting / .seconds(1)))]
            ).text(0)
        }
        await dropRemoved(nil)
        return Invitation(role: role, password: password)
    }

    public func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool {
        try await flag("ringback.give_key($1, $2, $3)", [.text(role), .bytes(wrapped)])
    }

    /// What the host had read it still has. Its role is dropped, if that is possible now.
    public func remove(host role: String) async throws(HostFailure) -> Bool {
        guard try await flag("ringback.remove_host($1, $2)", [.text(role)]) else { return false }
        await dropRemoved(role)
        await dropRemoved(nil)
        return true
    }

    /// Drops the role of a removed host; nil: one that could not be dropped before. Tried with each change of hosts.
    private func dropRemoved(_ role: String?) async {
        _ = try? await flag("ringback.drop_removed($1, $2)", [role.map { .text($0) } ?? .null])
    }

    private func flag(_ function: String, _ values: [PostgresValue]) async throws(HostFailure) -> Bool {
        try await ask { database throws(DatabaseReason) in try await database.row(function, values).flag(0) }
    }

    private func rows(_ function: String, _ values: [PostgresValue] = []) async throws(DatabaseReason) -> PostgresRows {
        try await repeated("SELECT * FROM \(function)", [.integer(Schema.version)] + values)
    }

    private func row(_ function: String, _ values: [PostgresValue] = []) async throws(DatabaseReason) -> PostgresRow {
        let rows = try await rows(function, values)
        guard rows.count == 1 else { throw .malformed }
        return rows[0]
    }

    private func ask<Value>(
        _ body: (RowDatabase) async throws(DatabaseReason) -> Value
    ) async throws(HostFailure) -> Value {
        do throws(DatabaseReason) { return try await body(self) } catch { throw HostFailure(error) }
    }
}

extension Host {
    fileprivate init(_ row: PostgresRow) throws(DatabaseReason) {
        self.init(
            role: try row.text(0), name: try row.isNull(1) ? nil : row.text(1), isSelf: try row.flag(2),
            joined: try row.isNull(3) ? nil : row.integer(3), seen: try row.isNull(4) ? nil : row.integer(4),
            hasKey: try row.flag(5), publicKey: try row.isNull(6) ? nil : row.bytes(6))
    }
}

extension HostFailure {
    init(_ failure: DatabaseReason) {
        guard case .refused(let state) = failure else {
            self = .database(failure.ofRows)
            return
        }
        switch state {
        case "RB002": self = .noHost
        case "RB003": self = .notJoined
        case "RB005": self = .invitationUsed
        case "RB006": self = .tooManyHosts
        case "23505": self = .nameTaken
        default: self = .database(failure.ofRows)
        }
    }
}
