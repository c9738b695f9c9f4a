"""What all hosts do together: an expiry, also through a pooler, and a sign-out."""

import contextlib
import http.client
import json
import re
import threading
import time

from harness import Kept, UnixHTTP, progress, table, until
from herd import PATIENCE, ask_all, judge_expiry
from hosts_database import POOLER, pooler as pooler_program
from hosts_outage import held_refresh
from hosts_place import SESSION, STEP, Fleet, measured
from house import ACCOUNT
from kinds import CLIENT

# Hosts, callers of each, and expiries: in full, and in the short form. Also through a pooler.
HERD, SHORT_HERD = (20, 50, 100), (3, 5, 5)
# Those of the sandbox (Sources/Sandbox/Sandbox, Issuer.newToken).
REFRESH_TOKEN = re.compile(rb"rt-[A-Za-z0-9_-]{43}")
# How often a sign-out is tried.
SIGN_OUTS = 20
# Seconds until a change has reached every host. Without notifications hosts look every 30 s, and a wait of that bound fails.
PROMISED, LONGEST = 1, 10


def expire(fleet, clients, report, number, former):
    """One expiry. Returns the new token and the seconds until the last caller had it."""
    fleet.settle()
    before = fleet.requests
    fleet.clock.advance(STEP)
    answers, elapsed = ask_all(clients)
    return judge_expiry(report, number, answers, fleet.requests - before, former), elapsed


def run_herd(fleet, report, callers, expiries, title):
    token = fleet.sign_in()
    clients = [Kept(host.socket, PATIENCE) for host in fleet.hosts for _ in range(callers)]
    spans, first = [], fleet.requests
    try:
        for number in range(1, expiries + 1):
            token, elapsed = expire(fleet, clients, report, number, token)
            spans.append(elapsed)
            if number % 20 == 0:
                progress(f"{number} expiries, {fleet.requests - first} refresh requests")
    finally:
        for client in clients:
            client.close()
    made = fleet.requests - first
    report.note(made == expiries, title, f"{made} refresh requests for {expiries} expiries")
    report.note(fleet.is_honoured(token), title, "the provider does not honour the last token")
    spans.sort()
    table(title, ["what", "measured"], [
        ["hosts", len(fleet.hosts)], ["callers of each", callers], ["expiries", expiries], ["refresh requests", made],
        ["until the last caller had it, median", f"{1_000 * spans[len(spans) // 2]:.0f} ms"],
        ["until the last caller had it, worst", f"{1_000 * spans[-1]:.0f} ms"],
        ["times that took more than 2 s", sum(span > 2 for span in spans)],
    ])


def is_in_memory(pattern, pid):
    """Whether a process has bytes of that pattern."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for area, rights in (line.split()[:2] for line in maps):
            if rights.startswith("rw"):
                start, end = (int(bound, 16) for bound in area.split("-"))
                memory.seek(start)
                try:
                    content = memory.read(end - start)
                except OSError:
                    continue
                if pattern.search(content):
                    return True
    return False


def search(fleet, report):
    """The database's files, its write-ahead log and its own log have nothing that the hosts seal."""
    token = fleet.agreed()
    sealed = [token, *token.split("."), REFRESH_TOKEN, "access_token", "refresh_token", "alice", CLIENT, fleet.sandbox.issuer]
    report.note(is_in_memory(REFRESH_TOKEN, fleet.sandbox.process.pid), "the provider's memory",
                f"no refresh token looks like {REFRESH_TOKEN.pattern}: the search would find none")
    # What is not sealed, and must be found so that the search is known to work.
    open_ = [host.name for host in fleet.hosts]
    found, size = fleet.database.search([*sealed, *open_])
    report.note(all(found[text] for text in open_), "the database's files", f"the search does not even find {open_}")
    for text in sealed:
        report.note(not found[text], "the database's files", f"{str(text)[:40]} is in {found[text]}")
    progress(f"{size >> 20} MiB of the database's files searched")


def herd(chosen, report, places):
    hosts, callers, expiries = SHORT_HERD if chosen.short else HERD
    fleet = places.add(Fleet(chosen.bin, hosts), chosen.keep)
    report.note(fleet.hosts[0].vault["database"]["notifications"], "the status of a host", "no notifications come")
    run_herd(fleet, report, callers, expiries, "Callers of many hosts at an expiry")
    search(fleet, report)


def pooler(chosen, report, places):
    if not pooler_program():
        return report.skip("hosts behind a pooler", "there is no pgbouncer")
    hosts, callers, expiries = SHORT_HERD if chosen.short else HERD
    fleet = places.add(Fleet(chosen.bin, hosts, through=(POOLER,)), chosen.keep)
    report.note("looked for every few seconds" in fleet.hosts[0].type("vault", "status"), "the status behind a pooler",
                "it does not say that no notifications come")
    run_herd(fleet, report, callers, expiries, "The same through pgbouncer in transaction mode")
    fleet.hosts[0].api("DELETE", SESSION)
    _, took = measured(lambda: until("a sign-out through the pooler", lambda: not any(host.token for host in fleet.hosts)))
    table("A sign-out through the pooler", ["what", "measured"], [["until no host had the session", f"{took:.1f} s"]])


def sign_out_meanwhile(fleet, report):
    """A sign-out on one host while another one's refresh is on its way. What that receives is not served, and the provider is
    told that it is over, as of what the first host had."""
    where = "a sign-out during another host's refresh"
    first, other = fleet.hosts[:2]
    fleet.sign_in(first)
    before = revocations(fleet)
    waits = held_refresh(fleet, other)
    status, answer = first.api("DELETE", SESSION)
    report.note(status == 200, where, f"{status} {answer}")
    fleet.sandbox.release()
    until("a sign-out on the host that refreshes", lambda: not any(host.token for host in fleet.hosts), 30)
    waits.close()
    until("the provider to be told of both tokens", lambda: revocations(fleet) >= before + 2, 60)
    report.note(other.held()[0] == "unauthenticated", where, f"the account is {other.held()}")


class Events(threading.Thread):
    """The events of one host, read until it closes the connection: (event, data)."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.heard = []
        self.connection = UnixHTTP(host.socket)
        # Longer than from one comment of the stream to the next.
        self.connection.timeout = 60
        self.connection.request("GET", f"/v1/events?account={ACCOUNT}")
        self.start()

    def run(self):
        event = None
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            answer = self.connection.getresponse()
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "event":
                    event = value
                elif name == "data":
                    self.heard.append((event, json.loads(value)))


def events_elsewhere(fleet, report):
    """A sign-in, a refresh and a sign-out on one host are events on the others: each once, in this order, without a token."""
    first, others = fleet.hosts[0], fleet.hosts[1:]
    listeners = [Events(host) for host in others]
    tokens = []

    def expect(event, state):
        for host, listener in zip(others, listeners):
            until(f"the event {event} on {host.name}", lambda listener=listener: listener.heard[-1:] and
                  listener.heard[-1][0] == event, LONGEST)
            data = listener.heard[-1][1]
            wanted = ACCOUNT, state, None if event == "initial_session" else "alice"
            report.note((data.get("account"), data.get("state"), data.get("subject")) == wanted,
                        f"the event {event} on {host.name}", f"{data}")

    expect("initial_session", "unauthenticated")
    tokens.append(fleet.sign_in(first))
    expect("signed_in", "authenticated")
    first.refresh_surely()
    tokens.append(fleet.await_token(first.token))
    expect("token_refreshed", "authenticated")
    first.api("DELETE", SESSION)
    expect("signed_out", "unauthenticated")
    for host, listener in zip(others, listeners):
        where, heard = f"the events on {host.name}", [event for event, _ in listener.heard]
        report.note(heard == ["initial_session", "signed_in", "token_refreshed", "signed_out"], where, f"{heard}")
        report.note(not any(token in str(listener.heard) for token in tokens), where, "a token is in them")


def revocations(fleet):
    return fleet.sandbox.counters["requests"].get("revocation", 0)


def sign_out(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 3), chosen.keep)
    spans = []
    for number in range(3 if chosen.short else SIGN_OUTS):
        by = fleet.hosts[number % len(fleet.hosts)]
        fleet.sign_in(by)
        started = time.monotonic()
        status, answer = by.api("DELETE", SESSION)
        until("a sign-out on another host", lambda: not any(host.token for host in fleet.hosts), LONGEST)
        spans.append(time.monotonic() - started)
        report.note(status == 200, "a sign-out", f"{status} {answer}")
        states = [host.held()[0] for host in fleet.hosts]
        report.note(set(states) == {"unauthenticated"}, "a sign-out on another host", f"the accounts are {states}")
    median = sorted(spans)[len(spans) // 2]
    report.note(median <= PROMISED, "a sign-out on another host", f"the median is {median:.1f} s")
    table("A sign-out on one host", ["what", "measured"], [
        ["sign-outs", len(spans)], ["until no host had the session, median", f"{1_000 * median:.0f} ms"],
        ["worst", f"{1_000 * max(spans):.0f} ms"],
        [f"times that took more than {PROMISED} s", sum(span > PROMISED for span in spans)]])
    sign_out_meanwhile(fleet, report)
    events_elsewhere(fleet, report)
