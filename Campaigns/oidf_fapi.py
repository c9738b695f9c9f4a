"""The modules of the FAPI 2 Security Profile (Final) for clients, each under its own name, and those of the whole suite
that are not played.

The provider demands private_key_jwt, pushed requests, tokens that are bound to a key, and for each proof a nonce that
is good once; it signs ID tokens with PS256. The rules for a refusal are those of `oidf_modules.py`.
"""

import hashlib

from harness import expect, must
from house import ACCOUNT
from oidf_modules import MODULES, Module, oidcc_client_test_discovery_issuer_mismatch, refuses

# The second is the same with nobody to sign in: the client credentials grant.
FAPI, FAPI_SERVICE, FAPI_BEYOND = "FAPI 2", "FAPI 2, service", "FAPI 2, beyond"
CLIENT = "fapi-client"
WRONG_HASH = "AAAAAAAAAAAAAAAAAAAAAA"


def ignores(lie, *problem):
    """An authorization response that is not used, and what the flow says of it while it waits for a genuine one."""

    def function(party):
        party.begin()
        party.ignores(lie, *problem)
    return function


def accepts(*lies, **switches):
    """A provider that differs in what a client has to accept."""

    def function(party):
        party.begin(perturb=list(lies), **switches)
        party.accepts()
    return function


def accepts_answer(change):
    """The same, where a front changes the token response."""

    def function(party):
        party.begin("EdDSA")
        key = party.own_key
        party.front(jwks=key.published, token=lambda answer: change(answer, key))
        party.accepts()
    return function


def refuses_answer(part, change):
    def function(party):
        party.begin("EdDSA")
        key = party.own_key
        front = party.front(jwks=key.published, token=lambda answer: change(answer, key))
        party.refuses(part)
        del front.changes["token"]
        party.accepts()
    return function


def alternate_algorithm(party):
    party.begin()
    # The same key signs with both.
    party.refuses("(alg)", meanwhile=lambda: party.sandbox.control(algorithm="RS256"))
    party.sandbox.control(algorithm="PS256")
    party.accepts()


def scheme_in_other_case(party):
    party.begin()
    front = party.front("userinfo")
    front.fields["WWW-Authenticate"] = lambda challenge: challenge.replace("DPoP", "dPoP", 1)
    party.accepts()
    asked = [entry["status"] for entry in party.log("userinfo") if "dpop" in entry["headers"]]
    expect(asked[:2] == [401, 200], f"userinfo answered {asked} to proofs")


def refused_tokens(party):
    party.begin()
    party.accepts()
    for _ in range(2):
        held = party.token()
        body = {"method": "GET", "url": party.userinfo, "rejected_sha256": hashlib.sha256(held.encode()).hexdigest()}
        must(party.api("POST", f"/v1/accounts/{ACCOUNT}/proof", body), "the proof")
        expect(party.token() != held and party.honours(party.token()), "there is no new token")
    used = [entry["parameters"]["refresh_token"] for entry in party.log("token")
            if entry["parameters"]["grant_type"] == "refresh_token" and entry["status"] == 200]
    expect(len(set(used)) == len(used) == 2, f"{len(used)} refreshes, {len(set(used))} refresh tokens")


def pushed_without_reference(party):
    party.begin()
    front = party.front(par=lambda _: {"expires_in": 60})
    outcome = party.attempt()
    expect(outcome.code == "invalid_provider_response" and "request_uri" in outcome.detail, f"it ended as {outcome}")
    expect(party.count("authorize") == 0 == party.count("token"), "the sign-in went on")
    front.changes = {}
    party.accepts()


def wrong_userinfo(party):
    party.begin()
    party.lie("userinfo_wrong_subject")
    party.refuses("userinfo", may_read=True)
    party.accepts()


SERVICE = ["test-happy-path", "test-happy-path-no-mtls-endpoint-aliases", "test-happy-path-no-dpop-nonce",
           "test-token-endpoint-response-without-expires_in", "test-token-type-case-insensitivity"]
MODULES += [Module(
    "fapi2-security-profile-final-client-" + name, (FAPI, FAPI_SERVICE) if name in SERVICE else (FAPI,), text, function
) for name, text, function in [
    ("test-happy-path", "All is as in the profile; mtls_endpoint_aliases lead elsewhere. Signs in, uses the token.",
     accepts("metadata_mtls_aliases")),
    ("test-happy-path-no-mtls-endpoint-aliases", "The same without aliases. Signs in, uses the token.", accepts()),
    ("test-happy-path-no-dpop-nonce", "No nonces. Signs in, uses the token.", accepts(dpop_nonce="off")),
    ("test-discovery-issuer-mismatch", "The metadata's issuer is another one. Stops before the request is pushed.",
     oidcc_client_test_discovery_issuer_mismatch),
    ("test-invalid-iss", "The ID token's iss is the issuer and a 1.", refuses("id_token_wrong_issuer", "(iss)")),
    ("test-invalid-aud", "The ID token's aud is the client's id and a 1.", refuses("id_token_wrong_audience", "(aud)")),
    ("test-invalid-secondary-aud", "The ID token's aud has an unknown client, too. Refuses; or for lack of azp.",
     refuses("id_token_extra_audience", "(azp)")),
    ("test-invalid-null-alg", "The ID token is not signed: alg is none.", refuses("id_token_alg_none", "(alg)")),
    ("test-invalid-alternate-alg", "The ID token is signed with RS256.", alternate_algorithm),
    ("test-invalid-expired-exp", "The ID token has expired.", refuses("id_token_expired", "(exp)")),
    ("test-invalid-missing-exp", "The ID token has no exp.", refuses("id_token_no_exp", "(exp)")),
    ("test-invalid-missing-aud", "The ID token has no aud.", refuses("id_token_no_audience", "(aud)")),
    ("test-invalid-missing-iss", "The ID token has no iss.", refuses("id_token_no_issuer", "(iss)")),
    ("test-valid-aud-as-array", "The ID token's aud is an array of one. Completes.",
     accepts_answer(lambda answer, key: key.resigned(answer, aud=[CLIENT]))),
    ("test-invalid-nonce", "The ID token's nonce is the right one and a 1.",
     refuses("id_token_wrong_nonce", "(nonce)")),
    ("test-invalid-missing-nonce", "The ID token has no nonce.", refuses("id_token_no_nonce", "(nonce)")),
    ("test-invalid-authorization-response-iss", "The authorization response's iss is another one.",
     ignores("callback_wrong_iss", "invalid_callback", "(iss)")),
    ("test-remove-authorization-response-iss", "The authorization response has no iss.",
     ignores("callback_no_iss", "invalid_callback", "(iss)")),
    ("test-ensure-authorization-response-with-invalid-state-fails",
     "The authorization response's state is another one.", ignores("callback_wrong_state")),
    ("test-ensure-authorization-response-with-invalid-missing-state-fails",
     "The authorization response has no state.", ignores("callback_no_state")),
    ("test-token-endpoint-response-without-expires_in", "The token response has no expires_in. Completes.",
     accepts("token_no_expires_in")),
    ("test-token-type-case-insensitivity", "The token_type is dpOp. Completes.",
     accepts_answer(lambda answer, key: answer | {"token_type": answer["token_type"].swapcase()})),
    ("test-rs-dpop-auth-scheme-case-insensitivity", "userinfo's challenge has the scheme dPoP. Asks with its nonce.",
     scheme_in_other_case),
    ("refresh-token-test", "A server refuses two tokens. Refreshes twice, with the new refresh token then.",
     refused_tokens),
]]
MODULES += [Module(name, (FAPI_BEYOND,), text, function) for name, text, function in [
    ("par-response-without-request-uri", "The PAR response has no request_uri. Stops.", pushed_without_reference),
    ("token-type-bearer", "The token_type is Bearer.",
     refuses_answer("bound to no key", lambda answer, key: answer | {"token_type": "Bearer"})),
    ("id-token-invalid-signature", "The signature is broken.", refuses("id_token_wrong_signature", "(signature)")),
    ("id-token-invalid-at-hash", "The ID token is for another access token.",
     refuses("id_token_wrong_at_hash", "(at_hash)")),
    ("id-token-invalid-c-hash", "The ID token is for another code.",
     refuses_answer("(c_hash)", lambda answer, key: key.resigned(answer, c_hash=WRONG_HASH))),
    ("id-token-encrypted", "The ID token is a JWE.", refuses_answer("three parts", lambda answer, key: answer | {
        "id_token": key.signed({}).split(".")[0] + ".e30.e30.e30.e30"})),
    ("userinfo-invalid-sub", "The userinfo is about another sub.", wrong_userinfo),
]]

OIDC, FAPI_CLIENT = "oidcc-client-test-", "fapi2-security-profile-final-client-"
# What the suite has for clients besides: names and why. A star is for all that begin so.
NOT_PLAYED = [(prefix + name, why) for why, prefix, names in [
    ("Grant Management is not implemented", FAPI_CLIENT + "test-grant-management-",
     "happy-path query-and-revoke invalid-grant-id-fails"),
    ("signed authorization responses (JARM) are not implemented", FAPI_CLIENT + "test-ensure-jarm-",
     "without-iss-fails with-invalid-iss-fails without-aud-fails with-invalid-aud-fails without-exp-fails "
     "with-expired-exp-fails with-invalid-sig-fails signature-is-not-none"),
    ("a claim of British banks", FAPI_CLIENT, "test-invalid-openbanking-intent-id"),
    ("registration by Brazil's directory, with mutual TLS", FAPI_CLIENT, "brazildcr-happypath-test"),
    ("the draft before the final profile: the same modules", "", "fapi2-security-profile-id2-client-*"),
    ("the ID token comes by the browser, or JARM; only codes do here", "", "fapi1-advanced-final-client-*"),
    ("no backchannel authentication (CIBA)", "", "fapi-ciba-id1-client-*"),
    ("of wallets", "", "oid4vci-1_0-wallet-test-* oid4vp-1final-wallet-*"),
    ("the ID token comes by the browser; only codes do here", OIDC,
     "invalid-athash missing-athash invalid-chash missing-chash nonce-unless-code-flow"),
    ("access tokens are sent in a header alone", OIDC, "userinfo-bearer-body"),
    ("no client certificates", OIDC, "mtls-endpoint-aliases"),
    ("the issuer is configured, not looked up", OIDC, "discovery-webfinger-acct discovery-webfinger-url"),
    ("request objects are not sent", OIDC, "request-uri-signed-rs256 request-uri-signed-none"),
    ("the provider would have to call this machine", OIDC + "rp-",
     "backchannel-rpinitlogout backchannel-rpinitlogout-alg-none backchannel-rpinitlogout-no-event "
     "backchannel-rpinitlogout-with-nonce backchannel-rpinitlogout-wrong-alg backchannel-rpinitlogout-wrong-aud "
     "backchannel-rpinitlogout-wrong-event backchannel-rpinitlogout-wrong-iss"),
    ("no page of ours stays open in the browser", OIDC,
     "rp-frontchannel-rpinitlogout rp-frontchannel-opinitlogout session-management"),
    ("the page after a sign-out at the provider is not ours, so no state comes back", OIDC,
     "rp-init-logout rp-init-logout-other-state rp-init-logout-no-state"),
    ("nobody else may begin a sign-in", OIDC, "3rd-party-init-login"),
] for name in names.split()]
