"""The Python client of Kubernetes, which runs kubectl-ringback, and programs that read a file which Ringback keeps: curl,
git and pip a netrc file, kubectl and the Python client the `tokenFile` of a kubeconfig, google-auth its
`credential_source.file`, Rucio the file of WLCG's bearer discovery. Part of tools.py, which runs it."""

import base64
import json
import os
import subprocess

from herd import STEP, requests, revoke
from house import until
from report import progress
from venv_programs import installed

PACKAGE = "kubernetes==37.0.2"
KUBERNETES = """
import sys
from kubernetes import client, config
config.load_kube_config(sys.argv[1])
print(client.VersionApi().get_code().git_version)
"""
GOOGLE = """
import json, sys
from google.auth import identity_pool
from google.auth.transport.requests import Request
made = identity_pool.Credentials.from_info(json.load(open(sys.argv[1])))
made.refresh(Request())
print(made.token)
"""
RUCIO_PACKAGE = "rucio-clients==41.5.1"
RUCIO = """
from rucio.common.utils import wlcg_token_discovery
print(wlcg_token_discovery())
"""
VERSION = "v1.35.0-ringed"


class Readers:
    """The kept files, and who reads them."""

    def __init__(self, tools, packages, git, web):
        self.tools, self.house, self.packages, self.git, self.web = tools, tools.house, packages, git, web
        os.makedirs(tools.environment["HOME"], mode=0o700, exist_ok=True)
        # By the name under which git, pip and others look for it.
        self.netrc = os.path.join(tools.environment["HOME"], ".netrc")
        self.json = self.house.place("run/work.json")
        # By the name of WLCG's bearer discovery.
        self.token = self.house.place(f"run/bt_u{os.geteuid()}")

    def configuration(self):
        more = {self.netrc: 'format = "netrc"\nhost = "127.0.0.1"\n', self.token: "", self.json: 'format = "json"\n'}
        return "".join(f'[[file]]\npath = "{path}"\naccount = "work"\non_disk = true\n{rest}' for path, rest in more.items())

    def run(self, before):
        """Not until now: the daemon refreshes for a kept file by itself. `before` is the configuration so far."""
        self.house.configure(before + self.configuration())
        self.tools.ringback("reload")
        for path in [self.netrc, self.token, self.json]:
            until(path, lambda path=path: os.path.exists(path))
        for attempt in [self.try_curl, self.try_git, self.try_kubectl] + (
                [self.try_pip, self.try_google, self.try_kubernetes, self.try_rucio] if self.packages.venv else []):
            attempt()
        progress("the readers of kept files are done")

    def note(self, is_right, where, why):
        self.tools.note(is_right, where, why)

    def content(self, path):
        with open(path) as file:
            return file.read()

    def kubeconfig(self, name, user):
        """The path of one with this user, at the server that takes good tokens only."""
        cluster = {"server": f"https://127.0.0.1:{self.packages.registry.port}",
                   "certificate-authority": self.packages.certificate}
        return self.packages.write(name, json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user}]}))

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
        path = self.kubeconfig("tokenfile.json", {"tokenFile": self.token})
        status, said = self.tools.run("kubectl", "get", "--raw", "/version", KUBECONFIG=path)
        self.note(status == 0 and VERSION in said, "kubectl reads a kept file", said)
        # The file is written anew before the token in it expires, and kubectl reads it again.
        former = self.content(self.token)
        self.house.clock.advance(STEP)
        self.tools.ringback("token", "work")
        until("a new kept file", lambda: self.content(self.token) != former)
        revoke(self.house, former)
        status, said = self.tools.run("kubectl", "get", "--raw", "/version", KUBECONFIG=path)
        self.note(status == 0 and VERSION in said, "kubectl reads the renewed file", said)

    def try_kubernetes(self):
        try:
            # Its urllib3 is not that of boto3.
            python = os.path.join(installed("kubernetes", PACKAGE), "python")
        except subprocess.CalledProcessError:
            self.tools.report.skip("the Python client of Kubernetes", "it cannot be installed")
            return
        script = self.packages.write("ask_kubernetes.py", KUBERNETES)
        by_plugin = self.kubeconfig("exec.json", {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "kubectl-ringback", "interactiveMode": "Never",
            "provideClusterInfo": True}})
        by_file = self.kubeconfig("tokenfile.json", {"tokenFile": self.token})
        for name, path in [("runs kubectl-ringback", by_plugin), ("reads a kept file", by_file)]:
            status, said = self.tools.run(python, "-B", script, path)
            self.note(status == 0 and VERSION in said, f"the Python client of Kubernetes {name}", said)
        before = requests(self.house)
        self.house.clock.advance(STEP)
        status, said = self.tools.run(python, "-B", script, by_plugin)
        made, where = requests(self.house) - before, "the Python client of Kubernetes, expired token"
        self.note(status == 0 and VERSION in said, where, said)
        self.note(made == 1, where, f"{made} refresh requests")
        self.tools.rows.append(PACKAGE.split("=="))

    def try_google(self):
        place = f"https://127.0.0.1:{self.packages.registry.port}"
        for name, source, kind, read in [
                ("a kept file", {"file": self.packages.token_file}, "id_token", lambda text: text),
                ("a kept JSON file",
                 {"file": self.json, "format": {"type": "json", "subject_token_field_name": "access_token"}}, "access_token",
                 lambda text: json.loads(text)["access_token"])]:
            path = self.packages.write("google-file.json", json.dumps({
                "type": "external_account", "audience": "//iam.googleapis.com/a", "credential_source": source,
                "subject_token_type": f"urn:ietf:params:oauth:token-type:{kind}", "token_url": place + "/sts/v1/token"}))
            status, said = self.packages.python("google-file", GOOGLE, path)
            sent = f"/sts/v1/token 200 {read(self.content(source['file']))}\n" in self.packages.registry.text
            self.note(status == 0 and "exchanged" in said and sent, f"google-auth exchanges {name}", said)

    def try_rucio(self):
        """Without a variable that names the file. There is no server: only that the token is found."""
        try:
            python = os.path.join(installed("rucio", RUCIO_PACKAGE), "python")
        except subprocess.CalledProcessError:
            self.tools.report.skip("Rucio's client", "it cannot be installed")
            return
        status, said = self.tools.run(python, "-B", self.packages.write("ask_rucio.py", RUCIO))
        found = said.split()[-1:] == [self.content(self.token)]
        self.note(status == 0 and found, "Rucio's client finds a kept file by its name", said)
        self.tools.rows.append(RUCIO_PACKAGE.split("=="))
