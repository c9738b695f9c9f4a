"""What a campaign prints: progress on standard error, tables and the last line on standard output."""

import argparse
import os
import sys
import time

from house import ROOT


def options(description, **more):
    """The options that every campaign has, and more by name: (default, help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", default=os.path.join(ROOT, ".build/release"), help="the executables' directory")
    parser.add_argument("--short", action="store_true", help="a part that takes under 90 seconds")
    parser.add_argument("--keep", action="store_true", help="leave the private directory behind")
    for name, (default, text) in more.items():
        parser.add_argument("--" + name.replace("_", "-"), default=default, type=type(default), help=text)
    return parser.parse_args()


class Report:
    """Counts what passed and what did not; the same complaint is shown a few times only."""

    SHOWN = 8

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skipped = []
        self.started = time.monotonic()

    def note(self, is_right, where, why=""):
        """One thing that was tried."""
        if is_right:
            self.passed += 1
            return
        self.failures.append((where, why))
        if len(self.failures) <= Report.SHOWN:
            progress(f"FAILED {where}: {why}")
        elif len(self.failures) == Report.SHOWN + 1:
            progress("more failures are only counted")

    def skip(self, where, why):
        """Something that cannot be tried here. It is counted; `Scripts/count-tests` reads the line."""
        self.skipped.append(where)
        progress(f"left out: {where}: {why}")
        print(f"skip {where}: {why}", flush=True)

    def finish(self):
        """The last line. Returns the exit status."""
        for where, why in self.failures[: 3 * Report.SHOWN]:
            print(f"FAILED {where}: {why}")
        print(f"in {time.monotonic() - self.started:.0f} s")
        if self.skipped:
            print(f"{len(self.skipped)} skipped: {', '.join(self.skipped)}")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 0 if self.passed and not self.failures else 1


def progress(text):
    print(f"ringback: {text}", file=sys.stderr, flush=True)


def could_not_run(trouble, house=None):
    """The last line of a campaign that stopped. Returns the exit status."""
    why = f" ({house.why()})" if house else ""
    progress(f"the campaign could not run: {trouble}{why}")
    return 1


def table(title, head, rows):
    """A plain table: the first column to the left, numbers to the right."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        cells = [str(row[0]).ljust(widths[0])] + [str(c).rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip(), flush=True)
