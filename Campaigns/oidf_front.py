"""The part of the OpenID provider that the sandbox does not play: odd places and odd documents.

A front stands where the sandbox's metadata says an endpoint is (the switch `endpoints`), under a path that nobody can
guess, passes requests on, and may change the JSON that comes back.
"""

import base64
import html.parser
import http.server
import json
import secrets
import threading
import urllib.parse

from stage import Trouble, tcp_request

PATHS = {"authorize": "/authorize", "token": "/token", "userinfo": "/userinfo", "jwks": "/jwks"}
PASSED_ON = ["Authorization", "Content-Type", "Accept"]


class Front:
    def __init__(self, issuer):
        self.issuer = issuer
        self.secret = secrets.token_urlsafe(12)
        # By endpoint: what becomes of the provider's answer.
        self.changes = {}
        # (method, path) of every request.
        self.seen = []
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                front.answer(self)

            do_GET = do_POST = answer

            def log_message(self, *_):
                """Nobody reads it."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def url(self, endpoint):
        return f"{self.origin}/{self.secret}/{endpoint}"

    def count(self, endpoint):
        return sum(path.split("?")[0] == f"/{self.secret}/{endpoint}" for _, path in self.seen)

    def answer(self, request):
        self.seen.append((request.command, request.path))
        parts = urllib.parse.urlsplit(request.path)
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        prefix, _, endpoint = parts.path[1:].partition("/")
        if prefix != self.secret or endpoint not in PATHS:
            return self.send(request, 404, [], b"")
        fields = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        target = self.issuer + PATHS[endpoint] + ("?" + parts.query if parts.query else "")
        status, headers, content, _ = tcp_request(target, request.command, body or None, fields)
        if status == 200 and endpoint in self.changes:
            content = json.dumps(self.changes[endpoint](json.loads(content))).encode()
        kept = [(name, headers[name]) for name in ["Content-Type", "Location", "Cache-Control"] if name in headers]
        self.send(request, status, kept, content)

    @staticmethod
    def send(request, status, fields, body):
        request.send_response_only(status)
        for name, value in [*fields, ("Content-Length", str(len(body)))]:
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


# MARK: the browser


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


# MARK: keys that only look like keys


def noise(count, first=None):
    content = bytearray(secrets.token_bytes(count))
    if first is not None:
        # A modulus of full length, and odd.
        content[0] |= first
        content[-1] |= 1
    return base64.urlsafe_b64encode(bytes(content)).rstrip(b"=").decode()


def encryption_keys():
    """Two keys that may not check signatures, of the types that do."""
    return [
        {"kty": "RSA", "use": "enc", "alg": "RSA-OAEP", "kid": "enc-rsa", "n": noise(256, 0x80), "e": "AQAB"},
        {"kty": "EC", "use": "enc", "alg": "ECDH-ES", "kid": "enc-ec", "crv": "P-256", "x": noise(32), "y": noise(32)},
    ]


def koblitz(name=None):
    key = {"kty": "EC", "use": "sig", "alg": "ES256K", "crv": "secp256k1", "x": noise(32), "y": noise(32)}
    return key | ({"kid": name} if name else {})
