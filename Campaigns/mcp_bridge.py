#!/usr/bin/env -S python3 -B
"""Bridges: what `ringback mcp` carries between clients on standard input and output and a server of each generation.

The client writes lines and reads lines; the server notes every request. Each step says what must have happened at both.
"""

import json
import os
import queue
import signal
import subprocess
import threading

from harness import memory, played, progress, read, stop, table, until
from mcp import mcp_house, ringback, sign_in
from mcp_parties import REVISION, Issuer, MCPServer

ACCOUNT = "notes"
BRIDGES = 50


class Client:
    """A program that has started `ringback mcp`."""

    def __init__(self, house, account=ACCOUNT, socket=None):
        self.errors = open(house.place("bridge.log"), "ab+")
        self.start = self.errors.tell()
        self.process = subprocess.Popen(
            [house.program(), "mcp", account], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            env=house.environment | {"RINGBACK_SOCK": socket or house.socket})
        self.lines = queue.Queue()
        self.strays = []
        self.number = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            try:
                self.lines.put(json.loads(line))
            except ValueError:
                self.strays.append(line)
        self.lines.put(None)

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def message(self, method, modern=True, **params):
        self.number += 1
        if modern:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    def read(self, seconds=20):
        """The next message; None if there is none in time, or the bridge has ended."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def ask(self, method, modern=True, seconds=20, **params):
        """A request, and its response; what comes before it is kept in `before`."""
        message = self.message(method, modern, **params)
        self.write(message)
        self.before = []
        while True:
            found = self.read(seconds)
            if found is None or found.get("id") == message["id"]:
                return found or {}
            self.before.append(found)

    def begin(self, version="2025-06-18", between=lambda: None):
        """The handshake of the older revisions, with what happens in its middle."""
        found = self.ask("initialize", modern=False, protocolVersion=version, capabilities={}, clientInfo={"name": "c"})
        between()
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return found

    @property
    def said(self):
        """Its standard error."""
        with open(self.errors.name, errors="replace") as file:
            file.seek(self.start)
            return file.read()

    def memory(self):
        return memory(self.process.pid)

    def close(self):
        """The client is done. The bridge's exit status."""
        try:
            self.process.stdin.close()
            status = self.process.wait(timeout=15)
        except (OSError, subprocess.TimeoutExpired):
            stop(self.process)
            status = None
        self.errors.close()
        return status


def relays(house, word="--socket"):
    """The process numbers of a house's relays: those of its bridges, or of its exposed sockets (`--exposed`)."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        words = read(f"/proc/{name}/cmdline").split("\0")
        is_ours = any(path.startswith(house.directory + "/") for path in words)
        if words[0].endswith("ringback-relay") and is_ours and word in words:
            found.append(int(name))
    return found


def end_relays(house, word="--socket", by=signal.SIGTERM):
    for relay in relays(house, word):
        os.kill(relay, by)


class Run:
    def __init__(self, house, report, is_short):
        self.house, self.note, self.is_short = house, report.note, is_short
        self.issuer = Issuer()
        self.server = MCPServer([self.issuer], listed=["mcp:basic"])
        ringback(house, "account", "add", ACCOUNT, "--mcp", self.server.url, "--offline")

    def sign_in(self, **body):
        sign_in(self.house, ACCOUNT, **body)

    @property
    def pages(self):
        return self.issuer.count(self.issuer.endpoint("authorize"))

    @property
    def refreshes(self):
        sent = self.issuer.sent(self.issuer.endpoint("token"))
        return sum(1 for seen in sent if seen.form.get("grant_type") == "refresh_token")

    def messages(self, method=None):
        """The requests at the server that it took, by the message's method."""
        seen = [request for request in self.server.requests if request.path == "/mcp" and request.method == "POST"]
        return [request for request in seen if method in (None, request.json.get("method"))]

    def many(self):
        count = 10 if self.is_short else BRIDGES
        # A token that is only seconds old is not refreshed again: the daemon forgets when it was made.
        self.house.restart()
        clients = [Client(self.house) for _ in range(count)]
        for client in clients:
            client.ask("tools/list")
        before, pages = self.refreshes, self.pages
        self.issuer.tokens.clear()
        messages = [client.message("tools/list") for client in clients]
        for client, message in zip(clients, messages):
            client.write(message)
        found = [client.read(30) or {} for client in clients]
        answered = sum(1 for answer in found if "result" in answer)
        self.note(answered == count, f"{count} bridges with one refused token: all answered", answered)
        self.note(self.refreshes == before + 1, "one refresh for all of them", self.refreshes - before)
        self.note(self.pages == pages, "no page", self.pages - pages)
        self.memory = max(client.memory() for client in clients)
        self.note(self.memory <= 6 * 1024, "a bridge has 6 MB at most", f"{self.memory} kB")
        for client in clients:
            client.close()

    def more_scopes(self):
        pages = self.pages
        self.server.needed = "mcp:write"
        client = Client(self.house)
        for _ in range(5):
            found = client.ask("tools/call", name="add_numbers", arguments={"a": 1, "b": 1})
        text = json.dumps(found.get("error", {}))
        self.note("mcp:write" in text and f"ringback login {ACCOUNT}" in text, "missing scopes: the command is said", found)
        self.note(self.pages == pages, "no page by itself", self.pages - pages)
        self.sign_in(scopes="mcp:write")
        asked = set(self.issuer.sent(self.issuer.endpoint("authorize"))[-1].query["scope"].split())
        self.note(asked == {"mcp:basic", "mcp:write"}, "the sign-in requests the union", asked)
        found = client.ask("tools/call", name="add_numbers", arguments={"a": 1, "b": 1})
        self.note("result" in found, "the same bridge goes on", found)
        self.server.needed = None
        client.close()

    def sizes(self):
        client = Client(self.house)
        text = "x" * (8 << 20)
        found = client.ask("tools/call", seconds=60, name="echo", arguments={"text": text})
        self.note(found.get("result", {}).get("text") == text, "8 MiB there and back", str(found)[:200])
        client.write({"jsonrpc": "2.0", "id": "big", "method": "x", "params": {"text": "x" * (17 << 20)}})
        found = client.read(60) or {}
        self.note("error" in found, "a message beyond 16 MiB is an error", str(found)[:200])
        self.note("result" in client.ask("tools/list"), "and the bridge goes on")
        client.close()
        held = memory(relays(self.house)[0])
        self.note(held <= 64 * 1024, "the relay's memory is bounded", held)

    def endless(self):
        client = Client(self.house)
        client.write(client.message("tools/call", name="endless", arguments={}))
        first = client.read()
        self.note((first or {}).get("method") == "notifications/progress", "an endless stream begins", first)
        client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client.number}})
        self.note(self.server.endless_ended.wait(20), "a cancelled request closes its stream")
        found = client.ask("tools/list")
        self.note("result" in found, "and the bridge goes on", found)
        self.note(not client.strays, "nothing but messages is on standard output", client.strays)
        client.close()

    def exposed(self):
        """A socket of the configuration whose relay is killed, and which is revoked."""

        def kill():
            end_relays(self.house, "--exposed", signal.SIGKILL)

        with open(self.house.configuration, "a") as file:
            file.write(f'\n[[expose]]\nname = "agent"\naccount = "{ACCOUNT}"\nmcp = true\n')
        ringback(self.house, "reload")
        place = self.house.api("GET", "/v1/exposed-sockets/agent")[1].get("directory", "")
        self.server.has_sessions = True
        client = Client(self.house, socket=os.path.join(place, "socket"))
        found = client.begin()
        self.note(found.get("result", {}).get("protocolVersion") == "2025-06-18", "an exposed socket: initialize", found)
        found = client.ask("tools/list", modern=False)
        self.note("result" in found, "a request of its session", found)
        before = len(self.messages("initialize"))
        kill()
        found = client.ask("tools/list", modern=False)
        self.note(
            "result" in found and len(self.messages("initialize")) == before + 1,
            "its relay is killed: the next one begins the session again", found)
        second = Client(self.house, socket=os.path.join(place, "socket"))
        second.begin(between=kill)
        found = second.ask("tools/list", modern=False)
        self.note("result" in found, "its relay is killed in the middle of the handshake: the same", found)
        second.close()
        ringback(self.house, "expose", "revoke", "agent")
        found = client.ask("tools/list", modern=False)
        self.note("error" in found, "a revoked socket serves nothing", found)
        client.close()
        self.server.has_sessions = False

    def killed(self):
        client = Client(self.house)
        client.ask("tools/list")
        self.note(len(relays(self.house)) == 1, "one relay for all bridges", relays(self.house))
        message = client.message("tools/call", name="endless", arguments={})
        client.write(message)
        client.read()
        end_relays(self.house, by=signal.SIGKILL)
        found = client.read() or {}
        while found.get("method"):
            found = client.read() or {}
        self.note(found.get("id") == message["id"] and "error" in found, "relay killed: one error for the request", found)
        self.note("result" in client.ask("tools/list"), "the next one goes through a new relay")
        self.house.kill()
        until("the end of the relay", lambda: not relays(self.house), seconds=10)
        self.note(True, "the relay ends with the daemon")
        found = client.ask("tools/list")
        self.note("error" in found, "no daemon: an error", found)
        self.house.start()
        found = client.ask("tools/list")
        self.note("result" in found, "the daemon is back: the same bridge goes on", found)
        client.close()

    def all(self):
        for step in [self.sign_in, self.many, self.more_scopes, self.sizes, self.endless, self.exposed, self.killed]:
            progress(step.__name__.replace("_", " "))
            step()
        self.note(not [line for line in self.server.mistakes if "token" not in line], "no mistake at the server", self.server.mistakes)
        table("Bridges", ["what", "kB"], [["anonymous memory, the largest of them", self.memory]])

    def close(self):
        end_relays(self.house)
        self.issuer.close()
        self.server.close()


@played()
def campaign(chosen, report, places):
    places.add(Run(mcp_house(chosen, places), report, chosen.short)).all()
