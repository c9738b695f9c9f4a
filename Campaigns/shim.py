"""The shim (shim.c) from the campaign's side: built with the system's compiler, driven through a shared file."""

import errno
import mmap
import os
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT, KILL_BEFORE, KILL_AFTER, FAIL, SHORT = range(5)
MODES = {KILL_BEFORE: "before", KILL_AFTER: "after", FAIL: "fails", SHORT: "half"}
KEPT, EVERYTHING = 0, 1
ERRORS = {name: getattr(errno, name) for name in ["ENOSPC", "EIO", "EROFS", "EDQUOT"]}

# struct control of shim.c.
FIELDS = ["armed", "mode", "target", "error", "scope", "sticky", "count", "fired", "pid"]
PREFIX, RECORDS, RECORD, RECORD_COUNT = 64, 512, 128, 2048


class NoCompiler(Exception):
    """The shim cannot be built here."""


def build(directory):
    """Compiles the shim into the directory; returns its path."""
    target = os.path.join(directory, "shim.so")
    for compiler in filter(None, [os.environ.get("CC"), "cc", "clang", "gcc"]):
        try:
            subprocess.run(
                [compiler, "-O2", "-std=gnu17", "-shared", "-fPIC", "-o", target, os.path.join(HERE, "shim.c")],
                check=True,
            )
            return target
        except FileNotFoundError:
            continue
    raise NoCompiler("there is no C compiler (cc, clang or gcc)")


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

    def arm(self, mode=COUNT, target=0, scope=EVERYTHING, error=0, sticky=False):
        """Counts from now on, and does what the mode says at the call of that number."""
        self.put("armed", 0)
        self.memory[RECORDS:] = bytes(RECORD * RECORD_COUNT)
        values = {"mode": mode, "target": target, "error": error, "scope": scope, "sticky": int(sticky), "count": 0,
                  "fired": 0}
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

    def calls(self):
        """The calls since it was armed, as (what and where, whether it is a file that is kept)."""
        seen = []
        for number in range(min(self.count, RECORD_COUNT)):
            start = RECORDS + RECORD * number
            text = self.memory[start + 2:start + RECORD].split(b"\0", 1)[0]
            seen.append((text.decode(errors="replace"), self.memory[start] == 1))
        return seen
