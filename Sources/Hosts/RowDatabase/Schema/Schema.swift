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

    /// How a function that only others call is defined. The path of its search is no caller's.
    static let inside = "LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$"
    /// The same for one that is called from outside: it has the rights of the schema's owner.
    static let asOwner = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$"
    /// The same for hosts: it begins with the check of the caller, whose owner is `o`.
    static let entering = asOwner + "\nDECLARE\n    o bigint := ringback.enter(p_schema);"

    /// Removes the functions but those of the policies: one cannot be replaced by one that returns something else.
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

    /// Makes a version of `found` (0 for an empty schema) in one transaction. `migrations` make version n of n - 1,
    /// without the functions; `functions` are those that the tables do not need themselves.
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

/// The tables of version 1. Every table has row-level security that holds for its owner too, since the functions run as
/// the owner: a function with a mistake still reaches only what belongs to the role that has logged in. That role is
/// found by `session_user`, which only a superuser can change. `SET ROLE` and settings do not change it.
enum Tables {
    static let first = #"""
        CREATE TABLE ringback.versions (
            version bigint PRIMARY KEY,
            applied_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
            applied_by name NOT NULL DEFAULT session_user
        );

        -- People. The content of their rows is bound to the identity. Changes are told on the channel.
        CREATE TABLE ringback.owners (
            owner bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 64),
            identity bytea NOT NULL UNIQUE DEFAULT uuid_send(gen_random_uuid()),
            channel text NOT NULL DEFAULT 'ringback_' || replace(gen_random_uuid()::text, '-', ''),
            -- How many changes could not be told there.
            untold bigint NOT NULL DEFAULT 0,
            most_hosts bigint NOT NULL DEFAULT 64,
            created_at timestamptz NOT NULL DEFAULT clock_timestamp()
        );

        -- Machines of an owner, by the login role of each. One that is invited has no name yet.
        CREATE TABLE ringback.hosts (
            role oid PRIMARY KEY,
            role_name name NOT NULL UNIQUE,
            owner bigint NOT NULL REFERENCES ringback.owners ON DELETE CASCADE,
            name text CHECK (octet_length(name) BETWEEN 1 AND 64),
            invited_until timestamptz,
            joined_at timestamptz,
            seen_at timestamptz,
            public_key bytea CHECK (octet_length(public_key) BETWEEN 1 AND 512),
            wrapped_key bytea CHECK (octet_length(wrapped_key) BETWEEN 1 AND 1024)
        );
        CREATE UNIQUE INDEX ON ringback.hosts (owner, name);

        -- Which owner a login role belongs to.
        CREATE TABLE ringback.logins (
            role oid PRIMARY KEY REFERENCES ringback.hosts ON DELETE CASCADE,
            owner bigint NOT NULL REFERENCES ringback.owners ON DELETE CASCADE,
            is_joined boolean NOT NULL
        );

        -- Roles of removed hosts that are not dropped yet. They cannot log in.
        CREATE TABLE ringback.removed_roles (role_name name PRIMARY KEY);

        CREATE TABLE ringback.rows (
            owner bigint NOT NULL REFERENCES ringback.owners ON DELETE CASCADE,
            key bytea NOT NULL CHECK (octet_length(key) = 32),
            slot text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
            version bigint NOT NULL CHECK (version > 0),
            epoch bigint NOT NULL DEFAULT 0,
            sealed bytea NOT NULL CHECK (octet_length(sealed) BETWEEN 1 AND 1048576),
            -- The attempt and step by which the content came; null if it was put.
            head_attempt bytea,
            head_step bigint,
            lease_id bytea,
            lease_host text,
            lease_until timestamptz,
            PRIMARY KEY (owner, key)
        );

        CREATE TABLE ringback.attempts (
            owner bigint NOT NULL,
            key bytea NOT NULL,
            id bytea NOT NULL CHECK (octet_length(id) = 16),
            host text NOT NULL,
            parent_version bigint NOT NULL,
            intent bytea NOT NULL CHECK (octet_length(intent) <= 64),
            began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            ended_at timestamptz,
            PRIMARY KEY (owner, key, id),
            FOREIGN KEY (owner, key) REFERENCES ringback.rows ON DELETE CASCADE
        );

        -- What was received in an attempt, step by step. What became the row's content is noted without it.
        CREATE TABLE ringback.candidates (
            owner bigint NOT NULL,
            key bytea NOT NULL,
            attempt bytea NOT NULL CHECK (octet_length(attempt) = 16),
            step bigint NOT NULL,
            parent_version bigint NOT NULL,
            epoch bigint NOT NULL,
            was_head boolean NOT NULL,
            sealed bytea CHECK (octet_length(sealed) BETWEEN 1 AND 1048576),
            received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            PRIMARY KEY (owner, key, attempt, step),
            FOREIGN KEY (owner, key) REFERENCES ringback.rows ON DELETE CASCADE,
            CHECK (was_head = (sealed IS NULL))
        );

        -- What the functions return: a verdict (kind 0), a row (1), an open attempt (2) or a candidate (3).
        CREATE TYPE ringback.part AS (
            kind bigint, key bytea, id bytea, host text, version bigint, epoch bigint, step bigint, age bigint,
            content bytea, slot text
        );

        -- In PL/pgSQL, which plans a statement once for each session. Every call asks these several times.
        CREATE FUNCTION ringback.login() RETURNS oid LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            RETURN (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = session_user);
        END $$;
        CREATE FUNCTION ringback.is_administrator() RETURNS boolean LANGUAGE plpgsql STABLE
            SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            RETURN pg_has_role(session_user, 'ringback_owner', 'MEMBER');
        END $$;
        -- Null for a role that is no host, or only invited.
        CREATE FUNCTION ringback.owner() RETURNS bigint LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            RETURN (SELECT l.owner FROM ringback.logins l WHERE l.role = ringback.login() AND l.is_joined);
        END $$;

        ALTER TABLE ringback.owners ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON ringback.owners USING (owner = (SELECT ringback.owner()));
        CREATE POLICY administrator ON ringback.owners USING ((SELECT ringback.is_administrator()));

        ALTER TABLE ringback.hosts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON ringback.hosts USING (owner = (SELECT ringback.owner()));
        CREATE POLICY self ON ringback.hosts FOR SELECT USING (role = (SELECT ringback.login()));
        CREATE POLICY self_joins ON ringback.hosts FOR UPDATE USING (role = (SELECT ringback.login()));
        CREATE POLICY administrator ON ringback.hosts USING ((SELECT ringback.is_administrator()));

        -- No policy here may ask ringback.owner(), which reads this table, but for new lines.
        ALTER TABLE ringback.logins ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY self ON ringback.logins FOR SELECT USING (role = (SELECT ringback.login()));
        CREATE POLICY self_joins ON ringback.logins FOR UPDATE USING (role = (SELECT ringback.login()));
        CREATE POLICY invites ON ringback.logins FOR INSERT WITH CHECK (owner = (SELECT ringback.owner()));
        CREATE POLICY administrator ON ringback.logins USING ((SELECT ringback.is_administrator()));

        ALTER TABLE ringback.rows ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON ringback.rows USING (owner = (SELECT ringback.owner()));
        ALTER TABLE ringback.attempts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON ringback.attempts USING (owner = (SELECT ringback.owner()));
        ALTER TABLE ringback.candidates ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON ringback.candidates USING (owner = (SELECT ringback.owner()));
        """#
}
