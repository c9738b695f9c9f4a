#!/usr/bin/env -S python3 -B
"""DU-02: proves that what ringbackd told to anybody survives a power cut.

SIGKILL leaves what the kernel holds; only a power cut shows a missing fsync. So, for each operation that stores:
1. the order of its calls is read from the shim's log (order.py);
2. the power is cut after each call: all that was not synced goes (disk.h). There must be the session from before or
   the one from after, and if the operation had answered, the one from after, with a provider that forgives no reuse.
3. the daemon is killed after each call, started again, and then the power is cut: what it told of stays.
Each sync is also left out in turn, in the log, and all of files or of directories in the daemon: that must be noticed.
"""

import os
import shutil
import time

from harness import Trouble, must, played, progress, table, write
from house import House
from operations import OPERATIONS, SESSION, attempt, ending, is_revoked, settle
from order import SEQUENCES, SYNCS, complaints
from shim import COUNT, KILL_AFTER, SWALLOW_DIRECTORIES, SWALLOW_FILES, Call

GRACE = 10
SHORT_SECONDS = 25
MOST = 400
STORING = [operation for operation in OPERATIONS if operation.name in SEQUENCES]
# What ends with another state than it began with, or leaves a key or a mark.
RESTARTED = {"first start", "sign-in", "refresh", "sign-out", "rekey to another file"}
# Syncs that are dropped in the daemon, and an operation whose end a power cut then changes.
DROPPED = [
    ("files", SWALLOW_FILES, ["first start", "sign-in", "sign-in again", "two refreshes", "rekey to a passphrase"]),
    ("directories", SWALLOW_DIRECTORIES, ["sign-in", "two refreshes", "sign-out"]),
]


class Disk:
    """That of a directory whose writer is under the shim; disk.h writes down what is synced."""

    def __init__(self, house):
        self.kept = house.kept
        self.mirror = house.place("mirror")
        self.shim = house.shim
        # An inode's number must not be given to another file before the end.
        self.held = []

    def begin(self):
        """What is there now is durable, as after a long time of quiet."""
        self.end()
        os.mkdir(self.mirror, 0o700)
        for directory, directories, files in os.walk(self.kept):
            names = directories + files
            lines = "".join(f"{os.lstat(os.path.join(directory, name)).st_ino} {name}\n" for name in names)
            self.put("dir", os.stat(directory).st_ino, lines.encode())
            for name in files:
                file = open(os.path.join(directory, name), "rb")
                self.held.append(file)
                self.put("file", os.fstat(file.fileno()).st_ino, file.read())
        self.root = os.stat(self.kept).st_ino
        self.shim.mirror(self.mirror)

    def put(self, kind, inode, content):
        write(os.path.join(self.mirror, f"{kind}-{inode}"), content)

    def get(self, kind, inode):
        """None if it was never synced."""
        try:
            with open(os.path.join(self.mirror, f"{kind}-{inode}"), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def cut(self):
        """The power goes, and comes back; the daemon must be gone."""
        is_directory = {}
        for directory, directories, _ in os.walk(self.kept):
            is_directory |= {os.lstat(os.path.join(directory, name)).st_ino: True for name in directories}
        shutil.rmtree(self.kept)
        self.make(self.kept, self.root, is_directory)
        self.end()

    def make(self, path, inode, is_directory):
        os.mkdir(path, 0o700)
        for line in (self.get("dir", inode) or b"").decode().splitlines():
            number, name = line.split(" ", 1)
            place = os.path.join(path, name)
            if int(number) in is_directory:
                self.make(place, int(number), is_directory)
                continue
            write(place, self.get("file", number) or b"")

    def end(self):
        self.shim.mirror("")
        shutil.rmtree(self.mirror, ignore_errors=True)
        for file in self.held:
            file.close()
        self.held = []


def undisturbed(house, operation, grace=GRACE, disk=None, mode=COUNT, target=0, swallow=0):
    """A run of it: (the answer or None, the log, the paths that were there before)."""
    operation.fresh(house, grace)
    operation.prepare(house)
    settle(house)
    if disk:
        disk.begin()
    existing = {
        os.path.relpath(os.path.join(directory, name), house.kept)
        for directory, directories, files in os.walk(house.kept) for name in directories + files
    }
    house.shim.arm(mode, target, swallow=swallow)
    answer, trouble = attempt(house, operation)
    if trouble and not house.shim.has_fired:
        raise Trouble(f"nothing was done to it, but: {trouble} {house.why()}")
    return answer, house.shim.log(), existing


def ending_after_cut(house, disk, operation):
    """How the account stands when the power is back."""
    house.kill()
    disk.cut()
    house.start()
    operation.back(house)
    end = ending(house)
    if end == "none" and operation.name == "sign-out" and not is_revoked(house):
        return "signed out, and the provider was never told"
    return end


def check_order(house, report, operation, row):
    """The calls of a whole run, and that each missing sync would have been seen."""
    answer, log, existing = undisturbed(house, operation)
    house.kill()
    wrong = complaints(operation.name, existing, log)
    if answer[0] != 200:
        wrong.append(f"it answered {answer[0]}")
    report.note(not wrong, f"{operation.name}: the order", "; ".join(wrong[:3]))
    syncs = [call for call in log if call.is_kept and call.text.split()[0] in SYNCS]
    row["calls"], row["syncs"] = len(log), len(syncs)
    for sync in syncs:
        without = [call for call in log if call is not sync]
        row["needed"] += bool(complaints(operation.name, existing, without))
    report.note(row["needed"] > 0, f"{operation.name}: the examiner", "no sync is missed if it is left out")


def cut_at(house, report, disk, operation, row, target, grace=GRACE):
    """The power goes after the call of that number. False when the operation ran through."""
    where = f"{operation.name}, power cut after {target}, grace {grace}"
    try:
        answer, log, _ = undisturbed(house, operation, grace, disk, KILL_AFTER, target)
        fired = house.shim.has_fired
        at = log[target - 1].text if fired and target <= len(log) else "the end"
        end = ending_after_cut(house, disk, operation)
        is_told = answer is not None and answer[0] == 200
        is_right = end == operation.after if is_told else end in (operation.before, operation.after)
    except Trouble as error:
        fired, at, end, is_right = house.shim.has_fired, "?", str(error), False
    finally:
        disk.end()
    row["cuts"] += 1
    row["lost"] += not is_right
    report.note(is_right, f"{where} ({at})", f"ended as: {end}")
    return fired


def cut_after_restart(house, report, disk, operation, target):
    """Killed after that call and started again; then the power goes. What a new daemon finds, it must not take for
    durable only because it is there. Returns (whether it was killed, whether it is right)."""
    where = f"{operation.name}, killed after {target}, started again, power cut"
    told, end = "?", "?"
    try:
        undisturbed(house, operation, GRACE, disk, KILL_AFTER, target)
        fired = house.shim.has_fired
        if fired:
            house.kill()
            house.shim.arm()
            house.start()
            operation.back(house)
            must(house.unlock(), "unlocking")
            told = "session" if house.api("GET", SESSION + "?timeout=20")[0] == 200 else "none"
            settle(house)
            end = ending_after_cut(house, disk, operation)
    except Trouble as trouble:
        fired, end = True, str(trouble)
    finally:
        disk.end()
    if fired:
        report.note(told == end, where, f"it had told of: {told}, and ended as: {end}")
    return fired, told == end


def check_moments(report):
    """The judge of a start after a cut refresh: a status that leaves while the refresh is stored is no fault, a session
    that is stored without a sync is one."""
    live = "state/vault/work-0.sealed"
    texts = [
        "send tcp:1 POST /token", f"write {live}.next", "send api HTTP/1.1 200", f"fsync {live}.next",
        f"rename {live} < work-0.sealed.next", "fsync state/vault",
    ]
    log = [Call(text, " state/" in text, 2 * turn + 1, 2 * turn + 2) for turn, text in enumerate(texts)]
    name = "start after a cut refresh"
    wrong = complaints(name, {f"{live}.next"}, log)
    report.note(not wrong, f"{name}: a status in the middle", "; ".join(wrong))
    without = [call for call in log if not call.text.startswith(f"fsync {live}")]
    report.note(any("unsynced" in text for text in complaints(name, {f"{live}.next"}, without)),
                f"{name}: a missing sync", "it is not seen")


def check_examiner(house, report, disk):
    """With the syncs of one kind dropped by the daemon, both ways of looking must see it. Returns how often they did."""
    seen = 0
    for kind, swallow, names in DROPPED:
        for operation in [item for item in STORING if item.name in names]:
            _, log, existing = undisturbed(house, operation, 0, disk, swallow=swallow)
            wrong = complaints(operation.name, existing, log)
            try:
                end = ending_after_cut(house, disk, operation)
            except Trouble as trouble:
                end = str(trouble)
            where = f"{operation.name} without syncs of {kind}"
            report.note(bool(wrong), where, "the order shows nothing")
            report.note(end != operation.after, where, f"the power cut shows nothing: {end}")
            seen += bool(wrong) + (end != operation.after)
    return seen


def syncs(house, report, is_short):
    """All of it, with a table."""
    disk = Disk(house)
    check_moments(report)
    rows = {item.name: {"calls": 0, "syncs": 0, "needed": 0, "cuts": 0, "again": 0, "lost": 0}
            for item in STORING}
    for operation in STORING:
        try:
            check_order(house, report, operation, rows[operation.name])
        except Trouble as trouble:
            report.note(False, f"{operation.name}: the order", str(trouble))
    seen = check_examiner(house, report, disk)
    deadline = time.monotonic() + SHORT_SECONDS if is_short else float("inf")
    for index, operation in enumerate(STORING):
        row = rows[operation.name]
        # Where it ran through nothing is forgiven: an answer that was given is kept.
        if not operation.is_unheard:
            cut_at(house, report, disk, operation, row, MOST, grace=0)
        step = 3 if is_short else 1
        for target in range(1 + index % step, MOST, step):
            if time.monotonic() > deadline or not cut_at(house, report, disk, operation, row, target):
                break
        for target in range(1 + index % step, MOST, step) if operation.name in RESTARTED else []:
            if time.monotonic() > deadline:
                break
            fired, is_right = cut_after_restart(house, report, disk, operation, target)
            if not fired:
                break
            row["again"] += 1
            row["lost"] += not is_right
        progress(f"{operation.name}: {row['cuts'] + row['again']} power cuts, {row['lost']} lost")
    table(
        "Power cuts: what was not synced is gone",
        ["operation", "calls", "syncs", "missed if left out", "cuts", "after a restart", "lost"],
        [[name, *row.values()] for name, row in rows.items()],
    )
    cuts, again, lost = (sum(row[key] for row in rows.values()) for key in ["cuts", "again", "lost"])
    print(f"\npower cuts: {cuts + again}, sessions lost: {lost}; dropped syncs seen {seen} times of "
          f"{2 * sum(len(names) for _, _, names in DROPPED)}")
    return cuts + again, lost


@played()
def campaign(chosen, report, places):
    syncs(places.add(House(chosen.bin), chosen.keep), report, chosen.short)
