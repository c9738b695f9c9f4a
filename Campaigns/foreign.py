#!/usr/bin/env python3
"""Can another user of the machine end a sign-in, by leaving the port of their connection to the person's next one?

A process of another uid sends a callback that is genuine to the byte (their own code, or an error) and resets its
connection; at once a process of the daemon's uid connects from the same port. Whoever asks the kernel for the owner of
these addresses then is told the person's uid. No such callback may count. A control shows that the attacker would win
against a server that asks so. Needs root, for the second uid.
"""

import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from house import ROOT, House, tcp_request  # noqa: E402
from report import Report, options, progress  # noqa: E402

STRANGER = 65_534
# Microseconds between a request and the reset, by turns: nothing, once, twice and three times as long.
DELAY = 30
ROUNDS_OF_A_FLOW = 100


def build(directory):
    program = os.path.join(directory, "foreign")
    sources = [os.path.join(ROOT, name) for name in ("Campaigns/foreign.c", "Sources/CLinux/CLinux.c")]
    subprocess.run(
        ["cc", "-O2", "-w", "-I", os.path.join(ROOT, "Sources/CLinux/include"), "-o", program, *sources], check=True)
    # The other user need not reach it: it takes their uid only once it runs.
    return program


def race(program, *words):
    """Rounds of the race: how often the control took the stranger for the person."""
    ran = subprocess.run(
        [program, *map(str, words)], check=True, capture_output=True, text=True, timeout=300)
    return [int(word) for word in ran.stdout.split()]


def requests(callback):
    """What the stranger sends: their own code, and a no, both with the genuine state."""
    host, target = re.fullmatch(r"http://([^/]+)(/.*)", callback).groups()
    no = re.sub(r"([?&])code=[^&]*", r"\1error=access_denied", target)
    form = "GET {} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n"
    return int(host.rsplit(":", 1)[1]), [form.format(each, host) for each in (target, no)]


def attack(house, program, report, rounds):
    """One flow under attack; it must wait for the genuine callback all the while, and end by it."""
    house.sandbox.control(reset=True, auto_approve="bob", algorithm="ES256")
    flow = house.api("POST", "/v1/accounts/work/sign-in", {"method": "browser", "timeout": 600})[1]
    port, texts = requests(house.sandbox.approve(flow["authorization_url"]))
    race(program, port, STRANGER, rounds, DELAY, *texts)
    # What was sent last is judged by now, or within this request.
    status = house.api("GET", f"/v1/flows/{flow['id']}?wait=1")[1]["status"]
    report.note(status == "pending", "a stranger's callback changes nothing", f"the flow is {status}")
    house.sandbox.control(auto_approve="alice")
    answer = tcp_request(house.sandbox.approve(flow["authorization_url"]))
    subject = house.account().get("subject")
    report.note(
        answer[0] == 303 and subject == "alice", "the genuine callback counts afterwards", f"{answer[0]}, {subject}")
    house.api("POST", "/v1/accounts/work/sign-out")


def main():
    arguments = options(__doc__, rounds=(2_000, "how often the stranger tries"))
    if os.geteuid() != 0:
        print("ringback: only root can act as another user", file=sys.stderr)
        return 1
    rounds = 300 if arguments.short else arguments.rounds
    report = Report()
    house = House(arguments.bin, shimmed=False)
    try:
        program = build(house.directory)
        started = time.monotonic()
        by_addresses, by_connection = race(program, "control", STRANGER, rounds, DELAY)
        progress(f"control: by addresses alone {by_addresses} of {rounds} were taken for the person's, "
                 f"by the connection {by_connection}, in {time.monotonic() - started:.0f} s")
        report.note(by_addresses > 0, "the control: asked by addresses, the stranger passes", "never in all rounds")
        report.note(by_connection == 0, "the control: asked by the connection, never", f"{by_connection} times")
        house.fresh()
        house.start()
        for done in range(0, rounds, ROUNDS_OF_A_FLOW):
            attack(house, program, report, min(ROUNDS_OF_A_FLOW, rounds - done))
        print(f"{rounds} callbacks of another uid; the control took {by_addresses} of as many for the person's")
    finally:
        house.close(arguments.keep)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
