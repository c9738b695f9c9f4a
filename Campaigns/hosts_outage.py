"""What a database that is away, and a host that is away, do to the others."""

import signal

from hosts_place import SESSION, STEP, Fleet, measured
from house import until
from report import table

# A caller's own bound, in seconds, and some more for the answer to come.
BOUND, MORE = 5, 3
HOUR = 3_600


def gate(fleet):
    """The next refresh takes effect at the provider, and its answer is held back until `release`."""
    fleet.sandbox.control(faults=[{"endpoint": "token", "kind": "gate", "processed": True, "count": 1}])


def release(fleet):
    fleet.sandbox.control(release=True)


def refreshes(fleet, report, where, host=None):
    """One refresh on one host, which all get."""
    before = fleet.requests
    status, answer = (host or fleet.hosts[0]).refresh()
    report.note(status == 200, where, f"a refresh answered {status} {answer.get('code')} {answer.get('detail')}")
    token = (host or fleet.hosts[0]).token
    fleet.await_token(token, 30)
    report.note(fleet.is_honoured(token), where, "the provider does not honour the token")
    report.note(fleet.requests == before + 1, where, f"{fleet.requests - before} refresh requests")


def serves(fleet, report, where):
    """What is held is handed out at once, whatever the database does."""
    for host in fleet.hosts:
        (status, _), took = measured(lambda host=host: host.api("GET", SESSION))
        report.note(status == 200 and took < BOUND, where, f"{host.name} answered {status} after {took:.1f} s")


def asks_in_vain(fleet, report, where):
    """An expired session that cannot be refreshed now: an answer within the caller's bound, and no request."""
    before = fleet.requests
    for host in fleet.hosts:
        (status, answer), took = measured(lambda host=host: host.api("GET", f"{SESSION}?timeout={BOUND}"))
        report.note(status != 200 and took < BOUND + MORE, where,
                    f"{host.name} answered {status} {answer.get('code')} after {took:.1f} s")
        report.note(host.held()[0] not in ("signed_out", "expired"), where, f"{host.name}: {host.held()}")
    report.note(fleet.requests == before, where, f"{fleet.requests - before} refresh requests without the database")


def until_sent(fleet, host):
    """Until the database has what the host received. If the row was taken meanwhile, the token is a candidate: the next
    refresh presents it."""
    def is_sent():
        database = host.vault.get("database") or {}
        return database.get("reachable") and database.get("unsent") == 0 and fleet.database.sql(
            "select count(*) from ringback.attempts where ended_at is null") == "0"

    return until(f"{host.name} to send what it has received", is_sent, 90)


def killed(fleet, report, rows):
    """The database's processes are killed."""
    where = "the database killed"
    fleet.database.kill()
    # Before anybody asks for anything.
    until("the hosts to know that the database is away", lambda: not any(
        (host.vault.get("database") or {}).get("reachable") for host in fleet.hosts), 30)
    serves(fleet, report, where)
    fleet.clock.advance(STEP)
    asks_in_vain(fleet, report, where)
    known = [(host.vault.get("database") or {}).get("reachable") for host in fleet.hosts]
    report.note(not any(known), where, f"the status says that it is reachable: {known}")
    fleet.database.start()
    before = fleet.requests
    _, took = measured(lambda: until("the hosts to refresh again", lambda: all(host.token for host in fleet.hosts), 60))
    rows.append(["killed, until every host had a token again", f"{took:.1f} s"])
    report.note(fleet.requests == before + 1, where, f"{fleet.requests - before} refresh requests when it was back")
    refreshes(fleet, report, where)


def frozen(fleet, report, rows):
    """Its processes are stopped: connections stay, and nothing is answered."""
    where = "the database frozen"
    fleet.database.signal(signal.SIGSTOP)
    serves(fleet, report, where)
    fleet.clock.advance(STEP)
    asks_in_vain(fleet, report, where)
    serves_status = [measured(lambda host=host: host.api("GET", "/v1/status"))[1] for host in fleet.hosts]
    report.note(max(serves_status) < BOUND, where, f"a status took {max(serves_status):.1f} s")
    fleet.database.signal(signal.SIGCONT)
    _, took = measured(lambda: until("the hosts to refresh again", lambda: all(host.token for host in fleet.hosts), 60))
    rows.append(["frozen, until every host had a token again", f"{took:.1f} s"])
    refreshes(fleet, report, where)


def cut_off(fleet, report, rows):
    """A host's packets are dropped while its refresh is on its way: what it received is served, and sent later."""
    where = "a host cut off with a refresh on its way"
    host, other = fleet.hosts[:2]
    gate(fleet)
    waits = host.refresh_in_background()
    fleet.sandbox.look("wait?endpoint=token&count=1")
    fleet.hub.cut(host.wire)
    former = other.token
    release(fleet)
    until("its own new token", lambda: host.token not in (None, former), 30)
    token = host.token
    report.note(fleet.is_honoured(token), where, "the provider does not honour what the host serves")
    asks = asks_meanwhile(fleet, report, where, other)
    fleet.hub.mend(host.wire)
    _, took = measured(lambda: until_sent(fleet, host))
    rows.append(["cut off, until the database had what was received", f"{took:.1f} s"])
    for connection in [waits, asks]:
        connection.close()
    refreshes(fleet, report, where, other)


def asks_meanwhile(fleet, report, where, other):
    """Another host asks while the first one's attempt has no outcome yet, and its lease is over: it takes the row, finds the
    attempt, and waits instead of presenting the former token. Returns the connection on which it asks."""
    fleet.database.end_leases()
    epochs = "select sum(epoch) from ringback.rows"
    former, before = fleet.database.sql(epochs), fleet.requests
    asks = other.refresh_in_background()
    until("the other host to take the row", lambda: fleet.database.sql(epochs) != former, 60)
    until("the other host to give it back", lambda: fleet.database.sql(
        "select count(*) from ringback.rows where lease_until > clock_timestamp()") == "0", 60)
    report.note(fleet.requests == before, where, "the other host has presented a token that was used up")
    return asks


def stopped(fleet, report, rows):
    """A host is stopped with a request on its way, beyond its lease, and wakes up."""
    where = "a host stopped beyond its lease"
    host, other = fleet.hosts[:2]
    gate(fleet)
    waits = host.refresh_in_background()
    fleet.sandbox.look("wait?endpoint=token&count=1")
    host.daemon.send_signal(signal.SIGSTOP)
    release(fleet)
    asks = asks_meanwhile(fleet, report, where, other)
    host.daemon.send_signal(signal.SIGCONT)
    _, took = measured(lambda: until_sent(fleet, host))
    rows.append(["stopped beyond its lease, until the database had it", f"{took:.1f} s"])
    for connection in [waits, asks]:
        connection.close()
    refreshes(fleet, report, where, other)


def clocks(fleet, report, rows):
    """Hosts of different boots, whose clocks on the wall are an hour ahead and behind."""
    where = "clocks an hour apart"
    ways = [(HOUR, 7 * HOUR), (-HOUR, 3 * HOUR), (0, 2 * HOUR)]
    try:
        for host, (host.ahead, host.booted) in zip(fleet.hosts, ways):
            host.restart()
        for host in fleet.hosts:
            until("its session", lambda host=host: host.token, 60)
        for each in fleet.hosts:
            refreshes(fleet, report, where, each)
            left = [host.api("GET", SESSION)[1].get("expires_in") for host in fleet.hosts]
            report.note(max(left) - min(left) <= 60, where, f"the same token expires in {left} s")
    finally:
        for host in fleet.hosts:
            host.ahead, host.booted = 0, None
            host.restart()
    for host in fleet.hosts:
        until("its session", lambda host=host: host.token, 60)
    refreshes(fleet, report, where)
    rows.append(["clocks an hour apart, refreshes by turns", f"{len(fleet.hosts) + 1}"])


def outage(chosen, report):
    fleet = Fleet(chosen.bin, 3)
    rows = []
    try:
        fleet.sign_in()
        for step in [killed, frozen, cut_off, stopped, clocks]:
            step(fleet, report, rows)
            if not fleet.is_honoured(fleet.hosts[0].token):
                fleet.sign_in()
        table("Away, and back", ["what", "measured"], rows)
    finally:
        fleet.close(chosen.keep)
