"""The stage of memory.py: accounts of all kinds, whose providers' answers go through a recorder that knows every token."""

import contextlib
import json
import ssl
from concurrent.futures import ThreadPoolExecutor

from harness import certificate, must, unix_connection
from house import House
from kinds import OPENID, SERVICE_ACCOUNT, Supabase
from proxy import Answer, Proxy, read_request

OPENID_NAME, SERVICE_NAME, PAGED = "openid", "robot", "paged"
# Of the project: how a session comes, whether refresh tokens are rows or counters, whether it is kept, whether by TLS.
PROJECT = {
    "rows": ("password", "v1", True, False),
    "counted": ("password", "v2", True, True),
    "unkept": ("password", "v2", False, True),
    "handed": ("session", "v2", True, True),
    PAGED: ("browser", "v1", True, True),
}
ACCOUNTS = [OPENID_NAME, SERVICE_NAME, *PROJECT]
TOKENS = {
    "access_token": "access token", "refresh_token": "refresh token", "id_token": "ID token",
    "provider_token": "upstream provider's token", "provider_refresh_token": "upstream provider's token",
}


class Recorder(Proxy):
    """Keeps what the provider answers. Connections stay open, as those of large providers do; TLS with a certificate."""

    def __init__(self, issuer, files=()):
        self.context = None
        # Where answers with tokens are cut, the next one last.
        self.cuts = []
        if files:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*files)
        super().__init__(issuer)
        if files:
            self.origin = self.origin.replace("http:", "https:")

    def serve(self, connection):
        connection.settimeout(600)
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection:
                while self.exchange(connection):
                    pass
        except OSError:
            return

    def exchange(self, connection):
        head, body = read_request(connection)
        if not head:
            return False
        answer = self.ask(head, body)
        with self.lock:
            self.seen.append((head, body, answer))
            length = self.cuts.pop() if self.cuts and b"access_token" in answer else None
        if length is not None:
            connection.sendall(answer[:length])
            return False
        top, _, content = answer.partition(b"\r\n\r\n")
        lines = [line for line in top.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + content)
        return True

    def secrets(self):
        """Every token of an answer so far: {token: kind}."""
        found = {}
        with self.lock:
            seen = list(self.seen)
        for _, _, answer in seen:
            try:
                document = json.loads(Answer(answer).body)
            except ValueError:
                continue
            for name, kind in TOKENS.items():
                if isinstance(document, dict) and isinstance(document.get(name), str):
                    found[document[name].encode()] = kind
        return found


class Everybody:
    """What an account is, by its name."""

    def __init__(self, recorders, certificate):
        # By whether they speak TLS.
        self.recorders = recorders
        self.trust = f'ca_file = "{certificate}"\n'
        # A session is handed in by a client that stays connected: set once the daemon runs.
        self.kept = None

    def of(self, name):
        if name in PROJECT:
            _, tokens, is_kept, is_secure = PROJECT[name]
            return Supabase(tokens, is_kept, through=self.recorders[is_secure].origin)
        return SERVICE_ACCOUNT if name == SERVICE_NAME else OPENID

    def configuration(self, house, name, client):
        is_browser = name in PROJECT and PROJECT[name][0] == "browser"
        more = 'oauth_provider = "github"\n' if is_browser else ""
        return self.of(name).configuration(house, name, client) + more + self.trust

    def reset(self, house, **switches):
        SERVICE_ACCOUNT.reset(house, **switches)
        Supabase("v2").reset(house)
        secure = self.recorders[True].origin
        places = {"token": "/token", "userinfo": "/userinfo", "revocation": "/revoke"}
        house.sandbox.control(endpoints={name: secure + path for name, path in places.items()})

    def sign_in(self, house, name):
        """Signs in as the account's kind has it; returns tokens that no recorder has seen."""
        if name not in PROJECT:
            if name == OPENID_NAME:
                must(OPENID.sign_in(house, name), f"the sign-in of {name}")
            return {}
        method, tokens, _, _ = PROJECT[name]
        house.sandbox.project.control(supabase={"refresh_tokens": tokens})
        kind = self.of(name)
        if method == "password":
            must(kind.sign_in(house, name), f"the sign-in of {name}")
            return {}
        if method == "browser":
            body = {"method": "browser", "provider_token": True}
            flow = house.api("POST", f"/v1/accounts/{name}/sign-in", body)
            must(house.finish(*flow), f"the sign-in of {name}")
            return {}
        theirs = kind.other_session(house)
        handed = {part: theirs[part] for part in ["access_token", "refresh_token"]}
        must(self.kept.post(f"/v1/accounts/{name}/sign-in", {"method": "session"} | handed), "handing in a session")
        return {token.encode(): TOKENS[part] for part, token in handed.items()}


def stage(binaries):
    """A house with these accounts and the recorders in front of its provider."""
    house = House(binaries, accounts=ACCOUNTS, shimmed=False)
    files = certificate(house.place("config"), "authority")
    recorders = [Recorder(house.sandbox.issuer), Recorder(house.sandbox.issuer, files)]
    house.kind = Everybody(recorders, files[0])
    return house


def unread(house, name, count=2_000):
    """A client that asks often and reads nothing: more than the kernel holds. Returns its connection."""
    connection = unix_connection(house.socket)
    request = f"GET /v1/accounts/{name}/session HTTP/1.1\r\nHost: ringback\r\n\r\n".encode()
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        connection.send(request * count)
    return connection


def crowd(house, paths, clients=24, times=8):
    """Many clients at once, so that every thread of the daemon has a part in it."""

    def ask():
        for path in paths * times:
            house.api("GET", path)

    with ThreadPoolExecutor(clients) as pool:
        for _ in range(clients):
            pool.submit(ask)
