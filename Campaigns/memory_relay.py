"""Tokens in the memory of the relays, for memory.py: that of the bridges, that of an exposed socket, and that of a command
(`ringback exec --relay`; `ringback run --relay` starts the same).

A server with TLS and one without, each with an account. Through each relay a request that has its response, a response
that has no end, a request that has no response yet, and a stream that the client holds open. Then every account is signed
out, or the vault locked: within ten seconds no relay and no bridge may hold a token, though all of that goes on. The relay
of a command may not hold one either once a response has ended, and never a refresh token.
"""

import http.client
import os
import threading
import urllib.parse

from harness import Trouble, begun, certificate, must, stop
from house import House
from mcp import sign_in
from mcp_bridge import Client, relays
from mcp_parties import Issuer, MCPServer
from memory_search import Search, look_until, place, stacks

PATIENCE = 10
KINDS = {"access_token": "access token", "refresh_token": "refresh token"}
PLAIN, SECURE = "plain", "secure"


class Recorded(Issuer):
    """Remembers every token that it has issued."""

    def __init__(self):
        super().__init__()
        self.every = {}

    def issue(self, scope, client):
        status, fields, document = super().issue(scope, client)
        self.every |= {document[name].encode(): kind for name, kind in KINDS.items() if name in document}
        return status, fields, document


class Silent(MCPServer):
    """Has tools that never answer, and streams without events; the same without MCP below /relayed."""

    def __init__(self, issuer, files=()):
        super().__init__([issuer])
        self.has_sessions = True
        self.is_over = threading.Event()
        self.silent = threading.Semaphore(0)
        if files:
            self.secure(*files)

    def respond(self, request):
        body = {"id": 1}
        match request.path:
            case "/relayed/whole" if request.headers.get("Authorization"):
                return 200, {}, {}
            case "/relayed/endless":
                return self.tool_endless(body)
            case "/relayed/silent":
                return self.tool_silent(body)
        return super().respond(request)

    def tool_silent(self, body):
        self.silent.release()
        self.is_over.wait()
        return 200, {}, {"jsonrpc": "2.0", "id": body["id"], "result": {}}

    def resumed(self, request):
        def hold(out):
            out.write(b": \n\n")
            out.flush()
            self.silent.release()
            self.is_over.wait()
        return 200, self.EVENTS, hold


class Command:
    """A command with an address in place of a token, and what holds requests there open."""

    def __init__(self, house, server):
        words = [house.program(), "exec", PLAIN, "--relay", f"API={server.origin}/relayed", "--", "sh", "-c",
                 'echo "$API"; exec sleep 1000']
        self.process, line = begun(words, house.place("command.log"), env=house.environment)
        self.server = server
        self.base = urllib.parse.urlsplit(line)
        self.connections = []

    def ask(self, path, reads=True):
        connection = http.client.HTTPConnection(self.base.hostname, self.base.port, timeout=20)
        self.connections.append(connection)
        connection.request("GET", f"{self.base.path}/{path}")
        return connection.getresponse() if reads else None

    def whole(self):
        """A response that ends; its connection is kept."""
        response = self.ask("whole")
        if response.status != 200 or not response.read():
            raise Trouble(f"the relay's response: {response.status}")

    def hold(self):
        self.stream = self.ask("endless")
        self.ask("silent", reads=False)
        if not self.server.silent.acquire(timeout=20):
            raise Trouble("the server did not get the command's request")

    @property
    def goes_on(self):
        return self.stream.read(4_096)

    def close(self):
        for connection in self.connections:
            connection.close()
        stop(self.process, 9)


class Relays:
    def __init__(self, binaries, report):
        self.report = report
        self.house = House(binaries, accounts=[], shimmed=False)
        files = certificate(self.house.place("config"), "authority")
        self.issuer = Recorded()
        self.servers = {PLAIN: Silent(self.issuer), SECURE: Silent(self.issuer, files)}
        text = ""
        for name, server in self.servers.items():
            text += f'[accounts.{name}]\nmcp = "{server.url}"\nca_file = "{files[0]}"\n'
            text += f'[[expose]]\nname = "box-{name}"\naccount = "{name}"\nmcp = true\n'
        text += f'[[origin]]\nurl = "{self.servers[PLAIN].origin}/relayed/*"\naccount = "{PLAIN}"\n'
        self.house.configure(text)
        self.search = Search(self.house.directory)
        self.clients = []
        self.command = None

    def use(self):
        """Opens a bridge for each relay and account, with everything that holds a request open."""
        for name, server in self.servers.items():
            mount = must(self.house.api("GET", f"/v1/exposed-sockets/box-{name}"), "the socket")["directory"]
            for socket in (None, os.path.join(mount, "socket")):
                client = Client(self.house, name, socket=socket)
                self.clients.append(client)
                client.begin()
                found = client.ask("tools/list", modern=False)
                if "result" not in found:
                    raise Trouble(f"no tools: {found}")
                client.write(client.message("tools/call", modern=False, name="endless", arguments={}))
                if (client.read() or {}).get("method") != "notifications/progress":
                    raise Trouble("no stream")
                client.write(client.message("tools/call", modern=False, name="silent", arguments={}))
                # The call, and the bridge's own stream.
                for _ in range(2):
                    if not server.silent.acquire(timeout=20):
                        raise Trouble("the server did not get what is to stay open")
        self.command = Command(self.house, self.servers[PLAIN])
        self.command.whole()
        found, _ = look_until(lambda: self.search.copies(self.issuer.every, self.addresses), lambda found: not found, PATIENCE)
        self.report.note(self.addresses and not found, "a command's relay, between two requests: no token", found)
        self.command.hold()

    @property
    def addresses(self):
        """The process of the command's relay."""
        return relays(self.house, "--http")

    @property
    def pids(self):
        bridges = [client.process.pid for client in self.clients]
        return relays(self.house) + relays(self.house, "--exposed") + self.addresses + bridges

    def look(self):
        return self.search.copies(self.issuer.every, self.pids)

    def is_clean(self, when):
        found, elapsed = look_until(self.look, lambda found: not found, PATIENCE)
        held = stacks(self.pids)
        places = sorted({f"{copy.kind} in {self.name(copy.pid)}, {place(copy, held)} ({copy.form})" for copy in found})
        self.report.note(not found, f"{when}: no token in {len(self.pids)} processes",
                         f"{len(found)} copies: {', '.join(places)}")
        for client in self.clients:
            while not client.lines.empty():
                client.lines.get()
            self.report.note((client.read() or {}).get("method"), f"{when}: the stream goes on", "it ended")
        self.report.note(self.command.goes_on, f"{when}: the command's stream goes on", "it ended")
        return [when, len(self.pids), len(found), f"{elapsed:.1f}"]

    def name(self, pid):
        if pid in relays(self.house, "--exposed"):
            return "the relay of an exposed socket"
        if pid in self.addresses:
            return "the relay of a command"
        return "the relay" if pid in relays(self.house) else "a bridge"

    def close_clients(self):
        for server in self.servers.values():
            server.is_over.set()
        for client in self.clients:
            client.process.kill()
            client.close()
        self.clients = []
        if self.command:
            self.command.close()
            self.command = None
        for server in self.servers.values():
            server.is_over.clear()

    def walk(self):
        """The rows of a table: when, processes, copies, seconds."""
        self.house.start()
        rows = []
        for when in ["signed out", "locked"]:
            for name in self.servers:
                sign_in(self.house, name)
            self.use()
            found = {copy.pid for copy in self.look()}
            self.report.note(found.intersection(self.pids), f"relays, before they are {when}: a token is found", "none")
            refreshing = {secret: kind for secret, kind in self.issuer.every.items() if kind == KINDS["refresh_token"]}
            found = self.search.copies(refreshing, self.addresses)
            self.report.note(refreshing and not found, "a command's relay: no refresh token", found)
            if when == "locked":
                must(self.house.api("POST", "/v1/vault/lock", {}), "locking")
            for name in self.servers if when == "signed out" else []:
                must(self.house.api("DELETE", f"/v1/accounts/{name}/session"), f"signing out of {name}")
            rows.append(self.is_clean(f"relays, {when}"))
            self.close_clients()
        return rows

    def close(self, keeps):
        self.close_clients()
        for party in [*self.servers.values(), self.issuer]:
            party.close()
        self.house.close(keeps)
