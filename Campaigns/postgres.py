#!/usr/bin/env -S python3 -B
"""Runs the files of share/supabase in a real PostgreSQL, and holds the result to what they promise.

The database is a Supabase project in miniature (project.py). The same walk, in the order of a person's life, for names of
tables that are reserved words, have capital letters or take all 63 bytes, with and without profiles-full.sql.
"""

import json
import uuid

from harness import played, progress
from project import Project

NAMES = ["profiles", "users", "user", "Select", "_", "__A9", "table", "public", "Z" * 63, "z" * 62 + "9"]
REFUSED = ["", "9lives", "a-b", 'a"b', "a b", "a;drop", "\u00e4", "a" * 64, "a\n", "public.users", "a'b", "$$", "account_link_audit"]

FORBIDDEN = "42501"
FAR = "https://pictures.example.org/a.png"


def literal(value):
    return "null" if value is None else "'" + str(value).replace("'", "''") + "'"


class Walk:
    """One table name, lean or full, in a database of its own."""

    def __init__(self, report, project, name, full):
        self.report, self.project, self.name, self.full = report, project, name, full
        self.table = f'public."{name}"'
        self.where = f"{name[:12]}{' in full' if full else ''}"

    def expect(self, is_right, what, why=""):
        self.report.note(bool(is_right), f"{self.where}: {what}", str(why))

    def same(self, found, wanted, what):
        self.expect(found == wanted, what, f"{found!r}, not {wanted!r}")

    def refused(self, answer, state, what):
        self.expect(getattr(answer, "state", None) == state, what, f"{state} expected: {answer}")

    def run(self):
        return self.project.run_profiles(self.name, self.full)

    def row(self, person):
        """The person's row as it stands, by nobody's leave."""
        out = self.project.psql("supabase_admin", f"select to_jsonb(p) from {self.table} p where id = '{person}'").out
        return json.loads(out) if out else None

    def call(self, person, function, **given):
        """A call by RPC: (its row, or what psql said)."""
        named = ", ".join(f"{key} => {literal(value)}" for key, value in given.items())
        answer = self.project.rest(person, f"select to_jsonb(r) from public.{function}({named}) r")
        return json.loads(answer.out) if not answer.state and answer.out else answer

    def sign_up(self, email, metadata=None, phone=None):
        person = str(uuid.uuid4())
        answer = self.project.auth(
            f"insert into users (id, email, phone, raw_user_meta_data) values ('{person}', {literal(email)}, "
            f"{literal(phone)}, {literal(json.dumps(metadata or {}))});"
            f"insert into identities (provider_id, user_id, provider) values ('{person}', '{person}', 'email');")
        self.expect(not answer.state, f"the sign-up of {email}", answer)
        return person

    def go(self, database):
        self.project.use(database)
        try:
            self.live()
        except (AttributeError, KeyError, TypeError) as surprise:
            # A row where a refusal was expected, or the other way round; the complaint before says which.
            self.expect(False, "the walk ends", f"{type(surprise).__name__} {surprise}")

    def live(self):
        early = self.sign_up("early@example.org", {"full_name": "Early Bird"})
        answer = self.run()
        self.expect(not answer.state and not answer.err, "the script runs", answer)
        shape = self.project.shape()
        self.same((self.row(early) or {}).get("full_name"), "Early Bird", "who signed up before has a row")
        self.people()
        self.access()
        self.calls()
        self.ending()
        if self.full:
            self.extras()
        self.failures()
        count = self.project.psql("supabase_admin", f"select count(*), max(updated_at) from {self.table}").out
        again = self.run()
        self.expect(not again.state and not again.err, "the script runs again", again)
        self.same(self.project.psql("supabase_admin", f"select count(*), max(updated_at) from {self.table}").out, count,
                  "the second run leaves the rows")
        self.expect(self.project.shape() == shape, "the second run changes nothing", "the schema differs")
        if self.full:
            self.project.run_profiles(self.name)
            self.expect(self.project.shape() == shape, "a run of profiles.sql alone takes nothing away", "the schema differs")

    def people(self):
        """Rows appear, and follow auth.users."""
        for metadata, name, picture in [
            ({"full_name": "Ada Lovelace", "avatar_url": FAR}, "Ada Lovelace", FAR),
            ({"name": " Ada ", "picture": FAR}, "Ada", FAR),
            ({"given_name": "Ada", "family_name": "Lovelace"}, "Ada Lovelace", None),
            ({"full_name": "", "name": "Ada"}, "Ada", None),
            ({"full_name": "x" * 500, "avatar_url": "https://a/" + "x" * 3000}, "x" * 200, None),
            ({"avatar_url": "javascript:alert(1)"}, None, None),
            ({"full_name": "O'Hara \"; drop $$ \\ –"}, "O'Hara \"; drop $$ \\ –", None),
            ([1], None, None),
        ]:
            row = self.row(self.sign_up("a@example.org", metadata)) or {}
            self.same((row.get("email"), row.get("full_name"), row.get("avatar_url"), row.get("is_active")),
                      ("a@example.org", name, picture, True), f"the row of {str(metadata)[:40]}")
        row = self.row(self.sign_up("", phone="4915112345678")) or {}
        self.same((row.get("email"), row.get("phone")), (None, "+4915112345678"), "the row of a telephone number")

        bob = self.sign_up("bob@example.org", {"full_name": "Bob"})
        before = self.row(bob)
        self.project.auth(f"update users set last_sign_in_at = now() where id = '{bob}'")
        self.same(self.row(bob), before, "a sign-in changes nothing")
        self.project.auth(f"update users set email = 'new@example.org' where id = '{bob}'")
        row = self.row(bob)
        self.same((row["email"], row["full_name"]), ("new@example.org", "Bob"), "the e-mail address follows")
        self.expect(row["updated_at"] > before["updated_at"] and row["created_at"] == before["created_at"],
                    "updated_at moves, created_at does not", row)
        self.metadata(bob, {"full_name": "Robert"})
        self.same(self.row(bob)["full_name"], "Robert", "a name that is the provider's follows")
        self.metadata(bob, {})
        self.same(self.row(bob)["full_name"], "Robert", "a name that is told once stays")
        self.metadata(bob, {"full_name": "Robert"})
        self.call(bob, "update_profile", full_name="Bobby")
        self.metadata(bob, {"full_name": "Rob", "avatar_url": FAR})
        row = self.row(bob)
        self.same((row["full_name"], row["avatar_url"]), ("Bobby", FAR), "a name that the person chose stays")
        self.project.psql("supabase_admin", f"delete from {self.table} where id = '{bob}'")
        self.metadata(bob, {"full_name": "Back"})
        self.same((self.row(bob) or {}).get("full_name"), "Back", "a lost row comes back with a change")
        self.project.auth(f"delete from users where id = '{bob}'")
        self.same(self.row(bob), None, "the row goes with the person")

    def metadata(self, person, value):
        self.project.auth(f"update users set raw_user_meta_data = {literal(json.dumps(value))} where id = '{person}'")

    def access(self):
        """Everybody the own row, by the REST endpoint."""
        ada, eve = self.sign_up("ada@example.org", {"full_name": "Ada"}), self.sign_up("eve@example.org")
        rest, table = self.project.rest, self.table
        self.same(rest(ada, f"select id from {table}").out, ada, "a person sees the own row alone")
        self.same(rest(eve, f"select count(*) from {table} where id = '{ada}'").out, "0", "not another's")
        self.same(rest(ada, f"update {table} set full_name = 'A' returning full_name").out, "A", "changes the own row")
        self.same(rest(eve, f"update {table} set full_name = 'E' where id = '{ada}' returning 1").out, "",
                  "does not change another's")
        self.same(self.row(ada)["full_name"], "A", "another's is as it was")
        for column, value in [("email", "'x'"), ("is_active", "false"), ("deactivated_by", "null"), ("phone", "'1'"),
                              ("id", f"'{uuid.uuid4()}'"), ("updated_at", "now()"), ("created_at", "now()")]:
            self.refused(rest(ada, f"update {table} set {column} = {value}"), FORBIDDEN, f"{column} is not theirs")
        for person, who in [(ada, "a person"), (None, "anon")]:
            self.refused(rest(person, f"insert into {table} (id) values ('{ada}')"), FORBIDDEN, f"{who} inserts")
            self.refused(rest(person, f"delete from {table}"), FORBIDDEN, f"{who} deletes")
            self.refused(rest(person, f"truncate {table}"), FORBIDDEN, f"{who} truncates")
            self.refused(rest(person, "select ringback.phone('1')"), FORBIDDEN, f"{who} calls an inner function")
        self.refused(rest(None, f"select 1 from {table}"), FORBIDDEN, "anon reads")
        self.refused(rest(None, f"update {table} set full_name = 'x'"), FORBIDDEN, "anon writes")
        count = rest(None, f"select count(*) > 1 from {table}", role="service_role")
        self.same(count.out, "t", "service_role sees all")
        # Whether a missing wall would be noticed.
        self.project.psql("postgres", f"alter table {table} disable row level security")
        self.expect(rest(eve, f"select count(*) from {table} where id = '{ada}'").out == "1",
                    "without row security another's row is seen", "this test sees nothing")
        self.project.psql("postgres", f"alter table {table} enable row level security")

    def functions(self):
        more = ["reactivate_account", "delete_account"] if self.full else []
        return ["get_or_create_profile", "update_profile", "deactivate_account"] + more

    def calls(self):
        for function in self.functions():
            for role in ["anon", "service_role"]:
                answer = self.project.rest(None, f"select public.{function}()", role)
                self.expect("permission denied for function" in answer.err, f"{role} calls {function}", answer)
            nobody = self.project.psql("authenticator", "begin; set local role authenticated;"
                                       f"select public.{function}(); commit;", may_fail=True)
            self.refused(nobody, FORBIDDEN, f"{function} without a person")
        stranger = str(uuid.uuid4())
        self.refused(self.call(stranger, "get_or_create_profile"), "PT404", "a person who is gone")

        ada = self.sign_up("ada@example.org", {"full_name": "Ada"}, phone="1555")
        self.same(self.call(ada, "get_or_create_profile"), self.row(ada), "the profile that is there")
        self.project.psql("supabase_admin", f"delete from {self.table} where id = '{ada}'")
        row = self.call(ada, "get_or_create_profile")
        self.same((row["email"], row["phone"], row["full_name"]), ("ada@example.org", "+1555", "Ada"), "a made profile")
        # Types of the caller's own making are not taken for ours.
        slipped = self.project.rest(ada, "create domain pg_temp.uuid as pg_catalog.uuid check (false);"
                                    "create domain pg_temp.text as pg_catalog.text check (false);"
                                    "select (public.get_or_create_profile()).email")
        self.same(slipped.out, "ada@example.org", f"the caller's own types are left alone ({slipped})")

        update = {"full_name": " A. Lovelace ", "avatar_url": FAR}
        row = self.call(ada, "update_profile", **update)
        self.same((row["full_name"], row["avatar_url"]), ("A. Lovelace", FAR), "update_profile")
        row = self.call(ada, "update_profile", full_name="Countess")
        self.same((row["full_name"], row["avatar_url"]), ("Countess", FAR), "what is not given stays")
        self.same(self.call(ada, "update_profile", avatar_url="")["avatar_url"], None, "an empty text clears")
        for given in [{"full_name": "x" * 201}, {"avatar_url": "javascript:alert(1)"}, {"avatar_url": "http://a b"}]:
            self.refused(self.call(ada, "update_profile", **given), "23514", f"update_profile {str(given)[:40]}")
        self.refused(self.project.rest(ada, f"update {self.table} set avatar_url = 'data:x'"), "23514",
                     "the same rule without the function")

    def ending(self):
        ada, eve = self.sign_up("ada@example.org", {"full_name": "Ada"}), self.sign_up("eve@example.org")
        row = self.call(ada, "deactivate_account")
        self.expect(row["is_active"] is False and row["deactivated_at"] and row["deactivated_by"] == ada,
                    "deactivate_account", row)
        self.same(self.row(eve)["is_active"], True, "nobody else is deactivated")
        self.same(self.call(ada, "deactivate_account"), row, "deactivated twice")
        self.same(self.project.rest(ada, f"select is_active from {self.table}").out, "f", "still to be read")
        self.refused(self.call(ada, "update_profile", full_name="x"), "PT403", "not to be changed")
        self.same(self.project.rest(ada, f"update {self.table} set full_name = 'x' returning 1").out, "", "nor directly")
        self.project.auth(f"update users set email = 'later@example.org' where id = '{ada}'")
        self.same(self.row(ada), row, "an inactive row is left as it is")
        self.same(self.call(ada, "get_or_create_profile"), row, "get_or_create_profile tells that it is inactive")
        back = self.project.rest(None, f"update {self.table} set is_active = true where id = '{ada}' returning "
                                 "deactivated_at is null and deactivated_by is null", role="service_role")
        self.same(back.out, "t", "service_role reactivates")
        self.same(self.call(ada, "get_or_create_profile")["email"], "later@example.org", "and the address is caught up")

    def extras(self):
        ada, eve = self.sign_up("ada@example.org", {"full_name": "Ada"}), self.sign_up("eve@example.org")
        self.call(ada, "deactivate_account")
        self.project.auth(f"update users set email = 'later@example.org' where id = '{ada}'")
        row = self.call(ada, "reactivate_account")
        self.same((row["is_active"], row["email"], row["deactivated_at"], row["deactivated_by"]),
                  (True, "later@example.org", None, None), "reactivate_account")
        self.same(self.call(ada, "reactivate_account"), row, "reactivated twice")
        self.project.rest(None, f"update {self.table} set is_active = false where id = '{ada}'", role="service_role")
        self.refused(self.call(ada, "reactivate_account"), "PT403", "what others ended")
        self.call(ada, "deactivate_account")
        self.refused(self.call(ada, "reactivate_account"), "PT403", "nor by way of deactivate_account")

        row = self.call(eve, "delete_account")
        self.same((row["is_active"], row["email"], row["full_name"]), (False, None, None), "delete_account")
        self.metadata(eve, {"full_name": "Eve again"})
        self.same(self.call(eve, "get_or_create_profile"), row, "what is deleted stays forgotten")
        self.refused(self.call(eve, "reactivate_account"), "PT403", "what is deleted")
        self.same(self.call(eve, "delete_account"), row, "deleted twice")

        audit = "select string_agg(event || ' ' || provider, ', ' order by happened_at, event) " \
                "from public.account_link_audit"
        self.project.auth(f"insert into identities (provider_id, user_id, provider) values ('g-{ada}', '{ada}', 'google')")
        self.project.auth(f"delete from identities where user_id = '{ada}' and provider = 'email'")
        self.same(self.project.rest(ada, audit).out, "linked email, linked google, unlinked email", "the audit")
        self.same(self.project.rest(eve, audit).out, "linked email", "the audit of another")
        self.refused(self.project.rest(None, audit), FORBIDDEN, "anon reads the audit")
        for statement in ["delete from", "truncate", "update {} set provider = ''", "insert into {} default values"]:
            text = statement.format("public.account_link_audit") if "{}" in statement else \
                f"{statement} public.account_link_audit"
            self.refused(self.project.rest(ada, text), FORBIDDEN, f"a person writes the audit: {statement[:8]}")
        self.project.auth(f"delete from users where id = '{ada}'")
        count = f"select count(*) from public.account_link_audit where user_id = '{ada}'"
        self.same(self.project.psql("supabase_admin", count).out, "3", "no line when the person goes")

    def failures(self):
        """A table that takes no rows keeps nobody out."""
        self.project.psql("postgres", f"alter table {self.table} add column must int; update {self.table} set must = 1;"
                          f"alter table {self.table} alter column must set not null")
        ada = self.sign_up("ada@example.org")
        self.same(self.row(ada), None, "no profile where none can be written")
        self.refused(self.call(ada, "get_or_create_profile"), "23502", "the mistake is told")
        self.project.psql("postgres", f"alter table {self.table} drop column must")
        self.same(self.call(ada, "get_or_create_profile")["id"], ada, "made when it can be")


class Cases:
    """What is there before the script comes, and what comes after it."""

    def __init__(self, report, project):
        self.report, self.expect, self.project = report, report.note, project

    def go(self):
        self.names()
        for index, case in enumerate([self.foreign_table, self.own_table, self.another_table, self.long_names]):
            self.project.use(f"case{index}")
            case()

    def names(self):
        before = self.project.shape()
        for name in REFUSED:
            answer = self.project.run_profiles(name, full=True)
            self.expect(answer.state == "P0001" and "The name of the table" in answer.err,
                        f"the name {name[:12]!r} is refused", answer)
        self.expect(self.project.shape() == before, "a refused name leaves nothing", "the schema differs")

    def foreign_table(self):
        """A table that is no profile table: refused, and nothing is left of the script."""
        for definition in ["id bigint primary key", "id uuid", "name text", "id uuid, n int, unique (id, n)"]:
            self.project.psql("postgres", f"create table public.profiles ({definition})")
            before = self.project.shape()
            answer = self.project.run_profiles(full=True)
            self.expect(answer.state == "P0001" and "unique uuid column id" in answer.err, f"({definition}) is refused",
                        answer)
            self.expect(self.project.shape() == before, f"({definition}) is left as it was", "the schema differs")
            self.project.psql("postgres", "drop table public.profiles")
        self.project.psql("postgres", "create view public.profiles as select 1 as id")
        answer = self.project.run_profiles()
        self.expect(answer.state, "a view is refused", answer)

    def own_table(self):
        """The app's own table, with a column and rights of its own."""
        self.project.psql("postgres", """
            create table public.users (id uuid primary key references auth.users on delete cascade, bio json,
                person text, own text, full_name varchar(300));
            grant select (bio) on public.users to anon;""")
        walk = Walk(self.report, self.project, "users", False)
        ada = walk.sign_up("ada@example.org", {"full_name": "Ada"})
        answer = walk.run()
        self.expect(not answer.state and not answer.err, "a table that is there already is taken", answer)
        self.expect((walk.row(ada) or {}).get("full_name") == "Ada", "who signed up before has a row", walk.row(ada))
        change = "update public.users set bio = '{}' returning 1"
        self.expect(self.project.rest(ada, change).state == "42501", "its columns are closed at first")
        self.project.psql("postgres", "grant update (bio) on public.users to authenticated")
        walk.run()
        answer = self.project.rest(ada, change)
        self.expect(answer.out == "1", "what was granted since then stays", answer)
        row = walk.call(ada, "update_profile", full_name="A")
        self.expect(isinstance(row, dict) and row["full_name"] == "A", "columns named as our variables are", row)
        self.expect(walk.call(ada, "get_or_create_profile") == row, "and get_or_create_profile")

    def another_table(self):
        """Run for another table: each keeps its trigger, and the functions go with the new one."""
        old = Walk(self.report, self.project, "profiles", True)
        new = Walk(self.report, self.project, "Users", True)
        old.run()
        ada = new.sign_up("ada@example.org")
        answer = new.run()
        self.expect(not answer.state and not answer.err, "another table", answer)
        eve = new.sign_up("eve@example.org")
        self.expect(old.row(ada) and new.row(ada) and new.row(eve) and old.row(eve), "both tables get the rows")
        self.expect(new.call(eve, "update_profile", full_name="E") == new.row(eve), "the functions are the new one's")

    def long_names(self):
        """Indexes of tables whose names differ in the end only."""
        for name in ["q" * 62 + "1", "q" * 62 + "2"]:
            answer = self.project.run_profiles(name, full=True)
            indexes = self.project.psql(
                "postgres", f"select count(*) from pg_indexes where tablename = '{name}'").out
            self.expect(not answer.state and indexes == "4", f"{name[-3:]} has its four indexes", f"{answer} {indexes}")


@played(only=("", "only tables with this in their names"))
def campaign(chosen, report, places):
    project = places.add(Project(), chosen.keep)
    project.start()
    print(project.psql("supabase_admin", "select version()").out)
    Cases(report, project).go()
    for index, name in enumerate(NAMES[:2] if chosen.short else NAMES):
        if chosen.only in name:
            progress(f"the table {name}")
            for full in [False, True]:
                Walk(report, project, name, full).go(f"walk{index}{'full' if full else ''}")
    # What the triggers swallowed, but for what was meant to fail.
    strange = [line for line in project.log().splitlines()
               if "WARNING" in line and "violates not-null constraint" not in line]
    report.note(not strange, "the server's log", "; ".join(strange[:5]))
    listening = project.psql("supabase_admin", "show listen_addresses").out
    report.note(listening == "", "the server", f"listens at {listening}")
