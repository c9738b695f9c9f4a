"""The command line as a person uses it, against the house's daemon."""

import json
import subprocess

from harness import Refuted, expect

# Of a verb, in seconds; a sign-in waits for the pages.
VERB_SECONDS = 60
SIGN_IN_SECONDS = 120


class Ringback:
    def __init__(self, house):
        self.house = house

    def run(self, *arguments, status=0):
        """A verb that must end with this exit status. Returns its output, without the last newline."""
        done = self.house.ringback(*arguments, timeout=VERB_SECONDS)
        expect(done.returncode == status,
               f"ringback {' '.join(arguments)} ended with {done.returncode}, not {status}: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")

    def token(self, account, *more):
        return self.run("token", account, *more)

    def session(self, account):
        return json.loads(self.run("session", account, "--json"))

    def sign_in(self, account, walk, *more):
        """`login --no-browser` with `walk` as the browser: takes the URL, returns what the last page is and says.

        Returns (exit status, the line on stdout, what the page was).
        """
        login = subprocess.Popen(
            [self.house.program(), "login", account, "--again", "--no-browser", "--timeout", str(SIGN_IN_SECONDS), *more],
            env=self.house.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            url = login.stdout.readline().decode().strip()
            if not url.startswith("http"):
                output, told = login.communicate(timeout=VERB_SECONDS)
                raise Refuted(f"ringback login {account} showed no address: {told.decode(errors='replace')}")
            page, _ = walk(url)
            output, told = login.communicate(timeout=VERB_SECONDS)
        finally:
            if login.poll() is None:
                login.kill()
                login.wait()
            login.stdout.close()
            login.stderr.close()
        self.told = told.decode(errors="replace").strip()
        return login.returncode, output.decode().strip(), page
