"""The commands of docs/many-hosts.md, as a person types them, one after the other."""

import json
import re
import subprocess

from harness import until
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
