#!/usr/bin/env python3
"""What gh asks of GitHub when it is given a token, and a proxy that leads every host to it. Prints its port, then a line
for each request: the host, the path, and the field Authorization, or "none". The certificate is in DIRECTORY/server.pem.

    github_server.py DIRECTORY HOST..."""

import http.server
import json
import ssl
import subprocess
import sys

DIRECTORY, HOSTS = sys.argv[1], sys.argv[2:]


def certificate():
    """The context of a server that has these names."""
    made, key = DIRECTORY + "/server.pem", DIRECTORY + "/server-key.pem"
    names = ",".join("DNS:" + host for host in HOSTS)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=test", "-addext", "subjectAltName=" + names, "-keyout", key, "-out", made],
        check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_CONNECT(self):
        """The tunnel ends here: what follows is TLS, as if this were the host."""
        self.send_response(200)
        self.end_headers()
        self.wfile.flush()
        self.connection = CONTEXT.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.close_connection = False

    def answer(self, document):
        print(self.headers.get("Host"), self.path, self.headers.get("Authorization", "none"), flush=True)
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-OAuth-Scopes", "repo, read:org, gist")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # The name that a token belongs to is in it.
        token = self.headers.get("Authorization", "").rpartition(" ")[2]
        self.answer({"data": {"viewer": {"login": token.rpartition("_")[2] or "nobody"}}})


CONTEXT = certificate()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
