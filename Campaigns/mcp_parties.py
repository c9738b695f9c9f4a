"""An MCP server and its authorization server, each on a port of its own, with the habits that a scenario asks for."""

import base64
import hashlib
import json
import re
import secrets
import ssl
import threading
import urllib.parse

from web import Party

REVISION = "2026-07-28"


class Issuer(Party):
    """An authorization server. It approves every authorization request at once."""

    def __init__(self, path="", places=("oauth-authorization-server",), **habits):
        super().__init__()
        self.issuer = self.origin + path
        # Where its metadata are: the forms of the well-known location, see `places_of`.
        self.places = [self.place(form) for form in places]
        self.habits = {
            "endpoints": "/oauth", "registers": True, "documents": False, "methods": ["none"], "announces_iss": True,
            "iss": True, "scopes": None, "stated_issuer": None, "clients": {}, "resource_required": True,
            "gives_refresh_tokens": True,
            # The client-id metadata documents by URL; None if every https URL has one.
            "hosted": None,
            # Where the parameter `resource` is refused, as Entra does: "authorize" or "token".
            "refuses_resource_at": None,
        } | habits
        self.clients = dict(self.habits["clients"])
        self.codes = {}
        self.tokens = {}
        self.refresh_tokens = {}
        self.mistakes = []

    def place(self, form):
        path = self.issuer[len(self.origin):]
        if form == "appended":
            return path + "/.well-known/openid-configuration"
        return f"/.well-known/{form}{path}"

    def endpoint(self, name):
        return self.habits["endpoints"] + "/" + name

    @property
    def metadata(self):
        habits = self.habits
        document = {
            "issuer": habits["stated_issuer"] or self.issuer,
            "authorization_endpoint": self.origin + self.endpoint("authorize"),
            "token_endpoint": self.origin + self.endpoint("token"),
            "revocation_endpoint": self.origin + self.endpoint("revoke"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": habits["methods"],
            "jwks_uri": self.origin + "/jwks", "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        if habits["registers"]:
            document["registration_endpoint"] = self.origin + self.endpoint("register")
        if habits["documents"]:
            document["client_id_metadata_document_supported"] = True
        if habits["announces_iss"]:
            document["authorization_response_iss_parameter_supported"] = True
        if habits["scopes"] is not None:
            document["scopes_supported"] = habits["scopes"]
        return document

    def respond(self, request):
        if request.path in self.places and request.method == "GET":
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
        if not self.habits["registers"]:
            return 404, {}, {"error": "not_found"}
        asked = request.json
        if asked.get("application_type") not in ("native", "web"):
            return self.wrong("no application_type")
        client = f"client-{secrets.token_hex(4)}"
        method = self.habits["methods"][0]
        secret = None if method == "none" else secrets.token_hex(16)
        self.clients[client] = (method, secret, asked["redirect_uris"])
        document = asked | {"client_id": client, "token_endpoint_auth_method": method}
        if secret:
            document["client_secret"] = secret
        return 201, {}, document

    def authorize(self, request):
        query = request.query
        client = query.get("client_id")
        if client not in self.clients and not self.has_document(client, query.get("redirect_uri", "")):
            return self.wrong(f"unknown client {client}")
        if self.habits["refuses_resource_at"] == "authorize" and "resource" in query:
            return self.refusal_of_resource
        if query.get("code_challenge_method") != "S256" or not query.get("code_challenge"):
            return self.wrong("no S256 challenge")
        if self.habits["resource_required"] and not query.get("resource"):
            return self.wrong("no resource in the authorization request")
        code = secrets.token_hex(8)
        self.codes[code] = query
        back = {"code": code, "state": query.get("state", "")}
        iss = self.habits["iss"]
        if iss:
            back["iss"] = self.issuer if iss is True else iss
        return 302, {"Location": query["redirect_uri"] + "?" + urllib.parse.urlencode(back)}, b""

    # What Entra says.
    refusal_of_resource = 400, {}, {
        "error": "invalid_request",
        "error_description": "AADSTS901002: The 'resource' request parameter is not supported.",
    }

    def has_document(self, client, redirect_uri):
        """True for a client whose metadata document has the redirect URI, without its port."""
        hosted = self.habits["hosted"]
        if not self.habits["documents"] or not (client or "").startswith("https://"):
            return False
        if hosted is None:
            return True
        document = hosted.get(client, {})
        redirect_uri = re.sub(r":\d+", "", redirect_uri)
        return document.get("client_id") == client and redirect_uri in document.get("redirect_uris", [])

    def token(self, request):
        form = request.form
        if self.habits["refuses_resource_at"] == "token" and "resource" in form:
            return self.refusal_of_resource
        client, secret, way = self.authentication(request, form)
        if client in self.clients:
            method, known, _ = self.clients[client]
            if way != method or secret != known:
                return self.wrong(f"client authentication {way} instead of {method}")
        elif way != "none":
            return self.wrong("a client metadata document with a secret")
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
        return self.issue(asked.get("scope"), client)

    def authentication(self, request, form):
        """(client id, secret, method)."""
        stated = request.headers.get("Authorization", "")
        if stated.startswith("Basic "):
            if "client_secret" in form:
                self.mistakes.append("the secret was sent twice")
            client, _, secret = base64.b64decode(stated[6:]).decode().partition(":")
            return urllib.parse.unquote(client), urllib.parse.unquote(secret), "client_secret_basic"
        if "client_secret" in form:
            return form.get("client_id"), form["client_secret"], "client_secret_post"
        return form.get("client_id"), None, "none"

    def refreshed(self, form):
        """A refresh token is good for one request."""
        found = self.refresh_tokens.pop(form.get("refresh_token"), None)
        if found is None:
            return 400, {}, {"error": "invalid_grant"}
        return self.issue(*found)

    def issue(self, scope, client):
        token = secrets.token_hex(16)
        self.tokens[token] = (scope or "").split()
        document = {"access_token": token, "token_type": "Bearer", "expires_in": 3600}
        if scope:
            document["scope"] = scope
        if self.habits["gives_refresh_tokens"]:
            document["refresh_token"] = secrets.token_hex(16)
            self.refresh_tokens[document["refresh_token"]] = (scope, client)
        return 200, {"Cache-Control": "no-store"}, document

    def revoke(self, request):
        self.tokens.pop(request.form.get("token"), None)
        return 200, {}, {}


class MCPServer(Party):
    """An MCP server at /mcp. Without a token of one of its issuers it answers 401, unless it needs no sign-in."""

    def __init__(self, issuers, place="path", says_place=True, challenged=None, listed=None, resource=None):
        super().__init__()
        self.issuers = issuers
        self.url = self.origin + "/mcp"
        # Where its protected-resource metadata are; nil for none.
        self.place = {
            "path": "/.well-known/oauth-protected-resource/mcp", "root": "/.well-known/oauth-protected-resource",
        }.get(place, place)
        self.says_place = says_place
        self.challenged = challenged
        self.listed = listed
        self.resource = resource or self.url
        self.needs_sign_in = True
        # The scope that `tools/call` needs; "never" is one that no token has.
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

    def challenge(self, scope, error=None):
        parts = []
        if error:
            parts.append(f'error="{error}"')
        if self.place and self.says_place:
            parts.append(f'resource_metadata="{self.origin}{self.place}"')
        if scope:
            parts.append(f'scope="{scope}"')
        return "Bearer " + ", ".join(parts) if parts else "Bearer"

    def respond(self, request):
        if request.path == self.place:
            document = {
                "resource": self.resource, "authorization_servers": [issuer.issuer for issuer in self.issuers],
            }
            if self.listed is not None:
                document["scopes_supported"] = self.listed
            return 200, {}, document
        if request.path != "/mcp":
            # Of revision 2025-03-26: the authorization server is the MCP server itself.
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
            return 401, {"WWW-Authenticate": self.challenge(self.challenged)}, {"error": "invalid_token"}
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
            return 403, {"WWW-Authenticate": self.challenge(self.needed, "insufficient_scope")}, {}
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
    def event(message, number=None):
        return (f"id: {number}\n" if number else "").encode() + b"data: " + json.dumps(message).encode() + b"\n\n"

    PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}

    def resumed(self, request):
        """A GET: the rest of a stream that was cut, or none of its own."""
        if request.headers.get("Last-Event-ID") != "e1":
            return 405, {}, b""
        done = {"jsonrpc": "2.0", "id": self.cut_request, "result": {"content": []}}
        return 200, self.EVENTS, lambda body: body.write(self.event(done, "e2"))

    def tool_slow(self, body):
        done = {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}}
        return 200, self.EVENTS, lambda out: out.write(self.event(self.PROGRESS) + self.event(done))

    def tool_cut(self, body):
        self.cut_request = body["id"]
        return 200, self.EVENTS, lambda out: out.write(b"retry: 100\n" + self.event(self.PROGRESS, "e1"))

    def tool_echo(self, body):
        return 200, {}, {"jsonrpc": "2.0", "id": body["id"], "result": body["params"]["arguments"]}

    def tool_tell_token(self, body):
        tokens = " ".join(token for issuer in self.issuers for token in issuer.tokens)
        return 200, {}, {"jsonrpc": "2.0", "id": body["id"], "result": {"content": [{"type": "text", "text": tokens}]}}

    def tool_elsewhere(self, body):
        return 307, {"Location": self.origin + "/stolen"}, b""

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
