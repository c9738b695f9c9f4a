"""Firefox, driven by Marionette: JSON with its length before it, over a connection to a port that Firefox writes down."""

import base64
import contextlib
import json
import os
import re
import shutil
import socket

from harness import Trouble, read, until, write

from .driving import ELSEWHERE, Browser, Gone, Tab, is_alive

# No page but ours, and no question before it: what a person answers once, on the first day.
PREFERENCES = {
    "app.normandy.enabled": False, "app.update.enabled": False, "browser.aboutwelcome.enabled": False,
    "browser.preonboarding.enabled": False, "browser.shell.checkDefaultBrowser": False, "browser.startup.page": 0,
    "browser.startup.homepage_override.mstone": "ignore", "browser.sessionstore.resume_from_crash": False,
    "browser.safebrowsing.downloads.remote.enabled": False, "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False, "extensions.getAddons.cache.enabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "startup.homepage_welcome_url": "", "termsofuse.bypassNotification": True, "toolkit.telemetry.enabled": False,
    "marionette.port": 0,
    # What is set for tests of web pages would make it another Firefox than a person's.
    "remote.prefs.recommended": False,
}


class Firefox(Browser):
    name = "Firefox"
    package = "firefox-esr"

    def __init__(self, *arguments, public="", **more):
        """`public`: HOST:PORT of a site that counts as one of the Internet; with it everything is as strict as can be."""
        self.preferences = PREFERENCES | ({} if not public else {
            "browser.contentblocking.category": "strict", "dom.security.https_only_mode": True,
            "network.lna.enabled": True, "network.lna.blocking": True, "network.lna.block_trackers": True,
            "network.lna.address_space.public.override": public, "privacy.resistFingerprinting": True,
            "network.dns.localDomains": ELSEWHERE,
        })
        super().__init__(*arguments, **more)
        os.makedirs(self.path("profile"), exist_ok=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in self.preferences.items()]
        write(self.path("profile/user.js"), "".join(lines))
        if self.uid is not None:
            for name in ["profile", "profile/user.js"]:
                shutil.chown(self.path(name), self.uid, self.uid)
        self.connection = None

    def words(self, private):
        program = "firefox-esr" if shutil.which("firefox-esr") else "firefox"
        return ["env", "MOZ_MARIONETTE=1", program, "--profile", f"'{self.path('profile')}'",
                "--remote-allow-system-access", *(["--private-window"] if private else [])]

    def preparation(self):
        return ""

    @property
    def port_file(self):
        return self.path("profile/MarionetteActivePort")

    def prepare(self):
        self.connection = None
        if os.path.exists(self.port_file):
            os.unlink(self.port_file)

    def attach(self):
        if self.connection is not None:
            return

        def port():
            return int(read(self.port_file) or 0)

        def connect():
            try:
                return self.connected(port())
            except OSError:
                return None
        until("Firefox's port", port, 60)
        self.connection = until("Firefox", connect)
        self.connection.settimeout(60)
        self.reader, self.number = self.connection.makefile("rb"), 0
        self.read()
        answer = self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {
            "pageLoadStrategy": "none", "unhandledPromptBehavior": "ignore"}})
        self.pid = answer["capabilities"]["moz:processID"]

    def read(self):
        length = b""
        while True:
            byte = self.reader.read(1)
            if not byte:
                raise Trouble("Firefox has closed the connection")
            if byte == b":":
                return json.loads(self.reader.read(int(length)))
            length += byte

    def call(self, name, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, name, parameters]).encode()
        try:
            self.connection.sendall(b"%d:%s" % (len(message), message))
            _, _, error, result = self.read()
        except (socket.timeout, OSError) as trouble:
            raise Trouble(f"Firefox does not answer {name}: {trouble}") from None
        if error:
            raise Gone(f"{name}: {error['error']}: {error['message']}")
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def at(self, handle, name, **parameters):
        """A command for this tab."""
        self.call("WebDriver:SwitchToWindow", handle=handle)
        return self.call(name, **parameters)

    def call_for_page(self, name, **parameters):
        """That the page did not load is for whoever looks at the tab."""
        try:
            self.call(name, **parameters)
        except Gone as gone:
            if "Reached error page" not in str(gone):
                raise

    def handles(self):
        return self.call("WebDriver:GetWindowHandles")

    def run(self, handle, script):
        """The value of an expression in the page."""
        self.call("WebDriver:SwitchToWindow", handle=handle, focus=False)
        return self.call("WebDriver:ExecuteScript", script=f"return {script}", args=[])

    def chrome(self, script):
        """The value of a function's body in the browser's own window."""
        self.call("Marionette:SetContext", value="chrome")
        try:
            return self.call("WebDriver:ExecuteScript", script=script, args=[])
        finally:
            self.call("Marionette:SetContext", value="content")

    def look(self, handle):
        seen = self.run(handle, "[document.documentURI, document.readyState, document.title, "
                                "document.body && document.body.innerText]")
        if not seen:
            raise Gone(handle)
        uri, state, title, text = seen
        if uri.startswith(("about:neterror", "about:certerror", "about:httpsonlyerror")):
            # The address bar shows the page's address. What the page says is no text of the document.
            why = re.search(r"[?&]e=([^&]*)", uri)
            return Tab(handle, self.call("WebDriver:GetCurrentURL"), title, f"(no page: {why and why.group(1)})")
        if state != "complete" or text is None:
            raise Gone(handle)
        return Tab(handle, uri, title, text)

    def click(self, tab, css):
        found = self.at(tab.handle, "WebDriver:FindElement", using="css selector", value=css)
        self.call_for_page("WebDriver:ElementClick", id=next(iter(found.values())))

    def write(self, tab, css, text):
        """Types into a field, in place of what it holds."""
        found = next(iter(self.at(tab.handle, "WebDriver:FindElement", using="css selector", value=css).values()))
        self.call("WebDriver:ElementClear", id=found)
        self.call("WebDriver:ElementSendKeys", id=found, text=text)

    def wear(self, tab, width, height, scheme, zoom=1):
        """The size of the window before the zoom, and the colours that the user prefers; no width: as it was."""
        self.call("WebDriver:SwitchToWindow", handle=tab.handle)
        size = f"max-width: {width}px; max-height: {height}px" if width else ""
        self.chrome(f"gBrowser.selectedBrowser.style.cssText = '{size}'; gBrowser.selectedBrowser.fullZoom = {zoom};"
                    "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', "
                    f"{int(scheme == 'light')})")

    def go(self, tab, url):
        self.call("WebDriver:SwitchToWindow", handle=tab.handle)
        self.call_for_page("WebDriver:Navigate", url=url)

    def back(self, tab):
        self.at(tab.handle, "WebDriver:Back")

    def history(self, tab):
        self.call("WebDriver:SwitchToWindow", handle=tab.handle)
        return self.chrome("let h = gBrowser.selectedBrowser.browsingContext.sessionHistory; let all = [];"
                           "for (let i = 0; i < h.count; i++) all.push(h.getEntryAtIndex(i).URI.spec); return all")

    def reload(self, tab):
        self.at(tab.handle, "WebDriver:Refresh")

    def open_container_tab(self, url):
        """In one of Firefox's own containers, which have cookies of their own."""
        before = set(self.handles())
        self.call("WebDriver:SwitchToWindow", handle=self.handles()[-1])
        self.chrome(f"gBrowser.addTab({json.dumps(url)}, {{userContextId: 2, triggeringPrincipal: "
                    "Services.scriptSecurityManager.getSystemPrincipal()})")
        return until("the container's tab", lambda: set(self.handles()) - before).pop()

    def open_tab(self, url):
        # The last one that was looked at may be closed.
        self.call("WebDriver:SwitchToWindow", handle=self.handles()[-1])
        handle = self.call("WebDriver:NewWindow", type="tab")["handle"]
        if url != "about:blank":
            self.call("WebDriver:SwitchToWindow", handle=handle)
            self.call_for_page("WebDriver:Navigate", url=url)
        return handle

    def close_tab(self, handle):
        self.at(handle, "WebDriver:CloseWindow")

    def picture(self, tab):
        return base64.b64decode(self.at(tab.handle, "WebDriver:TakeScreenshot", full=False))

    def quit(self):
        if self.connection is None:
            return
        with contextlib.suppress(Trouble):
            self.call("Marionette:Quit", flags=["eForceQuit"])
        self.connection.close()
        self.connection = None
        until("Firefox's end", lambda: not is_alive(self.pid))
