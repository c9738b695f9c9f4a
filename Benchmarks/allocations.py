"""Allocations of a request for a held token, counted by a library that is preloaded into the daemon."""

import os
import socket
import struct

from measure import HERE, TOOLS, at_most, compiler, progress, row
from stage import ACCOUNT, Stage, Trouble

REQUESTS = 20_000
OTHERS = [f"other{number}" for number in range(9)]


def allocations(binaries):
    """Rows: allocations of a request, of one account and of ten in turn."""
    progress("allocations of a request")
    library = os.path.join(TOOLS, "allocations.so")
    source = os.path.join(HERE, "allocations.c")
    compiler(["-O2", "-std=gnu17", "-shared", "-fPIC", "-o", library, source])
    stage = Stage(binaries)
    place = os.path.join(stage.directory, "allocations")
    stage.environment |= {"LD_PRELOAD": library, "BENCH_ALLOCATIONS": place}
    try:
        stage.open(*OTHERS)
        for account in [ACCOUNT, *OTHERS]:
            stage.sign_in(account)
        rows = []
        for name, accounts in [("one account", [ACCOUNT]), ("ten accounts in turn", [ACCOUNT, *OTHERS])]:
            for mode, connection in [("keep-alive", kept), ("connecting", connecting)]:
                connection(stage.socket, accounts, 1_000)  # what is made once
                before = read(place)
                connection(stage.socket, accounts, REQUESTS)
                of_each = (read(place) - before) / REQUESTS
                what = f"allocations of a request, {mode}, {name}"
                rows.append(at_most(what, of_each, 0) if mode == "keep-alive" else row(what, f"{of_each:.2f}"))
        return rows
    finally:
        stage.close()


def read(place):
    with open(place, "rb") as file:
        return struct.unpack("=Q", file.read(8))[0]


def request(account):
    return f"GET /v1/accounts/{account}/session HTTP/1.1\r\nHost: ringback\r\n\r\n".encode()


def connected(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection


def ask(connection, question):
    connection.sendall(question)
    if not connection.recv(65_536).startswith(b"HTTP/1.1 200 "):
        raise Trouble("a request was not answered with 200")


def kept(path, accounts, count):
    questions = [request(account) for account in accounts]
    with connected(path) as connection:
        for number in range(count):
            ask(connection, questions[number % len(questions)])


def connecting(path, accounts, count):
    questions = [request(account) for account in accounts]
    for number in range(count):
        with connected(path) as connection:
            ask(connection, questions[number % len(questions)])
