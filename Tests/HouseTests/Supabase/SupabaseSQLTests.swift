// `ringback supabase sql`: what it prints. What PostgreSQL makes of it is tried by `make test-postgres`.

import StrictJSON
import Testing

@Suite struct `The SQL of a profile table` {
    @Test func `is the same every time, needs no daemon, and is all or nothing`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for arguments in [[], ["--full"], ["--table", "users"]] {
                let first = try await stage.run("ringback", ["supabase", "sql"] + arguments)
                let second = try await stage.run("ringback", ["supabase", "sql"] + arguments)
                #expect(first.status == 0 && first.err.isEmpty, "\(first.err)")
                #expect(first.out == second.out)
                let statements = first.lines.filter { !$0.hasPrefix("--") }
                #expect(statements.first == "begin;" && statements.last == "commit;")
                for line in first.out.split(separator: "\n", omittingEmptySubsequences: false) {
                    #expect(line.count <= 120 && line.last != " " && !line.contains("\t"), "\(line)")
                }
            }
        }
    }

    @Test func `names the table, in quotes, and nothing but it`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let profiles = try await stage.ringback("supabase", "sql", "--full").out
            #expect(profiles.contains("create table if not exists public.\"profiles\" ("))
            #expect(profiles.contains("profile = { table = \"profiles\", key = \"id\" }"))
            for name in ["users", "user", "_", "Select_9", String(repeating: "x", count: 63)] {
                let other = try await stage.ringback("supabase", "sql", "--full", "--table", name).out
                #expect(other.contains("create table if not exists public.\"\(name)\" ("))
                #expect(!other.contains("profiles\""))
                // Whatever PostgreSQL is given as a name is short enough to be taken whole.
                for quoted in other.split(separator: "\"").enumerated() where quoted.offset % 2 == 1 {
                    #expect(quoted.element.utf8.count <= 63)
                }
            }
        }
    }

    @Test func `leaves no function with an open search path, or open to everybody`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let lines = try await stage.ringback("supabase", "sql", "--full").lines
            let heads = lines.filter { $0.hasPrefix("language ") }
            #expect(heads.count == 12 && heads.allSatisfy { $0.contains(" set search_path = pg_catalog, pg_temp as ") })
            let made = lines.filter { $0.hasPrefix("create ") && $0.contains(" function ") }
            let closed = lines.filter {
                $0.hasPrefix("revoke all on function ")
                    && $0.hasSuffix(" from public, anon, authenticated, service_role;")
            }
            #expect(made.count == 12 && closed.count == 12)
            #expect(lines.filter { $0.hasPrefix("grant execute on function ") }.count == 5)
        }
    }

    @Test func `says more with --full, and the same as JSON`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let lean = try await stage.ringback("supabase", "sql").out
            let full = try await stage.ringback("supabase", "sql", "--full").out
            for word in ["reactivate_account", "delete_account", "deleted_at", "account_link_audit", "create index"] {
                #expect(full.contains(word) && !lean.contains(word), "\(word)")
            }
            for word in ["get_or_create_profile", "update_profile", "deactivate_account"] {
                #expect(lean.contains("create function public.\(word)("))
            }
            let document = try JSON(
                parsing: await stage.ringback("supabase", "sql", "--table", "users", "--json").out.utf8)
            #expect(document["table"]?.string == "users" && document["full"]?.bool == false)
            let users = try await stage.ringback("supabase", "sql", "--table", "users").out
            #expect(document["sql"]?.string == users)
        }
    }

    @Test func `refuses what is no name of a table`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let names = [
                "", "9lives", "a-b", "a b", "a\"b", "a'b", "a;b", "\u{E4}", "public.users", "a\n",
                String(repeating: "x", count: 64),
            ]
            for name in names {
                let answer = try await stage.ringback("supabase", "sql", "--table=\(name)")
                #expect(answer.status == 64 && answer.out.isEmpty && answer.err.contains("Usage"), "\(name): \(answer)")
            }
            let audit = try await stage.ringback("supabase", "sql", "--full", "--table", "account_link_audit")
            #expect(audit.status == 64 && audit.err.contains("choose another name"), "\(audit)")
        }
    }
}
