"""Attacks on the two entrances of a sign-in: `open_url`, which a program is started with and every user of the machine can
read, and `authorization_url`, which is shown to a person. The attacker signs in as bob, and wants the person to be bob.
"""

import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import urllib.parse

from harness import Trouble, until, write

from .desk import SCHEME, STRANGER, Website
from .everyday import NOTHING, Walk

# As another user: reads the argument lists of all processes until an address of this machine stands there, and asks for
# it at once, as a browser would. Prints one line for each address: {"url", "status", "location"}. Ends with its input.
EAVESDROPPER = r"""
# What is imported later might lie where the other user may not read.
import email.parser, encodings.idna, http.client, json, os, re, select, sys, urllib.parse
uid, needle = int(sys.argv[1]), sys.argv[2]
os.setgroups([]); os.setgid(uid); os.setuid(uid)
seen = set()
print("ready", flush=True)
while not select.select([0], [], [], 0.002)[0]:
    for name in os.listdir("/proc"):
        try:
            words = open(f"/proc/{name}/cmdline", "rb").read().decode(errors="replace")
        except OSError:
            continue
        for url in re.findall(r"http://[^\s\0'\"]+", words):
            if url in seen or needle not in url:
                continue
            seen.add(url)
            parts = urllib.parse.urlsplit(url)
            try:
                connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=5)
                connection.request("GET", parts.path + ("?" + parts.query if parts.query else ""),
                                   headers={"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
                answer = connection.getresponse()
                print(json.dumps({"url": url, "status": answer.status, "location": answer.headers.get("Location")}), flush=True)
            except OSError as error:
                print(json.dumps({"url": url, "status": 0, "location": str(error)}), flush=True)
"""

POLICY = "/etc/chromium/policies/managed/ringback-browsers.json"


@contextlib.contextmanager
def registered(desk, browser):
    """Registers the scheme; gives what a person does when the browser asks whether a program may be started."""
    run = desk.start("scheme", "register", SCHEME, "--account", "scheme")
    if run.end() != 0:
        raise Trouble(f"the scheme is not registered: {run}")
    try:
        with allowed(browser) as agree:
            yield agree
    finally:
        desk.start("scheme", "unregister", SCHEME).end()


@contextlib.contextmanager
def allowed(browser):
    if browser.name == "Firefox":
        yield lambda: agree_in_firefox(browser)
        return
    # Chromium's question is no page. Its policy answers it, which only root can write.
    if os.geteuid() != 0:
        raise Trouble("only root can write Chromium's policy, which answers its question")
    with policy(SCHEME):
        browser.quit()
        browser.begin()
        yield lambda: None


@contextlib.contextmanager
def policy(*schemes):
    """Chromium's managed policy, by which links of these schemes start their program without a question."""
    if os.path.exists(POLICY):
        raise Trouble(f"{POLICY} is there already: look at it and remove it")
    made, parent = [], os.path.dirname(POLICY)
    while not os.path.isdir(parent):
        made.append(parent)
        parent = os.path.dirname(parent)
    os.makedirs(os.path.dirname(POLICY), exist_ok=True)
    try:
        allowed = [{"protocol": scheme, "allowed_origins": ["*"]} for scheme in schemes]
        write(POLICY, json.dumps({"AutoLaunchProtocolsFromOrigins": allowed}), 0o644)
        yield
    finally:
        os.unlink(POLICY)
        for directory in made:
            os.rmdir(directory)


# Presses the button that opens the link, once it can be pressed; gives the dialog's text.
PRESS = """
for (let box of document.querySelectorAll("browser.dialogFrame")) {
    let inner = box.contentDocument, dialog = inner && inner.querySelector("dialog");
    if (!dialog) continue;
    let button = dialog.getButton("accept");
    if (button.disabled) return null;
    let text = inner.documentElement.innerText || inner.documentElement.textContent;
    button.click();
    return text.trim() || "a question";
}
return null;
"""


def agree_in_firefox(browser):
    browser.asked = until("Firefox's question", lambda: browser.chrome(PRESS))


class Eavesdropper:
    def __init__(self, needle):
        self.process = subprocess.Popen([sys.executable, "-c", EAVESDROPPER, str(STRANGER), needle], cwd="/",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def caught(self):
        """Ends it: what it saw."""
        out, _ = self.process.communicate("end\n", timeout=20)
        return [json.loads(line) for line in out.splitlines()]


class Attacks(Walk):
    def own_request(self, redirect_uri, state):
        """An authorization request of the attacker's own making."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(b"v" * 43).digest()).rstrip(b"=").decode()
        return f"{self.desk.sandbox.issuer}/authorize?" + urllib.parse.urlencode({
            "response_type": "code", "client_id": "ringback-demo", "redirect_uri": redirect_uri, "state": state,
            "scope": "openid email", "code_challenge": challenge, "code_challenge_method": "S256", "nonce": "n"})

    def lure(self, callback):
        """The person follows a link of the attacker's page: the tab."""
        site = Website()
        site.pages["/"] = ('<!DOCTYPE html><title>Lure</title><a href="' + callback.replace("&", "&amp;") +
                           '">Look at this</a>')
        try:
            handle = self.browser.open_tab(site.origin + "/")
            page = self.browser.find("the lure", lambda tab: tab.handle == handle and "Look at this" in tab.text)
            self.browser.click(page, "a")
            return self.browser.find("what follows", lambda tab: tab.handle == handle and "Look" not in tab.text)
        finally:
            site.close()

    def known_address(self):
        """The control: whoever has the authorization URL, which only a person is shown, wins by the very same attack."""
        self.clear("work")
        run = self.desk.start("login", "work", "--no-browser", browser=self.browser)
        url = until("the address", lambda: run.out.split("\n")[0])
        before = len(self.browser.opened)
        tab = self.lure(self.callback(url, "bob"))
        self.note(run.end() == 0 and self.desk.subject("work") == "bob", "the control: with the authorization URL", str(run))
        self.note("Signed in" in tab.text and len(self.browser.opened) == before, "the control's tab", str(tab))
        self.desk.forget("work")

    def session_fixation(self):
        """Another user sees everything that the browser is started with, and has the person's browser follow a link."""
        for where in ["running", "cold"]:
            self.desk.forget("work")
            former = []
            if where == "cold":
                self.browser.quit()
                self.browser.prepare()
            else:
                self.browser.close_all()
                former = self.browser.tabs()
            eavesdropper = Eavesdropper("127.0.0.1")
            run = self.desk.start("login", "work", browser=self.browser)
            self.browser.attach()
            page = self.browser.sign_in_page()
            caught = eavesdropper.caught()
            opened = self.browser.opened[-1]
            self.note(opened in [each["url"] for each in caught], f"the control, {where}: the address was seen", str(caught))
            # Of the addresses of other programs of this machine nothing is known.
            own = {urllib.parse.urlsplit(url).netloc for url in (opened, self.desk.sandbox.issuer)}
            gained = [each for each in caught if urllib.parse.urlsplit(each["url"]).netloc in own
                      and (each["status"] not in (404, 410) or each["location"])]
            self.note(not gained, f"{where}: what was seen leads another user nowhere", str(gained))
            self.note(all("state=" not in each["url"] for each in caught), f"{where}: no state was seen", str(caught))
            # The redirect URI is known: it says where the provider's answer goes.
            redirect_uri = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)["redirect_uri"][0]
            for state in ["A" * 43, opened.rsplit("/", 1)[1]]:
                tab = self.lure(self.callback(self.own_request(redirect_uri, state), "bob"))
                self.note(NOTHING in tab.text and "code=" not in tab.url, f"{where}: a forged callback", str(tab))
                self.browser.close_tab(tab.handle)
            # The person is led to the address that was seen, which is spent.
            tab = self.lure(opened)
            self.note("works once" in tab.text, f"{where}: the spent address", str(tab))
            self.browser.close_tab(tab.handle)
            self.browser.approve(page)
            self.note(run.end() == 0 and run.out == "Signed in to work as alice@example.org\n", f"{where}: login", str(run))
            self.note(self.desk.subject("work") == "alice", f"{where}: the person is who they are", self.desk.subject("work"))
            self.only_tab(f"under attack, {where}", "Signed in", former)

    def led_ahead(self):
        """A page that knows the address makes the person's browser spend it: the person signs in as themselves, or again."""
        self.clear("work")
        flow = self.desk.house.new_flow()
        tab = self.lure(flow["open_url"])
        self.note("Sign in as" in tab.text, "the address as a link", str(tab))
        self.browser.approve(tab)
        ended = self.desk.flow(flow, 20)["status"]
        self.note(ended == "completed" and self.desk.subject("work") == "alice", "a sign-in by the link", ended)

    def schemes(self):
        """The answer comes by a link of another scheme: the provider's redirect, the browser's question, xdg-open."""
        with registered(self.desk, self.browser) as agree:
            self.clear("scheme")
            before = self.requests("authorize", "sign_in", "token")
            run, page = self.log_in("scheme")
            self.browser.approve(page)
            agree()
            self.note(run.end() == 0 and "Signed in to scheme as alice" in run.out, "a custom scheme", str(run))
            made = [after - former for former, after in zip(before, self.requests("authorize", "sign_in", "token"))]
            self.note(made == [1, 1, 1], "a custom scheme: requests at the provider", str(made))
            tabs = self.browser.tabs()
            for tab in tabs:
                self.desk.keep(self.browser, tab, "after a custom scheme")
            self.note(len(tabs) <= 2, "a custom scheme: the tabs that are left", str([*map(str, tabs)]))


ATTACKS = ["known_address", "led_ahead", "schemes", "session_fixation"]
