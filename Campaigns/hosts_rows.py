"""The administrator changes rows while daemons use them: an older one is put back, rows are cut, exchanged and deleted."""

from harness import table, until
from hosts_place import SESSION, Fleet
from house import ACCOUNT

OTHER = "other"


class Row:
    """The row of one account's session, as a superuser sees it."""

    def __init__(self, database, key):
        self.database, self.key = database, key

    @staticmethod
    def keys(database):
        return set(database.sql("select encode(key, 'hex') from ringback.rows").split())

    @property
    def content(self):
        """Version and sealed content."""
        version, sealed = self.database.sql(
            f"select version, encode(sealed, 'hex') from ringback.rows where key = '\\x{self.key}'").split("|")
        return int(version), sealed

    def put(self, version, sealed):
        self.database.sql(f"update ringback.rows set version = {version}, sealed = '\\x{sealed}' where key = '\\x{self.key}'")

    def delete(self):
        self.database.sql(f"delete from ringback.rows where key = '\\x{self.key}'")


class Tampering:
    def __init__(self, fleet, report):
        self.fleet, self.report = fleet, report
        self.shown = []
        before = Row.keys(fleet.database)
        fleet.sign_in()
        self.row = Row(fleet.database, (Row.keys(fleet.database) - before).pop())
        before = Row.keys(fleet.database)
        fleet.hosts[0].sign_in(OTHER)
        self.other = Row(fleet.database, (Row.keys(fleet.database) - before).pop())
        for host in fleet.hosts:
            until("the other session", lambda host=host: host.api("GET", f"/v1/accounts/{OTHER}/session")[0] == 200)

    def refresh(self, where):
        """One refresh on each host, which all get."""
        fleet = self.fleet
        for host in fleet.hosts:
            before = fleet.requests
            status, answer = host.refresh()
            self.report.note(status == 200, where, f"{host.name}: a refresh answered {status} {answer.get('detail')}")
            fleet.await_token(host.token)
            self.report.note(fleet.requests == before + 1, where, f"{fleet.requests - before} refresh requests")
        self.report.note(fleet.is_honoured(fleet.agreed()), where, "the session has ended")

    def mended(self, where, change):
        """What hosts mend by themselves: they have what is newer."""
        newest = self.row.content[0]
        change()
        self.refresh(where)
        version = self.row.content[0]
        self.report.note(version > newest, where, f"the row has version {version}, it had {newest}")
        self.shown.append([where, "put back"])

    def refused(self, where, change, heal):
        """What no host takes: it serves what it has, also after a new start, and asks nothing of the provider."""
        fleet, report = self.fleet, self.report
        token = fleet.agreed()
        change()
        before = fleet.requests
        for host in fleet.hosts:
            status, answer = host.refresh()
            report.note(status == 500 and "was not sealed for this place" in answer.get("detail", ""), where, f"{status} {answer}")
            host.restart()
            until("the vault", lambda host=host: host.vault.get("locked") is False)
            status, document = host.api("GET", SESSION)
            report.note(document.get("access_token") == token, where, f"{host.name} serves another token: {status}")
            report.note(host.held()[0] == "authenticated", where, f"the account is {host.held()}")
        report.note(fleet.requests == before, where, f"{fleet.requests - before} refresh requests")
        heal()
        self.refresh(where)
        self.shown.append([where, "refused"])


def rows(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 2, accounts=(ACCOUNT, OTHER)), chosen.keep)
    tampering = Tampering(fleet, report)
    row, other = tampering.row, tampering.other
    former = row.content
    tampering.refresh("before anything is changed")
    tampering.mended("an older row with its own number", lambda: row.put(*former))
    tampering.mended("a row that is deleted", row.delete)
    fleet.database.sql(
        "insert into ringback.candidates (owner, key, attempt, step, parent_version, epoch, was_head, sealed)"
        f" select owner, key, '\\x{'ab' * 16}', 1, version, epoch, false, '\\x{'cd' * 200}' from ringback.rows"
        f" where key = '\\x{row.key}'")
    tampering.refresh("a candidate that no host has sealed")

    def numbered_anew():
        row.put(row.content[0] + 1, former[1])

    def cut():
        row.put(row.content[0], row.content[1][:60])

    def exchanged():
        own, theirs = row.content, other.content
        row.put(own[0], theirs[1])
        other.put(theirs[0], own[1])

    for where, change in [
        ("an older row as a newer one", numbered_anew), ("a row that is cut", cut), ("two rows exchanged", exchanged),
    ]:
        kept = row.content, other.content
        tampering.refused(where, change, lambda kept=kept: (row.put(*kept[0]), other.put(*kept[1])))
    # Nobody has the former content any more: a user signs in again.
    tampering.refused("a row that is cut, and a new sign-in", cut, fleet.sign_in)
    report.note(fleet.reuses == 0, "rows", "a token was presented again")
    table("Rows that the administrator changes", ["what", "hosts"], tampering.shown)
