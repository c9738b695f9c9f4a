"""A sandbox provider and a daemon of their own for the tests, in a private directory."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request

from ringback import Broker, NoDaemon

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BIN = os.path.realpath(os.environ.get("RINGBACK_TEST_BIN", os.path.join(ROOT, ".build/release")))
VAULT = """
[vault]
key_source = "key-file"
"""
WORK = """
[accounts.work]
issuer = "{issuer}"
client_id = "ringback-demo"
scopes = ["openid", "email", "offline_access"]
"""
# A Supabase project, that of the sandbox.
APP = """
[accounts.app]
provider = "supabase"
url = "{issuer}/supabase"
api_key = "sb_publishable_sandbox"
rpc = ["echo"]
edge_functions = ["echo", "nothing"]
"""
PROFILE = """profile = { table = "profiles", key = "id" }
"""


class Stage:
    def __init__(self, configuration=WORK):
        self.directory = tempfile.mkdtemp(prefix="ringback-python-")
        self.socket = os.path.join(self.directory, "run/ringback.sock")
        self.children = []
        for name in ["run", "home", "state"]:
            os.mkdir(os.path.join(self.directory, name), 0o700)
        environment = {"PATH": "/usr/bin:/bin", "HOME": os.path.join(self.directory, "home"),
                       "XDG_RUNTIME_DIR": os.path.join(self.directory, "run")}
        self.sandbox = subprocess.Popen(
            [os.path.join(BIN, "ringback-sandbox"), "--port", "0", "--user", "alice", "--auto-approve", "alice"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.children.append(self.sandbox)
        self.issuer = self.sandbox.stdout.readline().split()[-1]
        # What it prints more must not stop it.
        threading.Thread(target=self.sandbox.stdout.read, daemon=True).start()
        file_name = os.path.join(self.directory, "config.toml")
        with open(os.open(file_name, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write((VAULT + configuration).replace("{issuer}", self.issuer))
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.children.append(subprocess.Popen(
            [os.path.join(BIN, "ringbackd"), "--config", file_name, "--socket", self.socket, "--state",
             os.path.join(self.directory, "state")],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log))
        deadline = time.monotonic() + 20
        while True:
            try:
                Broker(self.socket).status()
                return
            except NoDaemon:
                if time.monotonic() > deadline or self.children[-1].poll() is not None:
                    self.close()
                    raise
                time.sleep(0.01)

    def userinfo(self, token):
        """The status of the provider's userinfo for a token."""
        request = urllib.request.Request(self.issuer + "/userinfo", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status

    def set_project(self, **settings):
        """What the project's dashboard would say."""
        request = urllib.request.Request(
            f"{self.issuer}/supabase/sandbox/control", json.dumps({"supabase": settings}).encode(),
            {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=20).close()

    def code(self, box="messages"):
        """The code that went out last: of the project's messages to phones, or of its mailbox."""
        with urllib.request.urlopen(f"{self.issuer}/supabase/sandbox/{box}", timeout=20) as response:
            return json.load(response)["letters"][-1]["code"]

    def close(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait(timeout=20)
        self.sandbox.stdout.close()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def browser(url):
    """A browser that follows every redirect: the sandbox approves by itself."""
    with urllib.request.urlopen(url, timeout=20) as response:
        response.read()
