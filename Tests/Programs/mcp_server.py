#!/usr/bin/env python3
"""An MCP server with authorization (RFC 9728), for tests. What it announces is in DIRECTORY/mcp.json, read for each
request:

    {"issuers": ["https://..."], "scopes": ["a"], "challenge": "scope of the challenge", "resource": "another identifier"}

All members but `issuers` may be left out. It says 401 to a request without a bearer token, and a list of no tools to
every other one. Prints its port, then a line for each request: method, path, "token" or "none", and the method of the
message or the event that a stream is resumed after.

"dpop": true: it takes tokens that are bound to a key alone, with a proof for the request that has a nonce of its own, which is
good once. Each response states a new one. The line of a request whose proof lacks one has "nonce" in place of "token". What
issued the token checks signatures.

"open": true is for a server that takes requests without a token and announces nothing. "documents" has further documents
by path, with {origin} for the server's own. "initialize": the status with which it refuses an initialize, with "wants",
the scopes of that challenge.

For bridges, mcp.json may have: "session", the id of the only session that it knows; "refuse": true, the next token is
refused from then on; "tools": names of tools that it lists; "slash": true, /mcp redirects to /mcp/. The tools: `echo` gives its arguments back, `size` their size,
`text` a text of as many characters; `headers` gives the request's Authorization back;
`part` gives such a text without its end, which comes when `release` is called;
`wait` says that it has begun and answers when `release` is called; `cut` breaks its stream after the first event, and
answers when it is resumed.

    mcp_server.py DIRECTORY"""

import base64
import hashlib
import http.server
import itertools
import json
import sys
import threading

released = threading.Event()
refused = set()
numbers = itertools.count()
nonces = set()


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Handler(http.server.BaseHTTPRequestHandler):
    is_bound, wrong = False, None

    def log_message(self, *_):
        pass

    def answer(self, status, body, fields=()):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refusal(self, token):
        """What is wrong with the proof beside a token; None if it is good."""
        proofs = self.headers.get_all("DPoP") or []
        if len(proofs) != 1 or not self.headers["Authorization"].startswith("DPoP "):
            return "invalid_dpop_proof"
        claims = json.loads(decoded(proofs[0].split(".")[1]))
        if claims.get("nonce") not in nonces:
            return "use_dpop_nonce"
        nonces.remove(claims["nonce"])
        hash_ = hashlib.sha256(token.encode()).digest()
        is_mine = claims["htm"] == self.command and claims["htu"] == origin() + self.path
        return None if is_mine and decoded(claims["ath"]) == hash_ else "invalid_dpop_proof"

    def end_headers(self):
        if self.is_bound:
            nonce = f"nonce-{next(numbers)}"
            nonces.add(nonce)
            self.send_header("DPoP-Nonce", nonce)
        super().end_headers()

    def say(self, what=""):
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ").removeprefix("DPoP ")
        with open(sys.argv[1] + "/mcp.json") as file:
            announced = json.load(file)
        self.is_bound = announced.get("dpop", False)
        self.wrong = self.refusal(token) if self.is_bound and token else None
        shown = "none" if not token else "nonce" if self.wrong == "use_dpop_nonce" else self.wrong or "token"
        print(self.command, self.path, shown, what, flush=True)
        if self.wrong:
            return announced, False
        digest = hashlib.sha256(token.encode()).digest()
        if announced.get("refuse") and token and not refused:
            refused.add(digest)
        return announced, bool(token) and digest not in refused or announced.get("open", False)

    def do_DELETE(self):
        self.say()
        self.refuse() if self.wrong else self.answer(200, {})

    def refuse(self):
        self.answer(401, {}, [("WWW-Authenticate", f'DPoP error="{self.wrong}"')])

    def event(self, message, number=None):
        self.wfile.write(((f"id: {number}\n" if number else "") + f"data: {json.dumps(message)}\n\n").encode())
        self.wfile.flush()

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def call(self, request):
        """A tool's answer."""
        name, arguments = request["params"]["name"], request["params"].get("arguments", {})
        result = {"jsonrpc": "2.0", "id": request["id"], "result": arguments}
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        if name == "size":
            return self.answer(200, result | {"result": {"size": len(arguments["text"])}})
        if name == "text":
            return self.answer(200, result | {"result": {"text": "x" * arguments["size"]}})
        if name == "headers":
            text = " ".join([self.headers.get("Authorization"), *(self.headers.get_all("DPoP") or [])])
            return self.answer(200, result | {"result": {"text": text}})
        if name == "part":
            text = json.dumps(result | {"result": {"text": "x" * arguments["size"]}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text[:-2])
            self.wfile.flush()
            released.wait(30)
            return self.wfile.write(text[-2:])
        if name == "release":
            released.set()
        if name == "wait":
            self.stream()
            self.event(progress)
            released.wait(30)
            return self.event(result)
        if name == "cut":
            self.stream()
            self.wfile.write(b"retry: 20\n")
            return self.event(progress, json.dumps(request["id"]))
        self.answer(200, result)

    def do_GET(self):
        announced, has_token = self.say(self.headers.get("Last-Event-ID") or "")
        if self.wrong:
            return self.refuse()
        if self.path.startswith("/mcp") and has_token:
            if not self.headers.get("Last-Event-ID"):
                return self.answer(405, {})
            self.stream()
            number = json.loads(self.headers["Last-Event-ID"])
            return self.event({"jsonrpc": "2.0", "id": number, "result": {"resumed": True}}, "last")
        if self.path in announced.get("documents", {}):
            text = json.dumps(announced["documents"][self.path]).replace("{origin}", origin())
            return self.answer(200, json.loads(text))
        if self.path != "/.well-known/oauth-protected-resource/mcp" or announced.get("open"):
            return self.answer(404, {"error": "not found"})
        body = {"resource": announced.get("resource", origin() + "/mcp"), "authorization_servers": [
            issuer.replace("{origin}", origin()) for issuer in announced["issuers"]]}
        if "scopes" in announced:
            body["scopes_supported"] = announced["scopes"]
        if self.is_bound:
            body["dpop_signing_alg_values_supported"] = ["ES256"]
        self.answer(200, body)

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        request = json.loads(self.rfile.read(length) or b"{}")
        announced, has_token = self.say(request.get("method", "response"))
        if self.path not in ("/mcp", "/mcp/"):
            return self.answer(404, {"error": "not found"})
        if has_token and announced.get("slash") and self.path == "/mcp":
            return self.answer(307, {}, [("Location", "/mcp/")])
        if has_token and request.get("method") == "initialize" and "initialize" in announced:
            field = f'Bearer error="insufficient_scope", scope="{announced.get("wants", "")}"'
            return self.answer(announced["initialize"], {}, [("WWW-Authenticate", field)])
        if has_token:
            return self.respond(request, announced.get("session"), announced.get("tools", []))
        if self.wrong:
            return self.refuse()
        challenge = f'Bearer resource_metadata="{origin()}/.well-known/oauth-protected-resource/mcp"'
        if "challenge" in announced:
            challenge += f', scope="{announced["challenge"]}"'
        self.answer(401, {"error": "invalid_token"}, [("WWW-Authenticate", challenge)])

    def respond(self, request, session, tools):
        if request.get("method") == "initialize":
            fields = [("Mcp-Session-Id", session)] if session else []
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "t", "version": "1"}}
            return self.answer(200, {"jsonrpc": "2.0", "id": request["id"], "result": result}, fields)
        if session and self.headers.get("Mcp-Session-Id") != session:
            return self.answer(404, {"error": "no such session"})
        if "id" not in request or "method" not in request:
            return self.answer(202, {})
        if request["method"] == "tools/call":
            return self.call(request)
        self.answer(200, {"jsonrpc": "2.0", "id": request["id"], "result": {"tools": [{"name": name} for name in tools]}})


def origin():
    return f"http://127.0.0.1:{server.server_port}"


# With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
