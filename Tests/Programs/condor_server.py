#!/usr/bin/env python3
"""A server of HTCondor's as far as its client signs in with a token (the method SCITOKENS): the negotiation, TLS inside of
HTCondor's messages, and the token. Then it closes the connection. Prints its port, then the token of each client. The line of a
client without one is "no token". The certificate is in DIRECTORY/server.pem.

    condor_server.py DIRECTORY"""

import os
import socketserver
import ssl
import struct
import sys

import loopback_tls

# What either end says with each message of the TLS connection.
GOOD, RECEIVING, HOLDING = 0, 2, 4
SESSION_KEY = 256


class Messages:
    """HTCondor's messages: packets with a head of five bytes; the first byte says whether the message ends."""

    def __init__(self, connection):
        self.stream = connection.makefile("rwb")

    def read(self):
        message, is_last = b"", False
        while not is_last:
            head = self.stream.read(5)
            if len(head) < 5:
                raise EOFError
            is_last, size = struct.unpack("!?I", head)
            message += self.stream.read(size)
        return message

    def write(self, *parts):
        """Numbers have eight bytes, texts end with a NUL."""
        message = b"".join(
            struct.pack("!q", part) if isinstance(part, int) else part if isinstance(part, bytes) else part.encode() + b"\0"
            for part in parts)
        self.stream.write(struct.pack("!?I", True, len(message)) + message)
        self.stream.flush()

    def read_number(self):
        return struct.unpack("!q", self.read()[:8])[0]


class Tunnel:
    """TLS in these messages: each has a status, a length and the bytes. The client writes first."""

    def __init__(self, messages, context):
        self.messages, self.incoming, self.outgoing = messages, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def send(self, status):
        data = self.outgoing.read()
        self.messages.write(status, len(data), data)

    def receive(self):
        message = self.messages.read()
        status, size = struct.unpack("!qq", message[:16])
        self.incoming.write(message[16:16 + size])
        return status

    def until_both_hold(self, step, is_first):
        """Takes turns with the client until the step is done here and the client has nothing left to do."""
        mine = theirs = RECEIVING
        result, is_turn = None, is_first
        while mine != HOLDING or theirs != HOLDING:
            if mine != HOLDING:
                try:
                    result, mine = step(), HOLDING
                except ssl.SSLWantReadError:
                    pass
            if is_turn:
                self.send(mine)
            else:
                theirs = self.receive()
            is_turn = not is_turn
        return result


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        messages = Messages(self.request)
        try:
            # The command and what the client offers.
            messages.read()
            answer = {
                "Enact": "YES", "Authentication": "YES", "Encryption": "NO", "Integrity": "NO", "AuthMethods": "SCITOKENS",
                "AuthMethodsList": "SCITOKENS", "CryptoMethods": "AES", "SessionDuration": "60", "NewSession": "YES",
                "RemoteVersion": "$CondorVersion: 25.0.0 2025-09-01 $"}
            messages.write(len(answer), *(f'{name} = "{value}"' for name, value in answer.items()), "", "")
            # The client offers one method.
            messages.write(messages.read_number())
            messages.write(GOOD)
            if messages.read_number() != GOOD:
                raise EOFError
            tunnel = Tunnel(messages, CONTEXT)
            tunnel.until_both_hold(tunnel.tls.do_handshake, False)
            tunnel.until_both_hold(lambda: tunnel.tls.write(os.urandom(SESSION_KEY)), True)
            token = tunnel.until_both_hold(lambda: tunnel.tls.read(65_536), False)
            print(token[4:].decode(), flush=True)
        except (EOFError, ConnectionError):
            print("no token", flush=True)


CONTEXT = loopback_tls.context(sys.argv[1])
with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
