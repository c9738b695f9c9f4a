#!/usr/bin/env python3
"""An HTTPS server for tools: says 401 to a request without the field Authorization, and {"ok":true} to every other one.
Prints its port, then a line for each request: the path and the field, or "none". Its certificate is for 127.0.0.1, made
when it starts, in DIRECTORY/server.pem.

    tool_server.py DIRECTORY"""

import http.server
import sys

import loopback_tls

BODY = b'{"ok":true}'


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        authorization = self.headers.get("Authorization")
        print(self.path, authorization or "none", flush=True)
        self.send_response(401 if authorization is None else 200)
        if authorization is None:
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
