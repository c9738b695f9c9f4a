"""ID tokens with an honest signature and a claim that must not be believed (OpenID Connect Core 2, 3.1.3.7, 12.2)."""

from id_token_base import *

RULES = "OpenID Connect Core 3.1.3.7"


def each(claim, rule, cases, fault=None, **expected):
    for name, about, value in cases:
        changes = value if isinstance(value, dict) and "=" in value else {claim: value}
        changes.pop("=", None)
        bad(f"{claim.replace('_', '-')}-{name}", rule, fault or claim, about, changes, **expected)


# What is not a text where one must be.
NO_TEXT = [
    ("absent", "left out", ABSENT),
    ("null", "null", None),
    ("number", "a number", 7),
    ("true", "a truth value", True),
    ("list", "a list", ["x"]),
    ("object", "an object", {"value": "x"}),
]

each(
    "iss",
    f"{RULES} rule 2, OIDF-02",
    NO_TEXT[:4]
    + [
        ("longer", "the issuer and a 1 (OIDF-02)", ISSUER + "1"),
        ("shorter", "the issuer without its end", ISSUER[:-1]),
        ("slash", "a slash at the end", ISSUER + "/"),
        ("host-case", "another letter case in the host", ISSUER.replace("id.", "ID.")),
        ("path-case", "another letter case in the path", ISSUER.replace("main", "Main")),
        ("port", "the scheme's own port", ISSUER.replace(".org", ".org:443")),
        ("http", "without TLS", ISSUER.replace("https", "http")),
        ("escaped", "a letter escaped", ISSUER.replace("main", "%6Dain")),
        ("host-only", "without the path", "https://id.example.org"),
        ("other-realm", "another realm of the same host", ISSUER.replace("main", "other")),
        ("empty", "empty", ""),
        ("in-list", "the issuer in a list", [ISSUER]),
        ("in-object", "the issuer in an object", {"issuer": ISSUER}),
        ("space-before", "a space before", " " + ISSUER),
        ("space-after", "a space after", ISSUER + " "),
        ("line-break", "a line break after", ISSUER + "\n"),
        ("nul", "a NUL after", ISSUER + "\0"),
        ("query", "a query after", ISSUER + "?x=1"),
        ("fragment", "a fragment after", ISSUER + "#x"),
        ("lookalike-host", "a host that begins like the issuer's", "https://id.example.org.evil.example/realms/main"),
        ("user-part", "the issuer's host as a user's name", "https://id.example.org@evil.example/realms/main"),
        ("dots", "a path that leads to the same place", "https://id.example.org/realms/x/../main"),
        ("no-scheme", "without the scheme", "id.example.org/realms/main"),
        ("two", "two issuers in one text", f"{ISSUER} {ISSUER}"),
    ],
)
bad(
    "iss-kelvin",
    f"{RULES} rule 2, MD-02",
    "iss",
    "the Kelvin sign for a K: equal as text, not as bytes",
    {"iss": "https://id.example.org/\u212a"},
    issuer="https://id.example.org/K",
)
bad(
    "iss-decomposed",
    f"{RULES} rule 2, MD-02",
    "iss",
    "an accent as a character of its own",
    {"iss": "https://id.example.org/cafe\u0301"},
    issuer="https://id.example.org/caf\u00e9",
)
bad(
    "iss-google-old",
    f"{RULES} rule 2",
    "iss",
    "Google's old form without the scheme",
    {"iss": "accounts.google.com"},
    issuer="https://accounts.google.com",
)

each(
    "sub",
    "OpenID Connect Core 2, OIDF-03",
    NO_TEXT
    + [
        ("empty", "empty", ""),
        ("long", "256 bytes", "s" * 256),
        ("long-letters", "128 letters of two bytes", "\u00e9" * 128),
        ("line-break", "a line break inside", "an\nn"),
        ("nul", "a NUL at the end", "ann\0"),
        ("escape", "a terminal's escape", "\u001b[2Jann"),
        ("delete", "a DEL inside", "an\u007fn"),
    ],
)

each(
    "aud",
    f"{RULES} rule 3, OIDF-04, OIDF-29",
    NO_TEXT[:4]
    + [
        ("longer", "the client and a 1 (OIDF-04)", CLIENT + "1"),
        ("shorter", "the client without its end", CLIENT[:-1]),
        ("case", "another letter case", "Ringback"),
        ("empty", "empty", ""),
        ("space", "a space after", CLIENT + " "),
        ("two-in-one", "two clients in one text", f"{CLIENT} other"),
        ("commas", "two clients with a comma", f"{CLIENT},other"),
        ("empty-list", "a list of none", []),
        ("other-list", "a list of another", ["other"]),
        ("others", "a list of others", ["other", "third"]),
        ("empty-member", "a list of an empty text", [""]),
        ("object", "an object", {"client": CLIENT}),
        ("nested", "a list in a list", [[CLIENT]]),
        ("mixed", "a number beside the client", [CLIENT, 1]),
        ("with-null", "a null beside the client", [CLIENT, None]),
        ("with-empty", "an empty text beside the client", [CLIENT, ""]),
        ("with-list", "a list beside the client", [CLIENT, ["other"]]),
        ("issuer", "the issuer itself", ISSUER),
        ("others-azp-ours", "for others, though azp is ours", {"=": 1, "aud": ["other"], "azp": CLIENT}),
    ],
)
bad(
    "aud-decomposed",
    f"{RULES} rule 3",
    "aud",
    "an accent as a character of its own",
    {"aud": "cafe\u0301"},
    client="caf\u00e9",
)

for name, about, claims in [
    ("absent-of-two", "two audiences, no azp (FAPI-06)", {"aud": [CLIENT, CLIENT + "1"]}),
    ("null-of-two", "two audiences, a null azp", {"aud": [CLIENT, "other"], "azp": None}),
    ("other-of-two", "two audiences, the other's azp", {"aud": [CLIENT, "other"], "azp": "other"}),
    ("absent-of-three", "three audiences, no azp", {"aud": ["other", CLIENT, "third"]}),
    ("other", "one audience, another's azp", {"azp": "other"}),
    ("empty", "empty", {"azp": ""}),
    ("longer", "the client and a 1", {"azp": CLIENT + "1"}),
    ("case", "another letter case", {"azp": "Ringback"}),
    ("number", "a number", {"azp": 7}),
    ("list", "the client in a list", {"azp": [CLIENT]}),
    ("object", "an object", {"azp": {}}),
    ("true", "a truth value", {"azp": True}),
    ("issuer", "the issuer", {"azp": ISSUER}),
]:
    bad(f"azp-{name}", f"{RULES} rules 4 and 5, FAPI-06", "azp", about, claims)
bad(
    "azp-two-spellings",
    f"{RULES} rule 4",
    "azp",
    "two spellings of one accent are two audiences",
    {"aud": ["caf\u00e9", "cafe\u0301"]},
    client="caf\u00e9",
)

# Times: NumericDate (RFC 7519 section 2). Raw numbers are written where JSON libraries would not write them.
NO_TIME = [
    ("text", "a number in quotes", str(NOW)),
    ("words", "a date in words", "2027-01-15T08:00:00Z"),
    ("true", "a truth value", True),
    ("list", "a list", [NOW]),
    ("object", "an object", {"seconds": NOW}),
    ("negative", "before 1970", -1),
    ("milliseconds", "milliseconds", NOW * 1000 + 300_000),
    ("year-10000", "after the year 9999", 253_402_300_800),
    ("largest", "2^63 - 1", 2**63 - 1),
    ("too-large", "2^63", 2**63),
    ("huge", "1e300", 1e300),
]
each(
    "exp",
    f"{RULES} rule 9, FAPI-10",
    NO_TEXT[:2]
    + NO_TIME
    + [
        ("zero", "zero", 0),
        ("huge-negative", "-1e300", -1e300),
        ("smallest", "-2^63", -(2**63)),
        ("two-minutes", "two minutes ago: the leeway is over", NOW - 120),
        ("six-minutes", "six minutes ago (FAPI-09)", NOW - 360),
        ("yesterday", "yesterday", NOW - 86_400),
        ("fraction", "a fraction, two minutes ago", NOW - 120.5),
    ],
)
each(
    "iat",
    "OpenID Connect Core 2, OIDF-05",
    NO_TEXT[:2]
    + NO_TIME
    + [
        ("two-minutes", "two minutes and a second ahead", NOW + 121),
        ("hour", "an hour ahead", NOW + 3_600),
        ("tomorrow", "tomorrow", NOW + 86_400),
    ],
)
each(
    "nbf",
    "RFC 7519 section 4.1.5",
    NO_TIME + [("two-minutes", "two minutes and a second ahead", NOW + 121), ("hour", "an hour ahead", NOW + 3_600)],
)
each("auth_time", "OpenID Connect Core 2", [case for case in NO_TIME if case[0] != "milliseconds"])
for claim, rule in (("exp", f"{RULES} rule 9"), ("iat", "OpenID Connect Core 2"), ("nbf", "RFC 7519 section 4.1.5")):
    for name, number in (("infinite", b"1e999"), ("infinite-negative", b"-1e999")):
        payload = jose.text(changed(USUAL, {claim: 4_242_424_242})).replace(b"4242424242", number)
        bad(f"{claim}-{name}", rule, claim, f"{number.decode()}: beyond every double", payload=payload)
for seconds, leeway in ((301, 300), (301, 3_600), (1, 0), (1, -60)):
    allowed = min(max(leeway, 0), 300)
    about = f"{seconds} s beyond, with a leeway of {leeway} s, which counts as {allowed}"
    bad(
        f"exp-leeway-{leeway}",
        "own: a leeway of five minutes at most",
        "exp",
        about,
        {"exp": NOW - seconds},
        leeway=leeway,
    )
    bad(
        f"iat-leeway-{leeway}",
        "own: a leeway of five minutes at most",
        "iat",
        about,
        {"iat": NOW + seconds},
        leeway=leeway,
    )
    bad(
        f"nbf-leeway-{leeway}",
        "own: a leeway of five minutes at most",
        "nbf",
        about,
        {"nbf": NOW + seconds},
        leeway=leeway,
    )
for name, about, value in [
    ("absent", "max_age was asked for, auth_time is left out", ABSENT),
    ("null", "max_age was asked for, auth_time is null", None),
    ("old", "a second older than max_age and the leeway", NOW - 3_721),
    ("zero", "1970", 0),
]:
    bad(f"max-age-{name}", f"{RULES} rule 13", "auth_time", about, {"auth_time": value}, max_age=3_600)
bad(
    "max-age-now",
    f"{RULES} rule 13",
    "auth_time",
    "a sign-in of this moment was asked for",
    {"auth_time": NOW - 200},
    max_age=0,
)

each(
    "nonce",
    f"{RULES} rule 11, OIDF-12, FAPI-15",
    NO_TEXT
    + [
        ("longer", "the nonce and a 1 (OIDF-12)", NONCE + "1"),
        ("shorter", "the nonce without its end", NONCE[:-1]),
        ("empty", "empty", ""),
        ("case", "another letter case", NONCE.upper()),
        ("padded", "padding after", NONCE + "=="),
        ("space", "a space after", NONCE + " "),
        ("in-list", "the nonce in a list", [NONCE]),
    ],
)
bad("nonce-empty-sent", f"{RULES} rule 11", "nonce", "an empty one was sent, another came", nonce="")

good_hash = jose.half_hash("ES256", ACCESS)
HASHES = [
    ("of-another", "of another token", jose.half_hash("ES256", "another")),
    ("empty", "empty", ""),
    ("padded", "padded", good_hash + "=="),
    ("case", "another letter case", good_hash.lower()),
    ("number", "a number", 7),
    ("list", "in a list", [good_hash]),
    ("whole", "the whole digest", jose.b64(jose.digest("sha256", ACCESS.encode()))),
    ("right-half", "the right half", jose.b64(jose.digest("sha256", ACCESS.encode())[16:])),
    ("hexadecimal", "in hexadecimal", jose.digest("sha256", ACCESS.encode())[:16].hex()),
    ("other-digest", "of SHA-384", jose.half_hash("ES384", ACCESS)),
    ("shorter", "one character short", good_hash[:-1]),
    ("object", "an object", {}),
    ("true", "a truth value", True),
]
each("at_hash", "OpenID Connect Core 3.1.3.8, NAT-52", HASHES, access_token=ACCESS)
for alg, wrong in (
    ("RS384", "RS256"),
    ("RS512", "RS256"),
    ("PS384", "PS256"),
    ("PS512", "PS384"),
    ("ES384", "ES256"),
    ("ES512", "ES256"),
    ("EdDSA", "RS256"),
):
    bad(
        f"at-hash-{alg.lower()}",
        "OpenID Connect Core 3.1.3.6",
        "at_hash",
        f"the digest of {wrong} in a token signed with {alg}",
        {"at_hash": jose.half_hash(wrong, ACCESS)},
        alg=alg,
        access_token=ACCESS,
    )
each(
    "c_hash",
    "OpenID Connect Core 3.3.2.11, NAT-52",
    [
        ("of-another", "of another code", jose.half_hash("ES256", "another")),
        ("of-token", "of the access token", good_hash),
        ("empty", "empty", ""),
        ("number", "a number", 7),
        ("padded", "padded", jose.half_hash("ES256", CODE) + "=="),
        ("list", "in a list", [jose.half_hash("ES256", CODE)]),
    ],
    access_token=ACCESS,
    code=CODE,
)

bad(
    "logout-token",
    "RFC 8725 section 3.12",
    "events",
    "a logout token without its type",
    {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}},
)
bad(
    "logout-token-refresh",
    "RFC 8725 section 3.12",
    "events",
    "a logout token where no nonce is expected",
    {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}, "nonce": ABSENT},
    nonce=None,
)

# Refreshed tokens (OpenID Connect Core 12.2).
BEFORE = {"subject": "ann", "audience": CLIENT, "auth_time": NOW - 20, "nonce": NONCE}
for name, rule, fault, about, claims, before in [
    ("iss", "OIDF-38", "iss", "another issuer", {"iss": ISSUER + "1"}, {}),
    ("sub", "OIDF-39", "sub", "another person", {"sub": "eve"}, {}),
    ("sub-case", "OIDF-39", "sub", "another letter case", {"sub": "Ann"}, {}),
    ("sub-absent", "OIDF-39", "sub", "nobody", {"sub": ABSENT}, {}),
    ("aud-grown", "NAT-53", "aud", "one audience more", {"aud": [CLIENT, "other"], "azp": CLIENT}, {}),
    (
        "aud-gone",
        "NAT-53",
        "aud",
        "one audience fewer",
        {"azp": CLIENT},
        {"audience": f"{CLIENT} other", "azp": CLIENT},
    ),
    (
        "aud-changed",
        "NAT-53",
        "aud",
        "another second audience",
        {"aud": [CLIENT, "third"], "azp": CLIENT},
        {"audience": f"{CLIENT} other", "azp": CLIENT},
    ),
    ("azp-new", "NAT-53", "azp", "an azp where none was", {"azp": CLIENT}, {}),
    ("azp-gone", "NAT-53", "azp", "no azp where one was", {}, {"azp": CLIENT}),
    ("auth-time", "NAT-53", "auth_time", "another sign-in", {"auth_time": NOW}, {}),
    ("auth-time-earlier", "NAT-53", "auth_time", "an earlier sign-in", {"auth_time": NOW - 21}, {}),
    ("nonce", "NAT-53", "nonce", "another nonce", {"nonce": "another"}, {}),
    ("nonce-empty", "NAT-53", "nonce", "an empty nonce", {"nonce": ""}, {}),
    ("nonce-number", "NAT-53", "nonce", "a number as nonce", {"nonce": 7}, {}),
]:
    bad(
        f"refresh-{name}",
        f"OpenID Connect Core 12.2, {rule}",
        fault,
        f"on refresh: {about}",
        claims,
        nonce=None,
        previous=dict(BEFORE, **before),
    )

# Microsoft's shared place: the template of an issuer.
for name, about, claims, kid, key in [
    ("tid-absent", "no directory named", {"tid": ABSENT}, "shared", RSA1),
    ("tid-null", "a null directory", {"tid": None}, "shared", RSA1),
    ("tid-other", "the directory named is not the issuer's", {"tid": OTHER_TENANT}, "shared", RSA1),
    ("tid-case", "the directory in another letter case", {"tid": TENANT.upper()}, "shared", RSA1),
    ("iss-other", "the issuer is not the directory named", {"iss": directory(OTHER_TENANT)}, "shared", RSA1),
    ("template", "the template itself", {"iss": DIRECTORIES, "tid": "{tenantid}"}, "shared", RSA1),
    ("alias", "the alias", {"iss": directory("common"), "tid": "common"}, "shared", RSA1),
    ("no-id", "a directory that is no id", {"iss": directory("contoso.com"), "tid": "contoso.com"}, "shared", RSA1),
    ("path", "a directory with a path", {"iss": directory("a/" + TENANT), "tid": "a/" + TENANT}, "shared", RSA1),
    ("empty", "an empty directory", {"iss": directory(""), "tid": ""}, "shared", RSA1),
    ("http", "without TLS", {"iss": directory(TENANT).replace("https", "http")}, "shared", RSA1),
    ("host", "another host", {"iss": directory(TENANT).replace("login.", "sts.")}, "shared", RSA1),
    ("v1", "the issuer of the first version", {"iss": f"https://sts.windows.net/{TENANT}/"}, "shared", RSA1),
    ("key", "signed with the key of another directory", {}, "persons", E1),
]:
    bad(
        f"directory-{name}",
        "own: a templated issuer admits one directory",
        "iss",
        about,
        dict({"iss": directory(TENANT), "tid": TENANT}, **claims),
        {"kid": kid},
        alg="RS256" if key is RSA1 else "ES256",
        key=key,
        keys="keys-directories.json",
        issuer=DIRECTORIES,
    )
bad(
    "directory-tid-number",
    "own: a templated issuer admits one directory",
    "tid",
    "a number as directory",
    {"iss": directory(TENANT), "tid": 7},
    {"kid": "shared"},
    alg="RS256",
    key=RSA1,
    keys="keys-directories.json",
    issuer=DIRECTORIES,
)
bad(
    "directory-refresh",
    "OpenID Connect Core 12.2",
    "iss",
    "on refresh: another directory",
    {"iss": directory(TENANT), "tid": TENANT},
    {"kid": "shared"},
    alg="RS256",
    key=RSA1,
    keys="keys-directories.json",
    issuer=DIRECTORIES,
    nonce=None,
    previous={"issuer": directory(OTHER_TENANT), "subject": "ann", "audience": CLIENT},
)
