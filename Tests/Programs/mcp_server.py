#!/usr/bin/env python3
"""An MCP server with authorization (RFC 9728), for tests. What it announces is in DIRECTORY/mcp.json, read for each
request:

    {"issuers": ["https://..."], "scopes": ["a"], "challenge": "scope of the challenge", "resource": "another identifier"}

All members but `issuers` may be left out. It says 401 to a request without a bearer token, and a list of no tools to
every other one. Prints its port, then a line for each request: method, path, and "token" or "none".

    mcp_server.py DIRECTORY"""

import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
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

    def say(self):
        has_token = (self.headers.get("Authorization") or "").startswith("Bearer ")
        print(self.command, self.path, "token" if has_token else "none", flush=True)
        with open(sys.argv[1] + "/mcp.json") as file:
            return json.load(file), has_token

    def do_GET(self):
        announced, _ = self.say()
        if self.path != "/.well-known/oauth-protected-resource/mcp":
            return self.answer(404, {"error": "not found"})
        body = {"resource": announced.get("resource", origin() + "/mcp"), "authorization_servers": announced["issuers"]}
        if "scopes" in announced:
            body["scopes_supported"] = announced["scopes"]
        self.answer(200, body)

    def do_POST(self):
        announced, has_token = self.say()
        length = int(self.headers.get("Content-Length") or 0)
        request = json.loads(self.rfile.read(length) or b"{}")
        if self.path != "/mcp":
            return self.answer(404, {"error": "not found"})
        if has_token:
            return self.answer(200, {"jsonrpc": "2.0", "id": request.get("id"), "result": {"tools": []}})
        challenge = f'Bearer resource_metadata="{origin()}/.well-known/oauth-protected-resource/mcp"'
        if "challenge" in announced:
            challenge += f', scope="{announced["challenge"]}"'
        self.answer(401, {"error": "invalid_token"}, [("WWW-Authenticate", challenge)])


def origin():
    return f"http://127.0.0.1:{server.server_port}"


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
