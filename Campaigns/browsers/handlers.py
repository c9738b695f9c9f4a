"""Links of a scheme of ours, from a browser through xdg-open to `ringback open`, in the clean home of the desk."""

import contextlib
import json
import os

from harness import Trouble, until, write

from .desk import SCHEME

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
