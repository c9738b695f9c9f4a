"""The house of the campaigns: the sandbox, a daemon and its places, in a private directory.

Nothing of the user's own set-up is read or changed: every place is named, the environment is a new one. What the daemon
keeps (state, key) is below one directory, `kept`, so that the shim can tell it from the rest.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "Benchmarks"))
sys.dont_write_bytecode = True
from stage import Trouble, UnixHTTP, tcp_request  # noqa: E402

from kinds import CLIENT, OPENID  # noqa: E402
from shim import Shim, build  # noqa: E402

ACCOUNT = "work"
PASSPHRASE = "passphrase-of-the-campaign"


class Died(Exception):
    """The daemon went away in the middle of a request, as it was meant to."""


class Issuer:
    """An issuer of the sandbox, and how to switch it and to look into it."""

    def __init__(self, issuer):
        self.issuer = issuer

    def control(self, **switches):
        headers = {"Content-Type": "application/json"}
        status, _, body, _ = tcp_request(self.issuer + "/sandbox/control", "POST", json.dumps(switches), headers)
        if status != 200:
            raise Trouble(f"the sandbox's control endpoint answered {status}: {body[:200]!r}")
        return json.loads(body)

    def look(self, what):
        status, _, body, _ = tcp_request(f"{self.issuer}/sandbox/{what}")
        if status != 200:
            raise Trouble(f"the sandbox's {what} answered {status}")
        return json.loads(body)

    @property
    def counters(self):
        return self.look("counters")


class Sandbox(Issuer):
    """One provider for many daemons: its switches are set back for each. `project` is its Supabase project."""

    def __init__(self, binaries, directory, *arguments):
        self.log = open(os.path.join(directory, "ringback-sandbox.log"), "ab")
        self.process = subprocess.Popen(
            [os.path.join(binaries, "ringback-sandbox"), "--port", "0", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
        )
        line = self.process.stdout.readline().decode()
        if not line.startswith("listening on http://"):
            raise Trouble(f"ringback-sandbox did not start: {line!r}")
        super().__init__(line.split()[-1])
        self.project = Issuer(self.issuer + "/supabase")

    def subject(self, access_token):
        """Whose token this is by the provider's word; None if it honours no such token."""
        headers = {"Authorization": "Bearer " + access_token}
        status, _, body, _ = tcp_request(self.issuer + "/userinfo", headers=headers)
        return json.loads(body)["sub"] if status == 200 else None

    def approve(self, authorization_url):
        """The browser's part, where the sandbox approves by itself. Returns the callback URL."""
        url = authorization_url
        for _ in range(6):
            status, headers, _, _ = tcp_request(url)
            if status not in (302, 303) or "Location" not in headers:
                raise Trouble(f"the sandbox's authorization endpoint answered {status}, not a redirect")
            url = urllib.parse.urljoin(url, headers["Location"])
            if not url.startswith(self.issuer):
                return url
        raise Trouble("the sandbox redirects to itself for ever")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class House:
    def __init__(self, binaries, accounts=(ACCOUNT,), sandbox_arguments=(), shimmed=True, log_level="info"):
        # Without symbolic links (`.build/release` is one): a program that asks for its own path is told the real one.
        self.binaries = os.path.realpath(binaries)
        self.accounts = list(accounts)
        self.log_level = log_level
        # What the accounts are (kinds.py): set before `fresh`.
        self.kind = OPENID
        self.directory = tempfile.mkdtemp(prefix="ringback-campaign-")
        self.kept = self.place("kept")
        self.socket = self.place("run/ringback.sock")
        self.configuration = self.place("config/config.toml")
        self.log_path = self.place("ringbackd.log")
        self.daemon = None
        self.shim = None
        # For operations that are followed by one sign-in, however often the daemon is started again.
        self.was_signed_in = False
        for name in ["config", "run", "tmp", "home"]:
            os.mkdir(self.place(name), 0o700)
        self.empty()
        if shimmed:
            self.shim = Shim(build(self.directory), self.place("shim.control"), self.kept + "/")
        self.sandbox = Sandbox(self.binaries, self.directory, *sandbox_arguments)

    def place(self, name):
        return os.path.join(self.directory, name)

    @property
    def environment(self):
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.place("home"), "TMPDIR": self.place("tmp"),
            "XDG_RUNTIME_DIR": self.place("run"), "XDG_DATA_HOME": self.place("kept/data"),
            "RINGBACK_SOCK": self.socket,
        }

    # MARK: places

    def empty(self):
        """Everything that was kept goes."""
        shutil.rmtree(self.kept, ignore_errors=True)
        for name in ["kept", "kept/state", "kept/data"]:
            os.mkdir(self.place(name), 0o700)

    def configure(self, more="", client=CLIENT):
        """Writes the configuration: every account is of the kind that is at hand."""
        text = "".join(self.kind.configuration(self, name, client) for name in self.accounts)
        descriptor = os.open(self.configuration, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text + more)

    def fresh(self, **switches):
        """No state, the provider as new, the configuration as it was: the beginning of a point."""
        self.kill()
        if self.shim:
            self.shim.put("fired", 0)
        self.empty()
        self.configure()
        self.was_signed_in = False
        self.kind.reset(self, **switches)

    # MARK: the daemon

    def launch(self):
        """Starts the daemon; does not wait for it."""
        environment = self.environment | (self.shim.environment if self.shim else {})
        with open(self.log_path, "ab") as log:
            self.daemon = subprocess.Popen(
                [os.path.join(self.binaries, "ringbackd"), "--config", self.configuration, "--socket", self.socket,
                 "--state", self.place("kept/state"), "--log-level", self.log_level],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.place("tmp"),
            )

    def start(self):
        self.launch()
        if not self.wait():
            raise Trouble(f"ringbackd does not answer: {self.why()}")
        if self.shim and self.shim.get("pid") != self.daemon.pid:
            raise Trouble("the shim is not in the daemon: is it a static executable?")

    def wait(self, seconds=20):
        """True once the daemon answers; False if it ends instead."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.daemon.poll() is None:
            try:
                return self.api("GET", "/v1/status")[0] == 200
            except Died:
                time.sleep(0.005)
        return False

    def kill(self):
        """SIGKILL, if it still runs."""
        if self.daemon:
            if self.daemon.poll() is None:
                self.daemon.kill()
            self.daemon.wait()
        self.daemon = None
        if self.shim:
            self.shim.disarm()

    @property
    def is_alive(self):
        return self.daemon is not None and self.daemon.poll() is None

    def why(self, lines=5):
        """The end of the daemon's log."""
        try:
            with open(self.log_path, errors="replace") as log:
                return " | ".join(line.strip() for line in log.readlines()[-lines:])
        except OSError:
            return ""

    def api(self, method, path, body=None, timeout=40):
        """A request to the daemon: (status, document)."""
        connection = UnixHTTP(self.socket)
        connection.timeout = timeout
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Died(f"{method} {path}: {type(error).__name__} {error}") from None
        finally:
            connection.close()

    def api_in_background(self, method, path, body):
        """Sends a request whose answer nobody waits for. Returns the connection."""
        connection = UnixHTTP(self.socket)
        connection.request(method, path, body=json.dumps(body), headers={"Content-Type": "application/json"})
        return connection

    def account(self, name=ACCOUNT):
        return self.api("GET", f"/v1/accounts/{name}")[1]

    def sign_in(self, name=ACCOUNT):
        """A whole sign-in, as the kind of the account has it: (status, the flow, the account or a problem)."""
        return self.kind.sign_in(self, name)

    def finish(self, status, flow):
        """Goes through the provider's pages and the real callback listener: (status, the flow or a problem)."""
        if "authorization_url" not in flow:
            return status, flow
        callback = self.sandbox.approve(flow["authorization_url"])
        try:
            tcp_request(callback)
        except (OSError, http.client.HTTPException) as error:
            raise Died(f"callback: {error}") from None
        status, flow = self.api("GET", f"/v1/flows/{flow['id']}?wait=20")
        return (200, flow) if flow.get("status") == "completed" else (status, flow.get("error", flow))

    def unlock(self):
        """Opens a vault that is locked, by the campaign's passphrase."""
        if self.api("GET", "/v1/status")[1].get("vault", {}).get("locked"):
            return self.api("POST", "/v1/vault/unlock", {"passphrase": PASSPHRASE})
        return 200, {}

    def close(self, keeps=False):
        self.kill()
        self.sandbox.close()
        put_away(self.directory, keeps)


def put_away(directory, keeps):
    """Removes a campaign's directory, or says where it is."""
    if keeps:
        print(f"ringback: everything is in {directory}", file=sys.stderr)
    else:
        shutil.rmtree(directory, ignore_errors=True)


def stop(process):
    """Ends a process that was started here, gently at first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def until(what, look, seconds=20):
    """The first answer that is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise Trouble(f"waited in vain for {what}")
