import PostgresClient
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `Changes of rows` {
    private let key = Fresh.key()

    private func first(
        _ iterator: inout AsyncStream<RowKey?>.Iterator, _ isWanted: (RowKey?) -> Bool
    ) async -> Bool {
        while let change = await iterator.next() { if isWanted(change) { return true } }
        return false
    }

    @Test func `another host's changes are told by name, an unknown row as everything`() async throws {
        let house = try await VaultHouse()
        let owner = Fresh.owner()
        let (mine, theirs) = (
            try await house.host("mine", of: owner).rows, try await house.host("theirs", of: owner).rows
        )
        let changes = mine.changes
        var iterator = changes.makeAsyncIterator()
        mine.start()
        // At the connection.
        #expect(await first(&iterator) { $0 == nil })
        #expect(mine.facts.listens == true)
        _ = try await theirs.put([1], in: key, version: 0, lease: nil, overrides: false)
        #expect(await first(&iterator) { $0 == nil })
        _ = try await mine.read([key])
        _ = try await theirs.take(key, version: 1, id: Fresh.lease(), intent: [], lasting: .seconds(60))
        #expect(await first(&iterator) { $0 == key })
        mine.shutdown()
        #expect(await iterator.next() == nil)
    }

    @Test func `a notification that comes with a statement's answer is told before the next wait`() async throws {
        let house = try await VaultHouse()
        let (events, continuation) = AsyncStream<PostgresListener.Event>.makeStream()
        // The question notifies of itself: the answer and the notification are read together.
        let plan = PostgresListener.Plan(
            channel: "SELECT 'self'::text", question: "SELECT pg_catalog.pg_notify('self', 'asked')", values: [])
        let listener = PostgresListener(try house.client("postgres"), plan) { continuation.yield($0) }
        defer { listener.stop() }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == .connected(listens: true))
        guard case .asked = await iterator.next() else {
            Issue.record("The question is not the second event.")
            return
        }
        #expect(await iterator.next() == .notified("asked"))
    }

    @Test func `a lost connection is told too, before it is made again`() async throws {
        let house = try await VaultHouse()
        let mine = try await house.host("mine", of: Fresh.owner())
        var iterator = mine.rows.changes.makeAsyncIterator()
        mine.rows.start()
        #expect(await first(&iterator) { $0 == nil })
        let administrator = try house.client("postgres")
        _ = try await administrator.run(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1", [.text(mine.role)],
            within: .seconds(20))
        // Once for the loss, so that the host looks whether the database is away; once for the new connection.
        #expect(await first(&iterator) { $0 == nil })
        #expect(await first(&iterator) { $0 == nil })
        mine.rows.shutdown()
    }

    @Test func `after a host was removed the others listen elsewhere`() async throws {
        let house = try await VaultHouse()
        let owner = Fresh.owner()
        let mine = try await house.host("mine", of: owner).rows
        let lost = try await house.host("lost", of: owner)
        var iterator = mine.changes.makeAsyncIterator()
        mine.start()
        #expect(await first(&iterator) { $0 == nil })
        let client = try house.client("postgres")
        let question = "SELECT channel FROM ringback.owners WHERE name = $1"
        let before = try await client.run(question, [.text(owner)], within: .seconds(20))
        #expect(try await mine.remove(host: lost.role))
        #expect(await first(&iterator) { $0 == nil })
        let after = try await client.run(question, [.text(owner)], within: .seconds(20))
        #expect(before != after)
        _ = try await mine.put([1], in: key, version: 0, lease: nil, overrides: false)
        #expect(await first(&iterator) { $0 == key || $0 == nil })
        mine.shutdown()
    }

    @Test func `while others flood the queue, changes and a new channel are noticed by asking`() async throws {
        let house = try await VaultHouse(try await onThread { try PostgresServer() })
        let owner = Fresh.owner()
        let members = [
            try await house.host("mine", of: owner), try await house.host("theirs", of: owner),
            try await house.host("lost", of: owner),
        ]
        let (mine, theirs) = (members[0].rows, members[1].rows)
        var iterator = mine.changes.makeAsyncIterator()
        mine.start()
        #expect(await first(&iterator) { $0 == nil })
        // The first answer, with which the next ones are compared.
        while mine.facts.hasSynchronousStandby == nil { await Task.yield() }
        let administrator = try house.client("postgres")
        try await administrator.run(
            script: """
                SET LOCAL allow_system_table_mods = on;
                ALTER FUNCTION pg_catalog.pg_notification_queue_usage() RENAME TO real_usage;
                CREATE FUNCTION pg_catalog.pg_notification_queue_usage() RETURNS double precision LANGUAGE sql
                    AS 'SELECT 1::double precision'
                """, within: .seconds(20))
        _ = try await theirs.put([1], in: key, version: 0, lease: nil, overrides: false)
        mine.tryAgain()
        #expect(await first(&iterator) { $0 == nil })
        #expect(try await mine.read([key])[key]?.version == 1)
        #expect(try await mine.remove(host: members[2].role))

        try await administrator.run(
            script: """
                SET LOCAL allow_system_table_mods = on;
                DROP FUNCTION pg_catalog.pg_notification_queue_usage();
                ALTER FUNCTION pg_catalog.real_usage() RENAME TO pg_notification_queue_usage
                """, within: .seconds(20))
        mine.tryAgain()
        #expect(await first(&iterator) { $0 == nil })
        _ = try await theirs.take(key, version: 1, id: Fresh.lease(), intent: [], lasting: .seconds(60))
        #expect(await first(&iterator) { $0 == key })
        mine.shutdown()
    }

    @Test func `a change that was not told is noticed although another one was told`() async {
        let changes = RowChanges()
        let stream = changes.listen()
        changes.noteConnection(listens: true)
        let pulse = RowChanges.Pulse(numbers: [[1]], untold: [0])
        changes.note(pulse)
        // Told: nothing more is to be looked at.
        changes.noteNotification("a")
        changes.note(RowChanges.Pulse(numbers: [[2]], untold: [0]))
        changes.noteNotification("a")
        changes.note(RowChanges.Pulse(numbers: [[3]], untold: [1]))
        changes.finish()
        var count = 0
        for await change in stream where change == nil { count += 1 }
        #expect(count == 4)
    }

    @Test func `commits wait as this transaction says, whatever the role's setting is`() async throws {
        let house = try await VaultHouse()
        let member = try await house.host("mine", of: Fresh.owner())
        let administrator = try house.client("postgres")
        try await administrator.run(
            script: "ALTER ROLE \(member.role) SET synchronous_commit = off", within: .seconds(20))
        let client = try house.client(member.role)
        let rows = try await client.run(
            "SELECT current_setting('synchronous_commit'), ringback.release(1, $1, $2, false), "
                + "current_setting('synchronous_commit'), current_setting('lock_timeout')",
            [.bytes(key.bytes), .bytes(Fresh.lease().bytes)], within: .seconds(20))
        #expect(try rows[0].text(0) == "off" && rows[0].text(2) == "on" && rows[0].text(3) == "3s")
        let after = try await client.run("SHOW synchronous_commit", within: .seconds(20))
        #expect(try after[0].text(0) == "off")
    }
}

/// A real pgbouncer in transaction mode: every transaction may be on another connection of the server.
@Suite(
    .enabled(
        if: PostgresServer.isPossible && ProgramPlace.pooler != nil, "needs PostgreSQL and pgbouncer: make test-rows"),
    .timeLimit(.minutes(5)))
struct `Rows through a pooler` {
    @Test func `everything works but notifications, and changes are noticed all the same`() async throws {
        let server = try await onThread { try PostgresServer() }
        let house = try await VaultHouse(server)
        let members = [try await house.host("one", of: "ada"), try await house.host("two", of: "ada")]
        let pooler = try await onThread { try Pooler(server, users: members.map(\.role) + ["postgres"]) }
        defer { pooler.end() }
        let rows = try members.map { RowDatabase(try pooler.url($0.role), password: .none) }
        var changes = rows[1].changes.makeAsyncIterator()
        rows[1].start()
        let connection = await changes.next()
        #expect(connection == .some(nil))
        #expect(rows[1].facts.listens == false)
        let administration = VaultAdministration(try pooler.url("postgres"), password: .none)
        #expect(try await !administration.listens())
        #expect(try await house.administration.listens())

        let keys = (0..<20).map { _ in Fresh.key() }
        try await withThrowingDiscardingTaskGroup { group in
            for key in keys {
                group.addTask {
                    _ = try await rows[0].put([1], in: key, version: 0, lease: nil, overrides: false)
                    let taken = try await withThrowingTaskGroup(of: LeaseID?.self) { group in
                        for host in rows {
                            group.addTask {
                                let id = Fresh.lease()
                                let taking = try await host.take(
                                    key, version: 1, id: id, intent: [], lasting: .seconds(60))
                                if case .done = taking { return id }
                                return nil
                            }
                        }
                        return try await group.reduce(into: [LeaseID]()) { if let id = $1 { $0.append(id) } }
                    }
                    #expect(taken.count == 1)
                    _ = try await rows[0].append(
                        .init(attempt: taken[0], step: 1, parentVersion: 1, epoch: 1, sealed: [2]), to: key,
                        isFinal: true)
                }
            }
        }
        #expect(try await rows[1].read(keys).values.allSatisfy { $0.version == 2 && $0.sealed == [2] })
        // By the question that is asked every few seconds.
        let change = await changes.next()
        #expect(change == .some(nil))
        for each in rows { each.shutdown() }
    }
}

struct Pooler {
    private let keeper: Keeper
    private let directory: String

    init(_ server: PostgresServer, users: [String]) throws {
        directory = server.directory
        let program = try #require(ProgramPlace.pooler)
        let lines = users.map { "\"\($0)\" \"\"" }.joined(separator: "\\n")
        let settings = """
            [databases]
            trusting = host=\(directory) port=5432 dbname=trusting
            [pgbouncer]
            pool_mode = transaction
            listen_addr =
            listen_port = 6432
            unix_socket_dir = \(directory)
            auth_type = trust
            auth_file = \(directory)/users.txt
            default_pool_size = 3
            """
        guard
            Shell.run(
                "printf '\(lines)\\n' >\(directory)/users.txt; cat >\(directory)/pooler.ini <<'END'\n\(settings)\nEND\n"
            ) == 0
        else { throw ServerTrouble(what: "pooler.ini") }
        keeper = try Keeper(
            directory,
            "\(ServerUser.prefix(owning: directory)) '\(program)' '\(directory)/pooler.ini' >>pooler.log 2>&1")
        guard
            Shell.run("for n in $(seq 200); do [ -S '\(directory)/.s.PGSQL.6432' ] && exit 0; sleep 0.05; done; exit 1")
                == 0
        else { throw ServerTrouble(what: Shell.output("cat '\(directory)/pooler.log'") ?? "") }
    }

    func url(_ role: String) throws -> PostgresURL {
        let host = directory.split(separator: "/").joined(separator: "%2F")
        return try PostgresURL(parsing: "postgresql://\(role)@%2F\(host):6432/trusting")
    }

    func end() { keeper.end() }
}
