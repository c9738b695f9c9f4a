internal import PostgresClient

/// The schema `ringback` and its roles: `ringback_owner`, who owns everything and never logs in, `ringback_hosts`, the
/// group of the login roles, one for each host, and in that a group for each owner.
enum Schema {
    /// The version that this program works with. Its functions refuse callers of another one.
    static let version: Int64 = 1
    /// What makes version n of n - 1, without the functions.
    private static let migrations = [Tables.first]

    /// What a host may call. It has no right to any table.
    private static let forHosts = [
        "read", "channel", "pulse", "take", "release", "append", "put", "restore", "invite", "accept", "me", "give_key",
        "list_hosts", "remove_host", "drop_removed",
    ]

    /// Removes the functions, but for those that the policies of the tables ask. A function cannot be replaced by one that
    /// returns something else.
    private static let removal = #"""
        DO $$
        DECLARE
            found regprocedure;
        BEGIN
            FOR found IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'ringback'::regnamespace
                AND p.proname NOT IN ('login', 'is_administrator', 'owner')
            LOOP
                EXECUTE pg_catalog.format('DROP FUNCTION %s', found);
            END LOOP;
        END $$;

        """#

    /// Makes the roles and the empty schema. Changes nothing that is there.
    static let foundation = #"""
        DO $$
        BEGIN
            -- Where everybody may create in the schema public, what is there must not get into what follows.
            PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
            IF current_setting('server_version_num')::int < 140000 THEN
                RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'PostgreSQL 14 or later is needed';
            END IF;
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'ringback_owner') THEN
                CREATE ROLE ringback_owner NOLOGIN CREATEROLE;
            END IF;
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'ringback_hosts') THEN
                CREATE ROLE ringback_hosts NOLOGIN;
            END IF;
            -- Somebody else may have made roles of these names.
            IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname IN ('ringback_owner', 'ringback_hosts')
                AND (rolcanlogin OR rolsuper OR rolbypassrls OR rolreplication))
            THEN
                RAISE EXCEPTION USING ERRCODE = '42710', MESSAGE = 'a role has rights that it must not have';
            END IF;
            GRANT ringback_hosts TO ringback_owner WITH ADMIN OPTION;
            IF NOT pg_catalog.pg_has_role(current_user, 'ringback_owner', 'USAGE') THEN
                EXECUTE pg_catalog.format('GRANT ringback_owner TO %I', current_user);
            END IF;
            CREATE SCHEMA IF NOT EXISTS ringback AUTHORIZATION ringback_owner;
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace
                WHERE nspname = 'ringback' AND nspowner = 'ringback_owner'::regrole)
            THEN
                RAISE EXCEPTION USING ERRCODE = '42P06', MESSAGE = 'the schema ringback belongs to another role';
            END IF;
            BEGIN
                EXECUTE pg_catalog.format('GRANT CONNECT ON DATABASE %I TO ringback_hosts', current_database());
            EXCEPTION WHEN insufficient_privilege THEN NULL;
            END;
        END $$
        """#

    /// Makes a version of `found`, which is 0 for an empty schema, in one transaction.
    ///
    /// - Parameters:
    ///   - migrations: what makes version n of n - 1, without the functions.
    ///   - functions: all of those that the tables do not need themselves.
    static func migration(
        from found: Int64, to version: Int64 = version, by migrations: [String] = migrations,
        functions: String = RowFunctions.text(version: version) + HostFunctions.text
    ) -> String {
        let lock = found == 0 ? "" : "LOCK TABLE ringback.versions IN EXCLUSIVE MODE;\n"
        let check =
            found == 0
            ? ""
            : """
            DO $$ BEGIN
                IF (SELECT max(version) FROM ringback.versions) <> \(found) THEN
                    RAISE EXCEPTION USING ERRCODE = '42P07', MESSAGE = 'another migration was faster';
                END IF;
            END $$;

            """
        let steps = (found..<version).map { step in
            "\(migrations[Int(step)])\nINSERT INTO ringback.versions (version) VALUES (\(step + 1));\n"
        }
        let callable = forHosts.map { "ringback.\($0)" }.joined(separator: ", ")
        return """
            SET LOCAL ROLE ringback_owner;
            SET LOCAL search_path = pg_catalog, pg_temp;
            SET LOCAL lock_timeout = '5s';
            \(lock)\(check)\(removal)\(steps.joined())
            \(functions)
            REVOKE ALL ON SCHEMA ringback FROM PUBLIC;
            GRANT USAGE ON SCHEMA ringback TO ringback_hosts;
            REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ringback FROM PUBLIC, ringback_hosts;
            GRANT EXECUTE ON FUNCTION \(callable) TO ringback_hosts;
            """
    }
}
