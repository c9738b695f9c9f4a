public import PostgresClient
public import RingbackBase
public import SharedVault

/// What an administrator of the database does: make and migrate the schema, admit the first host of an owner, and look at
/// the state. The role is a superuser, or one that may create roles and a schema in the database.
public final class VaultAdministration: Sendable {
    public struct Facts: Sendable, Equatable {
        /// The version of the schema; 0 if there is none.
        public var version: Int64
        public var wanted: Int64
        /// The rest is nil while the versions differ.
        public var content: Content?

        public struct Content: Sendable, Equatable {
            public var owners: Int64
            public var hosts: Int64
            /// Bytes on disk, with indexes.
            public var size: Int64
            public var hasSynchronousStandby: Bool
            /// False if the server does not sync what it writes (`fsync`, `full_page_writes`).
            public var isDurable: Bool
            /// The server's version, such as 150004.
            public var server: Int64
        }
    }

    private static let limit: Duration = .seconds(30)
    private let client: PostgresClient

    public init(_ url: PostgresURL, password: PostgresPassword) {
        client = PostgresClient(url, password: password, mostConnections: 1)
    }

    deinit { client.shutdown() }

    /// Makes roles and schema and migrates it to the present version. Changes nothing if all that is there.
    public func prepare() async throws(DatabaseReason) {
        do throws(DatabaseReason) { try await client.run(script: Schema.foundation, within: Self.limit) } catch {
            throw error.ofRows
        }
        try await migrate()
    }

    /// Migrates the schema; hosts of another version are refused then. Throws `noSchema`, or `otherSchema` if newer.
    public func migrate() async throws(DatabaseReason) {
        let found = try await version()
        guard found <= Schema.version else { throw .otherSchema(Int(found)) }
        guard found < Schema.version else { return }
        do throws(DatabaseReason) {
            try await client.run(script: Schema.migration(from: found), within: Self.limit)
        } catch .refused(state: "42P07") {
            // Somebody else has migrated it meanwhile.
            guard try await version() == Schema.version else { throw .refused(state: "42P07") }
        } catch {
            throw error.ofRows
        }
    }

    public func facts() async throws(DatabaseReason) -> Facts {
        let exists = try await ask("SELECT to_regclass('ringback.versions') IS NOT NULL") {
            row throws(DatabaseReason) in
            try row.flag(0)
        }
        guard exists else { return Facts(version: 0, wanted: Schema.version) }
        var facts = Facts(version: try await version(), wanted: Schema.version)
        guard facts.version == facts.wanted else { return facts }
        let list = "SELECT * FROM ringback.list_facts(\(Schema.version))"
        facts.content = try await ask(list) { row throws(DatabaseReason) in
            Facts.Content(
                owners: try row.integer(0), hosts: try row.integer(1), size: try row.integer(2),
                hasSynchronousStandby: try !row.text(3).isEmpty, isDurable: try row.flag(4), server: try row.integer(5))
        }
        return facts
    }

    /// Whether notifications reach those who listen: not behind a pooler with a connection for each transaction.
    public func listens() async throws(DatabaseReason) -> Bool {
        let (events, continuation) = AsyncStream<PostgresListener.Event>.makeStream()
        let plan = PostgresListener.Plan(channel: "SELECT 'ringback'::text", question: "SELECT 1", values: [])
        let listener = PostgresListener(client, plan) { continuation.yield($0) }
        defer { listener.stop() }
        for await event in events {
            switch event {
            case .connected(let listens): return listens
            case .lost(let failure): throw failure.ofRows
            case .notified, .asked: break
            }
        }
        throw .cancelled
    }

    /// Invites the first host of an owner, or another one if the owner has hosts already. Names have 1 to 64 bytes.
    public func admit(owner: String, lasting: Duration) async throws(HostFailure) -> Invitation {
        let password = Invitation.newPassword()
        do throws(DatabaseReason) {
            let rows = try await client.run(
                "SELECT ringback.admit($1, $2, $3, $4)",
                [
                    .integer(Schema.version), .text(owner), .text(try PostgresClient.verifier(of: password)),
                    .integer(Int64(lasting / .seconds(1))),
                ], within: Self.limit)
            guard rows.count == 1 else { throw .malformed }
            return Invitation(role: try rows[0].text(0), password: password)
        } catch {
            throw HostFailure(error)
        }
    }

    private func version() async throws(DatabaseReason) -> Int64 {
        // An empty schema has no table yet.
        let (hasSchema, hasTable) = try await ask(
            "SELECT to_regnamespace('ringback') IS NOT NULL, to_regclass('ringback.versions') IS NOT NULL"
        ) { row throws(DatabaseReason) in (try row.flag(0), try row.flag(1)) }
        guard hasSchema else { throw .noSchema }
        guard hasTable else { return 0 }
        return try await ask("SELECT max(version) FROM ringback.versions") { row throws(DatabaseReason) in
            try row.integer(0)
        }
    }

    private func ask<Value>(
        _ statement: String, _ read: (PostgresRow) throws(DatabaseReason) -> Value
    ) async throws(DatabaseReason) -> Value {
        do throws(DatabaseReason) {
            let rows = try await client.run(statement, within: Self.limit)
            guard rows.count == 1 else { throw .malformed }
            return try read(rows[0])
        } catch {
            throw error.ofRows
        }
    }
}
