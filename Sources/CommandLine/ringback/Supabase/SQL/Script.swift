// The rule: the script runs completely or not at all, and running it again removes nothing. Whatever it makes is either
// created once, or replaced by the same.

import Terminal

/// The SQL of a profile table: one row for each user of a Supabase project.
///
/// Its parts are in files of their own. All names in the functions are qualified, and their search path is fixed with
/// the temporary schema last: a caller cannot replace the tables, types or operators that they use.
struct ProfileScript {
    /// As it is written in the database; `isName` holds.
    let name: String
    /// With indexes, reactivation, soft deletion and the audit of identities.
    let isFull: Bool

    static let auditTable = "account_link_audit"
    /// The table if no name was given.
    static let usualTable = "profiles"

    /// A trigger's or its function's name: each table has its own, so that the script for one leaves the others' rows
    /// as they are. PostgreSQL cuts names after 63 bytes: a long one ends in a digest instead.
    func own(_ word: String) -> String {
        guard name != ProfileScript.usualTable else { return word }
        let lower = "\(word)_\(name.lowercased())"
        guard lower.utf8.count > 63 || lower != "\(word)_\(name)" else { return lower }
        return "\(lower.prefix(54))_\(String(digest, radix: 16))"
    }

    /// Of the table's name (FNV-1a).
    var digest: UInt32 { name.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } }

    /// The table, quoted: the name may be a reserved word, or have capital letters.
    var table: String { "public.\"\(name)\"" }

    /// Whether a table may be named so: `[A-Za-z_][A-Za-z0-9_]{0,62}`. PostgreSQL cuts what is longer.
    static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !isDigit(first), name.utf8.count <= 63 else { return false }
        return name.utf8.allSatisfy { byte in
            isDigit(byte) || byte == UInt8(ascii: "_")
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Ends with a line's end.
    var text: String {
        let parts = [
            head, tablePart, accessPart, isFull ? indexPart : nil, readingPart, triggerPart, rpcPart,
            isFull ? endingPart : nil, isFull ? auditPart : nil, foot,
        ]
        return parts.compactMap(\.self).joined(separator: "\n\n") + "\n"
    }

    private var functions: [String] {
        ["get_or_create_profile", "update_profile", "deactivate_account"]
            + (isFull ? ["reactivate_account", "delete_account"] : [])
    }

    private var head: String {
        """
        -- Profiles of a Supabase project: a row of \(table) for each user in auth.users.
        --
        -- Printed by: \(shown: "ringback supabase sql --table=\(name) \(isFull ? "--full" : "" as ShownCommand)")
        -- Run it in the dashboard's SQL editor, or hand it to psql -v ON_ERROR_STOP=1. It takes effect as a whole or
        -- not at all, and can be run again. PostgreSQL 14 or newer. Run for another table too, each table keeps its
        -- triggers, and the functions work on the table of the last run.
        --
        -- A signed-in user sees only their own row, and may change full_name and avatar_url. Nobody else sees or
        -- changes anything, but for service_role. If the table is there already, it must have a unique uuid column id;
        -- columns that are missing are added; rights that anon and authenticated have on it are taken away; policies
        -- that it has stay, and go on to allow what they allow. For a column of your own, afterwards:
        --     grant update (bio) on \(table) to authenticated;
        --
        -- For the account in Ringback's configuration:
        --     profile = { table = "\(name)", key = "id" }
        --     profile_rpc = "get_or_create_profile"
        --     rpc = [\(functions.map { "\"\($0)\"" }.joined(separator: ", "))]

        begin;
        -- Sign-ups wait while their table gets its triggers: give up rather than keep them waiting.
        set local lock_timeout = '10s';
        set local client_min_messages = warning;
        """
    }

    private var foot: String {
        """
        -- Users who signed up before.
        insert into \(table) (id, email, phone, full_name, avatar_url)
        select u.id, nullif(u.email, ''), ringback.phone(u.phone), ringback.display_name(u.raw_user_meta_data),
            ringback.picture(u.raw_user_meta_data)
        from auth.users u
        on conflict (id) do nothing;

        -- The project's REST endpoint learns what is new.
        notify pgrst, 'reload schema';
        commit;
        """
    }

    /// Only signed-in users may call the function.
    func granted(_ signature: String) -> String {
        """
        revoke all on function public.\(signature) from public, anon, authenticated, service_role;
        grant execute on function public.\(signature) to authenticated;
        """
    }

    /// Nobody may call the function directly: triggers run it, or functions of the same owner.
    func withheld(_ signature: String) -> String {
        "revoke all on function ringback.\(signature) from public, anon, authenticated, service_role;"
    }
}
