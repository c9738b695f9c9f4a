#!/usr/bin/env python3
"""A client of a long stream, in a process of its own: reads it to the end, as messages.

    streamclient.py direct PORT CERTIFICATE     the token is in TOKEN
    streamclient.py bytes PORT CERTIFICATE      the same, but it only counts line breaks
    streamclient.py bridge COMMAND...

For each line on standard input it asks for the stream once, and prints "SECONDS MESSAGES". Both ways read as many bytes
as there are and make a list of messages of them: one finds the data of events, the other lines. Nobody parses the JSON.
"""

import os
import socket
import ssl
import subprocess
import sys
import time

CALL = (
    b'{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"long","arguments":{},"_meta":'
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}')
PIECE = 1 << 18


class Direct:
    """Speaks HTTPS itself, over a connection that is there before."""

    def __init__(self, port, certificate):
        self.port = int(port)
        self.context = ssl.create_default_context(cafile=certificate)
        self.head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {os.environ['TOKEN']}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: long\r\n"
            f"Content-Length: {len(CALL)}\r\n\r\n").encode()

    def prepare(self):
        plain = socket.create_connection(("127.0.0.1", self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = self.context.wrap_socket(plain, server_hostname="127.0.0.1")

    def ask(self):
        self.socket.sendall(self.head + CALL)
        rest = b""
        while b"\r\n\r\n" not in rest:
            rest += self.socket.recv(PIECE)
        count = self.read(rest.partition(b"\r\n\r\n")[2])
        self.socket.close()
        return count

    def read(self, rest):
        """How many messages come. The stream's end is the connection's."""
        count = 0
        while piece := self.socket.recv(PIECE):
            *events, rest = (rest + piece).split(b"\n\n")
            messages = [line[5:] for event in events for line in event.split(b"\n") if line.startswith(b"data:")]
            count += len(messages)
        return count


class Bytes(Direct):
    """Makes no messages: faster than any client of MCP can be."""

    def read(self, rest):
        count = rest.count(b"\n\n")
        while piece := self.socket.recv(PIECE):
            count += piece.count(b"\n\n")
        return count


class Bridge:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def prepare(self):
        pass

    def ask(self):
        os.write(self.process.stdin.fileno(), CALL + b"\n")
        rest, count, last = b"", 0, b""
        while b'"last"' not in last:
            piece = os.read(self.process.stdout.fileno(), PIECE)
            if not piece:
                raise SystemExit("the bridge has ended")
            *messages, rest = (rest + piece).split(b"\n")
            count += len(messages)
            last = messages[-1] if messages else last
        return count


def main():
    client = {"direct": Direct, "bytes": Bytes, "bridge": Bridge}[sys.argv[1]](*sys.argv[2:])
    client.prepare()
    for _ in sys.stdin:
        start = time.perf_counter()
        count = client.ask()
        print(time.perf_counter() - start, count, flush=True)
        client.prepare()


if __name__ == "__main__":
    main()
