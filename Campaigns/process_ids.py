#!/usr/bin/env -S python3 -B
"""Does the audit log name the right program when process ids are used again, and after exec?

The daemon runs in a process namespace of its own, where this campaign chooses the id of the next process. Five races, as
often as asked, with two programs, alpha and beta:

- alpha asks and ends; at once beta asks with alpha's process id;
- the same a second later, which must be marked as verified (a tenth as often);
- beta asks from a mount namespace in which it is at alpha's path (a tenth as often);
- alpha asks, runs beta by exec, and beta asks;
- alpha asks and runs beta by exec. While the daemon is stopped, beta asks and ends, and another alpha starts with its
  process id. When the daemon goes on, /proc tells it that alpha asked.

No line that is marked as verified may count a process's request for another process's program. What is not tried, since
no kernel tells it: a process that asks and calls exec before the daemon has read its request is named by the program that it
runs then. The control is the last race: there an unverified line names alpha, so a daemon that trusted /proc would be wrong
each time. Needs root, for the namespace.
"""

import glob
import json
import os
import signal
import subprocess
import sys
import time

from harness import HERE, Trouble, compiled, must, play, read, stop, table, until, write
from house import House

ROUNDS = 500
# How often the id of the next process is set before a race is given up: a thread of the daemon may have taken it.
TRIES = 50


class Programs:

    def __init__(self, directory, socket):
        self.socket = socket
        self.paths = {name: os.path.join(directory, name) for name in ("alpha", "beta")}
        for path in self.paths.values():
            compiled(path, os.path.join(HERE, "process_ids.c"))

    def words(self, name, *steps):
        return [self.paths[name], self.socket, *steps]

    def start(self, name, *steps):
        return subprocess.Popen(self.words(name, *steps), stdin=subprocess.PIPE)

    def start_as(self, number, name, *steps):
        """Starts a program with this process id, which is free."""
        for _ in range(TRIES):
            write("/proc/sys/kernel/ns_last_pid", str(number - 1))
            process = self.start(name, *steps)
            if process.pid == number:
                return process
            # It has asked nothing yet.
            process.kill()
            process.wait()
        raise Trouble(f"no process got the id {number}")


def finish(process):
    """Lets a program end. Returns its process id, which is free afterwards."""
    process.stdin.close()
    status = process.wait(timeout=20)
    if status != 0:
        raise Trouble(f"{process.args[0]} ended with {status}")
    return process.pid


def used_again(programs, house, pause=0):
    number = finish(programs.start("alpha", "get", "get", "get"))
    beta = programs.start_as(number, "beta", "wait", "get", "get")
    time.sleep(pause)
    finish(beta)


def used_later(programs, house):
    # By then the daemon looks at the former process again.
    used_again(programs, house, pause=1.1)


def mounted(programs, house):
    # Another file at the path of alpha, for this process alone.
    beta, alpha = programs.paths["beta"], programs.paths["alpha"]
    command = f"mount --bind '{beta}' '{alpha}' && exec '{alpha}' '{programs.socket}' get get"
    finish(subprocess.Popen(["unshare", "--mount", "sh", "-c", command], stdin=subprocess.PIPE))


def executed(programs, house):
    finish(programs.start("alpha", "get", "get", "exec", *programs.words("beta", "get", "get")))


def stopped(programs, house):
    alpha = programs.start("alpha", "get", "get", "stop", "exec", *programs.words("beta", "send"))
    os.waitpid(alpha.pid, os.WUNTRACED)
    house.daemon.send_signal(signal.SIGSTOP)
    alpha.send_signal(signal.SIGCONT)
    number = finish(alpha)
    other = programs.start_as(number, "alpha", "wait", "get")
    house.daemon.send_signal(signal.SIGCONT)
    # It is answered after the request of beta, which came before.
    must(house.api("GET", "/v1/status"), "the status")
    finish(other)


# What each race lets the audit log count as verified, at least and at most, for alpha and for beta. A process that takes
# over an id within a second of the last look at the former one may be marked as unverified. Last: the requests of a round,
# and the part of the rounds that is run.
RACES = [
    (used_again, {"alpha": (3, 3), "beta": (0, 2)}, 5, 1),
    (used_later, {"alpha": (3, 3), "beta": (2, 2)}, 5, 0.1),
    (mounted, {"alpha": (0, 0), "beta": (0, 0)}, 2, 0.1),
    (executed, {"alpha": (2, 2), "beta": (2, 2)}, 4, 1),
    (stopped, {"alpha": (2, 3), "beta": (0, 1)}, 4, 1),
]


def counted(house, total):
    """The counts of the audit log by program and by whether it is verified, once they are all there."""

    def look():
        counts = {}
        for path in glob.glob(house.place("kept/**/audit*"), recursive=True):
            for line in read(path).splitlines():
                entry = json.loads(line)
                if entry.get("event") == "issued_token":
                    key = os.path.basename(entry.get("executable", "")), entry["verified"]
                    counts[key] = counts.get(key, 0) + entry["count"]
        return counts if sum(counts.values()) >= total else None

    return until(f"{total} issued tokens in the audit log", look)


def race(house, programs, report, run, limits, requests, part, rounds):
    rounds = max(1, int(part * rounds))
    house.fresh()
    house.start()
    must(house.sign_in(), "the sign-in")
    for _ in range(rounds):
        run(programs, house)
    stop(house.daemon)
    counts = counted(house, requests * rounds)
    for name, (least, most) in limits.items():
        verified = counts.get((name, True), 0)
        report.note(
            least * rounds <= verified <= most * rounds, f"{run.__name__}: what is counted for {name} as verified",
            f"{verified} in {rounds} rounds, not {least} to {most} in each")
    report.note(
        sum(counts.values()) == requests * rounds, f"{run.__name__}: each request is counted once",
        f"{sum(counts.values())} of {requests * rounds}")
    return [run.__name__, rounds, *(counts.get((name, is_verified), 0)
                            for name in ("alpha", "beta", "") for is_verified in (True, False))]


def campaign(chosen, report, places):
    rounds = 40 if chosen.short else chosen.rounds
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    programs = Programs(house.directory, house.socket)
    rows = [race(house, programs, report, *each, rounds) for each in RACES]
    control = rows[-1][3]
    report.note(
        control >= rounds // 2, "the control: /proc alone would have named the wrong program",
        f"in {control} of {rounds} rounds only")
    table("counts of requests, verified and not", [
        "race", "rounds", "alpha", "unverified", "beta", "unverified", "no program", "unverified"], rows)


if __name__ == "__main__":
    if os.geteuid() == 0 and os.getpid() != 1:
        # The namespace: this campaign is its first process, and all others end with it.
        os.execvp("unshare", [
            "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-B", __file__, *sys.argv[1:]])
    sys.exit(play(
        __doc__, campaign, root="only root can choose process ids", rounds=(ROUNDS, "how often each race is run")))
