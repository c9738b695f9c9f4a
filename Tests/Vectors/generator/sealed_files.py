"""Sessions and the vault's key at rest, as the head of Sources/Vault/SessionVault/SealedFile.swift lays them out."""

import json

import aes_gcm
import writing

DATA, WRAPPING, OTHER = bytes(range(32)), bytes(range(64, 96)), b"\x09" * 32
NONCE = bytes(range(100, 112))
CHANGED, LENGTHS = "damaged its content was changed", "damaged its lengths do not fit"
ELSE, SHORT = "damaged it is not a file of this kind", "damaged it is too short"


def check(key):
    return aes_gcm.derive(key, b"ringback sealing key check 1", 16)


def text(members):
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def sealed(header, content, key=DATA, kind=b"S", version=1, said=None, length=None, bound=True):
    """A file. `said` is the check value it shows, `length` that of its header; not `bound`: what is in clear is not
    authenticated."""
    header = header if isinstance(header, bytes) else text(header)
    start = b"ringback" + kind + bytes([version])
    size = (len(header) if length is None else length).to_bytes(4, "big")
    box = aes_gcm.seal(key, NONCE, content, start + size + header if bound else b"")
    return start + (check(key) if said is None else said) + size + header + box


# Sessions.

BINDING = "25:https://id.example.org/mainclient"
USUAL = {"account": "work", "binding": BINDING}


def case(name, about, expect, content, account=None, binding=None, opened=None):
    head = [("about", about), ("expect", expect), ("account", account), ("binding", binding), ("text", opened)]
    writing.hexadecimal("sealed-files", name, head, content)


def opens(name, about, header, content, **more):
    """A case that opens."""
    whole = sealed(header, content.encode(), **more)
    case(name, about, "file", whole, header["account"], header["binding"], content or None)


SESSION = sealed(USUAL, b'{"v":1}')
opens("version-1", "a session", USUAL, '{"v":1}')
opens("version-1-empty-text", "a session without a text", USUAL, "")
opens("version-1-long", "a session over many blocks", USUAL, "0123456789" * 40)
opens("version-1-binding", "a binding beyond ASCII", {"account": "a.b_c-9", "binding": 'ключ "x"'}, "x")
opens(
    "version-1-more-members",
    "a header with members that this reader does not know",
    dict(USUAL, later=[1, {"a": None}]),
    "x",
)
opens(
    "check-value-flipped", "the check value is no part of what is authenticated", USUAL, '{"v":1}', said=bytes(16)
)
case("newer", "of version 2", "newer 2", sealed(USUAL, b"x", version=2))
case("newer-255", "of the last version there can be", "newer 255", b"ringbackS\xff")
case("version-0", "of a version that never was", "damaged its version number is invalid", sealed(USUAL, b"x", version=0))
case("foreign", "sealed with another key", "foreign", sealed(USUAL, b"x", key=OTHER))
case(
    "foreign-claims-ours",
    "sealed with another key, under our check value",
    CHANGED,
    sealed(USUAL, b"x", key=OTHER, said=check(DATA)),
)
case("byte-more", "one byte more", CHANGED, SESSION + b"\0")
case("cut", "one byte is missing", CHANGED, SESSION[:-1])
case("two-files", "two sessions in one file", CHANGED, SESSION * 2)
case("context-missing", "sealed without its context", CHANGED, sealed(USUAL, b"x", bound=False))
case("header-changed", "another account in the header", CHANGED, SESSION.replace(b'"work"', b'"mail"'))
for name, about, header in [
    ("array", "authentic, but its header is an array", b"[]"),
    ("duplicate", "authentic, but a member comes twice", b'{"account":"a","account":"b"}'),
    ("empty", "authentic, without a header", b""),
    ("no-json", "authentic, but its header is no JSON", b"work"),
]:
    case(f"header-{name}", about, "damaged its header is no JSON object", sealed(header, b"x"))
for name, about, expect, length in [
    ("huge", "a header of four gigabytes", LENGTHS, 0xFFFF_FFFF),
    ("into-tag", "a header that leaves no room for a tag", LENGTHS, len(text(USUAL)) + 2),
    ("negative", "a header length with the sign bit", LENGTHS, 0x8000_0000),
    ("one-more", "a header that takes a byte of the nonce", CHANGED, len(text(USUAL)) + 1),
]:
    case(f"header-length-{name}", about, expect, sealed(USUAL, b"x", length=length))
KEY = sealed(USUAL, b"x", kind=b"K")
case("vault-key", "the vault's key under a session's name", ELSE, KEY)
case("vault-key-relabelled", "the same, relabelled", CHANGED, KEY.replace(b"ringbackK", b"ringbackS"))
case("text", "somebody put a text there", ELSE, b'{"refresh_token":"x"}')
case("zeros", "room that was made and not used", ELSE, bytes(400))
case("empty", "nothing", SHORT, b"")
case("nine-bytes", "one byte short of a version", SHORT, b"ringbackS")
case("prologue-alone", "all but nonce, text and tag", LENGTHS, SESSION[:30])

# The vault's key.

ID = "0123456789abcdef" * 2


def key_header(**changes):
    members = {"source": "key-file", "id": ID, "parameters": {}, **changes}
    return {name: value for name, value in members.items() if value is not None}


def wrapped(key=WRAPPING, data=DATA, kind=b"K", **changes):
    return sealed(key_header(**changes), data, key=key, kind=kind)


def key_case(name, about, expect, content, source=None, parameters=None):
    shown = None if source is None else text(parameters or {}).decode()
    head = [("about", about), ("expect", expect), ("source", source), ("id", source and ID), ("parameters", shown)]
    writing.hexadecimal("vault-keys", name, head, content)


for name, about, source, parameters in [
    ("key-file", "kept in a file", "key-file", {}),
    ("keyring", "kept in the keyring", "secret-service", {}),
    ("credential", "from a credential", "systemd-credential", {"credential": "00112233445566778899aabbccddeeff"}),
    ("passphrase", "from a passphrase", "passphrase", {"kdf": "scrypt", "salt": "A" * 43, "n": 131072, "r": 8, "p": 1}),
]:
    whole = wrapped(source=source, parameters=parameters)
    key_case(f"version-1-{name}", about, "key", whole, source, parameters)
key_case(
    "check-value-flipped",
    "the check value is no part of what is authenticated",
    "key",
    sealed(key_header(), DATA, key=WRAPPING, kind=b"K", said=bytes(16)),
    "key-file",
)
key_case("newer", "of version 2", "newer 2", sealed(key_header(), DATA, key=WRAPPING, kind=b"K", version=2))
key_case("other-key", "wrapped by another key", "other key", wrapped(key=OTHER))
key_case("cut", "one byte is missing", CHANGED, wrapped()[:-1])
key_case("id-changed", "another identifier in the header", CHANGED, wrapped().replace(b'"id":"0', b'"id":"1'))
key_case("empty", "nothing", SHORT, b"")
key_case("session", "a session under the name of the vault's key", ELSE, wrapped(kind=b"S"))
key_case(
    "header-no-json",
    "a header that is no JSON",
    "damaged its header is no JSON object",
    sealed(b"key-file", DATA, key=WRAPPING, kind=b"K"),
)
for name, about, changes in [
    ("auto", "auto is no source", {"source": "auto"}),
    ("memory", "memory writes no file", {"source": "memory"}),
    ("missing", "no source", {"source": None}),
    ("unknown", "a source that does not exist", {"source": "tpm"}),
]:
    key_case(f"source-{name}", about, "damaged it names no key source", wrapped(**changes))
key_case("id-capitals", "an identifier in capitals", "damaged it names no key", wrapped(id=ID.upper()))
key_case("id-path", "an identifier that is a path", "damaged it names no key", wrapped(id="../../../../etc/passwd"))
key_case("parameters-missing", "no parameters", "damaged it has no parameters", wrapped(parameters=None))
key_case("key-short", "a data key of 31 bytes", "damaged it holds no key", wrapped(data=DATA[:31]))
key_case("key-long", "a data key of 33 bytes", "damaged it holds no key", wrapped(data=DATA + b"x"))
