// The rule: a profile that cannot be written never keeps a user from signing up or in. What a user changed in the
// profile stays: a name or picture follows the provider's only as long as the two are the same.

extension ProfileScript {
    /// How a user is read from auth.users. The REST endpoint does not show this schema.
    var readingPart: String {
        """
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
        \(withheld("display_name(jsonb)"))

        create or replace function ringback.picture(metadata jsonb) returns text
        language sql immutable set search_path = pg_catalog, pg_temp as $$
            select url from (select coalesce(metadata ->> 'avatar_url', metadata ->> 'picture')) as stated (url)
            where url ~ '^https?://[^[:space:]]+$' and length(url) <= 2048
        $$;
        \(withheld("picture(jsonb)"))

        -- auth.users has numbers without the plus.
        create or replace function ringback.phone(number text) returns text
        language sql immutable set search_path = pg_catalog, pg_temp as $$
            select '+' || nullif(ltrim(number, '+'), '')
        $$;
        \(withheld("phone(text)"))
        """
    }

    var triggerPart: String { [signUpTrigger, changeTrigger, rowTrigger].joined(separator: "\n\n") }

    private var signUpTrigger: String {
        """
        -- A row for each new user.
        create or replace function ringback.\(own("profile_on_sign_up"))() returns trigger
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
        begin
            insert into \(table) (id, email, phone, full_name, avatar_url)
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
        \(withheld("\(own("profile_on_sign_up"))()"))

        create or replace trigger \(own("ringback_profile_on_sign_up"))
            after insert on auth.users
            for each row execute function ringback.\(own("profile_on_sign_up"))();
        """
    }

    private var changeTrigger: String {
        """
        -- E-mail address and number follow the user's at the project; an inactive row is left as it is.
        create or replace function ringback.\(own("profile_on_change"))() returns trigger
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
        begin
            insert into \(table) as p (id, email, phone, full_name, avatar_url)
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
        \(withheld("\(own("profile_on_change"))()"))

        create or replace trigger \(own("ringback_profile_on_change"))
            after update on auth.users
            for each row
            when ((old.email, old.phone, old.raw_user_meta_data)
                is distinct from (new.email, new.phone, new.raw_user_meta_data))
            execute function ringback.\(own("profile_on_change"))();
        """
    }

    private var rowTrigger: String {
        """
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
        \(withheld("before_profile_change()"))

        create or replace trigger ringback_before_profile_change
            before update on \(table)
            for each row execute function ringback.before_profile_change();
        """
    }
}
