#!/usr/bin/env -S python3 -B
"""Runs Ringback under a real systemd user manager, installed as a person without root installs it.

The first request starts the daemon; stop, start, reload, the watchdog and crashes keep its sessions; the vault's key as
a credential; and each directive of the unit is shown to hold by a probe that runs under the same directives. What is
installed is taken away again. Needs root (user_manager.py says why); no manager, home or unit of yours is touched.
"""

import os
import tempfile

from harness import ROOT, output, played, read, run, write
from house import Sandbox
from package_contents import make
from unit_claims import Claims
from unit_walk import Walk
from user_manager import UserManager

# How each shell reads a script without running it.
SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


def check_units(report, directory, binaries):
    """systemd-analyze: no complaint, and what it makes of our directives."""
    place = os.path.join(directory, "verify")
    os.makedirs(os.path.join(place, "run"), mode=0o700)
    units = []
    for name in ["ringback.socket", "ringback.service"]:
        text = read(os.path.join(ROOT, "systemd", name)).replace("/usr/bin/", binaries + "/")
        units.append(write(os.path.join(place, name), text))
    environment = {"PATH": "/usr/bin:/bin", "HOME": place, "XDG_RUNTIME_DIR": os.path.join(place, "run")}
    done = run("systemd-analyze", "verify", "--user", *units, env=environment)
    report.note(done.returncode == 0 and not done.stderr, "systemd-analyze verify", done.stderr.strip())
    done = run("systemd-analyze", "security", "--offline=true", "--user", "--no-pager", units[1], env=environment)
    lines = [line for line in done.stdout.splitlines() if "exposure level" in line]
    print(lines[0].replace("\u2192 ", "").strip() if lines else "systemd-analyze security: no score", flush=True)
    report.note(bool(lines), "systemd-analyze security", done.stderr.strip())


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
    check_units(report, directory, binaries)
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
