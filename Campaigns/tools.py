#!/usr/bin/env python3
"""Real tools get their tokens from Ringback, each in its own way, at servers on loopback: git, kubectl, skopeo and curl,
and what tools_packages.py, tools_registry.py and tools_readers.py name.

git fetches from git-http-backend, fifty at once, at the moment the token has expired, and after the provider has revoked
it: each time the provider may see one refresh request. The token expires by the campaign's clock (herd.py).
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from herd import STEP, Clock, ClockedHouse, requests, revoke  # noqa: E402
from house import Died  # noqa: E402
from operations import must  # noqa: E402
from report import Report, could_not_run, options, progress, table  # noqa: E402
from shim import NoCompiler  # noqa: E402
from stage import Trouble  # noqa: E402
from tools_packages import Packages, Server, authority  # noqa: E402
from tools_readers import Readers  # noqa: E402
from tools_registry import Registry  # noqa: E402

GITS = 50
NAMES = ["git-credential-ringback", "kubectl-ringback", "docker-credential-ringback", "cargo-credential-ringback"]
# The first git that tells a helper which schemes a server offers.
BEARER_GIT = (2, 46)


class Tools:
    """The tools' home: links by whose names they find their helpers, and no configuration of the user's."""

    def __init__(self, house, report):
        self.house, self.report, self.rows = house, report, []
        self.links = house.place("bin")
        os.mkdir(self.links)
        for name in NAMES:
            os.symlink(os.path.join(house.binaries, "ringback"), os.path.join(self.links, name))
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

    def ringback(self, *words):
        status, said = self.run(os.path.join(self.house.binaries, "ringback"), *words)
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
        with open(os.path.join(self.environment["HOME"], ".gitconfig")) as file:
            left = file.read()
        self.note("credential" not in left, "ringback setup git --undo", left)

    def revoke(self):
        """The provider takes the account's present token no more."""
        revoke(self.house, self.ringback("token", "work"))

    def note(self, is_right, where, why=""):
        self.report.note(is_right, where, why)

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
    status, said = tools.run("git", "--config-env=http.extraHeader=FIELD", "ls-remote", url, FIELD=field)
    tools.note(status == 0 and "refs/heads/main" in said, "git sends the line of --format header", said)
    version = tuple(int(part) for part in tools.run("git", "--version")[1].split()[2].split(".")[:2])
    if version < BEARER_GIT:
        tools.report.skip("git asks its helper for a Bearer token", "that needs git 2.46")
        return
    status, said = tools.run("git", "ls-remote", url)
    tools.note(status == 0 and "refs/heads/main" in said, "git asks its helper for a Bearer token", said)


def try_curl(tools, server):
    url = f"https://127.0.0.1:{server.port}/curl"
    netrc = tools.house.place("netrc")
    with open(os.open(netrc, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(tools.ringback("token", "--origin", url, "--format", "netrc"))
    certificate = tools.house.place("server.pem")
    status, said = tools.run("curl", "-sSf", "--netrc-file", netrc, "--cacert", certificate, url)
    word = base64.b64encode(f"oauth2:{tools.ringback('token', '--origin', url)}".encode()).decode()
    tools.note(status == 0 and f"/curl Basic {word}" in server.text, "curl reads a netrc file", said)
    tools.tried("curl", "--version")


def try_kubectl(tools, server):
    if not tools.has("kubectl"):
        return
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "kubectl-ringback",
                     "interactiveMode": "Never", "provideClusterInfo": True}}
    cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": tools.house.place("server.pem")}
    path = tools.house.place("kubeconfig")
    with open(path, "w") as file:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                   "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user}]}, file)
    status, said = tools.run("kubectl", "get", "--raw", "/kubectl", KUBECONFIG=path)
    token = tools.ringback("token", "--origin", cluster["server"])
    tools.note(status == 0 and f"/kubectl Bearer {token}" in server.text, "kubectl runs the plugin", said)
    tools.tried("kubectl", "version", "--client")


def try_skopeo(tools, server):
    if not tools.has("skopeo"):
        return
    place, path = f"127.0.0.1:{server.port}", tools.house.place("auth.json")
    with open(path, "w") as file:
        json.dump({"credHelpers": {place: "ringback"}}, file)
    status, said = tools.run(
        "skopeo", "inspect", "--authfile", path, "--tls-verify=false", "--raw", f"docker://{place}/team/app:1")
    word = base64.b64encode(f"oauth2:{tools.ringback('token', '--origin', 'https://' + place)}".encode()).decode()
    tools.note(status == 0 and f"/v2/team/app/manifests/1 Basic {word}" in server.text, "skopeo runs the helper", said)
    tools.tried("skopeo", "--version")


def main():
    chosen = options(__doc__.splitlines()[0])
    report, house, servers = Report(), None, []
    try:
        house = ClockedHouse(chosen.bin, shimmed=False)
        house.clock = Clock(house.directory)
        # Reuse of a refresh token ends the session at once: a second request would not go unseen.
        house.fresh(access_token_lifetime=3_600, reuse_grace=0)
        tools = Tools(house, report)
        root, userinfo = repositories(tools), house.sandbox.issuer + "/userinfo"
        for arguments in [("git_server.py", root, userinfo, "basic"), ("git_server.py", root, userinfo, "bearer"),
                          ("tool_server.py", house.directory)]:
            servers.append(Server(house, *arguments))
        basic, bearer, web = servers
        packages = Packages(tools, userinfo, chosen.short)
        registry = Registry(tools, userinfo)
        readers = Readers(tools, packages, basic, web)
        servers += packages.servers + registry.servers
        configuration = "".join(
            f'[[origin]]\nurl = "{scheme}://127.0.0.1:{server.port}/*"\naccount = "work"\n'
            for scheme, server in [("http", basic), ("http", bearer), ("https", web)])
        configuration += authority(house.place("server.pem"))
        configuration += packages.configuration() + registry.configuration()
        house.configure(configuration)
        house.start()
        must(house.sign_in(), "the sign-in")
        if not house.clock.asked:
            raise Trouble("the clock is not in the daemon: is it a static executable?")
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
        registry.run()
        readers.run(configuration)
        tools.ringback("logout", "work")
        registry.signed_out()
    except NoCompiler as trouble:
        return could_not_run(trouble)
    except (Trouble, Died, OSError, subprocess.TimeoutExpired) as trouble:
        return could_not_run(trouble, house)
    finally:
        for server in servers:
            server.close()
        if house:
            house.close(chosen.keep)
    table("The tools", ["tool", "version"], tools.rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
