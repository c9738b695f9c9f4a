#!/usr/bin/env python3
"""An HTTPS server for tools: says 401 to a request without the field Authorization, and {"ok":true} to every other one.
Prints its port, then a line for each request: the path and the field, or "none". Its certificate is for 127.0.0.1, made
when it starts, in DIRECTORY/server.pem. With the provider's userinfo endpoint it takes only a password that is a good
token there; the line of a request with another one ends with "refused".

    tool_server.py DIRECTORY [USERINFO-URL]"""

import base64
import http.server
import sys
import urllib.error
import urllib.request

import loopback_tls

BODY = b'{"ok":true}'
USERINFO = sys.argv[2] if len(sys.argv) > 2 else None


def is_good(authorization):
    if USERINFO is None:
        return True
    token = base64.b64decode(authorization.partition(" ")[2]).decode().partition(":")[2]
    request = urllib.request.Request(USERINFO, headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        authorization = self.headers.get("Authorization")
        is_right = authorization is not None and is_good(authorization)
        refused = [] if is_right or authorization is None else ["refused"]
        print(self.path, authorization or "none", *refused, flush=True)
        self.send_response(200 if is_right else 401)
        if not is_right:
            self.send_header("WWW-Authenticate", 'Basic realm="tools"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)


# With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = loopback_tls.context(sys.argv[1]).wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
