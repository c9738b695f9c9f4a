// The rule: a function acts for the user whose token the request carries (auth.uid()), never for a user named in an
// argument. It runs with its owner's rights only where the user lacks them. An error code that begins with PT holds the
// HTTP status of the REST endpoint's response.

extension ProfileScript {
    var rpcPart: String { [getOrCreate, update, deactivate].joined(separator: "\n\n") }

    private var getOrCreate: String {
        function(
            """
            -- The own row, made if it is missing. The return type is the table's, which `create or replace` cannot change.
            """, "get_or_create_profile",
            """
            insert into \(table) as p (id, email, phone, full_name, avatar_url)
            select u.id, nullif(u.email, ''), ringback.phone(u.phone),
                ringback.display_name(u.raw_user_meta_data), ringback.picture(u.raw_user_meta_data)
            from auth.users u where u.id = person
            on conflict (id) do update set email = excluded.email, phone = excluded.phone
            where p.is_active and (p.email, p.phone) is distinct from (excluded.email, excluded.phone);
            \(ownRow)
            \(orRaise("this user no longer exists", "PT404"))
            """)
    }

    private var update: String {
        function(
            """
            -- Changes what is given; an empty text clears it. With the user's own rights: the policies decide.
            """, "update_profile", parameters: ["full_name", "avatar_url"], hasOwnersRights: false,
            """
            update \(table) p set
                full_name = case when update_profile.full_name is null then p.full_name
                    else nullif(btrim(update_profile.full_name), '') end,
                avatar_url = case when update_profile.avatar_url is null then p.avatar_url
                    else nullif(btrim(update_profile.avatar_url), '') end
            where p.id = person and p.is_active
            returning p.* into own;
            \(orRaise("there is no active profile", "PT403"))
            """)
    }

    private var deactivate: String {
        function(
            """
            -- The row stays, and can be read, but not changed by the user.
            """, "deactivate_account",
            """
            update \(table) p set is_active = false, deactivated_by = person where p.id = person and p.is_active;
            \(ownRow)
            \(orRaise("there is no profile", "PT404"))
            """)
    }

    // MARK: The one template

    /// A function that acts for the user whose token the request carries, and returns the user's own row.
    ///
    /// - Parameters:
    ///   - comment: what stands above it, as comment lines of SQL.
    ///   - parameters: their names; each is a text that may be left out.
    ///   - hasOwnersRights: false for a function that may do what the user may.
    ///   - body: statements, the last of which has left the row in `own`.
    func function(
        _ comment: String, _ name: String, parameters: [String] = [], hasOwnersRights: Bool = true, _ body: String
    ) -> String {
        let types = "\(name)(\(parameters.map { _ in "text" }.joined(separator: ", ")))"
        let declared = parameters.map { "\($0) text default null" }.joined(separator: ", ")
        let lines = body.split(separator: "\n", omittingEmptySubsequences: false)
        return """
            \(comment)
            drop function if exists public.\(types);
            create function public.\(name)(\(declared))\(parameters.isEmpty ? " " : "\n")returns \(table)
            language plpgsql\(hasOwnersRights ? " security definer" : "") set search_path = pg_catalog, pg_temp as $$
            #variable_conflict use_variable
            declare
                person uuid := auth.uid();
                own \(table);
            begin
                if person is null then
                    raise exception 'nobody is signed in' using errcode = 'insufficient_privilege';
                end if;
            \(lines.map { "    \($0)" }.joined(separator: "\n"))
                return own;
            end
            $$;
            \(granted(types))
            """
    }

    /// Reads the own row into `own`.
    var ownRow: String { "select p.* into own from \(table) p where p.id = person;" }

    /// Ends the function with an error if no row was found.
    func orRaise(_ message: String, _ code: String) -> String {
        """
        if not found then
            raise exception '\(message)' using errcode = '\(code)';
        end if;
        """
    }
}
