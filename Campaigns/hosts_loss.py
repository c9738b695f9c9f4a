"""A fifth of the packets between hosts and database is dropped, in each direction."""

import shutil
import time

from harness import progress, table, until
from herd import Client, ask_all
from hosts_database import PORT
from hosts_place import SESSION, STEP, Fleet

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
    clients = [places.add(Client(host.socket)) for host in fleet.hosts for _ in range(callers)]
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
    report.note(fleet.sandbox.counters["reuse_detections"] == 0, where, "a token was presented again")
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
