#!/usr/bin/env -S python3 -B
"""500 clients, each on a connection of its own, ask for one session at the moment its token has expired: 200 times.

A refresh token that rotates must be used once. Each expiry has to lead to exactly one refresh request, by the provider's
own count, and all clients have to get the same new token.

How a token expires without anybody waiting: clock.c moves the daemon's time since boot, by which it judges every expiry,
behind the end of the token, as a suspend of the machine would. Nothing else of the daemon is changed.

Then some expiries again with tokens that are bound to a key (RFC 9449), at a provider that takes each nonce once.
"""

import mmap
import os
import resource
import struct
import time
import urllib.parse

from harness import Kept, Trouble, must, played, progress, table, tcp_request
from house import House
from kinds import BOUND, CLIENT, OPENID
from shim import build

CLIENTS = 500
EXPIRIES, BOUND_EXPIRIES = 200, 20
# Seconds that a token lives; each step of the clock is longer.
LIFETIME = 3_600
STEP = 4_000
PATH = "/v1/accounts/work/session"
# Seconds that a round may take.
PATIENCE = 60


class Clock:
    """The daemon's time since boot."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "clock")
        with open(self.path, "wb") as file:
            file.truncate(16)
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 16)
        self.library = build(directory, "clock")

    @property
    def environment(self):
        return {"LD_PRELOAD": self.library, "RINGBACK_CLOCK": self.path}

    @property
    def asked(self):
        return struct.unpack_from("=q", self.memory, 8)[0]

    def advance(self, seconds):
        struct.pack_into("=q", self.memory, 0, struct.unpack_from("=q", self.memory, 0)[0] + seconds)


class ClockedHouse(House):
    """A house whose daemon goes by the campaign's clock."""

    clock = None

    def __init__(self, binaries):
        super().__init__(binaries, shimmed=False)
        self.clock = Clock(self.directory)

    def begin(self, more="", kind=OPENID):
        """A daemon with this configuration, signed in. Reuse of a refresh token ends the session at once: a second request
        would not go unseen."""
        self.kind = kind
        self.fresh(access_token_lifetime=LIFETIME, reuse_grace=0)
        self.configure(more)
        self.start()
        must(self.sign_in(), "the sign-in")
        if not self.clock.asked:
            raise Trouble("the clock is not in the daemon: is it a static executable?")

    @property
    def environment(self):
        return super().environment | (self.clock.environment if self.clock else {})


def requests(house):
    """Refresh requests that the provider has had."""
    return house.sandbox.counters["token_requests"].get("refresh_token", 0)


def revoke(house, token):
    body = urllib.parse.urlencode({"token": token, "token_type_hint": "access_token", "client_id": CLIENT})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if tcp_request(house.sandbox.issuer + "/revoke", "POST", body, headers)[0] != 200:
        raise Trouble("the sandbox revokes no token")


def ask_all(clients):
    """Everybody's (status, document), and the seconds until the last one had it."""
    started = time.monotonic()
    for client in clients:
        client.ask(PATH)
    return [client.read() for client in clients], time.monotonic() - started


def expire(house, clients, report, number, former):
    """One expiry. Returns the new token and the seconds until the last client had it."""
    house.clock.advance(STEP)
    before = requests(house)
    answers, elapsed = ask_all(clients)
    return judge_expiry(report, number, answers, requests(house) - before, former), elapsed


def judge_expiry(report, number, answers, made, former):
    """One refresh request, and one new token for all callers, which is returned."""
    tokens = {document.get("access_token") for status, document in answers if status == 200}
    wrong = sorted({f"{status} {document.get('code')}" for status, document in answers if status != 200})
    where = f"expiry {number}"
    report.note(made == 1, where, f"{made} refresh requests")
    report.note(not wrong, where, f"callers were refused: {wrong}")
    report.note(len(tokens) == 1 and former not in tokens, where, f"{len(tokens)} tokens were handed out")
    return next(iter(tokens), former)


def run(house, chosen, report, places, expiries):
    spans, kind = [], house.kind.name
    token = house.api("GET", PATH)[1]["access_token"]
    clients = [places.add(Kept(house.socket, PATIENCE)) for _ in range(chosen.clients)]
    first = requests(house)
    # Held as long as it lives: it is the clock that makes it expire, nothing else.
    same = {document.get("access_token") for _, document in ask_all(clients)[0]}
    report.note(same == {token} and requests(house) == first, f"{kind}: a token that lives", "it was not simply handed out")
    for number in range(1, expiries + 1):
        token, elapsed = expire(house, clients, report, number, token)
        spans.append(elapsed)
        if number % 50 == 0:
            progress(f"{number} expiries, {requests(house) - first} refresh requests")
    made = requests(house) - first
    report.note(made == expiries, f"{kind}: refresh requests", f"{made} for {expiries} expiries")
    held = house.sandbox.subject(token)
    report.note(held == "alice", f"{kind}: the session", f"the provider takes its token for {held}'s")
    spans.sort()
    table(f"The herd: {kind}", ["what", "measured"], [
        ["clients (connections)", chosen.clients], ["expiries", expiries], ["refresh requests", made],
        ["answers", chosen.clients * expiries],
        ["until the last client had it, median", f"{1_000 * spans[len(spans) // 2]:.0f} ms"],
        ["until the last client had it, worst", f"{1_000 * spans[-1]:.0f} ms"],
    ])


@played(clients=(CLIENTS, "connections"), expiries=(EXPIRIES, "rounds"))
def campaign(chosen, report, places):
    expiries = min(chosen.expiries, 20) if chosen.short else chosen.expiries
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * chosen.clients + 256)), hard))
    house = places.add(ClockedHouse(chosen.bin), chosen.keep)
    house.begin()
    run(house, chosen, report, places, expiries)
    house.begin(kind=BOUND)
    run(house, chosen, report, places, min(expiries // 4 or 1, BOUND_EXPIRIES))
