"""A person's desk: a display, a session bus, the daemon and the sandbox, `ringback` with a browser, web pages of others."""

import os
import subprocess

from harness import Trouble, begun, read, soon, stop, write
from house import House
from kinds import openid_account, supabase_account
from web import Party

SCHEME = "org.example.ringback-browsers"
# Whose browser is not ours, as in a container whose users are mapped.
STRANGER = 54_321


def accounts(issuer):
    few, demo = ["openid", "email"], openid_account
    return "".join([
        demo("work", issuer), demo("home", issuer, few),
        demo("local", issuer, few, redirect_uri="http://localhost:{port}/signed-in"),
        demo("form", issuer, few, response_mode="form_post"),
        demo("scheme", issuer, few, redirect_uri=SCHEME + ":/callback"),
        demo("peer", issuer, few, callback_peer_uids=[STRANGER]), supabase_account("app", issuer)])


class Desk:
    def __init__(self, binaries, pages=""):
        self.pages = pages
        self.shown = {}
        self.house = House(binaries, sandbox_arguments=("--redirect-uri", SCHEME + ":/callback"), shimmed=False)
        self.sandbox = self.house.sandbox
        # Another user's browser reaches its own directory below this one.
        os.chmod(self.house.directory, 0o711)
        self.programs, self.elsewhere = [], None
        self.ringback = self.house.program()
        write(self.house.configuration, accounts(self.sandbox.issuer))
        try:
            self.display = self.first_line(["Xvfb", "-displayfd", "1", "-screen", "0", "1280x900x24", "-ac",
                                            "-nolisten", "tcp"])
            # Through it a second Firefox hands its address to the first.
            self.bus = self.first_line(["dbus-daemon", "--session", "--nofork", "--print-address=1"])
            self.house.start()
        except BaseException:
            self.close()
            raise

    def first_line(self, words):
        program, line = begun(words, self.place(words[0] + ".log"))
        self.programs.append(program)
        return line

    def place(self, name):
        return self.house.place(name)

    @property
    def environment(self):
        return self.house.environment | {
            "DISPLAY": ":" + self.display, "LANG": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": self.bus, "NO_AT_BRIDGE": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}

    def start(self, *words, browser=None, private=False, **more):
        """`ringback`, with a browser as the one that it opens."""
        if browser:
            more["BROWSER"] = browser.private_opener if private else browser.opener
        return Run(self, words, self.environment | more)

    def forget(self, *accounts):
        """Nobody is signed in, and nothing waits."""
        for flow in self.house.api("GET", "/v1/flows")[1]["flows"]:
            self.house.api("DELETE", f"/v1/flows/{flow['id']}?all=true")
        for account in accounts:
            self.house.api("DELETE", f"/v1/accounts/{account}/session")

    def flow(self, flow, seconds=0):
        return self.house.api("GET", f"/v1/flows/{flow['id']}?wait={seconds}", timeout=seconds + 40)[1]

    def visits(self, flow):
        """What became of the addresses that were made for programs, in their order."""
        return [entrance["status"] for entrance in self.flow(flow)["open_urls"]]

    def subject(self, account):
        return self.house.account(account).get("subject")

    def keep(self, browser, tab, name):
        """Notes a page for who wants to look at it by eye (`--pages`)."""
        self.shown.setdefault(f"{tab.title}: {' / '.join(tab.text.split(chr(10)))}", []).append(f"{browser.name}, {name}")
        if self.pages:
            os.makedirs(self.pages, exist_ok=True)
            stem = os.path.join(self.pages, f"{browser.name}-{name}".replace(" ", "-").replace("/", "-"))
            write(stem + ".txt", f"{tab.url}\n{tab.title}\n\n{tab.text}\n")
            write(stem + ".png", browser.picture(tab))

    def close(self, keeps=False):
        if self.elsewhere:
            self.elsewhere.close()
        for program in reversed(self.programs):
            stop(program)
        self.house.close(keeps)


class Run:
    """`ringback` as it runs: its output, and how it ended."""

    def __init__(self, desk, words, environment):
        self.words = words
        stem = desk.place(f"run-{len(os.listdir(desk.house.directory))}")
        self.paths = stem + ".out", stem + ".errors"
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as errors:
            self.process = subprocess.Popen([desk.ringback, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                            env=environment, cwd=desk.place("tmp"))

    @property
    def out(self):
        return read(self.paths[0])

    @property
    def errors(self):
        return read(self.paths[1])

    def says(self, text, seconds=30):
        """Everything on standard error, once the text is there."""
        soon(lambda: text in self.errors or self.process.poll() is not None, seconds)
        if text not in self.errors:
            raise Trouble(f"`ringback {' '.join(self.words)}` did not say “{text}” but: {self.out!r} {self.errors!r}")
        return self.errors

    def end(self, seconds=60):
        """The exit status."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def __str__(self):
        return f"`ringback {' '.join(self.words)}`: {self.process.poll()} {self.out!r} {self.errors!r}"


class Website(Party):
    """Pages of somebody else, on a port of their own: text by path."""

    def __init__(self):
        self.pages = {}
        super().__init__()

    def respond(self, request):
        status, page = (200, self.pages[request.path]) if request.path in self.pages else (204, "")
        return status, {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"}, page.encode()

    def asked(self, path):
        """The fields of the requests for this path."""
        return [seen.headers for seen in self.sent(path)]
