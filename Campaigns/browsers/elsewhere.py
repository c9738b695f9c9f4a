"""Browsers that are not where the daemon is: of another uid, in another network, behind `ssh -L`. A stand-in for containers
and for other machines. Needs root.
"""

import os
import re
import shutil
import subprocess

from house import stop, until
from ssh import STDIO, Relay, Server

from .desk import STRANGER
from .everyday import NOTHING, Walk
from .network import Network


WALKS = ["another_uid", "another_network", "ssh"]


class Elsewhere(Walk):
    """Walks with browsers of their own, of the kind that the walk was made with."""

    def another(self, label, **more):
        browser = type(self.browser)(self.desk, f"{self.browser.name.lower()}-{label}", **more)
        browser.prepare()
        return browser

    def shown_address(self, run):
        """The address that `login` shows in the end."""
        return re.search(r"Open this page in a browser:\s+(\S+)", run.errors).group(1)

    def pasted(self, run, where, tab):
        """The person copies the address of the page that did not load, and pastes it."""
        self.note("code=" in tab.url and "state=" in tab.url, f"{where}: the callback stands in the address bar", str(tab))
        complete = self.desk.start("complete", tab.url)
        self.note(complete.end() == 0, f"{where}: ringback complete", str(complete))
        self.note(run.end() == 0 and "Signed in to work as alice@example.org" in run.out, f"{where}: login", str(run))

    def another_uid(self):
        """As in a container that maps users, but shares the network."""
        self.desk.forget("work", "peer")
        browser = self.another("uid", uid=STRANGER)
        try:
            run = self.desk.start("login", "work", browser=browser)
            browser.attach()
            tab = browser.page(NOTHING)
            self.desk.keep(browser, tab, "another uid, the address that was opened")
            self.note("/start/" in tab.url, "another uid: the address is not given away", str(tab))
            run.says("Open this page in a browser")
            # A browser that takes longer than five seconds to start is named when it has asked.
            errors = run.says(f"requested by uid {STRANGER}")
            self.note("callback_peer_uids" in errors, "another uid: why", errors)
            url = self.shown_address(run)
            self.note("state=" in url, "another uid: the address that is shown", url)
            browser.go(tab, url)
            browser.approve(browser.sign_in_page())
            tab = browser.find("the callback", lambda tab: NOTHING in tab.text and "/callback/" in tab.url)
            self.desk.keep(browser, tab, "another uid, the callback")
            self.note(self.desk.subject("work") is None, "another uid: its callback does not count", "it does")
            self.pasted(run, "another uid", tab)
            # An account that names the uid: everything is as at home.
            browser.quit()
            browser.prepare()
            home, self.browser = self.browser, browser
            try:
                run = self.desk.start("login", "peer", browser=browser)
                browser.attach()
                browser.approve(browser.sign_in_page())
                self.note(run.end() == 0 and "Signed in to peer as alice" in run.out and "Open this" not in run.errors,
                          "callback_peer_uids", str(run))
                self.only_tab("callback_peer_uids", "Signed in")
            finally:
                self.browser = home
        finally:
            browser.quit()

    def another_network(self):
        """As in a container with a network of its own, or on another machine: 127.0.0.1 is another place there."""
        self.desk.forget("work")
        self.desk.elsewhere = network = Network(self.desk, int(self.desk.sandbox.issuer.rsplit(":", 1)[1]))
        browser = self.another("network", inside=network.pid)
        try:
            run = self.desk.start("login", "work", browser=browser)
            browser.attach()
            tab = browser.find("the address that was opened", lambda tab: "/start/" in tab.url and tab.text)
            self.desk.keep(browser, tab, "another network, the address that was opened")
            errors = run.says("Open this page in a browser")
            self.note("The sign-in page has not been opened yet." in errors, "another network: why", errors)
            browser.go(tab, self.shown_address(run))
            browser.approve(browser.sign_in_page())
            tab = browser.find("the callback", lambda tab: "/callback/" in tab.url and "/authorize" not in tab.url)
            self.desk.keep(browser, tab, "another network, the callback")
            self.pasted(run, "another network", tab)
        finally:
            browser.quit()
            network.close()
            self.desk.elsewhere = None

    def ssh(self):
        """A sign-in on this machine over SSH, by the line that `login` prints; the browser is on the other machine."""
        self.desk.forget("work")
        house = self.desk.house
        stem = f"ssh-{self.browser.name.lower()}"
        # It ends with this program; sshd would not.
        self.desk.elsewhere = network = Network(self.desk, int(self.desk.sandbox.issuer.rsplit(":", 1)[1]))
        server = Server(house, stem)
        relay = Relay(server.place("relay"), server.port)
        browser = self.another("ssh", inside=network.pid)
        programs = []
        try:
            errors_path = self.desk.place(stem + ".errors")
            with open(errors_path, "wb") as errors:
                login = subprocess.Popen(
                    server.ssh("127.0.0.1", "env -u DISPLAY -u WAYLAND_DISPLAY PATH=/usr/bin:/bin "
                               f"RINGBACK_SOCK={house.socket} {self.desk.ringback} login work --no-browser --method browser"),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
            programs.append(login)
            url = login.stdout.readline().strip()

            def line():
                with open(errors_path, errors="replace") as file:
                    return re.search(r"ssh -L \S+ \S+(?: -p \d+)?", file.read())
            command = until("the line that login prints", line).group(0)
            way = server.place("stdio.py")
            with open(way, "w") as file:
                file.write(STDIO)
            # What the person has in ~/.ssh/config: how to reach this machine from theirs.
            place = server.place("bin")
            os.mkdir(place)
            with open(os.path.join(place, "ssh"), "w") as file:
                config = server.client(f"  ProxyCommand python3 {way} {server.place('relay')}\n")
                file.write(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
            os.chmod(os.path.join(place, "ssh"), 0o700)
            forwarding = subprocess.Popen(
                ["nsenter", f"--net=/proc/{network.pid}/ns/net", "/bin/sh", "-c", "exec " + command],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={"PATH": f"{place}:{os.environ['PATH']}", "HOME": house.place("home")})
            programs.append(forwarding)
            port = int(re.search(r"-L (?:\S+?:)?(\d+):", command).group(1))

            def forwarded():
                try:
                    network.connect(port).close()
                    return True
                except OSError:
                    return False
            until("the forwarded port", forwarded)
            browser.begin(url)
            browser.approve(browser.sign_in_page())
            last = browser.page("Signed in")
            self.desk.keep(browser, last, "ssh -L")
            rest = login.communicate(timeout=30)[0]
            self.note(login.returncode == 0 and "Signed in to work as alice" in rest, "ssh -L: login", rest)
            self.note("/done/" in last.url and len(browser.handles()) == 1, "ssh -L: the tab", str(last))
        finally:
            browser.quit()
            for program in programs:
                stop(program)
            relay.listener.close()
            server.close()
            network.close()
            self.desk.elsewhere = None


def missing():
    """What this machine cannot show: the walks, and why."""
    if os.geteuid() != 0:
        return {name: "needs root" for name in WALKS}
    lacks = {}
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        lacks = {name: "the kernel lends no network namespace" for name in ["another_network", "ssh"]}
    elif not (shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")):
        lacks["ssh"] = "there is no sshd (make test-ssh installs one)"
    return lacks
