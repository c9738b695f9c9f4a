"""The database of a Supabase project in miniature: a real PostgreSQL in a private directory, on a Unix socket alone.

Roles, rights and row security are those of a hosted project as far as they matter here: `postgres`, who runs scripts,
is no superuser and does not own the schema auth; every new table is open to anon and authenticated by default.
"""

import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from harness import ROOT, Trouble, output, read, run, started, stop, until

# Who the server runs as when this is root's: PostgreSQL refuses root.
SERVERS = ["postgres", "nobody"]
SECONDS_TO_START = 60
BASE = "base"
SCRIPTS = os.path.join(ROOT, "share/supabase")

ROLES = """
create role anon nologin noinherit;
create role authenticated nologin noinherit;
create role service_role nologin noinherit bypassrls;
create role authenticator login noinherit;
create role supabase_auth_admin login noinherit createrole;
create role postgres login createdb createrole bypassrls;
grant anon, authenticated, service_role to authenticator, postgres;
alter role supabase_auth_admin set search_path = auth;
"""

SCHEMA = """
create schema auth authorization supabase_auth_admin;
grant usage on schema auth to anon, authenticated, service_role, postgres;
grant usage on schema public to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
    grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
    grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
    grant all on sequences to postgres, anon, authenticated, service_role;

set role supabase_auth_admin;
create table auth.users (
    id uuid primary key,
    email varchar(255),
    phone text unique,
    raw_app_meta_data jsonb,
    raw_user_meta_data jsonb,
    last_sign_in_at timestamptz,
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    is_anonymous boolean not null default false
);
create table auth.identities (
    id uuid primary key default gen_random_uuid(),
    provider_id text not null,
    user_id uuid not null references auth.users (id) on delete cascade,
    identity_data jsonb not null default '{}',
    provider text not null,
    unique (provider_id, provider)
);
alter table auth.users enable row level security;
alter table auth.identities enable row level security;
grant all on auth.users, auth.identities to postgres;
create function auth.uid() returns uuid language sql stable as $$
    select coalesce(
        nullif(current_setting('request.jwt.claim.sub', true), ''),
        (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')
    )::uuid
$$;
"""


class Answer:
    """What psql said: rows as they are printed, and the SQLSTATE of what failed."""

    def __init__(self, done):
        self.out = done.stdout.strip()
        self.err = done.stderr.strip()
        self.state = ""
        for line in self.err.splitlines():
            if "ERROR:" in line:
                self.state = line.split("ERROR:", 1)[1].split(":")[0].strip()
                break
        else:
            if done.returncode:
                raise Trouble(f"psql: {done.returncode} {self.err[:500]}")

    def __str__(self):
        return (self.out + "\n" + self.err).strip()[:600]


class PostgreSQL:
    """A private directory in which Debian's PostgreSQL runs, as another user where this is root's: it refuses root."""

    def __init__(self, superuser):
        self.superuser = superuser
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: float(path.split("/")[4]))
        if not found:
            raise Trouble("there is no PostgreSQL below /usr/lib/postgresql: Debian's package postgresql has it")
        self.programs = os.path.dirname(found[-1])
        # Short: a socket's path has 107 bytes at most.
        self.directory = tempfile.mkdtemp(prefix="rb-pg-")
        self.environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "HOME": self.directory}
        self.user = []
        if os.geteuid() == 0:
            user = self.unprivileged()
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self.user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    @staticmethod
    def unprivileged():
        for name in SERVERS:
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
        raise Trouble(f"PostgreSQL does not run as root, and there is no user {' or '.join(SERVERS)}")

    def program(self, name):
        return os.path.join(self.programs, name)

    def run(self, words):
        return output(*words, cwd=self.directory, env=self.environment)

    def tool(self, name, *arguments):
        return self.run([*self.user, self.program(name), *arguments])

    def make_data(self, place, *arguments):
        self.tool("initdb", "-D", place, "-U", self.superuser, "-E", "UTF8", "--locale=C.UTF-8", *arguments)

    def launch(self, place, socket, settings, prefix=()):
        """Starts a server, and waits until it answers at this directory's socket."""
        words = [*prefix, *self.user, self.program("postgres"), "-D", place, "-k", socket]
        words += [word for setting in settings for word in ["-c", setting]]
        server = started(words, os.path.join(self.directory, "log"), env=self.environment, cwd=self.directory)
        ready = [self.program("pg_isready"), "-q", "-h", socket]
        until("PostgreSQL", lambda: subprocess.run(ready, env=self.environment).returncode == 0
              or server.poll() is not None, SECONDS_TO_START)
        if server.poll() is not None:
            raise Trouble("PostgreSQL did not start: " + self.log()[-800:])
        return server

    def log(self):
        """All that the servers have written into their log."""
        return read(os.path.join(self.directory, "log"))


class Project(PostgreSQL):
    """A server; `use` chooses one of its databases."""

    def __init__(self):
        super().__init__("supabase_admin")
        self.data = os.path.join(self.directory, "data")
        self.environment["PGHOST"] = self.directory
        self.server = None
        self.database = BASE

    def start(self):
        self.make_data(self.data, "--no-sync", "--auth-local=trust", "--auth-host=reject")
        self.server = self.launch(self.data, self.directory, ["listen_addresses=", "fsync=off", "shared_buffers=16MB"])
        self.psql("supabase_admin", ROLES + f"create database {BASE} owner postgres;", database="postgres")
        self.psql("supabase_admin", SCHEMA)

    def use(self, database):
        """A fresh project under this name."""
        self.psql("supabase_admin", f"create database {database} template {BASE} owner postgres;", "postgres")
        self.database = database

    def psql(self, role, text, database=None, may_fail=False, more=()):
        """Runs the text as a role that signs in itself."""
        command = [self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose",
                   "-U", role, "-d", database or self.database, *more]
        answer = Answer(run(*command, env=self.environment, cwd=self.directory, input=text, errors="replace", timeout=60))
        if answer.state and not may_fail:
            raise Trouble(f"{role}: {answer}")
        return answer

    def run_profiles(self, table=None, full=False):
        """Runs the files of share/supabase as a person does, but for what psql shows."""
        files = ["profiles.sql", "profiles-full.sql"] if full else ["profiles.sql"]
        more = [] if table is None else ["-v", f"table={table}"]
        for name in files:
            more += ["-f", os.path.join(SCRIPTS, name)]
        return self.psql("postgres", "", may_fail=True, more=more)

    def auth(self, text):
        """As the authentication server does."""
        return self.psql("supabase_auth_admin", text, may_fail=True)

    def rest(self, person, text, role=None):
        """As the REST endpoint does it for a person's id; None: for anon."""
        claims = {"role": role or ("authenticated" if person else "anon")}
        if person:
            claims["sub"] = person
        return self.psql("authenticator", f"begin;\nset local role {claims['role']};\n"
                         f"set local request.jwt.claims = '{json.dumps(claims)}';\n{text};\ncommit;\n", may_fail=True)

    def shape(self):
        """Everything that the database has but rows, as text."""
        text = self.tool("pg_dump", "--schema-only", "-U", "supabase_admin", "-d", self.database)
        # Newer versions begin and end with a random word.
        return "\n".join(line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))

    def close(self, keep=False):
        if self.server is not None:
            # "Fast": sessions are ended, nothing is waited for.
            stop(self.server, signal.SIGINT)
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
