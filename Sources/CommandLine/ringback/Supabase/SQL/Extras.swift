// The rule: a user can reactivate a profile only if the user deactivated it. Deleting an account clears the user's data
// at once, and keeps the row with the time of the deletion.

extension ProfileScript {
    var endingPart: String { [reactivate, delete].joined(separator: "\n\n") }

    private var reactivate: String {
        function(
            """
            -- Undoes deactivate_account, and nobody else's deactivation. What has changed meanwhile is taken over.
            """, "reactivate_account",
            """
            update \(table) p set is_active = true, email = nullif(u.email, ''), phone = ringback.phone(u.phone)
            from auth.users u
            where p.id = person and u.id = person
                and not p.is_active and p.deactivated_by = person and p.deleted_at is null;
            \(ownRow)
            if not found then
                raise exception 'there is no profile' using errcode = 'PT404';
            elsif not own.is_active then
                raise exception 'this account cannot be reactivated by its owner' using errcode = 'PT403';
            end if;
            """)
    }

    private var delete: String {
        function(
            """
            -- Clears the user's data and keeps the row, since other rows may refer to it. To remove the users later:
            --     delete from auth.users where id in
            --         (select id from \(table) where deleted_at < now() - interval '30 days');
            """, "delete_account",
            """
            update \(table) p set is_active = false, deleted_at = now(), email = null, phone = null,
                full_name = null, avatar_url = null
            where p.id = person and p.deleted_at is null;
            \(ownRow)
            \(orRaise("there is no profile", "PT404"))
            """)
    }

    var auditPart: String {
        let audit = "public.\(ProfileScript.auditTable)"
        return """
            -- Every identity that was linked to a user or unlinked, also those that the server links by e-mail. The
            -- lines stay when the user is deleted: they have no name in them.
            create table if not exists \(audit) (
                id uuid primary key default gen_random_uuid(),
                user_id uuid not null,
                provider text not null,
                event text not null check (event in ('linked', 'unlinked')),
                happened_at timestamptz not null default now()
            );
            create index if not exists account_link_audit_user on \(audit) (user_id, happened_at);

            alter table \(audit) enable row level security;
            revoke all on \(audit) from public, anon, authenticated, service_role;
            grant select on \(audit) to authenticated, service_role;

            do $$
            begin
                if not exists (
                    select from pg_policies
                    where schemaname = 'public' and tablename = '\(ProfileScript.auditTable)'
                        and policyname = 'ringback: read the own lines'
                ) then
                    create policy "ringback: read the own lines" on \(audit)
                        for select to authenticated using ((select auth.uid()) = user_id);
                end if;
            end
            $$;

            create or replace function ringback.record_link() returns trigger
            language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
            begin
                if tg_op = 'INSERT' then
                    insert into \(audit) (user_id, provider, event) values (new.user_id, new.provider, 'linked');
                elsif exists (select from auth.users u where u.id = old.user_id) then
                    -- Otherwise the identity was deleted with the user.
                    insert into \(audit) (user_id, provider, event) values (old.user_id, old.provider, 'unlinked');
                end if;
                return null;
            exception when others then
                raise warning 'no line in the audit: % (%)', sqlerrm, sqlstate;
                return null;
            end
            $$;
            \(withheld("record_link()"))

            create or replace trigger ringback_record_link
                after insert or delete on auth.identities
                for each row execute function ringback.record_link();
            """
    }
}
