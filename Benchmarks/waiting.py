"""What a daemon costs that has nothing to do, or much that waits: wake-ups in an idle minute, thousands of idle
connections, a provider that is frozen."""

import resource
import selectors
import signal
import socket
import threading
import time
from statistics import median

from measure import (
    anonymous_memory, at_least, at_most, family, percentile, progress, proportional_memory, resident_memory, row,
    tool, wake_ups,
)
from sessions import SESSION
from stage import ACCOUNT, Stage, Trouble

IDLE_SECONDS = 60
IDLE_CONNECTIONS = 10_000
FROZEN = "frozen"
FROZEN_SECONDS = 30
FROZEN_CLIENTS = 64
# "Unchanged": at most this much more than without. Two rounds without any difference differ by as much.
UNCHANGED = 1.10


def idle(stage):
    """Wake-ups of all threads of the daemon and its helper in a minute in which nothing is due."""
    progress(f"idle, {IDLE_SECONDS} s")
    pids = family(stage.daemon.pid)
    become_idle(pids)
    before = wake_ups(pids)
    time.sleep(IDLE_SECONDS)
    after = wake_ups(pids)
    counts = {}
    for thread, (name, count) in after.items():
        counts[name] = counts.get(name, 0) + count - before.get(thread, (name, 0))[1]
    for thread, (name, _) in before.items():
        if thread not in after:
            counts[name] = counts.get(name, 0) + 1  # it woke up at least to end
    what = f"wake-ups in {IDLE_SECONDS} s, nothing due, daemon and helper"
    rows = [at_most(what, sum(counts.values()), 0, digits=0)]
    return rows + [row(f"  of the thread {name}", f"{count}") for name, count in sorted(counts.items()) if count > 0]


def become_idle(pids):
    """Waits until the last requests' deadlines have passed: 10 s without a wake-up, 30 s at most."""
    end = time.monotonic() + 30
    last, since = wake_ups(pids), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < 10:
        time.sleep(0.5)
        seen = wake_ups(pids)
        if seen != last:
            last, since = seen, time.monotonic()


def connections(stage, options):
    """Memory with many idle connections, each of which has had one response, and what they do to an active client."""
    wanted = min(IDLE_CONNECTIONS, most_descriptors() - 200)
    progress(f"{wanted:,} idle connections")
    pid = stage.daemon.pid
    alone = active(stage, options)
    memory = anonymous_memory(pid)
    held = [asked(stage.socket) for _ in range(wanted)]
    try:
        kept = sum(is_open(connection) for connection in held)
        grown, resident = anonymous_memory(pid), resident_memory(pid)
        together = proportional_memory(family(pid))
        if together is None:
            together = sum(resident_memory(each) for each in family(pid))  # shared pages count twice
        beside = active(stage, options)
    finally:
        for connection in held:
            connection.close()
    name = f"{wanted:,} idle connections"
    return [
        # Fewer than that where this program may not open so many.
        at_least(f"{name}: kept open", kept, IDLE_CONNECTIONS, digits=0),
        at_most("  memory of daemon and helper (Pss)", together / 1e6, 40, " MB", 1),
        row("  resident memory of the daemon", f"{resident / 1e6:.1f} MB"),
        row("  anonymous memory, before and with them", f"{memory / 1e6:.1f} → {grown / 1e6:.1f} MB"),
        at_most("  median of an active client", beside / alone, UNCHANGED, " ×", 2,
                f" ({alone:.0f} → {beside:.0f} µs)"),
    ]


def most_descriptors():
    """Raises this process's limit of open files as far as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else 1 << 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def active(stage, options):
    """Microseconds: the median of one client that connects for each request, over as many rounds as all else."""
    seconds = options.seconds / 2
    rounds = [tool("load", stage.socket, SESSION, 1, "connect", seconds) for _ in range(options.rounds + 1)]
    return median([seen["p50"] for seen in rounds[1:]])


def asked(path):
    """A connection that has had one whole response and is kept open."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30)
    connection.connect(path)
    connection.sendall(f"GET {SESSION} HTTP/1.1\r\nHost: ringback\r\n\r\n".encode())
    if not connection.recv(65_536).startswith(b"HTTP/1.1 200 "):
        raise Trouble("an idle connection's request was not answered with 200")
    return connection


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def frozen(binaries, results):
    """One of a daemon's two providers is stopped for a while, with clients that wait for it. The requests and refreshes
    of the other account are compared with those of a second daemon without such a provider, in turn: from minute to
    minute a machine's 99th percentile changes by more than what is looked for."""
    progress(f"a provider frozen for {FROZEN_SECONDS} s, beside a daemon without one")
    stage, control = Stage(binaries), Stage(binaries)
    try:
        for each in [stage, control]:
            each.open(FROZEN)
            for account in [ACCOUNT, FROZEN]:
                each.sign_in(account)
        within, without = Period(stage), Period(control)
        stage.sandboxes[FROZEN].process.send_signal(signal.SIGSTOP)
        waiting = Waiting(stage.socket)
        try:
            end = time.monotonic() + FROZEN_SECONDS
            while time.monotonic() < end:
                for period in [within, without, without, within]:
                    period.measure()
        finally:
            waiting.close()
            stage.sandboxes[FROZEN].process.send_signal(signal.SIGCONT)
    finally:
        stage.close()
        control.close()
    if waiting.sent < FROZEN_CLIENTS or waiting.answered >= waiting.sent:
        raise Trouble("no client waited for the frozen provider")
    results["frozen"] = {"without": without.figures, "within": within.figures}
    p99 = [median(period.p99s) for period in [without, within]]
    refreshes = [1e3 * percentile(period.refreshes, 0.99) for period in [without, within]]
    name = f"a provider frozen for {FROZEN_SECONDS} s"
    return [
        row(f"{name}: clients waiting for it, responses that they got", f"{FROZEN_CLIENTS}, {waiting.answered:,}"),
        at_most("  99th percentile of another account's requests", p99[1] / p99[0], UNCHANGED, " ×", 2,
                f" ({p99[0]:.0f} → {p99[1]:.0f} µs)"),
        at_most("  99th percentile of another account's refreshes", refreshes[1] / refreshes[0], UNCHANGED,
                " ×", 2, f" ({refreshes[0]:.1f} → {refreshes[1]:.1f} ms)"),
    ]


class Period:
    """Half a second of 8 connecting clients of a daemon, and half a second of refreshes."""

    def __init__(self, stage):
        self.stage, self.p99s, self.refreshes = stage, [], []

    @property
    def figures(self):
        return {"p99s": self.p99s, "refreshes": self.refreshes}

    def measure(self):
        self.p99s.append(tool("load", self.stage.socket, SESSION, 8, "connect", 0.5)["p99"])
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            begun = time.perf_counter()
            status, answer = self.stage.api("POST", f"/v1/accounts/{ACCOUNT}/refresh", {"force": True})
            self.refreshes.append(time.perf_counter() - begun)
            if status != 200:
                raise Trouble(f"a refresh answered {status}: {answer}")


class Waiting:
    """Clients that ask for a refresh of the frozen account, and ask again when they are answered."""

    REQUEST = (
        f"POST /v1/accounts/{FROZEN}/refresh HTTP/1.1\r\nHost: ringback\r\nContent-Type: application/json\r\n"
        "Content-Length: 14\r\n\r\n{\"force\":true}"
    ).encode()

    def __init__(self, path):
        self.path, self.sent, self.answered = path, 0, 0
        self.selector = selectors.DefaultSelector()
        self.woken, self.waker = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ)
        for _ in range(FROZEN_CLIENTS):
            self.ask()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def ask(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self.path)
        connection.sendall(self.REQUEST)
        self.selector.register(connection, selectors.EVENT_READ)
        self.sent += 1

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.woken:
                    return
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
                self.answered += 1
                time.sleep(0.01)  # an account that refuses at once is not to become a load of its own
                self.ask()

    def close(self):
        self.waker.close()
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
