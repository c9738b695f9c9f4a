"""oidc-agent with one account, where it is installed (Debian: oidc-agent-cli): what Ringback is compared with. Its
configuration is in the stage's directory; the tokens that it returns are as long as Ringback's."""

import os
import shutil
import subprocess

from stage import ACCOUNT, Trouble
from tokenissuer import TokenIssuer

PROGRAMS = ["oidc-agent", "oidc-gen", "oidc-token"]


def is_installed():
    return all(map(shutil.which, PROGRAMS))


class OIDCAgent:
    """A running agent. `socket`: where it listens; `environment`: for its programs; `pids`: its processes."""

    def __init__(self, stage):
        directory = os.path.join(stage.directory, "oidc-agent")
        os.makedirs(directory, mode=0o700)
        self.environment = dict(stage.environment, OIDC_CONFIG_DIR=directory, TMPDIR=directory)
        self.issuer = None
        started = subprocess.run(
            ["oidc-agent"], env=self.environment, capture_output=True, text=True, timeout=10, check=True)
        for assignment in started.stdout.replace(";", "\n").splitlines():
            name, _, value = assignment.strip().partition("=")
            if name in ("OIDC_SOCK", "OIDCD_PID"):
                self.environment[name] = value
        try:
            self.socket = self.environment["OIDC_SOCK"]
            self.pid = int(self.environment["OIDCD_PID"])
            self.issuer = TokenIssuer(stage.direct_exchange()[1]["access_token"])
            self.add_account()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self):
        """The process that clients talk to, and the one that holds the tokens."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as file:
            return [self.pid, *map(int, file.read().split())]

    def add_account(self):
        made = subprocess.run(
            [
                "oidc-gen", "--manual", "--prompt=none", "--confirm-default", "--flow=refresh", "--pw-cmd=echo bench",
                f"--issuer={self.issuer.origin}", "--client-id=bench", "--client-secret=bench", "--rt=bench",
                "--redirect-uri=http://localhost:8080", "--scope=openid offline_access", ACCOUNT,
            ],
            env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        )
        if made.returncode != 0:
            raise Trouble("oidc-gen: " + " ".join((made.stderr or made.stdout).split())[:200])
        subprocess.run(["oidc-token", ACCOUNT], env=self.environment, check=True, capture_output=True, timeout=30)

    def close(self):
        if self.issuer:
            self.issuer.close()
        subprocess.run(["kill", self.environment.get("OIDCD_PID", "")], capture_output=True, timeout=10)
        # The agent keeps its socket below /tmp, whatever TMPDIR says.
        place = os.path.dirname(self.environment.get("OIDC_SOCK", ""))
        if os.path.basename(place).startswith("oidc-"):
            shutil.rmtree(place, ignore_errors=True)


def start(stage):
    """(the agent, None), or (None, why there is none)."""
    if not is_installed():
        return None, "not installed: skipped"
    try:
        return OIDCAgent(stage), None
    except (Trouble, subprocess.SubprocessError, OSError, KeyError, ValueError) as error:
        return None, f"skipped: {error}"
