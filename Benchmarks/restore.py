"""How long a daemon with many sealed sessions takes until each of them is served: from its start to the answer that
says so. The sessions are real ones, signed in at the sandbox. The provider does not answer while they are read, so that
they can come from the disk only."""

import statistics
import time

from measure import at_most, progress
from stage import House, Trouble

SESSIONS = 1_000
STARTS = 7
# Milliseconds, for the sessions above.
TARGET = 80


def restore(binaries):
    progress(f"sealing {SESSIONS} sessions")
    house = House(binaries, accounts=[f"user{number:04}" for number in range(SESSIONS)], shimmed=False)
    try:
        house.fresh()
        house.start()
        for name in house.accounts:
            status, answer = house.sign_in(name)
            if status != 200:
                raise Trouble(f"the sign-in of {name} answered {status}: {answer}")
        progress(f"restoring them {STARTS} times")
        times = []
        for _ in range(STARTS):
            house.kill()
            house.sandbox.control(faults=[{"endpoint": name, "kind": "hang"} for name in ["token", "discovery"]])
            begun = time.monotonic()
            house.launch()
            if not house.wait():
                raise Trouble(f"ringbackd does not answer: {house.why()}")
            while house.api("GET", "/v1/status")[1]["accounts"].get("authenticated") != SESSIONS:
                if time.monotonic() - begun > 30:
                    raise Trouble("not every session came back")
            times.append((time.monotonic() - begun) * 1_000)
        return [at_most(f"start to {SESSIONS:,} sealed sessions served", statistics.median(times), TARGET, " ms", 0)]
    finally:
        house.close()
