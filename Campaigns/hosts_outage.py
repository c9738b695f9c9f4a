"""What a database that is away, a host that is away, and packets that are dropped between them, do to the others."""

import shutil
import signal
import time

from harness import Kept, Trouble, progress, table, until
from herd import PATIENCE, ask_all
from hosts_database import PORT
from hosts_place import SESSION, STEP, Fleet, measured

# A caller's own bound, in seconds, and some more for the answer to come. A longer bound than anything that a host waits for.
BOUND, MORE, LONG_BOUND = 5, 3, 30
# Bounds, in seconds, on what a host does without the database, which it waits five seconds for, and on what it does when the
# database is back.
ALONE, BACK = 15, 60
HOUR = 3_600


def held_refresh(fleet, host):
    """A refresh that the provider has done, and does not answer until the sandbox is told to. Returns the caller's connection."""
    fleet.sandbox.hold()
    waits = host.refresh_in_background()
    fleet.sandbox.await_held()
    return waits


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


def asks_in_vain(fleet, report, where, is_silent=False):
    """An expired session that cannot be refreshed now: no request, the account keeps its session, and the caller gets 503
    `vault_unreachable` within its bound, as docs/many-hosts.md promises. Where the database `is_silent`, a host waits for it,
    and a caller whose own bound is over before that gets 504 `timeout` (docs/api.md): then one with a longer bound asks."""
    before = fleet.requests
    for host in fleet.hosts:
        for bound in [BOUND, LONG_BOUND]:
            (status, answer), took = measured(lambda host=host, bound=bound: host.api("GET", f"{SESSION}?timeout={bound}"))
            given = status, answer.get("code")
            is_over = is_silent and bound == BOUND and given == (504, "timeout") and took > BOUND - 1
            report.note((is_over or given == (503, "vault_unreachable")) and took < bound + MORE, where,
                        f"{host.name} answered {given} after {took:.1f} s of {bound}")
            held = host.held()
            report.note(held[0] in ("authenticated", "refreshing"), where, f"{host.name}: the account is {held}")
            if not is_over:
                break
    report.note(fleet.requests == before, where, f"{fleet.requests - before} refresh requests without the database")


def until_sent(fleet, host):
    """Until the database has what the host received. If the row was taken meanwhile, the token is a candidate: the next
    refresh presents it."""
    def is_sent():
        database = host.database
        return database.get("reachable") and database.get("unsent") == 0 and fleet.database.sql(
            "select count(*) from ringback.attempts where ended_at is null") == "0"

    return until(f"{host.name} to send what it has received", is_sent, 90)


def killed(fleet, report, rows):
    where = "the database killed"
    fleet.database.kill()
    # Before anybody asks for anything.
    until("the hosts to know that the database is away",
          lambda: not any(host.database.get("reachable") for host in fleet.hosts), 30)
    serves(fleet, report, where)
    fleet.clock.advance(STEP)
    asks_in_vain(fleet, report, where)
    known = [host.database.get("reachable") for host in fleet.hosts]
    report.note(not any(known), where, f"the status says that it is reachable: {known}")
    fleet.database.start()
    before = fleet.requests
    rows.append(["killed, until every host had a token again", f"{refreshed_again(fleet, report, where, before):.1f} s"])
    refreshes(fleet, report, where)


def refreshed_again(fleet, report, where, before):
    """The database is back, and the session expired meanwhile: one refresh, and all hosts have its token. `before` is how many
    refresh requests there were when it came back. Returns the seconds until every host had a token."""
    _, took = measured(lambda: until("the hosts to refresh again", lambda: all(host.token for host in fleet.hosts), BACK))
    until("the hosts to agree", fleet.agreed, BACK)
    report.note(fleet.requests == before + 1, where, f"{fleet.requests - before} refresh requests when it was back")
    return took


def frozen(fleet, report, rows):
    """Its processes are stopped: connections stay, and nothing is answered."""
    where = "the database frozen"
    former = fleet.agreed()
    fleet.database.signal(signal.SIGSTOP)
    serves(fleet, report, where)
    # A host starts without it, and serves what it has.
    host = fleet.hosts[0]
    _, took = measured(lambda: (host.restart(), until("the session after a start", lambda: host.token, ALONE)))
    report.note(former and host.token == former, where, "a host that was started does not serve its session")
    report.note(took < ALONE, where, f"a host that was started served its session after {took:.1f} s")
    rows.append(["frozen, until a host that was started served its session", f"{took:.1f} s"])
    fleet.clock.advance(STEP)
    asks_in_vain(fleet, report, where, is_silent=True)
    serves_status = [measured(lambda host=host: host.api("GET", "/v1/status"))[1] for host in fleet.hosts]
    report.note(max(serves_status) < BOUND, where, f"a status took {max(serves_status):.1f} s")
    before = fleet.requests
    fleet.database.signal(signal.SIGCONT)
    rows.append(["frozen, until every host had a token again", f"{refreshed_again(fleet, report, where, before):.1f} s"])
    refreshes(fleet, report, where)


def frozen_changes(fleet, report, rows):
    """A sign-out, a sign-in, and both, made while the database is frozen: they are answered, and the other hosts have them when
    it is back."""
    first, second, third = fleet.hosts
    for by, into in [(second, None), (None, third), (second, third), (first, first)]:
        where = " and ".join(f"a sign-{way} on {host.name}" for way, host in [("out", by), ("in", into)] if host)
        where += " while the database is frozen"
        former, before = fleet.agreed(), fleet.requests
        fleet.database.signal(signal.SIGSTOP)
        spans = []
        if by:
            (status, answer), took = measured(lambda by=by: by.api("DELETE", SESSION))
            spans.append(took)
            report.note((status, answer.get("state"), answer.get("had_session")) == (200, "unauthenticated", True), where,
                        f"the sign-out answered {status} {answer}")
            report.note(by.token is None, where, "it is still served there")
        token = None
        if into:
            spans.append(measured(into.sign_in)[1])
            token = into.token
            report.note(token not in (None, former), where, "the new session is not served there")
        report.note(max(spans) < ALONE, where, f"it was answered after {max(spans):.1f} s")
        others = [host.token for host in fleet.hosts if host not in (by, into)]
        report.note(set(others) == {former}, where, "another host knows of it already: the database is not frozen")
        fleet.database.signal(signal.SIGCONT)
        _, took = measured(lambda token=token: reach_all(fleet, token))
        what = f"frozen, sign-{'out and sign-in' if by and into else 'out' if by else 'in'}"
        rows += [[f"{what}, until it was answered", f"{max(spans):.1f} s"], [f"{what}, back until all had it", f"{took:.1f} s"]]
        states = [host.held() for host in fleet.hosts]
        wanted = ("authenticated" if token else "unauthenticated", None)
        report.note(set(states) == {wanted}, where, f"the accounts are {states}")
        report.note(fleet.requests == before, where, f"{fleet.requests - before} refresh requests")
        if token:
            report.note(fleet.is_honoured(token), where, "the provider does not honour the new session's token")
        else:
            until("the provider to be told of the sign-out", lambda former=former: not fleet.is_honoured(former), BACK)
    refreshes(fleet, report, "after changes while the database was frozen")


def reach_all(fleet, token):
    """Until the database has what each host has changed, and all hosts serve this token; without one, until none serves any."""
    for host in fleet.hosts:
        until_sent(fleet, host)
    until("a change that was made without the database to reach every host",
          lambda: all(host.token == token for host in fleet.hosts), BACK)


def cut_off(fleet, report, rows):
    """A host's packets are dropped while its refresh is on its way: what it received is served, and sent later."""
    where = "a host cut off with a refresh on its way"
    host, other = fleet.hosts[:2]
    waits = held_refresh(fleet, host)
    fleet.hub.cut(host.wire)
    former = other.token
    fleet.sandbox.release()
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
    waits = held_refresh(fleet, host)
    host.daemon.send_signal(signal.SIGSTOP)
    fleet.sandbox.release()
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


def outage(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 3), chosen.keep)
    rows = []
    fleet.sign_in()
    for step in [killed, frozen, frozen_changes, cut_off, stopped, clocks]:
        try:
            step(fleet, report, rows)
        except Trouble as trouble:
            raise Trouble(f"{step.__name__}: {trouble}") from None
        if not fleet.is_honoured(fleet.hosts[0].token):
            fleet.sign_in()
    table("Away, and back", ["what", "measured"], rows)


SHARE = 0.2
# Hosts, callers of each, and expiries: in full, and in the short form.
HERD, SHORT_HERD = (6, 10, 40), (3, 5, 3)
# Seconds until every host has a new token.
SECONDS = 120


def drop(host):
    """From now on, at random."""
    for chain, port in [("INPUT", "--sport"), ("OUTPUT", "--dport")]:
        host.namespace.run("iptables", "-A", chain, "-p", "tcp", port, str(PORT), "-m", "statistic", "--mode", "random",
                           "--probability", str(SHARE), "-j", "DROP")


def dropped(host):
    """How many packets were dropped, by the kernel's count."""
    lines = host.namespace.run("iptables", "-nvxL").splitlines()
    return sum(int(line.split()[0]) for line in lines if " DROP " in line)


def loss(chosen, report, places):
    if not shutil.which("iptables"):
        return report.skip("packets that are dropped", "there is no iptables")
    hosts, callers, expiries = SHORT_HERD if chosen.short else HERD
    fleet = places.add(Fleet(chosen.bin, hosts), chosen.keep)
    spans, refused, more = [], 0, 0
    token = fleet.sign_in()
    first, attempts = fleet.requests, fleet.attempts
    for host in fleet.hosts:
        drop(host)
    clients = [places.add(Kept(host.socket, PATIENCE)) for host in fleet.hosts for _ in range(callers)]
    for number in range(1, expiries + 1):
        before = fleet.requests
        fleet.clock.advance(STEP)
        started = time.monotonic()
        # Who waits in vain for the database is told so within its own time limit, and asks again.
        refused += sum(status != 200 for status, _ in ask_all(clients)[0])
        until("a new token on every host", lambda: all(
            host.api("GET", f"{SESSION}?timeout=30")[0] == 200 for host in fleet.hosts), SECONDS)
        former, token = token, until("the hosts to agree", fleet.agreed, SECONDS)
        spans.append(time.monotonic() - started)
        more += fleet.requests - before - 1
        report.note(token != former and fleet.is_honoured(token), f"expiry {number}", "no new token that is honoured")
        if number % 10 == 0:
            progress(f"{number} expiries, {fleet.requests - first} refresh requests")
    where = "dropped packets"
    made = fleet.requests - first
    report.note(fleet.reuses == 0, where, "a token was presented again")
    report.note(made == fleet.attempts - attempts, where, f"{made} requests, hosts know {fleet.attempts - attempts}")
    lost = sum(map(dropped, fleet.hosts))
    report.note(lost > 0, where, "no packet was dropped")
    report.note(not fleet.ends(), where, "a session has ended")
    spans.sort()
    table(f"A fifth of the packets dropped, {hosts} hosts with {callers} callers each", ["what", "measured"], [
        ["packets dropped", lost], ["expiries", expiries], ["refresh requests", made], ["more than one at an expiry", more],
        ["answers that were a refusal", f"{refused} of {len(clients) * expiries}"],
        ["until all hosts had the token, median", f"{spans[len(spans) // 2]:.1f} s"],
        ["until all hosts had the token, worst", f"{spans[-1]:.1f} s"]])
