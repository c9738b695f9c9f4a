"""Wrong answers of a token endpoint, each deliberate: what broken servers, proxies and networks have been seen to send.

A case is a name, whether the provider did what it was asked (and so had rotated the refresh token), whether the new
refresh token can be read in the answer, and how the answer is made from the honest one.
"""

import gzip
import json

from proxy import Answer, compose

JSON_TYPE = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
DEEP = b"[" * 5_000 + b"]" * 5_000
HTML = b"<!DOCTYPE html><html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>"
# invalid_grant is no lie but a proof, with the status of the standard; here it comes with others.
OAUTH_ERRORS = [
    "invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
    "server_error", "temporarily_unavailable", "access_denied", "interaction_required", "slow_down",
    "Invalid_Grant", "unknown",
]
STATUSES = [
    400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 418, 421, 422, 423, 424, 425, 426, 428,
    429, 431, 451, 500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 521, 522, 523, 524, 525, 526, 530, 599,
]


class Case:
    def __init__(self, name, make, was_processed=False, is_readable=False):
        self.name = name
        self.make = make
        self.was_processed = was_processed
        self.is_readable = is_readable


def constant(status, body, fields=JSON_TYPE, **more):
    whole = compose(status, fields, body if isinstance(body, bytes) else json.dumps(body).encode(), **more)
    return lambda answer: whole


def members(change, status=200, fields=JSON_TYPE):
    """The honest answer's members, changed."""

    def make(answer):
        document = json.loads(Answer(answer).body)
        changed = change(document)
        return compose(status, fields, json.dumps(document if changed is None else changed).encode())

    return make


def text(change, status=200, fields=JSON_TYPE, **more):
    """The honest answer's body as bytes, changed."""
    return lambda answer: compose(status, fields, change(Answer(answer).body), **more)


def setting(name, value):
    def change(document):
        document[name] = value

    return change


def without(name):
    return lambda document: {key: value for key, value in document.items() if key != name}


def broken_signature(document):
    token = document["id_token"]
    document["id_token"] = token[:-8] + ("AAAAAAAA" if token[-8:] != "AAAAAAAA" else "BBBBBBBB")


def unprocessed():
    """The provider did nothing: whatever was held is as good as before."""
    cases = []
    for status in STATUSES:
        cases.append(Case(f"{status}, empty", constant(status, b"", [])))
        cases.append(Case(f"{status}, a page", constant(status, HTML, [("Content-Type", "text/html")])))
    for code in OAUTH_ERRORS:
        cases.append(Case(f"400 {code}", constant(400, {"error": code, "error_description": "A fault."})))
        cases.append(Case(f"401 {code}", constant(401, {"error": code})))
    for status in [429, 500, 502, 503]:
        cases.append(Case(f"{status} that says invalid_grant", constant(status, {"error": "invalid_grant"})))
    for status in [301, 302, 303, 307, 308]:
        away = [("Location", "http://127.0.0.1:9/token"), *JSON_TYPE]
        cases.append(Case(f"{status}, away", constant(status, b"", away)))
    for value in ["0", "-1", "soon", "1.5", "Thu, 01 Jan 1970 00:00:00 GMT", ""]:
        cases.append(Case(f"503, Retry-After {value!r}", constant(503, b"", [("Retry-After", value)])))
    for error in [None, 7, "", [], ["invalid_grant"], {"code": "server_error"}, True, "a" * 5_000, "\u0000"]:
        shown = repr(error)[:24]
        cases.append(Case(f"400 with error {shown}", constant(400, {"error": error})))
    for name, body in [
        ("empty", b""), ("a page", HTML), ("null", b"null"), ("a number", b"7"), ("a string", b'"ok"'),
        ("a list", b"[]"),
        ("an empty object", b"{}"), ("half an object", b'{"access_token":"at-'), ("zeros", bytes(64)),
        ("no UTF-8", b'{"access_token":"\xff\xfe"}'), ("deep", b"[" * 100_000),
        ("a form", b"access_token=a&token_type=b"),
        ("error in 200", b'{"error":"temporarily_unavailable"}'), ("spaces", b" " * 4_096),
    ]:
        cases.append(Case(f"200, {name}", constant(200, body)))
    cases += [
        Case("no HTTP at all", lambda answer: b"SSH-2.0-OpenSSH_9.2\r\n"),
        Case("a head without end", lambda answer: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"),
        Case("HTTP/0.9", lambda answer: b'{"access_token":"a"}'),
        Case("a status line alone", lambda answer: b"HTTP/1.1 200 OK\r\n\r\n"),
        Case("two lengths", lambda answer: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}"),
        Case("a negative length", lambda answer: b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"),
        Case("chunks that are none", lambda answer: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
        Case("a field of 200 KB", lambda answer: b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n{}"),
        Case("a hundred times 100", lambda answer: b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        Case("nothing", lambda answer: b""),
    ]
    return cases


def readable():
    """The provider rotated, and the new refresh token is there to be read: it must not be thrown away."""
    changes = {
        "no access_token": without("access_token"), "no token_type": without("token_type"),
        "no expires_in": without("expires_in"), "no scope": without("scope"), "no id_token": without("id_token"),
    }
    odd = {
        "token_type": ["mac", 7, None, "", "bearer", "BEARER", []],
        "expires_in": ["3600", 3600.5, -1, 0, None, "soon", [], 10 ** 30, True, ""],
        "scope": [7, None, "", [], ["openid"], "openid something else"],
        "id_token": [None, 7, "", "a.b.c", "....", {}, "e30.e30.e30"],
        "access_token": [None, 7, "", [], {}, "with space", "\u00e9"],
        "not_known": [None, {"a": [1, {"b": None}]}, "x" * 100_000, [[]] * 100],
        "error": ["", None],
    }
    for name, values in odd.items():
        for value in values:
            changes[f"{name} {repr(value)[:24]}"] = setting(name, value)
    changes["id_token with a broken signature"] = broken_signature
    cases = [Case(name, members(change), True, True) for name, change in changes.items()]
    for kind in ["text/plain", "text/html", "application/octet-stream", "application/json; charset=utf-16", ""]:
        cases.append(Case(f"type {kind!r}", members(lambda _: None, fields=[("Content-Type", kind)]), True, True))
    for status in [201, 202, 203, 206]:
        cases.append(Case(f"{status} with everything", members(lambda _: None, status=status), True, True))
    cases += [
        Case("no type", members(lambda _: None, fields=[]), True, True),
        Case("space around", text(lambda body: b"\r\n\t " + body + b" \n\n"), True, True),
        Case("a length that is too long", text(lambda body: body, length=100_000), True, False),
        Case("no length", text(lambda body: body, length=False), True, True),
        Case("the refresh token alone", members(lambda all: {"refresh_token": all["refresh_token"]}), True, True),
    ]
    return cases


def unreadable():
    """The provider rotated, and nobody can tell what the new refresh token is, or whether this is an answer."""
    cases = [
        Case(f"{status} after it was done", constant(status, b"", []), True)
        for status in [400, 404, 408, 429, 500, 502, 503, 504]
    ]
    cases += [
        Case(f"refresh_token {repr(value)[:24]}", members(setting("refresh_token", value)), True)
        for value in [None, 7, "", [], {}, True, ["rt"], "a\nb", "\u00e9", "x" * 300_000]
    ]
    cases += [
        Case(f"{status} with everything", members(lambda _: None, status=status), True)
        for status in [204, 205, 299, 400, 401, 403, 500, 503]
    ]
    cases += [
        Case("a page after it was done", constant(200, HTML, [("Content-Type", "text/html")]), True),
        Case("empty after it was done", constant(200, b""), True),
        Case("no last brace", text(lambda body: body[:-1]), True),
        Case("a comma too many", text(lambda body: body[:-1] + b",}"), True),
        Case("something behind", text(lambda body: body + b"x"), True),
        Case("twice", text(lambda body: body + body), True),
        Case("a byte order mark", text(lambda body: b"\xef\xbb\xbf" + body), True),
        Case("UTF-16", text(lambda body: body.decode().encode("utf-16")), True),
        Case("a list around", text(lambda body: b"[" + body + b"]"), True),
        Case("an object around", text(lambda body: b'{"data":' + body + b"}"), True),
        Case("single quotes", text(lambda body: body.replace(b'"', b"'")), True),
        Case("refresh_token twice", text(lambda body: b'{"refresh_token":"rt-other",' + body[1:]), True),
        Case("access_token twice", text(lambda body: b'{"access_token":"at-other",' + body[1:]), True),
        Case("4 MB of padding", text(lambda body: body[:-1] + b',"padding":"' + b"a" * (4 << 20) + b'"}'), True),
        Case("deep nesting beside", text(lambda body: body[:-1] + b',"deep":' + DEEP + b"}"), True),
        Case("gzip unasked", text(gzip.compress, fields=[*JSON_TYPE, ("Content-Encoding", "gzip")]), True),
        Case("gzip that is none", text(lambda body: body, fields=[*JSON_TYPE, ("Content-Encoding", "gzip")]), True),
        Case("an error beside the tokens", members(setting("error", "server_error")), True),
    ]
    return cases


CASES = unprocessed() + readable() + unreadable()
