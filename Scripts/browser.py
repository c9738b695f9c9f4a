"""Opens a URL in headless Chromium and signs in as the first person on the sandbox's page, by keyboard."""

import sys

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    # Chromium's own sandbox needs what containers and root do not have; the page is ours.
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    page = browser.new_page()
    page.goto(sys.argv[1])
    page.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Allow").press("Enter")
    page.wait_for_url("**/done", timeout=30_000)
    assert "Signed in" in page.inner_text("body")
    browser.close()
