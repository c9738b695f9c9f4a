"""What is done at each provider, step by step; a walk ends with an exception where something is not as it has to be.

The person has a browser, headless Chromium (Debian's), on the providers' own pages. Only loopback is reachable for these: what
they would load from elsewhere is refused.
"""

import base64
import json
import re
import secrets
import time
import urllib.parse
from playwright.sync_api import Error, sync_playwright
from providers import EMAIL, PASSWORD, PERSON

from harness import expect, until, write

# Clients at canaille, and what their ID tokens are signed with: one for each kind of key, and more because a consent is
# remembered for a client. The one named secret is confidential, the others are public.
CLIENTS = {
    "rs256": "RS256", "es256": "ES256", "eddsa": "EdDSA", "secret": "ES256", "denied": "EdDSA",
}

CHROMIUM = "/usr/bin/chromium"
# Of a page, in milliseconds: a busy machine and a provider that was just started.
PATIENCE = 30_000
# The page of a result has a random key behind its kind.
ENDED = re.compile(r"^http://127\.0\.0\.1:[0-9]+/(done|failed)/[^/?#]+#?$")


class Chromium:
    def __init__(self):
        self.playwright = sync_playwright().start()
        # Chromium's own sandbox needs what containers and root do not have; the pages are on loopback.
        self.browser = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    def person(self):
        return Person(self.browser)

    def close(self):
        self.browser.close()
        self.playwright.stop()


class Person:
    """One browser profile: signed in at a provider or not yet."""

    def __init__(self, browser):
        self.context = browser.new_context(locale="en-US")
        self.context.set_default_timeout(PATIENCE)
        self.context.route(lambda url: not url.startswith("http://127.0.0.1:"), lambda route: route.abort())
        self.page = self.context.new_page()

    def ending(self):
        """The constant page on which the walk ends, and its text."""
        self.page.wait_for_url(ENDED)
        return ENDED.match(self.page.url).group(1), self.page.inner_text("body")

    def at_canaille(self, url, answer="accept"):
        """Signs in and answers the consent page."""
        page = self.page
        page.goto(url)
        for field, value in [("login", PERSON), ("password", PASSWORD)]:
            page.fill(f"input[name={field}]", value)
            page.click("button[type=submit].primary")
        page.click(f"button#{answer}")
        return self.ending()

    def close(self):
        self.context.close()

    def where(self):
        """For a complaint: the page that the person stands before."""
        try:
            return f"{self.page.url.split('?')[0]}: {self.page.inner_text('body')[:300]!r}"
        except Error:
            return self.page.url


def signs_in(stage, walk, *more):
    status, line, page = stage.ringback.sign_in(stage.account, walk, *more)
    expect(status == 0 and page == "done",
           f"login ended with {status} at the page {page!r}: {line!r} {stage.ringback.told!r}")
    expect(line == f"Signed in to {stage.account} as {EMAIL}", f"login said {line!r}")


def honoured(stage, token):
    """The provider's userinfo accepts the token, and names the person."""
    status, claims = stage.provider.userinfo(token)
    expect(status == 200, f"userinfo answered {status} {claims!r} to a token that ringback gave")
    held = stage.house.account(stage.account).get("subject")
    expect(claims["sub"] == held, f"userinfo names {claims['sub']!r}, the account {held!r}")
    return token


def refreshed(stage, token):
    """A refresh that brings another token. Returns it. A signed token may be the same within a second: not a fault."""
    time.sleep(1.1)
    stage.ringback.run("refresh", stage.account, "--force")
    newer = honoured(stage, stage.ringback.token(stage.account))
    expect(newer != token, "the refresh brought the same token")
    return newer


def header(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "==="))


def whole_life(stage):
    """Sign in, use, refresh twice (the second with the rotated token), restart, refresh, sign out with revocation."""
    signs_in(stage, stage.person.at_canaille)
    token = honoured(stage, stage.ringback.token(stage.account))
    expect(token.count(".") == 2, "the access token is no JWT")
    identity = header(stage.ringback.token(stage.account, "--kind", "id_token"))
    expect(identity["alg"] == CLIENTS[stage.account], f"the ID token is signed with {identity['alg']}")
    token = refreshed(stage, refreshed(stage, token))
    stage.house.restart()
    expect(stage.ringback.token(stage.account) == token, "another token after the daemon was killed and started")
    signs_out(stage, refreshed(stage, token))


def signs_out(stage, token):
    """The session ends here, and at the provider wherever it lets this client revoke.

    canaille's revocation endpoint takes client_secret_basic alone, and says so in its metadata: a public client cannot
    revoke there. That is asked of it, not taken for granted.
    """
    stage.ringback.run("logout", stage.account)
    stage.ringback.run("token", stage.account, status=3)
    if stage.account == "secret":
        revoked(stage, token)
        return
    client = stage.house.clients[stage.account]
    status, body = stage.provider.post(
        stage.provider.metadata["revocation_endpoint"], {"token": token, "client_id": client})
    expect(status == 401 and b"invalid_client" in body,
           f"canaille answers {status} {body[:200]!r} to a public client's revocation: then ours must have revoked")


def revoked(stage, token, patience=20):
    """The provider no longer honours the token. A sign-out may end before the revocation is delivered."""
    until("the provider to refuse the token", lambda: stage.provider.userinfo(token)[0] in (400, 401, 403), patience)


def denial(stage):
    """The person's no: exit status 4, no session."""
    status, line, page = stage.ringback.sign_in(
        stage.account, lambda url: stage.person.at_canaille(url, answer="deny"))
    expect(status == 4, f"login ended with {status} after a denial, at the page {page!r}: {stage.ringback.told!r}")
    expect(page == "failed", f"the browser ended at {page!r}")
    stage.ringback.run("token", stage.account, status=3)


def strict(stage):
    """The provider is as strict as it is said to be: otherwise the other walks prove less than they seem to."""
    registered = f"http://127.0.0.1:1/{secrets.token_hex(4)}"
    client = stage.provider.client(registered, "RS256")["client_id"]
    endpoint = stage.provider.metadata["authorization_endpoint"]
    query = {"response_type": "code", "client_id": client, "scope": "openid", "state": "s", "nonce": "n",
             "redirect_uri": registered + "/longer"}
    codes = []

    def catch(route):
        codes.append(urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query)["code"][0])
        route.fulfill(status=200, body="caught")

    stage.person.context.route("http://127.0.0.1:1/**", catch)
    stage.person.ending = lambda: stage.person.page.wait_for_url("http://127.0.0.1:1/**")
    stage.person.at_canaille(endpoint + "?" + urllib.parse.urlencode(query | {"redirect_uri": registered}))
    status, body = stage.provider.post(stage.provider.metadata["token_endpoint"], {
        "grant_type": "authorization_code", "code": codes[0], "client_id": client, "redirect_uri": registered})
    expect(status == 400 and b"code_verifier" in body, f"a code without a verifier: {status} {body[:200]!r}")
    answer = stage.person.page.goto(endpoint + "?" + urllib.parse.urlencode(query))
    expect(answer.status == 400, f"another redirect URI: {answer.status} at {stage.person.page.url}")


def service_life(stage):
    """Client credentials: a token without a sign-in, fetched once, refreshed, fetched anew after a restart, revoked."""
    client = stage.house.services[stage.account]
    token = stage.ringback.token(stage.account)
    expect(stage.ringback.token(stage.account) == token, "a second call brought another token")
    expect(stage.provider.introspect(token, client).get("active") is True, "canaille does not know the token")
    stage.ringback.run("refresh", stage.account, "--force")
    newer = stage.ringback.token(stage.account)
    expect(newer != token, "the refresh brought the same token")
    stage.house.restart()
    token = stage.ringback.token(stage.account)
    expect(token != newer, "a token outlived the daemon: something of a service was written")
    stage.ringback.run("logout", stage.account)
    until("canaille to know of the sign-out", lambda: stage.provider.introspect(token, client).get("active") is False)
    expect(stage.ringback.token(stage.account) != token, "the token that was signed out was served again")


def service_refused(stage):
    """A wrong secret: said so, with the provider's word, and nothing is asked of a person."""
    write(stage.house.secret_file, "not-this-one\n")
    try:
        stage.ringback.run("refresh", stage.account, "--force", status=1)
        error = stage.house.account(stage.account).get("error", {})
        expect(error.get("provider_code") == "invalid_client" and error.get("recovery") == "fix_configuration",
               f"the account's error is {error}")
    finally:
        write(stage.house.secret_file, stage.house.services[stage.account][1] + "\n")
    stage.ringback.run("refresh", stage.account, "--force")
    stage.ringback.token(stage.account)


def assertion_life(stage):
    """RFC 7523: a signed statement in a file, read anew, is traded for a token that the provider honours."""
    client = stage.house.services[stage.account][0]

    write(stage.house.assertion_file, stage.provider.assertion(client) + "\n")
    status, claims = stage.provider.userinfo(stage.ringback.token(stage.account))
    expect(status == 200 and claims["sub"] == PERSON, f"userinfo answered {status} {claims!r}")
    write(stage.house.assertion_file, "not.a.token")
    stage.ringback.run("refresh", stage.account, "--force", status=1)
    expect(stage.house.account(stage.account)["error"].get("provider_code") == "invalid_grant",
           f"the account is {stage.house.account(stage.account)}")
    write(stage.house.assertion_file, stage.provider.assertion(client))
    # canaille signs its access tokens, and fails on a second one that is the same to the second.
    time.sleep(1.1)
    stage.ringback.run("refresh", stage.account, "--force")
    status, _ = stage.provider.userinfo(stage.ringback.token(stage.account))
    expect(status == 200, f"userinfo answered {status} to the second token")


CANAILLE = [
    ("canaille demands PKCE and the exact redirect URI", "rs256", strict),
    ("canaille, RS256: a session's whole life", "rs256", whole_life),
    ("canaille, ES256: a session's whole life", "es256", whole_life),
    ("canaille, Ed25519: a session's whole life", "eddsa", whole_life),
    ("canaille, a client with a secret: a session's whole life", "secret", whole_life),
    ("canaille: the person says no", "denied", denial),
]
SERVICE = [
    ("canaille: a service by client credentials", "service", service_life),
    ("canaille: a service with a wrong secret", "service", service_refused),
    ("canaille: a service by a signed assertion", "pod", assertion_life),
]
