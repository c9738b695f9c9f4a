#!/usr/bin/env python3
"""The token server of a container registry, over HTTPS: to who shows a token that the provider's userinfo endpoint
takes, as a password (GET) or as an identity token (POST, RFC 6749 with grant_type=refresh_token), it gives a token for the
repository that was asked for. Prints its port, then a line for each request: the method, the scope, and what became of it
with which token. The certificate, with which the registry checks the signatures too, is in DIRECTORY/server.pem.

    registry_tokens.py DIRECTORY USERINFO-URL"""

import base64
import http.server
import json
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import loopback_tls

DIRECTORY, USERINFO = sys.argv[1:3]
LIFETIME = 60


def is_good(token):
    request = urllib.request.Request(USERINFO, headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status == 200
    except (urllib.error.HTTPError, UnicodeError):
        return False


def word(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signature(text):
    """ECDSA as JWS has it: both numbers in 32 bytes each (RFC 7518, 3.4); openssl prints them in DER."""
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", DIRECTORY + "/server-key.pem"], input=text, check=True,
                         stdout=subprocess.PIPE).stdout
    numbers, rest = [], der[2:]
    for _ in range(2):
        numbers.append(int.from_bytes(rest[2:2 + rest[1]], "big").to_bytes(32, "big"))
        rest = rest[2 + rest[1]:]
    return b"".join(numbers)


def access_token(service, scope):
    """A token of the registry's kind, for a scope such as `repository:team/app:pull,push`, or for none."""
    kind, _, rest = scope.partition(":")
    name, _, actions = rest.rpartition(":")
    access = [{"type": kind, "name": name, "actions": actions.split(",")}] if scope else []
    with open(DIRECTORY + "/server.pem") as file:
        certificate = base64.b64encode(ssl.PEM_cert_to_DER_cert(file.read())).decode()
    now = int(time.time())
    head = {"typ": "JWT", "alg": "ES256", "x5c": [certificate]}
    claims = {"iss": "ringed", "sub": "ada", "aud": service, "exp": now + LIFETIME, "nbf": now - 10, "iat": now,
              "jti": str(now), "access": access}
    text = word(json.dumps(head).encode()) + b"." + word(json.dumps(claims).encode())
    return (text + b"." + word(signature(text))).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def give(self, form, token):
        """The answer to a request with these parameters and this token."""
        scope, is_right = form.get("scope", [""])[0], token is not None and is_good(token)
        print(self.command, scope or "-", "200" if is_right else "401", token or "none", flush=True)
        document = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
        if is_right:
            made = access_token(form.get("service", [""])[0], scope)
            document = {"token": made, "access_token": made, "expires_in": LIFETIME}
        body = json.dumps(document).encode()
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        token = base64.b64decode(value).decode().partition(":")[2] if scheme == "Basic" else None
        self.give(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query), token)

    def body(self):
        """Of the length that the head tells, or in chunks, as skopeo sends it."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def do_POST(self):
        form = urllib.parse.parse_qs(self.body().decode())
        self.give(form, form["refresh_token"][0] if form.get("grant_type") == ["refresh_token"] else None)


# With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = loopback_tls.context(DIRECTORY).wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
