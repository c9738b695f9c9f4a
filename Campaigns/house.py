"""The house of the campaigns: the sandbox and a daemon, in a private directory."""

import http.client
import json
import os
import tempfile
import urllib.parse

from harness import Daemon, Died, Trouble, begun, put_away, stop, tcp_request, write
from kinds import CLIENT, OPENID
from shim import Shim, build

ACCOUNT = "work"
PASSPHRASE = "passphrase-of-the-campaign"


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

    def hold(self, endpoint="token"):
        """The next request there takes effect, and its answer is held back until `release`."""
        self.control(faults=[{"endpoint": endpoint, "kind": "gate", "processed": True, "count": 1}])

    def await_held(self, endpoint="token"):
        self.look(f"wait?endpoint={endpoint}&count=1")

    def release(self):
        self.control(release=True)


class Sandbox(Issuer):
    """One provider for many daemons: its switches are set back for each. `project` is its Supabase project."""

    def __init__(self, binaries, directory, *arguments):
        self.process, line = begun(
            [os.path.join(binaries, "ringback-sandbox"), "--port", "0", *arguments],
            os.path.join(directory, "ringback-sandbox.log"), env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")})
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
        stop(self.process)


class House(Daemon):
    def __init__(self, binaries, accounts=(ACCOUNT,), sandbox_arguments=(), shimmed=True, log_level="info"):
        super().__init__(binaries, tempfile.mkdtemp(prefix="ringback-campaign-"))
        self.accounts = list(accounts)
        self.log_level = log_level
        # What the accounts are (kinds.py): set before `fresh`.
        self.kind = OPENID
        # For operations that are followed by one sign-in, however often the daemon is started again.
        self.was_signed_in = False
        if shimmed:
            self.shim = Shim(build(self.directory), self.place("shim.control"), self.kept + "/")
        self.sandbox = Sandbox(self.binaries, self.directory, *sandbox_arguments)

    def configure(self, more="", client=CLIENT):
        """Writes the configuration: every account is of the kind that is at hand."""
        text = "".join(self.kind.configuration(self, name, client) for name in self.accounts)
        write(self.configuration, text + more)

    def fresh(self, **switches):
        """No state, the provider as new, the configuration as it was: the beginning of a point."""
        self.kill()
        if self.shim:
            self.shim.put("fired", 0)
        self.empty()
        self.configure()
        self.was_signed_in = False
        self.kind.reset(self, **switches)

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
        if self.api("GET", "/v1/status")[1].get("vault", {}).get("locked"):
            return self.api("POST", "/v1/vault/unlock", {"passphrase": PASSPHRASE})
        return 200, {}

    def close(self, keeps=False):
        self.kill()
        self.sandbox.close()
        put_away(self.directory, keeps)
