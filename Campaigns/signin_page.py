#!/usr/bin/env -S python3 -B
"""The sign-in page of a Supabase account in real Chromium and Firefox, as `ringback login app --page` opens it.

Each way to sign in is gone with mouse and keyboard. Each screen is read: the two words, the size of the window, axe-core.
No password may stand in an address, in the page that follows, in the daemon's log or in the browser's profile.
"""

import os
import re
import sys

from browsers.chromium import Chromium
from browsers.desk import Desk
from browsers.driving import Gone, walks
from browsers.everyday import Walk
from browsers.firefox import Firefox
from harness import play, soon, until
from kind_operations import totp
from pages import MEASURE, axe, look

EMAIL, PASSWORD, WRONG, NEW = "mira@example.org", "Right-Horse-41", "Wrong-Horse-42", "Other-Horse-43"
DONE = "You can close this tab"
GROUND = "getComputedStyle(document.body).backgroundColor"
# Of each field: its border, its ground, and the grounds of what is no field: page, card, buttons.
FIELDS = """(() => {
    const all = words => [...document.querySelectorAll(words)].map(one => getComputedStyle(one))
    const others = all('body, main, button, a.button').map(one => one.backgroundColor)
    return all('input:not([type=hidden])').map(one => [one.borderTopColor, one.backgroundColor, others])
})()"""
# How far down the main button ends.
BUTTON = "[...document.querySelectorAll('form button')].slice(0, 1).map(one => one.getBoundingClientRect().bottom)"
WALKS = ["password", "sign_up", "forgotten", "code_by_mail", "magic_link", "provider", "second_factor", "tabs", "start_again"]
SHORT = ["password", "forgotten", "second_factor", "start_again"]


def contrast(*colours):
    """That of two colours (WCAG 2.2)."""
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


class PageWalk(Walk):
    """One browser's walks on the page. A screen is measured when it is met first."""

    def __init__(self, desk, browser, report, script):
        super().__init__(desk, browser, report)
        self.script, self.measured = script, set()

    def before(self, name):
        """The page in a tab of its own, opened by `ringback`."""
        if not self.browser.is_running:
            self.browser.begin()
        self.desk.forget("app")
        project = self.desk.sandbox.project
        project.control(reset=True)
        project.control(supabase={"users": [{"email": EMAIL, "password": PASSWORD}], "autoconfirm": False})
        self.browser.close_all()
        self.open()

    def open(self):
        opened = len(self.browser.opened)
        self.login = self.desk.start("login", "app", "--page", browser=self.browser)
        tab = self.page("Sign in")
        starts = self.browser.opened[opened:]
        self.note(len(starts) == 1 and starts[0].startswith("http://127.0.0.1:"), "starts of the browser", str(starts))
        self.address = tab.url
        self.note(tab.url.startswith("http://rb-") and ".localhost:" in tab.url, "the page's own name", tab.url)
        words = self.browser.run(tab.handle, "document.querySelector('.words b').textContent")
        said = self.login.says("these two words")
        self.note(len(words.split()) == 2 and f"these two words: {words}." in said, "the two words", f"{words}: {said}")
        return tab

    def page(self, heading, text=""):
        """The tab whose page has the heading and the text."""
        tab = self.browser.find(f"the screen “{heading}” “{text}”",
                                lambda tab: f"{heading} - Ringback" == tab.title and text in tab.text)
        content = self.browser.run(tab.handle, "document.documentElement.outerHTML")
        told = [secret for secret in (PASSWORD, WRONG, NEW) if secret in content or secret in tab.url]
        self.note(not told, f"“{heading}” tells no password", str(told))
        return tab

    def screen(self, name, heading, text=""):
        """As page(), and measures the screen the first time."""
        tab = self.page(heading, text)
        if name in self.measured:
            return tab
        self.measured.add(name)
        self.desk.keep(self.browser, tab, name)
        grounds = set()
        for scheme in ["light", "dark"]:
            self.browser.wear(tab, 320, 640, scheme)
            self.fits(tab, f"{name}, {scheme}, 320 pixels")
            grounds.add(until("the colours", lambda: self.browser.run(tab.handle, GROUND)))
            for border, field, others in self.browser.run(tab.handle, FIELDS):
                self.note(field not in others and min(contrast(border, ground) for ground in [field, *others[:2]]) >= 3,
                          f"{name}, {scheme}: a field is seen to be one", f"{border}, {field}, {others}")
            if self.script:
                wrong, held = look(self.browser, tab.handle, self.script)
                self.note(not wrong and held > 0, f"{name}, {scheme}: axe-core", str(wrong))
        self.note(len(grounds) == 2, f"{name}: light and dark", str(grounds))
        for width, height in [(390, 844), (1050, 760)]:
            self.browser.wear(tab, width, height, "light")
            until("the new size", lambda: self.browser.run(tab.handle, "innerWidth") == width)
            for bottom in self.browser.run(tab.handle, BUTTON):
                self.note(bottom <= height, f"{name}, {width} x {height}: no scrolling to the main button", str(bottom))
        self.browser.wear(tab, 1280, 900, "light", zoom=4)
        self.fits(tab, f"{name}, 400 %")
        self.browser.wear(tab, 0, 0, "light")
        return tab

    def fits(self, tab, where):
        # A resize reaches the page a moment later.
        seen = until("the new size", lambda: self.narrow(tab))
        self.note(seen["width"] <= seen["window"], f"{where}: no horizontal scrolling", f"{seen['width']} > {seen['window']}")
        self.note(seen["headings"] == 1 and seen["mains"] == 1 and seen["border"] not in ("", "0px"), where, str(seen))

    def narrow(self, tab):
        seen = self.browser.run(tab.handle, MEASURE)
        return seen if 250 <= seen["window"] <= 320 else None

    def send(self, tab, action, **fields):
        """Fills a form and sends it."""
        form = f"form:has(input[name=action][value={action}])"
        for name, text in fields.items():
            self.browser.write(tab, f"{form} input[name={name}]", text)
        self.browser.click(tab, f"{form} button")

    def follow(self, path, name, heading):
        """The link of the first screen, and the screen behind it."""
        self.browser.click(self.page("Sign in"), f"a[href='{path}']")
        return self.screen(name, heading)

    def letter(self):
        return self.desk.sandbox.project.look("mailbox")["letters"][-1]

    def is_wrong(self, tab, field, text):
        """The complaint stands beside its field, and belongs to it for a screen reader."""
        seen = self.browser.run(tab.handle, f"(() => {{ let e = document.querySelector('[name={field}][aria-invalid]'); "
                                "return e ? document.getElementById(e.getAttribute('aria-describedby').split(' ').pop()).innerText : '' })()")
        self.note(text in seen, f"the complaint beside {field}", repr(seen))

    def ends(self, where, email=EMAIL):
        """The sign-in is done: for the tab, for the terminal."""
        tab = self.screen("done", "Signed in", DONE)
        status = self.login.end()
        self.note(status == 0 and f"Signed in to app as {email}" in self.login.out, f"{where}: the terminal", str(self.login))
        self.look_back(tab, where)
        return tab

    def look_back(self, tab, where):
        history = self.browser.history(tab)
        told = [url for url in history if any(secret in url for secret in (PASSWORD, WRONG, NEW)) or "/enter/" in url]
        self.note(not told, f"{where}: the history", str(told))

    def password(self):
        tab = self.screen("sign in", "Sign in")
        self.send(tab, "password", email=EMAIL, password=WRONG)
        tab = self.screen("wrong password", "Sign in", "Wrong email")
        self.is_wrong(tab, "password", "Wrong email, phone number or password")
        typed = self.browser.run(tab.handle, "[document.querySelector('[name=email]').value, "
                                 "document.querySelector('[name=password]').value]")
        self.note(typed == [EMAIL, ""], "what was typed", str(typed))
        self.browser.reload(tab)
        self.note("Wrong email" in self.page("Sign in").text, "a reload sends no form again", str(tab))
        self.send(tab, "password", email=EMAIL, password=PASSWORD)
        tab = self.ends("password")
        self.browser.reload(tab)
        self.after(tab, "reload when done")
        self.browser.back(tab)
        self.after(tab, "back when done")
        typed = self.browser.run(tab.handle, "[...document.querySelectorAll('[type=password]')].map(one => one.value)")
        self.note(not any(typed), "back shows no password that was typed", str(typed))

    def after(self, tab, where):
        """What a tab shows once the sign-in is over: that it is done, and no form."""
        def loaded():
            try:
                return self.browser.look(tab.handle)
            except Gone:
                return None
        until("a page", loaded)
        soon(lambda: (seen := loaded()) and DONE in seen.text, 5)
        seen = loaded()
        self.note(seen and DONE in seen.text, where, str(seen))

    def sign_up(self):
        self.browser.back(self.follow("/sign-up", "sign-up", "Create an account"))
        tab = self.follow("/sign-up", "sign-up", "Create an account")
        self.send(tab, "sign_up", email="noor@example.org", password="x")
        tab = self.screen("weak password", "Create an account", "assword")
        until("the complaint", lambda: self.browser.run(tab.handle, "!!document.querySelector('[aria-invalid]')"))
        self.send(tab, "sign_up", email="noor@example.org", password=NEW)
        tab = self.screen("code", "Enter the code", "noor@example.org")
        self.send(tab, "code", code="000000")
        tab = self.browser.find("the complaint", lambda tab: self.browser.run(tab.handle, "!!document.querySelector('#code-wrong')"))
        self.is_wrong(tab, "code", "code")
        self.screen("wrong code", "Enter the code")
        self.send(tab, "code", code=self.letter()["code"])
        self.ends("sign-up", "noor@example.org")

    def forgotten(self):
        tab = self.follow("/forgotten", "forgotten", "Forgotten password")
        self.send(tab, "forgotten", email=EMAIL)
        tab = self.screen("code", "Enter the code", EMAIL)
        self.send(tab, "code", code=self.letter()["code"])
        tab = self.screen("new password", "New password")
        self.send(tab, "new_password", password=NEW)
        self.ends("forgotten")

    def code_by_mail(self):
        tab = self.follow("/mail", "mail", "Sign in by email")
        self.send(tab, "mail", email=EMAIL)
        tab = self.page("Enter the code", EMAIL)
        self.browser.click(tab, "a[href='/resend']")
        tab = self.screen("resend", "Send the message again")
        count = "parseInt((document.querySelector('main').innerText.match(/(\\d+) seconds/) || [0, 0])[1])"
        first = self.browser.run(tab.handle, count)
        is_shut = self.browser.run(tab.handle, "document.querySelector('button').disabled")
        self.note(0 < first <= 60 and is_shut, "the count-down", f"{first}, {is_shut}")

        def fewer():
            try:
                return 0 < (self.browser.run(tab.handle, count) or 0) < first
            except Gone:
                return False
        until("the count-down to go on by itself", fewer)
        self.note(True, "the count-down goes on by itself")
        former = len(self.desk.sandbox.project.look("mailbox")["letters"])
        self.browser.find("the end of the count-down", lambda tab: "You can ask for another message now." in tab.text, 80)
        self.send(self.screen("resend now", "Send the message again"), "resend")
        tab = self.page("Enter the code", EMAIL)
        letters = self.desk.sandbox.project.look("mailbox")["letters"]
        self.note(len(letters) == former + 1, "another message", str(len(letters) - former))
        self.send(tab, "code", code=self.letter()["code"])
        self.ends("code by mail")

    def magic_link(self):
        self.send(self.follow("/mail", "mail", "Sign in by email"), "mail", email=EMAIL)
        first = self.page("Enter the code", EMAIL)
        self.browser.open_tab(self.letter()["link"])
        last = self.browser.find("the link's tab", lambda tab: tab.handle != first.handle and DONE in tab.text)
        self.note("/done" in last.url, "the link's tab", str(last))
        self.note(self.login.end() == 0, "magic link: the terminal", str(self.login))
        self.browser.reload(first)
        self.after(first, "the first tab after the link")

    def provider(self):
        tab = self.page("Sign in")
        self.browser.click(tab, "a.button")
        self.browser.approve(self.browser.sign_in_page())
        status = self.login.end()
        self.note(status == 0 and "alice@example.org" in self.login.out, "provider: the terminal", str(self.login))
        self.look_back(self.browser.page(DONE), "provider")

    def second_factor(self):
        tab = self.page("Sign in")
        self.send(tab, "password", email=EMAIL, password=PASSWORD)
        self.ends("before the second factor")
        _, factor = self.desk.house.api("POST", "/v1/accounts/app/factors", {"factor_type": "totp"})
        path = f"/v1/accounts/app/factors/{factor['id']}"
        _, challenge = self.desk.house.api("POST", f"{path}/challenge", {})
        secret = factor["totp"]["secret"]
        status, verified = self.desk.house.api("POST", f"{path}/verify", {"challenge_id": challenge["id"], "code": totp(secret)})
        self.note(status == 200, "a second factor", str(verified))
        self.desk.forget("app")
        self.browser.close_all()
        self.send(self.open(), "password", email=EMAIL, password=PASSWORD)
        tab = self.screen("second factor", "Second factor", "authenticator app")
        self.send(tab, "factor", code="000000")
        self.browser.find("the complaint", lambda tab: self.browser.run(tab.handle, "!!document.querySelector('.wrong')"))
        self.is_wrong(tab, "code", "code")
        self.screen("wrong factor", "Second factor")
        self.send(tab, "factor", code=totp(secret))
        self.ends("second factor")
        level = self.desk.house.account("app").get("aal")
        self.note(level == "aal2", "the level", str(level))

    def tabs(self):
        """A second tab shows the same sign-in, and its end."""
        first = self.page("Sign in")
        second = self.browser.open_tab(self.address)
        tab = self.browser.find("the second tab", lambda tab: tab.handle == second and "Sign in" in tab.text)
        self.note(tab.text == first.text, "the second tab", str(tab))
        self.send(first, "password", email=EMAIL, password=PASSWORD)
        self.ends("tabs")
        self.send(tab, "password", email=EMAIL, password=WRONG)
        self.after(tab, "a form of the second tab afterwards")

    def start_again(self):
        """The start address works once, and the page is of no use without its cookie."""
        tab = self.page("Sign in")
        spent = self.browser.open_tab(self.browser.opened[-1])
        used = self.browser.find("the used address", lambda tab: tab.handle == spent and tab.text)
        self.desk.keep(self.browser, used, "start address used")
        self.note("works once" in used.text or "was used" in used.text, "a start address that was used", str(used))
        self.browser.close_tab(spent)
        other = self.browser.open_tab(self.address + "enter/nonsense")
        self.screen("elsewhere", "Not this browser")
        self.browser.close_tab(other)
        self.send(tab, "password", email=EMAIL, password=PASSWORD)
        self.ends("start again")


def kept(browser, report):
    """What the browser left on the disk, and the daemon in its log, has no password."""
    places = [browser.desk.house.log_path]
    for place, _, names in os.walk(browser.path("profile")):
        places += [os.path.join(place, name) for name in names]
    told = []
    for place in filter(os.path.isfile, places):
        with open(place, "rb") as file:
            content = file.read()
        told += [place for secret in (PASSWORD, WRONG, NEW)
                 if secret.encode() in content or secret.encode("utf-16-le") in content]
    report.note(not told, f"{browser.name}: no password in the profile and the daemon's log", str(told))


def campaign(chosen, report, places):
    script = axe()
    if script is None:
        report.skip("axe-core", "PyPI is out of reach, and .build/axe is not there")
    desk = places.add(Desk(chosen.bin, chosen.pages), chosen.keep)
    for kind in [Chromium] if chosen.short and not chosen.browser else [Chromium, Firefox]:
        if chosen.browser.lower() not in kind.name.lower():
            continue
        browser, before = kind(desk, kind.name.lower()), report.passed
        walk = PageWalk(desk, browser, report, script)
        walks(chosen, report, walk, WALKS, short=SHORT)
        browser.quit()
        kept(browser, report)
        print(f"{kind.name}: {report.passed - before} passed")
    print("\nWhat the screens say")
    for text, where in sorted(desk.shown.items()):
        print(f"  {text}\n    {where[0]}")


if __name__ == "__main__":
    sys.exit(play(
        __doc__, campaign, only=("", "only walks with this in their names"), browser=("", "only this browser"),
        pages=("", "a directory for the text and a picture of each page")))
