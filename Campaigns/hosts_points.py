"""The database is killed in the middle of a refresh: at each call of the host that writes, and at each statement."""

import json
import os
import re
import select
import signal
import threading
import time

from harness import Died, progress, table, until
from hosts_crash import reconnoitre, settled
from hosts_outage import until_sent
from hosts_place import LOOPBACK, Fleet
from hosts_tap import COMMITTED, EXECUTED, HOWS, is_stopped
from shim import STOP

SHORT_STRIDE = 11
# The statements of the short form: the row is taken; the first content is appended.
SHORT_STATEMENTS = [(1, EXECUTED), (1, COMMITTED), (2, COMMITTED)]
SECONDS = 60
HEAD = ["point", "the refresh", "other's requests"]


class AtCall:
    """The host stops before one of its calls that write."""

    def __init__(self, host, number):
        self.host, self.number = host, number

    def arm(self):
        self.host.shim.arm(STOP, self.number)

    @property
    def has_come(self):
        return self.host.shim.has_fired and is_stopped(self.host.daemon.pid)

    @property
    def name(self):
        """What it was before: a call, and what it was made on, without the digits of a file's name or a socket's."""
        text = re.sub(r"(?<=\+)[0-9a-f]{8,}|:\[[0-9]+\]", "", self.host.shim.log()[self.number - 1].text)
        return f"{self.number:2} {' '.join(os.path.basename(word) for word in text.split())}"

    def disarm(self):
        self.host.shim.disarm()


class AtStatement:
    """One of the host's statements, or its answer, is held on the way."""

    def __init__(self, host, number, how):
        self.host, self.number, self.how = host, number, how

    def arm(self):
        self.host.tap.arm(self.number, self.how)

    @property
    def has_come(self):
        return self.host.tap.reached.is_set()

    @property
    def name(self):
        return f"{self.number:2} {self.host.tap.names[self.number - 1]}, {self.how}"

    def disarm(self):
        self.host.tap.arm()


class Asker(threading.Thread):
    """Another host that asks for a refresh again and again, until it gets one."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.host = host
        self.refusals = []
        self.token = None
        self.is_over = False

    def run(self):
        while not self.token and not self.is_over:
            try:
                status, answer = self.host.refresh()
                if status == 200:
                    self.token = self.host.token
                else:
                    self.refusals.append(f"{status} {answer.get('code')}")
                    time.sleep(0.2)
            except Died as trouble:
                self.refusals.append(str(trouble))


class Interruption:
    """One refresh by the first host, and what became of it when the database was killed at a point."""

    def __init__(self, fleet, point):
        self.fleet, self.point = fleet, point
        self.victim, self.other = fleet.hosts
        self.former = fleet.sign_in(self.other)
        settled_with_the_database(fleet)
        self.requests, self.attempts = fleet.requests, fleet.attempts
        self.reuses = fleet.reuses

    def run(self):
        """False if the point was not reached."""
        self.point.arm()
        asks = self.victim.refresh_in_background()
        try:
            if not self.comes(asks):
                return False
            self.name = self.point.name
            self.fleet.database.kill()
        finally:
            self.point.disarm()
            os.kill(self.victim.daemon.pid, signal.SIGCONT)
        answer = asks.getresponse()
        self.status, self.code = answer.status, json.loads(answer.read() or b"{}").get("code", "")
        asks.close()
        self.sent = self.fleet.requests - self.requests
        self.received = self.victim.token
        self.unsent = self.victim.database.get("unsent")
        return True

    def comes(self, asks):
        """Whether the point is reached. What is done after the answer is done within some seconds."""
        over = None
        while not self.point.has_come:
            if over is None and select.select([asks.sock], [], [], 0)[0]:
                over = time.monotonic() + 3
            if over and time.monotonic() > over:
                return False
            time.sleep(0.005)
        return True

    def wrong_meanwhile(self):
        """What is not as it should be while the database is away; "" if nothing is."""
        is_new = self.received not in (None, self.former)
        if self.sent > 1 or (self.status == 200) != (self.sent == 1) or is_new != (self.sent == 1):
            return f"{self.sent} requests, an answer {self.status} {self.code}, a new token: {is_new}"
        for host in self.fleet.hosts:
            if not self.fleet.is_honoured(host.token):
                return f"{host.name} serves nothing that the provider honours: {host.held()}"
        status, _ = self.other.refresh()
        made = self.fleet.requests - self.requests - self.sent
        # It may have heard of the new token just before: then it has that one.
        if made or (status == 200 and self.other.token != self.received):
            return f"another host's refresh without the database: {status}, {made} requests"
        return ""

    def wrong_afterwards(self):
        """What is not as it should be when the database is back; "" if nothing is."""
        fleet, asker = self.fleet, Asker(self.other)
        asker.start()
        fleet.database.start()
        until_sent(fleet, self.victim)
        asker.join(SECONDS)
        asker.is_over = True
        if not asker.token:
            return f"another host gets no refresh: {asker.refusals[-1:]} {self.other.held()}"
        token = until("the hosts to agree", fleet.agreed, SECONDS)
        # Each new token that a host received was asked for once, and nothing else was.
        received = {self.received, asker.token} - {self.former}
        self.later = fleet.requests - self.requests - self.sent
        if token != asker.token or len(received) != self.sent + self.later:
            kept = "kept" if token == asker.token else "lost"
            return f"{len(received)} new tokens of {self.sent} and {self.later} requests; the last one is {kept}"
        for number, host in enumerate(fleet.hosts, 1):
            status, answer = host.refresh()
            if status != 200:
                return f"{host.name}: a refresh afterwards answered {status} {answer.get('code')}: {host.held()}"
            token = until("the hosts to agree after a refresh", fleet.agreed, SECONDS)
            if fleet.requests != self.requests + self.sent + self.later + number:
                return f"{fleet.requests - self.requests} requests, of which {number} afterwards"
        if not fleet.is_honoured(token):
            return "the session has ended"
        if fleet.attempts - self.attempts != fleet.requests - self.requests:
            return f"the hosts have counted {fleet.attempts - self.attempts} requests of {fleet.requests - self.requests}"
        reuses = fleet.reuses - self.reuses
        return f"{reuses} tokens were presented again" if reuses else ""

    @property
    def outcome(self):
        if not self.sent:
            return f"not sent ({self.status})"
        return "received, sent to the row later" if self.unsent else "received, in the row"


def settled_with_the_database(fleet):
    """Until nothing of a former point is under way."""
    fleet.settle()
    if fleet.hosts[0].shim:
        settled(fleet.hosts[0])


def interrupt(fleet, report, point, rows, where):
    tried = Interruption(fleet, point)
    if not tried.run():
        return
    wrong = tried.wrong_meanwhile() or tried.wrong_afterwards()
    report.note(not wrong, f"the database killed {where} {tried.name}", wrong)
    rows.append([tried.name[:44], tried.outcome, getattr(tried, "later", "?") if not wrong else "wrong"])
    if wrong:
        # The next point begins with a fleet that can be used.
        if not fleet.database.servers:
            fleet.database.start()
        fleet.database.end_leases()


def points(chosen, report, places):
    calls(chosen, report, places)
    statements(chosen, report, places)


def calls(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 2, shimmed=1), chosen.keep)
    rows = []
    count = reconnoitre(fleet)
    for number in range(1, count + 1, SHORT_STRIDE if chosen.short else 1):
        interrupt(fleet, report, AtCall(fleet.hosts[0], number), rows, "before call")
    report.note(len(rows) > 2, "the database killed at calls", f"{len(rows)} points were reached")
    table(f"The database killed before a call of the host that writes ({count} in a refresh)", HEAD, rows)


def statements(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 2, through=(LOOPBACK,)), chosen.keep)
    rows = []
    victim = fleet.hosts[0]
    fleet.sign_in(fleet.hosts[1])
    settled_with_the_database(fleet)
    victim.tap.arm()
    victim.refresh_surely()
    settled_with_the_database(fleet)
    names = victim.tap.names
    progress(f"the statements of a refresh: {', '.join(names)}")
    every = [(number, how) for number in range(1, len(names) + 1) for how in HOWS]
    for number, how in SHORT_STATEMENTS if chosen.short else every:
        interrupt(fleet, report, AtStatement(victim, number, how), rows, "at statement")
    report.note(len(rows) > 2, "the database killed at statements", f"{len(rows)} points were reached")
    table(f"The database killed at a statement of the host ({len(names)} in a refresh)", HEAD, rows)
