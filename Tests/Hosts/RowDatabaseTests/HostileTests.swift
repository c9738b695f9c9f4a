import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

/// What a host of another owner can do with any SQL it likes.
@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `Two people in one database` {
    private let limit = Duration.seconds(20)

    /// The SQLSTATE of the refusal; nil if the statement ran.
    private func state(_ client: PostgresClient, _ statement: String) async -> String? {
        do throws(DatabaseReason) {
            // Some statements need a transaction around them.
            try await client.run(script: "SELECT 1; \(statement)", within: limit)
            return nil
        } catch {
            if case .refused(let state) = error { return state }
            return "\(error)"
        }
    }

    /// A host of each of two owners. The one that tries things was there first, or came later.
    private func two(in house: VaultHouse, hostileFirst: Bool) async throws -> (ada: Member, eve: Member) {
        let first = try await house.host("laptop", of: Fresh.owner())
        let second = try await house.host("laptop", of: Fresh.owner())
        return hostileFirst ? (second, first) : (first, second)
    }

    private static let tables = [
        "versions", "owners", "hosts", "logins", "removed_roles", "rows", "attempts", "candidates",
    ]

    @Test func `no table can be read, changed or locked`() async throws {
        let house = try await VaultHouse()
        let eve = try house.client(try await house.host("evil", of: Fresh.owner()).role)
        for table in Self.tables {
            for statement in [
                "SELECT * FROM ringback.\(table)", "DELETE FROM ringback.\(table)", "TRUNCATE ringback.\(table)",
                "SELECT 1 FROM ringback.\(table) FOR UPDATE", "LOCK TABLE ringback.\(table) IN ACCESS SHARE MODE",
                "LOCK TABLE ringback.\(table) IN ACCESS EXCLUSIVE MODE", "INSERT INTO ringback.\(table) DEFAULT VALUES",
                "ALTER TABLE ringback.\(table) DISABLE ROW LEVEL SECURITY", "DROP TABLE ringback.\(table)",
                "CREATE TRIGGER t BEFORE INSERT ON ringback.\(table) EXECUTE FUNCTION suppress_redundant_updates_trigger()",
                "COPY ringback.\(table) TO STDOUT", "CREATE POLICY p ON ringback.\(table) USING (true)",
                "COMMENT ON TABLE ringback.\(table) IS 'x'", "GRANT ALL ON ringback.\(table) TO PUBLIC",
                "CREATE INDEX ON ringback.\(table) ((1))", "REINDEX TABLE ringback.\(table)",
            ] {
                #expect(await state(eve, statement) == "42501", "\(statement)")
            }
        }
    }

    @Test(arguments: [false, true])
    func `nobody becomes another role, and no setting makes an owner`(hostileFirst: Bool) async throws {
        let house = try await VaultHouse()
        let (ada, member) = try await two(in: house, hostileFirst: hostileFirst)
        let key = Fresh.key()
        _ = try await ada.rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        let eve = try house.client(member.role)
        for statement in [
            "SET ROLE ringback_owner", "SET ROLE \(ada.role)", "SET SESSION AUTHORIZATION \(ada.role)",
            "SET ROLE postgres",
            "ALTER ROLE \(ada.role) PASSWORD 'x'", "ALTER ROLE \(ada.role) SET search_path = public",
            "DROP ROLE \(ada.role)", "GRANT ringback_owner TO \(member.role)", "GRANT \(ada.role) TO \(member.role)",
            "CREATE ROLE evil", "ALTER ROLE \(member.role) CREATEROLE", "ALTER ROLE \(member.role) BYPASSRLS",
            "ALTER ROLE \(member.role) CONNECTION LIMIT -1", "DROP OWNED BY ringback_owner",
            "DROP SCHEMA ringback CASCADE",
            "CREATE FUNCTION ringback.evil() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE TABLE ringback.evil (a int)",
            "CREATE OR REPLACE FUNCTION ringback.owner() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
            "ALTER FUNCTION ringback.owner() OWNER TO \(member.role)",
            "ALTER DEFAULT PRIVILEGES FOR ROLE ringback_owner GRANT ALL ON TABLES TO PUBLIC",
            "SELECT ringback.owner()", "SELECT ringback.enter(1)", "SELECT * FROM ringback.parts(1, '{}')",
            "SELECT ringback.tell(1, 'x')", "SELECT ringback.end_role('\(ada.role)')",
            "SELECT ringback.end_connections('\(ada.role)'::regrole)", "SELECT ringback.lock_host(1, '\(ada.role)')",
            "SELECT ringback.make_role(1, '', 1)",
            "SELECT ringback.admit(1, 'x', '', 1)", "SELECT ringback.check_administrator(1)",
            "SELECT * FROM ringback.list_facts(1)",
            "SET session_replication_role = replica",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(ada.role)'",
            "SELECT pg_read_file('/etc/passwd')", "SELECT * FROM pg_authid",
        ] {
            let state = await state(eve, statement)
            #expect(
                state == "42501" || state == "2BP01" || (state == nil && statement.contains("pg_terminate")),
                "\(statement): \(state ?? "ran")")
        }
        // The group gives what the host has already, and the owner is still found by who logged in.
        for setting in ["SET ROLE ringback_hosts", "SET search_path = pg_temp", "SET row_security = off"] {
            _ = await state(eve, setting)
            do throws(DatabaseReason) {
                let rows = try await eve.run(
                    "SELECT * FROM ringback.read(1, ARRAY['\\x\(key.hex)'::bytea])", within: limit)
                #expect(rows.count == 0, "\(setting)")
            } catch {
                #expect(error == .refused(state: "42501"), "\(setting)")
            }
        }
        #expect(try await ada.rows.read([key])[key]?.sealed == [1])
        #expect(try await member.rows.read([key]).isEmpty)
    }

    @Test(arguments: [false, true])
    func `what is sent for another owner's key is a row of its own`(hostileFirst: Bool) async throws {
        let key = Fresh.key()
        let members = try await two(in: try await VaultHouse(), hostileFirst: hostileFirst)
        let (ada, eve) = (members.ada.rows, members.eve.rows)
        _ = try await ada.put([1], in: key, version: 0, lease: nil, overrides: false)
        let id = Fresh.lease()
        _ = try await ada.take(key, version: 1, id: id, intent: [], lasting: .seconds(60))
        #expect(
            try await eve.take(key, version: 1, id: Fresh.lease(), intent: [], lasting: .seconds(60)) == .refused(nil))
        try await eve.release(key, attempt: id, ends: true)
        _ = try await eve.put([6], in: key, version: 0, lease: nil, overrides: true)
        _ = try await eve.restore([6], in: key, version: 60)
        _ = try await eve.append(
            .init(attempt: id, step: 1, parentVersion: 98, epoch: 9, sealed: [6]), to: key, isFinal: true)
        let row = try await ada.read([key])[key]
        #expect(row?.version == 1 && row?.sealed == [1] && row?.lease?.id == id && row?.candidates.isEmpty == true)
    }

    @Test(arguments: [false, true])
    func `the channel of another owner is shown nowhere`(hostileFirst: Bool) async throws {
        let house = try await VaultHouse()
        let members = try await two(in: house, hostileFirst: hostileFirst)
        let ada = members.ada.rows
        var changes = ada.changes.makeAsyncIterator()
        ada.start()
        _ = await changes.next()
        let administrator = try house.client("postgres")
        let rows = try await administrator.run(
            "SELECT o.channel FROM ringback.owners o JOIN ringback.hosts h USING (owner) WHERE h.role_name = $1",
            [.text(members.ada.role)], within: limit)
        let channel = try rows[0].text(0)
        let question =
            "SELECT count(*) FROM pg_stat_activity a WHERE a::text LIKE '%' || $1 || '%' AND pid <> pg_backend_pid()"
        let eve = try house.client(members.eve.role)
        #expect(try await eve.run(question, [.text(channel)], within: limit)[0].integer(0) == 0)
        #expect(try await eve.run("SELECT pg_listening_channels()", within: limit).count == 0)
        ada.shutdown()
    }

    @Test func `what another owner puts into the schema public is not used by hosts and administrators`() async throws {
        let house = try await VaultHouse(try await onThread { try PostgresServer() })
        let (ada, member) = try await two(in: house, hostileFirst: true)
        let administrator = try house.client("postgres")
        // As it is up to version 14, and in databases that come from there.
        try await administrator.run(
            script: "GRANT CREATE ON SCHEMA public TO PUBLIC; ALTER ROLE \(ada.role) RESET search_path", within: limit)
        let eve = try house.client(member.role)
        let types = ["numeric, int4", "oid, regrole", "numeric, numeric", "text, text", "bigint, int4", "name, text"]
        for (number, type) in types.enumerated() {
            let sides = type.split(separator: ", ")
            for sign in ["*", "=", "<>", "+"] {
                try await eve.run(
                    script: """
                        CREATE OR REPLACE FUNCTION public.f\(number)(\(type)) RETURNS numeric LANGUAGE plpgsql
                            AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'EV001'; END $$;
                        CREATE OPERATOR public.\(sign) (
                            LEFTARG = \(sides[0]), RIGHTARG = \(sides[1]), FUNCTION = public.f\(number))
                        """, within: limit)
            }
        }
        let tried = try house.client(ada.role)
        #expect(await state(tried, "SELECT 2::numeric * 3") == "EV001")

        // A host that was not removed is not dropped.
        let dropped = try await eve.run("SELECT ringback.drop_removed(1, $1)", [.text(ada.role)], within: limit)
        #expect(try !dropped[0].flag(0))
        let key = Fresh.key()
        let rows = try house.connect(ada.role, ada.password)
        _ = try await rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        let id = Fresh.lease()
        _ = try await rows.take(key, version: 1, id: id, intent: [], lasting: .seconds(60))
        try await rows.release(key, attempt: id, ends: true)
        #expect(try await rows.read([key])[key]?.sealed == [1])
        #expect(try await rows.hosts().count == 1)
        var changes = rows.changes.makeAsyncIterator()
        rows.start()
        #expect(await changes.next() == .some(nil))
        #expect(rows.facts.listens == true)
        rows.shutdown()
        let administration = try house.administration
        try await administration.prepare()
        #expect(try await administration.facts().content?.owners == 2)
        _ = try await administration.admit(owner: Fresh.owner(), lasting: .seconds(600))
    }

    @Test func `objects of one's own do not get into the functions`() async throws {
        let house = try await VaultHouse()
        let member = try await house.host("evil", of: Fresh.owner())
        let eve = try house.client(member.role)
        let key = Fresh.key()
        _ = try await member.rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        try await eve.run(
            script: """
                CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT now() / 0';
                CREATE FUNCTION pg_temp.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT 1 / 0';
                CREATE TEMP TABLE pg_roles (oid oid, rolname name);
                CREATE TEMP TABLE rows (owner bigint);
                SET search_path = pg_temp, pg_catalog
                """.replacingDivision, within: limit)
        #expect(
            try await eve.run("SELECT * FROM ringback.read(1, ARRAY['\\x\(key.hex)'::bytea])", within: limit).count == 1
        )
    }

    @Test(arguments: [false, true])
    func `locks of any kind, an open transaction and a flood of notifications stop nobody else`(
        hostileFirst: Bool
    ) async throws {
        let house = try await VaultHouse()
        let (laptop, member) = try await two(in: house, hostileFirst: hostileFirst)
        let ada = laptop.rows
        let eve = try house.client(member.role)
        let key = Fresh.key()
        _ = try await member.rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        // A transaction that stays open, with the locks of a change and as many advisory ones as there is room for.
        try await eve.run(
            script: "BEGIN; SELECT * FROM ringback.put(1, '\\x\(key.hex)', 1, '\\x02', NULL, true); "
                + "SELECT pg_advisory_xact_lock(n) FROM generate_series(1, 2000) n; "
                + "SELECT pg_notify('a', n::text) FROM generate_series(1, 20000) n", within: limit)
        let own = Fresh.key()
        _ = try await ada.put([1], in: own, version: 0, lease: nil, overrides: false)
        let id = Fresh.lease()
        _ = try await ada.take(own, version: 1, id: id, intent: [], lasting: .seconds(60))
        let row = try await ada.append(
            .init(attempt: id, step: 1, parentVersion: 1, epoch: 1, sealed: [2]), to: own, isFinal: true)
        #expect(row.version == 2)
        let inviting = try house.client(try await house.host("evil", of: Fresh.owner()).role)
        let verifier = try PostgresClient.verifier(of: Secret("password"))
        try await inviting.run(script: "BEGIN; SELECT ringback.invite(1, '\(verifier)', 600)", within: limit)
        let invited = try await ada.invite(lasting: .seconds(600))
        #expect(try await ada.remove(host: invited.role))
        _ = try await house.administration.admit(owner: Fresh.owner(), lasting: .seconds(600))
        inviting.shutdown()
        // And one that holds locks on roles of removed hosts, so that they cannot be dropped.
        let owner = Fresh.owner()
        let mine = try await house.host("evil", of: owner)
        var removed: [String] = []
        for _ in 0..<8 { removed.append(try await mine.rows.invite(lasting: .seconds(600)).role) }
        let locking = try house.client(mine.role)
        try await locking.run(
            script: "BEGIN; CREATE TEMP TABLE t (); GRANT SELECT ON t TO \(removed.joined(separator: ", "))",
            within: limit)
        for role in removed { #expect(try await mine.rows.remove(host: role)) }
        let another = try await ada.invite(lasting: .seconds(600))
        #expect(try await ada.remove(host: another.role))
        locking.shutdown()
        // The own row is locked: the wait for it has an end.
        let other = try house.connect(member.role, member.password)
        await #expect(throws: DatabaseReason.timedOut) {
            try await other.put([3], in: key, version: 1, lease: nil, overrides: true)
        }
        eve.shutdown()
    }
}

extension String {
    /// The functions of the test need only exist.
    fileprivate var replacingDivision: String { split(separator: "now() / 0").joined(separator: "NULL::timestamptz") }
}
