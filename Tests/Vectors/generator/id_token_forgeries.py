"""ID tokens whose claims are all in order and whose signature, header or form is not (RFC 7515, 7518, 8037, 8725)."""

import base64
import zlib

from id_token_base import *

BCP = "RFC 8725 section 3.1"


def replaced(name, rule, fault, about, change, alg="ES256", **more):
    """The usual token with its text changed."""
    bad(name, rule, fault, about, content=change(token(alg=alg)), **more)


# none and its spellings: RFC 8725 section 2.1.
for name, alg in (("", "none"), ("-title", "None"), ("-upper", "NONE"), ("-mixed", "nOnE"), ("-space", "none ")):
    bad(
        f"alg-none{name}",
        f"{BCP}, OIDF-09, FAPI-07",
        "alg",
        f"{alg!r} and no signature",
        header={"alg": alg},
        seal=lambda message: b"",
    )
bad("alg-none-signed", f"{BCP}, OIDF-09", "alg", "none above an honest signature", header={"alg": "none"})
bad(
    "alg-none-listed",
    f"{BCP}, OIDF-09",
    "alg",
    "none, which the provider lists",
    header={"alg": "none"},
    seal=lambda message: b"",
    algorithms="none ES256",
)

# A published key taken for a shared secret: CVE-2015-9235, CVE-2022-29217.
PEM = (
    b"-----BEGIN PUBLIC KEY-----\n"
    + base64.encodebytes(
        bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + b"\x04" + E1.join(*E1.point)
    )
    + b"-----END PUBLIC KEY-----\n"
)
for name, alg, secret in [
    ("pem", "HS256", PEM),
    ("pem-line", "HS256", PEM.strip()),
    ("jwk", "HS256", jose.text(E1.jwk())),
    ("x", "HS256", base64.urlsafe_b64decode(E1.jwk()["x"] + "=")),
    ("empty", "HS256", b""),
    ("384", "HS384", PEM),
    ("512", "HS512", PEM),
]:
    bad(
        f"alg-mac-{name}",
        f"{BCP}, OIDF-31, NAT-51",
        "alg",
        f"{alg} with the published key ({name}) as the secret",
        header={"alg": alg},
        seal=lambda message: jose.HMAC(secret).sign(alg, message),
    )
bad(
    "alg-mac-modulus",
    f"{BCP}, OIDF-31, NAT-51",
    "alg",
    "HS256 with the modulus as the secret",
    header={"alg": "HS256", "kid": "r1"},
    seal=lambda message: jose.HMAC(RSA1.n.to_bytes(256, "big")).sign("HS256", message),
)
bad(
    "alg-mac-oct",
    f"{BCP}, OIDF-31, MD-10",
    "alg",
    "HS256 with a secret that the key set publishes",
    header={"alg": "HS256", "kid": "mac"},
    seal=lambda message: jose.HMAC(MAC).sign("HS256", message),
)
bad(
    "alg-mac-listed",
    f"{BCP}, OIDF-31",
    "alg",
    "HS256, which the provider lists",
    header={"alg": "HS256", "kid": "mac"},
    algorithms="HS256",
    seal=lambda message: jose.HMAC(MAC).sign("HS256", message),
)

for name, value in [
    ("lower", "es256"),
    ("space", "ES256 "),
    ("nul", "ES256\0"),
    ("koblitz", "ES256K"),
    ("encryption", "RSA-OAEP"),
    ("sha1", "RS1"),
    ("ed448", "Ed448"),
    ("lattice", "ML-DSA-44"),
    ("empty", ""),
    ("null", None),
    ("absent", ABSENT),
    ("number", 256),
    ("list", ["ES256"]),
    ("object", {"name": "ES256"}),
    ("true", True),
    ("full-width", "\uff25\uff33256"),
    ("ed-lower", "ed25519"),
    ("ed-old", "Ed25519ph"),
]:
    bad(
        f"alg-{name}",
        BCP,
        "alg",
        f"alg is {value!r}" if value is not ABSENT else "alg is left out",
        header={"alg": value},
    )

# The algorithm is the provider's choice, not the token's.
for name, alg, algorithms in [
    ("rs-for-es", "RS256", "ES256"),
    ("rs-for-ps", "RS256", "PS256"),
    ("ps-for-rs", "PS256", "RS256"),
    ("512-for-256", "RS512", "RS256"),
    ("es384-for-es256", "ES384", "ES256"),
    ("ed-for-es", "EdDSA", "ES256"),
    ("es-for-rs", "ES256", "RS256"),
    ("256-for-512", "RS256", "RS512 PS512"),
    ("none-agreed", "RS256", ""),
]:
    bad(
        f"agreed-{name}",
        "OpenID Connect Core 3.1.3.7 rule 7, FAPI-08",
        "alg",
        f"{alg} with a published key; agreed is {algorithms or 'nothing'}",
        alg=alg,
        algorithms=algorithms,
    )

# One algorithm's signature under another's name.
for name, said, made, fault in [
    ("rs-as-ps", "PS256", "RS256", "signature"),
    ("ps-as-rs", "RS256", "PS256", "signature"),
    ("256-as-512", "RS512", "RS256", "signature"),
    ("512-as-256", "RS256", "RS512", "signature"),
    ("ps384-as-ps256", "PS256", "PS384", "signature"),
    ("ps256-as-ps512", "PS512", "PS256", "signature"),
]:
    bad(
        f"renamed-{name}",
        f"{BCP}, NAT-51",
        fault,
        f"a signature of {made} under the name {said}",
        header={"alg": said},
        alg=made,
    )
for name, said, kid, key, made in [
    ("es-as-rs", "RS256", "e1", E1, "ES256"),
    ("rs-as-es", "ES256", "r1", RSA1, "RS256"),
    ("es-as-es384", "ES384", "e1", E1, "ES256"),
    ("es384-as-es256", "ES256", "e384", E384, "ES384"),
    ("es-as-ed", "EdDSA", "e1", E1, "ES256"),
    ("ed-as-es", "ES256", "o1", O1, "EdDSA"),
    ("es521-as-es256", "ES256", "e521", E521, "ES512"),
]:
    bad(
        f"renamed-{name}",
        f"{BCP}, NAT-51",
        "kid",
        f"{said} with a key that cannot",
        header={"alg": said, "kid": kid},
        seal=lambda message: key.sign(made, message),
    )
bad(
    "koblitz",
    "OIDF-01, MD-10",
    "kid",
    "ES256 over secp256k1, whose key the set has",
    header={"kid": "koblitz"},
    key=K256,
)

# Header members.
for name, value in [("unknown", ["exp"]), ("b64", ["b64"]), ("empty", []), ("null", None), ("text", "exp")]:
    bad(
        f"crit-{name}",
        "RFC 7515 section 4.1.11, NAT-51",
        "crit",
        f"crit is {value!r}",
        header=dict({"crit": value}, **({"b64": False} if name == "b64" else {})),
    )
for name, value in [
    ("access", "at+jwt"),
    ("access-long", "application/at+jwt"),
    ("case", "AT+JWT"),
    ("logout", "logout+jwt"),
    ("proof", "dpop+jwt"),
    ("event", "secevent+jwt"),
    ("request", "oauth-authz-req+jwt"),
    ("number", 1),
    ("list", ["JWT"]),
    ("object", {}),
    ("true", True),
]:
    bad(f"typ-{name}", "RFC 8725 section 3.11", "typ", f"typ is {value!r}", header={"typ": value})
for name, value in [
    ("unknown", "e9"),
    ("empty", ""),
    ("case", "E1"),
    ("space", "e1 "),
    ("path", "../../../../dev/null"),
    ("query", "e1' OR '1'='1"),
    ("nul", "e1\0"),
    ("url", "https://evil.example/keys#e1"),
    ("command", "e1|/usr/bin/id"),
    ("number", 1),
    ("list", ["e1"]),
    ("object", {"kid": "e1"}),
    ("true", True),
    ("encryption", "enc-ec"),
    ("long", "e1" * 2_000),
]:
    bad(f"kid-{name}", "RFC 8725 section 3.10, NAT-51", "kid", f"kid is {value!r}"[:80], header={"kid": value})
bad("kid-of-other-key", "RFC 8725 section 3.10", "signature", "the name of the set's other key", header={"kid": "e2"})
for name, value in [
    ("jwk", jwk(STRANGER, "e1")),
    ("jku", "https://evil.example/keys"),
    ("x5u", "https://evil.example/chain"),
    ("x5c", [base64.b64encode(PEM).decode()]),
]:
    bad(
        f"own-key-{name}",
        "RFC 8725 section 3.10, NAT-51",
        "signature",
        f"signed with a key of its own, shown in {name}",
        header={name: value},
        key=STRANGER,
    )
    bad(
        f"own-key-{name}-unnamed",
        "RFC 8725 section 3.10, NAT-51",
        "signature",
        f"the same without kid ({name})",
        header={name: value, "kid": ABSENT},
        key=STRANGER,
    )
for name, head, about in [
    ("twice", b'{"alg":"ES256","alg":"ES256","kid":"e1"}', "alg twice"),
    ("twice-none", b'{"alg":"none","alg":"ES256","kid":"e1"}', "none, then ES256"),
    ("twice-escaped", b'{"alg":"ES256","\\u0061lg":"none","kid":"e1"}', "alg twice, once escaped"),
    ("kid-twice", b'{"alg":"ES256","kid":"e1","kid":"e2"}', "kid twice"),
    ("list", b'["ES256"]', "a list"),
    ("text", b'"ES256"', "a text"),
    ("null", b"null", "null"),
    ("empty", b"", "nothing"),
    ("cut", b'{"alg":"ES256"', "cut off"),
    ("trailing", b'{"alg":"ES256","kid":"e1"} x', "text after it"),
    ("mark", b'\xef\xbb\xbf{"alg":"ES256","kid":"e1"}', "a byte order mark"),
    ("encoding", b'{"alg":"ES256","kid":"e1","x":"\xff"}', "not UTF-8"),
    ("deep", b'{"alg":"ES256","kid":"e1","x":' + b"[" * 9 + b"]" * 9 + b"}", "nested ten deep"),
    ("many", b'{"alg":"ES256","kid":"e1","x":[' + b",".join([b"0"] * 300) + b"]}", "three hundred values"),
    ("surrogate", b'{"alg":"ES256","kid":"\\ud800"}', "half a surrogate pair"),
    ("single-quotes", b"{'alg':'ES256'}", "single quotes"),
]:
    bad(f"header-{name}", "RFC 7515 section 4", "header", f"the header: {about}", head=head)

# The compact form: one spelling.
for name, rule, about, change in [
    ("two-parts", 7, "without the signature's part", lambda t: t.rsplit(".", 1)[0]),
    ("one-part", 7, "the header alone", lambda t: t.split(".")[0]),
    ("four-parts", 7, "a part more", lambda t: t + ".AAAA"),
    ("five-parts", 7, "the form of an encrypted token", lambda t: t + ".AAAA.AAAA"),
    ("dot-after", 7, "a dot after", lambda t: t + "."),
    ("dot-before", 7, "a dot before", lambda t: "." + t),
    ("two-dots", 7, "two dots in a row", lambda t: t.replace(".", "..", 1)),
    ("commas", 7, "commas for dots", lambda t: t.replace(".", ",")),
    ("dots", 7, "five thousand dots (CVE-2025-22868)", lambda t: "." * 5_000),
    ("padded", 2, "padding after the signature", lambda t: t + "=="),
    ("padded-header", 2, "padding after the header", lambda t: t.replace(".", "=.", 1)),
    ("space-before", 2, "a space before", lambda t: " " + t),
    ("space-after", 2, "a space after", lambda t: t + " "),
    ("line-break", 2, "a line break inside", lambda t: t[:40] + "\n" + t[40:]),
    ("bearer", 2, "a scheme before", lambda t: "Bearer " + t),
    ("quoted", 2, "in quotes", lambda t: f'"{t}"'),
    ("escaped", 2, "escaped as in a URL", lambda t: t.replace("e", "%65", 1)),
    ("plain-alphabet", 2, "base64's own alphabet", lambda t: t[:-2] + "+/"),
    (
        "json",
        7,
        "the JSON form",
        lambda t: '{{"payload":"{1}","protected":"{0}","signature":"{2}"}}'.format(*t.split(".")),
    ),
    ("nul-after", 2, "a NUL after", lambda t: t + "\0"),
    ("letters", 2, "letters outside ASCII", lambda t: t + "\u00e9"),
    ("one-digit", 2, "a digit that makes no byte", lambda t: t + "AAA"),
]:
    replaced(f"form-{name}", f"RFC 7515 section {rule}", "token", about, change)
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
for name, part in (("header", 0), ("payload", 1), ("signature", 2)):
    # A filler makes the part's bytes no multiple of three, so that its last digit has bits to spare.
    for filler in ("", "x", "xx"):
        parts = token({"filler": filler}, {"filler": filler}).split(".")
        if len(parts[part]) % 4:
            break
    parts[part] = parts[part][:-1] + DIGITS[DIGITS.index(parts[part][-1]) + 1]
    bad(
        f"form-stray-bits-{name}",
        "RFC 4648 section 3.5",
        "token",
        f"unused bits set at the end of the {name}",
        content=".".join(parts),
    )
for name, part, fault in (("header", 0, "header"), ("payload", 1, "signature"), ("signature", 2, "signature")):

    def emptied(text):
        parts = text.split(".")
        parts[part] = ""
        return ".".join(parts)

    replaced(f"form-empty-{name}", "RFC 7515 section 7", fault, f"an empty {name}", emptied)

# Signatures.
SIG = "OpenID Connect Core 3.1.3.7 rule 6, OIDF-10, OIDF-30"


def flip(index):
    return lambda raw: raw[: index % len(raw)] + bytes([raw[index % len(raw)] ^ 1]) + raw[index % len(raw) + 1 :]


for alg in ALL.split():
    key, kid = KEYS.get(alg) or KEYS[alg[:2]]
    bad(
        f"signature-{alg.lower()}-flipped",
        SIG,
        "signature",
        "one bit changed in the middle",
        alg=alg,
        seal=lambda message: flip(len(key.sign(alg, message)) // 2)(key.sign(alg, message)),
    )
for alg in ("RS256", "PS256", "ES256", "EdDSA"):
    key, kid = KEYS.get(alg) or KEYS[alg[:2]]
    for name, about, change in [
        ("first", "a bit of the first byte changed", flip(0)),
        ("last", "a bit of the last byte changed", flip(-1)),
        ("cut", "a byte short", lambda raw: raw[:-1]),
        ("longer", "a byte longer", lambda raw: raw + b"\0"),
        ("zero-before", "a zero before", lambda raw: b"\0" + raw),
        ("zeros", "all zeros", lambda raw: bytes(len(raw))),
        ("ones", "all ones", lambda raw: b"\xff" * len(raw)),
        ("twice", "the signature twice", lambda raw: raw + raw),
    ]:
        if (alg, name) == ("ES256", "zeros"):
            continue  # ecdsa-zero-both says more.
        bad(
            f"signature-{alg.lower()}-{name}",
            SIG,
            "signature",
            about,
            alg=alg,
            seal=lambda message: change(key.sign(alg, message)),
        )
    bad(
        f"signature-{alg.lower()}-payload-changed",
        SIG,
        "signature",
        "the person changed after signing",
        alg=alg,
        seal=lambda message: key.sign(
            alg, jose.signed_part({"alg": alg, "typ": "JWT", "kid": kid}, dict(USUAL, sub="eve"))
        ),
    )

N = E1.curve.n
for name, about, make in [
    ("zero-r", "r is zero", lambda r, s: (0, s)),
    ("zero-s", "s is zero", lambda r, s: (r, 0)),
    ("zero-both", "r and s are zero (CVE-2022-21449)", lambda r, s: (0, 0)),
    ("order-r", "r is the order", lambda r, s: (N, s)),
    ("order-s", "s is the order", lambda r, s: (r, N)),
    ("one", "r and s are one", lambda r, s: (1, 1)),
    ("swapped", "s before r", lambda r, s: (s, r)),
    ("order-both", "r and s are the order", lambda r, s: (N, N)),
    ("negative-r", "the order less r", lambda r, s: (N - r, s)),
    ("order-plus-s", "s with the order's overflow", lambda r, s: (r, (s + N) % 2**256)),
    ("prime-r", "r is the field's prime", lambda r, s: (E1.curve.p, s)),
]:
    bad(
        f"ecdsa-{name}",
        "NAT-51, Wycheproof",
        "signature",
        about,
        seal=lambda message: E1.join(*make(*E1.halves("sha256", message))),
    )
for alg, key in (("ES256", E1), ("ES384", E384), ("ES512", E521)):
    hash_name = jose.HASHES[alg[2:]]
    bad(
        f"ecdsa-der-{alg.lower()}",
        "RFC 7518 section 3.4",
        "signature",
        "DER in place of the two halves",
        alg=alg,
        seal=lambda message: key.der(*key.halves(hash_name, message)),
    )
    bad(
        f"ecdsa-wide-{alg.lower()}",
        "RFC 7518 section 3.4",
        "signature",
        "each half a byte longer",
        alg=alg,
        seal=lambda message: key.join(*key.halves(hash_name, message), size=key.curve.size + 1),
    )
    bad(
        f"ecdsa-other-digest-{alg.lower()}",
        "RFC 7518 section 3.4",
        "signature",
        "the curve's signature over another digest",
        alg=alg,
        seal=lambda message: key.join(*key.halves("sha512" if hash_name == "sha256" else "sha256", message)),
    )
for alg, key in (("ES384", E384), ("ES512", E521)):
    order, width = key.curve.n, 8 * key.curve.size
    for name, about, make in [
        ("zero-r", "r is zero", lambda r, s: (0, s)),
        ("zero-s", "s is zero", lambda r, s: (r, 0)),
        ("zero-both", "r and s are zero (CVE-2022-21449)", lambda r, s: (0, 0)),
        ("order-r", "r is the order", lambda r, s: (order, s)),
        ("order-s", "s is the order", lambda r, s: (r, order)),
        ("swapped", "s before r", lambda r, s: (s, r)),
        ("high-bit", "the highest bit of r changed", lambda r, s: (r ^ 1 << (width - 1), s)),
    ]:
        hash_name = jose.HASHES[alg[2:]]
        changed_halves = lambda message: make(*key.halves(hash_name, message))
        bad(
            f"ecdsa-{name}-{alg.lower()}",
            "NAT-51, Wycheproof",
            "signature",
            about,
            alg=alg,
            seal=lambda message: key.join(*changed_halves(message)),
        )
bad("ecdsa-stranger", SIG, "signature", "another issuer's key", key=STRANGER)

SHA256 = bytes.fromhex(jose.DIGEST_INFO["sha256"])


def forged(key, build):
    """A block that only a careless reader takes, raised with the real key: what is tested is the reading."""
    return lambda message: key.raw(build(message))


def cube_root(message):
    """A number whose cube begins like a signed block: enough for a reader that does not look at what follows."""
    wanted = int.from_bytes(
        b"\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\x00" + SHA256 + jose.digest("sha256", message) + b"\0" * 194, "big"
    )
    low, high = 0, 1 << 700
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**3 < wanted else (low, middle)
    return low


for name, about, block in [
    (
        "no-null",
        "the digest's parameters left out",
        lambda m: RSA1.pkcs1_block("sha256", m, bytes.fromhex("302f300b0609608648016503040201") + b"\x04\x20"),
    ),
    ("bare-hash", "the digest without its name", lambda m: RSA1.pkcs1_block("sha256", m, b"")),
    ("sha1", "SHA-1", lambda m: RSA1.pkcs1_block("sha1", m)),
    ("md5", "MD5", lambda m: RSA1.pkcs1_block("md5", m)),
    (
        "wrong-name",
        "SHA-256 under the name of SHA-512",
        lambda m: RSA1.pkcs1_block("sha256", m, bytes.fromhex(jose.DIGEST_INFO["sha512"])),
    ),
    ("type-2", "the padding of encryption", lambda m: b"\x00\x02" + RSA1.pkcs1_block("sha256", m)[2:]),
    ("type-0", "padding of zeros", lambda m: b"\x00\x00" + RSA1.pkcs1_block("sha256", m)[2:].replace(b"\xff", b"\0")),
    (
        "short-padding",
        "the digest early, rubbish after (Bleichenbacher 2006)",
        lambda m: b"\x00\x01" + b"\xff" * 8 + b"\0" + SHA256 + jose.digest("sha256", m) + b"\xaa" * 194,
    ),
    (
        "padding-hole",
        "a byte of the padding wrong",
        lambda m: (lambda b: b[:40] + b"\xfe" + b[41:])(RSA1.pkcs1_block("sha256", m)),
    ),
    ("long-length", "a length of DER in two bytes", lambda m: RSA1.pkcs1_block("sha256", m, b"\x30\x81" + SHA256[1:])),
]:
    bad(
        f"pkcs1-{name}", "RFC 8017 section 8.2.2, Wycheproof", "signature", about, alg="RS256", seal=forged(RSA1, block)
    )
bad(
    "pkcs1-cube-root",
    "RFC 8017 section 8.2.2, CVE-2006-4339",
    "signature",
    "a cube root for a key of exponent three, made without the key",
    {},
    {"kid": "cube"},
    alg="RS256",
    seal=lambda message: cube_root(message).to_bytes(256, "big"),
)
for name, about, number in [
    ("one", "one", 1),
    ("modulus", "the modulus", RSA1.n),
    ("minus-one", "the modulus less one", RSA1.n - 1),
]:
    for alg in ("RS256", "PS256"):
        bad(
            f"rsa-{name}-{alg.lower()}",
            "RFC 8017 section 5.2.2",
            "signature",
            f"{about} as the signature",
            alg=alg,
            seal=lambda message: number.to_bytes(256, "big"),
        )
for name, about, block in [
    ("no-salt", "without salt", lambda m: RSA1.pss_block("sha256", m, 0)),
    ("short-salt", "a salt of 20 bytes", lambda m: RSA1.pss_block("sha256", m, 20)),
    ("long-salt", "the longest salt", lambda m: RSA1.pss_block("sha256", m, 222)),
    ("mask-sha1", "the mask by SHA-1", lambda m: RSA1.pss_block("sha256", m, 32, "sha1")),
    ("sha1", "all by SHA-1", lambda m: RSA1.pss_block("sha1", m)),
    ("trailer", "another trailer", lambda m: RSA1.pss_block("sha256", m)[:-1] + b"\xcc"),
]:
    bad(f"pss-{name}", "RFC 7518 section 3.5", "signature", about, alg="PS256", seal=forged(RSA1, block))


def eddsa(change):
    def seal(message):
        raw = O1.sign("EdDSA", message)
        return change(raw[:32], int.from_bytes(raw[32:], "little"))

    return seal


for name, about, change in [
    ("order", "s and the order: another spelling", lambda r, s: r + (s + O1.order).to_bytes(32, "little")),
    ("zero-s", "s is zero", lambda r, s: r + bytes(32)),
    ("zero-r", "R is zero", lambda r, s: bytes(32) + s.to_bytes(32, "little")),
    ("identity", "R is the identity, s is zero", lambda r, s: b"\x01" + bytes(63)),
    ("swapped", "s before R", lambda r, s: s.to_bytes(32, "little") + r),
]:
    bad(f"eddsa-{name}", "RFC 8032 section 5.1.7, Wycheproof", "signature", about, alg="EdDSA", seal=eddsa(change))
bad(
    "eddsa-hashed",
    "RFC 8037 section 3.1",
    "signature",
    "signed over the digest of the message",
    alg="EdDSA",
    seal=lambda m: O1.sign("EdDSA", jose.digest("sha512", m)),
)
bad(
    "signed-payload-only",
    "RFC 7515 section 5.1",
    "signature",
    "signed over the payload alone",
    seal=lambda m: E1.sign("ES256", m.split(b".")[1]),
)
bad(
    "signed-decoded",
    "RFC 7515 section 5.1",
    "signature",
    "signed over the decoded parts",
    seal=lambda m: E1.sign("ES256", jose.text({"alg": "ES256"}) + jose.text(USUAL)),
)


# Keys that must not serve.
UNFIT = "RFC 7517, Wycheproof"
for name, kid, key, alg in [
    ("weak", "weak", WEAK, "RS256"),
    ("exponent-one", "one", RSA1, "RS256"),
    ("exponent-even", "even", RSA1, "RS256"),
    ("exponent-huge", "huge-e", RSA1, "RS256"),
    ("private", "private", RSA1, "RS256"),
    ("private-ec", "private-ec", E1, "ES256"),
    ("plain-alphabet", "plain-n", RSA1, "RS256"),
    ("off-curve", "off-curve", E1, "ES256"),
    ("swapped", "swapped", E1, "ES256"),
    ("short-coordinate", "short", E1, "ES256"),
    ("origin", "zero", E1, "ES256"),
    ("other-curve", "wrong-curve", E1, "ES256"),
    ("half-point", "no-y", E1, "ES256"),
    ("long-ed", "long", O1, "EdDSA"),
    ("second-spelling", "second-spelling", O1, "EdDSA"),
    ("use-list", "list", RSA1, "RS256"),
    ("alg-number", "number", RSA1, "RS256"),
    ("kty-case", "lower", RSA1, "RS256"),
]:
    bad(
        f"key-{name}",
        UNFIT,
        "kid",
        f"a key that must not serve: {name}",
        header={"kid": kid},
        key=key,
        alg=alg,
        keys="keys-unfit.json",
    )
bad(
    "key-exponent-one-forged",
    UNFIT,
    "kid",
    "with exponent one the block is its own signature",
    header={"kid": "one"},
    alg="RS256",
    keys="keys-unfit.json",
    seal=lambda m: RSA1.pkcs1_block("sha256", m),
)
bad(
    "key-identity",
    UNFIT,
    "kid",
    "under the identity one signature holds for every message",
    header={"kid": "identity"},
    alg="EdDSA",
    keys="keys-unfit.json",
    seal=lambda m: b"\x01" + bytes(31) + bytes(32),
)
for name, kid, key, alg, about in [
    ("ps-only", "ps", RSA1, "RS256", "a key for PS256 alone"),
    ("rs-only", "rs", RSA2, "PS256", "a key for RS256 alone"),
    ("rs-only-512", "rs", RSA2, "RS512", "a key for RS256 alone"),
    ("sign-only", "sign-only", E2, "ES256", "a key that is not for verifying"),
    ("encryption", "oaep", RSA3, "RS256", "a key of an encryption algorithm"),
]:
    bad(
        f"key-{name}", "RFC 7517 section 4", "kid", about, header={"kid": kid}, key=key, alg=alg, keys="keys-bound.json"
    )
bad(
    "key-enc",
    "RFC 7517 section 4.2, OIDF-01",
    "kid",
    "a key for encryption",
    header={"kid": "enc"},
    key=RSA3,
    alg="RS256",
)
bad(
    "key-rotated",
    "OIDF-19, MD-07",
    "kid",
    "a key that the set does not have yet: fetch it again",
    keys="keys-after-rotation.json",
    fetch_keys="yes",
)
bad(
    "key-rotated-unnamed",
    "OIDF-19",
    "signature",
    "no kid, and none of the keys fits: fetch the set again",
    header={"kid": ABSENT},
    keys="keys-after-rotation.json",
    fetch_keys="yes",
)
bad("key-none", "OIDF-19", "kid", "an empty set: fetch it again", keys="keys-none.json", fetch_keys="yes")
bad(
    "key-named-wrong",
    "MD-07",
    "signature",
    "the named key is there and did not sign: no fetch helps",
    key=STRANGER,
    fetch_keys="no",
)
bad(
    "key-name-of-many",
    "RFC 7517 section 4.5",
    "kid",
    "a name, and several keys without one",
    keys="keys-nameless-many.json",
    fetch_keys="yes",
)
bad(
    "key-other-kind",
    "OIDF-06",
    "kid",
    "no key of this kind",
    header={"kid": ABSENT},
    keys="keys-one-kind.json",
    fetch_keys="yes",
)
bad(
    "key-garbage-no-fetch",
    "MD-07",
    "token",
    "what is no token asks for no keys",
    content="not a token",
    fetch_keys="no",
)
bad(
    "key-none-no-fetch",
    "MD-07",
    "alg",
    "what no key can have signed asks for no keys",
    header={"alg": "none", "kid": "unknown"},
    seal=lambda m: b"",
    fetch_keys="no",
)

# Payloads: signed, and still not one plain object.
USUAL_TEXT = jose.text(USUAL)
for name, rule, about, payload in [
    ("twice-iss", 4, "iss twice", USUAL_TEXT[:-1] + b',"iss":"https://evil.example"}'),
    ("twice-sub", 4, "sub twice", USUAL_TEXT[:-1] + b',"sub":"eve"}'),
    ("twice-aud", 4, "aud twice", USUAL_TEXT[:-1] + b',"aud":"other"}'),
    ("twice-exp", 4, "exp twice", USUAL_TEXT[:-1] + b',"exp":4000000000}'),
    ("twice-nonce", 4, "nonce twice", USUAL_TEXT[:-1] + b',"nonce":"x"}'),
    ("twice-same", 4, "sub twice, alike", USUAL_TEXT[:-1] + b',"sub":"ann"}'),
    ("twice-escaped", 4, "sub twice, once escaped", USUAL_TEXT[:-1] + b',"\\u0073ub":"eve"}'),
    ("twice-first", 4, "another sub first", b'{"sub":"eve",' + USUAL_TEXT[1:]),
    ("twice-inside", 4, "a member twice inside a claim", USUAL_TEXT[:-1] + b',"address":{"x":1,"x":2}}'),
    ("list", 7, "a list", b"[" + USUAL_TEXT + b"]"),
    ("text", 7, "a text", b'"ann"'),
    ("number", 7, "a number", b"7"),
    ("null", 7, "null", b"null"),
    ("empty", 7, "nothing", b""),
    ("cut", 7, "cut off", USUAL_TEXT[:-1]),
    ("trailing", 7, "text after it", USUAL_TEXT + b"x"),
    ("two", 7, "two objects", USUAL_TEXT + USUAL_TEXT),
    ("mark", 7, "a byte order mark", b"\xef\xbb\xbf" + USUAL_TEXT),
    ("encoding", 7, "not UTF-8", USUAL_TEXT.replace(b"ann@", b"\xff\xfe@")),
    ("wide", 7, "UTF-16", USUAL_TEXT.decode().encode("utf-16-le")),
    ("overlong", 7, "an overlong form in UTF-8", USUAL_TEXT.replace(b"ann@", b"\xc0\xae@")),
    ("surrogate", 7, "half a surrogate pair", USUAL_TEXT.replace(b"ann@", b"\\ud800@")),
    ("control", 7, "a line break inside a text", USUAL_TEXT.replace(b"ann@", b"ann\n@")),
    ("deep", 7, "nested forty deep", USUAL_TEXT[:-1] + b',"x":' + b"[" * 40 + b"]" * 40 + b"}"),
    ("single-quotes", 7, "single quotes", USUAL_TEXT.replace(b'"', b"'")),
    ("comma", 7, "a comma too many", USUAL_TEXT[:-1] + b",}"),
    ("comment", 7, "a comment", b"/**/" + USUAL_TEXT),
    ("nan", 7, "NaN", USUAL_TEXT[:-1] + b',"x":NaN}'),
    ("leading-zero", 7, "a number with a leading zero", USUAL_TEXT[:-1] + b',"x":01}'),
    ("plus", 7, "a number with a plus", USUAL_TEXT[:-1] + b',"x":+1}'),
    ("hexadecimal", 7, "a hexadecimal number", USUAL_TEXT[:-1] + b',"x":0x1}'),
    ("nested", 7, "a token inside the token", token().encode()),
    ("long-number", 7, "a number of five hundred digits", USUAL_TEXT[:-1] + b',"x":' + b"9" * 500 + b"}"),
    ("escape", 7, "an escape that JSON does not have", USUAL_TEXT.replace(b"ann@", b"\\x61@")),
    ("compressed", 7, "compressed", zlib.compress(USUAL_TEXT)),
]:
    bad(
        f"payload-{name}",
        f"RFC 7519 section {rule}" if rule == 4 else f"RFC 7519 section {rule}.2",
        "payload",
        about,
        payload=payload,
    )
