"""Allocations of a request for a held token, counted by uprobes on the C library where perf may set them.

The daemon starts itself again without a preloaded library, so none can count for it. As a program this file is the
client: allocations.py SOCKET keep|connect COUNT ACCOUNT,ACCOUNT
"""

import shutil
import socket
import subprocess
import sys

from measure import at_most, progress, row
from stage import ACCOUNT, Stage, Trouble

REQUESTS = 20_000
OTHERS = [f"other{number}" for number in range(9)]
FUNCTIONS = ["malloc", "calloc", "posix_memalign", "aligned_alloc"]
SKIPPED = "perf cannot set uprobes here (it needs root): skipped"


def allocations(binaries):
    """Rows: allocations of a request, of one account and of ten in turn."""
    progress("allocations of a request")
    if not shutil.which("perf"):
        return [row("allocations of a request", "perf is not installed: skipped")]
    stage = Stage(binaries)
    try:
        stage.open(*OTHERS)
        for account in [ACCOUNT, *OTHERS]:
            stage.sign_in(account)
        library = mapped(stage.daemon.pid, "/libc.so.6")
        probes = [f"ringback_bench:{name}={name}" for name in FUNCTIONS]
        added = perf("probe", "--quiet", "-x", library, *[word for probe in probes for word in ["-a", probe]])
        if added.returncode != 0:
            return [row("allocations of a request", SKIPPED)]
        try:
            return measured(stage)
        finally:
            perf("probe", "--quiet", "-d", "ringback_bench:*")
    finally:
        stage.close()


def measured(stage):
    rows = []
    for name, accounts in [("one account", [ACCOUNT]), ("ten accounts in turn", [ACCOUNT, *OTHERS])]:
        for mode in ["keep", "connect"]:
            ask_all(stage.socket, mode, 1_000, accounts)  # what is made once
            client = [sys.executable, __file__, stage.socket, mode, str(REQUESTS), ",".join(accounts)]
            events = ["-e", "ringback_bench:*", "-p", str(stage.daemon.pid)]
            counted = perf("stat", "-x", ",", *events, "--", *client)
            if counted.returncode != 0:
                raise Trouble(f"allocations could not be counted: {counted.stderr}")
            counts = [line.split(",")[0] for line in counted.stderr.splitlines() if "ringback_bench" in line]
            of_each = sum(map(int, counts)) / REQUESTS
            what = f"allocations of a request, {'keep-alive' if mode == 'keep' else 'connecting'}, {name}"
            # What the daemon does beside its requests counts too: less than one in ten requests.
            rows.append(at_most(what, round(of_each, 1), 0, digits=1) if mode == "keep" else row(what, f"{of_each:.1f}"))
    return rows


def perf(*arguments):
    return subprocess.run(["perf", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def mapped(pid, ending):
    """The path of a library of a process."""
    with open(f"/proc/{pid}/maps") as file:
        return next(line.split()[-1] for line in file if line.rstrip().endswith(ending))


def request(account):
    return f"GET /v1/accounts/{account}/session HTTP/1.1\r\nHost: ringback\r\n\r\n".encode()


def connected(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection


def ask_all(path, mode, count, accounts):
    questions = [request(account) for account in accounts]
    connection = connected(path)
    for number in range(count):
        if mode == "connect":
            connection.close()
            connection = connected(path)
        connection.sendall(questions[number % len(questions)])
        if not connection.recv(65_536).startswith(b"HTTP/1.1 200 "):
            raise Trouble("a request was not answered with 200")
    connection.close()


if __name__ == "__main__":
    ask_all(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(","))
