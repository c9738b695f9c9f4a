"""System calls of a request, counted by strace where it is installed and may look at the daemon."""

import os
import shutil
import signal
import subprocess
import time

from measure import progress, row, tool
from sessions import SESSION, numbered

SECONDS = 1


def calls(stage):
    """Rows: for each mode how many calls a request needs, then each of them."""
    if not shutil.which("strace"):
        return [row("system calls of a request", "strace is not installed: skipped")]
    progress("system calls of a request")
    rows = []
    for mode, clients in [("connect", 1), ("connect", 8), ("keep", 8)]:
        counted = count(stage, mode, clients)
        name = f"system calls of a request, {mode}, {numbered(clients)}"
        if counted is None:
            return [row("system calls of a request", "strace may not look at the daemon: skipped")]
        rows.append(row(name, f"{sum(counted.values()):.2f}"))
        for call, share in sorted(counted.items(), key=lambda item: -item[1]):
            rows.append(row(f"  {call}", f"{share:.2f}"))
    return rows


def count(stage, mode, clients):
    """Calls a request, by name; those of less than one in 100 requests are left out. None: strace did not attach."""
    place = os.path.join(stage.directory, "calls")
    tracer = subprocess.Popen(
        ["strace", "-f", "-c", "-U", "calls,name", "-o", place, "-p", str(stage.daemon.pid)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        # It says so once for each thread; the first line is enough, the threads are attached together.
        if "attached" not in tracer.stderr.readline():
            return None
        time.sleep(0.3)
        seen = tool("load", stage.socket, SESSION, clients, mode, SECONDS)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate()
    found = {}
    with open(place) as file:
        for line in file:
            words = line.split()
            if len(words) == 2 and words[0].isdigit() and words[1] != "total":
                found[words[1]] = int(words[0]) / seen["requests"]
    return {name: share for name, share in found.items() if share >= 0.01}
