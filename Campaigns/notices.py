#!/usr/bin/env -S python3 -B
"""Notices on a real desktop's parts: dunst under Xvfb, on a bus of our own, with real sign-ins at the sandbox.

As root, also the apps of links under a real systemd user manager, beside a daemon that is held back as by its unit.
"""

import collections
import json
import os
import resource
import shutil
import signal

from harness import ROOT, Kept, Trouble, begun, played, progress, read, run, started, stop, tcp_request, until, write
from house import House
from user_manager import UserManager

SCHEME = "org.example.swisscoin"
# What no link may become on its way to the app.
LINK = SCHEME + "://pay?a=$HOME&$PATH$$&b=$(id);%h%%u%20'*?~#$1"


class Desktop:
    """An X server that nobody sees, a bus, dunst, and an opener of pages that writes down what it is to open."""

    def __init__(self, house):
        self.house = house
        self.place = house.place("desktop")
        for name in ["desktop", "desktop/bin", "desktop/runtime"]:
            os.mkdir(house.place(name), 0o700)
        self.pages = self.path("pages")
        self.dunst = None
        script = f"#!/bin/sh\nprintf '%s\\n' \"$1\" >>'{self.pages}'\n"
        write(self.path("bin/xdg-open"), script, 0o700)
        self.screen, display = begun(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"], self.path("Xvfb.log"))
        self.bus, address = begun(
            ["dbus-daemon", "--session", "--nofork", "--print-address", f"--address=unix:path={self.path('bus')}"],
            self.path("dbus.log"))
        self.environment = {
            "DISPLAY": ":" + display, "DBUS_SESSION_BUS_ADDRESS": address, "HOME": self.place, "LANG": "C.UTF-8",
            "PATH": self.path("bin") + ":/usr/bin:/bin", "XDG_RUNTIME_DIR": self.path("runtime"),
        }

    def path(self, name):
        return os.path.join(self.place, name)

    def start(self):
        self.dunst = started(["dunst", "-conf", "/dev/null"], self.path("desktop.log"), env=self.environment)
        until("dunst", lambda: self.control("is-paused").startswith("false"))

    def control(self, *words):
        return run("dunstctl", *words, env=self.environment, timeout=20).stdout.strip()

    @property
    def displayed(self):
        text = self.control("count", "displayed")
        return int(text) if text else 0

    def history(self):
        """What was shown and is no more: (summary, body), the last one first."""
        text = self.control("history")
        entries = json.loads(text)["data"][0] if text else []
        return [(entry["summary"]["data"], entry["body"]["data"]) for entry in entries]

    def opened(self):
        return read(self.pages).split("\n")[:-1]

    def act(self):
        """The first action of the notice: the page that it opens."""
        before = len(self.opened())
        self.control("action", "0")
        return until("the page", lambda: self.opened()[before:])[0]

    def close(self):
        for process in [self.dunst, self.bus, self.screen]:
            if process:
                stop(process)


class NoticedHouse(House):
    """A house whose daemon has a desktop."""

    desktop = None

    @property
    def environment(self):
        return super().environment | (self.desktop.environment if self.desktop else {}) | {
            "XDG_RUNTIME_DIR": self.place("run")}


class Callers:
    """Programs that wait for a session, each over a connection of its own."""

    def __init__(self, house, count, account="work"):
        self.clients = [Kept(house.socket, 60) for _ in range(count)]
        for client in self.clients:
            client.ask(f"/v1/accounts/{account}/session?sign_in=wait&timeout=120")

    def statuses(self):
        """How often each status came."""
        return collections.Counter(client.read()[0] for client in self.clients)


def flows(house):
    return house.api("GET", "/v1/flows")[1]["flows"]


def one_for_all(house, desktop, report, count):
    """Programs in the background cause one notice; its action opens the page, and all of them get their session."""
    callers = Callers(house, count)
    until("a notice", lambda: desktop.displayed)
    until("all callers", lambda: len(flows(house)) == 1)
    report.note(desktop.displayed == 1, "one notice for all", f"{desktop.displayed} are shown for {count} callers")
    report.note(not desktop.opened(), "nothing opens by itself", f"{desktop.opened()}")
    page = desktop.act()
    pending = flows(house)
    report.note(len(pending) == 1 and pending[0]["open_urls"][-1]["url"] == page, "its action opens the flow's page", page)
    callback = house.sandbox.approve(page)
    tcp_request(callback)
    statuses = callers.statuses()
    report.note(statuses == {200: count}, "all callers get the session", f"{statuses}")
    until("the last notice", lambda: desktop.displayed == 1)
    desktop.control("close-all")
    shown = until("a history", lambda: desktop.history())
    report.note(("Signed in to work", "As alice@example.org.") in shown, "it says who came", f"{shown}")
    report.note(sum(summary == "Sign in to work" for summary, _ in shown) == 1, "it asked once", f"{shown}")
    secrets = [page, page.rsplit("/", 1)[1], callback.split("state=")[1].split("&")[0]]
    report.note(not any(secret in str(shown) for secret in secrets), "nothing secret is shown", f"{shown}")


def left_alone(house, desktop, report):
    """A person who has sent a notice away is not asked again soon."""
    desktop.control("history-clear")
    house.api("DELETE", "/v1/accounts/work/session")
    first = Callers(house, 1)
    until("a notice", lambda: desktop.displayed)
    desktop.control("close")
    until("an empty desktop", lambda: desktop.displayed == 0)
    second = Callers(house, 20)
    # The other account's comes after what this one's would have caused.
    other = Callers(house, 1, "home")
    until("the other account's notice", lambda: desktop.displayed)
    report.note(desktop.displayed == 1, "quiet after it was dismissed", f"{desktop.displayed} are shown")
    pending = {flow["account"]: flow for flow in flows(house) if flow["status"] == "pending"}
    for name in ["work", "home"]:
        callback = house.sandbox.approve(pending[name]["authorization_url"])
        tcp_request(callback)
    for callers in [first, second, other]:
        statuses = callers.statuses()
        report.note(set(statuses) == {200}, "callers wait on", f"{statuses}")
    desktop.control("close-all")


def another_server(house, desktop, report):
    """A notification server that dies takes no question with it."""
    desktop.control("history-clear")
    house.api("DELETE", "/v1/accounts/work/session")
    stop(desktop.dunst)
    # The five minutes of the account that was dismissed are not over: the other one is asked for.
    house.api("DELETE", "/v1/accounts/home/session")
    callers = Callers(house, 1, "home")
    until("a flow", lambda: any(flow["status"] == "pending" for flow in flows(house)))
    desktop.start()
    until("the notice at a server that came later", lambda: desktop.displayed)
    report.note(desktop.displayed == 1, "a server that comes later shows it", f"{desktop.displayed}")
    desktop.dunst.send_signal(signal.SIGKILL)
    desktop.dunst.wait()
    desktop.start()
    until("the notice at the next server", lambda: desktop.displayed)
    page = desktop.act()
    callback = house.sandbox.approve(page)
    tcp_request(callback)
    report.note(callers.statuses() == {200: 1}, "its action is heard there")
    desktop.control("close-all")


def walk(chosen, report, places):
    house = places.add(NoticedHouse(chosen.bin, accounts=["work", "home"], shimmed=False), chosen.keep)
    house.desktop = desktop = places.add(Desktop(house))
    desktop.start()
    house.fresh()
    house.start()
    one_for_all(house, desktop, report, 100 if chosen.short else 1_000)
    left_alone(house, desktop, report)
    another_server(house, desktop, report)


APP = r"""#!/usr/bin/python3
import json, os, sys
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
with open(sys.argv[1] + ".part", "w") as file:
    json.dump({"link": sys.argv[2], "group": open("/proc/self/cgroup").read(), "NoNewPrivs": status["NoNewPrivs"],
               "Seccomp": status["Seccomp"], "umask": os.umask(0), "directory": os.getcwd(),
               "environment": dict(os.environ), "files": os.sysconf("SC_OPEN_MAX")}, file)
if os.fork() == 0:
    # An opener hands over to a program that goes on.
    import time
    time.sleep(2)
    open(sys.argv[1] + ".late", "w").close()
    os._exit(0)
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""


def apps(chosen, report, places):
    """The app of a link is a service beside the daemon's, and held back by nothing that holds the daemon back."""
    house = places.add(House(chosen.bin, accounts=[], shimmed=False), chosen.keep)
    place = house.place("person")
    os.mkdir(place, 0o711)
    os.chmod(house.directory, 0o711)
    manager = places.add(UserManager(place))
    manager.start()
    manager.systemctl("start", "dbus.socket")
    bus = f"unix:path={manager.runtime}/bus"
    # The bus comes with its first visitor, and the manager to the bus a moment later.
    until("the manager on the bus", lambda: "true" in manager.run(
        "busctl", "--user", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "NameHasOwner", "s",
        "org.freedesktop.systemd1", DBUS_SESSION_BUS_ADDRESS=bus).stdout)
    for name in ["ringbackd", "ringback", "ringback-relay"]:
        shutil.copy(os.path.join(chosen.bin, name), os.path.join(place, name))
        os.chmod(os.path.join(place, name), 0o755)
    app = manager.write("app", APP, 0o700)
    out = os.path.join(manager.home, "out")
    manager.write(".config/ringback/config.toml",
                  f'[schemes."{SCHEME}"]\ncommand = ["{app}", "{out}", "{{url}}"]\n')
    # The unit as it is installed, with all of its directives.
    for unit in ["ringback.socket", "ringback.service"]:
        text = read(os.path.join(ROOT, "systemd", unit))
        manager.write(f".config/systemd/user/{unit}", text.replace("/usr/bin/", place + "/"))
    manager.systemctl("daemon-reload")
    begun = manager.systemctl("start", "ringback.service")
    if begun.returncode != 0:
        raise Trouble(f"the daemon's unit did not start: {begun.stderr} {manager.why()}")
    opened = manager.run(os.path.join(place, "ringback"), "open", LINK, DBUS_SESSION_BUS_ADDRESS=bus)
    report.note(opened.returncode == 0, "ringback open under a user manager", opened.stdout + opened.stderr)
    until("the app", lambda: os.path.exists(out))
    seen = json.loads(read(out))
    report.note(seen["link"] == LINK, "the link is one word, as it was", seen["link"])
    report.note("app-ringback-" in seen["group"] and "ringback.service" not in seen["group"],
                "the app is a service of its own", seen["group"])
    report.note(seen["NoNewPrivs"] == "0" and seen["Seccomp"] == "0", "the app is not held back", f"{seen}")
    report.note(seen["umask"] != 0o077, "the app's files are as the person's others", oct(seen["umask"]))
    report.note(seen["directory"] == manager.home, "the app begins at home", seen["directory"])
    report.note(not any(name.startswith("RINGBACK") for name in seen["environment"]), "a clean environment")
    listed = manager.systemctl("list-units", "--all", "--plain", "--no-legend", "app-ringback-*").stdout
    report.note("running" in listed, "it lives as long as anything of it", listed)
    until("what the app left behind", lambda: os.path.exists(out + ".late"))
    until("a manager without the unit", lambda: "app-ringback-" not in manager.systemctl(
        "list-units", "--all", "--plain", "--no-legend", "app-ringback-*").stdout)
    report.note(True, "nothing of it remains")


@played()
def campaign(chosen, report, places):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    progress("notices, at dunst")
    walk(chosen, report, places)
    if os.geteuid() == 0:
        progress("apps of links, under a user manager")
        apps(chosen, report, places)
    else:
        print("not root: apps of links were not started under a user manager")
