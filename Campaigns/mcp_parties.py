"""An MCP server and its authorization server, each on a port of its own, for bridges."""

import base64
import hashlib
import json
import secrets
import ssl
import threading
import urllib.parse

from web import Party

REVISION = "2026-07-28"


class Issuer(Party):
    """An authorization server of public clients. It approves every authorization request at once."""

    def __init__(self, clients=None, resource_required=True, refuses_resource=False):
        """`clients`: those that are known already; then no other is registered. Entra refuses the parameter `resource`."""
        super().__init__()
        self.issuer = self.origin
        self.registers = clients is None
        self.clients = set(clients or ())
        self.resource_required, self.refuses_resource = resource_required, refuses_resource
        self.codes = {}
        self.tokens = {}
        self.refresh_tokens = {}
        self.mistakes = []

    def endpoint(self, name):
        return "/oauth/" + name

    @property
    def metadata(self):
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": self.origin + self.endpoint("authorize"),
            "token_endpoint": self.origin + self.endpoint("token"),
            "revocation_endpoint": self.origin + self.endpoint("revoke"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "jwks_uri": self.origin + "/jwks", "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "authorization_response_iss_parameter_supported": True,
        }
        if self.registers:
            document["registration_endpoint"] = self.origin + self.endpoint("register")
        return document

    def respond(self, request):
        if request.path == "/.well-known/oauth-authorization-server" and request.method == "GET":
            return 200, {}, self.metadata
        handlers = {"register": self.register, "authorize": self.authorize, "token": self.token, "revoke": self.revoke}
        for name, handler in handlers.items():
            if request.path == self.endpoint(name):
                return handler(request)
        return 404, {}, {"error": "not_found"}

    def wrong(self, what):
        self.mistakes.append(what)
        return 400, {}, {"error": "invalid_request", "error_description": what}

    def register(self, request):
        if not self.registers:
            return 404, {}, {"error": "not_found"}
        client = f"client-{secrets.token_hex(4)}"
        self.clients.add(client)
        return 201, {}, request.json | {"client_id": client, "token_endpoint_auth_method": "none"}

    def authorize(self, request):
        query = request.query
        if query.get("client_id") not in self.clients:
            return self.wrong(f"unknown client {query.get('client_id')}")
        if self.refuses_resource and "resource" in query:
            return 400, {}, {
                "error": "invalid_request",
                "error_description": "AADSTS901002: The 'resource' request parameter is not supported.",
            }
        if query.get("code_challenge_method") != "S256" or not query.get("code_challenge"):
            return self.wrong("no S256 challenge")
        if self.resource_required and not query.get("resource"):
            return self.wrong("no resource in the authorization request")
        code = secrets.token_hex(8)
        self.codes[code] = query
        back = {"code": code, "state": query.get("state", ""), "iss": self.issuer}
        return 302, {"Location": query["redirect_uri"] + "?" + urllib.parse.urlencode(back)}, b""

    def token(self, request):
        form = request.form
        if form.get("client_id") not in self.clients or "client_secret" in form or "Authorization" in request.headers:
            return self.wrong("not a public client of this server")
        if form.get("grant_type") == "refresh_token":
            return self.refreshed(form)
        asked = self.codes.pop(form.get("code"), None)
        if asked is None:
            return 400, {}, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return self.wrong("the verifier does not match the challenge")
        if form.get("resource") != asked.get("resource"):
            return self.wrong("resource differs between the two requests")
        return self.issue(asked.get("scope"), form["client_id"])

    def refreshed(self, form):
        """A refresh token is good for one request."""
        found = self.refresh_tokens.pop(form.get("refresh_token"), None)
        if found is None:
            return 400, {}, {"error": "invalid_grant"}
        return self.issue(*found)

    def issue(self, scope, client):
        token = secrets.token_hex(16)
        self.tokens[token] = (scope or "").split()
        document = {
            "access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": secrets.token_hex(16)}
        if scope:
            document["scope"] = scope
        self.refresh_tokens[document["refresh_token"]] = (scope, client)
        return 200, {"Cache-Control": "no-store"}, document

    def revoke(self, request):
        self.tokens.pop(request.form.get("token"), None)
        return 200, {}, {}


class MCPServer(Party):
    """An MCP server at /mcp. Without a token of one of its issuers it answers 401, unless it needs no sign-in."""

    def __init__(self, issuers, place="/.well-known/oauth-protected-resource/mcp", listed=None):
        """`place`: of its protected-resource metadata; None if it has none. `listed`: the scopes in them."""
        super().__init__()
        self.issuers = issuers
        self.url = self.resource = self.origin + "/mcp"
        self.place, self.listed = place, listed
        self.needs_sign_in = True
        # The scope that `tools/call` needs.
        self.needed = None
        # The older revisions: `initialize` begins a session.
        self.has_sessions = False
        self.sessions = set()
        self.endless_ended = threading.Event()
        self.mistakes = []

    def secure(self, certificate, key, protocols=("http/1.1",)):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(list(protocols))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.origin = self.origin.replace("http:", "https:")
        self.url = self.resource = self.origin + "/mcp"

    def challenge(self, missing=None):
        """The field of a 401; of a 403 with the scope that is missing."""
        parts = [f'resource_metadata="{self.origin}{self.place}"'] if self.place else []
        if missing:
            parts += ['error="insufficient_scope"', f'scope="{missing}"']
        return {"WWW-Authenticate": " ".join(["Bearer", ", ".join(parts)]).strip()}

    def respond(self, request):
        if request.path == self.place:
            document = {
                "resource": self.resource, "authorization_servers": [issuer.issuer for issuer in self.issuers],
            }
            if self.listed is not None:
                document["scopes_supported"] = self.listed
            return 200, {}, document
        if request.path != "/mcp":
            # Behind a proxy both are one origin.
            for issuer in self.issuers:
                if issuer.origin == self.origin:
                    return issuer.respond(request)
            return 404, {}, {"error": "not_found"}
        return self.message(request)

    def message(self, request):
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        held = next((issuer.tokens[token] for issuer in self.issuers if token in issuer.tokens), None)
        if not self.needs_sign_in:
            held = []
        if held is None:
            if token:
                self.mistakes.append("a token of another server")
            return 401, self.challenge(), {"error": "invalid_token"}
        if request.method == "GET":
            return self.resumed(request)
        if request.method == "DELETE":
            self.sessions.discard(request.headers.get("Mcp-Session-Id"))
            return 200, {}, {}
        body = request.json
        if self.has_sessions:
            if body.get("method") == "initialize":
                return self.session(body)
            if request.headers.get("Mcp-Session-Id") not in self.sessions:
                return 404, {}, {"jsonrpc": "2.0", "error": {"code": -32001, "message": "no such session"}}
            if "id" not in body:
                return 202, {}, b""
        version = request.headers.get("MCP-Protocol-Version")
        if body.get("method") != "initialize" and version is None:
            self.mistakes.append("no MCP-Protocol-Version")
        if body.get("method") == "tools/call" and self.needed and self.needed not in held:
            return 403, self.challenge(self.needed), {}
        special = getattr(self, "tool_" + str((body.get("params") or {}).get("name")), None)
        if body.get("method") == "tools/call" and special:
            return special(body)
        return 200, {}, {"jsonrpc": "2.0", "id": body.get("id"), "result": self.result(body)}

    def result(self, body):
        if body.get("method") == "tools/list":
            return {"tools": [{"name": "add_numbers", "inputSchema": {"type": "object"}}]}
        if body.get("method") == "tools/call":
            numbers = body["params"]["arguments"]
            return {"content": [{"type": "text", "text": str(numbers["a"] + numbers["b"])}]}
        return {}

    EVENTS = {"Content-Type": "text/event-stream"}

    def session(self, body):
        session = secrets.token_hex(8)
        self.sessions.add(session)
        result = {"protocolVersion": body["params"]["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "s"}}
        return 200, {"Mcp-Session-Id": session}, {"jsonrpc": "2.0", "id": body["id"], "result": result}

    @staticmethod
    def event(message):
        return b"data: " + json.dumps(message).encode() + b"\n\n"

    PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}

    def resumed(self, request):
        """A GET: a stream of its own, which this server does not have."""
        return 405, {}, b""

    def tool_slow(self, body):
        done = {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}}
        return 200, self.EVENTS, lambda out: out.write(self.event(self.PROGRESS) + self.event(done))

    def tool_echo(self, body):
        return 200, {}, {"jsonrpc": "2.0", "id": body["id"], "result": body["params"]["arguments"]}

    def tool_endless(self, body):
        def write(out):
            try:
                while True:
                    out.write(self.event(self.PROGRESS))
                    out.flush()
                    # As long as the client listens, in small steps.
                    threading.Event().wait(0.02)
            except OSError:
                self.endless_ended.set()
        return 200, self.EVENTS, write
