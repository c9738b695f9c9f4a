#!/usr/bin/env -S python3 -B
"""SK-21, SK-29: looks for every secret of a run in every place where none may be.

A daemon that logs everything, a client with a secret, a vault with a passphrase; sign-ins that end well and badly,
refreshes, wrong answers, hostile callbacks, mistakes in the configuration, sign-out, crashes. All the while the command
lines and environments of the daemon, its helper and the command line are read. Afterwards none of the secrets (each
recognizable, each known from the provider's own log) is in a log, in the output of a command that is not to print it,
in what was kept, in a temporary file or in what a crash left.
"""

import base64
import re

from canary_walk import Walk, Watcher, files
from harness import Trouble, played, progress, read, table
from house import House

# What the sandbox's secrets look like: at-, rt- and code- with 256 random bits.
PATTERN = re.compile(rb"\b(?:at|rt|code)-[A-Za-z0-9_-]{43}")
SHORTEST = 16


def forms(secret):
    """A secret as it would stand in a file: itself, in hexadecimal, and in Base64 at each of the three places."""
    plain = secret.encode()
    yield plain
    yield plain.hex().encode()
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + plain)
        # The first and last characters depend on what is beside it.
        piece = encoded[4 if shift else 0:-4]
        yield piece
        yield piece.replace(b"+", b"-").replace(b"/", b"_")


def places(house, walk, watcher):
    """Every text that is looked at, and what it is."""
    yield from files(house)
    yield from walk.output
    for (pid, name), contents in watcher.seen.items():
        for content in contents:
            yield f"/proc/{pid}/{name} of {content.split(bytes(1))[0].decode(errors='replace')[-40:]}", content


def is_searchable():
    """The search finds what is there: a secret in each of its forms, wherever it begins."""
    secret = "at-canary-that-is-there"
    padded = [b"x" * before + secret.encode() + b"yz" for before in range(3)]
    texts = [secret.encode(), secret.encode().hex().encode(), *map(base64.b64encode, padded)]
    return all(any(form in b"before" + text + b"behind" for form in forms(secret)) for text in texts)


def search(report, house, walk, watcher):
    """Returns a row per kind of secret."""
    report.note(is_searchable(), "the search", "does not find a secret that is there")
    looked = list(places(house, walk, watcher))
    rows = {}
    for secret, kind in walk.secrets.items():
        row = rows.setdefault(kind, [0, 0])
        if len(secret) < SHORTEST:
            report.note(False, kind, "too short to be told from anything else")
            continue
        found = sorted({where for form in forms(secret) for where, text in looked if form in text})
        row[0] += 1
        row[1] += len(found)
        report.note(not found, f"a {kind}", "found in " + ", ".join(found[:3]))
    for where, text in looked:
        found = PATTERN.search(text)
        report.note(not found, where, "has what looks like " + (found.group()[:8].decode() + "…" if found else ""))
    return looked, rows


@played()
def campaign(chosen, report, places):
    watcher = Watcher()
    house = places.add(House(chosen.bin, shimmed=False, log_level="trace"), chosen.keep)
    walk = Walk(house, report, watcher)
    places.add(walk.proxy)
    watcher.start()
    progress("walking")
    try:
        walk.run()
    except (Trouble, KeyError) as trouble:
        report.note(False, "the walk", f"it broke off: {type(trouble).__name__} {trouble} {house.why()}")
    finally:
        watcher.is_over.set()
        watcher.join()
    walk.collect()
    house.kill()
    progress(f"looking for {len(walk.secrets)} secrets")
    looked, rows = search(report, house, walk, watcher)
    table("Canaries", ["secret", "of them", "found"], [[kind, *row] for kind, row in sorted(rows.items())])
    kinds = [where.split()[0].split("/")[1 if where.startswith("/") else 0] for where, _ in looked]
    print(f"\nsteps: {walk.steps}; places looked at: {len(looked)} ({kinds.count('file')} files, "
          f"{kinds.count('proc')} of processes, the rest output); bytes: {sum(len(text) for _, text in looked)}")
    print(f"core files would go to: {read('/proc/sys/kernel/core_pattern').strip()}")
    if watcher.unreadable:
        print(f"of processes, not readable without being root: {len(watcher.unreadable)}")
