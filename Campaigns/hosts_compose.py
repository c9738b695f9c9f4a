"""Examples/database/compose.yaml: Compose takes it, and the server that it describes is what docs/many-hosts.md needs.

No container is started: the package's PostgreSQL gets the settings, as the entry point of the image gives them to it.
"""

import json
import os
import re
import shlex
import shutil

from harness import ROOT, Trouble, output, read, run, until, write
from hosts_database import PRIMARY, Database
from hosts_place import Fleet, Host

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
        with open(os.path.join(self.directory, "password"), "w") as file:
            file.write(self.password + "\n")
        self.tool("initdb", "-D", self.place(PRIMARY), "-U", "postgres", f"--pwfile={file.name}",
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
