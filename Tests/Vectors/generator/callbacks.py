"""Callback URLs and form_post bodies: what browsers, providers and strangers deliver (RFC 6749 4.1.2, RFC 9207)."""

from urllib.parse import quote

import writing

STATE = "Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OTAxMjM0NTY3ODk"
PLACE = "http://127.0.0.1:8400/callback/work"
ISSUER = "https://id.example.org"
GOOD = f"code=c1&state={STATE}"


def case(name, rule, about, expect, content, state=None, issuer=None, message=None, arrives="url", check=None):
    """`check` is the issuer expected, whether it is advertised, and whether the callback passes."""
    expected, advertised, passes = check or (None, None, None)
    writing.case(
        "callbacks",
        name,
        [
            ("about", about),
            ("rule", rule),
            ("arrives", arrives),
            ("expect", expect),
            ("state", state),
            ("issuer", issuer),
            ("message", message),
            ("issuer_expected", expected),
            ("issuer_advertised", advertised),
            ("issuer_check", passes),
        ],
        content,
    )


def code(name, rule, about, query, value="c1", state=STATE, place=PLACE, **more):
    case(f"code-{name}", rule, about, f"code {value}", f"{place}?{query}", state, **more)


def refusal(name, rule, about, query, error, message=None, **more):
    case(
        f"refusal-{name}",
        rule,
        about,
        f"refusal {error}",
        f"{PLACE}?{query}&state={STATE}",
        STATE,
        message=message,
        **more,
    )


def failure(name, rule, about, why, query, place=PLACE + "?"):
    case(f"failure-{name}", rule, about, f"failure {why}", place + query)


# Codes as providers write them.
WILD = "providers in the wild"
for name, about, value in [
    ("google-slash", "Google: a slash", "4/0AbUR2VMeHxU"),
    ("microsoft", "Microsoft: dots, bars and stars", "0.AXoA_8-f|M.C5*x!y$"),
    ("github", "GitHub: hexadecimal", "6b3f1c0a9d8e7f605142"),
    ("keycloak-parts", "Keycloak: three parts with dots", "0f5e.1a2b.3c4d"),
    ("apple", "Apple: dots and digits", "c5d1e0.0.rrwst.Yh-_x"),
    ("one-letter", "one letter", "c"),
    ("equals", "padding at the end", "YWJj=="),
    ("punctuation", "every character that may be there", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    ("space", "a space inside", "c 1"),
    ("looks-escaped", "an escape that is no escape", "%41"),
    ("long", "two thousand bytes", "c" * 2_000),
    ("longest", "8192 bytes", "c" * 8_192),
]:
    code(name, f"{WILD}, RFC 6749 appendix A.11", about, f"code={quote(value, safe='')}&state={STATE}", value)
for name, about, query in [
    ("state-first", "the state first", f"state={STATE}&code=c1"),
    (
        "google-scope",
        "Google's further parameters",
        f"{GOOD}&scope=email+openid+https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fuserinfo.email&authuser=0&hd=example.org&prompt=consent",
    ),
    ("keycloak-session", "Keycloak's session_state", f"{GOOD}&session_state=0f5e1a2b"),
    ("microsoft-info", "Microsoft's client_info", f"{GOOD}&client_info=eyJ1aWQiOiIxIn0&session_state=0f5e"),
    ("ampersand-after", "an ampersand after", f"{GOOD}&"),
    ("ampersand-before", "an ampersand before", f"&{GOOD}"),
    ("ampersands", "two ampersands in a row", GOOD.replace("&", "&&")),
    ("no-equals", "a parameter without a value", f"{GOOD}&flag"),
    ("empty-name", "a parameter without a name", f"{GOOD}&=x"),
    ("empty-unknown", "an empty parameter", f"{GOOD}&x="),
    ("unknown-twice", "an unknown parameter twice", f"{GOOD}&x=1&x=2"),
    ("empty-error-uri", "an empty error_uri", f"{GOOD}&error_uri="),
    ("description-alone", "a description without an error", f"{GOOD}&error_description=none"),
    ("name-case", "another parameter, CODE", f"{GOOD}&CODE=c2"),
    ("name-list", "another parameter, code[]", f"{GOOD}&code%5B%5D=c2"),
    ("token-type", "a token_type, which is no token", f"{GOOD}&token_type=bearer"),
    ("expires-in", "an expires_in, which is no token", f"{GOOD}&expires_in=3600"),
    ("letters", "an unknown parameter of letters outside ASCII", f"{GOOD}&name=%D0%90%D0%BD%D0%BD%D0%B0"),
    ("hundred", "a hundred parameters", GOOD + "".join(f"&p{n}={n}" for n in range(98))),
]:
    code(name, WILD, about, query)
for name, about, query, value in [
    ("name-escaped", "the names escaped", f"%63ode=c1&st%61te={STATE}", "c1"),
    ("small-hex", "hexadecimal in small letters", f"code=a%2fb&state={STATE}", "a/b"),
    ("question", "a question mark inside", f"code=c1?x&state={STATE}", "c1?x"),
    ("equals-raw", "equals signs as they are", f"code=a=b==&state={STATE}", "a=b=="),
    ("raw", "characters that need no escape", f"code=a/b:c@d!e$f'(g)*h,i;j~k&state={STATE}", "a/b:c@d!e$f'(g)*h,i;j~k"),
    ("double-escaped", "an escape escaped", f"code=a%252Fb&state={STATE}", "a%2Fb"),
    ("plus", "a plus is a space", f"code=a+b&state={STATE}", "a b"),
]:
    code(name, "RFC 6749 appendix B", about, query, value)
for name, about, sent, state in [
    ("state-dot", "a state with a dot and a tilde", "a.b~c", "a.b~c"),
    ("state-escaped", "a state with escapes", "a%2Bb%2Fc%3D", "a+b/c="),
    ("state-plus", "a plus in the state is a space", "a+b", "a b"),
    ("state-long", "a state of a thousand bytes", "s" * 1_000, "s" * 1_000),
    ("state-case", "a state's letter case stays", "AbC", "AbC"),
    ("state-letters", "a state of letters outside ASCII", "%C3%A9", "\u00e9"),
]:
    code(name, "RFC 6749 appendix B, NAT-16", about, f"code=c1&state={sent}", state=state)
for name, about, place in [
    ("ipv6", "over IPv6", "http://[::1]:8400/callback/work"),
    ("localhost", "at localhost", "http://localhost:8400/"),
    ("no-path", "without a path", "http://127.0.0.1:8400"),
    ("no-port", "without a port", "http://127.0.0.1/callback"),
    ("https", "over https", "https://app.example.org/callback"),
    ("scheme-one-slash", "a scheme with one slash (NAT-04)", "org.example.app:/callback"),
    ("scheme-no-slash", "a scheme without a slash", "org.example.app:callback"),
    ("scheme-three-slashes", "a scheme with an empty host", "org.example.app:///callback"),
    ("scheme-case", "a scheme in capitals", "ORG.EXAMPLE.APP:/callback"),
    ("path-escaped", "a path with escapes", "http://127.0.0.1:8400/callback/%77ork"),
]:
    code(f"at-{name}", "RFC 8252 section 7", about, GOOD, place=place)
for name, about, fragment in [
    ("empty", "an empty fragment", ""),
    ("plain", "a fragment", "top"),
    ("state", "another state in the fragment", "state=other"),
    ("code", "another code in the fragment", "code=c2"),
    ("question", "a question mark in the fragment", "?x=1"),
]:
    code(f"fragment-{name}", "RFC 6749 section 4.1.2: the query alone counts", about, f"{GOOD}#{fragment}")

# RFC 9207: the issuer of the answer.
for name, rule, about, given, expected, advertised, passes in [
    ("same", "NAT-20", "the issuer", ISSUER, ISSUER, "yes", "passes"),
    ("same-unadvertised", "NAT-22", "the issuer, not advertised", ISSUER, ISSUER, "no", "passes"),
    ("absent", "NAT-21", "none, though advertised", None, ISSUER, "yes", "fails"),
    ("absent-unadvertised", "NAT-21", "none, and none advertised", None, ISSUER, "no", "passes"),
    ("slash", "NAT-20", "a slash at the end", ISSUER + "/", ISSUER, "yes", "fails"),
    ("case", "NAT-20", "another letter case", "https://ID.example.org", ISSUER, "yes", "fails"),
    ("port", "NAT-20", "the scheme's own port", ISSUER + ":443", ISSUER, "yes", "fails"),
    ("http", "NAT-20", "without TLS", "http://id.example.org", ISSUER, "yes", "fails"),
    ("evil", "NAT-19", "another provider", "https://evil.example", ISSUER, "no", "fails"),
    ("longer", "NAT-20", "the issuer and more", ISSUER + ".evil.example", ISSUER, "yes", "fails"),
    ("space", "NAT-20", "a space after", ISSUER + " ", ISSUER, "yes", "fails"),
    ("empty", "NAT-20", "empty", "", ISSUER, "no", "fails"),
    ("unknown", "own: nothing to compare with", "for a provider without an issuer", ISSUER, None, "no", "passes"),
    (
        "template",
        "own: a templated issuer",
        "a directory's issuer for a template",
        "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0",
        "https://login.microsoftonline.com/{tenantid}/v2.0",
        "no",
        "passes",
    ),
    (
        "template-other",
        "own: a templated issuer",
        "another host for a template",
        "https://sts.example/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0",
        "https://login.microsoftonline.com/{tenantid}/v2.0",
        "no",
        "fails",
    ),
    (
        "template-itself",
        "own: a templated issuer",
        "the template itself",
        "https://login.microsoftonline.com/{tenantid}/v2.0",
        "https://login.microsoftonline.com/{tenantid}/v2.0",
        "no",
        "fails",
    ),
]:
    query = GOOD + ("" if given is None else f"&iss={quote(given, safe='')}")
    code(
        f"issuer-{name}",
        f"RFC 9207 section 2.4, {rule}",
        about,
        query,
        issuer=given,
        check=(expected, advertised, passes),
    )
code(
    "issuer-double-escaped",
    "RFC 9207 section 2.4, NAT-20",
    "escaped twice",
    f"{GOOD}&iss=https%253A%252F%252Fid.example.org",
    issuer="https%3A%2F%2Fid.example.org",
    check=(ISSUER, "yes", "fails"),
)
code(
    "issuer-raw",
    "RFC 9207 section 2.4, NAT-20",
    "not escaped at all",
    f"{GOOD}&iss={ISSUER}",
    issuer=ISSUER,
    check=(ISSUER, "yes", "passes"),
)
for name, rule, given, passes, about in [
    ("same", "NAT-20", ISSUER, "passes", "an error's issuer counts like a code's"),
    ("evil", "NAT-23", "https://evil.example", "fails", "an error's issuer counts like a code's"),
    ("absent", "NAT-21", None, "passes", "some servers leave the issuer out of errors alone"),
]:
    refusal(
        f"issuer-{name}",
        f"RFC 9207 section 2, {rule}",
        about,
        "error=access_denied" + ("" if given is None else f"&iss={quote(given, safe='')}"),
        "access_denied",
        issuer=given,
        check=(ISSUER, "yes", passes),
    )

# Errors.
for error, rule in [
    ("invalid_request", "RFC 6749 section 4.1.2.1"),
    ("unauthorized_client", "RFC 6749 section 4.1.2.1"),
    ("unsupported_response_type", "RFC 6749 section 4.1.2.1"),
    ("invalid_scope", "RFC 6749 section 4.1.2.1"),
    ("server_error", "RFC 6749 section 4.1.2.1"),
    ("temporarily_unavailable", "RFC 6749 section 4.1.2.1"),
    ("interaction_required", "OpenID Connect Core 3.1.2.6"),
    ("login_required", "OpenID Connect Core 3.1.2.6, OIDF-15"),
    ("account_selection_required", "OpenID Connect Core 3.1.2.6"),
    ("consent_required", "OpenID Connect Core 3.1.2.6"),
    ("invalid_request_uri", "OpenID Connect Core 3.1.2.6"),
    ("request_not_supported", "OpenID Connect Core 3.1.2.6"),
    ("registration_not_supported", "OpenID Connect Core 3.1.2.6"),
    ("invalid_target", "RFC 8707 section 2"),
    ("unmet_authentication_requirements", "OpenID Connect Unmet Authentication Requirements"),
]:
    refusal(error.replace("_", "-"), rule, "the provider's no", f"error={error}", error)
for name, rule, about, query, error, message in [
    (
        "microsoft-cancel",
        WILD,
        "Microsoft: the person went back",
        "error=access_denied&error_subcode=cancel&error_description=AADSTS65004%3A+User+declined+to+consent.",
        "access_denied",
        "AADSTS65004: User declined to consent.",
    ),
    (
        "github",
        WILD,
        "GitHub: a description and an address",
        "error=redirect_uri_mismatch&error_description=The+redirect_uri+MUST+match&error_uri=https%3A%2F%2Fdocs.github.com%2Fx",
        "redirect_uri_mismatch",
        "The redirect_uri MUST match",
    ),
    (
        "facebook",
        WILD,
        "Facebook's further parameters",
        "error_reason=user_denied&error=access_denied&error_description=Permissions+error",
        "access_denied",
        "Permissions error",
    ),
    (
        "empty-description",
        "RFC 6749 section 3.1",
        "an empty description",
        "error=access_denied&error_description=",
        "access_denied",
        None,
    ),
    (
        "empty-code",
        "RFC 6749 section 3.1",
        "an empty code beside it",
        "error=access_denied&code=",
        "access_denied",
        None,
    ),
    (
        "letters",
        "RFC 6749 appendix A.8, NAT-47",
        "a description of letters outside ASCII",
        "error=access_denied&error_description=%D0%BD%D0%B5%D1%82",
        "access_denied",
        "\u043d\u0435\u0442",
    ),
    (
        "quotes",
        "RFC 6749 appendix A.8, NAT-47",
        "quotation marks and a backslash",
        "error=access_denied&error_description=a%22b%5Cc",
        "access_denied",
        "a\"b\\c",
    ),
    ("escape", "RFC 6749 appendix A.8, NAT-47", "a terminal's escape in the error", "error=a%1B%5B2Jb", "a?[2Jb", None),
    (
        "markup",
        "RFC 6749 appendix A.8",
        "markup stays text",
        "error=access_denied&error_description=%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "access_denied",
        "<script>alert(1)</script>",
    ),
    (
        "line-breaks",
        "NAT-47",
        "line breaks in the description",
        "error=access_denied&error_description=a%0D%0Ab",
        "access_denied",
        "a b",
    ),
    (
        "direction",
        "NAT-47",
        "a mark that turns the text round",
        "error=access_denied&error_description=a%E2%80%AEb",
        "access_denied",
        "ab",
    ),
    (
        "long-code",
        "own: 64 characters of an error",
        "an error of a hundred characters",
        "error=" + "e" * 100,
        "e" * 64,
        None,
    ),
    (
        "long-description",
        "own: 300 characters of a description",
        "a description of a thousand characters",
        "error=access_denied&error_description=" + "d" * 1_000,
        "access_denied",
        "d" * 300,
    ),
    (
        "hostile-address",
        "own: addresses are not shown",
        "an address that runs",
        "error=access_denied&error_uri=javascript%3Aalert(1)",
        "access_denied",
        None,
    ),
]:
    refusal(name, rule, about, query, error, message)

# What has no meaning.
for name, about, escape in [
    ("percent", "a percent sign alone", "%"),
    ("one-digit", "one digit after it", "%2"),
    ("no-hex", "no hexadecimal digit", "%g0"),
    ("sign", "a sign in place of a digit", "%+1"),
    ("nul", "a NUL", "%00"),
    ("unicode-escape", "an escape of another kind", "%u0041"),
    ("overlong", "an overlong form", "%C0%80"),
    ("lone-byte", "a byte that begins nothing", "%FF"),
    ("cut-letter", "half a letter", "%C3"),
    ("surrogate", "half a surrogate pair", "%ED%A0%80"),
    ("too-high", "beyond Unicode", "%F5%80%80%80"),
]:
    for parameter in ("code", "state", "iss"):
        query = "&".join(f"{name}={'x' if name == 'iss' else value}{escape if name == parameter else ''}" for name, value in (("code", "c1"), ("state", STATE), ("iss", "")))
        failure(f"escape-{name}-{parameter}", "LB-21, RFC 6749 appendix B", f"{about}, in {parameter}", "malformed", query)
    code(f"escape-{name}", "own: what nobody needs does no harm", f"{about}, in another parameter", f"{GOOD}&x=100{escape}&{escape}")
refusal(
    "description-escape",
    "own: what nobody needs does no harm",
    "a bad escape in the description",
    "error=access_denied&error_description=100%+refused",
    "access_denied",
    "100% refused",
)
for name, about, value in [
    ("line-break", "a line break", "c%0A1"),
    ("tab", "a tab", "c%091"),
    ("delete", "a DEL", "c%7F"),
    ("letters", "letters outside ASCII", "%C3%A9"),
    ("too-long", "8193 bytes", "c" * 8_193),
]:
    failure(
        f"code-{name}", "RFC 6749 appendix A.11", f"{about} in the code", "malformed", f"code={value}&state={STATE}"
    )
failure(
    "hundred-and-one",
    "LB-21",
    "a hundred and one parameters",
    "malformed",
    GOOD + "".join(f"&p{n}={n}" for n in range(99)),
)
for name, first, second in [
    ("code", "c1", "c2"),
    ("state", STATE, "other"),
    ("iss", "https%3A%2F%2Fid.example.org", "https%3A%2F%2Fevil.example"),
    ("error", "access_denied", "server_error"),
    ("error_description", "a", "b"),
    ("error_uri", "a", "b"),
    ("session_state", "a", "b"),
]:
    base = {"code": f"state={STATE}", "state": "code=c1", "error": f"state={STATE}"}.get(name, GOOD)
    words = name.replace("_", "-")
    failure(
        f"twice-{words}",
        "RFC 6749 section 3.1, NAT-50",
        f"{name} twice",
        f"repeatedParameter {name}",
        f"{base}&{name}={first}&{name}={second}",
    )
    failure(
        f"twice-{words}-alike",
        "RFC 6749 section 3.1, NAT-50",
        f"{name} twice, alike",
        f"repeatedParameter {name}",
        f"{base}&{name}={first}&{name}={first}",
    )
    failure(
        f"twice-{words}-empty",
        "RFC 6749 section 3.1, NAT-50",
        f"{name} twice, once empty",
        f"repeatedParameter {name}",
        f"{base}&{name}=&{name}={first}",
    )
failure(
    "twice-escaped",
    "RFC 6749 section 3.1, NAT-50",
    "code twice, once escaped",
    "repeatedParameter code",
    f"{GOOD}&%63ode=c2",
)
failure(
    "twice-apart",
    "RFC 6749 section 3.1, NAT-50",
    "code first and last",
    "repeatedParameter code",
    f"{GOOD}&x=1&y=2&code=c2",
)
for name, about, query in [
    ("absent", "no state", "code=c1"),
    ("case", "State is another parameter", f"code=c1&State={STATE}"),
    ("no-value", "a state without a value", "code=c1&state"),
    ("error", "an error without a state", "error=access_denied"),
    ("fragment", "the state in the fragment", f"code=c1#state={STATE}"),
    ("space-name", "a space before the name", f"code=c1&+state={STATE}"),
    ("jarm", "JARM: a signed answer, which nobody asked for", "response=e30.e30.e30"),
    ("nothing", "nothing", ""),
]:
    failure(f"no-state-{name}", "RFC 6749 section 10.12, NAT-16, NAT-48", about, "missingState", query)
for name, about, query in [
    ("absent", "a state alone", f"state={STATE}"),
    ("empty", "code and error empty", f"code=&error=&state={STATE}"),
    ("case", "Code is another parameter", f"Code=c1&state={STATE}"),
    ("fragment", "the code in the fragment", f"state={STATE}#code=c1"),
    ("logout", "the answer of a sign-out (OIDF-41)", f"state={STATE}&x=1"),
]:
    failure(f"no-code-{name}", "RFC 6749 section 4.1.2", about, "missingCode", query)
failure(
    "both",
    "RFC 6749 section 4.1.2",
    "a code and an error",
    "conflictingParameters",
    f"{GOOD}&error=server_error&error_description=x",
)
for name, about, query in [
    ("access", "the implicit flow", f"access_token=a1&token_type=bearer&state={STATE}"),
    ("id", "an ID token", f"id_token=e30.e30.e30&state={STATE}"),
    ("refresh", "a refresh token", f"{GOOD}&refresh_token=r1"),
    ("hybrid", "the hybrid flow", f"{GOOD}&id_token=e30.e30.e30"),
    ("empty", "an empty access_token", f"{GOOD}&access_token="),
    ("escaped", "an escaped name", f"{GOOD}&access%5Ftoken=a1"),
    ("fragment", "tokens in the fragment", f"x=1#access_token=a1&state={STATE}"),
    ("fragment-beside", "tokens in the fragment beside a code", f"{GOOD}#id_token=e30.e30.e30"),
    ("twice", "two tokens", f"{GOOD}&access_token=a1&access_token=a2"),
    ("error", "beside an error", f"error=access_denied&state={STATE}&access_token=a1"),
]:
    failure(f"token-{name}", "RFC 9700 section 2.1.2, NAT-25", about, "carriesTokens", query)
for name, about, url in [
    ("user", "a user's name in it", f"http://user@127.0.0.1:8400/callback?{GOOD}"),
    ("space", "a space in it", f"{PLACE}?code=c 1&state={STATE}"),
    ("backslash", "a backslash in it", f"http:\\\\127.0.0.1/?{GOOD}"),
    ("relative", "no scheme", f"/callback/work?{GOOD}"),
    ("query-only", "the query alone", f"?{GOOD}"),
    ("port", "a port that is none", f"http://127.0.0.1:84000/?{GOOD}"),
    ("no-host", "no host", f"http:///?{GOOD}"),
    ("letters", "letters that are not escaped", f"{PLACE}?{GOOD}&x=\u00e9"),
    ("quote", "a quotation mark", f'{PLACE}?{GOOD}&x="'),
    ("angle", "angle brackets", f"{PLACE}?{GOOD}&x=<b>"),
    ("empty", "nothing", ""),
]:
    failure(f"url-{name}", "RFC 3986, LB-21", f"what is no URL: {about}", "malformed", url, place="")

# form_post bodies.
for name, about, body, expect, more in [
    ("session", "Keycloak's session_state", f"{GOOD}&session_state=x", "code c1", {"state": STATE}),
    (
        "apple",
        "Apple's person, as JSON",
        f"{GOOD}&user=%7B%22name%22%3A%7B%22firstName%22%3A%22Ann%22%7D%7D",
        "code c1",
        {"state": STATE},
    ),
    ("plus", "pluses are spaces", f"code=a+b&state={STATE}", "code a b", {"state": STATE}),
    ("error", "an error (OIDF-15)", f"error=login_required&state={STATE}", "refusal login_required", {"state": STATE}),
    ("two-states", "two states", f"{GOOD}&state=x", "failure repeatedParameter state", {}),
    ("id-token", "an ID token beside the code", f"{GOOD}&id_token=x", "failure carriesTokens", {}),
    ("no-state", "no state", "code=c1", "failure missingState", {}),
    ("empty", "nothing", "", "failure missingState", {}),
    ("json", "JSON in place of a form", '{"code":"c1","state":"s1"}', "failure missingState", {}),
    ("line-break", "a line break in the middle", "code=c1&\r\nstate=s1", "failure missingState", {}),
    ("raw", "bytes that are not escaped", "code=\u00e9&state=s1", "failure malformed", {}),
    ("escape", "a bad escape", "code=%&state=s1", "failure malformed", {}),
]:
    case(f"form-{name}", "OAuth 2.0 Form Post Response Mode, FP-01", about, expect, body, arrives="form", **more)
