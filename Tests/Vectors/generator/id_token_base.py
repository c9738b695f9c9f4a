"""The issuer of the ID token cases: its keys, its usual token, and how a case is written."""

import jose
import writing

FOLDER = "id-tokens"
ISSUER, CLIENT, NONCE, NOW = "https://id.example.org/realms/main", "ringback", "n-0S6_WzA2Mj", 1_800_000_000
ACCESS, CODE = (
    "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y",
    "Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk",
)
ALL = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA"
DIRECTORIES = "https://login.microsoftonline.com/{tenantid}/v2.0"
TENANT, OTHER_TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47", "9188040d-6c67-4c5b-b112-36a304b66dad"


def directory(tenant):
    return DIRECTORIES.replace("{tenantid}", tenant)


RSA1, RSA2, RSA3 = (jose.RSA(f"vector rsa {n}") for n in (1, 2, 3))
WEAK, CUBE = jose.RSA("vector rsa weak", 1024), jose.RSA("vector rsa cube", 2048, 3)
E1, E2, E3 = (jose.EC(f"vector ec {n}", "P-256") for n in (1, 2, 3))
E384, E521, K256 = (jose.EC(f"vector {name}", name) for name in ("P-384", "P-521", "secp256k1"))
O1, O2, O3 = (jose.Ed25519(f"vector ed {n}") for n in (1, 2, 3))
STRANGER, STRANGER_RSA = jose.EC("vector stranger", "P-256"), jose.RSA("vector stranger")
MAC = b"a shared secret of thirty-two by"


def jwk(key, kid=None, use="sig", **members):
    value = dict(key.jwk(), use=use, kid=kid, **members)
    return {name: member for name, member in value.items() if member is not None}


OCT = {"kty": "oct", "k": jose.b64(MAC), "kid": "mac", "alg": "HS256", "use": "sig"}
FOREIGN = [
    jwk(K256, "koblitz"),
    {"kty": "AKP", "alg": "ML-DSA-44", "kid": "lattice", "pub": "AAAA", "use": "sig"},
    {"kty": "OKP", "crv": "X25519", "kid": "x", "use": "enc", "x": jose.b64(jose.stream("x", 32))},
]
SETS = {
    # OIDF-01: what a certification suite publishes, and more.
    "keys.json": [
        jwk(RSA1, "r1"),
        jwk(RSA2, "r2"),
        jwk(E1, "e1"),
        jwk(E2, "e2"),
        jwk(O1, "o1"),
        jwk(E384, "e384"),
        jwk(E521, "e521"),
        jwk(CUBE, "cube"),
        jwk(RSA3, "enc", use="enc"),
        jwk(E3, "enc-ec", use="enc"),
        OCT,
    ]
    + FOREIGN,
    # OIDF-06: one key of each kind, none with a name.
    "keys-nameless.json": [jwk(RSA1), jwk(E1), jwk(K256), jwk(O1)],
    # OIDF-07: three of each kind, none with a name.
    "keys-nameless-many.json": [jwk(RSA2), jwk(RSA3), jwk(RSA1), jwk(E2), jwk(E3), jwk(E1), jwk(O2), jwk(O3), jwk(O1)],
    "keys-one-kind.json": [jwk(RSA1, "r1")],
    "keys-same-name.json": [jwk(RSA1, "k"), jwk(E2, "k"), jwk(E1, "k"), jwk(O1, "k")],
    "keys-bound.json": [
        jwk(RSA1, "ps", alg="PS256"),
        jwk(RSA2, "rs", alg="RS256"),
        jwk(E1, "verify", use=None, key_ops=["verify"]),
        jwk(E2, "sign-only", use=None, key_ops=["sign"]),
        jwk(O1, "ed", alg="EdDSA"),
        jwk(O2, "ed25519", alg="Ed25519"),
        jwk(RSA3, "oaep", alg="RSA-OAEP"),
        jwk(E3, "no-use", use=None),
    ],
    "keys-null.json": [dict(jwk(E1, use=None), use=None, kid=None, alg=None, key_ops=None, x5c=None)],
    # Keys that prove nothing: weak, broken or private. Each would verify its token if it were taken.
    "keys-unfit.json": [
        jwk(WEAK, "weak"),
        dict(jwk(RSA1, "one"), e="AQ"),
        dict(jwk(RSA1, "even"), e="AQAA"),
        dict(jwk(RSA1, "huge-e"), e="AQAAAAAB"),
        dict(jwk(RSA1, "private"), d=jose.b64(b"d" * 256)),
        dict(jwk(E1, "private-ec"), d=jose.b64(b"d" * 32)),
        dict(jwk(RSA1, "padded-n"), n=jwk(RSA1)["n"] + "="),
        dict(jwk(RSA1, "plain-n"), n=jwk(RSA1)["n"][:-2] + "+/"),
        dict(jwk(E1, "off-curve"), y=jwk(E2)["y"]),
        dict(jwk(E1, "swapped"), x=jwk(E1)["y"], y=jwk(E1)["x"]),
        dict(jwk(E1, "short"), x=jwk(E1)["x"][:-4]),
        dict(jwk(E1, "zero"), x="A" * 43, y="A" * 43),
        dict(jwk(E1, "wrong-curve"), crv="P-384"),
        dict(jwk(E1, "no-y"), y=None),
        dict(jwk(O1, "identity"), x=jose.b64(b"\x01" + bytes(31))),
        dict(jwk(O1, "second-spelling"), x=jose.b64(b"\xee" + b"\xff" * 30 + b"\x7f")),
        dict(jwk(O1, "long"), x=jose.b64(O1.public + b"\x00")),
        dict(jwk(RSA1, "list"), use=["sig"]),
        dict(jwk(RSA1, "number"), alg=256),
        dict(jwk(RSA1, "lower"), kty="rsa"),
    ],
    "keys-directories.json": [
        dict(jwk(RSA1, "shared"), issuer=DIRECTORIES),
        dict(jwk(RSA2, "own"), issuer=directory(TENANT)),
        jwk(RSA3, "unmarked"),
        dict(jwk(E1, "persons"), issuer=directory(OTHER_TENANT)),
    ],
    "keys-after-rotation.json": [jwk(E2, "e2"), jwk(E3, "e3")],
    "keys-none.json": [],
}
for name, entries in SETS.items():
    writing.keys(FOLDER, name, entries)

KEYS = {
    "RS": (RSA1, "r1"),
    "PS": (RSA1, "r1"),
    "ES256": (E1, "e1"),
    "ES384": (E384, "e384"),
    "ES512": (E521, "e521"),
    "EdDSA": (O1, "o1"),
    "Ed25519": (O1, "o1"),
}
USUAL = {
    "iss": ISSUER,
    "sub": "ann",
    "aud": CLIENT,
    "exp": NOW + 300,
    "iat": NOW,
    "nonce": NONCE,
    "auth_time": NOW - 20,
    "email": "ann@example.org",
}
ABSENT = object()


def changed(base, changes):
    merged = dict(base, **(changes or {}))
    return {name: value for name, value in merged.items() if value is not ABSENT}


def token(claims=None, header=None, alg="ES256", key=None, payload=None, head=None, seal=None):
    """A token: the usual claims and header with changes, or whole ones; signed by the key, or as `seal` says."""
    usual, kid = KEYS.get(alg) or KEYS[alg[:2]]
    head = changed({"alg": alg, "typ": "JWT", "kid": kid}, header) if head is None else head
    payload = changed(USUAL, claims) if payload is None else payload
    part = jose.signed_part(head, payload)
    seal = seal or (lambda message: (key or usual).sign(alg, message))
    return f"{part.decode()}.{jose.b64(seal(part))}"


def case(
    name,
    rule,
    about,
    expect,
    content,
    keys="keys.json",
    issuer=ISSUER,
    client=CLIENT,
    nonce=NONCE,
    now=NOW,
    leeway=120,
    algorithms=ALL,
    access_token=None,
    code=None,
    max_age=None,
    previous=None,
    fetch_keys=None,
):
    before = [(f"previous_{key}", value) for key, value in (previous or {}).items()]
    writing.case(
        FOLDER,
        name,
        [
            ("about", about),
            ("rule", rule),
            ("expect", expect),
            ("keys", keys),
            ("issuer", issuer),
            ("client_id", client),
            ("nonce", nonce),
            ("now", now),
            ("leeway", leeway),
            ("algorithms", algorithms),
            ("access_token", access_token),
            ("code", code),
            ("max_age", max_age),
            *before,
            ("fetch_keys", fetch_keys),
        ],
        content,
    )


def bad(
    name,
    rule,
    fault,
    about,
    claims=None,
    header=None,
    alg="ES256",
    key=None,
    payload=None,
    head=None,
    seal=None,
    content=None,
    **expected,
):
    content = content or token(claims, header, alg, key, payload, head, seal)
    case(f"bad-{name}", rule, about, f"refused {fault}", content, **expected)


def good(
    name,
    rule,
    about,
    claims=None,
    header=None,
    alg="ES256",
    key=None,
    payload=None,
    head=None,
    seal=None,
    content=None,
    **expected,
):
    content = content or token(claims, header, alg, key, payload, head, seal)
    case(f"good-{name}", rule, about, "accepted", content, **expected)
