"""Browsers that are not where the daemon is: of another uid, in another network. A stand-in for containers and for other
machines. Needs root.
"""

import os
import re
import subprocess

from harness import Relay
from hosts_network import Namespace

from .desk import STRANGER
from .everyday import NOTHING, Walk

WALKS = ["another_uid", "another_network"]


class Elsewhere(Walk):
    """Walks with browsers of their own, of the kind that the walk was made with."""

    def another(self, label, **more):
        browser = type(self.browser)(self.desk, f"{self.browser.name.lower()}-{label}", **more)
        browser.prepare()
        return browser

    def shown_address(self, run):
        """The address that `login` shows in the end."""
        return re.search(r"Open this page in a browser:\s+(\S+)", run.errors).group(1)

    def pasted(self, run, where, tab):
        """The person copies the address of the page that did not load, and pastes it."""
        self.note("code=" in tab.url and "state=" in tab.url, f"{where}: the callback stands in the address bar", str(tab))
        complete = self.desk.start("complete", tab.url)
        self.note(complete.end() == 0, f"{where}: ringback complete", str(complete))
        self.note(run.end() == 0 and "Signed in to work as alice@example.org" in run.out, f"{where}: login", str(run))

    def another_uid(self):
        """As in a container that maps users, but shares the network."""
        self.desk.forget("work", "peer")
        browser = self.another("uid", uid=STRANGER)
        try:
            run = self.desk.start("login", "work", browser=browser)
            browser.attach()
            tab = browser.page(NOTHING)
            self.desk.keep(browser, tab, "another uid, the address that was opened")
            self.note("/start/" in tab.url, "another uid: the address is not given away", str(tab))
            run.says("Open this page in a browser")
            # A browser that takes longer than five seconds to start is named when it has asked.
            errors = run.says(f"requested by uid {STRANGER}")
            self.note("callback_peer_uids" in errors, "another uid: why", errors)
            url = self.shown_address(run)
            self.note("state=" in url, "another uid: the address that is shown", url)
            browser.go(tab, url)
            browser.approve(browser.sign_in_page())
            tab = browser.find("the callback", lambda tab: NOTHING in tab.text and "/callback/" in tab.url)
            self.desk.keep(browser, tab, "another uid, the callback")
            self.note(self.desk.subject("work") is None, "another uid: its callback does not count", "it does")
            self.pasted(run, "another uid", tab)
            # An account that names the uid: everything is as at home.
            browser.quit()
            browser.prepare()
            home, self.browser = self.browser, browser
            try:
                run = self.desk.start("login", "peer", browser=browser)
                browser.attach()
                browser.approve(browser.sign_in_page())
                self.note(run.end() == 0 and "Signed in to peer as alice" in run.out and "Open this" not in run.errors,
                          "callback_peer_uids", str(run))
                self.only_tab("callback_peer_uids", "Signed in")
            finally:
                self.browser = home
        finally:
            browser.quit()

    def another_network(self):
        """As in a container with a network of its own, or on another machine: 127.0.0.1 is another place there."""
        self.desk.forget("work")
        self.desk.elsewhere = network = Namespace()
        # The provider is reached there under the same address.
        port = int(self.desk.sandbox.issuer.rsplit(":", 1)[1])
        provider = Relay(network.listen(port), port)
        browser = self.another("network", inside=network.holder.pid)
        try:
            run = self.desk.start("login", "work", browser=browser)
            browser.attach()
            tab = browser.find("the address that was opened", lambda tab: "/start/" in tab.url and tab.text)
            self.desk.keep(browser, tab, "another network, the address that was opened")
            errors = run.says("Open this page in a browser")
            self.note("The sign-in page has not been opened yet." in errors, "another network: why", errors)
            browser.go(tab, self.shown_address(run))
            browser.approve(browser.sign_in_page())
            tab = browser.find("the callback", lambda tab: "/callback/" in tab.url and "/authorize" not in tab.url)
            self.desk.keep(browser, tab, "another network, the callback")
            self.pasted(run, "another network", tab)
        finally:
            browser.quit()
            provider.close()
            network.close()
            self.desk.elsewhere = None


def missing():
    """What this machine cannot show: the walks, and why."""
    if os.geteuid() != 0:
        return {name: "needs root" for name in WALKS}
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        return {"another_network": "the kernel lends no network namespace"}
    return {}
