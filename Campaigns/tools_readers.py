"""Programs that read a file which Ringback keeps: curl, git and pip a netrc file, kubectl the `tokenFile` of a kubeconfig.
Part of tools.py, which runs it."""

import base64
import os

from harness import progress, read, until
from herd import STEP, revoke
from tools_packages import kubeconfig

VERSION = "v1.35.0-ringed"


class Readers:
    """The kept files, and who reads them."""

    def __init__(self, tools, packages, git, web):
        self.tools, self.house, self.note = tools, tools.house, tools.note
        self.packages, self.git, self.web = packages, git, web
        os.makedirs(tools.environment["HOME"], mode=0o700, exist_ok=True)
        # By the name under which git, pip and others look for it.
        self.netrc = os.path.join(tools.environment["HOME"], ".netrc")
        self.token = self.house.place("run/token")

    def configuration(self):
        more = {self.netrc: 'format = "netrc"\nhost = "127.0.0.1"\n', self.token: ""}
        return "".join(f'[[file]]\npath = "{path}"\naccount = "work"\non_disk = true\n{rest}' for path, rest in more.items())

    def run(self, before):
        """Not until now: the daemon refreshes for a kept file by itself. `before` is the configuration so far."""
        self.house.configure(before + self.configuration())
        self.tools.ringback("reload")
        for path in [self.netrc, self.token]:
            until(path, lambda path=path: os.path.exists(path))
        for attempt in [self.try_curl, self.try_git, self.try_kubectl] + ([self.try_pip] if self.packages.venv else []):
            attempt()
        progress("the readers of kept files are done")

    def try_curl(self):
        """The token in the file is the account's, and the file is not of an older one."""
        url = f"https://127.0.0.1:{self.web.port}/kept"
        status, said = self.tools.run(
            "curl", "-sSf", "--netrc-file", self.netrc, "--cacert", self.house.place("server.pem"), url)
        word = base64.b64encode(f"oauth2:{self.tools.ringback('token', 'work')}".encode()).decode()
        self.note(status == 0 and f"/kept Basic {word}" in self.web.text, "curl reads a kept netrc file", said)

    def try_git(self):
        """Without any helper, after `ringback setup git --undo`."""
        status, said = self.tools.run("git", "ls-remote", f"http://127.0.0.1:{self.git.port}/team/a.git")
        self.note(status == 0 and "refs/heads/main" in said, "git reads a kept netrc file", said)

    def try_pip(self):
        status, said = self.tools.run(
            self.packages.program("pip"), "download", "--disable-pip-version-check", "--no-input", "--no-deps", "--dest",
            self.house.place("pip-netrc"), "--keyring-provider", "disabled", "--index-url", self.packages.simple(), "ringed")
        self.note(status == 0 and "Successfully downloaded ringed" in said, "pip reads a kept netrc file", said)

    def try_kubectl(self):
        if not self.tools.has("kubectl"):
            return
        path = kubeconfig(
            self.house.place("tokenfile.json"), self.packages.registry.port, self.packages.certificate,
            {"tokenFile": self.token})
        status, said = self.tools.run("kubectl", "get", "--raw", "/version", KUBECONFIG=path)
        self.note(status == 0 and VERSION in said, "kubectl reads a kept file", said)
        # The file is written anew before the token in it expires, and kubectl reads it again.
        former = read(self.token)
        self.house.clock.advance(STEP)
        self.tools.ringback("token", "work")
        until("a new kept file", lambda: read(self.token) != former)
        revoke(self.house, former)
        status, said = self.tools.run("kubectl", "get", "--raw", "/version", KUBECONFIG=path)
        self.note(status == 0 and VERSION in said, "kubectl reads the renewed file", said)
