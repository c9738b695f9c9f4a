#!/usr/bin/env -S python3 -B
"""Runs the files of share/supabase in a real PostgreSQL, and holds the result to what they promise.

The database is a Supabase project in miniature (project.py). The same walk (profile_walk.py) for names of tables that are
reserved words, have capital letters or take all 63 bytes, with and without profiles-full.sql.
"""


from harness import played, progress
from profile_walk import Walk
from project import Project

NAMES = ["profiles", "users", "user", "Select", "_", "__A9", "table", "public", "Z" * 63, "z" * 62 + "9"]
REFUSED = ["", "9lives", "a-b", 'a"b', "a b", "a;drop", "\u00e4", "a" * 64, "a\n", "public.users", "a'b", "$$", "account_link_audit"]


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
