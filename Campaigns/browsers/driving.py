"""What can be done with a browser that a program has started: look at its tabs, click, go back. See chromium.py, firefox.py."""

import contextlib
import os
import socket
import subprocess
import time

from harness import Trouble, progress, read, until, write

# A name that strict browsers find here.
ELSEWHERE = "elsewhere.example"


class Gone(Exception):
    """The tab, or the page in it, went away while it was looked at."""


class Tab:
    """A tab as it was seen: its address, its title and its text."""

    def __init__(self, handle, url, title, text):
        self.handle, self.url, self.title, self.text = handle, url, title, text

    def __str__(self):
        return f"{self.url} “{' / '.join(self.text.split(chr(10)))[:200]}”"


class Browser:
    """A browser with a profile of its own. `opener` is what BROWSER names: it notes what it was started with, and starts
    the browser as a desktop does; a browser that runs already opens a tab."""

    name = "?"

    def __init__(self, desk, label, uid=None, inside=None):
        """`uid`: whose the browser is, if not ours. `inside`: the pid of a process in whose network it runs."""
        self.desk, self.uid, self.inside = desk, uid, inside
        self.directory = desk.place(label)
        os.mkdir(self.directory, 0o700)
        self.log = self.path("opened")
        self.opener = self.path("open")
        self.private_opener = self.path("open-private")
        for path, private in [(self.opener, False), (self.private_opener, True)]:
            self.write_opener(path, private)
        if uid is not None:
            for name in ["", "profile", "home"]:
                os.makedirs(self.path(name), 0o700, exist_ok=True)
                os.chown(self.path(name), uid, uid)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write_opener(self, path, private):
        line = self.words(private)
        if self.uid is not None:
            line = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups",
                    "env", "-u", "DBUS_SESSION_BUS_ADDRESS", "-u", "XDG_RUNTIME_DIR", f"HOME={self.path('home')}",
                    f"TMPDIR={self.path('home')}", *line]
        if self.inside is not None:
            line = ["nsenter", f"--net=/proc/{self.inside}/ns/net", *line]
        write(path, f"#!/bin/sh\ncd /\nprintf '%s\\n' \"$1\" >>'{self.log}'\n{self.preparation()}"
              f"exec {' '.join(line)} \"$@\" >>'{self.log}.said' 2>&1\n", 0o700)

    @property
    def is_running(self):
        return getattr(self, "pid", None) is not None and is_alive(self.pid)

    @property
    def opened(self):
        """The URLs that it was started with so far."""
        return read(self.log).splitlines()

    def begin(self, url="about:blank"):
        """Starts the browser as a person does who opens it before anything else."""
        self.prepare()
        subprocess.Popen([self.opener, url], env=self.desk.environment, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.attach()

    def connected(self, port):
        """A connection to a port where the browser is."""
        if self.inside is None:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        return self.desk.elsewhere.connect(port)

    def tabs(self):
        """What every tab shows; those that are on their way to a page are left out."""
        found = []
        for handle in self.handles():
            with contextlib.suppress(Gone):
                found.append(self.look(handle))
        return found

    def find(self, what, test, seconds=30):
        """The first tab that passes the test, once there is one."""
        seen = []

        def look():
            seen[:] = self.tabs()
            return next((tab for tab in seen if test(tab)), None)
        try:
            return until(what, look, seconds)
        except Trouble:
            raise Trouble(f"{self.name} waited in vain for {what}; it shows {[str(tab) for tab in seen]}") from None

    def page(self, text, seconds=30):
        return self.find(f"“{text}”", lambda tab: text in tab.text, seconds)

    def sign_in_page(self, beside=()):
        handles = {tab.handle for tab in beside}
        return self.find("the provider's page", lambda tab: "Sign in as" in tab.text and tab.handle not in handles)

    def approve(self, tab, user="alice"):
        """Answers the provider's page as a person does, with the mouse."""
        self.click(tab, f"input[value={user}]")
        self.click(tab, "button[value=allow]")

    def close_all(self):
        """Leaves one tab without a page."""
        keep = self.open_tab("about:blank")
        for handle in self.handles():
            if handle != keep:
                self.close_tab(handle)
        until("the tabs to close", lambda: len(self.handles()) == 1)


def walks(chosen, report, walk, names, left_out=(), short=()):
    """Each walk of a browser that is wanted. `left_out`: those that are not made here, and why."""
    browser = walk.browser
    for name in names:
        if chosen.only not in name or chosen.short and name not in short:
            continue
        where = f"{browser.name}, {name.replace('_', ' ')}"
        if name in left_out:
            report.skip(where, left_out[name])
            continue
        started = time.monotonic()
        try:
            walk.before(name)
            getattr(walk, name)()
        except (Trouble, Gone) as trouble:
            report.note(False, f"{browser.name}: {name}", str(trouble))
        progress(f"{where}: {time.monotonic() - started:.0f} s")


def is_alive(pid):
    """False for a process that has ended, even while nobody has asked how."""
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])
