"""Chromium, driven by the DevTools protocol over two named pipes that its opener hands it as descriptors 3 and 4."""

import base64
import json
import os
import select
import time

from harness import Trouble, until, write

from .driving import ELSEWHERE, Browser, Gone, Tab, is_alive


class Chromium(Browser):
    name = "Chromium"
    package = "chromium"
    flags = ["--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--password-store=basic",
             # Its own sandbox needs what containers and root do not have; the pages are ours.
             "--no-sandbox"]

    def __init__(self, *arguments, public="", **more):
        """`public`: HOST:PORT of a site that counts as one of the Internet; with it everything is as strict as can be."""
        if public:
            self.flags = [*self.flags, f"--ip-address-space-overrides={public}=public",
                          f"--host-resolver-rules='MAP {ELSEWHERE} 127.0.0.1'"]
        super().__init__(*arguments, **more)
        if public:
            os.makedirs(self.path("profile/Default"))
            write(self.path("profile/Default/Preferences"), json.dumps({"https_only_mode_enabled": True, "profile": {"cookie_controls_mode": 1}}))

    def words(self, private):
        return ["chromium", *self.flags, f"--user-data-dir='{self.path('profile')}'", "--remote-debugging-pipe",
                *(["--incognito"] if private else [])]

    def preparation(self):
        return f"exec 3<>'{self.path('in')}' 4<>'{self.path('out')}'\n"

    def prepare(self):
        """New pipes: what an earlier browser left in the old ones is of no use."""
        for name in ["in", "out"]:
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
            os.mkfifo(self.path(name), 0o600)
        self.writing = os.open(self.path("in"), os.O_RDWR | os.O_CLOEXEC)
        self.reading = os.open(self.path("out"), os.O_RDWR | os.O_CLOEXEC)
        self.rest, self.number, self.sessions, self.pid = b"", 0, {}, None

    def attach(self):
        # The answer waits in the pipe until there is a browser.
        if self.pid is None:
            processes = self.call("SystemInfo.getProcessInfo", seconds=60)["processInfo"]
            self.pid = next(process["id"] for process in processes if process["type"] == "browser")

    def call(self, method, session=None, seconds=20, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            while b"\0" not in self.rest:
                if not select.select([self.reading], [], [], max(0, deadline - time.monotonic()))[0]:
                    raise Trouble(f"Chromium does not answer {method}")
                self.rest += os.read(self.reading, 65_536)
            one, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(one)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Gone(f"{method}: {answer['error']}")
                return answer["result"]

    def targets(self):
        return {target["targetId"]: target for target in self.call("Target.getTargets")["targetInfos"]
                if target["type"] in ("page", "tab") and not target["url"].startswith("devtools:")}

    def handles(self):
        return [handle for handle, target in self.targets().items() if target["type"] == "page"]

    def session(self, handle):
        if handle not in self.sessions:
            self.sessions[handle] = self.call("Target.attachToTarget", targetId=handle, flatten=True)["sessionId"]
        return self.sessions[handle]

    def run(self, handle, script):
        answer = self.call("Runtime.evaluate", self.session(handle), expression=script, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise Gone(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def look(self, handle):
        seen = self.run(handle, "document.readyState == 'complete' && [location.href, document.title, document.body.innerText]")
        target = self.targets().get(handle)
        if not seen or target is None:
            raise Gone(handle)
        # Where a page did not load, the address bar shows its address, and the document has another.
        return Tab(handle, target["url"] if seen[0].startswith("chrome-error:") else seen[0], seen[1], seen[2])

    def click(self, tab, css):
        session = self.session(tab.handle)
        self.call("Target.activateTarget", targetId=tab.handle)
        # A page gets no click of the mouse before it has been drawn.
        where = self.run(tab.handle, "(async () => { for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame); "
                                     f"let e = document.querySelector({json.dumps(css)}); e.scrollIntoView(); "
                                     "let r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()")
        for kind in ["mousePressed", "mouseReleased"]:
            self.call("Input.dispatchMouseEvent", session, type=kind, x=where[0], y=where[1], button="left", clickCount=1)

    def write(self, tab, css, text):
        """Types into a field, in place of what it holds."""
        self.call("Target.activateTarget", targetId=tab.handle)
        self.run(tab.handle, f"(() => {{ let e = document.querySelector({json.dumps(css)}); e.focus(); e.select() }})()")
        self.call("Input.insertText", self.session(tab.handle), text=text)

    def wear(self, tab, width, height, scheme, zoom=1):
        """The size of the window before the zoom, and the colours that the user prefers; no width: as it was."""
        session = self.session(tab.handle)
        if width:
            self.call("Emulation.setDeviceMetricsOverride", session, width=width // zoom, height=height // zoom,
                      deviceScaleFactor=zoom, mobile=False)
        else:
            self.call("Emulation.clearDeviceMetricsOverride", session)
        self.call("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def go(self, tab, url):
        """As from the address bar."""
        self.call("Page.navigate", self.session(tab.handle), url=url)

    def back(self, tab):
        session = self.session(tab.handle)
        history = self.call("Page.getNavigationHistory", session)
        if history["currentIndex"] == 0:
            raise Trouble("there is nothing to go back to")
        self.call("Page.navigateToHistoryEntry", session, entryId=history["entries"][history["currentIndex"] - 1]["id"])

    def history(self, tab):
        return [entry["url"] for entry in self.call("Page.getNavigationHistory", self.session(tab.handle))["entries"]]

    def reload(self, tab):
        self.call("Page.reload", self.session(tab.handle))

    def open_tab(self, url):
        return self.call("Target.createTarget", url=url)["targetId"]

    def close_tab(self, handle):
        self.call("Target.closeTarget", targetId=handle)

    def picture(self, tab):
        self.call("Target.activateTarget", targetId=tab.handle)
        return base64.b64decode(self.call("Page.captureScreenshot", self.session(tab.handle), format="png")["data"])

    def quit(self):
        if getattr(self, "pid", None) is None:
            return
        self.call("Browser.close")
        until("Chromium's end", lambda: not is_alive(self.pid))
        self.pid = None
        os.close(self.writing)
        os.close(self.reading)
