// The rule: the default privileges of a Supabase project give anon and authenticated every right on a new table. These
// are revoked first. Then the few that are needed are granted, and policies limit them to the user's own row.

extension ProfileScript {
    var tablePart: String {
        """
        create table if not exists \(table) (
            id uuid primary key references auth.users (id) on delete cascade
        );

        do $$
        begin
            if not exists (
                select from pg_index i
                join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
                where i.indrelid = '\(table)'::regclass and i.indisunique and i.indimmediate and i.indpred is null
                    and i.indnkeyatts = 1 and a.attname = 'id' and a.atttypid = 'uuid'::regtype
            ) then
                raise exception 'the table \(table) is there already, and has no unique uuid column id';
            end if;
        end
        $$;

        alter table \(table)
            add column if not exists email text,
            add column if not exists phone text,
            add column if not exists full_name text,
            add column if not exists avatar_url text,
            add column if not exists is_active boolean not null default true,
            add column if not exists deactivated_at timestamptz,
            -- Who did it: the user, or null for anybody else.
            add column if not exists deactivated_by uuid,\(isFull ? deletedColumn : "")
            add column if not exists created_at timestamptz not null default now(),
            add column if not exists updated_at timestamptz not null default now();
        """
    }

    private var deletedColumn: String { "\n    add column if not exists deleted_at timestamptz," }

    var accessPart: String {
        """
        alter table \(table) enable row level security;

        do $$
        begin
            -- Rights on the whole table, as a new one has them by default. Once they are gone nothing is taken back:
            -- what was granted on single columns since then stays.
            if exists (
                select from pg_class c
                cross join aclexplode(c.relacl) a
                left join pg_roles r on r.oid = a.grantee
                where c.oid = '\(table)'::regclass
                    and (a.grantee = 0 or r.rolname = 'anon'
                        or r.rolname = 'authenticated' and a.privilege_type <> 'SELECT')
            ) then
                revoke all on \(table) from public, anon, authenticated;
            end if;

            if not exists (
                select from pg_policies
                where schemaname = 'public' and tablename = '\(name)' and policyname = 'ringback: read the own row'
            ) then
                create policy "ringback: read the own row" on \(table)
                    for select to authenticated using ((select auth.uid()) = id);
            end if;

            if not exists (
                select from pg_policies
                where schemaname = 'public' and tablename = '\(name)' and policyname = 'ringback: change the own row'
            ) then
                create policy "ringback: change the own row" on \(table)
                    for update to authenticated
                    using ((select auth.uid()) = id and is_active) with check ((select auth.uid()) = id);
            end if;
        end
        $$;

        grant select, update (full_name, avatar_url) on \(table) to authenticated;
        grant select, insert, update, delete on \(table) to service_role;
        """
    }

    var indexPart: String {
        """
        create index if not exists \(index("email")) on \(table) (lower(email));
        create index if not exists \(index("created")) on \(table) (created_at);
        create index if not exists \(index("deleted")) on \(table) (deleted_at) where deleted_at is not null;
        """
    }

    /// The name of an index, which has 63 bytes at most. If the table's name leaves no room it is cut, and a digest
    /// tells two such tables apart.
    private func index(_ purpose: String) -> String {
        let room = 63 - "ringback__\(purpose)".utf8.count
        guard name.utf8.count > room else { return "\"ringback_\(name)_\(purpose)\"" }
        let number = String(digest | 0x8000_0000, radix: 16)
        return "\"ringback_\(name.prefix(room - 9))_\(number)_\(purpose)\""
    }
}
