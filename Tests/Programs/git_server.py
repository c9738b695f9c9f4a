#!/usr/bin/env python3
"""Serves the git repositories below a directory over HTTP by git-http-backend, to who has a token that the provider's
userinfo endpoint takes. Prints its port, then a line for each request: the method, the path, and what became of it.

    git_server.py DIRECTORY USERINFO-URL [basic|bearer]

The last word is the scheme of authentication that the server offers and takes, basic if there is none."""

import base64
import http.server
import os
import subprocess
import sys
import urllib.error
import urllib.request

ROOT, USERINFO = sys.argv[1:3]
SCHEME = sys.argv[3] if len(sys.argv) > 3 else "basic"
BACKEND = "/usr/lib/git-core/git-http-backend"


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

    def token(self):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME:
            return None
        return value if SCHEME == "bearer" else base64.b64decode(value).decode().partition(":")[2]

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = self.token()
        path, _, query = self.path.partition("?")
        if token is None or not is_good(token):
            print(self.command, path, "401 " + ("without a token" if token is None else "refused"), flush=True)
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'{SCHEME.capitalize()} realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": ROOT, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "oauth2",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }
        output = subprocess.run([BACKEND], input=body, stdout=subprocess.PIPE, env=environment, check=False).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        status = 200
        fields = []
        for line in head.decode().split("\r\n"):
            name, _, value = line.partition(": ")
            if name.lower() == "status":
                status = int(value.split()[0])
            elif name:
                fields.append((name, value))
        print(self.command, path, status, flush=True)
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = serve


# Fifty gits connect at once.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
