#!/usr/bin/env -S python3 -B
"""The ways to an MCP server: what `ringback mcp` and `ringback-relay` do behind a private certificate authority, over HTTP/2,
through a proxy, on IPv6, at a server that closes its connections, that needs no sign-in or whose issuer refuses the
parameter `resource`, and with a token that is refused right after its refresh. Each step says what must have happened at the server.
"""

import base64
import http.server
import json
import os
import socket
import socketserver
import struct

from harness import Trouble, carry, certificate, exactly, played, progress, read, write
from mcp import mcp_house, ringback, sign_in
from mcp_bridge import Client, end_relays
from mcp_parties import Issuer, MCPServer
from web import Request, Served

NAME = "mcp.internal.test"
# Percent signs, colons and spaces belong to a password.
PASSWORD = "p%3A:ss word+"


class SecondGeneration:
    """HTTP/2 (RFC 9113), as far as one client needs it: each request is answered when it is whole. The fields of a request are
    not decoded, so a token is not looked at here."""

    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    def __init__(self, server, connection):
        self.server, self.connection, self.source = server, connection, connection.makefile("rb")
        server.connections += 1
        self.bodies = {}

    def frame(self, kind, flags, stream, payload=b""):
        self.connection.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload)

    def serve(self):
        try:
            if exactly(self.source, len(self.PREFACE)) != self.PREFACE:
                return
            self.frame(4, 0, 0)
            while True:
                head = exactly(self.source, 9)
                length = int.from_bytes(head[:3], "big")
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                payload = exactly(self.source, length)
                if kind == 4 and not flags & 1:
                    self.frame(4, 1, 0)
                elif kind == 6 and not flags & 1:
                    self.frame(6, 1, 0, payload)
                elif kind == 0:
                    self.bodies[stream] = self.bodies.get(stream, b"") + payload
                    if length:
                        for number in (0, stream):
                            self.frame(8, 0, number, struct.pack(">I", length))
                if kind in (0, 1) and flags & 1:
                    self.respond(stream, self.bodies.pop(stream, b""))
        except (EOFError, OSError):
            return

    def respond(self, stream, body):
        self.server.streams += 1
        message = json.loads(body) if body else {}
        result = self.server.result(message)
        content = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        kind = b"application/json"
        # Status 200 is an entry of the static table; content-type is its entry 31, with a value of its own.
        self.frame(1, 4, stream, b"\x88" + b"\x0f\x10" + bytes([len(kind)]) + kind)
        for start in range(0, len(content), 16_384):
            self.frame(0, 1 if start + 16_384 >= len(content) else 0, stream, content[start:start + 16_384])


class ModernServer(MCPServer):
    """Speaks HTTP/2 with those who offer it."""

    def __init__(self, issuers, **more):
        super().__init__(issuers, **more)
        self.connections = self.streams = 0
        party, handler = self, self.server.RequestHandlerClass

        class Either(handler):
            def handle(self):
                if self.connection.selected_alpn_protocol() == "h2":
                    SecondGeneration(party, self.connection).serve()
                else:
                    super().handle()

        self.server.RequestHandlerClass = Either


class ClosingServer(MCPServer):
    """Says that it keeps its connections, and closes each after a response."""

    def message(self, request):
        status, headers, content = super().message(request)
        return status, headers | {"Connection": "keep-alive"}, content

    def __init__(self, issuers, **more):
        super().__init__(issuers, **more)
        handler = self.server.RequestHandlerClass

        class Once(handler):
            def handle(self):
                self.handle_one_request()

        self.server.RequestHandlerClass = Once


class Tunnel(Served):
    """A proxy that knows CONNECT alone, and leads to one place whatever host is asked for."""

    def __init__(self, credentials=None):
        self.target = None
        self.asked, self.refused = [], 0
        tunnel = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                words = self.rfile.readline().split()
                fields = {}
                while line := self.rfile.readline().strip():
                    name, _, value = line.partition(b":")
                    fields[name.lower()] = value.strip()
                if credentials:
                    stated = fields.get(b"proxy-authorization", b"")
                    if stated != b"Basic " + base64.b64encode(credentials.encode()):
                        tunnel.refused += 1
                        self.wfile.write(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
                        return
                tunnel.asked.append((words[0].decode(), words[1].decode()))
                with socket.create_connection(tunnel.target) as server:
                    self.wfile.write(b"HTTP/1.1 200 Yes\r\n\r\n")
                    for thread in carry(server, self.connection):
                        thread.join()

        super().__init__(Handler, socketserver.ThreadingTCPServer)


class Routes:
    def __init__(self, house, report, places):
        self.house, self.report, self.places = house, report, places
        self.number = 0

    def note(self, is_right, what, why=""):
        self.report.note(is_right, f"{self.title}: {what}", str(why))

    def parties(self, kind=MCPServer):
        """A server with an issuer of its own."""
        return self.places.add(kind([self.places.add(Issuer())]))

    def place(self, name):
        return os.path.join(os.path.dirname(self.house.configuration), f"accounts.d/{name}.toml")

    def account(self, title, server, *settings):
        """Signed in at a server, from a file of its own."""
        progress(title)
        self.title = title
        self.number += 1
        name = f"r{self.number}"
        os.makedirs(os.path.dirname(self.place(name)), exist_ok=True)
        write(self.place(name), "\n".join([f"[accounts.{name}]", f'mcp = "{server.url}"', *settings, ""]))
        status, said, errors = ringback(self.house, "reload")
        if status != 0:
            raise Trouble(f"{title}: {said} {errors}")
        # The user's browser is led to the authorization server without the way that is tested.
        sign_in(self.house, name, lambda page: server.issuers[0].authorize(Request("GET", page, {}, b""))[1]["Location"])
        return name

    def calls(self, name, count=3):
        """Calls over one bridge, and that each is answered."""
        client = Client(self.house, name)
        for number in range(count):
            found = client.ask("tools/call", name="add_numbers", arguments={"a": number, "b": 1})
            right = found.get("result", {}).get("content", [{}])[0].get("text") == str(number + 1)
            self.note(right, f"call {number + 1}", found)
        self.note(not client.strays, "nothing but messages is on standard output", client.strays)
        self.note(client.close() == 0, "the bridge ends with its client")

    def private_authority(self):
        files = certificate(self.house.directory, "own", NAME)
        server = self.parties()
        server.secure(*files)
        name = self.account("a private authority", server, f'ca_file = "{files[0]}"')
        self.calls(name)
        self.title = "another authority"
        other = certificate(self.house.directory, "other", NAME)
        client = Client(self.house, name)
        client.ask("tools/list")
        write(self.place(name), read(self.place(name)).replace(files[0], other[0]))
        ringback(self.house, "reload")
        before = len(server.requests)
        found = client.ask("tools/list")
        self.note("not trusted" in str(found.get("error")), "a reload holds for the next request", found)
        self.note(len(server.requests) == before, "which the server does not get")
        client.close()

    def second_generation(self):
        files = certificate(self.house.directory, "h2", NAME)
        server = self.parties(ModernServer)
        server.secure(*files, ["h2", "http/1.1"])
        name = self.account("HTTP/2", server, f'ca_file = "{files[0]}"')
        self.calls(name, 5)
        counts = (server.connections, server.streams)
        self.note(counts == (1, 5), "one connection for all calls", counts)

    def proxy(self, has_password):
        files = certificate(self.house.directory, "proxied", NAME)
        issuer = self.places.add(Issuer(resource_required=False))
        server = self.places.add(MCPServer([issuer], place=None))
        port = server.server.server_address[1]
        server.secure(*files)
        # Both are one origin, which only the proxy finds.
        server.origin = issuer.origin = issuer.issuer = f"https://{NAME}"
        server.url = server.resource = server.origin + "/mcp"
        tunnel = Tunnel(f"user:{PASSWORD}" if has_password else None)
        tunnel.target = ("127.0.0.1", port)
        settings = [f'ca_file = "{files[0]}"', f'proxy = "{tunnel.origin}"']
        if has_password:
            path = self.house.place("proxy-password")
            write(path, f"user:{PASSWORD}\n")
            settings.append(f'proxy_credentials_file = "{path}"')
        name = self.account("a proxy with a password" if has_password else "a proxy", server, *settings)
        before = len(tunnel.asked)
        self.calls(name)
        self.note(tunnel.asked[before:] == [("CONNECT", f"{NAME}:443")], "one tunnel for all calls", tunnel.asked[before:])
        heads = [seen.headers for seen in server.requests if seen.path == "/mcp"]
        self.note(not any("Proxy-Authorization" in head for head in heads), "the server does not see the password")
        tunnel.close()

    def sixth(self):
        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6

        server = self.parties()
        server.close()
        server.listen(Server, "::1", server.server.RequestHandlerClass)
        server.url = server.resource = server.origin + "/mcp"
        name = self.account("IPv6 loopback", server)
        self.calls(name)

    def without_resource(self):
        """An authorization server that refuses the parameter `resource`, as Entra does: the error names the option for it."""
        self.title = "the parameter resource is refused"
        issuer = self.places.add(Issuer(["given"], resource_required=False, refuses_resource=True))
        server = self.places.add(MCPServer([issuer]))
        words = ["account", "add", "entra", "--mcp", server.url, "--issuer", issuer.issuer, "--client-id", "given"]
        status, said, errors = ringback(self.house, *words)
        self.note(status != 0 and "--no-resource-parameter" in said + errors, "account add names the option", said + errors)
        issuer.requests.clear()
        status, said, errors = ringback(self.house, *words, "--no-resource-parameter")
        self.note(status == 0, "account add with the option", said + errors)
        sign_in(self.house, "entra")
        self.note(ringback(self.house, "refresh", "entra")[0] == 0, "a refresh")
        self.calls("entra")
        sent = [seen.query for seen in issuer.sent(issuer.endpoint("authorize"))]
        sent += [seen.form for seen in issuer.sent(issuer.endpoint("token"))]
        self.note(len(sent) > 2 and not any("resource" in each for each in sent), "no request has the parameter", sent)

    def without_sign_in(self):
        self.title = "a server that needs no sign-in"
        server = self.places.add(MCPServer([], place=None))
        server.needs_sign_in = False
        status, said, errors = ringback(self.house, "account", "add", "open", "--mcp", server.url)
        self.note(status == 0, "account add", said + errors)
        written = read(self.place("open"))
        self.note("sign_in = false" in written.splitlines(), "sign_in = false is written", written)
        shown = ringback(self.house, "accounts")[1]
        self.note("needs no sign-in" in shown, "ringback accounts says so", shown)
        self.calls("open")
        named = [seen.path for seen in server.requests if "Authorization" in seen.headers]
        self.note(not named and not server.mistakes, "no request has a token", named or server.mistakes)

    def closed_connections(self):
        server = self.parties(ClosingServer)
        name = self.account("a server that closes kept connections", server)
        self.calls(name, 20)
        sent = [seen.json["id"] for seen in server.requests if seen.path == "/mcp" and b"tools/call" in seen.body]
        self.note(len(sent) == len(set(sent)) == 20, "each call is sent once", sent)
        # One that takes a call and closes the connection without a response has perhaps carried it out.
        handled = []
        inner = server.respond

        def respond(request):
            if b"tools/call" in request.body and "Authorization" in request.headers:
                handled.append(request)
                raise ConnectionError
            return inner(request)
        server.respond = respond
        client = Client(self.house, name)
        client.ask("tools/list")
        found = client.ask("tools/call", name="add_numbers", arguments={"a": 1, "b": 1})
        self.note("may have been carried out" in str(found.get("error")), "a lost response is an error", found)
        self.note(len(handled) == 1, "and the call is not repeated", len(handled))
        client.close()

    def refused_after_refresh(self):
        server = self.parties()
        name = self.account("a token refused right after its refresh", server)

        issuer = server.issuers[0]

        def refreshes():
            return sum(seen.form.get("grant_type") == "refresh_token" for seen in issuer.sent(issuer.endpoint("token")))
        status = self.house.api("POST", f"/v1/accounts/{name}/refresh", {"force": True})[0]
        self.note(status == 200 and refreshes() == 1, "a refresh", status)
        client = Client(self.house, name)
        issuer.tokens.clear()
        found = client.ask("tools/list")
        self.note("result" in found and refreshes() == 2, "is followed by another one", (found, refreshes()))
        # A server that refuses every token.
        before = refreshes()
        server.message = lambda request: (401, server.challenge(), {})
        for _ in range(5):
            found = client.ask("tools/list")
        self.note("token_refused" in str(found.get("error")), "a server that refuses every token: an error", found)
        self.note(refreshes() - before <= 1, "and no refresh after another", refreshes() - before)
        client.close()

    def all(self):
        self.private_authority()
        self.second_generation()
        self.proxy(has_password=False)
        self.proxy(has_password=True)
        self.sixth()
        self.without_resource()
        self.without_sign_in()
        self.closed_connections()
        self.refused_after_refresh()


@played()
def campaign(chosen, report, places):
    house = mcp_house(chosen, places)
    places.callback(end_relays, house)
    Routes(house, report, places).all()
