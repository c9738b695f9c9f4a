"""The commands of docs/many-hosts.md, as a person types them, one after the other; and Examples/database/compose.yaml: Compose
takes it, and the server that it describes is what these commands need.

No container is started: the package's PostgreSQL gets the settings, as the entry point of the image gives them to it.
"""

import json
import os
import re
import shlex
import shutil
import subprocess

from harness import ROOT, Trouble, output, read, run, until, write
from hosts_database import PRIMARY, Database
from hosts_place import OWNER, Fleet, Host

# How a role's password is given to the server: what it is checked with, without the password.
VERIFIER = "SCRAM-SHA-256$"
COMMANDS = ["init", "join", "move", "invite", "share", "hosts", "remove-host", "status", "migrate"]


def commands(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 1), chosen.keep)
    typed = set()

    def expect(is_right, what, why):
        typed.add(what.split()[0])
        report.note(is_right, f"vault {what}", why)

    def keep_from_log(passwords, what, former):
        """The server logs each statement: a verifier that was not there before is in its log, and no password is. Returns how
        many verifiers there are."""
        log = fleet.database.log()
        count = log.count(VERIFIER)
        expect(count > former, what, "no new verifier is in the server's log: the search would not find a password")
        expect(not any(password in log for password in passwords), what, "the password is in the server's log")
        return count

    database = fleet.database.administrator()
    first = fleet.hosts[0]
    # The fleet was made by init and join.
    typed |= {"init", "join"}
    fleet.database.log_statements()
    verifiers = fleet.database.log().count(VERIFIER)
    said = fleet.administrate("init", database, "--owner", "eve", "--host-url", fleet.database.url("10.77.0.1"))
    password = re.search(r"^The invitation's password, for 60 min: (\S{40,})$", said, re.M)
    store = re.search(r'^\[vault\]\nstore = "(postgresql://ringback_[0-9a-f]{20}@10.77.0.1/vault\?sslrootcert=\S+)"$', said,
                      re.M)
    expect(password and store, "init", said)
    passwords = [password.group(1)] if password else []
    verifiers = keep_from_log(passwords, "init", verifiers)
    said = fleet.administrate("migrate", database)
    expect(said == "", "migrate", said)
    said = fleet.administrate("status", database, status=1)
    expect("Owners     2" in said and "Hosts      2" in said and "version 1" in said, "status URL", said)
    expect("No standby is synchronous" in said and "Notifications" not in said and "does not sync" not in said,
           "status URL", said)
    said = first.type("vault", "status")
    expect("10.77.0.1" in said and "Unsent" not in said, "status", said)
    fleet.sign_in()
    expect("is in postgresql://" in first.type("vault", "move"), "move", "")

    # A second host, in text: its command waits until the code is typed on the first one.
    said = first.type("vault", "invite")
    password = re.search(r"^The invitation's password, for \S.*: (\S{40,})$", said, re.M).group(1)
    typed.add("invite")
    passwords.append(password)
    verifiers = keep_from_log(passwords, "invite", verifiers)
    late = places.add(Host(fleet, "late"))
    late.configure(store=re.search(r'^store = "(.+)"$', said, re.M).group(1))
    late.start()
    waits = subprocess.Popen(
        [late.program(), "vault", "join", "--name", "late"], env=late.environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    waits.stdin.write(password + "\n")
    waits.stdin.flush()
    code = waits.stdout.readline().strip()
    expect(re.fullmatch(r"([0-9A-Z]{5}-){3}[0-9A-Z]{5}", code), "join", f"{code} {waits.poll()}")
    wrong = ("3" if code[0] == "2" else "2") + code[1:]
    # In the arguments it could be read by other users; a code that has failed is dead.
    first.type("vault", "share", code, status=64)
    first.type("vault", "share", given=wrong + "\n", status=1)
    first.type("vault", "share", given=wrong + "\n", status=1)
    expect(late.vault.get("locked") is True and late.token is None, "share", "a wrong code has opened the vault")
    said = first.type("vault", "share", given=code + "\n")
    expect("late has got the key" in said, "share", said)
    out, err = waits.communicate(timeout=60)
    expect(waits.returncode == 0 and "The vault is open" in out, "join", f"{waits.returncode} {out} {err}")
    until("the session on the second host", lambda: late.token and late.token == first.token)
    # A host that joins takes a password of its own, which it tells nobody; the invitation's ends.
    keep_from_log(passwords, "join", verifiers)

    said = first.type("vault", "hosts")
    expect(f"{first.name} (this one)" in said and "late" in said, "hosts", said)
    hosts = json.loads(first.type("vault", "hosts", "--json"))["hosts"]
    role = next(host["role"] for host in hosts if host["name"] == "late")
    before, token = fleet.requests, late.token
    said = first.type("vault", "remove-host", "late")
    expect("late was removed" in said and fleet.requests == before + 1, "remove-host",
           f"{said}, {fleet.requests - before} refreshes")
    expect(fleet.is_honoured(first.token) and first.token != token, "remove-host", "the session was not refreshed")
    expect(fleet.database.sql(f"select count(*) from pg_roles where rolname = '{role}'") == "0", "remove-host",
           "its role is there")
    status, answer = late.refresh()
    expect(status != 200 and fleet.is_honoured(first.token), "remove-host",
           f"a removed host's refresh answered {status} {answer}")
    expect("late" not in first.type("vault", "hosts"), "hosts", "the removed host is listed")
    missing = sorted(set(COMMANDS) - typed)
    report.note(not missing, "commands", f"not typed: {missing}")
    report.note(fleet.database.sql(f"select count(*) from ringback.owners where name = '{OWNER}'") == "1", "the owner", "")


FILE = os.path.join(ROOT, "Examples/database/compose.yaml")
DOCUMENT = os.path.join(ROOT, "docs/many-hosts.md")
NAME = "db.example.org"
# Of the image, up to version 17.
DATA = "/var/lib/postgresql/data"
# Changes of the file that Compose must refuse: else it has not looked.
BROKEN = [("    restart: unless-stopped", "    restarts: unless-stopped"), ("      - data:", "      - date:")]


def composed(text, directory):
    """What Compose says against a file; "" if nothing."""
    path = write(os.path.join(directory, "compose.yaml"), text)
    done = run("docker-compose", "-f", path, "config", "-q", cwd=directory)
    return done.stderr.strip() or done.returncode


def parsed(text):
    """The file's content. The parser is the system's Python's, which need not be this one."""
    program = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"
    return json.loads(output("/usr/bin/python3", "-c", program, input=text))


def documented(verb):
    """The arguments of a command that the document prints for an administrator."""
    lines = re.findall(rf"^ringback vault {verb} (postgresql://.*)$", read(DOCUMENT), re.M)
    if len(lines) != 1:
        raise Trouble(f"{DOCUMENT} has {len(lines)} commands that begin with `ringback vault {verb} postgresql:`")
    return shlex.split(lines[0])


class Composed(Database):
    """The server of the file."""

    password = "a password of the administrator"

    def __init__(self, hub, service):
        self.service = service
        super().__init__(hub)

    def make(self):
        self.certificates()
        settings = self.service["environment"]
        password = write(os.path.join(self.directory, "password"), self.password + "\n", 0o644)
        self.tool("initdb", "-D", self.place(PRIMARY), "-U", "postgres", f"--pwfile={password}",
                  *shlex.split(settings["POSTGRES_INITDB_ARGS"]))
        with open(os.path.join(self.place(PRIMARY), "pg_hba.conf"), "a") as file:
            file.write(f"host all all all {settings['POSTGRES_HOST_AUTH_METHOD']}\n")
        self.start(PRIMARY)
        self.sql(f"create database {settings['POSTGRES_DB']}", database="postgres")

    def settings(self, address):
        """The command's, with the places of the files that are mounted; and where it listens."""
        mounted = {target: os.path.join(self.directory, source)
                   for source, target, *_ in (volume.split(":") for volume in self.service["volumes"])}
        words = self.service["command"]
        if words[:1] != ["postgres"] or set(words[1::2]) != {"-c"}:
            raise Trouble(f"the command is {words}")
        pairs = [word.split("=", 1) for word in words[2::2]]
        return [f"listen_addresses={address}", *(f"{name}={mounted.get(value, value)}" for name, value in pairs)]


def compose(chosen, report, places):
    if not shutil.which("docker-compose"):
        return report.skip("compose.yaml", "there is no docker-compose")
    text = read(FILE)
    content = parsed(text)
    service = content["services"]["database"]
    fleet = places.add(Fleet(chosen.bin, 0, database=lambda hub: Composed(hub, service)), chosen.keep)
    accepted(report, text, fleet.directory)
    consistent(report, text, content, service)
    used(report, fleet, service)


def accepted(report, text, directory):
    said = composed(text, directory)
    report.note(not said, "compose.yaml", said)
    for right, wrong in BROKEN:
        report.note(right in text and composed(text.replace(right, wrong, 1), directory), "Compose",
                    f"it takes {wrong.strip()!r}")


def consistent(report, text, content, service):
    """What the parser does not compare."""
    environment, files = service["environment"], content["secrets"]
    secrets = {f"/run/secrets/{name}" for name in service["secrets"]}
    report.note(set(service["secrets"]) == set(files), "the secrets", f"{service['secrets']} of {list(files)}")
    report.note(environment["POSTGRES_PASSWORD_FILE"] in secrets, "the password", f"is not one of {secrets}")
    volumes = dict(volume.split(":")[:2] for volume in service["volumes"])
    report.note(volumes["data"] == DATA and 14 <= int(service["image"].rsplit(":", 1)[1]) <= 17, "the data",
                f"{service['image']} at {volumes['data']}")
    head = text[:text.index("services:")]
    named = [source for source in [*volumes, *(secret["file"] for secret in files.values())] if source.startswith("./")]
    report.note(len(named) == 3 and all(f"`{name[2:]}`" in head for name in named), "the comment",
                f"does not name all of {named}")
    url = documented("init")[0]
    report.note(url == f"postgresql://postgres@{NAME}/{environment['POSTGRES_DB']}" and service["ports"] == ["5432:5432"],
                "docs/many-hosts.md", f"{url}, {service['ports']}")


def used(report, fleet, service):
    """The document's commands, with an address in place of the name, and the test's authority."""
    database, host = fleet.database, None

    def there(words):
        return [word.replace(NAME, PRIMARY) + f"?sslrootcert={database.authority}" if word.startswith("postgresql:") else word
                for word in words]

    given = database.password + "\n"
    probe = service["healthcheck"]["test"]
    done = run(*database.user, database.program(probe[1]), *probe[2:],
               env=database.environment | {"PGHOST": database.socket(PRIMARY)})
    report.note(probe[0] == "CMD" and done.returncode == 0, "the health check", f"{done.returncode} {done.stderr}")
    for name in ["ssl", "data_checksums", "password_encryption"]:
        value = database.sql(f"show {name}", database="postgres")
        report.note(value in ("on", "scram-sha-256"), "the server", f"{name} is {value}")
    try:
        invitation = json.loads(fleet.administrate("init", *there(documented("init")), "--json", given=given))
        host = Host(fleet, "first")
        fleet.hosts.append(host)
        fleet.join(host, invitation)
        host.type("vault", "move")
        fleet.sign_in(host)
        status, answer = host.refresh()
        report.note(status == 200, "a refresh", f"{status} {answer}")
        said = fleet.administrate("status", *there(documented("status")), given=given, status=1)
        report.note("Owners     1" in said and "No standby is synchronous" in said, "vault status URL", said)
        said = fleet.administrate("migrate", *there(documented("migrate")), given=given)
        report.note(said == "", "vault migrate URL", said)
        until("the session after all that", lambda: host.token, 30)
        wrong = fleet.administrate("status", *there(documented("status")), given="no password\n", status=None)
        report.note("password" in wrong, "a wrong password", wrong)
        plain = database.sql("select count(*) from pg_stat_ssl s join pg_stat_activity a using (pid) "
                             "where a.usename like 'ringback_%' and not ssl", database="postgres")
        report.note(plain == "0", "TLS", f"{plain} connections are without")
    except Trouble as trouble:
        report.note(False, "the document's commands", trouble)
