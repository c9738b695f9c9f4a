// The files of share/supabase. What they promise is held in a real PostgreSQL by `make test-postgres`.

import Testing

@Suite struct `The SQL of a profile table` {
    private static let files = ["share/supabase/profiles.sql", "share/supabase/profiles-full.sql"]

    @Test(arguments: files) func `a profile script is one transaction and names its table by the placeholder only`(
        path: String
    ) throws {
        let text = try Document(path: path).text
        let script = try #require(text.split(separator: "$script$").dropFirst().first)
        let statements = script.split(separator: "\n").filter { !$0.hasPrefix("--") }
        #expect(statements.first == "begin;" && statements.last == "commit;")
        #expect(!script.contains("profiles"))
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            #expect(line.count <= 120 && line.last != " " && !line.contains("\t"), "\(line)")
        }
    }

    @Test func `no function of a profile table has an open search path, or is open to everybody`() throws {
        let lines = try Self.files.flatMap { try Document(path: $0).text.split(separator: "\n") }
        let heads = lines.filter { $0.hasPrefix("language ") }
        #expect(heads.count == 12 && heads.allSatisfy { $0.contains(" set search_path = pg_catalog, pg_temp as ") })
        let made = lines.filter { $0.hasPrefix("create ") && $0.contains(" function ") }
        let closed = lines.filter {
            $0.hasPrefix("revoke all on function ") && $0.hasSuffix(" from public, anon, authenticated, service_role;")
        }
        #expect(made.count == 12 && closed.count == 12)
        #expect(lines.filter { $0.hasPrefix("grant execute on function ") }.count == 5)
    }

    /// As much of a Supabase project as the scripts need.
    private static let project = """
        create role anon; create role authenticated; create role service_role;
        create schema auth;
        create table auth.users (id uuid primary key, email text, phone text, raw_user_meta_data jsonb);
        create table auth.identities (user_id uuid, provider text);
        create function auth.uid() returns uuid language sql as 'select null::uuid';
        """

    @Test(.enabled(if: HouseDatabase.isPossible, "needs PostgreSQL: Scripts/needs rows"), .timeLimit(.minutes(2)))
    func `the psql lines of docs/supabase.md make the table, also twice, and refuse a wrong name`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let database = try await HouseDatabase(stage)
            func psql(_ text: String) async throws -> Output {
                try await stage.run("/usr/bin/psql", ["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text, database.url])
            }
            try await psql(Self.project).expect(0)
            let page = try Document(path: "docs/supabase.md")
            let lines = page.lines.map(String.init).filter { $0.hasPrefix("psql ") }
            #expect(lines.count == 2)
            func run(_ line: String) async throws -> Output {
                let here = line.replacing("/usr/share/ringback", with: "\(Document.root)/share")
                return try await stage.run("/bin/sh", ["-c", here], environment: ["DATABASE_URL": database.url])
            }
            for line in lines + lines {
                let done = try await run(String(line)).expect(0, out: "")
                #expect(done.err.isEmpty, "\(line): \(done)")
            }
            let tables = try await psql("select tablename from pg_tables where schemaname = 'public' order by 1")
            #expect(tables.lines == ["account_link_audit", "profiles", "users"])
            for name in ["9lives", "a-b", "account_link_audit"] {
                try await run(lines[1].replacing("table=users", with: "table=\(name)")).expect(
                    3, says: "The name of the table")
            }
        }
    }
}
