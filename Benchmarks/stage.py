"""The stage of the measurements: a house of the campaigns with signed-in accounts, each at a sandbox of its own."""

import base64
import hashlib
import json
import os
import secrets
import sys
import urllib.parse

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Campaigns"))
from harness import (  # noqa: E402, F401
    ROOT, Trouble, children, compiled, memory, progress, stop, tcp_request, unix_connection, write)
from house import House, Sandbox  # noqa: E402
from kinds import CLIENT, openid_account  # noqa: E402

GIT_HOST = "git.example.org"
ACCOUNT = "bench"
# Longer than any run: no refresh happens while something is measured. The sandbox signs alice in without asking.
SANDBOX = ["--access-token-lifetime", "86400", "--user", "alice", "--auto-approve", "alice"]
REDIRECT = "http://127.0.0.1:9/callback"  # of the stage's own sign-ins; nothing listens there


class Stage(House):
    def __init__(self, binaries):
        super().__init__(binaries, accounts=[ACCOUNT], sandbox_arguments=SANDBOX, shimmed=False)
        # Other programs, which end with the stage.
        self.processes = []
        # By account.
        self.sandboxes = {ACCOUNT: self.sandbox}

    def open(self, *others):
        """Starts the daemon with ACCOUNT and these other accounts."""
        for account in others:
            self.sandboxes[account] = Sandbox(self.binaries, self.directory, *SANDBOX)
        status, _, body, _ = tcp_request(self.sandbox.issuer + "/.well-known/openid-configuration")
        if status != 200:
            raise Trouble(f"the sandbox's discovery answered {status}")
        self.metadata = json.loads(body)
        text = "".join(openid_account(account, sandbox.issuer) for account, sandbox in self.sandboxes.items())
        write(self.configuration, text + f'[[origin]]\nurl = "https://{GIT_HOST}/*"\naccount = "{ACCOUNT}"\n')
        self.start()

    def sign_in(self, account=ACCOUNT):
        """A whole sign-in through the real callback listener. Returns the callback's seconds."""
        flow = self.new_flow(account)
        callback = self.sandboxes[account].approve(flow["authorization_url"])
        status, headers, _, elapsed = tcp_request(callback)
        if status != 303 or "failed" in headers.get("Location", ""):
            raise Trouble(f"the callback answered {status} {headers.get('Location')}: {self.why()}")
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
        callback = self.sandbox.approve(self.metadata["authorization_endpoint"] + "?" + query)
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
        with unix_connection(self.socket, 30) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: ringback\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise Trouble(f"{path} answered {answer[:100]!r}")
        return len(answer)

    def close(self, keeps=False):
        for process in reversed(self.processes):
            stop(process)
        for sandbox in list(self.sandboxes.values())[1:]:
            sandbox.close()
        super().close(keeps)
