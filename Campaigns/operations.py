"""What is interrupted: the operations that write, and how to see afterwards that no session was lost."""

import signal
import subprocess
import threading
import time

from harness import Died, Trouble, must, soon
from house import ACCOUNT, PASSPHRASE
from kinds import OPENID

SESSION = f"/v1/accounts/{ACCOUNT}/session"
REFRESH = f"/v1/accounts/{ACCOUNT}/refresh"
# Seconds after which a daemon that was told to stop has ended, whatever it waits for.
STOP_TIME = 25


class Operation:
    """`prepare` leads to the state before; `run` is what is interrupted: (status, document)."""

    def __init__(self, name, run, prepare=None, before="session", after="session", writes=True, back=None,
                 is_unheard=False, rotations=1, kind=OPENID, restarted=None, is_sign_out=False, shows=None, is_two_behind=False,
                 replaces=None):
        self.name = name
        self.run = run
        self.prepare = prepare or signed_in
        # What there is before it and when it has run through.
        self.before = before
        self.after = after
        # What there is instead when the daemon has been killed and started again, where that is another thing.
        self.before_restarted, self.after_restarted = restarted or (before, after)
        # False: there may be nothing to write.
        self.writes = writes
        # Before it the provider rotated unheard: one that forgives nothing has ended the session.
        self.is_unheard = is_unheard
        # How often the provider is asked for a new refresh token, if it is.
        self.rotations = rotations
        # What leads back, once the daemon runs again, to where the session is to be seen.
        self.back = back or (lambda house: None)
        self.kind = kind
        # True: when it is over, the provider has been told that the session has ended.
        self.is_sign_out = is_sign_out
        # The provider rotates twice for it: with the former token nobody is forgiven.
        self.is_two_behind = is_two_behind
        # Of a house with the session: "" or what is missing of what it changed, when it has run through.
        self.shows = shows or (lambda house: "")
        # Of a house with the session, after a restart: "" or what is wrong with the session that was there before it.
        self.replaces = replaces or (lambda house: "")

    @property
    def ends(self):
        return {self.before, self.after}

    @property
    def restarted_ends(self):
        """What there may be after a kill at any time, and a start."""
        return {self.before_restarted, self.after_restarted}

    def fresh(self, house, grace):
        """The beginning of a point: no state, a provider that forgives reuse for so many seconds."""
        house.kind = self.kind
        house.fresh(reuse_grace=grace)


def nothing(house):
    """Not even a vault."""


def signed_out(house):
    house.start()
    must(opened(house), "opening the vault")


def opened(house, seconds=20, asks=True):
    """Waits until the vault is open, or says why it is not: (status, the daemon's status). The daemon looks again every
    15 seconds by itself; a person who asks is not made to wait for that."""
    if asks and house.api("GET", "/v1/status")[1].get("vault", {}).get("locked"):
        house.api("POST", "/v1/vault/unlock", {})
    deadline = time.monotonic() + seconds
    while True:
        status, document = house.api("GET", "/v1/status")
        vault = document.get("vault", {})
        if not vault.get("locked") or time.monotonic() > deadline:
            code = {"code": "vault_locked", "detail": vault.get("reason", "the vault stays locked")}
            return (423, code) if vault.get("locked") else (status, document)
        time.sleep(0.01)


def first_start(house):
    status, document = start(house)
    return opened(house, seconds=1, asks=False) if status == 200 else (status, document)


def signed_in(house):
    signed_out(house)
    must(house.sign_in(), "the sign-in before")


def signed_in_and_locked(house):
    signed_in(house)
    must(house.api("POST", "/v1/vault/lock", {}), "locking before")


def stopped(house):
    signed_in(house)
    house.kill()


def refreshing(house):
    """A refresh that the provider has done, and not answered. Returns the app's connection."""
    signed_in(house)
    provider, endpoint = house.kind.issuer(house), house.kind.endpoint
    provider.hold(endpoint)
    connection = house.api_in_background("POST", REFRESH, {"force": True})
    provider.await_held(endpoint)
    return connection


def interrupted(house):
    """A refresh whose answer never came: the daemon was killed while the provider worked at it."""
    connection = refreshing(house)
    house.kill()
    connection.close()
    house.kind.issuer(house).release()


def stop(house, held=0.2):
    """SIGTERM, and the provider's answer to the refresh under way after so many seconds."""
    answer = threading.Timer(held, house.kind.issuer(house).release)
    answer.start()
    house.daemon.send_signal(signal.SIGTERM)
    try:
        status = house.daemon.wait(STOP_TIME)
    except subprocess.TimeoutExpired:
        return 504, {"code": "none", "detail": f"it has not stopped after {STOP_TIME} s"}
    finally:
        answer.join()
    if status == -signal.SIGKILL:
        raise Died("it was killed")
    return (200, {}) if status == 0 else (500, {"code": "not_stopped", "detail": f"it ended with {status}"})


def start_again(house):
    if not house.is_alive:
        house.restart()


def sign_in_once(house):
    """What the first start has made must be able to keep a session."""
    if not house.was_signed_in:
        must(opened(house), "opening the vault")
        must(house.sign_in(), "the sign-in afterwards")
        house.was_signed_in = True


def asking(method, path, body=None):
    """An operation that is one request."""
    return lambda house: house.api(method, path, body)


refresh, sign_out = asking("POST", REFRESH, {"force": True}), asking("DELETE", SESSION)
lock, unlock = asking("POST", "/v1/vault/lock", {}), asking("POST", "/v1/vault/unlock", {})


def two_refreshes(house):
    """Once its successor was used, no provider forgives the use of a token: the second makes a loss final."""
    first = house.api("POST", REFRESH, {"force": True})
    second = house.api("POST", REFRESH, {"force": True})
    return max(first, second, key=lambda answer: answer[0])


def set_aside(house):
    """The account becomes another client's: its session is out of reach, and stays."""
    house.configure(client="another-client")
    return house.api("POST", "/v1/reload", {})


def bring_back(house):
    house.configure()
    must(house.api("POST", "/v1/reload", {}), "going back to the first client")


def reload(house):
    house.accounts.append("another")
    try:
        house.configure()
    finally:
        house.accounts.remove("another")
    return house.api("POST", "/v1/reload", {})


def start(house):
    house.launch()
    if house.wait():
        return 200, {}
    if house.daemon.poll() is None:
        return 504, {"code": "none", "detail": "it neither answers nor ends"}
    if house.daemon.returncode < 0:
        raise Died("it was killed")
    return 500, {"code": "not_started", "detail": house.why(1)}


OPERATIONS = [
    Operation("first start", first_start, nothing, back=sign_in_once),
    Operation("sign-in", lambda house: house.sign_in(), signed_out, before="none"),
    Operation("sign-in again", lambda house: house.sign_in()),
    Operation("refresh", refresh),
    Operation("two refreshes", two_refreshes, rotations=2),
    Operation("sign-out", sign_out, after="none", is_sign_out=True),
    Operation("lock", lock, writes=False),
    Operation("unlock", unlock, signed_in_and_locked, writes=False),
    Operation("rekey to a passphrase", asking(
        "POST", "/v1/vault/rekey", {"key_source": "passphrase", "passphrase": PASSPHRASE})),
    Operation("rekey to another file", asking("POST", "/v1/vault/rekey", {"key_source": "key-file"})),
    Operation("reload", reload, writes=False),
    Operation("reload to another client", set_aside, writes=False, back=bring_back),
    Operation("start", start, stopped),
    Operation("start after a cut refresh", start, interrupted, is_unheard=True),
    Operation("stop in a refresh", stop, refreshing, back=start_again),
]


def ending(house, shows=None):
    """How the account stands: "session" (its token is honoured, and so is the next), "none", "expired" (and it says
    so), or what is wrong. `shows` looks for what an operation that has run through has changed."""
    try:
        status, document = house.unlock()
        if status != 200:
            return f"the vault stays locked: {status} {document.get('code')} {document.get('detail')}"
        status, document = house.api("GET", SESSION + "?timeout=20")
        if status != 200:
            return refusal(house, status, document)
        missing = shows(house) if shows else ""
        if missing:
            return missing
        is_honoured = house.kind.honours(house, document["access_token"])
        status, document = refresh(house)
        if status != 200:
            return refusal(house, status, document)
        # Only a provider that has ended the session refuses a token that has not expired: then so is the next refresh.
        if not is_honoured:
            return "the token that was held is not honoured"
        status, document = house.api("GET", SESSION + "?timeout=20")
        if status != 200:
            return refusal(house, status, document)
        return "session" if house.kind.honours(house, document["access_token"]) else "the new token is not honoured"
    except Died as error:
        return f"the daemon went away: {error}"


def refusal(house, status, document):
    code = document.get("code")
    told = (house.account().get("error") or {}).get("code")
    if status == 401 and "session_expired" in (code, told):
        return "expired"
    if status == 401 and code == "sign_in_required":
        return "none"
    return f"{status} {code} {document.get('detail')}"


def is_revoked(house, seconds=10):
    """True once the provider has heard of the sign-out."""
    return soon(lambda: house.kind.revocations(house) > 0, seconds)


def reconnoitre(house, operation, grace, scope):
    """The calls of an undisturbed run."""
    operation.fresh(house, grace)
    operation.prepare(house)
    house.shim.arm(scope=scope)
    status, document = operation.run(house)
    settle(house)
    calls = house.shim.log()
    house.kill()
    if status in (404, 405):
        raise Trouble(f"the daemon does not do this: {document.get('detail') or document.get('title')}")
    if status not in (200, 201):
        raise Trouble(f"nothing was done to it, but it answered {status} {document}")
    if operation.writes and not any(call.is_kept for call in calls):
        raise Trouble("it wrote nothing to the state: there is nothing to interrupt")
    return calls


def examiner_sees_losses(house):
    """A vault in memory loses its session in a crash. Who cannot see that sees nothing."""
    house.kind = OPENID
    house.fresh()
    house.configure('[vault]\nkey_source = "memory"\n')
    signed_in(house)
    if ending(house) != "session":
        return False
    house.restart()
    return ending(house) == "none"


def attempt(house, operation):
    """Runs it, whatever is done to it: (its answer, its trouble)."""
    answer, trouble = None, None
    try:
        answer = operation.run(house)
    except Trouble as error:
        trouble = error
    settle(house)
    return answer, trouble


def settle(house, quiet=0.1, atMost=5):
    """Waits until what an operation left to be done is done: no more calls for a while, or the daemon is gone."""
    deadline = time.monotonic() + atMost
    count, since = house.shim.count, time.monotonic()
    while time.monotonic() < deadline and house.is_alive and time.monotonic() - since < quiet:
        time.sleep(0.005)
        if house.shim.count != count:
            count, since = house.shim.count, time.monotonic()
