#!/usr/bin/env -S python3 -B
"""Runs Ringback under a real systemd user manager, installed as a person without root installs it.

The first request starts the daemon; stop, start, reload, the watchdog and crashes keep its sessions; the vault's key as
a credential. Each directive of the unit is shown to hold by a probe in a unit with the same directives, beside one in a unit
with none, which must be able to do what the other is refused; a directive that nothing shows is a failure. What is installed
is taken away again. Needs root (user_manager.py says why); no manager, home or unit of yours is touched.
"""

import json
import os
import tempfile

from harness import HERE, output, played, progress, read, run
from house import Sandbox
from package_contents import make
from unit_walk import Walk
from user_manager import PYTHON, UID, UserManager

# How each shell reads a script without running it.
SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}

# Shown by what happens to the daemon (unit_walk.py).
WALKED = {"Type", "ExecStart", "ExecReload", "Restart", "RestartPreventExitStatus", "WatchdogSec"}
# What the manager has understood, in its own words.
UNDERSTOOD = {
    "RestartSec": ("RestartUSec", "1s"), "TimeoutStopSec": ("TimeoutStopUSec", "10s"), "OOMPolicy": ("OOMPolicy", "continue"),
}
# What the probe finds with the directive, and otherwise without.
FOUND = {"UMask": ("umask", "0077"), "LimitCORE": ("core", [0, 0]), "NoNewPrivileges": ("no_new_privileges", "1")}
# What the directive refuses with EPERM.
REFUSED = {
    "SystemCallErrorNumber": ["traceme"], "RestrictNamespaces": ["user_namespace", "network_namespace"],
    "RestrictRealtime": ["realtime"], "RestrictSUIDSGID": ["suid"], "LockPersonality": ["personality"],
    "MemoryDenyWriteExecute": ["writable_code", "made_executable"],
}
ALLOWED_FAMILIES = {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"}


class Claims:
    def __init__(self, report, manager):
        self.report, self.manager = report, manager
        unit = read(os.path.join(manager.home, ".local/share/systemd/user/ringback.service"))
        lines = unit.split("[Service]\n")[1].split("[Install]")[0].splitlines()
        self.directives = [tuple(line.split("=", 1)) for line in lines if line and not line.startswith("#")]

    def go(self):
        names = " ".join(value for name, value in self.directives if name == "UnsetEnvironment").split()
        self.removed = [name for name in names if not name.startswith("LD_")] + ["LD_DEBUG", "LD_LIBRARY_PATH"]
        hostile = {name: "/nonexistent" for name in self.removed} | {"GLIBC_TUNABLES": "glibc.malloc.perturb=0",
                                                                      "MALLOC_CHECK_": "0", "LD_DEBUG": "unused"}
        self.manager.systemctl("set-environment", *[f"{name}={value}" for name, value in hostile.items()])
        same = [pair for pair in self.directives if pair[0] not in WALKED and pair[0] not in UNDERSTOOD]
        self.held = self.probe("ringback-probe", same)
        self.free = self.probe("ringback-control", [])
        self.manager.systemctl("unset-environment", *hostile)
        for name in dict.fromkeys(name for name, _ in same):
            wanted = [FOUND[name]] if name in FOUND else [(probe, "EPERM") for probe in REFUSED.get(name, [])]
            if not wanted and not hasattr(self, name):
                self.report.note(False, name, "no probe shows that it holds")
                continue
            shown = [self.held[probe] == found != self.free[probe] for probe, found in wanted]
            value = all(shown) if shown else getattr(self, name)()
            if value is None:
                progress(f"{name} cannot be shown on this machine")
            else:
                self.report.note(value, f"{name} holds", f"{self.held} beside {self.free}"[:900])
        for name, (shown, value) in UNDERSTOOD.items():
            found = self.manager.show("ringback.service", shown)
            self.report.note(found == value, f"{name} is understood", found)
        self.of_the_daemon()

    def probe(self, unit, directives):
        """Runs the probe as a unit with these directives."""
        output = os.path.join(self.manager.home, unit + ".json")
        script = self.manager.write(f"{unit}.py", read(os.path.join(HERE, "unit_probe.py")))
        lines = "".join(f"{name}={value}\n" for name, value in directives)
        self.manager.write(
            f".config/systemd/user/{unit}.service",
            f"[Service]\nType=oneshot\nExecStart={PYTHON} {script}\nStandardOutput=truncate:{output}\n{lines}")
        self.manager.systemctl("daemon-reload")
        done = self.manager.systemctl("start", unit + ".service")
        try:
            found = json.loads(read(output))
        except ValueError:
            raise OSError(f"{unit} said nothing: {done.stderr} {self.manager.why()}") from None
        for path in [output, script]:
            os.unlink(path)
        return found

    # One for each other directive: true or false, or None where this machine cannot show it.

    def Environment(self):
        return self.held["environment"].get("SWIFT_BACKTRACE") == "enable=no"

    def UnsetEnvironment(self):
        return (all(name in self.free["environment"] for name in self.removed)
                and not any(name in self.held["environment"] for name in self.removed))

    def KeyringMode(self):
        if "not for" in self.held["keyring"]:
            return None
        return self.held["keyring"] == "_ses" and self.free["keyring"].startswith("_uid_ses")

    def SystemCallFilter(self):
        own = self.held["landlock"] == self.free["landlock"]
        return own and self.held["traceme"] != "ok" and self.free["traceme"] == "ok"

    def SystemCallArchitectures(self):
        if self.free["foreign_code"] != "status 42":
            return None
        return self.held["foreign_code"].startswith("signal ")

    def RestrictAddressFamilies(self):
        allowed = all(self.held["families"][name] == "ok" for name in ALLOWED_FAMILIES)
        others = [name for name in self.held["families"] if name not in ALLOWED_FAMILIES]
        telling = [name for name in others if self.free["families"][name] != "EAFNOSUPPORT"]
        return allowed and telling and all(self.held["families"][name] == "EAFNOSUPPORT" for name in others)

    def MemoryMax(self):
        value = self.held["limits"].get("memory.max", self.held["limits"].get("memory.limit_in_bytes"))
        return None if value is None else value == str(512 << 20)

    def TasksMax(self):
        value = self.held["limits"].get("pids.max")
        return None if value is None else value == "256" and self.held["tasks"] == 255 and self.free["tasks"] > 255

    def of_the_daemon(self):
        """The daemon itself, as the kernel shows it."""
        status = self.manager.run("ringback", "status", "--json").stdout
        confinement = json.loads(status)["confinement"]
        self.report.note(confinement == {"seccomp": True}, "the daemon's own filter is in force under the unit's", confinement)
        pid = self.manager.show("ringback.service", "MainPID")
        status = self.manager.run("cat", f"/proc/{pid}/status").stdout
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.report.note(facts.get("NoNewPrivs") == "1" and facts.get("Seccomp") == "2", "the daemon is under them", facts)
        # Ours alone, as the kernel has it, though its memory is nobody's.
        self.report.note(facts.get("Uid", "").split() == [str(UID)] * 4, "it is the person's", facts.get("Uid"))


def check_completions(report, binaries):
    for shell, words in SHELLS.items():
        made = run(os.path.join(binaries, "ringback"), "--generate-completion-script", shell)
        with tempfile.NamedTemporaryFile("w", suffix="." + shell) as script:
            script.write(made.stdout)
            script.flush()
            taken = run(*words, script.name)
        report.note(made.returncode == 0 and taken.returncode == 0 and not taken.stderr, f"{shell} reads its completions",
                    made.stderr + taken.stderr)


def unpacked(binaries, directory):
    """The tarball, unpacked where the person can read it."""
    place = os.path.join(directory, "unpacked")
    os.mkdir(place)
    output("tar", "--no-same-owner", "-C", place, "-xf", make("dist", binaries, place, COMPRESS="gzip -1"))
    [top] = [entry.path for entry in os.scandir(place) if entry.is_dir()]
    return top


@played()
def campaign(chosen, report, places):
    binaries = os.path.abspath(chosen.bin)
    directory = places.directory("units", chosen.keep)
    check_completions(report, binaries)
    manager = places.add(UserManager(directory))
    tarball = unpacked(binaries, directory)
    sandbox = places.add(Sandbox(
        binaries, directory, "--user", "alice", "--auto-approve", "alice", "--client", "ringback-demo"))
    manager.start()
    print(manager.run("systemctl", "--version").stdout.splitlines()[0], flush=True)
    walk = Walk(report, manager, sandbox)
    walk.go(tarball)
    Claims(report, manager).go()
    walk.undo()
