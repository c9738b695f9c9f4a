import Glibc
import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `A server that may be another's, or mean harm` {
    private let limit = Duration.seconds(30)

    private func failure(_ client: PostgresClient, _ statement: String) async -> DatabaseReason? {
        do throws(DatabaseReason) {
            _ = try await client.run(statement, within: limit)
            return nil
        } catch { return error }
    }

    @Test(arguments: [
        "SELECT repeat('x', 100000) FROM generate_series(1, 100000)",
        "SELECT repeat('x', 100000000)",
        // Rows without any content take memory, too.
        "SELECT FROM generate_series(1, 10000000)",
        "SELECT NULL FROM generate_series(1, 10000000)",
    ])
    func `a result without end ends the connection, and the next statement has another one`(
        statement: String
    ) async throws {
        let client = try await VaultHouse().client("postgres")
        #expect(await failure(client, statement) == .tooMuch)
        #expect(try await client.run("SELECT 1", within: limit).count == 1)
        client.shutdown()
    }

    @Test func `notices without end end the connection`() async throws {
        let client = try await VaultHouse().client("postgres")
        await #expect(throws: DatabaseReason.tooMuch) {
            try await client.run(
                script: "DO $$ BEGIN LOOP RAISE NOTICE '%', repeat('x', 10000); END LOOP; END $$", within: limit)
        }
        client.shutdown()
    }

    @Test func `results of ten megabytes arrive, one after the other`() async throws {
        let client = try await VaultHouse().client("postgres")
        for _ in 0..<4 {
            let rows = try await client.run(
                "SELECT repeat('x', 1000000) FROM generate_series(1, 10)", within: limit)
            #expect(rows.count == 10 && rows.rows.allSatisfy { $0[0]?.count == 1_000_000 })
        }
        client.shutdown()
    }

    @Test func `rows that are too large for one result are read in several`() async throws {
        let member = try await VaultHouse().host("laptop", of: Fresh.owner())
        let keys = (0..<20).map { _ in Fresh.key() }
        let content = [UInt8](repeating: 7, count: 1_000_000)
        for key in keys { _ = try await member.rows.put(content, in: key, version: 0, lease: nil, overrides: false) }
        let rows = try await member.rows.read(keys)
        #expect(keys.allSatisfy { rows[$0]?.sealed == content })
    }

    @Test(.enabled(if: geteuid() == 0, "needs another user"), arguments: [false, true])
    func `another user's server is refused unless the configuration names it`(overTCP: Bool) async throws {
        let port = try PostgresServer.freePort()
        let server = try await onThread { () throws in
            let server = try PostgresServer(user: "nobody")
            if overTCP { try server.crashAndRestart("-c listen_addresses=127.0.0.1", port: port) }
            return server
        }
        var url =
            overTCP
            ? try PostgresURL(parsing: "postgresql://postgres@127.0.0.1:\(port)/vault") : try server.url("postgres")
        let uid = try #require(unsafe getpwnam("nobody")?.pointee.pw_uid)
        let stranger = PostgresClient(url, password: .given { Secret("password") })
        #expect(await failure(stranger, "SELECT 1") == .foreignServer(uid: uid))
        // The connection for changes, too.
        await #expect(throws: DatabaseReason.foreignServer(uid: uid)) {
            try await VaultAdministration(url, password: .none).listens()
        }
        url.serverUID = uid
        #expect(await failure(PostgresClient(url, password: .none), "SELECT 1") == nil)
    }
}
