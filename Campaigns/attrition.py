"""One state, killed again and again: what single crashes leave behind must not add up.

Operations and places of the kill are chosen by a seeded generator, so that a failure can be run again.
"""

import os
import random

from harness import Died, Trouble, must
from kind_operations import EVERY
from kinds import OPENID
from operations import ending, settle, signed_in, start
from shim import EVERYTHING, KILL_AFTER, KILL_BEFORE

# Of a provider that forgives the use of a replaced token for longer than a restart takes.
GRACE = 600
# An operation makes fewer calls than this; the numbers beyond let it run through.
MOST_CALLS = 36
# What may be in a directory at the end: the session's file, and those of an announced change and of a sign-out under
# way; in the state directory the lock, the audit log, where the numbers of events began, and what a kill left of that.
MOST_FILES = 5
# What needs no other state before it than a session.
FIT = {
    "sign-in again", "refresh", "two refreshes", "sign-out", "lock", "unlock", "rekey to a passphrase",
    "rekey to another file", "reload", "user update",
}


def attrition(house, report, rounds, kind=OPENID, seed=1):
    """At an account of this kind. Returns the number of rounds in which the session was lost, and how many wrapping keys there are at the end: more
    than one would mean that a killed change of the key left the old one or the unused new one behind."""
    chance = random.Random(seed)
    of_others = [item for item in EVERY if item.kind in (OPENID, kind) and item.name.split(": ")[-1] in FIT]
    # What is about the vault is the same for all; of the rest that of the kind.
    choices = [item for item in of_others if item.kind is kind or item.name.startswith(("rekey", "reload"))]
    house.kind = kind
    house.fresh(reuse_grace=GRACE)
    signed_in(house)
    lost = 0
    for number in range(1, rounds + 1):
        operation = chance.choice(choices)
        mode, target = chance.choice([KILL_BEFORE, KILL_AFTER]), chance.randint(1, MOST_CALLS)
        where = f"{kind.name}, round {number}: {operation.name}, killed at call {target}"
        try:
            end = disturb(house, operation, mode, target)
            is_lost = end not in operation.restarted_ends
        except Trouble as trouble:
            end, is_lost = str(trouble), True
        lost += is_lost
        report.note(not is_lost, where, f"ended as: {end}")
        try:
            if end != "session":
                if not house.is_alive:
                    house.restart()
                must(house.unlock(), "unlocking")
                must(house.sign_in(), "signing in again")
        except Trouble as trouble:
            report.note(False, where, f"and nothing went on from there: {trouble}")
            break
    left = {name: len(os.listdir(house.place(name))) for name in ["kept/state", "kept/state/vault"]}
    for name, count in left.items():
        report.note(count <= MOST_FILES, f"{name} after {number} rounds", f"{count} files are left")
    house.kill()
    keys = count_files(house.place("kept/data"))
    report.note(keys <= 1, f"wrapping keys after {number} rounds", f"{keys} are left")
    return lost, keys


def disturb(house, operation, mode, target):
    """The operation, killed or not, then a kill and a start, itself killed once in a while; how it ended."""
    house.shim.arm(mode, target, EVERYTHING)
    try:
        operation.run(house)
    except Died:
        pass
    settle(house)
    house.kill()
    if target % 4 == 0:
        # The start after a crash is no safer a place than any other.
        house.shim.arm(mode, target // 2, EVERYTHING)
        try:
            start(house)
        except Died:
            pass
        house.kill()
    house.start()
    return ending(house)


def count_files(directory):
    return sum(len(names) for _, _, names in os.walk(directory))
