"""What people do every day with a sign-in page: cold and running browsers, private windows, tabs, back, reload; and browsers
as desktops and people set them: opened by xdg-open, and as strict as their settings let them be.
"""

import os
import re
import time

from harness import until, write

from .desk import Website
from .driving import ELSEWHERE

DONE = "You can close this tab and go back to the program that asked you to sign in."
USED = "This address works once"
NOTHING = "This page belongs to no sign-in that is in progress."
# At the head of each page of Ringback.
PRODUCT = "Ringback"


class Walk:
    """One browser's walks: each looks at every tab that is left, counts the browser's starts and the provider's requests."""

    def __init__(self, desk, browser, report):
        self.desk, self.browser, self.report = desk, browser, report
        self.rows = []

    def note(self, is_right, where, why=""):
        self.report.note(is_right, f"{self.browser.name}: {where}", why)

    def requests(self, *endpoints):
        counted = [issuer.counters["requests"] for issuer in [self.desk.sandbox, self.desk.sandbox.project]]
        return [sum(each[endpoint] for each in counted) for endpoint in endpoints]

    def only_tab(self, where, told, beside=()):
        """Of the tabs that were opened since, there is one, and it says so."""
        handles = {tab.handle for tab in beside}
        last = self.browser.page(told)
        tabs = [tab for tab in self.browser.tabs() if tab.handle not in handles]
        self.note(len(tabs) == 1 and NOTHING not in last.text, f"{where}: the tab that is left", str([*map(str, tabs)]))
        self.desk.keep(self.browser, last, where)
        return last

    def sign_in(self, where, account, user="alice", words=("login",), private=False, told="Signed in", beside=(),
                printed=None, asks=("authorize", "sign_in", "token"), asked=None):
        """A whole sign-in: (the last tab, seconds from the start of `ringback` to its end, but for the person's)."""
        opened, before = len(self.browser.opened), self.requests(*asks)
        started = time.monotonic()
        run = self.desk.start(*words, account, browser=self.browser, private=private)
        self.browser.attach()
        page = self.browser.sign_in_page(beside)
        self.desk.keep(self.browser, page, f"{where}, the provider's page")
        shown = time.monotonic() - started
        self.browser.approve(page, user)
        status = run.end()
        printed = f"Signed in to {account} as {user}@example.org\n" if printed is None else printed
        self.note(status == 0 and run.out.startswith(printed), f"{where}: {' '.join(words)}", str(run))
        # A browser that takes longer than five seconds is said to be slow, and the page's address is shown.
        if shown < 4:
            self.note("Open this page" not in run.errors, f"{where}: nothing to do by hand", run.errors)
        last = self.only_tab(where, told, beside)
        starts = self.browser.opened[opened:]
        self.note(len(starts) == 1 and "/start/" in starts[0], f"{where}: starts of the browser", str(starts))
        made = [after - former for former, after in zip(before, self.requests(*asks))]
        self.note(made == (asked or [1] * len(asks)), f"{where}: requests at the provider", f"{asks}: {made}")
        self.rows.append((f"{self.browser.name}, {where}", f"{shown:.1f}"))
        return last

    def clear(self, *accounts):
        """Nobody is signed in to these, and one tab is left: the tabs."""
        self.desk.forget(*accounts)
        self.browser.close_all()
        return self.browser.tabs()

    def callback(self, authorization_url, user="alice"):
        """Where the provider would send this user."""
        self.desk.sandbox.control(auto_approve=user)
        try:
            return self.desk.sandbox.approve(authorization_url)
        finally:
            self.desk.sandbox.control(auto_approve=False)

    def log_in(self, account="work"):
        run = self.desk.start("login", account, browser=self.browser)
        return run, self.browser.sign_in_page()

    def cold(self):
        """A browser that does not run yet opens the page and nothing else."""
        # The walks of another browser may have left a session: then `login` would open nothing.
        self.desk.forget("work")
        self.browser.prepare()
        last = self.sign_in("cold start", "work")
        self.note(DONE in last.text and "/done/" in last.url, "the last page, whole", str(last))
        lines = [line for line in last.text.split("\n") if line]
        self.note(lines[:2] == [PRODUCT, "Signed in"] and PRODUCT in last.title, "it names the product", f"{last.title}: {last}")
        self.note(any(re.fullmatch(r"work at 127\.0\.0\.1:\d+", line) for line in lines), "it names the account and the provider", str(last))

    def running(self):
        """A browser with tabs of its own gets one more; two accounts one after another."""
        former = self.clear("work", "home")
        last = self.sign_in("running", "work", beside=former)
        again = self.sign_in("another account", "home", user="bob", beside=[*former, last])
        self.note(self.desk.subject("work") == "alice" and self.desk.subject("home") == "bob", "two accounts",
                  f"{self.desk.subject('work')}, {self.desk.subject('home')}")
        # Both at a time: each page leads to its own account.
        self.desk.forget("work", "home")
        runs = [self.desk.start("login", account, browser=self.browser) for account in ["work", "home"]]
        first = self.browser.sign_in_page([*former, last, again])
        second = self.browser.sign_in_page([*former, last, again, first])
        for tab in [first, second]:
            self.browser.approve(tab, "carol")
        ended = [run.end() for run in runs]
        self.note(ended == [0, 0], "two accounts at a time", "; ".join(map(str, runs)))
        tabs = [tab for tab in self.browser.tabs() if tab.handle in (first.handle, second.handle)]
        self.note(all("Signed in" in tab.text for tab in tabs), "both tabs", str([*map(str, tabs)]))

    def private(self):
        former = self.clear("work")
        self.sign_in("private window", "work", private=True, beside=former)
        self.desk.forget("work")
        self.browser.quit()
        self.browser.prepare()
        self.sign_in("private window, cold start", "work", private=True)
        self.browser.quit()
        self.browser.begin()

    def verbs(self):
        """The other verbs that open a page."""
        self.desk.sandbox.project.control(reset=True)
        former = self.clear("work", "app")
        self.sign_in("login", "work", beside=former)
        opened, run = len(self.browser.opened), self.desk.start("logout", "work", "--browser", browser=self.browser)
        self.note(run.end() == 0 and "Signed out of work" in run.out, "logout --browser", str(run))
        self.desk.keep(self.browser, self.browser.page("Signed out"), "the provider's page after logout --browser")
        self.note(len(self.browser.opened) == opened + 1, "logout --browser: starts", str(self.browser.opened[opened:]))
        former = self.clear()
        self.sign_in("token --sign-in", "work", words=("token", "--sign-in"), beside=former, printed="at-")
        asks = ("supabase_authorize", "supabase_callback", "supabase_token")
        former = self.clear()
        # The project is asked for each of the two entrances by the daemon, so that its no can be told; the browser goes
        # on to the provider behind it.
        self.sign_in("a project", "app", words=("login", "--with", "github"), beside=former, asks=asks, asked=[2, 1, 1])
        former = self.clear()
        self.sign_in("supabase link", "app", words=("supabase", "link", "--with", "google"), beside=former,
                     printed="Linked google to app", asks=asks[1:2])
        self.desk.forget("app")

    def second_tab(self):
        """The address in a second tab, the sign-in page in two tabs, and the tab that comes too late."""
        self.clear("work")
        run, page = self.log_in()
        url = self.browser.opened[-1]
        again = self.browser.open_tab(url)
        used = self.browser.page(USED)
        self.desk.keep(self.browser, used, "the address in a second tab")
        self.note(used.handle == again and "code" not in used.url, "the address in a second tab", str(used))
        twice = self.browser.open_tab(page.url)
        late = self.browser.sign_in_page([page])
        self.note(late.handle == twice, "the sign-in page in two tabs", str(late))
        self.browser.approve(page)
        self.note(run.end() == 0, "login", str(run))
        self.browser.approve(late, "bob")
        last = self.browser.find("the late tab's page", lambda tab: tab.handle == twice and "Sign in as" not in tab.text)
        self.desk.keep(self.browser, last, "the tab that comes too late")
        self.note(last.url.rstrip("#").endswith("/unknown") and NOTHING in last.text, "the tab that comes too late", str(last))
        self.note(self.desk.subject("work") == "alice", "it changes nothing", f"{self.desk.subject('work')}")

    def back_and_reload(self):
        self.clear("work")
        run, page = self.log_in()
        self.browser.reload(page)
        page = self.browser.sign_in_page()
        self.browser.approve(page)
        self.note(run.end() == 0, "login after a reload of the sign-in page", str(run))
        last = self.browser.page(DONE)
        self.browser.reload(last)
        last = self.browser.page(DONE)
        self.note("/done/" in last.url, "reload of the last page", str(last))
        history = self.browser.history(last)
        secret = [url for url in history if "code=" in url or "/start/" in url]
        self.note(not secret, "the history holds neither code nor key", str(history))
        self.browser.back(last)
        page = self.browser.find("the page before", lambda tab: tab.handle == last.handle and DONE not in tab.text)
        self.desk.keep(self.browser, page, "back from the last page")
        self.note("Sign in as" in page.text, "back", str(page))
        before = self.desk.sandbox.counters["token_requests"]
        self.browser.approve(page, "bob")
        end = self.browser.find("what follows", lambda tab: tab.handle == last.handle and "Sign in as" not in tab.text)
        self.desk.keep(self.browser, end, "another sign-in after back")
        self.note(NOTHING in end.text or "used already" in end.text, "another sign-in after back", str(end))
        self.note(self.desk.subject("work") == "alice" and self.desk.sandbox.counters["token_requests"] == before,
                  "it changes nothing", f"{self.desk.subject('work')}")

    def denial(self):
        self.clear("work")
        run, page = self.log_in()
        self.browser.click(page, "button[value=deny]")
        last = self.browser.page("Sign-in declined")
        self.desk.keep(self.browser, last, "a denial")
        self.note(run.end() == 4 and "/failed/" in last.url, "a denial", f"{run} {last}")

    def other_redirects(self):
        """A redirect URI of localhost, and an answer that the browser posts."""
        for account, where in [("local", "localhost"), ("form", "form_post")]:
            former = self.clear(account)
            last = self.sign_in(where, account, beside=former)
            self.note("code=" not in last.url, f"{where}: the address", last.url)

    def fragments(self):
        """What stands behind `#` in a callback's address is told to no server, but a redirect hands it on to the next page,
        and the history keeps it: a project that is set up badly puts tokens there."""
        self.clear("work")
        flow = self.desk.house.new_flow()
        redirect_uri = flow["redirect_uri"]
        for where, url in [("alone", redirect_uri), ("with a query", redirect_uri + "?a=b")]:
            handle = self.browser.open_tab("about:blank")
            tab = next(tab for tab in self.browser.tabs() if tab.handle == handle)
            self.browser.go(tab, url + "#access_token=eyJ.secret.token&token_type=bearer")
            tab = self.browser.find("the answer", lambda tab: tab.handle == handle and NOTHING in tab.text)
            kept = [url for url in [tab.url, *self.browser.history(tab)] if "access_token" in url]
            self.note(not kept, f"a token behind #, {where}, leaves address bar and history", str(kept))
        callback = self.callback(flow["authorization_url"])
        self.browser.open_tab(callback + "#error=server_error")
        last = self.browser.page("Signed in")
        self.note("#error" not in last.url, "the last page's address is its own", last.url)

    def looking_ahead(self):
        """A web page that knows the address makes the browser load it in every way but one: nothing is spent."""
        self.clear("work")
        flow, site = self.desk.house.new_flow(), Website()
        url = flow["open_url"]
        own = site.origin + "/own"
        ways = """<img src="{0}"><iframe src="{0}"></iframe><object data="{0}"></object><link rel="stylesheet" href="{0}">
            <script src="{0}"></script><script>fetch("{0}", {{mode: "no-cors", credentials: "include"}}).catch(() => 0)
            </script><link rel="prefetch" href="{0}"><link rel="prerender" href="{0}"><link rel="preload" as="fetch" href="{0}">
            <script type="speculationrules">{{"prefetch": [{{"urls": ["{0}"], "eagerness": "immediate"}}],
            "prerender": [{{"urls": ["{0}"], "eagerness": "immediate"}}]}}</script>"""
        site.pages["/"] = ("<!DOCTYPE html><title>Somebody else</title><h1>Somebody else</h1>" + ways.format(url)
                           + ways.format(own) + f'<script>onload = () => setTimeout(() => fetch("/over"), 1500)</script>')
        try:
            tab = self.browser.open_tab(site.origin + "/")
            self.browser.find("the page", lambda tab: "Somebody else" in tab.text)
            until("the page to be done", lambda: site.asked("/over"))
            marks = ["Purpose", "Sec-Purpose", "X-Moz"]
            if not any(name in fields for fields in site.asked("/own") for name in marks):
                self.note(False, "the control: the browser looks ahead", str(site.asked("/own")))
            self.note(len(site.asked("/own")) >= 3, "the control: the page's other requests", str(len(site.asked("/own"))))
            self.note(self.desk.visits(flow) == ["unused"], "looking ahead spends nothing", str(self.desk.visits(flow)))
            # The genuine callback, looked ahead at: the code is not spent either.
            callback = self.callback(flow["authorization_url"])
            site.pages["/callback"] = "<title>Ahead</title><h1>Ahead</h1>" + ways.format(callback.replace("&", "&amp;"))
            self.browser.close_tab(tab)
            self.browser.open_tab(site.origin + "/callback")
            self.browser.find("the page", lambda tab: "Ahead" in tab.text)
            status = self.desk.flow(flow, 1)["status"]
            self.note(status == "pending", "a callback that is looked ahead at changes nothing", status)
            self.browser.open_tab(url)
            page = self.browser.sign_in_page()
            self.browser.approve(page)
            self.note(self.desk.flow(flow, 20)["status"] == "completed", "the person's own opening", str(self.desk.flow(flow)))
        finally:
            site.close()


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
        flow = self.desk.house.new_flow()
        handle = self.browser.open_container_tab(flow["open_url"])
        self.browser.approve(self.browser.find("the provider's page", lambda tab: tab.handle == handle and "Sign in as" in tab.text))
        last = self.browser.find("the last page", lambda tab: tab.handle == handle and "Signed in" in tab.text)
        self.note(self.desk.flow(flow, 20)["status"] == "completed", "a container's tab", str(last))


SETTINGS = ["by_xdg_open", "strict", "container_tabs"]
