#!/usr/bin/env -S python3 -B
"""SK-20: looks for tokens and the vault's key in the memory of the daemon and of its helper, after a lock and after sign-outs.

Tokens also in the relays of bridges, of exposed sockets and of commands (memory_relay.py).

Accounts of every kind are signed in, refreshed and asked for, over TLS and without, by clients that come anew and by
some that stay connected. A recorder in front of the provider knows every token that was ever issued. Then the vault is
locked, or every account signed out; within ten seconds no readable and writable mapping may hold any of them, whole or in
part, as it is, decoded, in hexadecimal, Base64 or UTF-16. Before that they must be found. Needs root.
"""


from harness import Kept, Places, Trouble, children, must, played, progress, table
from house import PASSPHRASE
from kinds import SERVICE_SECRET
from memory_relay import Relays
from memory_search import CHUNK, Search, data_key, look_until, place, stacks, surroundings
from memory_stage import ACCOUNTS, OPENID_NAME, PAGED, PROJECT, SERVICE_NAME, crowd, stage, unread

# Seconds after which nothing may be left.
PATIENCE = 10
# What may not be left after a lock and after a sign-out. The rest is measured.
TOKEN_KINDS = ["access token", "refresh token", "ID token", "upstream provider's token"]
KEY_KINDS = ["vault's data key", "key file's key", "passphrase"]
# What the configuration names, and what sign-ins are made with, by the provider's parameter: measured, not promised.
OTHERS = {SERVICE_SECRET: "client secret"}
PARAMETERS = {"code": "authorization code", "code_verifier": "code verifier"}


class Walk:
    """What is done with the accounts, and what is in memory then."""

    def __init__(self, house, report, shows_where):
        self.house = house
        self.report = report
        self.search = Search(house.directory)
        self.shows_where = shows_where
        self.others = {}
        self.unread = None
        self.rows = []
        self.count = 0
        self.kept = None

    @property
    def pids(self):
        return [self.house.daemon.pid, *children(self.house.daemon.pid)]

    @property
    def secrets(self):
        found = dict(self.others)
        for recorder in self.house.kind.recorders:
            found |= recorder.secrets()
        for request in self.house.sandbox.look("log")["requests"]:
            for name, kind in PARAMETERS.items():
                value = request["parameters"].get(name)
                if isinstance(value, str) and len(value) >= CHUNK:
                    found[value.encode()] = kind
        return found

    def start(self):
        self.house.start()
        self.house.unlock()
        if len(self.pids) < 2:
            raise Trouble("the daemon has no helper")
        key, wrapping = data_key(self.house.place("kept/state"), self.house.place("kept/data/ringback/keys"))
        self.others = {key: KEY_KINDS[0], wrapping: KEY_KINDS[1], PASSPHRASE.encode(): KEY_KINDS[2]}
        self.others |= {text.encode(): kind for text, kind in OTHERS.items()}
        self.kept = Kept(self.house.socket)
        self.house.kind.kept = Kept(self.house.socket)
        self.events = self.house.api_in_background("GET", "/v1/events", None)

    def sign_in(self, names=ACCOUNTS):
        for name in names:
            self.others |= self.house.kind.sign_in(self.house, name)

    def use(self, names=ACCOUNTS):
        """Everything that moves tokens: hand-outs, refreshes, smaller tokens, requests to the provider with one."""
        api, kept = self.house.api, self.kept
        for name in names:
            rest = f"/v1/accounts/{name}"
            for _ in range(3):
                must(api("GET", f"{rest}/session"), f"a session of {name}")
                must(kept.get(f"{rest}/session"), f"a session of {name}, over a kept connection")
            must(kept.get(f"{rest}/session?include=user"), f"a session and a user of {name}")
            must(api("POST", f"{rest}/refresh", {"force": True}), f"a refresh of {name}")
            must(kept.post(f"{rest}/refresh", {"force": True}), f"a refresh of {name}, over a kept connection")
            must(kept.get(f"{rest}/session"), f"a session of {name} after a refresh")
        if OPENID_NAME in names:
            rest = f"/v1/accounts/{OPENID_NAME}/session"
            must(kept.get(f"{rest}?include=id_token,user"), "an ID token")
            must(kept.get(f"{rest}?scope=email"), "a downscoped token")
            self.failures()
        if PAGED in names:
            must(kept.get(f"/v1/accounts/{PAGED}/session?include=provider_token"), "an upstream provider's token")
        for name in set(names) & set(PROJECT):
            must(api("GET", f"/v1/accounts/{name}/user"), f"the user of {name}, by its project")
            must(kept.get(f"/v1/accounts/{name}/identities"), f"the identities of {name}")
        paths = [f"/v1/accounts/{name}/session{more}" for name in names for more in ("", "?include=user")]
        crowd(self.house, paths)
        self.unread = unread(self.house, names[0])

    def failures(self):
        """Answers whose tokens come in part, or with an ID token that is not believed; and the next, which is good."""
        rest = f"/v1/accounts/{OPENID_NAME}"
        recorder = self.house.kind.recorders[True]
        for cut in (900, 400):
            recorder.cuts = [cut]
            self.house.api("POST", f"{rest}/refresh", {"force": True})
        self.house.sandbox.control(perturb=[{"name": "id_token_wrong_signature", "count": 1}])
        self.house.api("POST", f"{rest}/refresh", {"force": True})
        must(self.house.api("POST", f"{rest}/refresh", {"force": True}), "a refresh after bad answers")

    def look(self):
        """The copies of what is known, by kind."""
        secrets = self.secrets
        self.count = len(secrets)
        found = {kind: [] for kind in dict.fromkeys([*TOKEN_KINDS, *KEY_KINDS, *secrets.values()])}
        for copy in self.search.copies(secrets, self.pids):
            found[copy.kind].append(copy)
        return found

    def shows(self, when, names=ACCOUNTS):
        """These sign in, all are used, and their secrets are in memory."""
        self.sign_in(names)
        self.use()
        found = self.look()
        for kind in TOKEN_KINDS + KEY_KINDS[:1]:
            self.report.note(found[kind], f"{when}: the search finds each {kind}", "nothing found that must be there")
        self.rows.append([when, found, 0.0])

    def is_clean(self, kinds, when):
        """Within ten seconds nothing of these kinds is left."""
        found, elapsed = look_until(self.look, lambda found: not any(found[kind] for kind in kinds), PATIENCE)
        self.rows.append([when, found, elapsed])
        held = stacks(self.pids)
        for kind in kinds:
            places = sorted({f"{place(copy, held)} ({copy.form})" for copy in found[kind]})
            self.report.note(
                not found[kind], f"{when}: {kind}", f"{len(found[kind])} copies: {', '.join(places)}")
        for copy in [copy for copies in found.values() for copy in copies][:12] if self.shows_where else []:
            progress(f"{copy.kind}, {copy.form}: {copy.length} of {copy.whole} bytes at {copy.address:x} in "
                     f"{place(copy, held)} of {copy.pid}: {surroundings(copy)}")

    def lock(self, when):
        must(self.house.api("POST", "/v1/vault/lock", {}), "locking")
        self.is_clean([*TOKEN_KINDS, *KEY_KINDS], when)

    def round(self, number):
        house = self.house
        self.shows(f"{number}: in use")
        self.lock(f"{number}: locked")
        must(house.api("POST", "/v1/vault/unlock", {}), "unlocking")
        # What was not to be kept went with the lock.
        self.shows(f"{number}: unlocked", ["unkept"])
        for name in ACCOUNTS:
            if name != SERVICE_NAME:
                must(house.api("DELETE", f"/v1/accounts/{name}/session"), f"signing out of {name}")
        # A service is signed in for as long as it is configured.
        must(house.api("DELETE", f"/v1/accounts/{SERVICE_NAME}/session"), "letting the service's token go")
        self.is_clean(TOKEN_KINDS, f"{number}: signed out")
        self.lock(f"{number}: signed out and locked")
        must(house.api("POST", "/v1/vault/unlock", {}), "unlocking")

    def passphrase(self):
        """The same vault with a passphrase, from which the wrapping key is derived."""
        body = {"key_source": "passphrase", "passphrase": PASSPHRASE}
        must(self.house.api("POST", "/v1/vault/rekey", body), "a change to a passphrase")
        self.lock("rekeyed and locked")
        must(self.kept.post("/v1/vault/unlock", {"passphrase": PASSPHRASE}), "unlocking with a passphrase")
        self.shows("unlocked with a passphrase")
        self.lock("locked with a passphrase")


def walk_relays(chosen, report):
    try:
        with Places() as own:
            house = own.add(Relays(chosen.bin, report), chosen.keep)
            table("Copies in memory of relays and bridges", ["when", "processes", "copies", "s"], house.walk())
    except (Trouble, OSError) as trouble:
        report.note(False, "the relays", f"it broke off: {type(trouble).__name__} {trouble}")


def show(walk):
    kinds = list(dict.fromkeys(kind for _, found, _ in walk.rows for kind in found))
    rows = [
        [when, *(len(found.get(kind, [])) for kind in kinds), f"{elapsed:.1f}"] for when, found, elapsed in walk.rows]
    table("Copies in memory, and after how many seconds", ["when", *kinds, "s"], rows)
    print(f"\nlooked for: {walk.count} secrets; read each time: {walk.search.seen / 1e6:.0f} MB")


@played(root="only root can read the daemon's memory", rounds=(10, "how often"),
         where=(0, "1: show the bytes around each copy"), relays=(0, "1: the relays alone"))
def campaign(chosen, report, places):
    walk_relays(chosen, report)
    if chosen.relays:
        return
    house = places.add(stage(chosen.bin), chosen.keep)
    walk = Walk(house, report, chosen.where)
    try:
        house.fresh(reuse_grace=60)
        walk.start()
        for number in range(1, (1 if chosen.short else chosen.rounds) + 1):
            progress(f"round {number}")
            walk.round(number)
        walk.passphrase()
        report.note(house.kind.recorders[True].secrets(), "the walk", "no token came over TLS")
    finally:
        show(walk)
