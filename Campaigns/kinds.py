"""The kinds of accounts whose sessions are interrupted: how each is configured and signed in to, and what its provider says
of its tokens.
"""

import json
import os

from harness import must, tcp_request, write

CLIENT = "ringback-demo"
KEY = "sb_publishable_sandbox"
EMAIL, PASSWORD = "mira@example.org", "secret12"
SERVICE, SERVICE_SECRET = "robot", "robot-secret"
SCOPES = ["openid", "email", "offline_access"]


def account(name, **keys):
    """An account's lines in the configuration: texts, numbers and lists by the name of their key."""
    return f"[accounts.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def openid_account(name, issuer, scopes=SCOPES, **more):
    return account(name, issuer=issuer, **{"client_id": CLIENT, "scopes": scopes} | more)


def supabase_account(name, issuer, **more):
    """An account at the project of the sandbox with this issuer."""
    return account(name, provider="supabase", url=f"{issuer}/supabase", **{"api_key": KEY} | more)


class OpenID:
    """A person at an OpenID provider."""

    name = "OpenID"
    # Where a refresh is asked for.
    endpoint = "token"
    # True: whoever lost the answer to one refresh may ask again with the former token, however late.
    forgives_one = False

    def issuer(self, house):
        return house.sandbox

    def configuration(self, house, name, client):
        return openid_account(name, house.sandbox.issuer, client_id=client)

    def reset(self, house, **switches):
        house.sandbox.control(reset=True, auto_approve="alice", algorithm="ES256", **switches)

    def sign_in(self, house, name):
        return house.finish(*house.api("POST", f"/v1/accounts/{name}/sign-in", {"method": "browser"}))

    def honours(self, house, token):
        """Whether the provider takes the access token for this user's."""
        return house.sandbox.subject(token) == "alice"

    def revocations(self, house):
        """How often the provider has heard of a sign-out."""
        return self.issuer(house).counters["revocations"]

    def rotations(self, house):
        return self.issuer(house).counters["rotations"]


class Bound(OpenID):
    """The same, whose refresh tokens are bound to a key; each request there needs a nonce of its own (RFC 9449)."""

    name = "bound"

    def configuration(self, house, name, client):
        return openid_account(name, house.sandbox.issuer, client_id=client, dpop="refresh-only")

    def reset(self, house, **switches):
        super().reset(house, dpop="required", dpop_binds="refresh_tokens", dpop_nonce="once", **switches)


class Supabase(OpenID):
    """A user of a Supabase project. `refresh_tokens`: v1 is a row for each, v2 is a counter for each session."""

    endpoint = "supabase_token"
    forgives_one = True

    def __init__(self, refresh_tokens, is_kept=True, through=""):
        # The origin of a proxy that all requests go through.
        self.through = through
        self.refresh_tokens = refresh_tokens
        self.is_kept = is_kept
        self.name = f"Supabase {refresh_tokens}" + ("" if is_kept else ", persist = false")

    def issuer(self, house):
        return house.sandbox.project

    def configuration(self, house, name, client):
        # Through a proxy the tokens are the project's own all the same.
        more = {"token_issuer": house.sandbox.project.issuer + "/auth/v1"} if self.through else {}
        if client != CLIENT:
            more["api_key"] = "sb_publishable_other"
        return supabase_account(name, self.through or house.sandbox.issuer, **more)

    def reset(self, house, reuse_grace=0, access_token_lifetime=3_600, **switches):
        project = {
            "refresh_tokens": self.refresh_tokens, "reuse_interval": reuse_grace,
            "access_token_lifetime": access_token_lifetime, "secure_email_change": False,
            "users": [{"email": EMAIL, "password": PASSWORD}],
        }
        house.sandbox.project.control(reset=True, auto_approve="alice", **switches)
        house.sandbox.project.control(supabase=project)

    def sign_in(self, house, name, is_kept=None):
        is_kept = self.is_kept if is_kept is None else is_kept
        body = {"method": "password", "email": EMAIL, "password": PASSWORD} | ({} if is_kept else {"persist": False})
        return house.api("POST", f"/v1/accounts/{name}/sign-in", body)

    def call(self, house, method, path, body=None, token=None):
        """A request of another program to the project's Auth server: (status, document)."""
        headers = {"apikey": KEY, "Content-Type": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + token
        content = json.dumps(body) if body is not None else None
        status, _, answer, _ = tcp_request(f"{self.issuer(house).issuer}/auth/v1/{path}", method, content, headers)
        return status, json.loads(answer) if answer else {}

    def honours(self, house, token):
        # Whatever is changed of the user is not their password: the session is of the same user.
        status, document = self.call(house, "GET", "user", token=token)
        return status == 200 and document["email"] in (EMAIL, "new@example.org")

    def revocations(self, house):
        return self.issuer(house).counters["requests"]["supabase_logout"]

    def other_session(self, house):
        """A session that another program has of the same user."""
        return must(self.call(house, "POST", "token?grant_type=password", {"email": EMAIL, "password": PASSWORD}),
                    "another program's sign-in")


class Service(OpenID):
    """A service account: its session is there because it is configured, and nothing of it is kept."""

    name = "service"

    def configuration(self, house, name, client):
        path = house.place("config/secret")
        if not os.path.exists(path):
            write(path, SERVICE_SECRET + "\n")
        return openid_account(name, house.sandbox.issuer, ["openid"], client_id=SERVICE, client_secret_file=path,
                              grant="client_credentials")

    def reset(self, house, **switches):
        super().reset(house, **switches)
        house.sandbox.control(clients=[{"id": SERVICE, "secret": SERVICE_SECRET}])

    def honours(self, house, token):
        return house.sandbox.subject(token) == SERVICE


OPENID, BOUND = OpenID(), Bound()
SUPABASE_V1, SUPABASE_V2 = Supabase("v1"), Supabase("v2")
NOT_KEPT = Supabase("v2", is_kept=False)
SERVICE_ACCOUNT = Service()
