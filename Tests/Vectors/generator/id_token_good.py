"""ID tokens that real providers send and that must be believed: one refused here is a person who cannot sign in."""

import functools
import json

from id_token_base import *

CORE = "OpenID Connect Core 2"

for alg in ALL.split():
    good(f"alg-{alg.lower()}", "OIDF-01, OIDF-08, RFC 7518 section 3", f"signed with {alg}", alg=alg)
    good(
        f"at-hash-{alg.lower()}",
        "OpenID Connect Core 3.1.3.6",
        f"at_hash and c_hash of a token signed with {alg}",
        {"at_hash": jose.half_hash(alg, ACCESS), "c_hash": jose.half_hash(alg, CODE)},
        alg=alg,
        access_token=ACCESS,
        code=CODE,
    )
    good(f"alone-{alg.lower()}", "OIDF-08, FAPI-08", f"{alg} is all that is agreed", alg=alg, algorithms=alg)
good("alg-ed25519", "RFC 9864 section 2.2", "EdDSA by its newer name", header={"alg": "Ed25519"}, alg="EdDSA")
good(
    "alg-ed25519-agreed",
    "RFC 9864 section 2.2",
    "agreed by the newer name, signed under the older",
    alg="EdDSA",
    algorithms="Ed25519",
)
good(
    "alg-ed25519-key",
    "RFC 9864 section 2.2",
    "the older name with a key marked with the newer",
    header={"kid": "ed25519"},
    alg="EdDSA",
    key=O2,
    keys="keys-bound.json",
)
good(
    "alg-ed25519-both",
    "RFC 9864 section 2.2",
    "the newer name with a key marked with the older",
    header={"alg": "Ed25519", "kid": "ed"},
    alg="EdDSA",
    keys="keys-bound.json",
)

# Keys.
for alg in ("RS256", "ES256", "EdDSA"):
    good(
        f"kid-absent-{alg.lower()}",
        "OIDF-06",
        f"no kid, one key for {alg} among other kinds",
        header={"kid": ABSENT},
        alg=alg,
        keys="keys-nameless.json",
    )
    good(
        f"kid-absent-many-{alg.lower()}",
        "OIDF-07",
        f"no kid, three keys for {alg}: one of them fits",
        header={"kid": ABSENT},
        alg=alg,
        keys="keys-nameless-many.json",
    )
    good(
        f"kid-unmatched-{alg.lower()}",
        "own: the only key of its kind needs no name",
        "a kid, and one key without any",
        alg=alg,
        keys="keys-nameless.json",
    )
    good(
        f"kid-shared-{alg.lower()}",
        "RFC 7517 section 4.5",
        "keys of several kinds under one name",
        header={"kid": "k"},
        alg=alg,
        keys="keys-same-name.json",
    )
good("kid-null", "own: null is absent", "a null kid", header={"kid": None})
good(
    "kid-shared-second",
    "RFC 7517 section 4.5",
    "the second key of a name and a kind",
    header={"kid": "k"},
    key=E2,
    keys="keys-same-name.json",
)
good("kid-absent-named", "RFC 7515 section 6", "no kid, though all keys have names", header={"kid": ABSENT})
good("key-second", "OIDF-01", "the second key", header={"kid": "e2"}, key=E2)
good(
    "key-ps-only",
    "RFC 7517 section 4.4",
    "a key for PS256 alone",
    header={"kid": "ps"},
    alg="PS256",
    keys="keys-bound.json",
)
good(
    "key-rs-only",
    "RFC 7517 section 4.4",
    "a key for RS256 alone",
    header={"kid": "rs"},
    alg="RS256",
    key=RSA2,
    keys="keys-bound.json",
)
good(
    "key-verify",
    "RFC 7517 section 4.3",
    "a key whose operation is to verify",
    header={"kid": "verify"},
    keys="keys-bound.json",
)
good(
    "key-no-use",
    "RFC 7517 section 4.2",
    "a key that says nothing of its use",
    header={"kid": "no-use"},
    key=E3,
    keys="keys-bound.json",
)
good(
    "key-null-members",
    "own: null is absent",
    "a key that writes out every member it has not",
    header={"kid": "any"},
    keys="keys-null.json",
)
good("key-cube", "RFC 8017 section 3.1", "an exponent of three", header={"kid": "cube"}, key=CUBE, alg="RS256")
good(
    "ecdsa-other-half",
    "FIPS 186-5",
    "the order less s: ECDSA's other signature",
    seal=lambda m: (lambda r, s: E1.join(r, E1.curve.n - s))(*E1.halves("sha256", m)),
)

# Headers.
for name, about, header in [
    ("typ-absent", "no typ", {"typ": ABSENT}),
    ("typ-null", "a null typ", {"typ": None}),
    ("typ-case", "typ in small letters", {"typ": "jwt"}),
    ("typ-long", "typ with its whole name", {"typ": "application/jwt"}),
    ("cty", "a content type", {"cty": "JWT"}),
    ("x5t", "the digest of a certificate", {"x5t": "nOo3ZDrODXEK1jKWhXslHR_KXEg"}),
    ("jku-honest", "an address of keys that is not looked at", {"jku": "https://id.example.org/keys"}),
    ("jwk-foreign", "another's key in the header, not looked at", {"jwk": jwk(STRANGER, "e1")}),
    ("unknown", "members that nobody knows", {"nonce": "x", "org": {"id": 7}}),
]:
    good(f"header-{name}", "RFC 7515 section 4", about, header=header)
good("header-order", "RFC 8259 section 4", "another order, and spaces", head=b'{ "kid" : "e1",\r\n\t"alg" : "ES256" }')
good("header-escaped", "RFC 8259 section 7", "letters escaped", head=b'{"\\u0061lg":"\\u0045S256","kid":"\\u00651"}')

# Claims.
for name, rule, about, claims in [
    ("aud-list", "FAPI-13", "a list of the client alone", {"aud": [CLIENT]}),
    ("aud-twice", CORE, "the client twice", {"aud": [CLIENT, CLIENT]}),
    ("aud-two", CORE, "another audience, and an azp that is ours", {"aud": ["other", CLIENT], "azp": CLIENT}),
    ("azp-alone", CORE, "an azp beside one audience, as Google sends", {"azp": CLIENT}),
    ("azp-null", "own: null is absent", "a null azp", {"azp": None}),
    ("sub-long", CORE, "255 bytes", {"sub": "s" * 255}),
    ("sub-letters", CORE, "letters outside ASCII, a bar, a space", {"sub": "\u00e5se|x 1"}),
    ("sub-digits", CORE, "digits in quotes", {"sub": "110169484474386276334"}),
    ("sub-url", CORE, "a URL", {"sub": "https://id.example.org/people/1"}),
    ("auth-time-zero", "providers in the wild", "auth_time is 0", {"auth_time": 0}),
    ("auth-time-fraction", "providers in the wild", "auth_time is a fraction", {"auth_time": NOW - 20.5}),
    ("auth-time-absent", CORE, "no auth_time", {"auth_time": ABSENT}),
    ("auth-time-null", "own: null is absent", "a null auth_time", {"auth_time": None}),
    ("exp-fraction", "RFC 7519 section 2", "exp is a fraction", {"exp": NOW + 300.75}),
    ("exp-far", "RFC 7519 section 2", "exp is the year 9999", {"exp": 253_402_300_799}),
    ("exp-leeway", "own: a leeway of two minutes", "a second before the leeway ends", {"exp": NOW - 119}),
    ("iat-leeway", "own: a leeway of two minutes", "as far ahead as allowed", {"iat": NOW + 120}),
    ("iat-old", CORE, "issued long ago", {"iat": NOW - 86_400}),
    ("iat-zero", "RFC 7519 section 2", "iat is 0", {"iat": 0}),
    ("iat-fraction", "RFC 7519 section 2", "iat is a fraction", {"iat": NOW - 0.5}),
    ("nbf-now", "RFC 7519 section 4.1.5", "valid from now", {"nbf": NOW}),
    ("nbf-leeway", "own: a leeway of two minutes", "as far ahead as allowed", {"nbf": NOW + 120}),
    ("nbf-null", "own: null is absent", "a null nbf", {"nbf": None}),
    ("at-hash-null", "own: null is absent", "a null at_hash", {"at_hash": None}),
    ("at-hash-unchecked", CORE, "an at_hash of a token that is not at hand", {"at_hash": "MTIzNDU2Nzg5MDEyMzQ1Ng"}),
    (
        "aggregated",
        "OIDF-34",
        "aggregated claims: kept, not trusted",
        {"_claim_names": {"address": "src1"}, "_claim_sources": {"src1": {"JWT": "e30.e30.e30"}}},
    ),
    (
        "distributed",
        "OIDF-35",
        "distributed claims: kept, not fetched",
        {
            "_claim_names": {"x": "s"},
            "_claim_sources": {"s": {"endpoint": "http://169.254.169.254/", "access_token": "t"}},
        },
    ),
    (
        "keycloak",
        "providers in the wild",
        "Keycloak's claims",
        {"typ": "ID", "sid": "0f5e", "acr": "1", "email_verified": False, "preferred_username": "ann"},
    ),
    (
        "microsoft",
        "providers in the wild",
        "Microsoft's claims",
        {"tid": TENANT, "oid": "0000", "rh": "0.A", "uti": "x", "ver": "2.0", "aio": "y"},
    ),
    (
        "google",
        "providers in the wild",
        "Google's claims",
        {"azp": CLIENT, "hd": "example.org", "email_verified": True, "picture": "https://lh3.example/x=s96-c"},
    ),
    ("groups", "own: tokens of big companies", "a hundred groups", {"groups": [f"group-{n:03}" for n in range(100)]}),
    (
        "nested",
        "RFC 8259",
        "claims nested twenty deep",
        {"x": functools.reduce(lambda inner, _: [inner], range(20), 1)},
    ),
    (
        "unicode",
        "RFC 8259",
        "letters of many scripts",
        {"name": "\u0410\u043d\u043d\u0430 \u5b89\u5a1c \U0001f600", "given_name": "a\u0301"},
    ),
    ("acr-number", CORE, "a number where a text is usual, in a claim that decides nothing", {"acr": 1, "amr": "pwd"}),
    (
        "events-other",
        "own: only a logout is a logout",
        "events of another kind",
        {"events": {"https://schemas.openid.net/secevent/risc": {}}},
    ),
    ("jti", "RFC 7519 section 4.1.7", "a number of its own", {"jti": "1"}),
]:
    good(name, rule, about, claims)
good("nonce-not-sent", "own: none was sent", "a nonce, though none was sent", nonce=None)
good("nonce-none", CORE, "none sent, none there", {"nonce": ABSENT}, nonce=None)
good(
    "escaped-claims",
    "RFC 8259 section 7",
    "claims with escaped letters",
    payload=jose.text(USUAL)
    .replace(b'"sub":"ann"', b'"\\u0073ub":"\\u0061nn"')
    .replace(b"https://id", b"https:\\/\\/id"),
)
good(
    "spaces",
    "RFC 8259 section 2",
    "claims on lines of their own",
    payload=json.dumps(USUAL, indent=2).encode(),
)
good(
    "exponent",
    "RFC 7519 section 2",
    "exp with an exponent",
    payload=jose.text(USUAL).replace(b"1800000300", b"1.8000003e9"),
)
good(
    "letters",
    "MD-02",
    "an issuer of letters outside ASCII, the same bytes",
    {"iss": "https://id.example.org/caf\u00e9"},
    issuer="https://id.example.org/caf\u00e9",
)
good(
    "leeway-five-minutes",
    "own: a leeway of five minutes at most",
    "a second before it ends",
    {"exp": NOW - 299, "iat": NOW + 300, "nbf": NOW + 300},
    leeway=300,
)
good(
    "leeway-none",
    "own: a leeway of five minutes at most",
    "none is needed",
    {"exp": NOW + 1, "iat": NOW, "nbf": NOW},
    leeway=0,
)
good(
    "max-age",
    "OpenID Connect Core 3.1.3.7 rule 13",
    "as old as was asked for",
    {"auth_time": NOW - 3_600},
    max_age=3_600,
)
good(
    "max-age-leeway",
    "OpenID Connect Core 3.1.3.7 rule 13",
    "older by the leeway",
    {"auth_time": NOW - 3_720},
    max_age=3_600,
)

# Refreshed tokens.
BEFORE = {"subject": "ann", "audience": CLIENT, "auth_time": NOW - 20, "nonce": NONCE}
for name, about, claims, before in [
    ("same", "nothing changed", {}, {}),
    ("no-nonce", "no nonce any more", {"nonce": ABSENT}, {}),
    ("no-auth-time", "no auth_time any more", {"auth_time": ABSENT}, {}),
    ("auth-time-fraction", "auth_time with a fraction", {"auth_time": NOW - 19.5}, {}),
    ("aud-list", "the audience in a list", {"aud": [CLIENT]}, {}),
    ("email", "another address", {"email": "new@example.org"}, {}),
    ("nonce-unknown", "a nonce, where the first is not known any more", {}, {"nonce": None}),
    ("azp", "the same azp", {"azp": CLIENT}, {"azp": CLIENT}),
    (
        "aud-order",
        "two audiences in another order",
        {"aud": ["other", CLIENT], "azp": CLIENT},
        {"audience": f"{CLIENT} other", "azp": CLIENT},
    ),
    ("issuer", "the same issuer", {}, {"issuer": ISSUER}),
]:
    good(
        f"refresh-{name}",
        "OpenID Connect Core 12.2, OIDF-37",
        f"on refresh: {about}",
        claims,
        nonce=None,
        previous=dict(BEFORE, **before),
    )

# Microsoft's shared place.
for name, about, kid, key, tenant in [
    ("shared", "a key for all directories", "shared", RSA1, TENANT),
    ("own", "the directory's own key", "own", RSA2, TENANT),
    ("unmarked", "a key without a mark", "unmarked", RSA3, TENANT),
    ("persons", "the directory of persons", "persons", E1, OTHER_TENANT),
]:
    good(
        f"directory-{name}",
        "own: a templated issuer admits one directory",
        about,
        {"iss": directory(tenant), "tid": tenant},
        {"kid": kid},
        key=key,
        alg="ES256" if key is E1 else "RS256",
        keys="keys-directories.json",
        issuer=DIRECTORIES,
    )
good(
    "directory-refresh",
    "OpenID Connect Core 12.2",
    "on refresh: the same directory",
    {"iss": directory(TENANT), "tid": TENANT},
    {"kid": "shared"},
    alg="RS256",
    key=RSA1,
    keys="keys-directories.json",
    issuer=DIRECTORIES,
    nonce=None,
    previous={"issuer": directory(TENANT), "subject": "ann", "audience": CLIENT},
)
