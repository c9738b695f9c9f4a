"""A stop while the provider works at a refresh: the daemon waits for the answer, and keeps the token that is in it."""

import time

from harness import Trouble
from kinds import OPENID
from operations import ending, refreshing, stop

# Seconds until the provider answers.
HELD = 3


def stops(house, report, held=HELD):
    """With a provider that forgives no reuse: only the token in that answer goes on. Returns the seconds it took."""
    where = f"SIGTERM, and a refresh answered {held} s later"
    try:
        house.kind = OPENID
        house.fresh(reuse_grace=0)
        connection = refreshing(house)
        started = time.monotonic()
        status, document = stop(house, held)
        # The provider's answer came before: `stop` returns no sooner.
        took = time.monotonic() - started
        connection.close()
        house.restart()
        end = ending(house)
    except Trouble as trouble:
        report.note(False, where, str(trouble))
        return 0
    report.note(status == 200, where, document.get("detail", ""))
    report.note(end == "session", where, f"after the restart the session ended as: {end}")
    return took
