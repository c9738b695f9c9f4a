import PostgresClient
import RingbackBase
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

/// There is one version so far. The next one is made up here.
@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `A later version of the schema` {
    /// With a column more, a part that has one more field, and a function that returns something else.
    private static let step = """
        ALTER TABLE ringback.rows ADD COLUMN note text NOT NULL DEFAULT 'none';
        ALTER TYPE ringback.part ADD ATTRIBUTE note text;
        """

    private static var functions: String {
        var text = RowFunctions.text(version: 2) + HostFunctions.text
        for (former, new) in [
            ("OUT has_standby boolean", "OUT has_standby boolean, OUT notes bigint"),
            ("NULL, NULL, NULL, NULL, NULL)::ringback.part", "NULL, NULL, NULL, NULL, NULL, NULL)::ringback.part"),
            ("sealed, slot\n", "sealed, slot, note\n"), ("a.intent, NULL\n", "a.intent, NULL, NULL\n"),
            ("sealed, NULL\n", "sealed, NULL, NULL\n"),
        ] {
            text = text.split(separator: former, omittingEmptySubsequences: false).joined(separator: new)
        }
        return text
    }

    @Test func `keeps what the former one had, and refuses its hosts`() async throws {
        let house = try await VaultHouse(try await onThread { try PostgresServer() })
        let member = try await house.host("laptop", of: "ada")
        let key = Fresh.key()
        _ = try await member.rows.put([1], in: key, version: 0, lease: nil, overrides: false)
        let administrator = try house.client("postgres")
        let migration = Schema.migration(
            from: 1, to: 2, by: ["", Self.step], functions: Self.functions)
        try await administrator.run(script: migration, within: .seconds(20))

        await #expect(throws: DatabaseReason.otherSchema(2)) { try await member.rows.read([key]) }
        #expect(try await house.administration.facts() == .init(version: 2, wanted: 1, content: nil))
        let host = try house.client(member.role)
        let rows = try await host.run(
            "SELECT content, note FROM ringback.read(2, ARRAY['\\x\(key.hex)'::bytea])", within: .seconds(20))
        #expect(try rows.count == 1 && rows[0].bytes(0) == [1] && rows[0].text(1) == "none")
        #expect(try await host.run("SELECT notes FROM ringback.pulse(2)", within: .seconds(20)).count == 1)
        // The rights are those of the first version.
        await #expect(throws: DatabaseReason.refused(state: "42501")) {
            try await host.run("SELECT * FROM ringback.parts(1, '{}')", within: .seconds(20))
        }
        await #expect(throws: DatabaseReason.refused(state: "42P07")) {
            try await administrator.run(script: migration, within: .seconds(20))
        }
    }
}
