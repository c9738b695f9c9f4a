// The rule: a function acts for the user whose token the request carries (auth.uid()), never for a user named in an
// argument. It runs with its owner's rights only where the user lacks them. An error code that begins with PT holds the
// HTTP status of the REST endpoint's response.

extension ProfileScript {
    var rpcPart: String { [getOrCreate, update, deactivate].joined(separator: "\n\n") }

    private var getOrCreate: String {
        """
        -- The own row, made if it is missing. The return type is the table's, which `create or replace` cannot change.
        drop function if exists public.get_or_create_profile();
        create function public.get_or_create_profile() returns \(table)
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
        #variable_conflict use_variable
        declare
            person uuid := auth.uid();
            own \(table);
        begin
            \(refuseNobody)
            insert into \(table) as p (id, email, phone, full_name, avatar_url)
            select u.id, nullif(u.email, ''), ringback.phone(u.phone),
                ringback.display_name(u.raw_user_meta_data), ringback.picture(u.raw_user_meta_data)
            from auth.users u where u.id = person
            on conflict (id) do update set email = excluded.email, phone = excluded.phone
            where p.is_active and (p.email, p.phone) is distinct from (excluded.email, excluded.phone);
            select p.* into own from \(table) p where p.id = person;
            if not found then
                raise exception 'this person is not here any more' using errcode = 'PT404';
            end if;
            return own;
        end
        $$;
        \(granted("get_or_create_profile()"))
        """
    }

    private var update: String {
        """
        -- Changes what is given; an empty text clears it. With the person's own rights: the policies decide.
        drop function if exists public.update_profile(text, text);
        create function public.update_profile(full_name text default null, avatar_url text default null)
        returns \(table)
        language plpgsql set search_path = pg_catalog, pg_temp as $$
        #variable_conflict use_variable
        declare
            person uuid := auth.uid();
            own \(table);
        begin
            \(refuseNobody)
            update \(table) p set
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
        \(granted("update_profile(text, text)"))
        """
    }

    private var deactivate: String {
        """
        -- The row stays, and can be read, but not changed by the person.
        drop function if exists public.deactivate_account();
        create function public.deactivate_account() returns \(table)
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
        #variable_conflict use_variable
        declare
            person uuid := auth.uid();
            own \(table);
        begin
            \(refuseNobody)
            update \(table) p set is_active = false, deactivated_by = person where p.id = person and p.is_active;
            select p.* into own from \(table) p where p.id = person;
            if not found then
                raise exception 'there is no profile' using errcode = 'PT404';
            end if;
            return own;
        end
        $$;
        \(granted("deactivate_account()"))
        """
    }

    /// The first lines of a function: without a signed-in user it fails.
    var refuseNobody: String {
        """
        if person is null then
                raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
            end if;
        """
    }
}
