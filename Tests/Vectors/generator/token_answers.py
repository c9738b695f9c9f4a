"""Answers of token endpoints: what servers send, what proxies make of it, and what must survive (RFC 6749 5.1, 5.2)."""

import json
import zlib

import writing

JSON, FORM, PAGE = "application/json", "application/x-www-form-urlencoded", "text/html; charset=utf-8"
WILD = "providers in the wild"
PLAIN = {"access_token": "a1", "token_type": "Bearer"}


def body_of(value):
    return value if isinstance(value, (bytes, str)) else json.dumps(value, ensure_ascii=False)


def case(name, rule, about, expect, body, status=200, media=JSON, fields=(), **read):
    head = [
        ("about", about),
        ("rule", rule),
        ("status", status),
        ("field", f"Content-Type: {media}" if media else None),
        ("field", list(fields)),
        ("expect", expect),
    ]
    writing.case("token-answers", name, head + list(read.items()), body_of(body))


def tokens(name, rule, about, members, access="a1", media=JSON, status=200, **read):
    """An answer that is used; the members named in `read` are what is read."""
    case(
        f"tokens-{name}",
        rule,
        about,
        "tokens",
        dict(PLAIN, **members) if isinstance(members, dict) else members,
        status,
        media,
        access_token=access,
        **read,
    )


def unusable(name, rule, about, body, refresh="r2", **more):
    """An answer that is not used, but whose refresh token is kept."""
    case(f"kept-{name}", rule, about, "unusable", body, refresh_token=refresh, **more)


def invalid(name, rule, about, body, **more):
    case(f"invalid-{name}", rule, about, "invalid", body, **more)


def refused(name, rule, about, body, code, status, remedy, message=None, **more):
    # Only the remedy that ends a session is written.
    ending = remedy if remedy == "signInAgain" else None
    case(f"refused-{name}", rule, about, f"refused {code}", body, status, message=message, remedy=ending, **more)


def later(name, rule, about, body, status, retry_after=None, **more):
    case(f"later-{name}", rule, about, "unavailable", body, status, retry_after=retry_after, **more)


# Whole answers of providers.
JWT = "eyJhbGciOiJFUzI1NiJ9." + "e" * 2_000 + "." + "s" * 86
tokens(
    "google-first",
    WILD,
    "Google, the first time",
    {
        "access_token": "ya29.a0",
        "expires_in": 3599,
        "refresh_token": "1//09x",
        "scope": "openid https://www.googleapis.com/auth/userinfo.email",
        "id_token": "h.p.s",
        "refresh_token_expires_in": 604799,
    },
    "ya29.a0",
    expires_in=3599,
    refresh_token="1//09x",
    scope="openid https://www.googleapis.com/auth/userinfo.email",
    id_token="h.p.s",
    refresh_expires_in=604799,
)
tokens(
    "google-refresh",
    WILD,
    "Google, refreshed: no refresh token, the old one stays",
    {"access_token": "ya29.a1", "expires_in": 3599, "scope": "openid", "id_token": "h.p.s"},
    "ya29.a1",
    expires_in=3599,
    scope="openid",
    id_token="h.p.s",
)
tokens(
    "microsoft",
    WILD,
    "Microsoft: a second lifetime, a rotated token of its own alphabet",
    {
        "scope": "User.Read openid",
        "expires_in": 4031,
        "ext_expires_in": 4031,
        "access_token": "EwB4A8l6BAAU",
        "refresh_token": "M.C5_BAY.-CfT!*$",
    },
    "EwB4A8l6BAAU",
    expires_in=4031,
    scope="User.Read openid",
    refresh_token="M.C5_BAY.-CfT!*$",
)
tokens(
    "microsoft-v1",
    WILD,
    "Microsoft's first version: numbers in quotes",
    {"expires_in": "3599", "expires_on": "1800003599", "not_before": "1799999999", "resource": "https://graph.example"},
    expires_in=3599,
)
tokens(
    "github",
    WILD,
    "GitHub: no lifetime, scopes with commas",
    {"access_token": "gho_16C7e42F", "token_type": "bearer", "scope": "repo,gist"},
    "gho_16C7e42F",
    scope="repo,gist",
)
tokens(
    "github-no-scope",
    WILD,
    "GitHub: an empty scope",
    {"access_token": "gho_16C7e42F", "token_type": "bearer", "scope": ""},
    "gho_16C7e42F",
    scope="",
)
tokens(
    "gitlab",
    WILD,
    "GitLab: when it was made",
    {"expires_in": 7200, "refresh_token": "8257e65c", "created_at": 1800000000, "scope": "api openid"},
    expires_in=7200,
    refresh_token="8257e65c",
    scope="api openid",
)
tokens(
    "auth0",
    WILD,
    "Auth0: a day",
    {"expires_in": 86400, "refresh_token": "v1.MRjN", "scope": "openid offline_access", "id_token": "h.p.s"},
    expires_in=86400,
    refresh_token="v1.MRjN",
    scope="openid offline_access",
    id_token="h.p.s",
)
tokens(
    "okta",
    WILD,
    "Okta: an access token of two kilobytes",
    {"access_token": JWT, "expires_in": 3600, "scope": "openid"},
    JWT,
    expires_in=3600,
    scope="openid",
)
tokens(
    "apple",
    WILD,
    "Apple",
    {"expires_in": 3600, "refresh_token": "r4f.0.x", "id_token": "h.p.s"},
    expires_in=3600,
    refresh_token="r4f.0.x",
    id_token="h.p.s",
)
tokens(
    "facebook",
    WILD,
    "Facebook: sixty days, no refresh token",
    {"token_type": "bearer", "expires_in": 5183944},
    expires_in=5183944,
)
tokens(
    "salesforce",
    WILD,
    "Salesforce: no lifetime, a signature, addresses",
    {
        "instance_url": "https://x.example",
        "id": "https://x.example/id/1",
        "issued_at": "1800000000000",
        "signature": "x=",
        "refresh_token": "5Aep861",
    },
    refresh_token="5Aep861",
)
tokens(
    "paypal",
    WILD,
    "PayPal: a lifetime in quotes",
    {"expires_in": "32400", "app_id": "APP-1", "nonce": "2027", "scope": "openid"},
    expires_in=32400,
    scope="openid",
)
tokens(
    "twitch",
    WILD,
    "Twitch: scopes in a list",
    {"token_type": "bearer", "expires_in": 14124, "refresh_token": "5b93", "scope": ["user:read:email", "chat:read"]},
    expires_in=14124,
    refresh_token="5b93",
    scope="user:read:email chat:read",
)
tokens(
    "dropbox",
    WILD,
    "Dropbox: numbers in quotes that are names",
    {
        "token_type": "bearer",
        "expires_in": 14400,
        "uid": "12345",
        "account_id": "dbid:AAH",
        "scope": "account_info.read",
    },
    expires_in=14400,
    scope="account_info.read",
)
tokens(
    "supabase",
    WILD,
    "a person beside the tokens",
    {
        "token_type": "bearer",
        "expires_in": 3600,
        "expires_at": 1800003600,
        "refresh_token": "b4ukB",
        "user": {"id": "u1", "identities": []},
    },
    expires_in=3600,
    refresh_token="b4ukB",
)
tokens(
    "adfs",
    WILD,
    "AD FS: a resource, a life of the refresh token",
    {
        "token_type": "bearer",
        "expires_in": 3600,
        "resource": "urn:x",
        "refresh_token": "r1",
        "refresh_token_expires_in": 28800,
    },
    expires_in=3600,
    refresh_token="r1",
    refresh_expires_in=28800,
)
tokens(
    "slack",
    WILD,
    "Slack: ok beside the tokens",
    {"ok": True, "token_type": "Bearer", "expires_in": 43200, "refresh_token": "xoxe-1"},
    expires_in=43200,
    refresh_token="xoxe-1",
)
tokens("opaque", WILD, "a token of thirty bytes", {"access_token": "x" * 30}, "x" * 30)
tokens(
    "punctuation",
    "RFC 6749 appendix A.12",
    "every character that a token may have",
    {"access_token": "!#$%&'()*+,-./:;<=>?@[]^_`{|}~\"\\"},
    "!#$%&'()*+,-./:;<=>?@[]^_`{|}~\"\\",
)
tokens(
    "grace",
    WILD,
    "the same refresh token again, within its grace",
    {"refresh_token": "r1", "expires_in": 60},
    refresh_token="r1",
    expires_in=60,
)

# How it is written.
for name, about, text in [
    ("spaces", "on lines of its own", '\r\n{\n  "access_token" : "a1",\n  "token_type" : "Bearer"\n}\n'),
    ("escapes", "letters and slashes escaped", '{"access_tok\\u0065n":"\\u00611","token_type":"Bear\\u0065r"}'),
    ("order", "another order", '{"token_type":"Bearer","x":{},"access_token":"a1"}'),
    (
        "unknown",
        "members that nobody knows",
        '{"access_token":"a1","token_type":"Bearer","":1,"not-before-policy":0,"a":[{"b":null}]}',
    ),
    ("empty-error", "an empty error", '{"access_token":"a1","token_type":"Bearer","error":""}'),
    ("null-error", "a null error", '{"access_token":"a1","token_type":"Bearer","error":null}'),
    (
        "deep",
        "an unknown member nested twenty deep",
        '{"access_token":"a1","token_type":"Bearer","x":' + "[" * 20 + "]" * 20 + "}",
    ),
]:
    tokens(f"written-{name}", "RFC 8259", about, text)
for name, about, media in [
    ("none", "no content type", None),
    ("charset", "a character set", "application/json;charset=UTF-8"),
    ("capitals", "in capitals", "APPLICATION/JSON"),
    ("javascript", "as a script", "text/javascript"),
    ("page", "as a page", PAGE),
    ("problem", "as another kind of JSON", "application/vnd.api+json"),
    ("form", "as a form, though it is JSON", FORM),
]:
    tokens(f"media-{name}", WILD, f"JSON {about}", {}, media=media)
for status in (201, 202, 203):
    tokens(f"status-{status}", "own: every success", f"with status {status}", {}, status=status)
for name, kind in (("inverted", "bEARER"), ("title", "BeaRer"), ("capitals", "BEARER")):
    tokens(f"type-{name}", "FAPI-21, RFC 6749 section 5.1", f"the type as {kind}", {"token_type": kind})
for name, kind in (("null", None), ("empty", ""), ("space", "Bearer "), ("blank", " ")):
    tokens(f"type-{name}", WILD, f"the type {json.dumps(kind)}", {"token_type": kind})
tokens("type-absent", WILD, "no type", '{"access_token":"a1"}')

# Cosmetic members (RT-06, FAPI-20).
for name, about, value, seconds in [
    ("null", "null", None, None),
    ("empty", "empty", "", None),
    ("word", "a word", "never", None),
    ("true", "a truth value", True, None),
    ("list", "a list", [3600], None),
    ("object", "an object", {"s": 3600}, None),
    ("zero", "zero", 0, None),
    ("negative", "negative", -1, None),
    ("text", "in quotes", "3600", 3600),
    ("text-fraction", "a fraction in quotes", "3600.9", 3600),
    ("fraction", "a fraction", 3600.9, 3600),
    ("text-negative", "negative in quotes", "-5", None),
    ("text-space", "with a space", " 3600", None),
    ("year", "ten years", 315360000, 31536000),
    ("largest", "2^63 - 1", 2**63 - 1, 31536000),
    ("too-large", "2^64", 2**64, 31536000),
    ("smallest", "-2^63", -(2**63), None),
    ("text-hexadecimal", "hexadecimal in quotes", "0x10", None),
    ("text-infinite", "infinity in quotes", "Infinity", None),
    ("text-exponent", "an exponent in quotes", "1e3", 1000),
    ("milliseconds", "milliseconds", 3600000, 3600000),
]:
    tokens(
        f"lifetime-{name}",
        "RT-06",
        f"expires_in: {about}",
        {"expires_in": value, "refresh_token": "r2"},
        expires_in=seconds,
        refresh_token="r2",
    )
for name, text, seconds in [
    ("exponent", "3.6e3", 3600),
    ("infinite", "1e999", 31536000),
    ("infinite-negative", "-1e999", None),
    ("minus-zero", "-0", None),
]:
    tokens(
        f"lifetime-{name}",
        "RT-06",
        f"expires_in: {text}",
        '{"access_token":"a1","token_type":"Bearer","expires_in":%s}' % text,
        expires_in=seconds,
    )
for name, about, value, read in [
    ("null", "null", None, None),
    ("number", "a number", 7, None),
    ("true", "a truth value", True, None),
    ("object", "an object", {"openid": True}, None),
    ("spaces", "many spaces", " openid  email ", "openid email"),
    ("line-breaks", "line breaks", "openid\nemail\t", "openid email"),
    ("empty-list", "a list of none", [], ""),
    ("mixed-list", "a list with a number", ["openid", 1], "openid"),
    ("letters", "letters outside ASCII", "\u00f6penid", None),
    ("escape", "a terminal's escape", "a\u001b[2Jb", None),
    ("urls", "addresses", "https://mail.google.com/ openid", "https://mail.google.com/ openid"),
]:
    tokens(
        f"scope-{name}",
        WILD,
        f"scope: {about}",
        {"scope": value, "refresh_token": "r2"},
        scope=read,
        refresh_token="r2",
    )
for name, about, value in [
    ("null", "null", None),
    ("empty", "empty", ""),
    ("number", "a number", 7),
    ("list", "a list", ["r2"]),
    ("object", "an object", {"value": "r2"}),
    ("false", "false", False),
    ("line-break", "a line break inside", "r\n2"),
    ("letters", "letters outside ASCII", "r\u00e9"),
]:
    tokens(
        f"refresh-{name}",
        "RFC 6749 appendix A.17",
        f"refresh_token: {about}: the old one stays",
        {"refresh_token": value},
    )
tokens(
    "refresh-space",
    "RFC 6749 appendix A.17",
    "a space in the refresh token",
    {"refresh_token": "r 2"},
    refresh_token="r 2",
)
for name, about, value in [
    ("null", "null", None),
    ("empty", "empty", ""),
    ("number", "a number", 7),
    ("list", "a list", ["h.p.s"]),
]:
    tokens(
        f"id-{name}", "own: leniency where nothing is used", f"id_token: {about}: as good as none", {"id_token": value}
    )
for name, about, member, read in [
    ("zero", "zero: it does not expire", {"refresh_expires_in": 0}, None),
    ("text", "in quotes", {"refresh_expires_in": "1800"}, 1800),
    ("word", "a word", {"refresh_expires_in": "never"}, None),
    ("two", "two names", {"refresh_expires_in": 1800, "refresh_token_expires_in": 900}, 1800),
]:
    tokens(
        f"refresh-life-{name}",
        WILD,
        f"the refresh token's life: {about}",
        dict(member, refresh_token="r2"),
        refresh_token="r2",
        refresh_expires_in=read,
    )

# Forms (GitHub where nobody asks for JSON).
tokens(
    "form-github",
    WILD,
    "GitHub's form",
    "access_token=gho_16C7e42F&scope=repo%2Cgist&token_type=bearer",
    "gho_16C7e42F",
    FORM,
    scope="repo,gist",
)
tokens(
    "form-github-expiring",
    WILD,
    "GitHub's form with a refresh token",
    "access_token=ghu_1&expires_in=28800&refresh_token=ghr_1&refresh_token_expires_in=15897600&scope=&token_type=bearer",
    "ghu_1",
    FORM + "; charset=utf-8",
    expires_in=28800,
    refresh_token="ghr_1",
    refresh_expires_in=15897600,
    scope="",
)
tokens(
    "form-plus",
    WILD,
    "pluses are spaces",
    "access_token=a1&token_type=Bearer&scope=openid+email",
    media=FORM,
    scope="openid email",
)
tokens("form-line-break", WILD, "a line break after", "access_token=a1&token_type=Bearer\r\n", media=FORM)
unusable(
    "form-no-access",
    "own: the refresh token first",
    "a form without an access token",
    "refresh_token=r2&token_type=bearer",
    media=FORM,
)
unusable(
    "form-error",
    "own: the refresh token first",
    "a form with an error and a refresh token",
    "refresh_token=r2&error=server_error",
    media=FORM,
)
refused(
    "form-code",
    WILD,
    "GitHub's form with a dead code",
    "error=bad_verification_code&error_description=The+code+passed+is+incorrect+or+expired.&error_uri=https%3A%2F%2Fdocs.github.com",
    "bad_verification_code",
    200,
    "reportToProvider",
    "The code passed is incorrect or expired.",
    media=FORM,
)
refused(
    "form-dead",
    WILD,
    "GitHub's form with a dead refresh token",
    "error=bad_refresh_token&error_description=Expired",
    "invalid_grant",
    200,
    "signInAgain",
    "Expired",
    media=FORM,
)
refused(
    "form-grant",
    "RFC 6749 section 5.2",
    "a form with a dead grant",
    "error=invalid_grant",
    "invalid_grant",
    400,
    "signInAgain",
    media=FORM,
)
for name, about, text in [
    ("twice", "a name twice", "access_token=a1&access_token=a2&token_type=bearer"),
    ("refresh-twice", "the refresh token twice", "access_token=a1&token_type=bearer&refresh_token=r2&refresh_token=r3"),
    ("escape", "a bad escape", "access_token=a%zz&token_type=bearer"),
    ("empty", "nothing", ""),
    ("no-token", "other names", "hello=world"),
    ("page", "a page", "<html></html>"),
    ("raw", "bytes that are not escaped", "access_token=\u00e9&token_type=bearer"),
    ("line-break", "a line break in the token", "access_token=a%0A1&token_type=bearer"),
]:
    expect = "unusable" if name in ("no-token", "page", "line-break") else "invalid"
    case(f"invalid-form-{name}", "own: forms as strict as JSON", f"a form with {about}", expect, text, media=FORM)
tokens("form-no-type", WILD, "a form with no type", "access_token=a1", media=FORM)

# In another encoding or under another name, but whole.
WHOLE = '{"access_token":"a1","token_type":"Bearer","refresh_token":"r2"}'
OTHER = "own: a body that can be read in one way only is read"
for name, about, body in [
    ("mark", "UTF-8 with a byte order mark", b"\xef\xbb\xbf" + WHOLE.encode()),
    ("utf-16-le", "UTF-16 without a mark, the low byte first", WHOLE.encode("utf-16-le")),
    ("utf-16-be", "UTF-16 without a mark, the high byte first", WHOLE.encode("utf-16-be")),
    ("utf-16-le-mark", "UTF-16 with a mark, the low byte first", b"\xff\xfe" + WHOLE.encode("utf-16-le")),
    ("utf-16-be-mark", "UTF-16 with a mark, the high byte first", b"\xfe\xff" + WHOLE.encode("utf-16-be")),
]:
    tokens(f"encoded-{name}", OTHER, about, body, refresh_token="r2")
AS_FORM = "access_token=a1&token_type=bearer&refresh_token=r2"
for name, media in (("json", JSON), ("page", PAGE), ("text", "text/plain"), ("none", None)):
    tokens(f"form-named-{name}", OTHER, f"a form named {media}", AS_FORM + "\n", media=media, refresh_token="r2")
refused(
    "form-named-json", OTHER, "a form named JSON", "error=invalid_grant", "invalid_grant", 400, "signInAgain", media=JSON
)

# Whole, and not to be used: the refresh token stays.
for name, about, members in [
    ("no-access", "no access token", {"access_token": None}),
    ("access-number", "a number as access token", {"access_token": 7}),
    ("access-space", "a space in the access token", {"access_token": "a 1"}),
    ("access-line", "a line break in the access token", {"access_token": "a\r\nX: y"}),
    ("access-letters", "letters outside ASCII in the access token", {"access_token": "\u00e9"}),
    ("access-empty", "an empty access token", {"access_token": ""}),
    ("type-mac", "the type mac (NAT-45)", {"token_type": "mac"}),
    ("type-dpop", "a token bound to a key (DPOP-09)", {"token_type": "DPoP"}),
    ("type-none", "the type N_A (TX-02)", {"token_type": "N_A"}),
    ("type-list", "the type in a list", {"token_type": ["Bearer"]}),
    ("id-space", "an ID token with a space", {"id_token": "h.p.s x"}),
    ("error", "an error beside", {"error": "invalid_grant"}),
    ("error-object", "an error object beside", {"error": {"code": 500}}),
    ("error-number", "a number as error beside", {"error": 7}),
]:
    unusable(name, "own: the refresh token first", about, dict(PLAIN, refresh_token="r2", **members))

# Broken after the refresh token: a salvage.
START = '{"access_token":"a1","refresh_token":"r2"'
SALVAGE = "own: a rotated token that certainly arrived is kept"
for name, about, text in [
    ("at-quote", "cut off right after the token", START),
    ("at-space", "cut off a space later", START + " "),
    ("at-comma", "cut off after the comma", START + ","),
    ("in-name", "cut off in the next name", START + ',"token_ty'),
    ("at-colon", "cut off after the next name", START + ',"token_type":'),
    ("in-value", "cut off in the next value", START + ',"token_type":"Bea'),
    ("in-number", "cut off in a number", START + ',"expires_in":36'),
    ("in-list", "cut off in a list", START + ',"scope":["openid",'),
    ("in-object", "cut off in an object", START + ',"user":{"id":"u1","x":[1,2'),
    ("in-escape", "cut off in an escape", START + ',"name":"a\\u00'),
    ("at-backslash", "cut off after a backslash", START + ',"name":"a\\'),
    ("no-brace", "the last brace missing", START + ',"token_type":"Bearer"'),
    ("text-after", "text after it", START + ',"token_type":"Bearer"}debug: 12 ms'),
    ("page-after", "a page after it", START + ',"token_type":"Bearer"}<html><body>502</body></html>'),
    ("two", "another object after it", START + ',"token_type":"Bearer"}{"x":1}'),
    ("brace-after", "a brace too many", START + ',"token_type":"Bearer"}}'),
    ("nul-after", "a NUL after it", START + ',"token_type":"Bearer"}\0'),
    ("comma-after", "a comma too many", START + ',"token_type":"Bearer",}'),
    ("no-comma", "a comma missing later", START + ',"token_type":"Bearer" "x":1}'),
    ("single-quotes", "single quotes later", START + ",'token_type':'Bearer'}"),
    ("comment", "a comment later", START + ', /* x */ "token_type":"Bearer"}'),
    ("nan", "NaN later", START + ',"x":NaN,"token_type":"Bearer"}'),
    ("nan-before", "NaN before", '{"x":NaN,' + START[1:] + "}"),
    ("leading-zero", "a number with a leading zero", START + ',"expires_in":03600}'),
    ("twice-access", "the access token twice", '{"access_token":"a0",' + START[1:] + ',"token_type":"Bearer"}'),
    ("twice-after", "the type twice", START + ',"token_type":"Bearer","token_type":"mac"}'),
    ("nested-twice", "a name twice deep inside", START + ',"user":{"a":1,"a":2},"token_type":"Bearer"}'),
    ("deep", "nested forty deep", START + ',"x":' + "[" * 40 + "]" * 40 + "}"),
    ("control", "a line break in a text before", '{"note":"a\nb",' + START[1:] + "}"),
    ("surrogate", "half a surrogate pair later", START + ',"name":"\\ud800"}'),
    ("bad-escape", "an escape that JSON does not have", START + ',"name":"\\x41"}'),
    ("mark", "a byte order mark before, cut off", "\ufeff" + START + ',"token_ty'),
    ("utf-16", "UTF-16, cut off in a letter", (START + ',"token_ty').encode("utf-16-le") + b"p"),
    ("guard", "a guard before it", ")]}',\n" + START + "}"),
    ("padding", "a call around it", "/**/callback(" + START + "});\n"),
    ("loop", "a loop before it", "for(;;);" + START + "}"),
    ("warning", "a warning before it", "<br />\n<b>Warning</b>: {closure}() in <b>/a.php</b><br />\n" + START + "}"),
    ("twice-alike", "twice, alike", '{"refresh_token":"r2","refresh_token":"r2"}'),
    ("single-quotes-all", "single quotes", "{'access_token': 'a1', 'refresh_token': 'r2', 'ok': True}"),
    ("comments", "comments before", '{ // one\n "access_token":"a1", /* two */ "refresh_token":"r2"}'),
    ("nested-data", "in the member data", '{"success":true,"data":' + START + "}}"),
    ("nested-user", "in a member with a name", '{"ok":true,"authed_user":' + START + '},"team":{"id":"T"},"enterprise":null}'),
    ("nested-list", "in a list", "[" + START + "}]"),
    ("nested-text", "encoded twice", json.dumps(START + "}")),
    ("nested-body", "in a text in a member", json.dumps({"statusCode": 200, "body": START + "}"})),
    ("nested-guard", "in a member, with a guard before", ")]}'\n" + '{"data":' + START + "}}"),
    ("encoding", "bytes that are not UTF-8 later", START.encode() + b',"name":"\xff"}'),
    ("encoding-before", "bytes that are not UTF-8 before", b'{"name":"\xff",' + START[1:].encode() + b"}"),
    ("word", "a word without quotes later", START + ',"token_type":Bearer}'),
    ("spaces", "spaces all over", '\n { "access_token" : "a1" ,\t"refresh_token" : "r2" , "x'),
    ("escaped", "the name and the token escaped", '{"refresh\\u005ftoken":"\\u00722","x'),
    ("first", "the refresh token first", '{"refresh_token":"r2","access_token":"a'),
    ("nested-before", "another one deep inside before", '{"data":{"refresh_token":"r0"},"refresh_token":"r2","x'),
    ("backslash-name", "another name after it", START + ',x,"refresh\\\\u005ftoken":"r3"}'),
    ("quotes-before", "braces and quotes in a text before", '{"note":"}{\\"]","refresh_token":"r2","x'),
]:
    unusable(f"broken-{name}", SALVAGE, about, text)
unusable("broken-slash", SALVAGE, "a slash escaped in the token", '{"refresh_token":"1\\/\\/09x","x', "1//09x")
unusable("broken-quote", SALVAGE, "a quotation mark escaped in the token", '{"refresh_token":"r\\"2","x', 'r"2')
unusable("broken-page-type", SALVAGE, "named a page", START + ',"x', media=PAGE)

for name, about, text in [
    ("two", "deep inside, two", '{"a":' + START + '},"b":' + START + "}}"),
    ("deeper", "two levels deep", '{"data":{"token":' + START + "}}}"),
    ("beside", "deep inside, beside an access token", '{"access_token":"a0","token_type":"mac","data":' + START + "}}"),
]:
    unusable(f"nested-{name}", "own: a salvaged token is whole, outermost and alone", about, text, refresh=None)

# Broken so that nothing is certain.
UNSURE = "own: a salvaged token is whole, outermost and alone"
for name, about, text in [
    ("in-token", "cut off in the token", '{"access_token":"a1","refresh_token":"r2'),
    ("at-token-escape", "cut off after an escaped quotation mark", '{"refresh_token":"r2\\"'),
    ("at-token-backslash", "cut off after a backslash", '{"refresh_token":"r2\\'),
    ("at-name", "cut off after the name", '{"access_token":"a1","refresh_token"'),
    ("at-colon", "cut off after the colon", '{"refresh_token":'),
    ("number", "a number, cut off", '{"refresh_token":7,"x'),
    ("null", "null, cut off", '{"refresh_token":null,"x'),
    ("list", "a list, cut off", '{"refresh_token":["r2"],"x'),
    ("object", "an object, cut off", '{"refresh_token":{"value":"r2"},"x'),
    ("empty", "empty, cut off", '{"refresh_token":"","x'),
    ("letters", "letters outside ASCII, cut off", '{"refresh_token":"r\u00e9","x'),
    ("line-break", "a line break inside, cut off", '{"refresh_token":"r\n2","x'),
    ("bad-escape", "a bad escape inside, cut off", '{"refresh_token":"r\\x2","x'),
    ("text-follows", "a word right after it", '{"refresh_token":"r2"x,"y":1}'),
    ("quote-inside", "a quotation mark that is not escaped", '{"refresh_token":"r"2","x":1}'),
    ("bracket-follows", "a bracket after it", '{"refresh_token":"r2"]'),
    ("colon-follows", "a colon after it", '{"refresh_token":"r2":1}'),
    ("twice", "twice", '{"refresh_token":"r2","refresh_token":"r3"}'),
    ("twice-null", "twice, once null", '{"refresh_token":"r2","refresh_token":null}'),
    ("twice-escaped", "twice, once escaped", '{"refresh_token":"r2","refresh\\u005ftoken":"r3"}'),
    ("twice-cut", "twice, cut off in the second", '{"refresh_token":"r2","refresh_token":"r'),
    ("twice-unread", "again in what cannot be read", '{"refresh_token":"r2",x,"refresh_token":"r3"}'),
    ("twice-unread-escaped", "again, escaped, in what cannot be read", '{"refresh_token":"r2",x,"refresh\\u005ftoken":"r3"}'),
    (
        "twice-unread-letters",
        "again, every letter escaped, in what cannot be read",
        '{"refresh_token":"r2",x,"' + "".join(f"\\u{ord(letter):04X}" for letter in "refresh_token") + '":"r3"}',
    ),
    ("twice-cut-escaped", "twice, cut off in the second, escaped", '{"refresh_token":"r2","refresh\\u005Ftoken":"r'),
    ("twice-after", "again after the object", '{"refresh_token":"r2","x":1}{"refresh_token":"r3"}'),
    ("before", "broken before it", '{"access_token":"a"1","refresh_token":"r2"}'),
    ("before-cut", "a text before it that does not end", '{"access_token":"a1,"refresh_token":"r2"}'),
    ("nested", "deep inside alone", '{"data":{"refresh_token":"r2"},"x'),
    ("nested-last", "deep inside alone, cut off after it", '{"data":' + START + "}"),
    ("nested-error", "deep inside, beside an error", '{"error":7,"data":' + START + "}}"),
    ("nested-guard", "deep inside, with a guard before, cut off", ")]}'\n" + '{"data":' + START + "}"),
    ("list-cut", "in a list, cut off", "[" + START + "}"),
    ("comment", "again in a comment", '{"refresh_token":"r2"/*,"refresh_token":"r3"*/}'),
    ("single-quotes-twice", "again in single quotes", "{\"refresh_token\":\"r2\",x,'refresh_token':'r3'}"),
    ("named-before", "named in a text before", '"refresh_token": {"refresh_token":"r2"}'),
    ("in-list", "an object in a list", '[{"refresh_token":"r2"},'),
    ("as-value", "the name as a value", '{"grant_type":"refresh_token","x'),
    ("in-text", "inside a text", '{"note":"\\"refresh_token\\":\\"r2\\"","x'),
    ("case", "another name", '{"Refresh_Token":"r2","x'),
    ("single-quotes", "single quotes, an escape", "{'refresh_token':'r\\'2','x"),
    ("no-brace", "no brace before", '"refresh_token":"r2"}'),
    ("page", "in a page", '<html><script>x={"refresh_token":"r2"}</script></html>'),
]:
    invalid(f"broken-{name}", UNSURE, about, text)
for status in (400, 403, 429, 500, 502):
    unusable(f"status-{status}", "own: a token set is one with every status", f"with status {status}", START + "}", status=status)
unusable("status-400-form", "own: a token set is one with every status", "a form with status 400", AS_FORM, status=400)
for name, about, body in [
    ("echo", "the parameters of the request", '{"grant_type":"refresh_token","refresh_token":"r1"}'),
    ("error-number", "an error beside", '{"error":7,' + START[1:] + "}"),
    ("nested", "deep inside", '{"data":' + START + "}}"),
]:
    invalid(f"status-400-{name}", "own: a token set is one with every status", f"status 400: {about}", body, status=400)
invalid("broken-status-400", "RT-03", "broken, with a status that is no success", START + ',"x', status=400)
later("broken-status-502", "RT-03", "broken, by way of a proxy", START + ',"x', 502)

# Refusals.
for code, remedy in [
    ("invalid_request", "reportToProvider"),
    ("invalid_client", "fixConfiguration"),
    ("invalid_grant", "signInAgain"),
    ("unauthorized_client", "fixConfiguration"),
    ("unsupported_grant_type", "fixConfiguration"),
    ("invalid_scope", "fixConfiguration"),
    ("invalid_target", "reportToProvider"),
    ("access_denied", "reportToProvider"),
    ("expired_token", "reportToProvider"),
    ("authorization_pending", "reportToProvider"),
    ("invalid_dpop_proof", "reportToProvider"),
    ("use_dpop_nonce", "reportToProvider"),
    ("interaction_required", "reportToProvider"),
    ("consent_required", "reportToProvider"),
    ("invalid_token", "reportToProvider"),
]:
    refused(
        code.replace("_", "-"),
        "RFC 6749 section 5.2 and its registry",
        "a refusal",
        {"error": code, "error_description": "No."},
        code,
        400,
        remedy,
        "No.",
    )
for status in (200, 201, 400, 401, 403, 404, 405, 410, 422):
    refused(
        f"invalid-grant-{status}",
        "RT-03",
        f"a dead grant, said with {status}: "
        + ("believed" if status in (200, 400, 401, 403) else "not how a token endpoint says it"),
        {"error": "invalid_grant"},
        "invalid_grant",
        status,
        "signInAgain" if status in (200, 400, 401, 403) else "reportToProvider",
    )
for name, about, body, code, remedy in [
    (
        "github-dead",
        "GitHub: a dead refresh token, in the standard's word",
        {
            "error": "bad_refresh_token",
            "error_description": "The refresh token passed is incorrect or expired.",
            "error_uri": "https://docs.github.com",
        },
        "invalid_grant",
        "signInAgain",
    ),
    (
        "github-client",
        "GitHub: a wrong client",
        {
            "error": "incorrect_client_credentials",
            "error_description": "The client_id and/or client_secret passed are incorrect.",
        },
        "incorrect_client_credentials",
        "fixConfiguration",
    ),
    (
        "github-redirect",
        "GitHub: another redirect URI",
        {"error": "redirect_uri_mismatch", "error_description": "The redirect_uri MUST match."},
        "redirect_uri_mismatch",
        "fixConfiguration",
    ),
    (
        "github-email",
        "GitHub: no address",
        {"error": "unverified_user_email", "error_description": "The user must have a verified primary email."},
        "unverified_user_email",
        "reportToProvider",
    ),
]:
    refused(name, WILD, about, body, code, 200, remedy, body["error_description"])
for name, about, error, code, message in [
    ("code", "a code", {"code": "invalid_grant", "message": "Expired"}, "invalid_grant", "Expired"),
    ("type", "a type", {"type": "OAuthException", "message": "Bad"}, "OAuthException", "Bad"),
    ("status", "a status beside a number", {"code": 400, "status": "INVALID_ARGUMENT"}, "INVALID_ARGUMENT", None),
    ("number", "a number alone", {"code": 190}, "190", None),
    ("empty", "nothing", {}, "unspecified_error", None),
    ("empty-code", "an empty code", {"code": "", "type": "x"}, "x", None),
    ("deeper", "an object in place of the code", {"code": {"x": 1}}, "unspecified_error", None),
]:
    refused(
        f"nested-{name}",
        WILD,
        f"an error object with {about}",
        {"error": error},
        code,
        400,
        "signInAgain" if code == "invalid_grant" else "reportToProvider",
        message,
    )
for name, about, body, code, message in [
    ("no-description", "no description", {"error": "x"}, "x", None),
    ("number-description", "a number as description", {"error": "x", "error_description": 7}, "x", None),
    (
        "letters",
        "a description of letters outside ASCII (NAT-47)",
        {"error": "x", "error_description": "\u043d\u0435\u0442"},
        "x",
        "\u043d\u0435\u0442",
    ),
    ("escape", "a terminal's escape (NAT-47)", {"error": "x", "error_description": "\u001b[2J\n"}, "x", "[2J"),
    ("long", "an error of a hundred characters", {"error": "e" * 100}, "e" * 64, None),
    ("spaces", "words for an error", {"error": "Invalid Credentials"}, "Invalid Credentials", None),
    (
        "tokens",
        "an access token beside it, which is not used",
        {"error": "x", "access_token": "a1", "token_type": "Bearer"},
        "x",
        None,
    ),
]:
    refused(f"words-{name}", "RFC 6749 section 5.2", about, body, code, 400, "reportToProvider", message)
invalid(
    "refused-rotation",
    "RT-03",
    "a refresh token with a status that is no success, and no error",
    {"refresh_token": "r2"},
    status=400,
)
for name, about, error in [
    ("number", "a number", 400),
    ("list", "a list", ["invalid_grant"]),
    ("true", "a truth value", True),
]:
    invalid(f"error-{name}", "own: an error is text", f"{about} as error", {"error": error}, status=400)

# Not the token endpoint's word.
for name, about, status, body, media in [
    ("page-200", "a page of a captive portal", 200, "<!DOCTYPE html><title>Sign in to the network</title>", PAGE),
    ("page-400", "a page with 400", 400, "<html>invalid_grant</html>", PAGE),
    ("page-403", "a firewall's page", 403, "<html>Blocked</html>", PAGE),
    ("page-404", "a page that is not there", 404, "<html>Not found</html>", PAGE),
    ("empty-204", "nothing, with 204", 204, "", None),
    ("empty-401", "nothing, with 401", 401, "", None),
    ("empty-403", "nothing, with 403", 403, "", JSON),
    ("spaces", "spaces alone", 200, "  \n ", JSON),
    ("null", "null", 200, "null", JSON),
    ("number", "a number", 200, "7", JSON),
    ("true", "a truth value", 200, "true", JSON),
    ("quoted", "JSON in quotes", 200, '"{\\"access_token\\":\\"a1\\"}"', JSON),
    ("xml", "XML", 200, "<OAuth><access_token>a1</access_token></OAuth>", "application/xml"),
    ("compressed", "compressed bytes", 200, zlib.compress(b"x" * 40), JSON),
    ("object-400", "an object without an error", 400, {"message": "Bad Request"}, JSON),
    ("object-401", "an object without an error", 401, {"errorCode": "E0000011", "errorSummary": "Invalid token"}, JSON),
    ("teapot", "a status of its own", 418, {}, JSON),
    ("zero", "no status that there is", 199, PLAIN, JSON),
]:
    invalid(name, "RT-03, providers in the wild", about, body, status=status, media=media)
for status in (300, 301, 302, 303, 307, 308):
    invalid(
        f"redirect-{status}",
        "DPOP-14, MD-04",
        "a redirect, whatever it carries",
        dict(PLAIN, refresh_token="r2"),
        status=status,
        fields=["Location: https://evil.example/token"],
    )
for status in (408, 425, 429, 500, 501, 502, 503, 504, 520, 599):
    later(
        f"status-{status}",
        "RT-03",
        "a status that means later, with a word that would mean never",
        {"error": "invalid_grant"},
        status,
    )
for name, about, value, seconds in [("seconds", "seconds", "7", 7), ("zero", "at once", "0", 0)]:
    later(
        f"retry-{name}",
        "RFC 9110 section 10.2.3",
        f"when to come back: {about}",
        "",
        503,
        seconds,
        fields=[f"Retry-After: {value}"],
    )
for code in ("temporarily_unavailable", "server_error", "slow_down"):
    later(
        f"word-{code.replace('_', '-')}",
        "RFC 6749 section 4.1.2.1",
        "the provider's own word for later",
        {"error": code},
        400,
    )
