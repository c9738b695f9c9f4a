"""What `ringback mcp` adds to a request at an MCP server over HTTPS, and how much of a stream's speed is left. The server is
the campaigns' own, in Python: its time is part of both sides."""

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from statistics import median

from measure import ROOT, at_least, at_most, progress
from stage import House, Trouble

from harness import certificate
from mcp_bridge import ACCOUNT, Run
from mcp_parties import REVISION, Issuer, MCPServer

ROUNDS = 7
REQUESTS = 100
# Bytes of the text in a stream's events. A small event has 200 bytes.
EVENT, SMALL = 4096, 100
STREAM = 64 << 20


class SecureServer(MCPServer):
    """The MCP server behind TLS, with a tool that sends a long stream."""

    def __init__(self, issuers, certificate, key, **more):
        super().__init__(issuers, **more)
        self.secure(certificate, key)

    size = EVENT

    def tool_long(self, body):
        data = "x" * self.size
        notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}}
        piece = self.event(notice) * 64
        done = {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}}

        def write(out):
            for _ in range(STREAM // len(piece)):
                out.write(piece)
            out.write(self.event(done))

        return 200, self.EVENTS, write


class SecureRun(Run):
    """An account at such a server, whose certificate the configuration names."""

    def __init__(self, house):
        files = certificate(house.directory)
        self.house, self.certificate = house, files[0]
        self.issuer = Issuer()
        self.server = SecureServer([self.issuer], *files, listed=["mcp:basic"])
        house.configure(f'[accounts.{ACCOUNT}]\nmcp = "{self.server.url}"\nca_file = "{files[0]}"\n')


class Direct:
    """A program that holds the token and speaks HTTPS itself, over one connection."""

    def __init__(self, server, certificate, token):
        self.place = ("127.0.0.1", int(server.origin.rpartition(":")[2]))
        self.context = ssl.create_default_context(cafile=certificate)
        self.head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.place[1]}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\nContent-Length: {}\r\n\r\n")
        self.connect()

    def connect(self):
        self.socket = self.context.wrap_socket(socket.create_connection(self.place), server_hostname="127.0.0.1")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, name, body):
        self.socket.sendall(self.head.format(name, len(body)).encode() + body)

    def ask(self, body):
        self.send("add_numbers", body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.receive()
        head, _, rest = answer.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        while len(rest) < length:
            rest += self.receive()

    def receive(self):
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise Trouble("the server closed the connection")
        return piece


class Streams:
    """The client of a stream (streamclient.py), a program of its own: the server's process does nothing else."""

    def __init__(self, environment, *words):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(ROOT, "Benchmarks", "streamclient.py"), *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment)

    def seconds(self, size):
        """Asks once for the stream of events with texts of this size."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        if len(words) != 2 or int(words[1]) < STREAM // (size + 200):
            raise Trouble(f"the stream was not whole: {words}")
        return float(words[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Bridge:
    """A client that reads bytes, as the one without a bridge does."""

    def __init__(self, house):
        self.process = subprocess.Popen(
            bridge_command(house), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=house.environment)
        self.number = 0

    def ask(self, name):
        """Sends a call, and reads up to its response. How many bytes that were."""
        self.number += 1
        meta = {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": name, "arguments": {"a": 1, "b": 1}, "_meta": meta}
        line = json.dumps({"jsonrpc": "2.0", "id": f"call-{self.number}", "method": "tools/call", "params": params})
        os.write(self.process.stdin.fileno(), line.encode() + b"\n")
        mark, tail, count = f'"call-{self.number}"'.encode(), b"", 0
        while mark not in tail:
            piece = os.read(self.process.stdout.fileno(), 1 << 18)
            if not piece:
                raise Trouble("the bridge has ended")
            count += len(piece)
            tail = tail[-100:] + piece if len(piece) < 1000 else piece[-1000:]
        return count

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def bridge_command(house):
    return [house.program(), "mcp", ACCOUNT]


def seconds(body):
    start = time.perf_counter()
    body()
    return time.perf_counter() - start


def bridges(binaries):
    """Rows: the added time of a request, and the speed of a stream divided by that without a bridge."""
    progress("a bridge next to direct HTTPS, 7 rounds")
    house = House(binaries, accounts=[], shimmed=False)
    run = None
    try:
        run = SecureRun(house)
        house.start()
        run.sign_in()
        token = house.api("GET", f"/v1/accounts/{ACCOUNT}/session")[1]["access_token"]
        direct, bridge = Direct(run.server, run.certificate, token), Bridge(house)
        place = str(direct.place[1]), run.certificate
        streams = [
            Streams(os.environ | {"TOKEN": token}, "direct", *place),
            Streams(os.environ | {"TOKEN": token}, "bytes", *place),
            Streams(house.environment, "bridge", *bridge_command(house))]
        bridge.ask("add_numbers")
        added, speeds, small, raws, rates, times = [], [], [], [], [], []
        for _ in range(ROUNDS):
            body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"a":1,"b":1}}}'
            plain = median([seconds(lambda: direct.ask(body % b"add_numbers")) for _ in range(REQUESTS)])
            bridged = median([seconds(lambda: bridge.ask("add_numbers")) for _ in range(REQUESTS)])
            added.append((bridged - plain) * 1000)
            times.append(plain * 1000)
            run.server.size = SMALL
            plain, _, bridged = (stream.seconds(SMALL) for stream in streams)
            small.append(plain / bridged)
            run.server.size = EVENT
            plain, raw, bridged = (stream.seconds(EVENT) for stream in streams)
            speeds.append(plain / bridged)
            raws.append(raw / bridged)
            rates.append(STREAM / plain / 1e6)
        bridge.close()
        for stream in streams:
            stream.close()
    finally:
        if run:
            run.close()
        house.close(False)
    return [
        at_most("a request through a bridge: added", median(added), 0.5, " ms", 2, f" (direct {median(times):.2f})"),
        at_least("a stream of 64 MiB through a bridge, divided by direct", median(speeds), 0.8, "", 2,
                 f" (direct {median(rates):.0f} MB/s; {median(raws):.2f} of a client that makes no messages)"),
        at_least("the same of events of 200 bytes", median(small), 0.8, "", 2),
    ]
