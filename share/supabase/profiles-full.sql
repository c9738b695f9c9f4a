-- More for the table of profiles.sql, run after it for the same table: indexes, reactivation, soft deletion, and an
-- audit of linked identities.
--     psql -v table=users -f profiles.sql -f profiles-full.sql "$DATABASE_URL"
-- It takes effect as a whole or not at all, and can be run again.
--
-- A user can reactivate a profile only if the user deactivated it. Deleting an account clears the user's data at
-- once, and keeps the row with the time of the deletion.

\set ON_ERROR_STOP on
\set QUIET on
\if :{?table}
\else
    \set table profiles
\endif
-- PostgreSQL cuts a name after 63 bytes.
select :'table' ~ '^[A-Za-z_][A-Za-z0-9_]{0,62}$' and :'table' <> 'account_link_audit' as is_name \gset
\if :is_name
\else
    do $$ begin raise exception
        'The name of the table has 1 to 63 of A-Z, a-z, 0-9 and _, begins with no digit and is not account_link_audit.';
    end $$;
\endif

-- psql replaces no variable inside the body of a function. So the text is a value in which words in braces are
-- replaced, and \gexec runs it. {index} is the table in the name of an index: it ends in a digest if the table's
-- name leaves no room.
select replace(replace($script$
begin;
-- Sign-ups wait while a trigger is made: give up rather than keep them waiting.
set local lock_timeout = '10s';
set local client_min_messages = warning;

alter table public."{table}" add column if not exists deleted_at timestamptz;

create index if not exists "ringback_{index}_email" on public."{table}" (lower(email));
create index if not exists "ringback_{index}_created" on public."{table}" (created_at);
create index if not exists "ringback_{index}_deleted" on public."{table}" (deleted_at) where deleted_at is not null;

-- Undoes deactivate_account, and nobody else's deactivation. What has changed meanwhile is taken over.
drop function if exists public.reactivate_account();
create function public.reactivate_account() returns public."{table}"
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    person uuid := auth.uid();
    own public."{table}";
begin
    if person is null then
        raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
    end if;
    update public."{table}" p set is_active = true, email = nullif(u.email, ''), phone = ringback.phone(u.phone)
    from auth.users u
    where p.id = person and u.id = person
        and not p.is_active and p.deactivated_by = person and p.deleted_at is null;
    select p.* into own from public."{table}" p where p.id = person;
    if not found then
        raise exception 'there is no profile' using errcode = 'PT404';
    elsif not own.is_active then
        raise exception 'this account cannot be reactivated by its owner' using errcode = 'PT403';
    end if;
    return own;
end
$$;
revoke all on function public.reactivate_account() from public, anon, authenticated, service_role;
grant execute on function public.reactivate_account() to authenticated;

-- Clears the user's data and keeps the row, since other rows may refer to it. To remove the users later:
--     delete from auth.users where id in
--         (select id from public."{table}" where deleted_at < now() - interval '30 days');
drop function if exists public.delete_account();
create function public.delete_account() returns public."{table}"
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    person uuid := auth.uid();
    own public."{table}";
begin
    if person is null then
        raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
    end if;
    update public."{table}" p set is_active = false, deleted_at = now(), email = null, phone = null,
        full_name = null, avatar_url = null
    where p.id = person and p.deleted_at is null;
    select p.* into own from public."{table}" p where p.id = person;
    if not found then
        raise exception 'there is no profile' using errcode = 'PT404';
    end if;
    return own;
end
$$;
revoke all on function public.delete_account() from public, anon, authenticated, service_role;
grant execute on function public.delete_account() to authenticated;

-- Every identity that was linked to a user or unlinked, also those that the server links by e-mail. The
-- lines stay when the user is deleted: they have no name in them.
create table if not exists public.account_link_audit (
    id uuid primary key default gen_random_uuid(),
    user_id uuid not null,
    provider text not null,
    event text not null check (event in ('linked', 'unlinked')),
    happened_at timestamptz not null default now()
);
create index if not exists account_link_audit_user on public.account_link_audit (user_id, happened_at);

alter table public.account_link_audit enable row level security;
revoke all on public.account_link_audit from public, anon, authenticated, service_role;
grant select on public.account_link_audit to authenticated, service_role;

do $$
begin
    if not exists (
        select from pg_policies
        where schemaname = 'public' and tablename = 'account_link_audit'
            and policyname = 'ringback: read the own lines'
    ) then
        create policy "ringback: read the own lines" on public.account_link_audit
            for select to authenticated using ((select auth.uid()) = user_id);
    end if;
end
$$;

create or replace function ringback.record_link() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'INSERT' then
        insert into public.account_link_audit (user_id, provider, event) values (new.user_id, new.provider, 'linked');
    elsif exists (select from auth.users u where u.id = old.user_id) then
        -- Otherwise the identity was deleted with the user.
        insert into public.account_link_audit (user_id, provider, event) values (old.user_id, old.provider, 'unlinked');
    end if;
    return null;
exception when others then
    raise warning 'no line in the audit: % (%)', sqlerrm, sqlstate;
    return null;
end
$$;
revoke all on function ringback.record_link() from public, anon, authenticated, service_role;

create or replace trigger ringback_record_link
    after insert or delete on auth.identities
    for each row execute function ringback.record_link();

notify pgrst, 'reload schema';
commit;
$script$,
    '{index}', case when length(:'table') <= 46 then :'table'
        else left(:'table', 37) || '_' || left(md5(:'table'), 8) end),
    '{table}', :'table')
\gexec
