#!/usr/bin/env -S python3 -B
"""DU-01: kills ringbackd at every write-class call of every operation, and looks whether a session was lost.

For each operation, at each kind of account, and each number K: fresh state, the operation, SIGKILL before (or right after) the K-th call that
writes to a file, a directory or a socket; then a new daemon on what is left. It must have the session from before or
the one from after: its token is honoured by the provider, and so is the next one. The provider rotates refresh tokens
and ends a family when a replaced one comes back. In the first pass it forgives that for 10 seconds, as providers do
that know of lost answers: then nothing may be lost. In the second it forgives nothing: then a session may end where the
provider had rotated and the answer was never stored, if the account says so.
"""

import contextlib
import os
import random
import time

from harness import Died, Trouble, must, played, progress, table, within
from house import House
from kind_operations import EVERY, chosen_operations
from kinds import OPENID, SUPABASE_V1, SUPABASE_V2
from operations import (
    attempt, ending, examiner_sees_losses, is_revoked, reconnoitre, refreshing, settle, signed_in, start, stop)
from shim import EVERYTHING, KILL_AFTER, KILL_BEFORE, MODES
from syncs import syncs

GRACE = 10
SHORT_SECONDS = 75
# How often one state is killed, by the kind of its account; and in the short form.
ATTRITION = [(OPENID, 200, 30), (SUPABASE_V2, 100, 15), (SUPABASE_V1, 50, 5)]
# More calls than any operation makes: a campaign must end.
MOST = 400

# Of a provider that forgives the use of a replaced token for longer than a restart takes.
LONG_GRACE = 600
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
    """At an account of this kind, by a seeded generator, so that a failure can be run again. What single crashes leave
    behind must not add up. Returns the number of rounds in which the session was lost, and how many wrapping keys there are at the
    end: more than one would mean that a killed change of the key left the old one or the unused new one behind."""
    chance = random.Random(seed)
    of_others = [item for item in EVERY if item.kind in (OPENID, kind) and item.name.split(": ")[-1] in FIT]
    # What is about the vault is the same for all; of the rest that of the kind.
    choices = [item for item in of_others if item.kind is kind or item.name.startswith(("rekey", "reload"))]
    house.kind = kind
    house.fresh(reuse_grace=LONG_GRACE)
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
    with contextlib.suppress(Died):
        operation.run(house)
    settle(house)
    house.kill()
    if target % 4 == 0:
        # The start after a crash is no safer a place than any other.
        house.shim.arm(mode, target // 2, EVERYTHING)
        with contextlib.suppress(Died):
            start(house)
        house.kill()
    house.start()
    return ending(house)


def count_files(directory):
    return sum(len(names) for _, _, names in os.walk(directory))


def interrupt(house, operation, mode, target, grace):
    """One operation, killed at a call. Returns (the calls, whether it was killed)."""
    operation.fresh(house, grace)
    operation.prepare(house)
    house.shim.arm(mode, target, EVERYTHING)
    answer, trouble = attempt(house, operation)
    calls, fired = house.shim.log(), house.shim.has_fired
    if not fired:
        house.shim.disarm()
        if trouble:
            raise Trouble(f"nothing was done to it, but: {trouble} {house.why()}")
        if answer[0] not in (200, 201):
            raise Trouble(f"nothing was done to it, but it answered {answer[0]} {answer[1]}")
    return calls, fired


def renames(calls):
    return sum(call.is_kept and call.text.startswith("rename") for call in calls)


def judge(house, operation, calls, all_renames, fired, mode, grace):
    """What is wrong after the restart; "" if nothing is, "unheard" if the session ended as it had to. `all_renames` is
    how many there are in a run that nothing is done to."""
    if not fired:
        # It ran through: after is after, now and when it has been killed and started again.
        operation.back(house)
        end = ending(house, operation.shows)
        if end == "expired" and grace == 0 and operation.is_unheard:
            return "unheard"
        if end != operation.after:
            return f"it ran through, and ended as: {end}"
    house.restart()
    operation.back(house)
    is_to_show = not fired and operation.after_restarted == operation.after
    end = ending(house, operation.shows if is_to_show else None)
    if end == "none" and operation.is_sign_out and (not fired or operation.writes) and not is_revoked(house):
        return "signed out, and the provider was never told"
    if not fired:
        return "" if end == operation.after_restarted else f"it ran through, and after the restart ended as: {end}"
    if end in operation.restarted_ends:
        keys = count_files(house.place("kept/data"))
        if keys > 1:
            return f"{keys} wrapping keys are left"
        return operation.replaces(house) if end == "session" else ""
    # A rename puts a new session in its place; the last call is done only if the kill came after it.
    done = renames(calls if mode == KILL_AFTER else calls[:-1])
    rotated = house.kind.rotations(house)
    was_stored = done > (rotated - 1) * all_renames // operation.rotations
    is_lost = operation.is_unheard or (rotated > 0 and not was_stored)
    # A provider that takes the former token for a lost answer ends nothing that was rotated once.
    if operation.kind.forgives_one:
        is_lost = operation.is_two_behind and done < all_renames
    if end == "expired" and grace == 0 and is_lost:
        return "unheard"
    if end == "none" and grace == 0 and operation.is_unheard:
        return "the provider had ended the session, and after the restart nobody is told"
    return f"ended as: {end}"


def point(house, report, row, operation, mode, target, grace):
    """Tries one point. Returns False when the operation ran through."""
    where = f"{operation.name}, {MODES.get(mode, 'not')} {target}, grace {grace}"
    try:
        calls, fired = interrupt(house, operation, mode, target, grace)
        at = calls[target - 1].text if fired and target <= len(calls) else "the end"
        wrong = judge(house, operation, calls[:target] if fired else calls, row["renames"], fired, mode, grace)
    except Trouble as error:
        calls, fired, at, wrong = [], house.shim.has_fired, "?", str(error)
    row["points"] += 1
    row["unheard"] += wrong == "unheard"
    row["lost"] += wrong not in ("", "unheard")
    report.note(wrong in ("", "unheard"), f"{where} ({at})", wrong)
    return fired


def every_point(house, report, rows, operations):
    """Each K of each operation until it runs through."""
    for operation in operations:
        for grace in [GRACE, 0]:
            for mode in [KILL_BEFORE, KILL_AFTER]:
                target = 1
                while target <= MOST and point(house, report, rows[operation.name], operation, mode, target, grace):
                    target += 1
        row = rows[operation.name]
        progress(f"{operation.name}: {row['points']} points, {row['lost']} lost")


def some_points(house, report, rows, operations):
    """Every third K in one of the four ways (at accounts of other kinds every sixth), the operations in turn, until the
    time is up; and each run to its end."""
    ways = [(mode, grace) for grace in [GRACE, 0] for mode in [KILL_BEFORE, KILL_AFTER]]
    points = []
    for index, operation in enumerate(operations):
        count = rows[operation.name]["calls"]
        step = 3 if operation.kind is OPENID else 6
        targets = [*range(1 + index % step, count + 1, step), count + 1]
        points += [(target, operation, *ways[(index + turn) % 4]) for turn, target in enumerate(targets)]
    points.sort(key=lambda point: point[0])
    for target, operation, mode, grace in within(SHORT_SECONDS, points, "points"):
        point(house, report, rows[operation.name], operation, mode, target, grace)


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


@played(only=("", "only the operation of this name, or all that begin with it and a colon"))
def campaign(chosen, report, places):
    operations = chosen_operations(chosen.only, chosen.short)
    house = places.add(House(chosen.bin), chosen.keep)
    report.note(examiner_sees_losses(house), "the examiner", "a vault in memory, a crash, and no loss is seen")
    rows, there = {}, []
    for operation in operations:
        row = rows[operation.name] = {"calls": 0, "kept": 0, "renames": 0, "points": 0, "lost": 0, "unheard": 0}
        try:
            calls = reconnoitre(house, operation, GRACE, EVERYTHING)
            row["calls"], row["kept"] = len(calls), sum(call.is_kept for call in calls)
            row["renames"] = renames(calls)
            there.append(operation)
        except Trouble as trouble:
            report.note(False, operation.name, str(trouble))
    (some_points if chosen.short else every_point)(house, report, rows, there)
    rounds, worn, keys = 0, 0, 0
    for kind, many, few in ATTRITION if chosen.only == "" else []:
        many = few if chosen.short else many
        lost, left = attrition(house, report, many, kind)
        rounds, worn, keys = rounds + many, worn + lost, max(keys, left)
    if chosen.only == "":
        stopped = stops(house, report)
        cuts, forgotten = syncs(house, report, chosen.short)
    table(
        f"SIGKILL at write-class calls; reuse forgiven for {GRACE} s, and not at all",
        ["operation", "calls", "to kept files", "points", "unheard by design", "lost"],
        [[name, row["calls"], row["kept"], row["points"], row["unheard"], row["lost"]] for name, row in rows.items()],
    )
    points, lost = (sum(row[key] for row in rows.values()) for key in ["points", "lost"])
    print(f"\nstates killed again and again, {rounds} times: {worn} lost, at most {keys} wrapping keys at the end")
    if chosen.only == "":
        print(f"stopped with a refresh that was answered {HELD} s later: in {stopped:.1f} s")
        print(f"power cuts: {cuts}, sessions lost: {forgotten}")
    print(f"points tried: {points + rounds}, sessions lost: {lost + worn}")
