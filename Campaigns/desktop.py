#!/usr/bin/env -S python3 -B
"""Schemes on a real desktop's parts, in a clean home: xdg-open, xdg-mime and gio hand links to `ringback open`.

Each opener brings the callback of a sign-in at an OpenID provider and at a Supabase project; the one that loses links in
silence is found by `ringback doctor`. browser.py has the links that browsers open.
"""

import json
import os
import shutil
import time

from harness import ROOT, Trouble, played, progress, read, run, soon, table, write
from house import House
from kinds import openid_account, supabase_account

SCHEME = "org.example.ringback-campaign"
PROJECT_SCHEME = "swisscoin"
OPENERS = {
    "xdg-open, generic": (["xdg-open"], {"DISPLAY": ":99"}),
    "xdg-open, GNOME": (["xdg-open"], {"DISPLAY": ":99", "XDG_CURRENT_DESKTOP": "GNOME"}),
    "xdg-open, XFCE": (["xdg-open"], {"DISPLAY": ":99", "XDG_CURRENT_DESKTOP": "XFCE"}),
    "gio open": (["gio", "open"], {}),
}
# What a shell, a desktop file's field codes or an option's reader would make something of.
TAILS = [
    "$(id)", "${HOME}", "`id`", ";id;", "&&id", "|id", "%20%22%27", "%F%u%U%%", "a'b", "#x", "*?[a-z]", "~", "\\n\\\\", "(a)",
    "!1", "{a,b}", "--help", "-x", "a=1&b=2", "//../..", "%00", "%0a", "\u00e4", "%f %c".replace(" ", "+"), "=", "@", "^",
]


class Desktop:
    """A house with an account at each kind of provider, both of which come back by a scheme."""

    def __init__(self, binaries, is_short=False):
        self.is_short = is_short
        self.house = House(
            binaries, sandbox_arguments=("--user", "alice", "--auto-approve", "alice",
                                         "--redirect-uri", SCHEME + ":/callback"), shimmed=False)
        issuer = self.house.sandbox.issuer
        write(self.house.configuration, openid_account("work", issuer, redirect_uri=SCHEME + ":/callback") + supabase_account(
            "app", issuer, redirect_uri=PROJECT_SCHEME + "://auth-callback", oauth_provider="github"))
        self.house.start()
        self.home = self.house.place("home")
        self.data = self.house.place("kept/data")
        self.applications = os.path.join(self.data, "applications")

    def environment(self, more=None):
        return self.house.environment | {"LANG": "C.UTF-8"} | (more or {})

    def run(self, arguments, more=None, seconds=60):
        return run(*arguments, timeout=seconds, env=self.environment(more), cwd=self.house.place("tmp"))

    def ringback(self, *arguments, more=None):
        return self.run([self.house.program(), *arguments], more)

    def status(self, flow, seconds=0):
        return self.house.api("GET", f"/v1/flows/{flow['id']}?wait={seconds}", timeout=seconds + 40)[1].get("status")

    def forget(self, flow, account):
        self.house.api("DELETE", f"/v1/flows/{flow['id']}?all=true")
        self.house.api("DELETE", f"/v1/accounts/{account}/session")

    def doctor(self, *arguments, more=None):
        done = self.ringback("doctor", "--json", *arguments, more={"DISPLAY": ":99"} | (more or {}))
        try:
            return done.returncode, json.loads(done.stdout)["checks"]
        except (ValueError, KeyError):
            raise Trouble(f"the doctor said {done.stdout!r} {done.stderr!r}") from None

    def close(self, keep):
        self.house.close(keep)


def files(desktop, report):
    """What is registered is a good file, known to the database and to xdg-mime."""
    for scheme, account in [(SCHEME, "work"), (PROJECT_SCHEME, "app")]:
        done = desktop.ringback("scheme", "register", scheme, "--account", account)
        report.note(done.returncode == 0, f"register {scheme}", done.stderr)
        name = f"ringback-{scheme}.desktop"
        checked = desktop.run(["desktop-file-validate", os.path.join(desktop.applications, name)])
        report.note(checked.returncode == 0 and not checked.stdout, "desktop-file-validate", checked.stdout)
        asked = desktop.run(["xdg-mime", "query", "default", "x-scheme-handler/" + scheme])
        report.note(asked.stdout == name + "\n", "xdg-mime query default", asked.stdout)
        cache = read(os.path.join(desktop.applications, "mimeinfo.cache"))
        report.note(f"x-scheme-handler/{scheme}={name};" in cache, "the desktop database", scheme)
        asked = desktop.run(["gio", "mime", "x-scheme-handler/" + scheme])
        report.note(name in asked.stdout, "gio mime", asked.stdout)


def autostart(desktop, report):
    """The entry that starts the daemon at the log-in, as a desktop reads it, where there is no unit for it."""
    tools, entry, log = (desktop.house.place(name) for name in ["tools", "autostart.desktop", "started"])
    os.mkdir(tools)
    write(os.path.join(tools, "systemctl"), "#!/bin/sh\nexit 1\n", 0o700)
    recorder = write(os.path.join(tools, "ringbackd"), f"#!/bin/sh\necho $# >'{log}'\n", 0o700)
    write(entry, read(os.path.join(ROOT, "systemd/ringbackd.desktop")).replace("/usr/bin/ringbackd", recorder))
    checked = desktop.run(["desktop-file-validate", entry])
    report.note(checked.returncode == 0 and not checked.stdout, "desktop-file-validate, the autostart entry", checked.stdout)
    done = desktop.run(["gio", "launch", entry], {"PATH": f"{tools}:{os.environ['PATH']}"})
    report.note(soon(lambda: read(log) == "0\n"), "the autostart entry starts the daemon", f"{done} {read(log)}")


def openers(desktop, report):
    rows = []
    for name, (command, environment) in OPENERS.items():
        for account in ["work", "app"]:
            flow = desktop.house.new_flow(account)
            callback = desktop.house.sandbox.approve(flow["authorization_url"])
            started = time.monotonic()
            done = desktop.run([*command, callback], environment)
            ended = desktop.status(flow, 20)
            rows.append([name, account, f"{(time.monotonic() - started) * 1000:.0f}"])
            report.note(
                done.returncode == 0 and ended == "completed", f"{name}, {account}",
                f"status {done.returncode}, the flow is {ended}: {done.stderr}")
            desktop.forget(flow, account)
    table("From the opener's start to the session", ["opener", "account", "ms"], rows)


def database_alone(desktop, report):
    """Without a default the database suffices, as the generic opener reads it."""
    path = os.path.join(desktop.home, ".config/mimeapps.list")
    kept = open(path).read()
    os.rename(path, path + ".aside")
    flow = desktop.house.new_flow("work")
    done = desktop.run(["xdg-open", desktop.house.sandbox.approve(flow["authorization_url"])], {"DISPLAY": ":99"})
    report.note(
        done.returncode == 0 and desktop.status(flow, 20) == "completed", "the database alone", done.stderr)
    desktop.forget(flow, "work")
    os.rename(path + ".aside", path)
    report.note(open(path).read() == kept, "mimeapps.list", "is not as it was")


def silent_loss(desktop, report):
    more = {"XDG_CURRENT_DESKTOP": "KDE"}
    status, checks = desktop.doctor()
    wrong = [line for line in checks if line["level"] == "wrong"]
    report.note(status == 0 and not wrong, "the doctor in a house that is well", str(wrong))
    flow = desktop.house.new_flow("work")
    done = desktop.run(["xdg-open", desktop.house.sandbox.approve(flow["authorization_url"])], more | {"DISPLAY": ":99"})
    lost = done.returncode == 0 and desktop.status(flow, 2) == "pending"
    desktop.forget(flow, "work")
    if not lost:
        progress(f"this KDE opener loses nothing (status {done.returncode}): the doctor must agree")
    status, checks = desktop.doctor(more=more)
    wrong = [line for line in checks if line["level"] == "wrong"]
    found = status == 1 and {line["check"] for line in wrong} == {"scheme"} and len(wrong) == 2
    report.note(
        found if lost else done.returncode != 0 or status == 0, "the silent loss of KDE",
        f"status {status}: {[line['message'] for line in wrong]}")


def hostile(desktop, report):
    """A recorder in the handler's place, by the same file: each link is one argument, byte for byte."""
    path = os.path.join(desktop.applications, f"ringback-{SCHEME}.desktop")
    text = open(path).read()
    recorder = desktop.house.place("recorder")
    log = desktop.house.place("recorded")
    write(recorder, f"#!/bin/sh\nfor one; do printf '%s\\0' \"$one\"; done >>'{log}'\nprintf '\\n' >>'{log}'\n", 0o700)
    program = desktop.house.program()
    if program not in text:
        raise Trouble(f"the recorder cannot take the handler's place: {program} is not in {path}")
    write(path, text.replace(program, recorder))
    desktop.run(["update-desktop-database", desktop.applications])
    # Before the links that are hard: does a plain one reach the recorder?
    plain = f"{SCHEME}:/callback"
    desktop.run(["gio", "open", plain])
    if recorded(log, plain) != expected(plain):
        raise Trouble("the recorder did not take the handler's place: a plain link does not reach it")
    for name, (command, environment) in OPENERS.items():
        for tail in TAILS[::6] if desktop.is_short else TAILS:
            url = f"{SCHEME}:/callback?q={tail}"
            if os.path.exists(log):
                os.unlink(log)
            desktop.run([*command, url], environment)
            seen = recorded(log, url)
            report.note(seen == expected(url), f"{name}: {tail!r}", repr(seen))
    write(path, text)


def expected(url):
    """What the recorder writes of a link that reached it as one argument."""
    return f"open\0{url}\0\n".encode()


def recorded(log, url, seconds=5):
    """What the recorder wrote, as soon as it is what is expected, or when the time is up."""
    soon(lambda: read(log).encode() == expected(url), seconds)
    return read(log).encode()


def awkward_path(desktop, report):
    """A program at a path with spaces and quotes is found by desktops that read the specification."""
    # Without a percent sign: gio looks for the program before it undoes the doubling that the specification asks for.
    place = desktop.house.place("a \"b\" $c `d` 'e' \\f")
    os.mkdir(place)
    for name in ["ringback", "ringbackd"]:
        shutil.copy(os.path.join(desktop.house.binaries, name), place)
    done = desktop.run([os.path.join(place, "ringback"), "scheme", "register", SCHEME])
    report.note(done.returncode == 0 and "without spaces" in done.stderr, "an awkward path", done.stderr)
    checked = desktop.run(
        ["desktop-file-validate", os.path.join(desktop.applications, f"ringback-{SCHEME}.desktop")])
    report.note(checked.returncode == 0, "desktop-file-validate, awkward", checked.stdout)
    flow = desktop.house.new_flow("work")
    desktop.run(["gio", "open", desktop.house.sandbox.approve(flow["authorization_url"])])
    report.note(desktop.status(flow, 20) == "completed", "gio open, awkward", "the flow did not complete")
    desktop.forget(flow, "work")
    done = desktop.ringback("scheme", "register", SCHEME)
    report.note(done.returncode == 0, "register again", done.stderr)


def restore(desktop, report):
    for scheme in [SCHEME, PROJECT_SCHEME]:
        done = desktop.ringback("scheme", "unregister", scheme)
        report.note(done.returncode == 0, f"unregister {scheme}", done.stderr)
    left = [name for name in os.listdir(desktop.applications) if name.endswith(".desktop")]
    report.note(not left and not os.path.exists(os.path.join(desktop.home, ".config/mimeapps.list")), "what is left", str(left))


@played(only=("", "only parts with this in their names"))
def campaign(chosen, report, places):
    desktop = places.add(Desktop(chosen.bin, chosen.short), chosen.keep)
    files(desktop, report)
    autostart(desktop, report)
    parts = [openers, database_alone, silent_loss, hostile]
    for part in parts if chosen.short else [*parts, awkward_path]:
        if chosen.only in part.__name__:
            progress(part.__name__.replace("_", " "))
            part(desktop, report)
    restore(desktop, report)
