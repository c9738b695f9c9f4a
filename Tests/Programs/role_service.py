#!/usr/bin/env python3
"""A token service of AWS's kind, which exchanges any token for credentials of its own (AssumeRoleWithWebIdentity).
Prints its port, then a line for each exchange: the number of it, and the form as JSON. How it answers is in the file
DIRECTORY/role-answer, read for each request: "ok SECONDS" (how long the credentials are valid), "error STATUS CODE", with
the token in the message for the code Quoting, "text STATUS", "expired NUMBER" (exchanges up to this number find the token
expired), or "held" (an answer waits for a request of /release).

    role_service.py DIRECTORY"""

import http.server
import json
import sys
import threading
import time
import urllib.parse

DONE = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <Credentials>
      <AccessKeyId>ASIA{number}</AccessKeyId>
      <SecretAccessKey>secret-{number}</SecretAccessKey>
      <SessionToken>session-{number}</SessionToken>
      <Expiration>{expiration}</Expiration>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>
"""
REFUSED = """<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"""

lock = threading.Lock()
released = threading.Event()
exchanges = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        released.set()
        self.answer(200, "")

    def do_POST(self):
        global exchanges
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        with lock:
            exchanges += 1
            number = exchanges
            print(number, json.dumps(form), flush=True)
        with open(sys.argv[1] + "/role-answer") as file:
            words = file.read().split()
        if words[0] == "held":
            released.wait(60)
            words = ["ok", "3600"]
        if words[0] == "expired":
            words = ["error", "400", "ExpiredTokenException"] if number <= int(words[1]) else ["ok", "3600"]
        if words[0] == "text":
            self.answer(int(words[1]), "<html>Something else</html>")
        elif words[0] == "error":
            quoted = form["WebIdentityToken"] if words[2] == "Quoting" else "as asked"
            self.answer(int(words[1]), REFUSED.format(code=words[2], message="Not done: " + quoted))
        else:
            expiration = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + int(words[1])))
            self.answer(200, DONE.format(number=number, expiration=expiration))

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


# With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
