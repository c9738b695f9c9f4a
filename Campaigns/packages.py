#!/usr/bin/env -S python3 -B
"""Installs, upgrades, removes and purges the Debian package in Debian 12 and 13, made by debootstrap, and signs in there.

First what is in the package and in the tarball, and whether another folder makes the same ones. Then, without network and
without Swift: the first token with the sandbox, as a user with a user manager and as root; an upgrade from a build of another
commit under daemons that run, whose sessions must stay, and the command that `ringback` shows for a restart; removal and
purge. Last the sources of the dependencies, kept by `make vendor`, in a checkout that is moved, without network.
--short is the first part alone. Needs root for the rest, and network once, to make the Debians.
"""

import json
import os
import shutil
import sys
import time

from harness import ROOT, play, progress, run
from package_again import another_checkout, try_again, try_rebuild
from package_contents import (PACKAGER, check_lintian, check_package, check_python_package,
                              check_tarball, commit_of, make, of_another_commit)
from package_root import DEBIANS, RootedManager, base
from unit_walk import autostart
from user_manager import NAME

LINK = "/etc/systemd/user/sockets.target.wants/ringback.socket"
SERVICE, SOCKET = "ringback.service", "ringback.socket"
# What dpkg itself says, and man-db after it.
DPKG = ("Selecting ", "(Reading ", "Preparing ", "Unpacking ", "Setting up ", "Processing ")
BROWSER = "curl -sSL -o /dev/null"


class Walk:
    def __init__(self, report, system, former, package, tarball, commits):
        self.expect, self.system = report.note, system
        self.former, self.package, self.tarball = former, package, tarball
        self.commit, self.former_commit = commits

    def go(self):
        for part in [self.install, self.sign_in, self.as_root, self.upgrade, self.remove, self.purge, self.unpack]:
            part()

    @property
    def daemon(self):
        return self.system.show(SERVICE, "MainPID")

    def dpkg(self, *words):
        return self.system.as_root("dpkg", *words)

    def put(self, package):
        """The package, where it can be read inside; its path there."""
        shutil.copy(package, self.system.path("/tmp/ringback.deb"))
        return "/tmp/ringback.deb"

    def works(self, done, what, is_right=True):
        self.expect(done.returncode == 0 and is_right, what, done)

    def has_token(self, run, what, program="ringback"):
        done = run(program, "token", "play")
        self.works(done, what, done.stdout.strip())

    def expect_token(self, when):
        self.has_token(self.system.run, f"the session is there {when}")

    def add_and_log_in(self, run, who=""):
        self.works(run("ringback", "account", "add", "play", "--issuer", "http://127.0.0.1:8123", "--client-id", "ringback-demo"),
                   "ringback account add" + who)
        done = run("env", f"BROWSER={BROWSER}", "ringback", "login", "play")
        self.works(done, "ringback login" + who, "alice@example.org" in done.stdout + done.stderr)

    def daemons(self):
        return self.system.as_root("sh", "-c", "cat /proc/[0-9]*/comm | grep -c ^ringbackd").stdout.strip()

    def install(self):
        self.expect(self.system.as_root("sh", "-c", "command -v swift").returncode != 0, "no Swift is there")
        done = self.system.run("dpkg", "-i", self.put(self.former))
        self.expect(done.returncode != 0 and "superuser" in done.stderr, "a user cannot install it", done)
        self.began = time.monotonic()
        done = self.dpkg("-i", "/tmp/ringback.deb")
        self.works(done, "dpkg -i", "rror" not in done.stderr)
        said = [line for line in done.stdout.splitlines() if not line.startswith(DPKG)]
        self.expect(not said, "which says nothing of its own", said)
        self.expect(os.path.islink(self.system.path(LINK)), "the socket unit is enabled for users")
        links = self.system.as_root("find", "/etc", "-lname", "*ringback*").stdout.split()
        self.expect(links == [LINK], "and no other unit", links)
        self.expect(self.daemons() == "0", "nothing was started")
        files = self.system.as_root("find", "/home", "/root", "-name", "*ringback*", "-mindepth", "2").stdout
        self.expect(not files, "and nothing is written in a home directory", files)
        for page in ["ringback", "ringbackd", "ringback.toml", "ringback-relay", "ringback-sandbox"]:
            self.works(self.system.run("man", "--where", page), f"man {page}")

    def sign_in(self):
        system = self.system
        system.log_in()
        enabled = system.systemctl("is-enabled", SOCKET).stdout.strip()
        self.expect(enabled == "enabled" and system.show(SOCKET, "SubState") == "listening",
                    "after the log-in the socket listens", enabled)
        self.expect(self.daemon == "0", "and the daemon does not run yet", self.daemon)
        text, _ = self.overview(system.run)
        self.expect("Next: ringback account add" in text and self.daemon == "0",
                    "on a new terminal ringback alone says what to do", text)
        done = system.run("sh", "-lc", "true")
        self.works(done, "and nothing says anything before", not done.stdout + done.stderr)
        done = system.run("sh", "-c", autostart(system.path("/etc/xdg/autostart/ringbackd.desktop")))
        self.works(done, "the autostart entry leaves that to systemd", self.daemons() == "0")
        self.works(system.run("ringback", "demo", timeout=90), "ringback demo")
        self.works(system.run("systemd-run", "--user", "--unit=sandbox", "/usr/bin/ringback-sandbox", "--port", "8123",
                              "--auto-approve", "alice"), "the sandbox starts")
        system.until("the sandbox", lambda: system.run("curl", "-sf", "http://127.0.0.1:8123/").returncode == 0)
        self.add_and_log_in(system.run)
        self.expect_token("after the sign-in")
        confinement = self.daemon_of(system.run)["confinement"]
        self.expect(confinement == {"seccomp": True}, "the daemon's own filter is in force under the unit's", confinement)
        print(f"from dpkg -i to the first token: {time.monotonic() - self.began:.1f} s", flush=True)

    def as_root(self):
        """A daemon that root has started by hand, with a place of its own for the sessions."""
        system = self.system
        self.works(system.as_root("ringback", "demo", timeout=90), "ringback demo as root")
        system.as_root("sh", "-c", "ringbackd --state /root/sessions >/root/ringbackd.log 2>&1 &")
        system.until("root's daemon", lambda: system.as_root("ringback", "status").returncode == 0)
        self.add_and_log_in(system.as_root, " as root")
        self.has_token(system.as_root, "root has a token")
        there = os.listdir(system.path("/root/sessions"))
        self.expect("vault" in there, "and its session in its place", there)

    @staticmethod
    def daemon_of(run):
        return json.loads(run("ringback", "status", "--json").stdout)

    def overview(self, run):
        """What `ringback` shows on a terminal, and the command that restarts the daemon, if it shows one."""
        done = run("script", "-qec", "env NO_COLOR=1 ringback", "/dev/null")
        lines = [line.strip() for line in done.stdout.replace("\r", "").splitlines()]
        shown = [line.removeprefix("→ ").removeprefix("Next: ") for line in lines]
        commands = [line for line in shown if line.startswith(("kill ", "systemctl --user restart "))]
        return done.stdout, commands[0] if commands else ""

    def restart(self, run, who, wanted):
        """Daemon and command line differ; the command that is shown mends that."""
        before = self.daemon_of(run)
        text, command = self.overview(run)
        self.expect(self.commit in text and self.former_commit in text, f"{who}: ringback names both commits", text)
        self.expect(command.startswith(wanted) and (wanted != "kill " or "--state /root/sessions" in command),
                    f"{who}: and the command that restarts the daemon", command or text)
        self.works(run("sh", "-c", f"exec >/dev/null 2>&1; {command}"), f"{who}: the command works")
        self.system.until("the new daemon", lambda: run("ringback", "status").returncode == 0)
        after = self.daemon_of(run)
        self.expect(after["pid"] != before["pid"] and self.commit in after["build"], f"{who}: it is the new daemon", after)
        text, command = self.overview(run)
        self.expect(not command and self.former_commit not in text, f"{who}: nothing differs any more", text)
        self.has_token(run, f"{who}: the session is there in the new daemon")

    def upgrade(self):
        before = self.daemon
        done = self.dpkg("-i", self.put(self.package))
        self.works(done, "an upgrade", "Unpacking ringback" in done.stdout)
        self.expect(before != "0" and self.daemon == before and self.system.show(SERVICE, "NRestarts") == "0",
                    "restarts no daemon", f"{before} {self.daemon}")
        self.expect_token("during the upgrade's daemon")
        self.system.systemctl("daemon-reload")
        self.restart(self.system.run, "a user", f"systemctl --user restart {SERVICE}")
        self.expect(self.daemon not in ("0", before), "a restart is the new daemon", self.daemon)
        self.restart(self.system.as_root, "root", "kill ")
        # By the shell: there is no program of that name.
        pid = self.daemon_of(self.system.as_root)["pid"]
        self.works(self.system.as_root("sh", "-c", f"kill {pid}"), "root ends the daemon")
        self.system.until("its end", lambda: self.system.as_root("sh", "-c", f"kill -0 {pid}").returncode != 0)
        accounts = json.loads(self.system.run("ringback", "accounts", "--json").stdout)["accounts"]
        self.expect([each["name"] for each in accounts] == ["play"], "and so is the account", accounts)

    def remove(self):
        done = self.dpkg("--remove", "ringback")
        self.works(done, "removal", not done.stderr)
        named = [line for line in done.stdout.splitlines() if "still runs" in line]
        self.expect(len(named) == 1 and f"the daemon of {NAME} still runs (process {self.daemon})" in named[0],
                    "which names the daemon that still runs, once", done)
        stop = "systemctl --user stop ringback.socket ringback.service"
        self.expect(done.stdout.count(stop) == 1 and "kill " not in done.stdout and "setup --undo" in done.stdout,
                    "how to stop it with its socket, and what setup left", done)
        said = [line for line in done.stdout.replace(NAME, "ada").splitlines() if not line.startswith(DPKG)]
        self.expect(all(len(line) <= 80 for line in said), "on lines of 80 columns", said)
        for path in ["/usr/bin/ringback", "/usr/bin/ringbackd", "/usr/lib/systemd/user/ringback.socket"]:
            self.expect(not os.path.exists(self.system.path(path)), f"{path} is gone")
        self.system.systemctl("stop", SOCKET, SERVICE)
        self.system.systemctl("daemon-reload")
        done = self.dpkg("-i", "/tmp/ringback.deb")
        self.works(done, "installed again", os.path.islink(self.system.path(LINK)))
        self.system.systemctl("daemon-reload")
        self.system.systemctl("start", SOCKET)
        self.expect_token("after a removal and a new installation")
        # What an administrator has chosen stays.
        self.system.as_root("systemctl", "--global", "disable", SOCKET)
        self.dpkg("-i", "/tmp/ringback.deb")
        self.expect(not os.path.lexists(self.system.path(LINK)), "a socket unit that root disabled stays so")

    def purge(self):
        state = self.system.path(f"{self.system.home}/.local/state/ringback")
        self.works(self.dpkg("--purge", "ringback"), "purge")
        left = self.system.as_root("find", "/etc", "/usr", "/var/lib/systemd", "/var/lib/dpkg/info", "-name",
                                   "*ringback*").stdout
        self.expect(not left, "nothing of it is left in the system", left)
        self.expect(os.listdir(state), "sessions are left to their user")

    def unpack(self):
        """The tarball, as the user; the session of the package's daemon goes on."""
        system = self.system
        system.systemctl("stop", SOCKET, SERVICE)
        shutil.copy(self.tarball, system.path("/tmp/ringback.tar"))
        done = system.run("sh", "-c", "cd && tar -xf /tmp/ringback.tar && ./ringback-*/install")
        self.expect(done.returncode == 0 and "2.36" not in done.stderr, "the tarball installs as the user", done)
        system.systemctl("daemon-reload")
        fragment = system.show(SERVICE, "FragmentPath")
        self.expect(fragment == f"{system.home}/.local/share/systemd/user/{SERVICE}", "its unit is found", fragment)
        self.expect(system.systemctl("enable", "--now", SOCKET).returncode == 0, "and enabled")
        self.has_token(system.run, "its daemon has the session", f"{system.home}/.local/bin/ringback")


def try_sources(report, directory):
    """`make vendor` in a checkout, which is then moved; from there the sources come without network."""
    before, after = os.path.join(directory, "checkout"), os.path.join(directory, "moved")

    def run_in(where, *words):
        # With a cache of its own: what this machine has fetched before is not used.
        return run(*words, cwd=where, timeout=900, env=os.environ | {"XDG_CACHE_HOME": os.path.join(directory, "cache")})

    another_checkout(before)
    if os.path.isdir(os.path.join(ROOT, "vendor")):
        shutil.copytree(os.path.join(ROOT, "vendor"), os.path.join(before, "vendor"))
    # What was fetched for this checkout serves as the network, if it is there.
    fetched = os.path.join(ROOT, ".build/repositories")
    if os.path.isdir(fetched):
        shutil.copytree(fetched, os.path.join(before, ".build/repositories"))
    done = run_in(before, "Scripts/vendor")
    report.note(done.returncode == 0, "make vendor", done.stderr[-800:])
    shutil.rmtree(os.path.join(before, ".build"), ignore_errors=True)
    os.rename(before, after)
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--net"]
    swift = os.environ.get("SWIFT", "swift")
    # The package manager keeps nothing of these for the user.
    cache = ["--cache-path", os.path.join(directory, "cache"), "--security-path", os.path.join(directory, "security")]
    done = run_in(after, *alone, swift, "package", *cache, "resolve")
    report.note(done.returncode == 0, "the sources in a moved checkout without network", done.stderr[-800:])
    done = run_in(after, *alone, swift, "build", *cache, "--target", "ArgumentParserToolInfo")
    report.note(done.returncode == 0, "are built there", (done.stdout + done.stderr)[-800:])


def former_executables(report, binaries, chosen, directory):
    """What the upgrade starts from: (the directory, the commit of `binaries`, the commit of the former build)."""
    if not chosen:
        report.skip("an upgrade from a really older build", "name its executables with --former; today's are taken, "
                    "with the name of another commit")
        return of_another_commit(binaries, directory)
    names = [commit_of(os.path.join(place, "ringback")) for place in (binaries, chosen)]
    report.note(names[0] != names[1], "the former build is of another commit", names)
    return os.path.abspath(chosen), *names


def try_in_debian(report, version, bases, directory, package, tarball, former, commits):
    progress(f"Debian {version}")
    system = None
    place = os.path.join(directory, f"debian-{version}")
    os.mkdir(place)
    try:
        system = RootedManager(place, base(version, bases, progress))
        system.start()
        Walk(report, system, former, package, tarball, commits).go()
    finally:
        if system is not None:
            system.close()


def campaign(chosen, report, places):
    binaries = os.path.abspath(chosen.bin)
    directory = places.directory("packages", chosen.keep)
    # Packed quickly: what is tried here is not kept.
    how = {"COMPRESSION": "-Zgzip -z1", "COMPRESS": "gzip -1n"} | PACKAGER
    package = make("deb", binaries, directory, **how)
    check_package(report, package, binaries, directory)
    check_python_package(report, package, directory)
    tarball = make("dist", binaries, directory, **how)
    check_tarball(report, tarball, directory)
    try_again(report, binaries, directory, **how)
    if chosen.rebuild:
        try_rebuild(report, binaries, directory, **how)
    if not chosen.short:
        check_lintian(report, package)
        try_sources(report, directory)
        if os.geteuid() != 0:
            report.skip("the package in Debian 12 and 13", "only root can make them")
            return
        executables, *commits = former_executables(report, binaries, chosen.former, directory)
        former = make("deb", executables, directory, VERSION="0.0.9", COMPRESSION="-Zgzip -z1")
        for version in DEBIANS:
            try_in_debian(report, version, chosen.bases, directory, package, tarball, former, commits)


if __name__ == "__main__":
    sys.exit(play(__doc__, campaign, bases=(os.path.join(ROOT, ".build"), "where the Debians are kept"),
                  former=("", "the executables of an older release build, to upgrade from"),
                  rebuild=(0, "1: build the executables in another folder too, for ten minutes, and compare")))
