#!/usr/bin/env -S python3 -B
"""Ten minutes of many short-lived sessions, many clients and a provider that fails now and then.

50 accounts at an OpenID provider with 5-second tokens, each another user; 12 of users of a Supabase project, of both
kinds of refresh tokens, whose every third session is not kept; 4 services. 20 clients that ask for any of them all the time; one token
request in a hundred is delayed, answered with 500, dropped or cut, before or after the provider did what it was asked.
At the end every session is there, and its own; memory and descriptors are where they were after the first minute; no
account was refreshed more often than its tokens needed.
"""

import json
import os
import random
import threading
import time
import urllib.parse
from statistics import mean

from answers import HTML
from harness import Died, Trouble, memory, must, played, progress, table
from house import House
from kinds import OPENID, PASSWORD, SERVICE, SERVICE_ACCOUNT, OpenID, Supabase
from proxy import Answer, Cut, Instead, Plan, Proxy, compose

USERS = [f"user{number:02}" for number in range(50)]
PROJECT_USERS = [f"app{number:02}" for number in range(12)]
SERVICES = [f"service{number}" for number in range(4)]
ACCOUNTS = USERS + PROJECT_USERS + SERVICES
CLIENTS = 20
LIFETIME = 5
FAULT_RATE = 0.01
# One that is lost after it took effect is asked for again well within this.
GRACE = 30
# Between two requests of a client, seconds.
PAUSE = 0.05
ALLOWED_GROWTH = 0.10
# In a run of less than three minutes the allocator's arenas are still being filled for the first time: so many KB more.
WARMING_UP = 1_024
# A token of unknown need is renewed when under half of its life is left; the rest is for attempts after faults.
MOST_REFRESHES = 1.25 / (LIFETIME / 2)


class Everybody(OpenID):
    """What an account is, by its name."""

    name = "everybody"

    def __init__(self):
        self.project = Supabase("v2")

    def of(self, account):
        return self.project if account in PROJECT_USERS else SERVICE_ACCOUNT if account in SERVICES else OPENID

    def configuration(self, house, name, client):
        return self.of(name).configuration(house, name, client)

    def reset(self, house, **switches):
        SERVICE_ACCOUNT.reset(house, **switches)
        people = [{"email": f"{account}@example.org", "password": PASSWORD} for account in PROJECT_USERS]
        self.project.reset(house, reuse_grace=GRACE, access_token_lifetime=LIFETIME)
        house.sandbox.project.control(supabase={"users": people})

    def sign_in(self, house, name):
        if name in SERVICES:
            return house.api("GET", f"/v1/accounts/{name}/session")
        if name in USERS:
            house.sandbox.control(auto_approve=name)
            return super().sign_in(house, name)
        number = PROJECT_USERS.index(name)
        house.sandbox.project.control(supabase={"refresh_tokens": ["v1", "v2"][number % 2]})
        body = {"method": "password", "email": f"{name}@example.org", "password": PASSWORD, "persist": number % 3 > 0}
        return house.api("POST", f"/v1/accounts/{name}/sign-in", body)

    def whose(self, house, account, token):
        """Whose token this is by the provider's word, as the name of an account; None if it honours no such token."""
        if account in PROJECT_USERS:
            status, user = self.project.call(house, "GET", "user", token=token)
            return user["email"].split("@")[0] if status == 200 else None
        subject = house.sandbox.subject(token)
        return account if account in SERVICES and subject == SERVICE else subject


class Weather:
    """Chooses what happens to each token request, and counts it."""

    def __init__(self):
        self.random = random.Random(4)
        self.counts = {}
        self.requests = 0
        self.is_fair = False

    def choose(self, request):
        self.requests += 1
        if self.is_fair or self.random.random() >= FAULT_RATE:
            return Plan()
        name = self.random.choice(["latency", "500", "500 afterwards", "drop", "drop afterwards", "cut"])
        self.counts[name] = self.counts.get(name, 0) + 1
        error = compose(500, [("Content-Type", "text/html")], HTML)
        if name == "latency":
            plan = Plan()
            plan.delay = 2
            return plan
        if name == "cut":
            return Cut(self.random.randrange(1, 900))
        made = {"500": error, "500 afterwards": error}.get(name, b"")
        return Instead(lambda answer: made, name.endswith("afterwards"))


class Client(threading.Thread):
    """Asks for sessions until it is told to stop; looks at some of the tokens."""

    def __init__(self, house, number):
        super().__init__(daemon=True)
        self.house = house
        self.random = random.Random(number)
        self.is_over = threading.Event()
        self.asked = 0
        self.later = {}
        self.wrong = []

    def run(self):
        while not self.is_over.wait(self.random.uniform(0, 2 * PAUSE)):
            account = self.random.choice(ACCOUNTS)
            try:
                self.ask(account)
            except (Died, OSError, Trouble) as error:
                self.wrong.append(f"{account}: {error}")

    def ask(self, account):
        asks_for_more = self.random.random() < 0.2
        query = "?min_valid=2" if asks_for_more else ""
        status, document = self.house.api("GET", f"/v1/accounts/{account}/session{query}")
        self.asked += 1
        if status == 200:
            token, is_asked = document["access_token"], self.random.random() < 0.05
            # None: not asked, or it expired on the way.
            whose = self.house.kind.whose(self.house, account, token) if is_asked else None
            if whose not in (account, None):
                self.wrong.append(f"{account} was given somebody else's token")
        elif status in (429, 502, 503, 504):
            # Who states how much life a token must have is told when there is none to be had for now.
            self.later[status] = self.later.get(status, 0) + 1
        else:
            self.wrong.append(f"{account}: {status} {document.get('code')} {document.get('detail')}")


def measure(pid):
    """Kilobytes of anonymous and of all resident memory, and the number of descriptors."""
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        # The daemon lets nobody look but root: the size of its table, then, which is a bound.
        descriptors = memory(pid, "FDSize")
    return memory(pid), memory(pid, "VmRSS"), descriptors


def prepare(house, proxy):
    """Everybody is signed in as themselves."""
    house.kind = Everybody()
    house.kind.project.through = proxy.origin
    house.fresh(reuse_grace=GRACE, access_token_lifetime=LIFETIME, endpoints={"token": proxy.url}, users=USERS)
    house.start()
    for account in ACCOUNTS:
        must(house.sign_in(account), f"the sign-in of {account}")
    paths = {path for _, path, _, _, _ in proxy.seen}
    for path in ["/token", "/supabase/auth/v1/token"]:
        if path not in paths:
            raise Trouble(f"the requests to {path} do not go through the proxy: no fault would come")


def watch(house, clients, seconds):
    """Samples once a second until the time is up or the daemon is gone."""
    samples = []
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds and house.is_alive:
        samples.append((elapsed, *measure(house.daemon.pid)))
        if len(samples) % 60 == 0:
            asked = sum(client.asked for client in clients)
            progress(f"{elapsed:.0f} s: {asked} requests, {samples[-1][1]} KB anonymous, {samples[-1][3]} descriptors")
        time.sleep(1)
    return samples


def judge_growth(report, samples, seconds):
    """The second minute (or quarter, if the run is a short one) beside the last."""
    window = min(60, seconds / 4)
    early = [sample for sample in samples if window <= sample[0] < 2 * window]
    late = [sample for sample in samples if sample[0] >= seconds - window]
    rows = []
    for index, name in [(1, "RssAnon, KB"), (2, "VmRSS, KB"), (3, "descriptors")]:
        if not early or not late:
            report.note(False, name, "the daemon did not live long enough to be measured")
            continue
        before, after = mean([s[index] for s in early]), mean([s[index] for s in late])
        growth = after / before - 1
        is_warming_up = seconds < 180 and after - before <= WARMING_UP
        report.note(growth <= ALLOWED_GROWTH or is_warming_up, name, f"grew by {100 * growth:.1f} %")
        rows.append([name, f"{before:.0f}", f"{after:.0f}", f"{100 * growth:+.1f} %"])
    table("Memory and descriptors", ["what", "second minute", "last minute", "growth"], rows)


def judge_sessions(house, report):
    """Every session is there, is its owner's, and can be refreshed."""
    lost = 0
    for account in ACCOUNTS:
        try:
            status, document = house.api("POST", f"/v1/accounts/{account}/refresh", {"force": True})
            if status == 200:
                status, document = house.api("GET", f"/v1/accounts/{account}/session")
            whose = house.kind.whose(house, account, document["access_token"]) if status == 200 else None
            why = f"{status} {document.get('code')} {document.get('detail')}, token of {whose}"
        except Trouble as error:
            whose, why = None, str(error)
        lost += whose != account
        report.note(whose == account, f"session of {account}", why)
    return lost


def bursts(seen):
    """How often a session's refresh tokens were presented more than three times within a second."""
    families, times = {}, {}
    for at, _, request, answer, _ in seen:
        form = dict(urllib.parse.parse_qsl(request.decode()))
        if request.startswith(b"{"):
            form = json.loads(request)
        try:
            given = json.loads(Answer(answer).body).get("refresh_token") if answer else None
        except ValueError:
            given = None
        family = families.get(form.get("refresh_token"), given)
        if given:
            families[given] = family
        if "refresh_token" in form:
            times.setdefault(family, []).append(at)
    return sum(
        later - sooner < 1
        for moments in times.values()
        for sooner, later in zip(sorted(moments), sorted(moments)[3:])
    )


@played(seconds=(600, "how long (default 600)"))
def campaign(chosen, report, places):
    seconds = 60 if chosen.short else chosen.seconds
    house = places.add(House(chosen.bin, ACCOUNTS, shimmed=False), chosen.keep)
    proxy = places.add(Proxy(house.sandbox.issuer))
    weather = Weather()
    prepare(house, proxy)
    proxy.choose = weather.choose
    clients = [Client(house, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    progress(f"{len(ACCOUNTS)} accounts, {CLIENTS} clients, {seconds} s")
    samples = watch(house, clients, seconds)
    elapsed = samples[-1][0] if samples else 0
    for client in clients:
        client.is_over.set()
    for client in clients:
        client.join(timeout=60)
    weather.is_fair = True
    refreshes = weather.requests
    wrong = [complaint for client in clients for complaint in client.wrong]
    for complaint in wrong:
        report.note(False, "a client", complaint)
    report.note(house.is_alive, "the daemon", f"it went away: {house.why()}")
    lost = judge_sessions(house, report)
    judge_growth(report, samples, seconds)
    bound = MOST_REFRESHES * len(ACCOUNTS) * elapsed
    report.note(refreshes <= bound, "token requests", f"{refreshes}, and {bound:.0f} would be plenty")
    burst = bursts(proxy.seen)
    report.note(burst == 0, "bursts", f"{burst} times more than three requests of a session in a second")
    later = {}
    for client in clients:
        for status, count in client.later.items():
            later[status] = later.get(status, 0) + count
    rows = [
        ["requests of clients", sum(client.asked for client in clients)],
        ["told to come later", ", ".join(f"{status}: {count}" for status, count in sorted(later.items())) or "none"],
        ["wrong answers", len(wrong)], ["token requests", refreshes],
        ["bursts of one session", burst],
        ["faults", ", ".join(f"{name}: {count}" for name, count in sorted(weather.counts.items())) or "none"],
        ["sessions", len(ACCOUNTS)], ["sessions lost", lost],
    ]
    table(f"Soak, {elapsed:.0f} s", ["what", "measured"], rows)
