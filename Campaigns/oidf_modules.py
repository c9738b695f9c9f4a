"""The modules of the OpenID conformance suite for relying parties, each under its own name.

Of the profiles Basic, Form Post, Config and Refresh, and beyond them what applies to a native client; the modules of
Form Post are those of Basic, where the answer comes as a form. Beyond what the suite can see from its side (a userinfo
request, or silence), each refusal must leave nothing behind, be for the reason at hand, and be followed by an honest
sign-in that completes. Where the suite takes either of two behaviours, ours is one of them and is asked for here.
"""

import inspect
import json
import urllib.parse

from harness import expect, tcp_request, write
from house import ACCOUNT
from oidf_front import browse, encryption_keys, koblitz

BASIC, FORM_POST, CONFIG, REFRESH, BEYOND = "Basic", "Form Post", "Config", "Refresh", "beyond"
SECRET = "a secret: 100 % + colon/slash & \u00fcmlaut"


class Module:
    """`text` says what the provider does, and what the relying party must do."""

    def __init__(self, name, plans, text, function):
        self.name, self.plans, self.text, self.function = name, plans, text, function


def refuses(lie, part):
    """A module in which the provider tells one lie, which is refused for the part that it is about."""

    def function(party):
        party.begin()
        party.refuses_lie(lie, part)
    return function


# The modules that are such a lie: name, profiles, what the provider does, the lie, and what the refusal is for.
MODULES = [Module("oidcc-client-test-" + name, plans, text, refuses(lie, part)) for name, plans, text, lie, part in [
    ("invalid-iss", (BASIC, FORM_POST), "The ID token's iss is the issuer and a 1.",
     "id_token_wrong_issuer", "(iss)"),
    ("missing-sub", (BASIC, FORM_POST), "The ID token has no sub.",
     "id_token_no_subject", "(sub)"),
    ("invalid-aud", (BASIC, FORM_POST), "The ID token's aud is the client's id and a 1.",
     "id_token_wrong_audience", "(aud)"),
    ("missing-iat", (BASIC, FORM_POST), "The ID token has no iat.",
     "id_token_no_iat", "(iat)"),
    ("idtoken-sig-none", (BASIC, FORM_POST, CONFIG),
     "The ID token is not signed: alg is none. May take it, over TLS. Ours refuses.", "id_token_alg_none", "(alg)"),
    ("invalid-sig-rs256", (BASIC, FORM_POST), "The signature by RS256 is broken. May skip the check, over TLS. Ours refuses.",
     "id_token_wrong_signature", "(signature)"),
    ("nonce-invalid", (BASIC, FORM_POST), "The ID token's nonce is the right one and a 1.",
     "id_token_wrong_nonce", "(nonce)"),
    ("missing-aud", (BEYOND,), "The ID token has no aud.", "id_token_no_audience", "(aud)"),
    ("invalid-sig-hs256", (BEYOND,), "The ID token is signed with HS256, which ours never takes.",
     "id_token_alg_hs256", "(alg)"),
]]


def module(*plans):
    """A module of more than a lie. The first line of its documentation is what the provider does."""

    def register(function):
        text = inspect.getdoc(function).replace("\n", " ")
        MODULES.append(Module(function.__name__.replace("_", "-"), plans, text, function))
        return function
    return register


def document(party, path):
    """A JSON document of the provider, as it is."""
    _, _, body, _ = tcp_request(party.sandbox.issuer + path)
    return json.loads(body)


def published(party, front):
    """The keys as the relying party sees them."""
    return front.changes["jwks"](document(party, "/jwks"))["keys"]


def more_keys(party, times=1):
    """New keys, while the old ones stay published."""
    for _ in range(times):
        document(party, "/jwks")
        party.sandbox.control(rotate_keys="keep")


def tally(keys):
    """How many keys there are of each type and curve that may sign."""
    count = {}
    for key in keys:
        if key.get("use") == "sig":
            kind = key.get("crv", key["kty"])
            count[kind] = count.get(kind, 0) + 1
    return count


@module(BASIC, FORM_POST)
def oidcc_client_test(party):
    """An honest provider with eleven keys: three for encryption, one on secp256k1 and one of a type nobody knows.
    Signs in, reads the userinfo, ignores the keys that are none of its business."""
    party.begin()
    more_keys(party)
    front = party.front(jwks=lambda honest: {"keys": encryption_keys() + honest["keys"]})
    count = tally(published(party, front))
    expect((count["RSA"], count["P-256"], count["secp256k1"], count["Ed25519"]) == (2, 2, 1, 2), f"keys: {count}")
    party.accepts()
    expect(front.count("jwks") == 1, f"the keys were asked for {front.count('jwks')} times")
    expect(party.account()["user"]["email"] == "alice@example.org", "the user is not known")


def is_nameless(party, front):
    return not any("kid" in key for key in published(party, front))


@module(BASIC, FORM_POST)
def oidcc_client_test_kid_absent_single_jwks(party):
    """No kid anywhere, and one key of each type.
    Finds the key by its type: completes."""
    party.begin(omit_kid=True)
    front = party.front(jwks=lambda honest: honest)
    count = tally(published(party, front))
    expect(is_nameless(party, front) and count["RSA"] == 1, f"keys: {count}")
    party.accepts()


@module(BASIC, FORM_POST)
def oidcc_client_test_kid_absent_multiple_jwks(party):
    """No kid anywhere, and three keys of each type.
    May refuse or try them all. Ours tries them all: completes, unless none of them signed."""
    party.begin(omit_kid=True)
    more_keys(party, 2)
    front = party.front(jwks=lambda honest: {"keys": [koblitz(), koblitz(), *honest["keys"]]})
    count = tally(published(party, front))
    expect(is_nameless(party, front), "a key has a kid")
    for kind in ["RSA", "P-256", "secp256k1", "Ed25519"]:
        expect(count[kind] == 3, f"keys: {count}")
    # Trying them all is not believing any of them.
    party.refuses_lie("id_token_wrong_signature", "(signature)")


@module(BASIC, FORM_POST)
def oidcc_client_test_idtoken_sig_rs256(party):
    """The metadata lists RS256 alone, and it is used.
    Completes."""
    party.begin()
    stated = document(party, "/.well-known/openid-configuration")
    expect(stated["id_token_signing_alg_values_supported"] == ["RS256"], "the metadata lists others")
    party.accepts()


@module(BASIC, FORM_POST)
def oidcc_client_test_userinfo_invalid_sub(party):
    """The userinfo is about another sub than the ID token.
    Does not use the userinfo. Ours refuses the tokens that came with it too."""
    party.begin()
    party.lie("userinfo_wrong_subject")
    party.refuses("userinfo", may_read=True)
    party.accepts()


@module(BEYOND)
def oidcc_client_test_userinfo_bearer_header(party):
    """Takes access tokens in the Authorization field alone.
    Sends it there, as `accepts` looks for."""
    party.begin()
    party.accepts()


@module(BASIC, FORM_POST)
def oidcc_client_test_scope_userinfo_claims(party):
    """The userinfo has the claims of the scopes that were asked for.
    Asks for profile and email, and knows the person by their claims."""
    party.scopes = ["openid", "profile", "email"]
    party.begin()
    party.accepts()
    asked = party.log("authorize")[-1]["parameters"]["scope"].split()
    expect(set(asked) == set(party.scopes), f"asked for {asked}")
    user = party.account()["user"]
    for name, value in [("name", "Alice"), ("preferred_username", "alice"), ("email", "alice@example.org")]:
        expect(user.get(name) == value, f"the user's {name} is {user.get(name)!r}")
    expect(user.get("email_verified") is True, "the user's email is not verified")


@module(BASIC, FORM_POST)
def oidcc_client_test_client_secret_basic(party):
    """Takes client_secret_basic alone; id and secret have characters that must be encoded first.
    Authenticates so, and in no other way."""
    identity = "client with spaces:and+colon"
    party.client = (identity, SECRET)
    client = {"id": identity, "secret": SECRET, "authentication": "client_secret_basic"}
    party.begin(clients=[client])
    party.accepts()
    request = party.log("token")[-1]
    expect(request["headers"].get("authorization", "").startswith("Basic "), "no Basic in the token request")
    expect("client_secret" not in request["parameters"], "the secret is in the form too")


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


@module(BEYOND)
def oidcc_client_test_refresh_token_invalid_aud(party):
    """The ID token of the refresh has another aud.
    Uses nothing of the answer; the session lives on."""
    refuses_refresh(party, "id_token_wrong_audience", "(aud)")


@module(BEYOND)
def oidcc_client_test_refresh_token_invalid_azp(party):
    """The ID token of the refresh has an azp, which the first had not.
    Uses nothing of the answer; the session lives on."""
    refuses_refresh(party, "id_token_wrong_azp", "(azp)")


@module(BEYOND)
def oidcc_client_test_invalid_sig_es256(party):
    """The signature by ES256 is broken.
    Refuses."""
    party.begin("ES256")
    party.refuses_lie("id_token_wrong_signature", "(signature)")


@module(BEYOND)
def oidcc_client_test_ignores_unparseable_key_in_jwks(party):
    """Among the keys are one of ML-DSA with parameters that do not exist, and one of a type that does not.
    Ignores them: completes."""
    party.begin()
    odd = [{"kty": "AKP", "alg": "ML-DSA-1", "use": "sig", "kid": "odd", "pub": "AAAA"},
           {"kty": "made-up", "use": "sig", "kid": "unknown", "made": ["up", {}]}]
    party.front(jwks=lambda honest: {"keys": odd + honest["keys"]})
    party.accepts()


@module(BEYOND)
def oidcc_client_test_form_post_error(party):
    """The authorization response is an error, and comes as a form.
    Ends the sign-in, and says so."""
    party.response_mode = "form_post"
    party.begin()
    flow = party.new_flow(ACCOUNT)
    callback = browse(flow["authorization_url"])
    answer = {name: callback.parameters[name] for name in ["state", "iss"]}
    callback.body = urllib.parse.urlencode(answer | {"error": "login_required"})
    _, page = callback.deliver()
    expect(page.startswith("/failed/"), f"the browser was sent to {page}")
    _, flow = party.api("GET", f"/v1/flows/{flow['id']}?wait=20")
    expect(flow["status"] == "failed" and flow["error"].get("provider_code") == "login_required", f"the flow is {flow}")
    party.holds_nothing()


# Ours never fetches claims from an address in an answer.
CLAIMS = {"_claim_names": {"address": "src"}}


@module(BEYOND)
def oidcc_client_test_dynamic_registration(party):
    """Registers clients.
    Registers itself, and signs in as what it got."""
    party.begin(registration="open")
    write(party.configuration, "")
    party.api("POST", "/v1/reload", {})
    done = party.ringback("account", "add", ACCOUNT, "--issuer", party.sandbox.issuer, "--register")
    expect(done.returncode == 0, f"account add ended with {done.returncode}: {done.stderr}")
    party.accepts()
    asked = party.log("authorize")[-1]["parameters"]["client_id"]
    expect(party.count("registration") == 1 and asked != party.client[0], f"it signs in as {asked}")


@module(BEYOND)
def oidcc_client_test_userinfo_signed(party):
    """The userinfo is a signed JWT.
    Checks the signature, and uses the claims."""
    party.begin("EdDSA")
    key, parties = party.own_key, {"iss": party.sandbox.issuer, "aud": party.client[0]}
    front = party.front(jwks=key.published, userinfo=lambda honest: key.signed(honest | parties))
    party.accepts()
    expect(party.account()["user"]["email"] == "alice@example.org", "the user is not known")
    front.changes["userinfo"] = lambda honest: key.signed(honest | parties)[:-8] + "AAAAAAAA"
    party.accepts()
    expect("email" not in party.account()["user"], "the claims of a broken signature are used")


@module(BEYOND)
def oidcc_client_test_aggregated_claims(party):
    """The userinfo brings claims of somebody else in a JWT.
    Completes, and does not take those claims for the provider's."""
    party.begin()
    party.front(userinfo=lambda honest: honest | CLAIMS | {"_claim_sources": {"src": {"JWT": "e30.e30.e30"}}})
    party.accepts()
    expect(set(party.account()["user"]) <= {"sub", "email", "email_verified"}, "foreign claims are shown")


@module(BEYOND)
def oidcc_client_test_distributed_claims(party):
    """The userinfo names an address with more claims, and a token for it.
    May go there. Ours never does: a provider's answer sends no request anywhere."""
    party.begin()
    front = party.front("token")
    sources = {"_claim_sources": {"src": {"endpoint": front.origin + "/claims", "access_token": "at-for-the-claims"}}}
    party.front(token=lambda honest: honest, userinfo=lambda honest: honest | CLAIMS | sources)
    party.accepts()
    expect(not front.requests, "the address was asked")
