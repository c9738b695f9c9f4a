"""The modules of the OpenID conformance suite for relying parties, each under its own name.

Of the profiles Basic, Form Post, Config and Refresh; the modules of Form Post are those of Basic, where the answer
comes as a form. Beyond what the suite can see from its side (a userinfo request, or silence), each refusal must leave
nothing behind, be for the reason at hand, and be followed by an honest sign-in that completes. Where the suite takes
either of two behaviours, ours is one of them and is asked for here.
"""

import inspect
import json

from harness import expect, tcp_request
from oidf_front import encryption_keys, koblitz

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


# Of none of the four profiles. Ours never fetches claims from an address in an answer.
CLAIMS = {"_claim_names": {"address": "src"}}


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
