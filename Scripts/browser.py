"""Runs every verb that opens a page with headless Chromium, and looks at every tab that is left: how many there are, and
what each one says. $1: the directory of the executables. The accounts `work` and `app` are at a sandbox."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import TimeoutError as TooLate
from playwright.sync_api import sync_playwright

RINGBACK = f"{sys.argv[1]}/ringback"
BOUND = 60.0

# A verb, what the one tab says in the end, and what the verb prints.
VERBS = [
    (["login", "work"], "Signed in", "Signed in to work as alice@example.org"),
    (["logout", "work", "--browser"], "Signed out", "Signed out of work"),
    (["token", "work", "--sign-in"], "Signed in", "at-"),
    (["login", "app", "--with", "github"], "Signed in", "Signed in to app as alice@example.org"),
    (["supabase", "link", "app", "--with", "google"], "Signed in", "Linked google to app"),
]


class Opener:
    """What BROWSER names: it notes each URL that it is started with, as a desktop's opener hands it to a browser."""

    def __init__(self, directory):
        self.log = directory / "opened"
        self.log.touch()
        self.program = directory / "opener"
        self.program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >>'{self.log}'\n")
        self.program.chmod(0o700)
        self.taken = 0

    def opened(self):
        """The URLs since the last call."""
        lines = self.log.read_text().splitlines()
        fresh, self.taken = lines[self.taken:], len(lines)
        return fresh

    def is_running(self):
        """True while an opener may still write: its path is an argument of a process."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.program).encode() in path.read_bytes():
                    return True
            except OSError:
                pass
        return False


def sign_in(page):
    """Answers the sandbox's page as a person at a keyboard does; other pages are left alone."""
    if page.get_by_role("radio").count():
        page.get_by_role("radio").first.focus()
        page.keyboard.press("Space")
        page.get_by_role("button", name="Allow").press("Enter")


def walk(context, opener, verb, told, printed):
    """One verb; its tabs are looked at once it has ended."""
    program = subprocess.Popen([RINGBACK, *verb], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               env=os.environ | {"BROWSER": str(opener.program)}, text=True)
    end = time.monotonic() + BOUND
    while True:
        has_ended = program.poll() is not None and not opener.is_running()
        for url in opener.opened():
            tab = context.new_page()
            tab.goto(url)
            sign_in(tab)
        if has_ended:
            break
        if time.monotonic() > end:
            program.kill()
            raise AssertionError(f"{verb} did not end")
        time.sleep(0.02)
    output = program.stdout.read()
    assert program.returncode == 0 and printed in output, f"{verb} ended with {program.returncode}: {output}"
    texts = []
    for tab in context.pages:
        tab.wait_for_load_state()
        try:
            tab.get_by_role("heading", name=told).wait_for(timeout=10_000)
        except TooLate:
            pass  # What it says instead is told below.
        texts.append(tab.inner_text("body"))
        tab.close()
    assert len(texts) == 1, f"{verb} left {len(texts)} tabs: {texts}"
    assert told in texts[0] and "Not found" not in texts[0], f"{verb} left a tab that says: {texts[0]}"


with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
    # Chromium's own sandbox needs what containers and root do not have; the pages are ours.
    chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    context = chromium.new_context()
    browser = Opener(pathlib.Path(directory))
    for verb, told, printed in VERBS:
        walk(context, browser, verb, told, printed)
    chromium.close()
print(f"{len(VERBS)} passed, 0 failed")
