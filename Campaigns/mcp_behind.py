#!/usr/bin/env python3
"""Accounts at real MCP servers whose tokens another provider issues.

The servers are those of the PyPI packages mcp and fastmcp. They stand in front of the sandbox, which registers clients, and of
django-oauth-toolkit, where a client is registered beforehand, and ask the provider whether a token is good.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "real"))
import device  # noqa: E402
from device_provider import RESOURCE_SERVER, WEB_CLIENT  # noqa: E402
from house import House, Issuer, stop  # noqa: E402
from mcp import PYTHON, Server, notes, prepare, ringback, sign_in  # noqa: E402
from mcp_bridge import Client  # noqa: E402
from report import Report, could_not_run, options  # noqa: E402
from stage import Trouble, tcp_request  # noqa: E402


class SandboxTenant:
    """A provider that registers clients. The packages write a slash after an issuer without a path, hence a tenant."""

    title, word, settings = "the sandbox", "sandbox", ()

    def __init__(self, house):
        self.sandbox = house.sandbox
        self.issuer = house.sandbox.issuer + "/tenant-a"
        self.check = [self.issuer + "/userinfo"]
        Issuer(self.issuer).control(auto_approve="alice")

    def approve(self, page):
        tcp_request(self.sandbox.approve(page))

    def close(self):
        pass


class Toolkit(device.Provider):
    """django-oauth-toolkit, where a client is registered beforehand. It binds tokens to the resource (RFC 8707)."""

    title, word = "django-oauth-toolkit", "toolkit"

    def __init__(self, house):
        # The packages' environment has it too.
        super().__init__(house.directory, PYTHON)
        self.check = [self.issuer + "/introspect/", ":".join(RESOURCE_SERVER)]
        self.settings = ("--issuer", self.issuer, "--client-id", WEB_CLIENT)

    def approve(self, page):
        person = device.Person()
        person.open(page)
        # The redirect after the sign-in is the callback.
        person.open(person.place, username=device.PERSON, password=device.PASSWORD)


def walk(house, report, kind, provider):
    """A server whose tokens another provider issues: from the URL to a tool that is called, and a refresh."""
    server = Server(house, kind, provider=provider)
    # The redirect URI has the account's name, and django-oauth-toolkit knows it beforehand.
    name, what = f"{kind}-{provider.word}", f"{kind} in front of {provider.title}"
    try:
        status, _, errors = ringback(house, "account", "add", name, "--mcp", server.url, *provider.settings)
        report.note(status == 0, f"{what}: account from the URL", errors)
        found = sign_in(house, name, provider.approve)
        report.note(found == "completed", f"{what}: sign-in", found)
        token = ringback(house, "token", name)[1].strip()
        report.note(notes(server.url, token) == "3", f"{what}: a client calls a tool", notes(server.url, token))
        report.note(notes(server.url, token + "x") != "3", f"{what}: the server takes no other token")
        status, _, errors = ringback(house, "refresh", name)
        fresh = ringback(house, "token", name)[1].strip()
        report.note(status == 0 and fresh != token, f"{what}: refresh", errors)
        client = Client(house, name)
        found = client.ask("tools/call", name="count", arguments={})
        said = found.get("result", {}).get("content", [{}])[0].get("text")
        report.note(said == "3" and client.close() == 0, f"{what}: a tool is called over the bridge", found)
    finally:
        stop(server.process)


def main():
    wanted = options(__doc__.splitlines()[0])
    prepare()
    report = Report()
    house = House(wanted.bin, accounts=[], shimmed=False)
    try:
        house.configure()
        house.start()
        for made in [SandboxTenant, Toolkit]:
            provider = made(house)
            try:
                for kind in ["mcp", "fastmcp"]:
                    walk(house, report, kind, provider)
            finally:
                provider.close()
    except Trouble as trouble:
        return could_not_run(trouble, house)
    finally:
        house.close(wanted.keep)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
