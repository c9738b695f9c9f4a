import Glibc
import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `A database that fails` {
    private let key = Fresh.key()

    private func own(_ options: String = "") async throws -> VaultHouse {
        try await VaultHouse(try await onThread { try PostgresServer(options) })
    }

    private func eventually<Value>(_ rows: RowDatabase, _ body: () async throws -> Value) async throws -> Value {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            do { return try await body() } catch {
                guard ContinuousClock.now < end else { throw error }
                rows.tryAgain()
                await Task.yield()
            }
        }
    }

    @Test func `nothing that was committed is lost with a crash, and the next call connects again`() async throws {
        let house = try await own()
        let rows = try await house.host("laptop", of: "ada").rows
        rows.start()
        var changes = rows.changes.makeAsyncIterator()
        _ = try await rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        let id = Fresh.lease()
        _ = try await rows.take(key, version: 1, id: id, intent: [], lasting: .seconds(60))
        let crash = ContinuousClock.now
        try await onThread { try house.server.crashAndRestart() }
        let row = try await eventually(rows) {
            try await rows.append(
                .init(attempt: id, step: 1, parentVersion: 1, epoch: 1, sealed: [2]), to: key, isFinal: true)
        }
        #expect(row.version == 2 && row.lease == nil)
        // The connection for changes is made again too, and everything is to be looked at again.
        var isBack = false
        while !isBack, let change = await changes.next() {
            if change == nil, let since = rows.notices.connectedAt { isBack = since > crash }
        }
        #expect(isBack)
        rows.shutdown()
    }

    @Test func `a frozen server holds up no caller beyond its limit, and few at all`() async throws {
        let house = try await own()
        let rows = try await house.host("laptop", of: "ada").rows
        _ = try await rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        house.server.signal(SIGSTOP)
        defer { house.server.signal(SIGCONT) }
        let start = ContinuousClock.now
        let failures = await withTaskGroup(of: DatabaseReason?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    do throws(DatabaseReason) {
                        _ = try await rows.take(
                            self.key, version: 1, id: Fresh.lease(), intent: [], lasting: .seconds(60))
                        return nil
                    } catch { return error }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(failures.allSatisfy { $0 == .timedOut })
        #expect(start.duration(to: .now) < RowDatabase.limit + .seconds(20))
        // The next one is not held up at all.
        await #expect(throws: DatabaseReason.timedOut) {
            try await rows.take(key, version: 1, id: Fresh.lease(), intent: [], lasting: .seconds(60))
        }
        #expect(rows.client.failure == .timedOut)
        house.server.signal(SIGCONT)
        let row = try await eventually(rows) { try await rows.read([key])[key] }
        #expect(row?.version == 1)
    }

    @Test func `a server that is gone, and one that never was`() async throws {
        let house = try await own()
        let rows = try await house.host("laptop", of: "ada").rows
        _ = try await rows.read([key])
        await onThread { house.server.crash() }
        await #expect(throws: DatabaseReason.noConnection) { try await rows.read([key]) }
        // Of several places the one that answers is taken.
        let other = try await own()
        let member = try await other.host("desktop", of: "ada")
        let places = [house.server, other.server].map { server in
            "%2F" + server.directory.split(separator: "/").joined(separator: "%2F")
        }
        let either = RowDatabase(
            try PostgresURL(
                parsing: "postgresql://\(member.role)@127.0.0.1:1,\(places.joined(separator: ","))/trusting"),
            password: .none)
        #expect(try await either.read([key]).isEmpty)
        let nowhere = RowDatabase(
            try PostgresURL(parsing: "postgresql://a@127.0.0.1:1/b?sslmode=disable"), password: .none)
        await #expect(throws: DatabaseReason.noConnection) { try await nowhere.read([key]) }
    }

    @Test func `a server that takes no changes is refused, for reading too`() async throws {
        let house = try await own()
        let rows = try await house.host("laptop", of: "ada").rows
        try await onThread { try house.server.crashAndRestart("-c default_transaction_read_only=on") }
        let end = ContinuousClock.now + .seconds(60)
        var error: DatabaseReason?
        while error != .readOnly, ContinuousClock.now < end {
            rows.tryAgain()
            do throws(DatabaseReason) { _ = try await rows.read([key]) } catch let failure { error = failure }
        }
        #expect(error == .readOnly)
        rows.tryAgain()
        await #expect(throws: DatabaseReason.readOnly) {
            try await rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        }
    }

    @Test func `a schema that is missing or of another version is refused, and by a migration kept`() async throws {
        let house = try await own()
        let rows = try await house.host("laptop", of: "ada").rows
        let administrator = try house.client("postgres")
        try await administrator.run(
            script: "SET LOCAL ROLE ringback_owner; UPDATE ringback.versions SET version = 7;"
                + RowFunctions.text(version: 7), within: .seconds(20))
        await #expect(throws: DatabaseReason.otherSchema(7)) { try await rows.read([key]) }
        await #expect(throws: DatabaseReason.otherSchema(7)) { try await house.administration.migrate() }
        #expect(try await house.administration.facts() == .init(version: 7, wanted: Schema.version, content: nil))
        let empty = try await VaultHouse(house.server, "vault")
        _ = empty
        try await administrator.run(script: "DROP SCHEMA ringback CASCADE", within: .seconds(20))
        await #expect(throws: DatabaseReason.noSchema) { try await rows.read([key]) }
        await #expect(throws: DatabaseReason.noSchema) { try await house.administration.migrate() }
        try await house.administration.prepare()
        // The role is of the schema that is gone.
        await #expect(throws: DatabaseReason.notPermitted) { try await rows.read([key]) }
    }

    @Test func `the schema is prepared once, by whoever comes first`() async throws {
        let house = try await own()
        let other = try VaultAdministration(house.server.url("postgres", "vault"), password: .none)
        #expect(try await other.facts().version == 0)
        await #expect(throws: DatabaseReason.noSchema) { try await other.migrate() }
        try await withThrowingDiscardingTaskGroup { group in
            for _ in 0..<3 { group.addTask { try? await other.prepare() } }
        }
        try await other.prepare()
        let facts = try await other.facts()
        #expect(facts.version == facts.wanted)
        #expect(facts.content?.owners == 0 && facts.content?.hosts == 0 && facts.content?.isDurable == false)
        #expect(facts.content?.hasSynchronousStandby == false && (facts.content?.size ?? 0) > 0)
        #expect((facts.content?.server ?? 0) >= 140_000)
    }
}
