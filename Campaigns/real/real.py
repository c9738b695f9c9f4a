#!/usr/bin/env python3
"""Signs in at real providers with a real browser, and holds the session as its owner would: uses, refreshes, ends it.

Every step is seen from both sides: what `ringback` says, and what the provider honours.
"""

import os
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
sys.dont_write_bytecode = True
from house import Died, House  # noqa: E402
from report import Report, options, progress  # noqa: E402
from stage import Trouble  # noqa: E402

from pages import Chromium  # noqa: E402
from playwright.sync_api import Error as BrowserError  # noqa: E402
from providers import Canaille, Mock  # noqa: E402
from person import Refuted, Ringback  # noqa: E402
from walks import CANAILLE, CLIENTS, MOCK, SERVICE  # noqa: E402

# Seconds that the mock's short tokens live: long enough for the pages, short enough to wait for.
SHORT_LIFE = 8


def free_ports(count):
    """Ports that were free a moment ago; all are held until the last is known."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def accounts(house, canaille, mocks, port):
    """The configuration's accounts: the clients at canaille, and one at each mock. The house learns the client ids."""
    text = ""
    house.clients = {}
    for name, algorithm in CLIENTS.items():
        redirect_uri = f"http://127.0.0.1:{port}/callback/{name}"
        method = "client_secret_basic" if name == "secret" else "none"
        registered = canaille.client(redirect_uri, algorithm, method)
        house.clients[name] = registered["client_id"]
        secret = registered["client_secret"] if name == "secret" else None
        text += account(name, canaille.issuer, registered["client_id"], redirect_uri, secret)
    for mock in mocks:
        name = os.path.basename(mock.directory)
        redirect_uri = f"http://127.0.0.1:{port}/callback/{name}"
        registered = {"client_id": "ringback", "client_secret": "any"}
        if name == "confidential":
            registered = mock.register(redirect_uris=[redirect_uri], token_endpoint_auth_method="client_secret_basic")
        text += account(name, mock.issuer, registered["client_id"], redirect_uri, registered["client_secret"])
    return text


def account(name, issuer, client, redirect_uri, secret=None):
    text = f'[accounts.{name}]\nissuer = "{issuer}"\nclient_id = "{client}"\nredirect_uri = "{redirect_uri}"\n'
    if secret:
        # How it is sent is left to the metadata: canaille lists four ways, the mock none.
        text += f'client_secret = "{secret}"\n'
    return text + 'scopes = ["openid", "email"]\n'


def services(house, canaille):
    """Accounts that nobody signs in to, both at canaille. The house learns the clients and where their files are."""
    registered = {"service": canaille.service(), "pod": canaille.pod()}
    house.services = {name: (one["client_id"], one["client_secret"]) for name, one in registered.items()}
    house.secret_file = os.path.join(house.directory, "service.secret")
    house.assertion_file = os.path.join(house.directory, "assertion")
    for path, text in [(house.secret_file, house.services["service"][1]), (house.assertion_file, "none.yet.there")]:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text + "\n")
    return (
        f'[accounts.service]\nissuer = "{canaille.issuer}"\nclient_id = "{house.services["service"][0]}"\n'
        f'client_secret_file = "{house.secret_file}"\ngrant = "client_credentials"\n'
        f'[accounts.pod]\nissuer = "{canaille.issuer}"\ngrant = "jwt_bearer"\n'
        # openid is what the userinfo endpoint asks for; there is no ID token here.
        f'assertion_file = "{house.assertion_file}"\nscopes = ["openid", "profile"]\n')


def attempt(report, title, walk, stage):
    """One walk; its complaint comes with the page, the daemon's log and the provider's."""
    try:
        walk(stage)
        report.note(True, title)
        progress(f"passed: {title}")
    except (Refuted, Trouble, Died, BrowserError, OSError, LookupError, ValueError) as reason:
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


def main():
    chosen = options(__doc__.splitlines()[0], only=("", "only walks with this in their titles"))
    report = Report()
    house = House(chosen.bin, shimmed=False)
    providers = []
    chromium = None
    try:
        ports = free_ports(6)
        canaille = Canaille(house.directory, ports[0])
        mocks = [
            Mock(house.directory, ports[1]),
            Mock(house.directory, ports[2], "short", ["--token-max-age", str(SHORT_LIFE)]),
            Mock(house.directory, ports[3], "unrefreshed",
                 ["--no-refresh-token", "true", "--token-max-age", str(SHORT_LIFE)]),
            Mock(house.directory, ports[4], "confidential", ["--require-registration", "true"]),
        ]
        for provider in [canaille, *mocks]:
            providers.append(provider)
            provider.start()
            progress(f"{provider.issuer} is up")
        house.configure(accounts(house, canaille, mocks, ports[5]) + services(house, canaille))
        house.start()
        chromium = Chromium()
        at = {os.path.basename(mock.directory): mock for mock in mocks}
        walks = [CANAILLE[0], SERVICE[0], MOCK[0]] if chosen.short else [*CANAILLE, *SERVICE, *MOCK]
        for title, name, walk in walks:
            if chosen.only in title:
                attempt(report, title, walk, Stage(house, chromium, at.get(name, canaille), name))
    except (Trouble, Died, BrowserError, OSError) as trouble:
        progress(f"the walks could not run: {trouble}")
        report.note(False, "the stage", str(trouble))
    finally:
        if chromium:
            chromium.close()
        for provider in providers:
            provider.close()
        house.close(chosen.keep)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
