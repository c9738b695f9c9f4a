"""The shim (shim.c) from the campaign's side: built with the system's compiler, driven through a shared file."""

import errno
import mmap
import os
import struct
from typing import NamedTuple

from harness import HERE, compiled

COUNT, KILL_BEFORE, KILL_AFTER, FAIL, SHORT, STOP = range(6)
MODES = {KILL_BEFORE: "before", KILL_AFTER: "after", FAIL: "fails", SHORT: "half"}
KEPT, EVERYTHING = 0, 1
ERRORS = {name: getattr(errno, name) for name in ["ENOSPC", "EIO", "EROFS", "EDQUOT"]}

# struct control of shim.c.
FIELDS = ["armed", "mode", "target", "error", "scope", "sticky", "count", "fired", "pid", "swallow"]
PREFIX, MIRROR, RECORDS, RECORD, RECORD_COUNT, HEAD = 64, 288, 512, 256, 2048, 12
SWALLOW_FILES, SWALLOW_DIRECTORIES = 1, 2


class Call(NamedTuple):
    text: str
    is_kept: bool
    # By the log's own clock. `end` is 0 if the call did not succeed.
    begin: int
    end: int


def build(directory, name="shim"):
    """Compiles the shim, or another library of this directory, into the directory; returns its path."""
    return compiled(os.path.join(directory, name + ".so"), "-shared", "-fPIC", os.path.join(HERE, name + ".c"))


class Shim:
    """What the shim of one daemon is to do, and what it saw."""

    def __init__(self, library, path, prefix):
        self.library = library
        self.path = path
        size = RECORDS + RECORD * RECORD_COUNT
        with open(path, "wb") as file:
            file.truncate(size)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)
        self.memory[PREFIX:PREFIX + len(prefix)] = os.fsencode(prefix)

    @property
    def environment(self):
        return {"LD_PRELOAD": self.library, "RINGBACK_SHIM": self.path}

    def get(self, name):
        return struct.unpack_from("=I", self.memory, 4 * FIELDS.index(name))[0]

    def put(self, name, value):
        struct.pack_into("=I", self.memory, 4 * FIELDS.index(name), value)

    def mirror(self, path):
        """Where what is synced is copied to (syncs.py); "": nowhere."""
        self.memory[MIRROR:RECORDS] = os.fsencode(path).ljust(RECORDS - MIRROR, b"\0")

    def arm(self, mode=COUNT, target=0, scope=EVERYTHING, error=0, sticky=False, swallow=0):
        """Counts from now on, and does what the mode says at the call of that number. `swallow`: syncs that are
        dropped."""
        self.put("armed", 0)
        self.memory[RECORDS:] = bytes(RECORD * RECORD_COUNT)
        values = {"mode": mode, "target": target, "error": error, "scope": scope, "sticky": int(sticky), "count": 0,
                  "fired": 0, "swallow": swallow}
        for name, value in values.items():
            self.put(name, value)
        self.put("armed", 1)

    def disarm(self):
        self.put("armed", 0)

    @property
    def count(self):
        return self.get("count")

    @property
    def has_fired(self):
        return self.get("fired") == 1

    def log(self):
        """The calls since it was armed."""
        seen = []
        for number in range(min(self.count, RECORD_COUNT)):
            start = RECORDS + RECORD * number
            is_kept = self.memory[start] == 1
            begin, end = struct.unpack_from("=II", self.memory, start + 4)
            text = self.memory[start + HEAD:start + RECORD].split(b"\0", 1)[0].decode(errors="replace")
            seen.append(Call(text, is_kept, begin, end))
        return seen
