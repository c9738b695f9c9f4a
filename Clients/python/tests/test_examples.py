"""The apps of Examples and the README's programs, run as a reader would run them, at the sandbox."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "../src"), os.path.dirname(__file__)]
from stage import APP, ROOT, WORK, Stage, browser  # noqa: E402

from ringback import Broker  # noqa: E402

STAGE = None
# A browser that follows the page by itself, and says which address it got.
BROWSER = '#!/bin/sh\nprintf "%s\\n" "$1" >>"{}/opened"\nexec curl -sSL -o /dev/null "$1"\n'
PYTHON = [sys.executable, "-B", "-W", "error"]
APPS = {"python": ([*PYTHON], "py"), "node": (["node"], "mjs")}


def setUpModule():
    global STAGE
    STAGE = Stage(WORK + APP)
    for name in ["xdg-open", "browser"]:
        with open(os.open(os.path.join(STAGE.directory, name), os.O_WRONLY | os.O_CREAT, 0o700), "w") as file:
            file.write(BROWSER.format(STAGE.directory))


def tearDownModule():
    STAGE.close()


def environment():
    return {
        "PATH": f"{STAGE.directory}:{os.environ['PATH']}", "BROWSER": os.path.join(STAGE.directory, "browser"),
        "RINGBACK_SOCK": STAGE.socket, "PYTHONPATH": os.path.join(ROOT, "Clients/python/src"),
        "PROJECT_URL": f"{STAGE.issuer}/supabase", "PROJECT_KEY": "sb_publishable_sandbox",
    }


class ExampleTests(unittest.TestCase):
    def setUp(self):
        Broker(STAGE.socket).sign_out("app")

    def start(self, words, **variables):
        child = subprocess.Popen(words, env=environment() | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.kill)
        return child

    def run_to_the_end(self, words, lines=""):
        out, err = self.start(words).communicate(lines, timeout=60)
        return out.splitlines(), err

    def for_each(self, name, run):
        for language, (command, suffix) in APPS.items():
            if shutil.which(command[0]) is None:
                print(f"skip the apps in {language}: it is not installed", flush=True)
                continue
            path = os.path.join(ROOT, "Examples", language, f"{name}.{suffix}")
            with self.subTest(language):
                with open(path) as file:
                    self.assertLessEqual(len(file.readlines()), 60)
                run([*command, path, "app"])

    def test_sign_in_by_browser_with_profile_and_sign_out(self):
        def run(app):
            out, err = self.run_to_the_end([*app, "sign-in", "github"])
            self.assertEqual(out[0], "signed in: alice@example.org", err)
            self.assertIn('"email":"alice@example.org"', out[1].replace(" ", ""))
            with open(os.path.join(STAGE.directory, "opened")) as file:
                self.assertRegex(file.readlines()[-1], r"^http://127.0.0.1:\d+/start/\S+$")
            self.assertEqual(self.run_to_the_end([*app, "sign-out"]), (["nobody is signed in"], ""))
        self.for_each("profile", run)

    def test_a_page_that_the_browser_does_not_fetch_is_shown(self):
        """By the module for node; the Python package has its own test."""
        if shutil.which("node") is None:
            self.skipTest("node is not installed")
        with tempfile.TemporaryDirectory() as place:
            os.symlink("/bin/true", os.path.join(place, "xdg-open"))
            path = os.path.join(ROOT, "Examples/node/profile.mjs")
            app = self.start(["node", path, "app", "sign-in", "github"], PATH=f"{place}:{os.environ['PATH']}")
            line = app.stderr.readline()
            self.assertRegex(line, r"^The page has not been opened yet. Open: http://\S+$")
            browser(line.split()[-1])
            self.assertTrue(app.communicate(timeout=60)[0].startswith("signed in: alice@example.org\n"))

    def test_sign_in_by_a_code_on_the_phone(self):
        # A number gets one message a minute.
        numbers = iter(range(4915112345000, 4915112345999))

        def run(app):
            number = f"+{next(numbers)}"
            child = self.start([*app, number])
            self.assertEqual(child.stdout.readline(), f"A code was sent to {number}.\n")
            child.stdin.write("000000\n")
            child.stdin.flush()
            self.assertEqual(child.stdout.readline(), "Invalid code. Please try again.\n")
            # One that is too short is a wrong line, too.
            child.stdin.write("12345\n")
            child.stdin.flush()
            self.assertRegex(child.stdout.readline(), r"^\S.*\S\n$")
            out, err = child.communicate(f"{STAGE.code()}\n", timeout=60)
            self.assertEqual(out.replace("+", ""), f"signed in: {number[1:]}\n", err)
            self.assertEqual(self.run_to_the_end([*app, "sign-out"]), (["nobody is signed in"], ""))
            # Without a right code nobody is signed in, and no sign-in is left.
            out, err = self.run_to_the_end([*app, f"+{next(numbers)}"], "\n000000\n")
            self.assertEqual(out[1:], ["A message was sent already. Please wait a minute before the next one.",
                                       "Invalid code. Please try again."])
            self.assertIn("there was no right code", err)
            self.assertNotIn("flow", Broker(STAGE.socket).account("app"))
        self.for_each("phone", run)

    def test_a_code_of_another_user_fails_and_leaves_no_sign_in(self):
        numbers = iter(range(4915112346000, 4915112346999))
        broker = Broker(STAGE.socket)
        broker.sign_in("app", "anonymous")

        def run(app):
            child = self.start([*app, f"+{next(numbers)}"])
            child.stdout.readline()
            out, err = child.communicate(f"{STAGE.code()}\n", timeout=60)
            self.assertEqual((child.returncode, out), (1, ""))
            self.assertIn("Nothing was changed", err)
            self.assertNotIn("Traceback", err)
            self.assertNotIn("flow", broker.account("app"))
        self.for_each("phone", run)

    def test_an_interrupt_cancels_the_sign_in(self):
        numbers = iter(range(4915112347000, 4915112347999))

        def run(app):
            child = self.start([*app, f"+{next(numbers)}"])
            child.stdout.readline()
            # The app has read a line, so that it handles the signal.
            child.stdin.write("000000\n")
            child.stdin.flush()
            child.stdout.readline()
            child.send_signal(signal.SIGINT)
            child.wait(timeout=60)
            child.communicate()
            self.assertEqual(child.returncode, 130)
            self.assertNotIn("flow", Broker(STAGE.socket).account("app"))
        self.for_each("phone", run)

    def test_usage_is_shown_where_an_argument_is_missing(self):
        def run(app):
            child = self.start(app[:-1])
            out, err = child.communicate(timeout=60)
            self.assertEqual((child.returncode, out), (1, ""))
            self.assertIn("sign-out", err)
            self.assertNotRegex(err, r"Traceback|\n +at ")
        for name in ["phone", "profile"]:
            self.for_each(name, run)

    def test_the_programs_of_the_readme(self):
        with open(os.path.join(ROOT, "Clients/python/README.md")) as file:
            programs = re.findall("```python\n(.*?)```", file.read(), re.S)
        self.assertEqual(len(programs), 3)
        for program in programs:
            with self.subTest(program):
                if "import requests" in program and find_spec("requests") is None:
                    # The line is counted by Scripts/count-tests.
                    print("skip the Python package's requests: it is not installed", flush=True)
                    continue
                child = self.start([*PYTHON, "-u", "-c", program])
                asks = "input(" in program
                if asks:
                    self.assertEqual(child.stdout.read(6), "Code: ")
                out, err = child.communicate(f"{STAGE.code()}\n" if asks else "", timeout=60)
                self.assertEqual((child.returncode, err), (0, ""), out)


if __name__ == "__main__":
    unittest.main()
