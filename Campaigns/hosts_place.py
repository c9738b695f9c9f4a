"""Hosts that share a vault: each a daemon with a state of its own in a network of its own, joined by the commands that a
person types."""

import contextlib
import json
import os
import re
import tempfile
import time
import uuid

from harness import Daemon, Died, Kept, Relay, Trouble, must, put_away, read, run, started, until, write
from herd import Clock
from hosts_database import ADDRESSES, POOLER, PRIMARY, Database
from hosts_network import Hub, Namespace
from hosts_tap import Tap
from house import ACCOUNT, Sandbox
from kinds import openid_account
from shim import Shim, build

OWNER = "ada"
# Where a host reaches the database through a tap (hosts_tap.py).
LOOPBACK = "127.0.0.1"
SESSION = f"/v1/accounts/{ACCOUNT}/session"
# Seconds that a token lives; each step of the clock is longer.
LIFETIME, STEP = 3_600, 4_000


class Host(Daemon):
    """One daemon. What is asked of it goes over its Unix socket, which no network namespace keeps anybody from."""

    log_level = "debug"

    def __init__(self, fleet, name, shimmed=False):
        self.fleet, self.name = fleet, name
        super().__init__(fleet.binaries, os.path.join(fleet.directory, name))
        # Seconds by which its clock on the wall is wrong.
        self.ahead = 0
        # Seconds by which its time since boot is another one than this machine's; None: it is this machine, in this boot.
        self.booted = None
        if shimmed:
            self.shim = Shim(fleet.shim, self.place("shim.control"), self.kept + "/")
        self.namespace = Namespace()
        self.wire = fleet.hub.join(self.namespace)
        # The sandbox listens on loopback: its port is on the loopback of each host too.
        port = int(fleet.sandbox.issuer.rsplit(":", 1)[1])
        self.forwarder = Relay(self.namespace.listen(port), port)
        self.tap = Tap(self, fleet.database) if LOOPBACK in fleet.through else None
        self.configure()

    def configure(self, store=None, more=""):
        vault = '[vault]\nkey_source = "key-file"\n' + (f'store = "{store}"\n' if store else "")
        text = "".join(openid_account(name, self.fleet.sandbox.issuer) for name in self.fleet.accounts)
        write(self.configuration, text + vault + more)

    @property
    def environment(self):
        clock = {} if self.shim else self.fleet.clock.environment | {
            "RINGBACK_WALL": str(self.ahead), "RINGBACK_BOOT": str(self.booted or 0)}
        return super().environment | {"PATH": "/usr/bin:/bin"} | clock

    @property
    def prefix(self):
        """What its daemon begins with."""
        if self.booted is None:
            return self.namespace.prefix
        write(self.place("boot_id"), f"{uuid.uuid4()}\n")
        return [*self.namespace.prefix, "unshare", "--mount", "sh", "-c",
                f'mount --bind {self.place("boot_id")} /proc/sys/kernel/random/boot_id && exec "$@"', "sh"]

    @property
    def command(self):
        # `env` sets what is for the daemon alone. All of them replace themselves: the pid is the daemon's.
        stated = self.environment | (self.shim.environment if self.shim else {})
        return [*self.prefix, "env", "-i", *(f"{name}={value}" for name, value in stated.items()), *super().command]

    def launch(self):
        self.daemon = started(self.command, self.log_path, cwd=self.place("tmp"))

    def type(self, *words, given="", status=0):
        """A command on this host: its output."""
        done = self.ringback(*words, given=given, timeout=120)
        if done.returncode != status:
            raise Trouble(f"{self.name}: ringback {' '.join(words)} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout

    @property
    def vault(self):
        return self.api("GET", "/v1/status")[1].get("vault", {})

    @property
    def database(self):
        """What it knows of the database."""
        return self.vault.get("database") or {}

    def metric(self, name):
        """The sum over all accounts."""
        text = Kept(self.socket).get("/v1/metrics")[1].decode()
        return sum(map(int, re.findall(rf"^ringback_{name}(?:{{.*}})? (\d+)$", text, re.M)))

    @property
    def token(self):
        """The access token that it serves; None if it serves none."""
        return self.session(ACCOUNT)

    def session(self, account):
        """The access token of an account; None if it has none."""
        status, document = self.api("GET", f"/v1/accounts/{account}/session")
        return document.get("access_token") if status == 200 else None

    def held(self):
        """The state of the account, and its error's code."""
        account = self.account()
        return account.get("state"), (account.get("error") or {}).get("code")

    def sign_in(self, account=ACCOUNT):
        """A sign-in in a browser that is elsewhere: its callback URL is typed here."""
        callback = self.fleet.sandbox.approve(self.new_flow(account)["authorization_url"])
        must(self.api("POST", "/v1/callbacks", {"url": callback}), f"{self.name}: the callback")

    def refresh(self, account=ACCOUNT):
        return self.api("POST", f"/v1/accounts/{account}/refresh", {"force": True})

    def refresh_surely(self):
        must(self.refresh(), f"{self.name}: a refresh")

    def refresh_in_background(self):
        return self.api_in_background("POST", f"/v1/accounts/{ACCOUNT}/refresh", {"force": True}, timeout=90)

    def close(self):
        self.kill()
        self.forwarder.close()
        if self.tap:
            self.tap.close()
        self.namespace.close()


class Fleet:
    """The sandbox, the database and the hosts of one owner, all with the same accounts."""

    def __init__(self, binaries, count, shimmed=0, through=(PRIMARY,), standby=False, database=Database, accounts=(ACCOUNT,)):
        self.binaries = os.path.realpath(binaries)
        self.directory = tempfile.mkdtemp(prefix="ringback-hosts-")
        self.hosts, self.hub, self.database, self.sandbox = [], None, None, None
        self.through, self.accounts = through, accounts
        try:
            self.clock = Clock(self.directory)
            self.shim = build(self.directory)
            self.sandbox = Sandbox(self.binaries, self.directory)
            self.hub = Hub(ADDRESSES)
            self.database = database(self.hub)
            if standby:
                self.database.start_standby()
            self.reset()
            invitation = self.prepare(through) if count else None
            for number in range(count):
                host = Host(self, f"host{number + 1}", shimmed=number < shimmed)
                self.hosts.append(host)
                if number:
                    invitation = self.invite()
                self.join(host, invitation)
        except BaseException:
            self.close()
            raise

    def reset(self, **switches):
        self.sandbox.control(**({"reset": True, "auto_approve": "alice", "algorithm": "ES256", "reuse_grace": 0,
                                 "access_token_lifetime": LIFETIME} | switches))

    def prepare(self, through, owner=OWNER):
        """`ringback vault init`, as an administrator types it. Returns what it prints."""
        done = self.administrate("init", self.database.administrator(), "--owner", owner, "--host-url",
                                 self.database.url(*through), "--json")
        if POOLER in through and not self.database.pooler:
            self.database.start_pooler()
        return json.loads(done)

    def invite(self, by=None):
        return json.loads((by or self.hosts[0]).type("vault", "invite", "--json"))

    def administrate(self, verb, *words, given="", status=0):
        """`ringback vault …` of an administrator, in the hub. Without a status any will do."""
        done = run(*self.hub.prefix, os.path.join(self.binaries, "ringback"), "vault", verb, *words,
                   env={"PATH": "/usr/bin:/bin", "HOME": self.directory}, input=given, timeout=120)
        if status is not None and done.returncode != status:
            raise Trouble(f"ringback vault {verb} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout if status == 0 else done.stdout + done.stderr

    def join(self, host, invitation, more="", by=None):
        """From the lines of the invitation to a vault that is open. `more` is added to the configuration; `by` has the key."""
        host.configure(store=invitation["store"], more=more)
        host.start()
        said = host.type("vault", "join", "--name", host.name, "--no-wait", "--json", given=invitation["password"] + "\n")
        code = json.loads(said).get("code")
        if code:
            (by or self.hosts[0]).type("vault", "share", given=code + "\n")
        host.api("POST", "/v1/vault/unlock", {})
        until(f"{host.name}'s vault", lambda: host.vault.get("locked") is False, 60)

    @property
    def requests(self):
        """Refresh requests that the provider has had."""
        return self.sandbox.counters["token_requests"].get("refresh_token", 0)

    @property
    def rotations(self):
        return self.sandbox.counters["rotations"]

    @property
    def reuses(self):
        """How often a replaced refresh token came back."""
        return self.sandbox.counters["reuse_detections"]

    @property
    def attempts(self):
        """Refresh requests that the hosts have made, by their own count."""
        return sum(host.metric("refreshes_attempted_total") for host in self.hosts)

    def agreed(self):
        """The one token that all hosts serve; None if they do not agree."""
        tokens = {host.token for host in self.hosts}
        return tokens.pop() if len(tokens) == 1 else None

    def sign_in(self, host=None):
        """Signs in on one host, and waits until all of them serve its token."""
        (host or self.hosts[0]).sign_in()
        return self.await_token((host or self.hosts[0]).token)

    def settle(self):
        """Until no host has a statement under way: a step of the clock is a suspend of the machine, which would end it."""
        active = "select count(*) from pg_stat_activity where state = 'active' and usename like 'ringback_%'"
        quiet = 0
        while quiet < 3:
            quiet = quiet + 1 if self.database.sql(active) == "0" else 0
            time.sleep(0.05)

    def await_token(self, token, seconds=20, hosts=None):
        """Until all hosts serve this token."""
        for host in hosts or self.hosts:
            try:
                until(f"{host.name} to serve the session of another host", lambda host=host: host.token == token, seconds)
            except Trouble as trouble:
                raise Trouble(f"{trouble}; its answer is {host.api('GET', SESSION)}, its account {host.account()}, "
                              f"its vault {host.vault}, {self.requests} refresh requests were made") from None
        return token

    def ends(self):
        """What the hosts' audit logs say of sessions that the provider has ended."""
        found = []
        for host in self.hosts:
            log = read(host.place("kept/state/audit.jsonl")).splitlines()
            found += [json.loads(line) for line in log if '"session_ended"' in line]
        return found

    def is_honoured(self, token):
        return bool(token) and self.sandbox.subject(token) == "alice"

    def close(self, keep=False):
        for host in self.hosts:
            with contextlib.suppress(OSError, Died):
                host.close()
        if self.database:
            self.database.close(keep)
        if self.hub:
            self.hub.close()
        if self.sandbox:
            self.sandbox.close()
        put_away(self.directory, keep)


def measured(body):
    """What it returns, and how many seconds it took."""
    started = time.monotonic()
    found = body()
    return found, time.monotonic() - started

