#!/usr/bin/env -S python3 -B
"""Bridges that are busy for a long time: calls, streams and refused tokens.

Every call must be answered, each refused token is one refresh for all bridges, and nobody's memory grows. The time of a
hand-out of the daemon is printed next to that of the same minute without bridges, and next to that of a server that does
nothing (Benchmarks/floor.c): what the machine's processors alone make of it.
"""

import os
import subprocess
import threading
import time

from harness import ROOT, begun, compiled, memory, played, progress, stop, table, until
from mcp import mcp_house
from mcp_bridge import ACCOUNT, Client, Run, relays

BRIDGES = 20
# The daemon does not refresh a token again that is only seconds old.
PAUSE = 15
# Kilobytes by which a process may grow between a third of the time and its end: allocators keep some of what is freed.
GROWTH = 2048
BRIDGE = 6 * 1024
# Milliseconds between two hand-outs of one program.
BETWEEN = 5


class Worker(threading.Thread):
    """One bridge's client: calls and streams in turn, until it is told to end."""

    def __init__(self, house, number, ends):
        super().__init__(daemon=True)
        self.client = Client(house)
        self.number = number
        self.ends = ends
        self.answered = 0
        self.lost = []

    def run(self):
        while not self.ends.is_set():
            self.answered += 1
            name = "slow" if self.answered % 10 == 0 else "add_numbers"
            found = self.client.ask("tools/call", seconds=60, name=name, arguments={"a": self.answered, "b": self.number})
            if "result" not in found:
                self.lost.append(str(found)[:200])
            elif name == "slow" and [seen.get("method") for seen in self.client.before] != ["notifications/progress"]:
                self.lost.append(f"a stream brought {self.client.before}")


class HandOuts:
    """Programs that ask for a token again and again: one the daemon, one the floor."""

    def __init__(self, house):
        self.load, floor = (
            compiled(house.place(name), os.path.join(ROOT, f"Benchmarks/{name}.c")) for name in ["load", "floor"])
        place = house.place("floor.sock")
        self.servers = [[house.socket, f"/v1/accounts/{ACCOUNT}/session"], [place, "/"]]
        self.floor, _ = begun([floor, place, "1000"], house.place("floor.log"))

    def measure(self, seconds):
        """By server: median and 99th percentile in milliseconds, and how many requests went wrong."""
        processes = [
            subprocess.Popen(
                [self.load, *server, "1", "connect", str(seconds), str(BETWEEN)], stdout=subprocess.PIPE, text=True)
            for server in self.servers]
        found = []
        for process in processes:
            words = process.communicate()[0].split()
            numbers = {name: float(number) for name, number in zip(words[::2], words[1::2])}
            found.append((numbers["p50"] / 1000, numbers["p99"] / 1000, numbers["errors"]))
        return found


def show(quiet, busy):
    """A row for the daemon and one for the floor: without bridges, with them, and the ratio. The aim is a ratio of 2.

    No judgement: how busy the machine is decides it, as the floor shows.
    """
    rows = []
    for name, before, after in zip(["the daemon", "the floor"], quiet, busy):
        rows.append([name, *(f"{number:.2f}" for number in (*before[:2], *after[:2])), f"{after[1] / max(before[1], 0.001):.2f}"])
    table("Hand-outs, ms", ["", "median", "99 %", "median, 20 busy bridges", "99 %, 20 busy bridges", "99 %, ratio"], rows)


def soak(house, run, report, seconds):
    run.sign_in()
    hand_outs = HandOuts(house)
    quiet = hand_outs.measure(max(5, min(seconds / 4, 30)))
    house.restart()
    ends = threading.Event()
    workers = [Worker(house, number, ends) for number in range(BRIDGES)]
    for worker in workers:
        worker.start()
    until("the first answer of each bridge", lambda: all(worker.answered > 1 for worker in workers), seconds=60)
    # The daemon refuses nobody while a token is refreshed, but a hand-out waits for it: the measurement ends before.
    busy = hand_outs.measure(PAUSE - 3)
    before, pages, refused = run.refreshes, run.pages, 1
    # Before memory is looked at first: a refused token makes all bridges ask at once, which is the most that is under way.
    run.issuer.tokens.clear()
    start = time.monotonic()
    first = None
    while time.monotonic() - start < seconds:
        ends.wait(PAUSE)
        if first is None and time.monotonic() - start >= seconds / 3:
            first = look(house, run, workers)
        made = run.refreshes
        if made != before + refused:
            report.note(False, "one refresh for each refused token", f"{made - before} for {refused}")
            break
        if time.monotonic() - start < seconds - PAUSE / 3:
            run.issuer.tokens.clear()
            refused += 1
        answered = sum(worker.answered for worker in workers)
        progress(f"{time.monotonic() - start:.0f} s: {answered} answers, {refused} refused tokens")
        # What the server has noted of each request would be the campaign's own growth.
        del run.server.requests[:-100]
    last = look(house, run, workers)
    largest = max(worker.client.memory() for worker in workers)
    ends.set()
    for worker in workers:
        worker.join(60)
    stop(hand_outs.floor)
    report.note(busy[0][2] == 0, "every hand-out is a token", f"{busy[0][2]} were not")
    answered = sum(worker.answered for worker in workers)
    lost = [text for worker in workers for text in worker.lost]
    report.note(answered > BRIDGES and not lost, f"every one of {answered} calls is answered", lost[:5])
    report.note(run.refreshes - before == refused, "one refresh for each refused token", f"{run.refreshes - before} for {refused}")
    report.note(run.pages == pages, "no page", run.pages - pages)
    for who in ["daemon", "relay", "largest bridge"]:
        report.note(last[who] - first[who] <= GROWTH, f"the memory of the {who} does not grow", f"{first[who]} to {last[who]} kB")
    report.note(largest <= BRIDGE, "a bridge has 6 MB at most", f"{largest} kB")
    strays = [line for worker in workers for line in worker.client.strays]
    report.note(not strays, "nothing but messages is on standard output", strays[:3])
    for worker in workers:
        report.note(worker.client.close() == 0, "a bridge ends with its client")
    table("Memory, kB", ["process", "at a third", "at the end"], [[who, first[who], last[who]] for who in first])
    show(quiet, busy)


def look(house, run, workers):
    """The least of three seconds: what is under way comes and goes, by some megabytes at the relay."""
    found = []
    for _ in range(15):
        found.append({
            "daemon": memory(house.daemon.pid), "relay": memory(relays(house)[0]),
            "largest bridge": max(worker.client.memory() for worker in workers)})
        time.sleep(0.2)
    return {who: min(each[who] for each in found) for who in found[0]}


@played(seconds=(600, "how long"))
def campaign(chosen, report, places):
    house = mcp_house(chosen, places)
    soak(house, places.add(Run(house, report, chosen.short)), report, chosen.seconds)
