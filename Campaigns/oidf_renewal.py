"""The modules of the profiles Config and Refresh: where things are, which keys hold, and what a refresh may bring."""

from harness import expect
from house import ACCOUNT
from oidf_modules import CONFIG, REFRESH, module


@module(CONFIG)
def oidcc_client_test_discovery_openid_config(party):
    """The metadata says where everything is, and it is nowhere else.
    Reads it, and goes to where it says."""
    party.begin()
    front = party.front("authorize", "token", "userinfo", "jwks")
    party.accepts()
    numbers = {name: [entry["number"] for entry in party.log(name)] for name in ["discovery", "authorize"]}
    expect(numbers["discovery"] and numbers["discovery"][0] < numbers["authorize"][0], "discovery did not come first")
    for name in ["authorize", "token", "jwks"]:
        expect(front.count(name) == party.count(name) == 1, f"{name} was asked for in another place, or not once")
    # One of the two is the examiner's own.
    expect(front.count("userinfo") == 1, "the userinfo was asked for in another place, or not once")


@module(CONFIG)
def oidcc_client_test_discovery_jwks_uri_keys(party):
    """Each time, jwks_uri is at another place with a random name.
    Reads the keys there."""
    party.begin()
    for _ in range(2):
        front = party.front("jwks")
        party.restart()
        before = party.count("jwks")
        party.accepts()
        expect(front.count("jwks") == 1, f"the keys were asked for {front.count('jwks')} times at jwks_uri")
        expect(party.count("jwks") == before + 1, "the keys were asked for in another place")
        party.api("DELETE", f"/v1/accounts/{ACCOUNT}/session")


@module(CONFIG)
def oidcc_client_test_discovery_issuer_mismatch(party):
    """The metadata's issuer has an INVALID at its end.
    Stops before the authorization request."""
    party.begin()
    party.sandbox.control(perturb=["metadata_wrong_issuer"])
    outcome = party.attempt()
    expect(outcome.code == "invalid_provider_response", f"the sign-in ended as {outcome}")
    expect("issuer" in outcome.detail, f"refused for something else: {outcome.detail}")
    expect(outcome.callback is None, "there is an authorization URL")
    expect(party.count("discovery") > 0, "the metadata was not asked for")
    for name in ["authorize", "token", "userinfo"]:
        expect(party.count(name) == 0, f"{name} was asked for")
    party.holds_nothing()
    party.sandbox.control(clear=True)
    party.accepts()


@module(CONFIG)
def oidcc_client_test_signing_key_rotation_just_before_signing(party):
    """New keys are made, and the old ones go, just before the ID token is signed; the keys were read before.
    Reads the keys again: completes."""
    party.begin()
    party.accepts()
    expect(party.count("jwks") == 1, f"the keys were asked for {party.count('jwks')} times for the first sign-in")
    party.lie("id_token_new_key")
    party.accepts()
    expect(not party.untold, "the keys did not change")
    expect(party.count("jwks") == 2, f"the keys were asked for {party.count('jwks')} times")


# OIDF-20.
@module(CONFIG)
def oidcc_client_test_signing_key_rotation(party):
    """Two sign-ins; the keys are changed between them.
    Reads the keys again for the second: completes."""
    party.begin()
    party.accepts()
    party.api("DELETE", f"/v1/accounts/{ACCOUNT}/session")
    party.sandbox.control(rotate_keys=True)
    party.accepts()
    expect(party.count("jwks") == 2, f"the keys were asked for {party.count('jwks')} times")


def ready(party):
    """Signed in. Returns the access token that is held."""
    party.begin()
    party.accepts()
    return party.token()


@module(REFRESH)
def oidcc_client_test_refresh_token(party):
    """Rotates the refresh token and gives a new ID token.
    Refreshes, again with the new refresh token, and the userinfo takes the new access tokens."""
    held = {ready(party)}
    for _ in range(2):
        status, document = party.refresh()
        expect(status == 200, f"the refresh answered {status} {document.get('code')}")
        token = party.token()
        expect(token not in held, "the access token is an old one")
        held.add(token)
        expect(party.sandbox.subject(token) == "alice", "the new access token is not honoured")
        expect((party.identity() or {}).get("sub") == "alice", "there is no ID token")
    sent = [entry["parameters"]["refresh_token"] for entry in party.log("token")
            if entry["parameters"]["grant_type"] == "refresh_token"]
    expect(len(set(sent)) == len(sent) == 2, "a refresh token was sent twice")
    expect(party.sandbox.counters["reuse_detections"] == 0, "a replaced refresh token came back")


def refuses_refresh(party, perturbation, part, **switches):
    """Nothing of the answer is used, but for its refresh token: the old one is gone, and the session shall live on."""
    held, identity = ready(party), party.identity()
    if switches:
        party.sandbox.control(**switches)
    read, asked = party.count("userinfo"), party.sandbox.counters["refreshes"]
    for number in [1, 2]:
        party.lie(perturbation)
        status, document = party.refresh()
        expect(not party.untold, "the provider did not get to lie")
        expect(status == 502 and document.get("code") == "invalid_provider_response",
               f"the refresh answered {status} {document.get('code')}")
        expect(part in document.get("detail", ""), f"refused for something else: {document.get('detail')}")
        expect(party.sandbox.counters["refreshes"] == asked + number, "the provider was asked again")
        expect(party.count("userinfo") == read, "the userinfo was asked for")
    expect(party.token() == held, "another access token is handed out")
    expect(party.identity() == identity, "another ID token is handed out")
    expect(party.account().get("subject") == "alice", "the account is somebody else's")
    told = (party.account().get("error") or {}).get("code")
    expect(told == "invalid_provider_response", "the account does not say so")
    # An honest answer to the successor of the refresh token, across a restart.
    party.restart()
    status, document = party.refresh()
    expect(status == 200, f"the next refresh answered {status} {document.get('code')}")
    expect(party.sandbox.subject(party.token()) == "alice" and party.token() != held, "the session is lost")
    expect(party.sandbox.counters["reuse_detections"] == 0, "a replaced refresh token came back")


@module(REFRESH)
def oidcc_client_test_refresh_token_invalid_issuer(party):
    """The ID token of the refresh has an iss with a 1 at its end.
    Uses nothing of the answer; the session lives on."""
    refuses_refresh(party, "id_token_wrong_issuer", "(iss)")


@module(REFRESH)
def oidcc_client_test_refresh_token_invalid_sub(party):
    """The ID token of the refresh is about another sub.
    Uses nothing of the answer, its refresh token included, which is another session's; the session lives on."""
    # The own refresh token is presented again: a provider that mixed up two sessions has to take it.
    refuses_refresh(party, "id_token_other_subject", "(sub)", reuse_grace=60)
