#!/usr/bin/env -S python3 -B
"""Sign-ins with real Chromium and real Firefox, started by `ringback` as a desktop starts them.

Each walk looks at every tab that is left and at its text, counts how often the browser was started, and counts the
provider's requests. Then the attacks on the two entrances of a sign-in, and browsers that are elsewhere: of another uid,
in another network. These need root; as another user they are left out, and said so.
"""

import os

from browsers.chromium import Chromium
from browsers.desk import Desk
from browsers.driving import walks
from browsers.elsewhere import WALKS, Elsewhere, missing
from browsers.entrances import ATTACKS, Attacks
from browsers.everyday import SETTINGS, Settings
from browsers.firefox import Firefox
from harness import played, table


class Every(Attacks, Elsewhere, Settings):
    """All walks of one browser."""

    def before(self, name):
        if name != "cold" and not self.browser.is_running:
            self.browser.begin()


BROWSERS = [Chromium, Firefox]
EVERYDAY = ["cold", "running", "private", "verbs", "second_tab", "back_and_reload", "denial", "other_redirects", "fragments",
            "looking_ahead"]
SHORT = ["cold", "verbs", "session_fixation"]


def left_out(kind):
    """The walks of this kind of browser that are not made here, and why."""
    lacks = missing()
    if kind is not Firefox:
        lacks["container_tabs"] = "it has none"
    if os.geteuid() != 0:
        lacks["session_fixation"] = "only root can act as another user"
        if kind is Chromium:
            lacks["schemes"] = "only root can write Chromium's policy, which answers its question"
    return lacks


@played(only=("", "only walks with this in their names"), browser=("", "only this browser"),
         pages=("", "a directory for the text and a picture of each page"))
def campaign(chosen, report, places):
    rows, desk = [], places.add(Desk(chosen.bin, chosen.pages), chosen.keep)
    for kind in BROWSERS:
        if chosen.browser.lower() not in kind.name.lower():
            continue
        browser = kind(desk, kind.name.lower())
        walk = Every(desk, browser, report)
        walks(chosen, report, walk, EVERYDAY + SETTINGS + ATTACKS + WALKS, left_out(kind), SHORT)
        rows += walk.rows
        browser.quit()
    table("from the start of ringback to the provider's page", ["sign-in", "s"], rows)
    print("\nWhat the pages say")
    for text, where in sorted(desk.shown.items()):
        print(f"  {text}\n    {len(where)} times; first: {where[0]}")
