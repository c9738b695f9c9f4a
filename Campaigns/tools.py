#!/usr/bin/env -S python3 -B
"""Real tools get their tokens from Ringback, each in its own way, at servers on loopback: git, kubectl, skopeo and curl,
and what tools_packages.py names.

git fetches from git-http-backend, fifty at once, at the moment the token has expired, and after the provider has revoked
it: each time the provider may see one refresh request. The token expires by the campaign's clock (herd.py).
"""

import base64
import os
import re
import shutil
import subprocess

from harness import ROOT, Trouble, played, progress, read, table, write
from herd import STEP, ClockedHouse, requests, revoke
from tools_packages import Packages, Readers, Server, authority, kubeconfig

GITS = 50
NAMES = ["ringback", "git-credential-ringback", "kubectl-ringback", "docker-credential-ringback", "cargo-credential-ringback"]
# The first git that tells a helper which schemes a server offers.
BEARER_GIT = (2, 46)


class Tools:
    """The tools' home: links by whose names they find their helpers, and no configuration of the user's."""

    def __init__(self, house, report):
        self.house, self.report, self.note, self.rows = house, report, report.note, []
        self.links = house.place("bin")
        os.mkdir(self.links)
        for name in NAMES:
            os.symlink(house.program(), os.path.join(self.links, name))
        self.environment = {
            "PATH": self.links + ":" + os.environ.get("PATH", "/usr/bin:/bin"), "HOME": house.place("home"),
            "XDG_RUNTIME_DIR": house.place("run"), "RINGBACK_SOCK": house.socket, "RINGBACK_CONFIG": house.configuration,
            "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "credential.helper", "GIT_CONFIG_VALUE_0": "ringback",
        }

    def start(self, *command, **environment):
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=self.environment | environment)

    def run(self, *command, **environment):
        """(status, what it printed)."""
        process = self.start(*command, **environment)
        said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def works(self, what, says, *command, **environment):
        """Runs a program, which must succeed and print this text."""
        status, said = self.run(*command, **environment)
        self.note(status == 0 and says in said, what, said)

    def run_traced(self, where, *command, **environment):
        """Runs a program that must succeed, and looks at the arguments of every program that is started: none has the token."""
        if not shutil.which("strace"):
            return self.report.skip(f"{where}: argument lists", "strace is not installed")
        trace, token = self.house.place("trace"), self.ringback("token", "work")
        strace = ["strace", "-f", "-qq", "-s", "100000", "-e", "trace=execve,execveat", "-o", trace]
        if self.run(*strace, "sh", "-c", f"/bin/echo {token}; :")[0] != 0:
            return self.report.skip(f"{where}: argument lists", "strace may not trace here")
        self.note(token in read(trace), f"{where}: strace sees argument lists", "the control was not found")
        status, said = self.run(*strace, *command, **environment)
        self.note(status == 0, where, said)
        self.note("ringback" in read(trace), f"{where}: strace sees ringback", "it was not started")
        self.note(token not in read(trace), f"{where}: argument lists", "one has the token")

    def ringback(self, *words):
        status, said = self.run(self.house.program(), *words)
        if status != 0:
            raise Trouble(f"ringback {' '.join(words)}: {said}")
        return said.rstrip("\n")

    def set_up_git(self):
        """git's own configuration names the helper, as the user's does after `ringback setup`."""
        for name in [name for name in self.environment if name.startswith("GIT_CONFIG_") and name != "GIT_CONFIG_NOSYSTEM"]:
            del self.environment[name]
        os.makedirs(self.environment["HOME"], exist_ok=True)
        shown = self.ringback("setup", "git", "--print")
        file = os.path.join(self.environment["HOME"], ".gitconfig")
        self.note("credential.http://127.0.0.1" in shown and not os.path.exists(file), "ringback setup git --print", shown)
        self.ringback("setup", "git", "--yes")
        listed = self.ringback("setup")
        self.note(re.search(r"^git +set up +http", listed, re.M), "ringback setup lists git", listed)

    def undo_git(self):
        self.ringback("setup", "git", "--undo", "--yes")
        left = read(os.path.join(self.environment["HOME"], ".gitconfig"))
        self.note("credential" not in left, "ringback setup git --undo", left)

    def revoke(self):
        """The provider takes the account's present token no more."""
        revoke(self.house, self.ringback("token", "work"))

    def tried(self, tool, *version):
        """A row of the table: which version it was."""
        said = self.run(tool, *version)[1]
        self.rows.append([os.path.basename(tool), (re.search(r"\d+(\.\d+)+", said) or [said.strip()])[0]])

    def has(self, tool):
        if shutil.which(tool):
            return True
        self.report.skip(tool, "it is not installed")
        return False


def run_at_once(tools, clones):
    """One `git fetch` in each clone at the same time: the outputs of those that failed."""
    processes = [tools.start("git", "-C", clone, "fetch", "-q") for clone in clones]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    return [said for process, said in zip(processes, outputs) if process.returncode != 0]


def repositories(tools):
    """A directory with one bare repository that has one commit: the directory."""
    root = tools.house.place("repositories")
    bare, work = os.path.join(root, "team/a.git"), tools.house.place("first")
    for command in [
        ["init", "-q", "--bare", "-b", "main", bare], ["init", "-q", "-b", "main", work],
        ["-C", work, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "1"],
        ["-C", work, "push", "-q", bare, "main"],
    ]:
        status, said = tools.run("git", *command)
        if status != 0:
            raise Trouble(f"git {' '.join(command)}: {said}")
    return root


def try_git_basic(tools, server, rounds):
    """Fifty fetches at an expiry, and after a revocation."""
    house, url = tools.house, f"http://127.0.0.1:{server.port}/team/a.git"
    clones = [house.place(f"clone-{number}") for number in range(GITS)]
    tools.run_traced("git lists what there is", "git", "ls-remote", url)
    status, said = tools.run("git", "clone", "-q", url, clones[0])
    tools.note(status == 0, "git clones", said)
    if status != 0:
        return
    for clone in clones[1:]:
        shutil.copytree(clones[0], clone)
    for number in range(1, rounds + 1):
        # A revocation after an expiry is the first one in a row: the daemon refreshes for it.
        house.clock.advance(STEP)
        before, refused = requests(house), server.text.count("refused")
        failed = run_at_once(tools, clones)
        made = requests(house) - before
        tools.note(not failed, f"{GITS} fetches at expiry {number}", f"{len(failed)} failed: {failed[:2]}")
        tools.note(made == 1, f"{GITS} fetches at expiry {number}", f"{made} refresh requests")
        tools.note(server.text.count("refused") == refused, f"{GITS} fetches at expiry {number}", "an old token was sent")
        before = requests(house)
        tools.revoke()
        # git asks once more after a refusal only from some version on: the first round may fail.
        run_at_once(tools, clones)
        failed = run_at_once(tools, clones)
        made = requests(house) - before
        where = f"{GITS} fetches after revocation {number}"
        tools.note(not failed, where, f"{len(failed)} failed: {failed[:2]}")
        tools.note(made == 1, where, f"{made} refresh requests")


def try_git_bearer(tools, server):
    """A server that takes Bearer only."""
    url = f"http://127.0.0.1:{server.port}/team/a.git"
    field = tools.ringback("token", "--origin", url, "--format", "header")
    tools.works("git sends the line of --format header", "refs/heads/main",
                "git", "--config-env=http.extraHeader=FIELD", "ls-remote", url, FIELD=field)
    version = tuple(int(part) for part in tools.run("git", "--version")[1].split()[2].split(".")[:2])
    if version < BEARER_GIT:
        tools.report.skip("git asks its helper for a Bearer token", "that needs git 2.46")
        return
    tools.works("git asks its helper for a Bearer token", "refs/heads/main", "git", "ls-remote", url)


def try_curl(tools, server):
    url = f"https://127.0.0.1:{server.port}/curl"
    netrc = write(tools.house.place("netrc"), tools.ringback("token", "--origin", url, "--format", "netrc"))
    certificate = tools.house.place("server.pem")
    status, said = tools.run("curl", "-sSf", "--netrc-file", netrc, "--cacert", certificate, url)
    word = base64.b64encode(f"oauth2:{tools.ringback('token', '--origin', url)}".encode()).decode()
    tools.note(status == 0 and f"/curl Basic {word}" in server.text, "curl reads a netrc file", said)
    # The line that docs/tools.md prints.
    page = read(os.path.join(ROOT, "docs/tools.md")).splitlines()
    line = next(line for line in page if line.startswith("curl -sSf -H @<("))
    line = line.replace("https://files.example.org", f"https://127.0.0.1:{server.port}")
    tools.run_traced("curl reads the field of --format header", "bash", "-c", line, CURL_CA_BUNDLE=certificate)
    tools.note(f"/a.txt Bearer {tools.ringback('token', 'work')}" in server.text, "the printed line of curl sends the token")
    tools.tried("curl", "--version")


def try_kubectl(tools, server):
    if not tools.has("kubectl"):
        return
    path = kubeconfig(tools.house.place("kubeconfig"), server.port, tools.house.place("server.pem"))
    status, said = tools.run("kubectl", "get", "--raw", "/kubectl", KUBECONFIG=path)
    token = tools.ringback("token", "--origin", f"https://127.0.0.1:{server.port}")
    tools.note(status == 0 and f"/kubectl Bearer {token}" in server.text, "kubectl runs the plugin", said)
    tools.tried("kubectl", "version", "--client")


def try_skopeo(tools, server):
    if not tools.has("skopeo"):
        return
    place = f"127.0.0.1:{server.port}"
    tools.ringback("setup", "docker", "--yes")
    status, said = tools.run("skopeo", "inspect", "--tls-verify=false", "--raw", f"docker://{place}/team/app:1")
    tools.ringback("setup", "docker", "--undo", "--yes")
    word = base64.b64encode(f"oauth2:{tools.ringback('token', '--origin', 'https://' + place)}".encode()).decode()
    tools.note(status == 0 and f"/v2/team/app/manifests/1 Basic {word}" in server.text, "skopeo runs the helper", said)
    tools.tried("skopeo", "--version")


@played()
def campaign(chosen, report, places):
    house = places.add(ClockedHouse(chosen.bin), chosen.keep)
    tools = Tools(house, report)
    root, userinfo = repositories(tools), house.sandbox.issuer + "/userinfo"
    basic, bearer, web = (places.add(Server(house, *arguments)) for arguments in [
        ("git_server.py", root, userinfo, "basic"), ("git_server.py", root, userinfo, "bearer"),
        ("tool_server.py", house.directory)])
    packages = Packages(tools, places, userinfo, chosen.short)
    readers = Readers(tools, packages, basic, web)
    configuration = "".join(
        f'[[origin]]\nurl = "{scheme}://127.0.0.1:{server.port}/*"\naccount = "work"\n'
        for scheme, server in [("http", basic), ("http", bearer), ("https", web)])
    configuration += authority(house.place("server.pem"))
    configuration += packages.configuration()
    house.begin(configuration)
    tools.set_up_git()
    tools.tried("git", "--version")
    try_git_basic(tools, basic, 1 if chosen.short else 5)
    progress("git is done")
    try_git_bearer(tools, bearer)
    tools.undo_git()
    try_kubectl(tools, web)
    try_skopeo(tools, web)
    try_curl(tools, web)
    packages.run()
    readers.run(configuration)
    tools.ringback("logout", "work")
    table("The tools", ["tool", "version"], tools.rows)
