"""The part of the OpenID provider that the sandbox does not play: odd places and odd documents.

A front stands where the sandbox's metadata says an endpoint is (the switch `endpoints`), under a path that nobody can
guess, passes requests on, and may change the JSON that comes back.
"""

import base64
import html.parser
import json
import os
import secrets
import urllib.parse

from harness import Trouble, claims_of, output, tcp_request, write
from web import Party

ENDPOINTS = ["authorize", "token", "userinfo", "jwks", "par"]
PASSED_ON = ["Authorization", "Content-Type", "Accept", "DPoP"]
PASSED_BACK = ["Content-Type", "Location", "Cache-Control", "DPoP-Nonce", "WWW-Authenticate"]


class Front(Party):
    def __init__(self, issuer):
        self.issuer = issuer
        self.secret = secrets.token_urlsafe(12)
        # By endpoint: what becomes of the provider's answer. A text is a JWT.
        self.changes = {}
        # By name: what becomes of a field of its answers.
        self.fields = {}
        super().__init__()

    def url(self, endpoint):
        return f"{self.origin}/{self.secret}/{endpoint}"

    def count(self, endpoint):
        return super().count(f"/{self.secret}/{endpoint}")

    def respond(self, request):
        prefix, _, endpoint = request.path[1:].partition("/")
        if prefix != self.secret or endpoint not in ENDPOINTS:
            return 404, {}, b""
        fields = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        target = f"{self.issuer}/{endpoint}{request.target.removeprefix(request.path)}"
        status, headers, content, _ = tcp_request(target, request.method, request.body or None, fields)
        passed = {name: headers[name] for name in PASSED_BACK if name in headers}
        passed |= {name: change(passed[name]) for name, change in self.fields.items() if name in passed}
        if status in (200, 201) and endpoint in self.changes:
            content = self.changes[endpoint](json.loads(content))
            passed["Content-Type"] = "application/" + ("jwt" if isinstance(content, str) else "json")
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        return status, passed, content


class Form(html.parser.HTMLParser):
    """The form of a page that submits itself."""

    def __init__(self, page):
        super().__init__()
        self.method, self.action, self.pairs = None, None, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self.method, self.action = attributes.get("method", "get").lower(), attributes.get("action")
        if tag == "input" and "name" in attributes:
            self.pairs.append((attributes["name"], attributes.get("value", "")))


class Callback:
    """What the browser brings: an address (query) or a form (form_post)."""

    def __init__(self, method, url, body=None):
        self.method = method
        self.url = url
        self.body = body

    @property
    def parameters(self):
        return dict(urllib.parse.parse_qsl(self.body or urllib.parse.urlsplit(self.url).query))

    def deliver(self):
        """As the browser does: (status, where it is sent next)."""
        # The origin of a page without a referrer.
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
        fields = {} if self.body is None else form
        status, headers, _, _ = tcp_request(self.url, self.method, self.body, fields)
        # The empty fragment only keeps the browser from handing its own on.
        return status, headers.get("Location", "").removesuffix("#")


def browse(authorization_url):
    """The browser's way through the provider's pages, where nobody is asked. Returns the callback."""
    url = authorization_url
    provider = url[: url.index("/", len("http://")) + 1]
    for _ in range(3):
        status, headers, page, _ = tcp_request(url)
        if status == 200:
            form = Form(page.decode())
            if form.method != "post" or not form.action:
                raise Trouble("the authorization endpoint shows a page, and not one that submits itself")
            return Callback("POST", form.action, urllib.parse.urlencode(form.pairs))
        if status not in (302, 303) or "Location" not in headers:
            raise Trouble(f"the authorization endpoint answered {status}: {page[:200]!r}")
        url = urllib.parse.urljoin(url, headers["Location"])
        if not url.startswith(provider):
            return Callback("GET", url)
    raise Trouble("the provider redirects to itself for ever")


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Key:
    """A key of the examiner's own: of a client, or beside the provider's own for what the sandbox never says."""

    HALVES = {"P-256": ("EC", ["x", "y"], ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
              "Ed25519": ("OKP", ["x"], ["-algorithm", "ed25519"])}

    def __init__(self, directory, curve):
        kind, names, words = Key.HALVES[curve]
        self.path = os.path.join(directory, curve + ".pem")
        output("openssl", "genpkey", *words, "-out", self.path)
        public = output("openssl", "pkey", "-in", self.path, "-pubout", "-outform", "DER", text=False)
        public = public[-32 * len(names):]
        self.jwk = {"kty": kind, "crv": curve, "use": "sig", "kid": "examiner"}
        self.jwk |= {name: encoded(public[32 * n:32 * n + 32]) for n, name in enumerate(names)}

    def published(self, keys):
        return {"keys": [*keys["keys"], self.jwk]}

    def signed(self, claims):
        """A JWT by Ed25519."""
        parts = [{"alg": "EdDSA", "kid": "examiner"}, claims]
        message = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        write(self.path + ".message", message)
        signature = output("openssl", "pkeyutl", "-sign", "-inkey", self.path, "-rawin", "-in", self.path + ".message",
                           text=False)
        return f"{message}.{encoded(signature)}"

    def resigned(self, answer, **claims):
        """A token response whose ID token has other claims."""
        return answer | {"id_token": self.signed(claims_of(answer["id_token"]) | claims)}


def noise(count, first=None):
    content = bytearray(secrets.token_bytes(count))
    if first is not None:
        # A modulus of full length, and odd.
        content[0] |= first
        content[-1] |= 1
    return encoded(bytes(content))


def encryption_keys():
    """Two keys that may not check signatures, of the types that do."""
    return [
        {"kty": "RSA", "use": "enc", "alg": "RSA-OAEP", "kid": "enc-rsa", "n": noise(256, 0x80), "e": "AQAB"},
        {"kty": "EC", "use": "enc", "alg": "ECDH-ES", "kid": "enc-ec", "crv": "P-256", "x": noise(32), "y": noise(32)},
    ]


def koblitz(name=None):
    key = {"kty": "EC", "use": "sig", "alg": "ES256K", "crv": "secp256k1", "x": noise(32), "y": noise(32)}
    return key | ({"kid": name} if name else {})
