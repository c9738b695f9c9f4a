#!/usr/bin/env python3
"""Registries over HTTPS, to who has a Bearer token that the provider's userinfo endpoint takes: a sparse index of cargo
with one crate, a proxy of Go modules with one module, a mirror of Terraform providers with one, and the version of a
Kubernetes server. Below /sts and /tenant, a token service of Google's kind and one of Azure's, which take a token as it is. Prints its port, then a line for each request: the
path, and what became of it. Its certificate is in DIRECTORY/server.pem.

    registry_server.py DIRECTORY USERINFO-URL"""

import gzip
import hashlib
import http.server
import io
import json
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile

import loopback_tls

DIRECTORY, USERINFO = sys.argv[1:3]
MODULE = "example.org/ringed@v1.0.0"


def archive(files):
    """A tar file, compressed, with these texts."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as whole, tarfile.open(fileobj=whole, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return out.getvalue()


def packed(files):
    """A zip file with these texts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return out.getvalue()


CRATE = archive({
    "ringed-0.1.0/Cargo.toml": b'[package]\nname = "ringed"\nversion = "0.1.0"\nedition = "2021"\n',
    "ringed-0.1.0/src/lib.rs": b"pub fn ring() {}\n"})


def pages(place):
    """Everything that needs a token, by path."""
    crate = {"name": "ringed", "vers": "0.1.0", "deps": [], "cksum": hashlib.sha256(CRATE).hexdigest(), "features": {},
             "yanked": False}
    proxy = "/proxy/example.org/ringed/@v/"
    return {
        "/index/config.json": json.dumps({"dl": f"https://{place}/dl", "api": f"https://{place}", "auth-required": True}),
        "/index/ri/ng/ringed": json.dumps(crate) + "\n",
        "/dl/ringed/0.1.0/download": CRATE,
        proxy + "list": "v1.0.0\n",
        proxy + "v1.0.0.info": json.dumps({"Version": "v1.0.0", "Time": "2026-01-02T03:04:05Z"}),
        proxy + "v1.0.0.mod": "module example.org/ringed\n",
        proxy + "v1.0.0.zip": packed(
            {f"{MODULE}/go.mod": "module example.org/ringed\n", f"{MODULE}/ringed.go": "package ringed\n"}),
        "/version": json.dumps({
            "major": "1", "minor": "35", "gitVersion": "v1.35.0-ringed", "gitCommit": "0", "gitTreeState": "clean",
            "buildDate": "2026-01-02T03:04:05Z", "goVersion": "go1.25", "compiler": "gc", "platform": "linux/amd64"}),
        "/providers/example.org/team/ringed/index.json": json.dumps({"versions": {"1.0.0": {}}}),
        "/providers/example.org/team/ringed/1.0.0.json": json.dumps(
            {"archives": {"linux_amd64": {"url": "/open/ringed.zip"}, "linux_arm64": {"url": "/open/ringed.zip"}}}),
    }


def is_good(token):
    request = urllib.request.Request(USERINFO, headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", said="", **fields):
        print(self.path, status, said, flush=True)
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        place, path = self.headers.get("Host", ""), self.path.partition("?")[0]
        path = path.rstrip("/") if path == "/version/" else path
        if path == "/open/ringed.zip":
            return self.answer(200, packed({"terraform-provider-ringed_v1.0.0": "#!/bin/sh\n"}))
        if path.startswith("/tenant/"):
            return self.answer(200, json.dumps({name: f"https://{place}/tenant/{end}" for name, end in (
                ("token_endpoint", "token"), ("authorization_endpoint", "authorize"), ("issuer", "v2.0"))}))
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not is_good(token):
            more = ', error="invalid_token"' if token else ""
            return self.answer(401, said="refused" if token else "without a token", WWW_Authenticate=f'Bearer realm="a"{more}')
        found = pages(place).get(path)
        kind = "application/json" if path.endswith((".json", "/version")) else "application/octet-stream"
        return self.answer(404) if found is None else self.answer(200, found, "with a token", Content_Type=kind)

    do_HEAD = do_GET

    def do_POST(self):
        """The exchange of an ID token (RFC 8693, RFC 7523): says which one it got."""
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        token = (form.get("subject_token") or form.get("client_assertion") or [""])[0]
        self.answer(
            200, json.dumps({"access_token": "exchanged", "token_type": "Bearer", "expires_in": 3600,
                             "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}), token,
            Content_Type="application/json")


# With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = loopback_tls.context(DIRECTORY).wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
