"""A person at a browser: headless Chromium (Debian's) on the providers' own pages.

Only loopback is reachable for the pages: what they would load from elsewhere is refused.
"""

import re

from playwright.sync_api import Error, sync_playwright

from providers import PASSWORD, PERSON

CHROMIUM = "/usr/bin/chromium"
# Of a page, in milliseconds: a busy machine and a provider that was just started.
PATIENCE = 30_000
# The page of a result has a random key behind its kind.
ENDED = re.compile(r"^http://127\.0\.0\.1:[0-9]+/(done|failed)/[^/?#]+#?$")


class Chromium:
    def __init__(self):
        self.playwright = sync_playwright().start()
        # Chromium's own sandbox needs what containers and root do not have; the pages are on loopback.
        self.browser = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    def person(self):
        return Person(self.browser)

    def close(self):
        self.browser.close()
        self.playwright.stop()


class Person:
    """One browser profile: signed in at a provider or not yet."""

    def __init__(self, browser):
        self.context = browser.new_context(locale="en-US")
        self.context.set_default_timeout(PATIENCE)
        self.context.route(lambda url: not url.startswith("http://127.0.0.1:"), lambda route: route.abort())
        self.page = self.context.new_page()

    def ending(self):
        """The constant page on which the walk ends, and its text."""
        self.page.wait_for_url(ENDED)
        return ENDED.match(self.page.url).group(1), self.page.inner_text("body")

    def at_canaille(self, url, answer="accept"):
        """Signs in and answers the consent page."""
        page = self.page
        page.goto(url)
        for field, value in [("login", PERSON), ("password", PASSWORD)]:
            page.fill(f"input[name={field}]", value)
            page.click("button[type=submit].primary")
        page.click(f"button#{answer}")
        return self.ending()

    def close(self):
        self.context.close()

    def where(self):
        """For a complaint: the page that the person stands before."""
        try:
            return f"{self.page.url.split('?')[0]}: {self.page.inner_text('body')[:300]!r}"
        except Error:
            return self.page.url
