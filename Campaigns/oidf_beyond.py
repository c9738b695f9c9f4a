"""Modules of the suite that belong to none of the four profiles, and mean something to a native app all the same.

Where they ask for what ours never does (fetching claims from an address in an answer), not doing it is asked for.
"""

from harness import expect
from oidf_modules import BEYOND, SECRET, module


@module(BEYOND)
def oidcc_client_test_form_post_error(party):
    """Asked not to ask anybody, answers login_required, as a form.
    Shows a page, and ends the flow with what was said."""
    party.response_mode = "form_post"
    party.begin(auto_approve=False)
    party.refuses("login_required", code="provider_error", params={"prompt": "none", "max_age": "0"})
    asked = party.log("authorize")[-1]["parameters"]
    expect((asked["prompt"], asked["max_age"]) == ("none", "0"), "prompt and max_age were not asked for")


@module(BEYOND)
def oidcc_client_test_userinfo_bearer_header(party):
    """The userinfo takes the token in the header.
    Sends it there, and nowhere else."""
    party.begin()
    party.accepts()


@module(BEYOND)
def oidcc_client_test_invalid_sig_es256(party):
    """The metadata lists ES256 alone; the signature is broken.
    May skip the check, over TLS. Ours refuses."""
    party.begin(algorithm="ES256")
    party.refuses_lie("id_token_wrong_signature", "(signature)")


@module(BEYOND)
def oidcc_client_test_invalid_sig_hs256(party):
    """The metadata lists HS256 alone, which takes the client's secret for a key; the signature is broken.
    May skip the check, over TLS. Ours refuses, and HS256 itself too."""
    party.client = ("client", SECRET)
    party.begin(clients=[{"id": "client", "secret": SECRET}], perturb=["metadata_only_hs256"])
    outcome = party.attempt()
    is_refused = not outcome.is_completed and outcome.code == "invalid_configuration" and "HS256" in outcome.detail
    expect(is_refused, f"the sign-in began all the same: {outcome}")
    party.holds_nothing()
    # Metadata that keep silent about it bring such a token as far as its signature.
    party.begin(clients=[{"id": "client", "secret": SECRET}])
    for lies in [["id_token_alg_hs256", "id_token_wrong_signature"], ["id_token_alg_hs256"]]:
        for lie in lies:
            party.lie(lie)
        outcome = party.attempt()
        is_refused = not outcome.is_completed and outcome.code == "invalid_provider_response"
        expect(is_refused, f"the sign-in ended as {outcome}")
        expect("(alg)" in outcome.detail, f"refused for something else: {outcome.detail}")
        expect(party.count("userinfo") == 0, "the userinfo was asked for")
        party.holds_nothing()
    expect(not party.untold, f"the provider did not get to say {party.untold}")


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
