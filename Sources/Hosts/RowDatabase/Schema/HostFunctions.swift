/// The functions by which a host comes and goes. They make and drop login roles, so their owner may create roles; nobody
/// logs in as it.
enum HostFunctions {
    static let text = inviting + joining + listing + removing

    private static let inviting = #"""
        -- The group of an owner's hosts, by which they are in that of all hosts. From version 16 on, whoever changes the
        -- members of a group locks it until the transaction ends: nobody else's hosts could come or go meanwhile.
        CREATE OR REPLACE FUNCTION ringback.group_of(p_owner bigint) RETURNS text \#(Schema.inside)
        DECLARE
            -- Roles are the whole server's, and another database may have an owner of the same number.
            group_name text := (SELECT 'ringback_hosts_' || left(encode(sha256(identity), 'hex'), 16)
                FROM ringback.owners WHERE owner = p_owner);
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = group_name) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', group_name);
                EXECUTE format('GRANT ringback_hosts TO %I', group_name);
            END IF;
            RETURN group_name;
        END $$;

        -- Makes a login role. The password comes as the verifier that the server stores, so that no log has it.
        CREATE OR REPLACE FUNCTION ringback.make_role(p_owner bigint, p_verifier text, p_seconds bigint) RETURNS text
            \#(Schema.inside)
        DECLARE
            new_role text := 'ringback_' || left(replace(gen_random_uuid()::text, '-', ''), 20);
            ends timestamptz := clock_timestamp() + least(greatest(p_seconds, 60), 604800) * interval '1 second';
            gone text;
        BEGIN
            IF p_verifier !~ '^SCRAM-SHA-256\$[0-9]{4,7}:[A-Za-z0-9+/=]{16,128}\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$'
            THEN
                RAISE EXCEPTION USING ERRCODE = 'RB004', MESSAGE = 'this is no verifier of a password';
            END IF;
            -- Invitations that nobody took.
            FOR gone IN SELECT role_name FROM ringback.hosts WHERE owner = p_owner AND joined_at IS NULL
                AND invited_until < clock_timestamp()
            LOOP
                PERFORM ringback.end_role(gone::name);
            END LOOP;
            -- One invitation at a time, so that the count holds.
            PERFORM FROM ringback.owners WHERE owner = p_owner FOR UPDATE;
            IF (SELECT count(*) FROM ringback.hosts WHERE owner = p_owner)
                >= (SELECT most_hosts FROM ringback.owners WHERE owner = p_owner)
            THEN
                RAISE EXCEPTION USING ERRCODE = 'RB006', MESSAGE = 'this owner has too many hosts';
            END IF;
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS '
                || 'CONNECTION LIMIT 8 PASSWORD %L VALID UNTIL %L', new_role, p_verifier, ends);
            -- The right to end its connections and to drop what it owns.
            EXECUTE format('GRANT %I TO ringback_owner', new_role);
            EXECUTE format('GRANT %I TO %I', ringback.group_of(p_owner), new_role);
            EXECUTE format('ALTER ROLE %I SET statement_timeout = %L', new_role, '30s');
            EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', new_role, '30s');
            -- Where everybody may create in the schema public, what is there must not get into what a host asks.
            EXECUTE format('ALTER ROLE %I SET search_path = pg_catalog, pg_temp', new_role);
            INSERT INTO ringback.hosts (role, role_name, owner, invited_until)
                SELECT oid, rolname, p_owner, ends FROM pg_catalog.pg_roles WHERE rolname = new_role;
            INSERT INTO ringback.logins (role, owner, is_joined)
                SELECT oid, p_owner, false FROM pg_catalog.pg_roles WHERE rolname = new_role;
            RETURN new_role;
        END $$;

        CREATE OR REPLACE FUNCTION ringback.invite(p_schema bigint, p_verifier text, p_seconds bigint) RETURNS text
            \#(Schema.asOwner)
        BEGIN
            RETURN ringback.make_role(ringback.enter(p_schema), p_verifier, p_seconds);
        END $$;

        -- For administrators: the first host of an owner, who is made if there is none of that name.
        CREATE OR REPLACE FUNCTION ringback.admit(p_schema bigint, p_owner text, p_verifier text, p_seconds bigint)
            RETURNS text \#(Schema.asOwner)
        DECLARE
            o bigint;
        BEGIN
            PERFORM ringback.check_administrator(p_schema);
            INSERT INTO ringback.owners (name) VALUES (p_owner) ON CONFLICT (name) DO NOTHING;
            SELECT owner INTO STRICT o FROM ringback.owners WHERE name = p_owner;
            RETURN ringback.make_role(o, p_verifier, p_seconds);
        END $$;

        CREATE OR REPLACE FUNCTION ringback.check_administrator(p_schema bigint) RETURNS void LANGUAGE plpgsql
            SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            IF NOT ringback.is_administrator() THEN
                RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'for members of ringback_owner only';
            END IF;
            PERFORM ringback.check_schema(p_schema);
        END $$;

        """#

    private static let joining = #"""
        -- An invited host becomes one. The password of the invitation ends, and so do other connections made with it.
        -- The same call again changes nothing.
        CREATE OR REPLACE FUNCTION ringback.accept(p_schema bigint, p_verifier text, p_name text, p_public_key bytea)
            RETURNS void \#(Schema.asOwner)
        DECLARE
            h ringback.hosts;
        BEGIN
            PERFORM ringback.check_schema(p_schema);
            SELECT * INTO h FROM ringback.hosts WHERE role = ringback.login() FOR UPDATE;
            IF NOT FOUND THEN
                RAISE EXCEPTION USING ERRCODE = 'RB002', MESSAGE = 'this role is no host';
            ELSIF h.joined_at IS NOT NULL THEN
                IF h.name = p_name AND h.public_key = p_public_key THEN RETURN; END IF;
                RAISE EXCEPTION USING ERRCODE = 'RB005', MESSAGE = 'this invitation has been used';
            ELSIF p_verifier !~ '^SCRAM-SHA-256\$[0-9]{4,7}:[A-Za-z0-9+/=]{16,128}\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$'
            THEN
                RAISE EXCEPTION USING ERRCODE = 'RB004', MESSAGE = 'this is no verifier of a password';
            END IF;
            EXECUTE format('ALTER ROLE %I PASSWORD %L VALID UNTIL %L', h.role_name, p_verifier, 'infinity');
            UPDATE ringback.hosts SET name = p_name, public_key = p_public_key, joined_at = clock_timestamp(),
                seen_at = clock_timestamp() WHERE role = h.role;
            UPDATE ringback.logins SET is_joined = true WHERE role = h.role;
            PERFORM ringback.end_connections(h.role);
        END $$;

        -- What a host knows of itself: the identity of its owner and the data key for it, once another has given it.
        CREATE OR REPLACE FUNCTION ringback.me(p_schema bigint, OUT owner_name text, OUT identity bytea,
            OUT host_name text, OUT wrapped_key bytea) \#(Schema.entering)
        BEGIN
            SELECT w.name, w.identity, h.name, h.wrapped_key INTO owner_name, identity, host_name, wrapped_key
                FROM ringback.owners w, ringback.hosts h WHERE w.owner = o AND h.role = ringback.login();
        END $$;

        CREATE OR REPLACE FUNCTION ringback.give_key(p_schema bigint, p_role text, p_wrapped bytea) RETURNS boolean
            \#(Schema.entering)
        BEGIN
            UPDATE ringback.hosts SET wrapped_key = p_wrapped
                WHERE owner = o AND role_name = p_role AND joined_at IS NOT NULL;
            IF NOT FOUND THEN RETURN false; END IF;
            PERFORM ringback.tell(o, '*');
            RETURN true;
        END $$;

        """#

    private static let listing = #"""
        CREATE OR REPLACE FUNCTION ringback.list_hosts(p_schema bigint, OUT role_name text, OUT name text,
            OUT is_self boolean, OUT joined bigint, OUT seen bigint, OUT has_key boolean, OUT public_key bytea)
            RETURNS SETOF record \#(Schema.entering)
        BEGIN
            RETURN QUERY SELECT h.role_name::text, h.name, h.role = ringback.login(),
                EXTRACT(EPOCH FROM h.joined_at)::bigint, EXTRACT(EPOCH FROM h.seen_at)::bigint,
                h.wrapped_key IS NOT NULL, h.public_key
                FROM ringback.hosts h WHERE h.owner = o ORDER BY h.joined_at NULLS LAST, h.role_name;
        END $$;

        -- For administrators. Nothing of any row is shown.
        CREATE OR REPLACE FUNCTION ringback.list_facts(p_schema bigint, OUT owners bigint, OUT hosts bigint,
            OUT size bigint, OUT standbys text, OUT is_durable boolean, OUT server bigint) \#(Schema.asOwner)
        BEGIN
            PERFORM ringback.check_administrator(p_schema);
            owners := (SELECT count(*) FROM ringback.owners);
            hosts := (SELECT count(*) FROM ringback.hosts);
            size := (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_catalog.pg_class c
                WHERE c.relnamespace = 'ringback'::regnamespace AND c.relkind = 'r');
            standbys := current_setting('synchronous_standby_names');
            is_durable := current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean;
            server := current_setting('server_version_num')::bigint;
        END $$;

        """#

    private static let removing = #"""
        CREATE OR REPLACE FUNCTION ringback.end_connections(p_role oid) RETURNS void \#(Schema.inside)
        BEGIN
            -- Without this, a transaction that looks again sees the connections of the first time.
            PERFORM pg_stat_clear_snapshot();
            PERFORM pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
                WHERE usesysid = p_role AND pid <> pg_backend_pid();
        END $$;

        -- Ends a host: its connections end, its role cannot log in and belongs to nobody. The role is dropped later, in another
        -- transaction: whatever the host has made keeps nobody from ending it.
        CREATE OR REPLACE FUNCTION ringback.end_role(p_role name) RETURNS void \#(Schema.inside)
        DECLARE
            number oid := (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = p_role);
            former_owner bigint;
        BEGIN
            -- A transaction of the host that is open may have locked its role, or rows of its owner.
            PERFORM ringback.end_connections(number);
            DELETE FROM ringback.hosts WHERE role_name = p_role RETURNING owner INTO former_owner;
            IF number IS NULL THEN RETURN; END IF;
            EXECUTE format('ALTER ROLE %I NOLOGIN PASSWORD NULL', p_role);
            IF former_owner IS NOT NULL THEN
                EXECUTE format('REVOKE %I FROM %I', ringback.group_of(former_owner), p_role);
            END IF;
            PERFORM ringback.end_connections(number);
            INSERT INTO ringback.removed_roles VALUES (p_role) ON CONFLICT DO NOTHING;
        END $$;

        -- Drops the role of a removed host, or one of these if none is named. What it owns in this database is dropped with it.
        -- What it owns in another one, or a lock, may keep it from being dropped: then it is tried again later.
        CREATE OR REPLACE FUNCTION ringback.drop_removed(p_schema bigint, p_role text) RETURNS boolean
            \#(Schema.asOwner)
        DECLARE
            left_over text;
        BEGIN
            PERFORM ringback.enter(p_schema);
            PERFORM set_config('lock_timeout', '100ms', true);
            SELECT role_name INTO left_over FROM ringback.removed_roles
                WHERE p_role IS NULL OR role_name = p_role ORDER BY random() LIMIT 1;
            IF NOT FOUND THEN RETURN false; END IF;
            -- The role cannot log in any more, but may have connected just before.
            PERFORM ringback.end_connections((SELECT oid FROM pg_catalog.pg_roles WHERE rolname = left_over));
            BEGIN
                EXECUTE format('DROP OWNED BY %I CASCADE', left_over);
                EXECUTE format('DROP ROLE %I', left_over);
            EXCEPTION
                WHEN undefined_object THEN NULL;
                WHEN OTHERS THEN RETURN false;
            END;
            DELETE FROM ringback.removed_roles WHERE role_name = left_over;
            RETURN true;
        END $$;

        CREATE OR REPLACE FUNCTION ringback.lock_host(p_owner bigint, p_role text) RETURNS void \#(Schema.inside)
        BEGIN
            PERFORM FROM ringback.owners WHERE owner = p_owner FOR UPDATE;
            PERFORM FROM ringback.hosts WHERE owner = p_owner AND role_name = p_role FOR UPDATE;
        END $$;

        CREATE OR REPLACE FUNCTION ringback.remove_host(p_schema bigint, p_role text) RETURNS boolean
            \#(Schema.entering)
        BEGIN
            -- The host that is removed may hold locks that are needed here. They end with its connections.
            PERFORM ringback.end_connections(role) FROM ringback.hosts WHERE owner = o AND role_name = p_role;
            IF NOT FOUND THEN RETURN false; END IF;
            BEGIN
                PERFORM set_config('lock_timeout', '1s', true);
                PERFORM ringback.lock_host(o, p_role);
            EXCEPTION WHEN lock_not_available THEN
                -- Another host of this owner holds the lock, perhaps on purpose. The connections of all of them end; they
                -- connect again.
                PERFORM ringback.end_connections(role) FROM ringback.hosts
                    WHERE owner = o AND role <> ringback.login();
                PERFORM ringback.lock_host(o, p_role);
            END;
            PERFORM set_config('lock_timeout', '3s', true);
            -- Of several that remove it at once, one does.
            IF NOT EXISTS (SELECT FROM ringback.hosts WHERE owner = o AND role_name = p_role) THEN RETURN false; END IF;
            PERFORM ringback.end_role(p_role::name);
            -- The host knows the channel. The others ask for the new one, also now and then without being told.
            PERFORM ringback.tell(o, '*');
            UPDATE ringback.owners SET channel = 'ringback_' || replace(gen_random_uuid()::text, '-', '')
                WHERE owner = o;
            RETURN true;
        END $$;

        """#
}
