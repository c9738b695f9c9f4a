#!/usr/bin/env -S python3 -B
"""Fifty runs of one tool at once: one refresh when the token has expired, one notice when nobody is signed in.

The programs are real: git, kubectl and skopeo.
The provider counts the refresh requests. A real notification server, dunst, counts the notices, and a program in place of
xdg-open writes down the pages. The token expires by the campaign's clock (herd.py).
"""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import termios
import threading

from harness import Trouble, played, progress, table, tcp_request, until, write
from herd import STEP, ClockedHouse, requests
from notices import Desktop, NoticedHouse, flows
from tools import Tools, repositories
from tools_packages import Server, authority, kubeconfig

COUNT = 50
# Seconds: fifty programs on a small machine, and a person who signs in meanwhile.
PATIENCE = 180
WAITING = "is waiting for work"


class BothHouse(ClockedHouse, NoticedHouse):
    """A daemon with the campaign's clock and a desktop."""


class Terminal:
    """A terminal on which nobody types. What is written to it is kept."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        # Wide enough that no message is broken.
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 2_000, 0, 0))
        self.written = b""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while True:
            try:
                piece = os.read(self.master, 65_536)
            except OSError:
                return
            if not piece:
                return
            self.written += piece

    @property
    def text(self):
        return self.written.decode(errors="replace")

    def close(self):
        # The reader ends when nobody has the other end open.
        os.close(self.slave)
        self.reader.join()
        os.close(self.master)


class Crowd:
    """Fifty runs of one program."""

    def __init__(self, tools, name, command, refused, **environment):
        self.tools, self.name, self.command = tools, name, command
        # How many requests the server has refused a token for.
        self.refused = refused
        self.environment = environment

    def start(self, terminal=None):
        """Without a terminal nobody can be asked; with one, the program and its helper have it."""
        stated = self.tools.environment | self.environment
        if terminal:
            stated["GIT_TERMINAL_PROMPT"] = "1"
        return [
            subprocess.Popen(
                self.command(number), stdin=terminal.slave if terminal else subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=terminal.slave if terminal else subprocess.STDOUT, text=True, env=stated, start_new_session=True)
            for number in range(COUNT)]

    def finish(self, processes):
        """What those printed that failed."""
        try:
            outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
        except subprocess.TimeoutExpired:
            for process in processes:
                process.kill()
                process.communicate()
            raise
        return [said for process, said in zip(processes, outputs) if process.returncode != 0]


class Walk:
    def __init__(self, house, report, places, is_short):
        self.house, self.report, self.is_short = house, report, is_short
        self.tools = Tools(house, report)
        self.rows = []
        root, userinfo = repositories(self.tools), house.sandbox.issuer + "/userinfo"
        os.makedirs(house.place("registry"))
        self.git, self.api, self.images = (places.add(Server(house, *words)) for words in [
            ("git_server.py", root, userinfo, "basic"), ("registry_server.py", house.place("registry"), userinfo),
            ("tool_server.py", house.directory, userinfo)])

    def configuration(self):
        text = "".join(
            f'[[origin]]\nurl = "{scheme}://127.0.0.1:{server.port}/*"\naccount = "work"\n'
            for scheme, server in [("http", self.git), ("https", self.images), ("https", self.api)])
        return text + authority(self.house.place("registry/server.pem"))

    def crowds(self):
        """The account is signed in: git clones."""
        return [crowd for crowd in [self.gits(), self.kubectls(), self.skopeos()] if crowd]

    def gits(self):
        clones = [self.house.place(f"clone-{number}") for number in range(COUNT)]
        status, said = self.tools.run("git", "clone", "-q", f"http://127.0.0.1:{self.git.port}/team/a.git", clones[0])
        if status != 0:
            raise Trouble(f"git clone: {said}")
        for clone in clones[1:]:
            shutil.copytree(clones[0], clone)
        return Crowd(self.tools, "git", lambda number: ["git", "-C", clones[number], "fetch", "-q"],
                     lambda: self.git.text.count("refused"))

    def kubectls(self):
        if not self.tools.has("kubectl"):
            return None
        authority = self.house.place("registry/server.pem")
        path = kubeconfig(self.house.place("kubeconfig"), self.api.port, authority)
        return Crowd(self.tools, "kubectl", lambda number: ["kubectl", "get", "--raw", "/version"],
                     lambda: self.api.text.count(" refused"), KUBECONFIG=path)

    def skopeos(self):
        if not self.tools.has("skopeo"):
            return None
        place, path = f"127.0.0.1:{self.images.port}", self.house.place("auth.json")
        write(path, json.dumps({"credHelpers": {place: "ringback"}}))
        image = f"docker://{place}/team/app:1"
        command = ["skopeo", "inspect", "--authfile", path, "--tls-verify=false", "--raw", image]
        return Crowd(self.tools, "skopeo", lambda number: command, lambda: self.images.text.count(" refused"))

    def expire(self, crowds, where):
        """All runs of these at once, after the token has expired: how many refresh requests there were."""
        self.house.clock.advance(STEP)
        before, refused = requests(self.house), sum(crowd.refused() for crowd in crowds)
        started = [(crowd, crowd.start()) for crowd in crowds]
        failed = [said for crowd, processes in started for said in crowd.finish(processes)]
        made = requests(self.house) - before
        self.report.note(not failed, where, f"{len(failed)} failed: {failed[:2]}")
        self.report.note(made == 1, where, f"{made} refresh requests")
        self.report.note(sum(crowd.refused() for crowd in crowds) == refused, where, "an old token was sent")
        return made

    def expiries(self, crowds):
        rounds = 1 if self.is_short else 3
        for crowd in crowds:
            count = 0
            for number in range(1, rounds + 1):
                where = f"{COUNT} {crowd.name} at expiry {number}"
                count += self.expire([crowd], where)
            self.rows.append([crowd.name, f"{rounds} × {COUNT}", count])
            progress(f"{crowd.name} is done")
        if not self.is_short:
            made = self.expire(crowds, "all tools at one expiry")
            self.rows.append(["all of them", f"{len(crowds)} × {COUNT}", made])

    def nobody(self, crowds, desktop):
        """Nobody is signed in, and nobody can be asked: all fail, and nothing is shown."""
        self.tools.ringback("logout", "work")
        for crowd in crowds:
            failed = crowd.finish(crowd.start())
            where = f"{COUNT} {crowd.name}, signed out"
            self.report.note(len(failed) == COUNT, where, f"{COUNT - len(failed)} succeeded")
            self.report.note(desktop.displayed <= 1, where, f"{desktop.displayed} notices")
            self.report.note(not desktop.opened(), where, f"pages were opened: {desktop.opened()}")

    def asked(self, desktop):
        """How often a notice has asked for a sign-in."""
        desktop.control("close-all")
        until("an empty desktop", lambda: desktop.displayed == 0)
        return sum(summary == "Sign in to work" for summary, _ in desktop.history())

    def somebody(self, crowd, desktop):
        """Nobody is signed in, and a person sits at the terminal of all of them: one notice, one page, one sign-in."""
        where = f"{COUNT} {crowd.name} that wait for a sign-in"
        asked, before, terminal = self.asked(desktop), len(desktop.opened()), Terminal()
        processes = crowd.start(terminal)
        try:
            until(f"{where}, all of them", lambda: terminal.text.count(WAITING) == COUNT, PATIENCE)
            until("a notice", lambda: desktop.displayed)
            pending = [flow for flow in flows(self.house) if flow["status"] == "pending"]
            self.report.note(len(pending) == 1, where, f"{len(pending)} sign-ins")
            self.report.note(desktop.displayed == 1, where, f"{desktop.displayed} notices")
            self.report.note(len(desktop.opened()) == before, where, "a page opened by itself")
            tcp_request(self.house.sandbox.approve(desktop.act()))
            failed = crowd.finish(processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()
            terminal.close()
        self.report.note(not failed, where, f"{len(failed)} failed: {terminal.text[-400:]}")
        asked, pages = self.asked(desktop) - asked, len(desktop.opened()) - before
        self.report.note(asked == 1, where, f"asked {asked} times")
        self.report.note(pages == 1, where, f"{pages} pages")
        self.rows.append([crowd.name + ", signed out", f"1 × {COUNT}", f"{asked} notice, {pages} page"])
        self.tools.ringback("logout", "work")
        progress(f"{crowd.name} without a session is done")

    def run(self, desktop):
        self.house.begin(self.configuration())
        crowds = self.crowds()
        self.expiries(crowds)
        self.nobody(crowds, desktop)
        for crowd in crowds:
            # The helper of containers waits for no sign-in.
            if crowd.name in ("git", "kubectl"):
                self.somebody(crowd, desktop)


@played()
def campaign(chosen, report, places):
    house = places.add(BothHouse(chosen.bin), chosen.keep)
    house.desktop = places.add(Desktop(house))
    house.desktop.start()
    walk = Walk(house, report, places, chosen.short)
    walk.run(house.desktop)
    table("At once", ["tool", "runs", "refresh requests"], walk.rows)
