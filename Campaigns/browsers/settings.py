"""Browsers as desktops and people set them: opened by xdg-open, and as strict as their settings let them be."""

import os

from harness import until, write

from .desk import Website
from .driving import ELSEWHERE
from .everyday import Walk

ENTRY = """[Desktop Entry]
Type=Application
Name=The browser of this desk
Exec={} %u
MimeType=x-scheme-handler/http;x-scheme-handler/https;
"""


class Settings(Walk):
    def by_xdg_open(self):
        """No BROWSER: the desktop's default browser, by its desktop file."""
        former = self.clear("work")
        environment = self.desk.environment
        applications = os.path.join(environment["XDG_DATA_HOME"], "applications")
        configuration = os.path.join(environment["HOME"], ".config")
        for path in [applications, configuration]:
            os.makedirs(path, 0o700, exist_ok=True)
        entry, default = os.path.join(applications, "desk.desktop"), os.path.join(configuration, "mimeapps.list")
        write(entry, ENTRY.format(self.browser.opener))
        write(default, "[Default Applications]\nx-scheme-handler/http=desk.desktop\nx-scheme-handler/https=desk.desktop\n")
        try:
            opened = len(self.browser.opened)
            run = self.desk.start("login", "work")
            self.browser.approve(self.browser.sign_in_page(former))
            self.note(run.end() == 0 and "Open this page" not in run.errors, "by xdg-open", str(run))
            self.note(len(self.browser.opened) == opened + 1, "by xdg-open: starts", str(self.browser.opened[opened:]))
            self.only_tab("by xdg-open", "Signed in", former)
        finally:
            os.unlink(entry)
            os.unlink(default)

    def strict(self):
        """HTTPS only, strict about cookies, and pages of the Internet may not reach this machine: the provider is one."""
        self.desk.forget("work", "form")
        here = Website()
        here.pages["/own"] = "<!DOCTYPE html><title>Here</title>"
        public = self.desk.sandbox.issuer.removeprefix("http://")
        home, self.browser = self.browser, type(self.browser)(self.desk, f"{self.browser.name.lower()}-strict", public=public)
        try:
            self.browser.begin()
            for account, where in [("work", "strict"), ("form", "strict, form_post")]:
                former = self.browser.tabs()
                self.sign_in(where, account, beside=former)
            # The control: what the provider's page asks of this machine otherwise is kept from it; http elsewhere too.
            handle = self.browser.open_tab(self.desk.sandbox.issuer + "/")
            page = self.browser.find("the provider's first page", lambda tab: tab.handle == handle and "Issuers" in tab.text)
            self.browser.run(page.handle, f"(fetch('{here.origin}/fetched', {{mode: 'no-cors'}}).catch(() => 0), 0)")
            port = here.origin.rsplit(":", 1)[1]
            self.browser.go(page, f"http://{ELSEWHERE}:{port}/plain")
            self.browser.find("what follows", lambda tab: tab.handle == handle and ELSEWHERE in tab.url)
            self.note(not here.asked("/plain"), "strict, the control: HTTPS only", str([*map(str, self.browser.tabs())]))
            self.note(not here.asked("/fetched"), "strict, the control: the provider's page reaches this machine", "it does")
            handle = self.browser.open_tab(here.origin + "/own")
            until("the site's own page", lambda: here.asked("/own"))
        finally:
            self.browser.quit()
            self.browser = home
            here.close()

    def container_tabs(self):
        """A container of Firefox's, which has cookies of its own: the sign-in is the same."""
        self.clear("work")
        flow = self.desk.begin("work")
        handle = self.browser.open_container_tab(flow["open_url"])
        self.browser.approve(self.browser.find("the provider's page", lambda tab: tab.handle == handle and "Sign in as" in tab.text))
        last = self.browser.find("the last page", lambda tab: tab.handle == handle and "Signed in" in tab.text)
        self.note(self.desk.flow(flow, 20)["status"] == "completed", "a container's tab", str(last))


SETTINGS = ["by_xdg_open", "strict", "container_tabs"]
