"""The stage of the measurements: a private directory with the sandbox, a daemon and a signed-in account.

Nothing of the user's own set-up is read or changed: every place is named, the environment is a new one.
"""

import base64
import hashlib
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

GIT_HOST = "git.example.org"
ACCOUNT = "bench"
CLIENT = "ringback-demo"
# Longer than any run: no refresh happens while something is measured.
TOKEN_LIFETIME = 86_400
REDIRECT = "http://127.0.0.1:9/callback"  # of the stage's own sign-ins; nothing listens there


class Trouble(Exception):
    """The stage does not stand: what failed, for the person who runs the benchmark."""


class UnixHTTP(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("ringback", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def tcp_request(url, method="GET", body=None, headers=None):
    """One request over a new connection, redirects not followed: (status, headers, body, seconds)."""
    parts = urllib.parse.urlsplit(url)
    target = parts.path + ("?" + parts.query if parts.query else "")
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    started = time.perf_counter()
    connection.request(method, target or "/", body=body, headers=headers or {})
    answer = connection.getresponse()
    content = answer.read()
    elapsed = time.perf_counter() - started
    connection.close()
    return answer.status, answer.headers, content, elapsed


class Stage:
    def __init__(self, binaries):
        self.binaries = os.path.abspath(binaries)
        self.processes = []
        # By account: the provider's process and its issuer.
        self.sandboxes, self.issuers = {}, {}
        self.directory = tempfile.mkdtemp(prefix="ringback-bench-")
        self.socket = os.path.join(self.directory, "ringback.sock")
        self.configuration = os.path.join(self.directory, "config.toml")
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.directory,
            "XDG_RUNTIME_DIR": self.directory,
            "RINGBACK_SOCK": self.socket,
        }

    def binary(self, name):
        return os.path.join(self.binaries, name)

    def start(self, name, *arguments):
        """Starts a program of the project; stderr goes to a file that `why` shows."""
        with open(os.path.join(self.directory, name + ".log"), "ab") as log:
            process = subprocess.Popen(
                [self.binary(name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if name == "ringback-sandbox" else log,
                stderr=log,
                env=self.environment,
            )
        self.processes.append(process)
        return process

    def why(self, name):
        try:
            with open(os.path.join(self.directory, name + ".log"), errors="replace") as log:
                return "".join(log.readlines()[-5:]).strip()
        except OSError:
            return ""

    def daemon_arguments(self, place=""):
        """A daemon's flags; with a place, of another daemon beside the first one."""
        state = os.path.join(self.directory, "state" + place)
        os.makedirs(state, mode=0o700, exist_ok=True)
        path = os.path.join(self.directory, place + "ringback.sock")
        return ["--config", self.configuration, "--socket", path, "--state", state]

    def open(self, *others):
        """Starts the daemon with ACCOUNT and these other accounts, each at a sandbox of its own."""
        for account in [ACCOUNT, *others]:
            self.sandboxes[account], self.issuers[account] = self.start_sandbox()
        self.issuer = self.issuers[ACCOUNT]
        status, _, body, _ = tcp_request(self.issuer + "/.well-known/openid-configuration")
        if status != 200:
            raise Trouble(f"the sandbox's discovery answered {status}")
        self.metadata = json.loads(body)
        descriptor = os.open(self.configuration, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w") as file:
            for account, issuer in self.issuers.items():
                file.write(
                    f'[accounts.{account}]\nissuer = "{issuer}"\nclient_id = "{CLIENT}"\n'
                    'scopes = ["openid", "email", "offline_access"]\n'
                )
            file.write(f'[[origin]]\nurl = "https://{GIT_HOST}/*"\naccount = "{ACCOUNT}"\n')
        self.daemon = self.start("ringbackd", *self.daemon_arguments())
        self.wait_for_daemon()

    def start_sandbox(self):
        """(the process, its issuer); it signs alice in without asking."""
        sandbox = self.start(
            "ringback-sandbox", "--port", "0", "--access-token-lifetime", str(TOKEN_LIFETIME), "--user", "alice",
            "--auto-approve", "alice",
        )
        line = sandbox.stdout.readline().decode()
        if not line.startswith("listening on http://"):
            raise Trouble(f"ringback-sandbox did not start: {line!r} {self.why('ringback-sandbox')}")
        return sandbox, line.split()[-1]

    def wait_for_daemon(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.daemon.poll() is None:
            try:
                if self.api("GET", "/v1/status")[0] == 200:
                    return
            except OSError:
                time.sleep(0.01)
        raise Trouble("ringbackd does not answer: " + self.why("ringbackd"))

    def api(self, method, path, body=None):
        """A request to the daemon: (status, document)."""
        connection = UnixHTTP(self.socket)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content)

    def approve(self, authorization_url):
        """The browser's part: the sandbox approves at once and redirects. Returns the callback URL."""
        url = authorization_url
        for _ in range(3):
            status, headers, _, _ = tcp_request(url)
            if status not in (302, 303) or "Location" not in headers:
                raise Trouble(f"the sandbox's authorization endpoint answered {status}, not a redirect")
            url = urllib.parse.urljoin(url, headers["Location"])
            if not url.startswith(tuple(self.issuers.values())):
                return url
        raise Trouble("the sandbox redirects to itself without end")

    def sign_in(self, account=ACCOUNT):
        """A whole sign-in through the real callback listener. Returns the callback's seconds."""
        status, flow = self.api("POST", f"/v1/accounts/{account}/sign-in", {"method": "browser"})
        if status not in (200, 201) or "authorization_url" not in flow:
            raise Trouble(f"sign-in answered {status}: {flow}")
        callback = self.approve(flow["authorization_url"])
        status, headers, _, elapsed = tcp_request(callback)
        if status != 303 or "failed" in headers.get("Location", ""):
            raise Trouble(f"the callback answered {status} {headers.get('Location')}: {self.why('ringbackd')}")
        status, flow = self.api("GET", f"/v1/flows/{flow['id']}?wait=10")
        if flow.get("status") != "completed":
            raise Trouble(f"the flow ended as {flow}")
        return elapsed

    def direct_exchange(self):
        """The same exchange without Ringback: the token request's seconds, and its answer."""
        verifier = secrets.token_urlsafe(32)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = urllib.parse.urlencode({
            "response_type": "code", "client_id": CLIENT, "redirect_uri": REDIRECT,
            "scope": "openid email offline_access", "state": secrets.token_urlsafe(16), "nonce": "n",
            "code_challenge": challenge, "code_challenge_method": "S256",
        })
        callback = self.approve(self.metadata["authorization_endpoint"] + "?" + query)
        code = urllib.parse.parse_qs(urllib.parse.urlsplit(callback).query)["code"][0]
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "client_id": CLIENT,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, content, elapsed = tcp_request(
            self.metadata["token_endpoint"], "POST", urllib.parse.urlencode(form), headers
        )
        if status != 200:
            raise Trouble(f"the sandbox's token endpoint answered {status}")
        return elapsed, json.loads(content)

    def answer_length(self, path):
        """Bytes of the daemon's whole answer, head included."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(30)
            connection.connect(self.socket)
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: ringback\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise Trouble(f"{path} answered {answer[:100]!r}")
        return len(answer)

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGCONT)  # it may be stopped
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
