/// The functions that read and change rows. A host has no right to a table, only to these: so it can lock no table, and
/// each call is one statement and one transaction, also through a pooler.
enum RowFunctions {
    /// The first parameter of each function is the version that the caller knows.
    static func text(version: Int64) -> String { entrance(version) + reading + taking + receiving + putting }

    private static func entrance(_ version: Int64) -> String {
        #"""
        CREATE OR REPLACE FUNCTION ringback.check_schema(p_schema bigint) RETURNS void LANGUAGE plpgsql
            SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            IF p_schema <> \#(version) THEN
                RAISE EXCEPTION USING ERRCODE = 'RB001', MESSAGE = 'another version of the schema',
                    DETAIL = '\#(version)';
            END IF;
        END $$;

        -- Checks the caller and sets what holds for this transaction alone. Returns the caller's owner.
        CREATE OR REPLACE FUNCTION ringback.enter(p_schema bigint) RETURNS bigint LANGUAGE plpgsql
            SET search_path = pg_catalog, pg_temp AS $$
        DECLARE
            found_owner bigint;
        BEGIN
            PERFORM ringback.check_schema(p_schema);
            found_owner := ringback.owner();
            IF found_owner IS NULL AND EXISTS (SELECT FROM ringback.logins WHERE role = ringback.login()) THEN
                RAISE EXCEPTION USING ERRCODE = 'RB003', MESSAGE = 'this host has not joined';
            ELSIF found_owner IS NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'RB002', MESSAGE = 'this role is no host';
            END IF;
            -- A server that follows another one may be behind.
            IF current_setting('transaction_read_only')::boolean THEN
                RAISE EXCEPTION USING ERRCODE = '25006', MESSAGE = 'this server takes no changes';
            END IF;
            PERFORM set_config('synchronous_commit', 'on', true);
            PERFORM set_config('lock_timeout', '3s', true);
            RETURN found_owner;
        END $$;

        -- Tells the owner's hosts that a row changed. If others are flooding the queue, it is counted instead: if the queue
        -- were full, the transaction would fail.
        CREATE OR REPLACE FUNCTION ringback.tell(p_owner bigint, p_slot text) RETURNS void LANGUAGE plpgsql
            SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            IF pg_notification_queue_usage() < 0.5 THEN
                PERFORM pg_notify((SELECT channel FROM ringback.owners WHERE owner = p_owner), p_slot);
            ELSE
                UPDATE ringback.owners SET untold = untold + 1 WHERE owner = p_owner;
            END IF;
        END $$;

        """#
    }

    private static let reading = #"""
        CREATE OR REPLACE FUNCTION ringback.parts(p_owner bigint, p_keys bytea[]) RETURNS SETOF ringback.part
            LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            RETURN QUERY SELECT 1::bigint, key, CASE WHEN lease_until > clock_timestamp() THEN lease_id END,
                lease_host, version, epoch, NULL::bigint,
                (EXTRACT(EPOCH FROM lease_until - clock_timestamp()) * 1000)::bigint, sealed, slot
            FROM ringback.rows WHERE owner = p_owner AND key = ANY (p_keys)
            UNION ALL
            SELECT 2, a.key, a.id, a.host, a.parent_version, NULL, NULL,
                (EXTRACT(EPOCH FROM clock_timestamp() - a.began_at) * 1000)::bigint, a.intent, NULL
            FROM ringback.attempts a JOIN ringback.rows r ON r.owner = a.owner AND r.key = a.key
            WHERE a.owner = p_owner AND a.key = ANY (p_keys) AND a.ended_at IS NULL
                AND (a.began_at > clock_timestamp() - interval '1 hour' OR a.parent_version >= r.version - 16)
            UNION ALL
            SELECT 3, key, attempt, NULL, parent_version, epoch, step,
                (EXTRACT(EPOCH FROM clock_timestamp() - received_at) * 1000)::bigint, sealed, NULL
            FROM ringback.candidates WHERE owner = p_owner AND key = ANY (p_keys) AND NOT was_head;
        END $$;

        CREATE OR REPLACE FUNCTION ringback.answer(p_owner bigint, p_key bytea, p_done boolean)
            RETURNS SETOF ringback.part LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            RETURN NEXT (0, p_key, NULL, NULL, p_done::int, NULL, NULL, NULL, NULL, NULL)::ringback.part;
            RETURN QUERY SELECT * FROM ringback.parts(p_owner, ARRAY[p_key]);
        END $$;

        CREATE OR REPLACE FUNCTION ringback.read(p_schema bigint, p_keys bytea[]) RETURNS SETOF ringback.part
            \#(Schema.asOwner)
        BEGIN
            RETURN QUERY SELECT * FROM ringback.parts(ringback.enter(p_schema), p_keys);
        END $$;

        CREATE OR REPLACE FUNCTION ringback.channel(p_schema bigint) RETURNS text \#(Schema.entering)
        BEGIN
            RETURN (SELECT channel FROM ringback.owners WHERE owner = o);
        END $$;

        -- Numbers of which one is another after any change of any row, how many changes were not told, and whether commits
        -- wait for a standby.
        CREATE OR REPLACE FUNCTION ringback.pulse(p_schema bigint, OUT versions bigint, OUT epochs bigint,
            OUT leases bigint, OUT untold bigint, OUT has_standby boolean) \#(Schema.entering)
        BEGIN
            UPDATE ringback.hosts SET seen_at = clock_timestamp() WHERE role = ringback.login()
                AND (seen_at IS NULL OR seen_at < clock_timestamp() - interval '10 minutes');
            has_standby := current_setting('synchronous_standby_names') <> '';
            SELECT coalesce(sum(r.version), 0), coalesce(sum(r.epoch), 0), count(r.lease_id)
                INTO versions, epochs, leases FROM ringback.rows r WHERE r.owner = o;
            untold := (SELECT w.untold FROM ringback.owners w WHERE w.owner = o);
        END $$;

        """#

    private static let taking = #"""
        CREATE OR REPLACE FUNCTION ringback.take(p_schema bigint, p_key bytea, p_version bigint, p_id bytea, p_intent bytea,
            p_lasting bigint) RETURNS SETOF ringback.part \#(Schema.entering)
            own_name text := (SELECT name FROM ringback.hosts WHERE role = ringback.login());
            r ringback.rows;
            is_taken boolean;
        BEGIN
            SELECT * INTO r FROM ringback.rows WHERE owner = o AND key = p_key FOR NO KEY UPDATE;
            -- The same call again, after its reply was lost.
            is_taken := r.lease_id = p_id AND r.lease_until > clock_timestamp();
            IF NOT coalesce(is_taken, false) THEN
                is_taken := r.version = p_version AND (r.lease_id IS NULL OR r.lease_until <= clock_timestamp());
                IF is_taken THEN
                    UPDATE ringback.rows SET epoch = r.epoch + 1, lease_id = p_id, lease_host = own_name,
                        lease_until = clock_timestamp() + least(p_lasting, 120000) * interval '1 millisecond'
                        WHERE owner = o AND key = p_key;
                    DELETE FROM ringback.attempts WHERE owner = o AND key = p_key
                        AND began_at < clock_timestamp() - interval '1 hour'
                        AND (ended_at IS NOT NULL OR id NOT IN (SELECT a.id FROM ringback.attempts a
                            WHERE a.owner = o AND a.key = p_key AND a.ended_at IS NULL
                            ORDER BY a.began_at DESC LIMIT 64));
                    INSERT INTO ringback.attempts (owner, key, id, host, parent_version, intent)
                        VALUES (o, p_key, p_id, own_name, p_version, p_intent);
                    PERFORM ringback.tell(o, r.slot);
                END IF;
            END IF;
            RETURN QUERY SELECT * FROM ringback.answer(o, p_key, coalesce(is_taken, false));
        END $$;

        -- Ends a lease, and with p_ends its attempt.
        CREATE OR REPLACE FUNCTION ringback.release(p_schema bigint, p_key bytea, p_id bytea,
            p_ends boolean) RETURNS void \#(Schema.entering)
            changed_slot text;
        BEGIN
            UPDATE ringback.rows SET lease_id = NULL, lease_host = NULL, lease_until = NULL
                WHERE owner = o AND key = p_key AND lease_id = p_id RETURNING slot INTO changed_slot;
            IF p_ends THEN
                UPDATE ringback.attempts SET ended_at = clock_timestamp()
                    WHERE owner = o AND key = p_key AND id = p_id AND ended_at IS NULL;
                IF FOUND AND changed_slot IS NULL THEN
                    changed_slot := (SELECT slot FROM ringback.rows WHERE owner = o AND key = p_key);
                END IF;
            END IF;
            IF changed_slot IS NOT NULL THEN PERFORM ringback.tell(o, changed_slot); END IF;
        END $$;

        """#

    private static let receiving = #"""
        CREATE OR REPLACE FUNCTION ringback.append(p_schema bigint, p_key bytea, p_id bytea, p_step bigint,
            p_epoch bigint, p_parent bigint, p_new bigint, p_sealed bytea, p_final boolean)
            RETURNS SETOF ringback.part \#(Schema.entering)
            r ringback.rows;
            is_moved boolean;
            is_older boolean;
        BEGIN
            -- A failover may have lost the row itself.
            INSERT INTO ringback.rows (owner, key, version, epoch, sealed, lease_id, lease_until)
                SELECT o, p_key, greatest(p_new - 1, 1), p_epoch, p_sealed, p_id, clock_timestamp()
                WHERE NOT EXISTS (SELECT FROM ringback.rows WHERE owner = o AND key = p_key)
                ON CONFLICT (owner, key) DO NOTHING;
            is_moved := FOUND;
            SELECT * INTO STRICT r FROM ringback.rows WHERE owner = o AND key = p_key FOR NO KEY UPDATE;
            IF NOT EXISTS (SELECT FROM ringback.candidates
                WHERE owner = o AND key = p_key AND attempt = p_id AND step = p_step)
            THEN
                is_moved := is_moved OR (r.lease_id IS NOT DISTINCT FROM p_id AND p_new > r.version
                    AND (r.version = p_parent OR r.head_attempt IS NOT DISTINCT FROM p_id));
                -- A later step of the same attempt is the row's content already.
                is_older := r.head_attempt IS NOT DISTINCT FROM p_id AND p_step < r.head_step;
                is_older := coalesce(is_older, false);
                INSERT INTO ringback.candidates
                    (owner, key, attempt, step, parent_version, epoch, was_head, sealed)
                    VALUES (o, p_key, p_id, p_step, p_parent, p_epoch, is_moved OR is_older,
                        CASE WHEN is_moved OR is_older THEN NULL ELSE p_sealed END);
                UPDATE ringback.attempts SET ended_at = clock_timestamp()
                    WHERE owner = o AND key = p_key AND id = p_id AND ended_at IS NULL;
                IF is_moved THEN
                    UPDATE ringback.rows SET version = p_new, sealed = p_sealed, head_attempt = p_id,
                        head_step = p_step WHERE owner = o AND key = p_key;
                    -- A later refresh has succeeded. What is older than it may be of another session, which a host had
                    -- when it joined.
                    DELETE FROM ringback.candidates WHERE owner = o AND key = p_key AND parent_version < p_parent
                        AND received_at < clock_timestamp() - CASE WHEN was_head THEN interval '1 hour'
                            ELSE interval '90 days' END;
                    DELETE FROM ringback.attempts WHERE owner = o AND key = p_key AND parent_version < p_parent
                        AND began_at < clock_timestamp() - interval '1 hour';
                END IF;
                PERFORM ringback.tell(o, r.slot);
            END IF;
            IF p_final THEN
                UPDATE ringback.rows SET lease_id = NULL, lease_host = NULL, lease_until = NULL
                    WHERE owner = o AND key = p_key AND lease_id = p_id;
            END IF;
            RETURN QUERY SELECT * FROM ringback.answer(o, p_key, true);
        END $$;

        """#

    private static let putting = #"""
        CREATE OR REPLACE FUNCTION ringback.put(p_schema bigint, p_key bytea, p_version bigint,
            p_sealed bytea, p_lease bytea, p_overrides boolean) RETURNS SETOF ringback.part \#(Schema.entering)
            r ringback.rows;
            is_put boolean := false;
        BEGIN
            IF p_version = 0 THEN
                INSERT INTO ringback.rows (owner, key, version, sealed) VALUES (o, p_key, 1, p_sealed)
                    ON CONFLICT (owner, key) DO NOTHING;
                is_put := FOUND;
            END IF;
            SELECT * INTO r FROM ringback.rows WHERE owner = o AND key = p_key FOR NO KEY UPDATE;
            IF NOT is_put AND r.version = p_version AND (p_overrides OR r.lease_id IS NULL
                OR r.lease_until <= clock_timestamp() OR r.lease_id IS NOT DISTINCT FROM p_lease)
            THEN
                UPDATE ringback.rows SET version = p_version + 1, sealed = p_sealed, head_attempt = NULL,
                    head_step = NULL WHERE owner = o AND key = p_key;
                IF p_overrides THEN
                    UPDATE ringback.rows SET lease_id = NULL, lease_host = NULL, lease_until = NULL
                        WHERE owner = o AND key = p_key;
                    DELETE FROM ringback.candidates WHERE owner = o AND key = p_key;
                    UPDATE ringback.attempts SET ended_at = clock_timestamp()
                        WHERE owner = o AND key = p_key AND ended_at IS NULL;
                END IF;
                is_put := true;
            END IF;
            IF is_put THEN
                PERFORM ringback.tell(o, r.slot);
            ELSE
                -- The same call again, after its reply was lost.
                is_put := coalesce(r.version = p_version + 1 AND r.sealed = p_sealed, false);
            END IF;
            RETURN QUERY SELECT * FROM ringback.answer(o, p_key, is_put);
        END $$;

        CREATE OR REPLACE FUNCTION ringback.restore(p_schema bigint, p_key bytea, p_version bigint,
            p_sealed bytea) RETURNS SETOF ringback.part \#(Schema.entering)
            changed_slot text;
        BEGIN
            INSERT INTO ringback.rows (owner, key, version, sealed) VALUES (o, p_key, p_version, p_sealed)
                ON CONFLICT (owner, key) DO UPDATE SET version = excluded.version, sealed = excluded.sealed,
                    head_attempt = NULL, head_step = NULL
                WHERE rows.version < excluded.version
                RETURNING slot INTO changed_slot;
            IF changed_slot IS NOT NULL THEN PERFORM ringback.tell(o, changed_slot); END IF;
            RETURN QUERY SELECT * FROM ringback.answer(o, p_key, true);
        END $$;

        """#
}
