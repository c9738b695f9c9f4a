"""Between a host and the database: reads the messages of PostgreSQL's protocol, and holds a statement or its answer.

It listens on the host's loopback, where libpq does without TLS. See "Message Formats" in PostgreSQL's documentation.
"""

import collections
import contextlib
import os
import re
import signal
import socket
import struct
import threading

from harness import Relay, exactly, read, until
from hosts_database import PORT, PRIMARY

# What the database has done when it is killed, and what the host knows of it.
EXECUTED, COMMITTED, ANSWERED = "executed, not committed", "committed, not answered", "answered, not read"
HOWS = [EXECUTED, COMMITTED, ANSWERED]
SSL_REQUEST = struct.pack("!I", 80877103)
# Asked at intervals and by every connection for changes: no part of a refresh.
OTHERS = ["channel", "pulse"]


def stop(process):
    """Stops a process, and returns when all its threads have stopped."""
    os.kill(process, signal.SIGSTOP)
    until("a process to stop", lambda: is_stopped(process))


def is_stopped(process):
    states = []
    for thread in os.listdir(f"/proc/{process}/task"):
        stat = read(f"/proc/{process}/task/{thread}/stat")
        states += stat.rpartition(")")[2].split()[:1]
    return set(states) == {"T"}


class Tap(Relay):
    """All connections of one host to the database."""

    def __init__(self, host, database):
        self.host = host
        self.lock = threading.Lock()
        self.arm()
        super().__init__(host.namespace.listen(PORT), os.path.join(database.socket(PRIMARY), f".s.PGSQL.{PORT}"))

    def arm(self, number=0, how=""):
        """Counts the statements from now on, and holds the one of that number."""
        with self.lock:
            self.names, self.number, self.how = [], number, how
            # Rows of the answers, by statement.
            self.rows = collections.Counter()
            self.reached = threading.Event()

    def note(self, name):
        """A statement: how it is to be held, or ""."""
        with self.lock:
            self.names.append(name)
            return self.how if len(self.names) == self.number else ""

    def carry(self, near, far):
        Line(self, near, far)


class Line:
    def __init__(self, tap, near, far):
        self.tap, self.near, self.far = tap, near, far
        self.held = self.name = ""
        for work in [self.up, self.down]:
            threading.Thread(target=self.carry, args=(work,), daemon=True).start()

    def carry(self, work):
        with contextlib.suppress(OSError, EOFError):
            work()
        for each in [self.near, self.far]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def up(self):
        """What the host says."""
        source = self.near.makefile("rb")
        while (first := message(source, b""))[1][:4] == SSL_REQUEST:
            self.near.sendall(b"N")
        self.far.sendall(framed(*first))
        while True:
            kind, body = message(source)
            if kind == b"P":
                name = re.search(rb"ringback\.(\w+)", body)
                self.name = name.group(1).decode() if name else ""
                if self.name and self.name not in OTHERS:
                    self.held = self.tap.note(self.name)
            if kind == b"S" and self.held == EXECUTED:
                # The server answers, and goes on with the same transaction: Flush in place of Sync.
                kind = b"H"
            self.far.sendall(framed(kind, body))

    def down(self):
        """What the database says."""
        source = self.far.makefile("rb")
        kept = b""
        while True:
            kind, body = message(source)
            if kind == b"D":
                self.tap.rows[self.name] += 1
            if not self.held:
                self.near.sendall(framed(kind, body))
                continue
            kept += framed(kind, body)
            # CommandComplete or ErrorResponse; ReadyForQuery, which comes after the commit.
            if kind == b"Z" or (self.held == EXECUTED and kind in (b"C", b"E")):
                if self.held == ANSWERED:
                    stop(self.tap.host.daemon.pid)
                    self.near.sendall(kept)
                    self.held, kept = "", b""
                    self.tap.reached.set()
                    continue
                self.tap.reached.set()
                source.read()
                return


def message(source, kind=None):
    """The next message: (type, content). The first one has no type."""
    kind = exactly(source, 1) if kind is None else kind
    return kind, exactly(source, struct.unpack("!I", exactly(source, 4))[0] - 4)


def framed(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body
