#!/usr/bin/env -S python3 -B
"""Signs in at real providers with a real browser, and holds the session as its owner would: uses, refreshes, ends it.

Every step is seen from both sides: what `ringback` says, and what the provider honours.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from harness import Refuted, Trouble, expect, free_ports, played, progress, write  # noqa: E402
from house import House  # noqa: E402
from kinds import account, openid_account  # noqa: E402

from playwright.sync_api import Error as BrowserError  # noqa: E402
from providers import Canaille  # noqa: E402
from walks import CANAILLE, CLIENTS, SERVICE, Chromium  # noqa: E402

# Of a verb, in seconds; a sign-in waits for the pages.
VERB_SECONDS = 60
SIGN_IN_SECONDS = 120


class Ringback:
    """The command line as a person uses it, against the house's daemon."""

    def __init__(self, house):
        self.house = house

    def run(self, *arguments, status=0):
        """A verb that must end with this exit status. Returns its output, without the last newline."""
        done = self.house.ringback(*arguments, timeout=VERB_SECONDS)
        expect(done.returncode == status,
               f"ringback {' '.join(arguments)} ended with {done.returncode}, not {status}: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")

    def token(self, account, *more):
        return self.run("token", account, *more)

    def session(self, account):
        return json.loads(self.run("session", account, "--json"))

    def sign_in(self, account, walk, *more):
        """`login --no-browser` with `walk` as the browser: takes the URL, returns what the last page is and says.

        Returns (exit status, the line on stdout, what the page was).
        """
        login = subprocess.Popen(
            [self.house.program(), "login", account, "--again", "--no-browser", "--timeout", str(SIGN_IN_SECONDS), *more],
            env=self.house.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            url = login.stdout.readline().decode().strip()
            if not url.startswith("http"):
                output, told = login.communicate(timeout=VERB_SECONDS)
                raise Refuted(f"ringback login {account} showed no address: {told.decode(errors='replace')}")
            page, _ = walk(url)
            output, told = login.communicate(timeout=VERB_SECONDS)
        finally:
            if login.poll() is None:
                login.kill()
                login.wait()
            login.stdout.close()
            login.stderr.close()
        self.told = told.decode(errors="replace").strip()
        return login.returncode, output.decode().strip(), page


def accounts(house, canaille, port):
    """The configuration's accounts: the clients at canaille. The house learns the client ids."""
    text, house.clients = "", {}
    for name, algorithm in CLIENTS.items():
        keys = {"redirect_uri": f"http://127.0.0.1:{port}/callback/{name}"}
        registered = canaille.client(keys["redirect_uri"], algorithm, "client_secret_basic" if name == "secret" else "none")
        house.clients[name] = keys["client_id"] = registered["client_id"]
        if name == "secret":
            # How it is sent is left to the metadata: canaille lists four ways.
            keys["client_secret"] = registered["client_secret"]
        text += openid_account(name, canaille.issuer, ["openid", "email"], **keys)
    return text


def services(house, canaille):
    """Accounts that nobody signs in to, both at canaille. The house learns the clients and where their files are."""
    registered = {"service": canaille.service(), "pod": canaille.pod()}
    house.services = {name: (one["client_id"], one["client_secret"]) for name, one in registered.items()}
    house.secret_file = os.path.join(house.directory, "service.secret")
    house.assertion_file = os.path.join(house.directory, "assertion")
    write(house.secret_file, house.services["service"][1] + "\n")
    write(house.assertion_file, "none.yet.there\n")
    service = account("service", issuer=canaille.issuer, client_id=house.services["service"][0],
                      client_secret_file=house.secret_file, grant="client_credentials")
    # openid is what the userinfo endpoint asks for; there is no ID token here.
    return service + account("pod", issuer=canaille.issuer, grant="jwt_bearer", assertion_file=house.assertion_file,
                             scopes=["openid", "profile"])


def attempt(report, title, walk, stage):
    """One walk; its complaint comes with the page, the daemon's log and the provider's."""
    try:
        walk(stage)
        report.note(True, title)
        progress(f"passed: {title}")
    except (Refuted, Trouble, BrowserError, OSError, LookupError, ValueError) as reason:
        report.note(False, title, f"{type(reason).__name__}: {reason}")
        progress(f"  the browser was at {stage.person.where()}")
        progress(f"  ringbackd: {stage.house.why()}")
        progress(f"  the provider: {stage.provider.why()}")
    finally:
        stage.person.close()


class Stage:
    """What a walk has: the house, a provider, the account there, and a person with a new browser profile."""

    def __init__(self, house, chromium, provider, account):
        self.house = house
        self.provider = provider
        self.account = account
        self.ringback = Ringback(house)
        self.person = chromium.person()


@played(only=("", "only walks with this in their titles"))
def campaign(chosen, report, places):
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    port, callbacks = free_ports(2)
    canaille = places.add(Canaille(house.directory, port))
    canaille.start()
    progress(f"{canaille.issuer} is up")
    house.configure(accounts(house, canaille, callbacks) + services(house, canaille))
    house.start()
    chromium = places.add(Chromium())
    walks = [CANAILLE[0], SERVICE[0]] if chosen.short else [*CANAILLE, *SERVICE]
    for title, name, walk in walks:
        if chosen.only in title:
            attempt(report, title, walk, Stage(house, chromium, canaille, name))
