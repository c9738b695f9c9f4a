-- Profiles of a Supabase project: a row of a table in the schema public for each user in auth.users.
--     psql -v table=users -f profiles.sql "$DATABASE_URL"
-- Without -v table=NAME the table is profiles. It takes effect as a whole or not at all, and can be run again.
-- PostgreSQL 14 or newer. Run for another table too, each table keeps its triggers, and the functions work on the
-- table of the last run.
--
-- A signed-in user sees only their own row, and may change full_name and avatar_url. Nobody else sees or changes
-- anything, but for service_role. If the table is there already, it must have a unique uuid column id; columns that
-- are missing are added; rights that anon and authenticated have on it are taken away; policies that it has stay,
-- and go on to allow what they allow. For a column of your own, afterwards:
--     grant update (bio) on public.profiles to authenticated;
--
-- A function acts for the user whose token the request carries (auth.uid()), never for a user named in an argument.
-- It runs with its owner's rights only where the user lacks them. All names are qualified, and the search path has
-- the temporary schema last: a caller cannot replace the tables, types or operators that are used. An error code
-- that begins with PT holds the HTTP status of the REST endpoint's response. A profile that cannot be written never
-- keeps a user from signing up or in.

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
-- replaced, and \gexec runs it. {suffix} is in the names of a table's own triggers and their functions: it ends in a
-- digest if the table's name leaves no room or has capital letters.
select replace(replace($script$
begin;
-- Sign-ups wait while their table gets its triggers: give up rather than keep them waiting.
set local lock_timeout = '10s';
set local client_min_messages = warning;

create table if not exists public."{table}" (
    id uuid primary key references auth.users (id) on delete cascade
);

do $$
begin
    if not exists (
        select from pg_index i
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = 'public."{table}"'::regclass and i.indisunique and i.indimmediate and i.indpred is null
            and i.indnkeyatts = 1 and a.attname = 'id' and a.atttypid = 'uuid'::regtype
    ) then
        raise exception 'the table public."{table}" is there already, and has no unique uuid column id';
    end if;
end
$$;

alter table public."{table}"
    add column if not exists email text,
    add column if not exists phone text,
    add column if not exists full_name text,
    add column if not exists avatar_url text,
    add column if not exists is_active boolean not null default true,
    add column if not exists deactivated_at timestamptz,
    -- Who did it: the user, or null for anybody else.
    add column if not exists deactivated_by uuid,
    add column if not exists created_at timestamptz not null default now(),
    add column if not exists updated_at timestamptz not null default now();

alter table public."{table}" enable row level security;

do $$
begin
    -- Rights on the whole table, as a new one has them by default. Once they are gone nothing is taken back:
    -- what was granted on single columns since then stays.
    if exists (
        select from pg_class c
        cross join aclexplode(c.relacl) a
        left join pg_roles r on r.oid = a.grantee
        where c.oid = 'public."{table}"'::regclass
            and (a.grantee = 0 or r.rolname = 'anon'
                or r.rolname = 'authenticated' and a.privilege_type <> 'SELECT')
    ) then
        revoke all on public."{table}" from public, anon, authenticated;
    end if;

    if not exists (
        select from pg_policies
        where schemaname = 'public' and tablename = '{table}' and policyname = 'ringback: read the own row'
    ) then
        create policy "ringback: read the own row" on public."{table}"
            for select to authenticated using ((select auth.uid()) = id);
    end if;

    if not exists (
        select from pg_policies
        where schemaname = 'public' and tablename = '{table}' and policyname = 'ringback: change the own row'
    ) then
        create policy "ringback: change the own row" on public."{table}"
            for update to authenticated
            using ((select auth.uid()) = id and is_active) with check ((select auth.uid()) = id);
    end if;
end
$$;

grant select, update (full_name, avatar_url) on public."{table}" to authenticated;
grant select, insert, update, delete on public."{table}" to service_role;

create schema if not exists ringback;
revoke all on schema ringback from public, anon, authenticated, service_role;

-- Users choose their metadata themselves: long texts are cut, and what is no web address is no picture.
create or replace function ringback.display_name(metadata jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select left(coalesce(
        nullif(btrim(metadata ->> 'full_name'), ''),
        nullif(btrim(metadata ->> 'name'), ''),
        nullif(btrim(concat_ws(' ', metadata ->> 'given_name', metadata ->> 'family_name')), '')
    ), 200)
$$;
revoke all on function ringback.display_name(jsonb) from public, anon, authenticated, service_role;

create or replace function ringback.picture(metadata jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select url from (select coalesce(metadata ->> 'avatar_url', metadata ->> 'picture')) as stated (url)
    where url ~ '^https?://[^[:space:]]+$' and length(url) <= 2048
$$;
revoke all on function ringback.picture(jsonb) from public, anon, authenticated, service_role;

-- auth.users has numbers without the plus.
create or replace function ringback.phone(number text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select '+' || nullif(ltrim(number, '+'), '')
$$;
revoke all on function ringback.phone(text) from public, anon, authenticated, service_role;

-- A row for each new user.
create or replace function ringback.profile_on_sign_up{suffix}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into public."{table}" (id, email, phone, full_name, avatar_url)
    values (new.id, nullif(new.email, ''), ringback.phone(new.phone),
        ringback.display_name(new.raw_user_meta_data), ringback.picture(new.raw_user_meta_data))
    on conflict (id) do nothing;
    return null;
exception when others then
    -- Tried again by get_or_create_profile, which tells the mistake.
    raise warning 'no profile for %: % (%)', new.id, sqlerrm, sqlstate;
    return null;
end
$$;
revoke all on function ringback.profile_on_sign_up{suffix}() from public, anon, authenticated, service_role;

create or replace trigger ringback_profile_on_sign_up{suffix}
    after insert on auth.users
    for each row execute function ringback.profile_on_sign_up{suffix}();

-- E-mail address and number follow the user's at the project; an inactive row is left as it is.
create or replace function ringback.profile_on_change{suffix}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into public."{table}" as p (id, email, phone, full_name, avatar_url)
    values (new.id, nullif(new.email, ''), ringback.phone(new.phone),
        ringback.display_name(new.raw_user_meta_data), ringback.picture(new.raw_user_meta_data))
    on conflict (id) do update set
        email = excluded.email,
        phone = excluded.phone,
        full_name = case
            when p.full_name is not distinct from ringback.display_name(old.raw_user_meta_data)
            then coalesce(excluded.full_name, p.full_name) else p.full_name end,
        avatar_url = case
            when p.avatar_url is not distinct from ringback.picture(old.raw_user_meta_data)
            then coalesce(excluded.avatar_url, p.avatar_url) else p.avatar_url end
    where p.is_active;
    return null;
exception when others then
    raise warning 'the profile of % was not updated: % (%)', new.id, sqlerrm, sqlstate;
    return null;
end
$$;
revoke all on function ringback.profile_on_change{suffix}() from public, anon, authenticated, service_role;

create or replace trigger ringback_profile_on_change{suffix}
    after update on auth.users
    for each row
    when ((old.email, old.phone, old.raw_user_meta_data)
        is distinct from (new.email, new.phone, new.raw_user_meta_data))
    execute function ringback.profile_on_change{suffix}();

-- What holds for every change of a row, by whomever.
create or replace function ringback.before_profile_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.full_name is distinct from old.full_name and length(new.full_name) > 200 then
        raise exception 'full_name has more than 200 characters' using errcode = 'check_violation';
    end if;
    if new.avatar_url is distinct from old.avatar_url
        and (length(new.avatar_url) > 2048 or new.avatar_url !~ '^https?://[^[:space:]]+$')
    then
        raise exception 'avatar_url is no web address of at most 2048 characters'
            using errcode = 'check_violation';
    end if;
    if new.is_active is distinct from old.is_active then
        new.deactivated_at := case when new.is_active then null else now() end;
        if new.is_active then
            new.deactivated_by := null;
        end if;
    end if;
    new.updated_at := now();
    return new;
end
$$;
revoke all on function ringback.before_profile_change() from public, anon, authenticated, service_role;

create or replace trigger ringback_before_profile_change
    before update on public."{table}"
    for each row execute function ringback.before_profile_change();

-- The own row, made if it is missing. The return type is the table's, which `create or replace` cannot change.
drop function if exists public.get_or_create_profile();
create function public.get_or_create_profile() returns public."{table}"
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    person uuid := auth.uid();
    own public."{table}";
begin
    if person is null then
        raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
    end if;
    insert into public."{table}" as p (id, email, phone, full_name, avatar_url)
    select u.id, nullif(u.email, ''), ringback.phone(u.phone),
        ringback.display_name(u.raw_user_meta_data), ringback.picture(u.raw_user_meta_data)
    from auth.users u where u.id = person
    on conflict (id) do update set email = excluded.email, phone = excluded.phone
    where p.is_active and (p.email, p.phone) is distinct from (excluded.email, excluded.phone);
    select p.* into own from public."{table}" p where p.id = person;
    if not found then
        raise exception 'this user no longer exists' using errcode = 'PT404';
    end if;
    return own;
end
$$;
revoke all on function public.get_or_create_profile() from public, anon, authenticated, service_role;
grant execute on function public.get_or_create_profile() to authenticated;

-- Changes what is given; an empty text clears it. With the user's own rights: the policies decide.
drop function if exists public.update_profile(text, text);
create function public.update_profile(full_name text default null, avatar_url text default null)
returns public."{table}"
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    person uuid := auth.uid();
    own public."{table}";
begin
    if person is null then
        raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
    end if;
    update public."{table}" p set
        full_name = case when update_profile.full_name is null then p.full_name
            else nullif(btrim(update_profile.full_name), '') end,
        avatar_url = case when update_profile.avatar_url is null then p.avatar_url
            else nullif(btrim(update_profile.avatar_url), '') end
    where p.id = person and p.is_active
    returning p.* into own;
    if not found then
        raise exception 'there is no active profile' using errcode = 'PT403';
    end if;
    return own;
end
$$;
revoke all on function public.update_profile(text, text) from public, anon, authenticated, service_role;
grant execute on function public.update_profile(text, text) to authenticated;

-- The row stays, and can be read, but not changed by the user.
drop function if exists public.deactivate_account();
create function public.deactivate_account() returns public."{table}"
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    person uuid := auth.uid();
    own public."{table}";
begin
    if person is null then
        raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
    end if;
    update public."{table}" p set is_active = false, deactivated_by = person where p.id = person and p.is_active;
    select p.* into own from public."{table}" p where p.id = person;
    if not found then
        raise exception 'there is no profile' using errcode = 'PT404';
    end if;
    return own;
end
$$;
revoke all on function public.deactivate_account() from public, anon, authenticated, service_role;
grant execute on function public.deactivate_account() to authenticated;

-- Users who signed up before.
insert into public."{table}" (id, email, phone, full_name, avatar_url)
select u.id, nullif(u.email, ''), ringback.phone(u.phone), ringback.display_name(u.raw_user_meta_data),
    ringback.picture(u.raw_user_meta_data)
from auth.users u
on conflict (id) do nothing;

-- The project's REST endpoint learns what is new.
notify pgrst, 'reload schema';
commit;
$script$,
    '{suffix}', case when :'table' = 'profiles' then ''
        when :'table' = lower(:'table') and length(:'table') <= 35 then '_' || :'table'
        else '_' || left(lower(:'table'), 26) || '_' || left(md5(:'table'), 8) end),
    '{table}', :'table')
\gexec
