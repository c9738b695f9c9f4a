#!/usr/bin/env -S python3 -B
"""Can another user of the machine end a sign-in, by leaving the port of their connection to the person's next one?

A process of another uid sends a callback that is genuine to the byte (their own code, or an error) and resets its
connection; at once a process of the daemon's uid connects from the same port. Whoever asks the kernel for the owner of
these addresses then is told the person's uid. No such callback may count.

Two controls, without which nothing is shown: the attacker wins against a server that asks by the addresses alone, and
each of the two requests ends a flow when it comes from the person's own uid. Needs root, for the second uid.

At the end `ringback demo` signs in as that user where /proc shows a user no processes of others (hidepid=2).
"""

import os
import re
import shutil
import socket
import subprocess
import time

from harness import ROOT, Trouble, compiled, must, output, played, progress, run, tcp_request
from house import House

STRANGER = 65_534
# Microseconds between a request and the reset, by turns: nothing, once, twice and three times as long. Which of these wins
# most often depends on the machine and its load: the control finds out.
DELAYS = [30, 8, 100, 300]
ROUNDS_OF_A_FLOW = 100


def build(directory):
    """The other user need not reach it: it takes their uid only once it runs."""
    sources = [os.path.join(ROOT, name) for name in ("Campaigns/foreign.c", "Sources/Base/CLinux/CLinux.c")]
    include = os.path.join(ROOT, "Sources/Base/CLinux/include")
    return compiled(os.path.join(directory, "foreign"), "-w", "-I", include, *sources)


def race(program, *words):
    """Rounds of the race: how often the control took the stranger for the person."""
    try:
        return [int(word) for word in output(program, *map(str, words), timeout=300).split()]
    except subprocess.TimeoutExpired:
        raise Trouble("the race did not end within 300 s") from None


def requests(callback):
    """What the stranger sends: their own code, and a no, both with the genuine state."""
    host, target = re.fullmatch(r"http://([^/]+)(/.*)", callback).groups()
    no = re.sub(r"([?&])code=[^&]*", r"\1error=access_denied", target)
    form = "GET {} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n"
    return int(host.rsplit(":", 1)[1]), [form.format(each, host) for each in (target, no)]


def begin(house):
    """A flow, and what the stranger sends to end it: (the flow, the port, the requests)."""
    house.sandbox.control(reset=True, auto_approve="bob", algorithm="ES256")
    flow = house.new_flow(timeout=600)
    return flow, *requests(house.sandbox.approve(flow["authorization_url"]))


def send(port, text):
    """One request of our own uid, which waits for its answer: the status."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(text.encode())
        return int(connection.makefile("rb").readline().split()[1])


def sign_out(house):
    must(house.api("DELETE", "/v1/accounts/work/session"), "the sign-out")


def genuine(house):
    """The second control: what the stranger sends is genuine to the byte."""
    for index, wanted in enumerate(["completed", "failed"]):
        flow, port, texts = begin(house)
        status = send(port, texts[index])
        ended = house.api("GET", f"/v1/flows/{flow['id']}?wait=10")[1]["status"]
        if status != 303 or ended != wanted:
            raise Trouble(f"the stranger's request is not genuine: from our own uid it got {status}, and the flow is {ended}")
        sign_out(house)


def attack(house, program, report, delay, rounds):
    """One flow under attack; it must wait for the genuine callback all the while, and end by it."""
    flow, port, texts = begin(house)
    race(program, port, STRANGER, rounds, delay, *texts)
    # What was sent last is judged by now, or within this request.
    status = house.api("GET", f"/v1/flows/{flow['id']}?wait=1")[1]["status"]
    report.note(status == "pending", "a stranger's callback changes nothing", f"the flow is {status}")
    house.sandbox.control(auto_approve="alice")
    answer = tcp_request(house.sandbox.approve(flow["authorization_url"]))
    subject = house.account().get("subject")
    report.note(
        answer[0] == 303 and subject == "alice", "the genuine callback counts afterwards", f"{answer[0]}, {subject}")
    sign_out(house)


def hidden(house, report):
    """A sign-in as a user to whom /proc shows no processes of others."""
    place = house.place("hidden")
    os.makedirs(f"{place}/home", 0o700)
    for name in ("ringback", "ringbackd", "ringback-relay", "ringback-sandbox"):
        shutil.copy(os.path.join(house.binaries, name), place)
    os.chown(f"{place}/home", STRANGER, STRANGER)
    for path in (house.directory, place):
        os.chmod(path, 0o711)
    line = ('mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid "$2" --regid "$2" --clear-groups env -i '
            'PATH="$1:$PATH" HOME="$1/home" XDG_RUNTIME_DIR="$1/home" sh -c "! test -e /proc/1 && ringback demo"')
    ran = run("unshare", "--mount", "sh", "-c", line, "sh", place, str(STRANGER), timeout=120)
    said = (ran.stdout + ran.stderr).strip().splitlines()[-3:]
    report.note(ran.returncode == 0, "hidepid: a sign-in where /proc hides the processes of others", " / ".join(said))


@played(root="only root can act as another user", rounds=(2_000, "how often the stranger tries"))
def campaign(chosen, report, places):
    rounds = 300 if chosen.short else chosen.rounds
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    program = build(house.directory)
    started = time.monotonic()
    won = {delay: race(program, "control", STRANGER, rounds // len(DELAYS), delay) for delay in DELAYS}
    by_addresses, by_connection = (sum(counts) for counts in zip(*won.values()))
    delay = max(won, key=lambda delay: won[delay][0])
    progress(f"control: by addresses alone {by_addresses} of {rounds} were taken for the person's, by the connection "
             f"{by_connection}, in {time.monotonic() - started:.0f} s; most after {delay} µs")
    if by_addresses == 0:
        raise Trouble(f"the race was never won in {rounds} rounds, not even where the owner is asked by addresses alone")
    report.note(by_connection == 0, "the control: asked by the connection, never", f"{by_connection} times")
    house.fresh()
    house.start()
    genuine(house)
    for done in range(0, rounds, ROUNDS_OF_A_FLOW):
        attack(house, program, report, delay, min(ROUNDS_OF_A_FLOW, rounds - done))
    hidden(house, report)
    print(f"{rounds} callbacks of another uid; the control took {by_addresses} of as many for the person's")
