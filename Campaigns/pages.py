#!/usr/bin/env -S python3 -B
"""The pages of the callback listener in real Chromium and Firefox: sizes, zoom, light and dark, both languages, axe-core.

Each page is reached as a user reaches it, at a real daemon and the sandbox. `--pictures DIR` keeps a picture of every page
at 320, 768 and 1280 pixels, light and dark. axe-core (from PyPI, kept below .build) looks for what keyboards and screen
readers need, and for the contrast of every text.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile

from browsers.chromium import Chromium
from browsers.driving import Gone, Tab
from browsers.firefox import Firefox
from harness import ROOT, Trouble, play, progress, read, table, until, write
from house import House
from kinds import openid_account

AXE = "axe-playwright-python==0.1.8"
LONG = "a-long-name." * 5 + "abcd"
LANGUAGES = {"en": "en-US,en;q=0.9", "ru": "ru-RU,ru;q=0.9,en;q=0.8"}
SIZES = [(320, 640), (768, 1024), (1280, 900)]
MEASURE = """(() => {
    const seen = document.querySelector('main'), root = document.documentElement
    return {lang: root.lang, title: document.title, headings: document.querySelectorAll('h1').length,
            mains: document.querySelectorAll('main').length, text: document.body.innerText,
            width: root.scrollWidth, window: root.clientWidth, border: seen ? getComputedStyle(seen).borderTopWidth : '',
            ground: getComputedStyle(document.body).backgroundColor, url: location.href}
})()"""


class Headless(Chromium):
    flags = [*Chromium.flags, "--headless=new", "--hide-scrollbars"]

    def begin(self, url="about:blank"):
        super().begin(url)
        # A headless browser may be there before its first tab.
        self.handle = until("a tab", lambda: next(iter(self.handles()), None))
        self.agent = self.call("Browser.getVersion")["userAgent"]

    def ask(self, method, **parameters):
        return self.call(method, self.session(self.handle), **parameters)

    def wear(self, width, height, scheme, language, factor=1):
        """The size of the window in CSS pixels, the colours and the language that the user prefers."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=factor, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Network.setUserAgentOverride", userAgent=self.agent, acceptLanguage=LANGUAGES[language])

    def visit(self, url):
        """What the page is like that the address leads to."""
        failure = self.ask("Page.navigate", url=url).get("errorText")
        if failure:
            raise Trouble(f"{self.name} cannot open {url}: {failure}")
        until("the page", lambda: self.run(self.handle, "document.readyState == 'complete' && location.href != 'about:blank'"))
        return self.run(self.handle, MEASURE)

    def photograph(self, path):
        content = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))


class HeadlessFirefox(Firefox):
    """Firefox without a display, with the same calls."""

    width, factor = 1280, 1

    def words(self, private):
        return ["env", "MOZ_HEADLESS=1", "MOZ_HEADLESS_WIDTH=1600", "MOZ_HEADLESS_HEIGHT=1200", *super().words(private)]

    def begin(self, url="about:blank"):
        super().begin(url)
        self.handle = until("a tab", lambda: next(iter(self.handles()), None))

    @property
    def tab(self):
        return Tab(self.handle, "", "", "")

    def wear(self, width, height, scheme, language, factor=1):
        self.width, self.factor = width, factor
        super().wear(self.tab, width * factor, height * factor, scheme, zoom=factor)
        words = ", ".join(part.split(";")[0] for part in LANGUAGES[language].split(","))
        self.chrome(f"Services.prefs.setStringPref('intl.accept_languages', {json.dumps(words)})")

    def visit(self, url):
        self.run(self.handle, "window.isFormer = true")
        self.go(self.tab, url)

        def arrived():
            try:
                if not self.run(self.handle, "!window.isFormer && document.readyState == 'complete'"):
                    return None
                seen = self.run(self.handle, MEASURE)
            except Gone:
                return None
            # A new size reaches the page a moment later, and another site begins without the zoom.
            if self.width - 30 <= seen["window"] <= self.width:
                return seen
            self.chrome(f"gBrowser.selectedBrowser.fullZoom = {self.factor}")
            return None
        return until("the page", arrived)

    def photograph(self, path):
        with open(path, "wb") as file:
            file.write(self.picture(self.tab))


def axe():
    """The text of axe-core, from a package that ships it; None without PyPI."""
    path = os.path.join(ROOT, ".build/axe/axe.min.js")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory() as place:
            words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest",
                     place, AXE]
            try:
                if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode != 0:
                    return None
            except subprocess.TimeoutExpired:
                return None
            wheel = zipfile.ZipFile(os.path.join(place, os.listdir(place)[0]))
            name = next(name for name in wheel.namelist() if name.endswith("/axe.min.js"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(wheel.read(name))
    return read(path)


def look(browser, handle, script):
    """What axe-core says of a page: (what is wrong: its rule and the elements, how many rules hold)."""
    found = browser.run(handle, f"(() => {{ {script}\nreturn window.axe.run(document, {{resultTypes: ['violations']}}).then(found => "
                        "JSON.stringify([found.violations.map(one => [one.id, one.nodes.map(node => node.html)]), "
                        "found.passes.length])) })()")
    return json.loads(found)


class Walk:
    """Reaches each page, and gives the address at which it can be loaded again."""

    def __init__(self, house, browser, report):
        self.house, self.browser, self.report = house, browser, report

    def error(self, flow, error):
        """The callback with which the provider says no."""
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(flow["authorization_url"]).query)
        answer = {"error": error, "state": asked["state"][0], "iss": self.house.sandbox.issuer}
        return f"{flow['redirect_uri']}?{urllib.parse.urlencode(answer)}"

    def pages(self):
        """(name, address, account that is named) of each page; the port stays open, since a sign-in waits there."""
        waiting = self.house.new_flow("home")
        base = waiting["redirect_uri"].split("/callback")[0]
        self.browser.wear(1280, 900, "light", "en")
        approve, flow = self.house.sandbox.approve, self.house.new_flow("work")
        code = approve(flow["authorization_url"])
        yield "done", self.follow(code, "Signed in"), "work"
        self.house.api("DELETE", "/v1/accounts/work/session")
        yield "denied", self.follow(self.error(self.house.new_flow("work"), "access_denied"), "Sign-in declined"), "work"
        yield "failed", self.follow(self.error(self.house.new_flow("work"), "server_error"), "Sign-in failed"), "work"
        flow = self.house.new_flow("work", timeout=1)
        code = approve(flow["authorization_url"])
        self.house.api("GET", f"/v1/flows/{flow['id']}?wait=20", timeout=40)
        yield "expired", self.follow(code, "The sign-in took too long"), "work"
        flow = self.house.new_flow(LONG)
        yield "long-name", self.follow(approve(flow["authorization_url"]), "Signed in"), LONG
        yield "noted", base + "/noted", None
        yield "older", base + "/older", None
        spent = self.house.new_flow("work")["open_url"]
        self.browser.visit(spent)
        yield "used", spent, None
        yield "not-found", self.follow(base + "/other?code=secret#access_token=secret", "No sign-in here"), None

    def follow(self, url, heading):
        seen = self.browser.visit(url)
        right = heading in seen["text"] and "secret" not in seen["url"] and "code=" not in seen["url"]
        self.report.note(right, f"the page “{heading}”", f"{seen['url']}: {seen['text']!r}")
        # Without the empty fragment, with which the browser would only jump within the page.
        address = seen["url"].rstrip("#")
        again = self.browser.visit(address)
        self.report.note(again["text"] == seen["text"], f"a reload of “{heading}”", f"{again['text']!r}")
        return address


def check(walk, name, url, account, chosen, script):
    browser, note = walk.browser, walk.report.note
    grounds = set()
    for language in LANGUAGES:
        # The short form: light in English, dark in Russian.
        schemes = [["light"], ["dark"]][language == "ru"] if chosen.short else ["light", "dark"]
        for scheme in schemes:
            for width, height in SIZES[:1] if chosen.short else SIZES:
                where = f"{name}, {language}, {scheme}, {width}"
                browser.wear(width, height, scheme, language)
                seen = browser.visit(url)
                grounds.add((scheme, seen["ground"]))
                note(seen["lang"] == language and seen["headings"] == 1 and seen["mains"] == 1, where, str(seen))
                note("Ringback" in seen["title"] and "Ringback" in seen["text"], f"{where}: the product's name", str(seen))
                note(seen["border"] not in ("", "0px"), f"{where}: the stylesheet is allowed", str(seen))
                note(seen["width"] <= seen["window"], f"{where}: no horizontal scrolling", f"{seen['width']} > {seen['window']}")
                if account:
                    note(account in seen["text"] and "127.0.0.1" in seen["text"], f"{where}: whose it is", str(seen))
                if chosen.pictures:
                    picture = f"{browser.name.lower()}-{name}-{language}-{scheme}-{width}.png"
                    browser.photograph(os.path.join(chosen.pictures, picture))
            if script:
                violations, passed = look(browser, browser.handle, script)
                note(not violations and passed > 0, f"{name}, {language}, {scheme}: axe-core", str(violations))
        # 400 % of a window of 1280 pixels, and letters of double size in a small one.
        browser.wear(320, 225, "light", language, factor=4)
        browser.visit(url)
        browser.run(browser.handle, "document.documentElement.style.fontSize = '200%'; true")
        seen = browser.run(browser.handle, MEASURE)
        note(seen["width"] <= seen["window"], f"{name}, {language}: 400 % with large letters",
             f"{seen['width']} > {seen['window']}")
    note(len(grounds) == 2, f"{name}: light and dark", str(grounds))


def campaign(chosen, report, places):
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    write(house.configuration, "".join(
        openid_account(name, house.sandbox.issuer, ["openid"]) for name in ["work", "home", f'"{LONG}"']))
    house.sandbox.control(reset=True, auto_approve="alice")
    house.start()
    if chosen.pictures:
        os.makedirs(chosen.pictures, exist_ok=True)
    script = axe()
    if script is None:
        report.skip("axe-core", "PyPI is out of reach, and .build/axe is not there")
    for kind in [Headless] if chosen.short else [Headless, HeadlessFirefox]:
        browser = kind(house, kind.name.lower())
        browser.begin()
        try:
            walk, rows = Walk(house, browser, report), []
            # All of them first: the port of the pages is kept open by a sign-in, which has an end.
            for name, url, account in list(walk.pages()):
                started = time.monotonic()
                check(walk, name, url, account, chosen, script)
                rows.append((name, f"{time.monotonic() - started:.1f}"))
            table(f"the pages in {kind.name}", ["page", "s"], rows)
        finally:
            browser.quit()
    if chosen.pictures:
        progress(f"the pictures are in {chosen.pictures}")


if __name__ == "__main__":
    sys.exit(play(__doc__, campaign, pictures=("", "a directory for a picture of each page")))
