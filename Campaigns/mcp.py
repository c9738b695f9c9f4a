#!/usr/bin/env -S python3 -B
"""Accounts at real MCP servers, each from its URL alone.

The servers are those of the PyPI packages mcp and fastmcp, each with its own authorization server. A client of fastmcp then
calls a tool there with the token of `ringback token`. Clients of both packages start `ringback mcp` and use every tool of
both servers through it, in both generations of the protocol. Every step is seen from both sides.
"""

import http.client
import json
import os
import urllib.parse

from harness import HERE, ROOT, Trouble, free_ports, played, read, run, started, stop, tcp_request, until
from house import House
from venv_programs import installed

REQUIREMENTS = os.path.join(HERE, "mcp_requirements.txt")
PYTHON = os.path.join(ROOT, ".build/mcp-venv/bin/python")


class Server:
    """A server of one package."""

    def __init__(self, house, kind):
        [port] = free_ports(1)
        self.origin = f"http://127.0.0.1:{port}"
        self.url = self.origin + "/mcp"
        self.log = house.place(f"{kind}.log")
        self.process = started(
            [PYTHON, "-I", os.path.join(HERE, "mcp_servers.py"), kind, str(port)], self.log, cwd=house.place("tmp"),
            env=house.environment | {"FASTMCP_SHOW_SERVER_BANNER": "false"})
        until(f"the server of {kind}", self.answers, seconds=60)

    def answers(self):
        try:
            return tcp_request(self.origin + "/")[0] == 404
        except (OSError, http.client.HTTPException):
            return False

    def count(self, path):
        """How many requests to the path have succeeded."""
        words = [line.split() for line in read(self.log).splitlines()]
        return sum(1 for line in words if line[1:2] == [path] and line[2][:1] in "23")

    def lines(self, start):
        """How many lines of the log begin so."""
        return sum(1 for line in read(self.log).splitlines() if line.startswith(start))


def ringback(house, *words):
    """`ringback`: (status, standard output, standard error)."""
    done = house.ringback(*words)
    return done.returncode, done.stdout, done.stderr


def mcp_house(chosen, places):
    """A house without accounts, whose daemon runs."""
    house = places.add(House(chosen.bin, accounts=[], shimmed=False), chosen.keep)
    house.configure()
    house.start()
    return house


def redirected(page):
    """Where an authorization server that approves by itself sends the browser."""
    status, headers, body, _ = tcp_request(page)
    if status not in (302, 303):
        raise Trouble(f"the authorization endpoint answered {status}: {body[:200]!r}")
    return headers["Location"]


def sign_in(house, name, browse=redirected, **body):
    """A whole sign-in. `browse` is the browser's way from the sign-in page to the callback's URL."""
    flow = house.api("POST", f"/v1/accounts/{name}/sign-in", body)[1]
    if "authorization_url" not in flow:
        raise Trouble(f"no sign-in of {name}: {flow}")
    tcp_request(browse(flow["authorization_url"]))
    found = house.api("GET", f"/v1/flows/{flow['id']}?wait=20")[1]
    if found.get("status") != "completed":
        raise Trouble(f"no sign-in of {name}: {found}")


def for_resource(page):
    if "resource" not in urllib.parse.parse_qs(urllib.parse.urlsplit(page).query):
        raise Trouble("no resource in the authorization request")
    return redirected(page)


def notes(url, token):
    """What the tool counts, by a client of fastmcp with the token."""
    done = run(PYTHON, "-I", os.path.join(HERE, "mcp_servers.py"), "client", url, input=token, timeout=60)
    return done.stdout.strip() or done.stderr[-300:]


def use(house, server, report, kind, name):
    """Clients of both packages start `ringback mcp`, and use the server's tools through it."""
    for package in ["mcp", "fastmcp"]:
        for mode in ["auto", "legacy"]:
            what = f"{kind}: a client of {package}, {mode}"
            # A token that is only seconds old is not refreshed again: the daemon forgets when it was made.
            house.restart()
            before, lines = server.count("/token"), server.lines("TOOL forever")
            done = run(PYTHON, "-I", os.path.join(HERE, "mcp_servers.py"), "stdio", package, mode, house.program(), "mcp", name,
                       env=house.environment, timeout=90)
            try:
                found = json.loads(done.stdout)
            except ValueError:
                report.note(False, what, done.stdout[-500:] + done.stderr[-1500:])
                continue
            version = found.pop("version")
            report.note((version == "2026-07-28") == (mode == "auto"), f"{what}: the protocol's version", version)
            expected = {
                "tools": ["ask", "count", "forever", "forget_tokens", "slow"], "count": "3", "slow": "3",
                "steps": [[1, 3], [2, 3], [3, 3]], "ask": "Ada", "forgotten": True, "after": "3"}
            for key, value in expected.items():
                report.note(found.get(key) == value, f"{what}: {key}", found.get(key))
            until("the tool ends", lambda: server.lines("TOOL forever cancelled") == lines // 2 + 1, seconds=20)
            report.note(True, f"{what}: a cancelled call ends at the server")
            made = server.count("/token") - before
            report.note(made == 1, f"{what}: one refresh for the refused token", made)


def walk(house, report, kind):
    """From the URL to a tool that is called, a refresh, and the end."""
    server = Server(house, kind)
    name = f"at-{kind}"
    try:
        status, _, errors = ringback(house, "account", "add", name, "--mcp", server.url)
        report.note(status == 0, f"{kind}: account from the URL", errors)
        report.note(server.count("/register") == 0, f"{kind}: adding the account registers nothing")
        said = ringback(house, "doctor", name)[1]
        report.note("it registers the client by itself" in said, f"{kind}: doctor says what is announced", said)
        sign_in(house, name, for_resource)
        report.note(server.count("/register") == 1, f"{kind}: one client is registered")
        token = ringback(house, "token", name)[1].strip()
        report.note(notes(server.url, token) == "3", f"{kind}: a client calls a tool", notes(server.url, token))
        status, _, errors = ringback(house, "refresh", name)
        fresh = ringback(house, "token", name)[1].strip()
        report.note(status == 0 and fresh != token, f"{kind}: refresh", errors)
        report.note(notes(server.url, fresh) == "3", f"{kind}: a tool is called with the new token")
        house.restart()
        again = ringback(house, "refresh", name)
        report.note(again[0] == 0, f"{kind}: refresh after a restart", again[2])
        sign_in(house, name)
        report.note(server.count("/register") == 1, f"{kind}: the client signs in again", server.count("/register"))
        use(house, server, report, kind, name)
        last = ringback(house, "token", name)[1].strip()
        status, _, errors = ringback(house, "logout", name)
        report.note(status == 0 and server.count("/revoke") > 0, f"{kind}: the sign-out revokes", errors)
        report.note(notes(server.url, last) != "3", f"{kind}: the token is of no use then")
    finally:
        stop(server.process)


@played()
def campaign(chosen, report, places):
    # Unless the very same packages are there.
    installed("mcp", *(line for line in read(REQUIREMENTS).splitlines() if not line.startswith("#")))
    house = mcp_house(chosen, places)
    for kind in ["mcp", "fastmcp"]:
        walk(house, report, kind)
