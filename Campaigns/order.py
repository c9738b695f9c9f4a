"""The order of the calls on what is kept, read from the shim's log: what must be durable when something is told.

A write makes a file unsynced, a name that comes or goes its directory; an fsync that began later and came back ends
that. Nothing that counts is unsynced
- of a file that gets another name;
- when a request leaves for the provider, when an answer leaves for an app or a browser, and at the end;
- when the next change is announced, when `vault.key` is replaced, and when a wrapping key is removed.
"""

import os
import re

WRITES = {"write", "pwrite", "writev", "pwritev", "ftruncate", "fallocate"}
SYNCS = {"fsync", "fdatasync"}
# The log of uses says itself that a power cut may take its last lines; who holds the lock is of no use after one, nor are
# the numbers of events, whose listeners it ends.
UNCOUNTED = re.compile(r"state/(audit\.jsonl.*|lock|events(\.tmp)?)")
# Forgotten removals: each is made again by the next start.
REMADE = re.compile(r"retired-|\.tmp$|\.next$")


class Order:
    def __init__(self, existing, answers):
        # Paths below what is kept.
        self.existing = set(existing)
        # "each", "last" or "none": which response to an app has to wait for everything. A starting daemon responds
        # before it has stored anything, and its status says nothing of a refresh that is still under way.
        self.answers = answers
        # Path: {when it began}; of a directory {(when, the entry)}.
        self.files, self.directories = {}, {}
        self.wrong = []

    def read(self, log):
        """What is wrong with it, as texts."""
        responses = [call for call in log if "HTTP/1.1" in call.text and " api " in call.text]
        ignored = {"each": [], "last": responses[:-1], "none": responses}[self.answers]
        log = [call for call in log if not any(call is other for other in ignored)]
        done = [call for call in log if call.end]
        moments = [(call.begin, False, call) for call in done] + [(call.end, True, call) for call in done]
        for _, is_end, call in sorted(moments, key=lambda moment: moment[:2]):
            name, _, where = call.text.partition(" ")
            if is_end:
                if name in SYNCS and call.is_kept:
                    self.synced(where, call.begin)
            elif call.is_kept:
                self.changes(name, where, call)
            elif re.match(r"(tcp:\d+|api) (GET|POST|HTTP)", where):
                self.nothing_open(f"{where} left")
        self.nothing_open("it was over")
        return self.wrong

    def changes(self, name, where, call):
        if name in WRITES:
            self.files.setdefault(where, set()).add(call.begin)
        elif name in ("open", "openat", "creat"):
            if where not in self.existing:
                if where.endswith(".next"):
                    self.nothing_open(f"{short(where)} was announced")
                self.entry(where, call)
        elif name.startswith("rename"):
            new, _, old = where.partition(" < ")
            self.moves(os.path.join(os.path.dirname(new), old), new, call)
        elif name.startswith("unlink"):
            if where.endswith(".key"):
                self.nothing_open(f"{short(where)} was removed")
            self.existing.discard(where)
            self.files.pop(where, None)
            if not REMADE.search(os.path.basename(where)):
                self.entry(where, call)
        elif name.startswith(("mkdir", "link")):
            self.entry(where, call)

    def moves(self, old, new, call):
        if self.files.get(old) and not UNCOUNTED.fullmatch(old):
            self.wrong.append(f"{short(old)} became {short(new)} unsynced")
        if new == "state/vault.key":
            self.nothing_open("vault.key was replaced", besides=os.path.dirname(new))
        if old in self.files:
            self.files[new] = self.files.pop(old)
        self.existing.discard(old)
        self.entry(new, call)

    def entry(self, where, call):
        self.existing.add(where)
        if not UNCOUNTED.fullmatch(where) and not where.endswith(".tmp"):
            self.directories.setdefault(os.path.dirname(where), set()).add((call.begin, where))

    def synced(self, where, since):
        if where in self.files:
            self.files[where] = {when for when in self.files[where] if when > since}
        if where in self.directories:
            self.directories[where] = {entry for entry in self.directories[where] if entry[0] > since}

    def nothing_open(self, when, besides=None):
        files = [path for path, marks in self.files.items() if marks and not UNCOUNTED.fullmatch(path)]
        names = [entry[1] for path, marks in self.directories.items() if path != besides for entry in marks]
        files = [path for path in files if besides is None or os.path.dirname(path) != besides]
        if files or names:
            what = ", ".join([f"content of {short(path)}" for path in files] + [f"name {short(path)}" for path in names])
            self.wrong.append(f"when {when}, unsynced: {what}")


def short(path):
    return re.sub(r"[0-9a-f]{32}", "*", os.path.basename(path))


# What a run must show at least, in this order, each over before the next begins.
VAULT, NEXT, LIVE = r"state/vault$", r"state/vault/\S+\.sealed\.next", r"state/vault/work\S+\.sealed"
TOKEN = r"send tcp:\d+ POST /token"
API, PAGE = r"\w+ api HTTP/1\.1 200", r"\w+ tcp:\d+ HTTP/1\.1 303"
STORE = [rf"p?write {LIVE}\.tmp", rf"f\w*sync {LIVE}\.tmp", rf"rename\w* {LIVE} < ", f"fsync {VAULT}"]
REFRESH = [
    rf"openat {NEXT}", rf"f\w*sync {NEXT}", f"fsync {VAULT}", TOKEN,
    rf"p?write {NEXT}", rf"f\w*sync {NEXT}", rf"rename\w* {LIVE} < \S+\.next", f"fsync {VAULT}", API,
]
NEW_KEY = [r"p?write data/\S+\.tmp", r"f\w*sync data/\S+\.tmp", r"rename\w* data/\S+\.key < ", r"fsync data/\S+/keys$"]
KEY_FILE = [r"p?write state/vault\.key\.tmp", r"f\w*sync state/vault\.key\.tmp", r"rename\w* state/vault\.key < ",
            r"fsync state$"]
OLD_KEY = [r"unlink\w* data/\S+\.key", r"fsync data/\S+/keys$"]
SEQUENCES = {
    "first start": [*NEW_KEY, *KEY_FILE, API],
    "sign-in": [TOKEN, *STORE, PAGE, API],
    "sign-in again": [TOKEN, *STORE, PAGE, API],
    "refresh": REFRESH,
    "two refreshes": REFRESH + REFRESH,
    "sign-out": [rf"rename\w* state/vault/retired-\S+ < work\S+\.sealed$", f"fsync {VAULT}",
                 r"send tcp:\d+ POST /revoke", r"unlink\w* state/vault/retired-", f"fsync {VAULT}"],
    "rekey to a passphrase": [*KEY_FILE, *OLD_KEY, API],
    "rekey to another file": [*NEW_KEY, *KEY_FILE, *OLD_KEY, API],
    "start after a cut refresh": [TOKEN, rf"f\w*sync {NEXT}", rf"rename\w* {LIVE} < \S+\.next", f"fsync {VAULT}"],
}
# Of `Order`; all others: "each". After a cut refresh the only request asks for the status, whenever it is taken.
ANSWERS = {"first start": "last", "start after a cut refresh": "none"}


def missing(name, log):
    """The first step of the operation's sequence that the log does not show; "" if it shows all."""
    since, place = 0, 0
    for step in SEQUENCES[name]:
        while place < len(log) and not (log[place].end and log[place].begin > since and re.match(step, log[place].text)):
            place += 1
        if place == len(log):
            return step
        since = log[place].end
        place += 1
    return ""


def complaints(name, existing, log):
    """What is wrong with the order of an operation's calls."""
    wrong = Order(existing, ANSWERS.get(name, "each")).read(log)
    step = missing(name, log)
    return wrong + ([f"not seen, or not in its place: {step}"] if step else [])
