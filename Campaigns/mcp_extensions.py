"""The extensions of MCP's authorization for programs without a user: client credentials with a secret or a key, and a workload's
own token (workload identity federation). In Ringback these are service accounts, whose tokens the MCP server takes.
"""

import base64
import json
import os
import subprocess
import time
import urllib.parse

from harness import run, tcp_request, write
from mcp import ringback
from mcp_parties import REVISION, Issuer, MCPServer

CLIENT = "robot"
SECRET = "robot secret/+%"


class ServiceIssuer(Issuer):
    """Gives tokens to clients and for assertions. `taken` says whether a token request is right."""

    def __init__(self, grant, method, taken):
        super().__init__(registers=False, methods=[method])
        self.grant, self.taken = grant, taken

    @property
    def metadata(self):
        return super().metadata | {
            "grant_types_supported": [self.grant], "token_endpoint_auth_signing_alg_values_supported": ["ES256"]}

    def token(self, request):
        if request.form.get("grant_type") != self.grant:
            return self.wrong(f"the grant {request.form.get('grant_type')}")
        if not self.taken(request):
            return 400, {}, {"error": "invalid_grant"}
        self.habits["gives_refresh_tokens"] = False
        return self.issue(request.form.get("scope"), CLIENT)


class Extensions:
    """The scenarios, with the notes and the house of a run of mcp_scenarios.py."""

    def __init__(self, run):
        self.run, self.note, self.house = run, run.note, run.house

    def file(self, name, content):
        return write(self.house.place(name), content)

    def play(self, title, grant, method, settings, taken):
        """A token for the server, and a request there. The account's name; its issuer and server stay open for the caller."""
        issuer = ServiceIssuer(grant, method, taken)
        server = MCPServer([issuer])
        name = self.run.begin(title)
        place = os.path.join(os.path.dirname(self.house.configuration), f"accounts.d/{name}.toml")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        lines = [f"[accounts.{name}]", f'issuer = "{issuer.issuer}"', f'resource = "{server.url}"', *settings, ""]
        write(place, "\n".join(lines))
        status, said, errors = ringback(self.house, "reload")
        self.note(status == 0, "the configuration", errors or said)
        status, token, errors = ringback(self.house, "token", name)
        self.place, self.name = place, name
        return issuer, server, status, token.strip(), errors

    def taken(self, server, token):
        """True if the server takes the token."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {
            "_meta": {"io.modelcontextprotocol/protocolVersion": REVISION}}}
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "MCP-Protocol-Version": REVISION}
        return tcp_request(server.url, "POST", json.dumps(body), headers)[0] == 200

    def finish(self, issuer, server):
        self.note(not issuer.mistakes and not server.mistakes, "no mistake", issuer.mistakes + server.mistakes)
        self.note(not issuer.count(issuer.endpoint("authorize")), "no authorization request")
        os.remove(self.place)
        ringback(self.house, "reload")
        issuer.close()
        server.close()

    def client_credentials_basic(self):
        secret = self.file("robot-secret", SECRET + "\n")

        def right(request):
            stated = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            return [urllib.parse.unquote_plus(part) for part in stated.split(":")] == [CLIENT, SECRET]

        issuer, server, status, token, errors = self.play(
            "client-credentials-basic", "client_credentials", "client_secret_basic",
            [f'client_id = "{CLIENT}"', f'client_secret_file = "{secret}"', 'grant = "client_credentials"'], right)
        sent = issuer.sent(issuer.endpoint("token"))
        self.note(status == 0 and len(sent) == 1, "one token request", errors)
        self.note(all("client_secret" not in seen.form for seen in sent), "no secret in the body")
        self.note({seen.form.get("resource") for seen in sent} == {server.url}, "resource", [seen.form for seen in sent])
        self.note(self.taken(server, token), "the server takes the token")
        self.finish(issuer, server)

    def client_credentials_jwt(self):
        key, public = self.house.place("robot-key"), self.house.place("robot-public")
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key], check=True,
            stderr=subprocess.DEVNULL)
        os.chmod(key, 0o600)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
        issuer, server, status, token, errors = self.play(
            "client-credentials-jwt", "client_credentials", "private_key_jwt",
            [f'client_id = "{CLIENT}"', f'client_key_file = "{key}"', 'grant = "client_credentials"'],
            lambda request: "client_assertion" in request.form)
        forms = [seen.form for seen in issuer.sent(issuer.endpoint("token"))]
        self.note(status == 0 and len(forms) == 1, "one token request", errors)
        for form in forms:
            kind = form.get("client_assertion_type")
            self.note(kind == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "the assertion's type", kind)
            head, claims, is_signed = self.read(form.get("client_assertion", ".."), public)
            self.note(head.get("alg") == "ES256" and is_signed, "ES256, and the signature is the key's", head)
            self.note(claims.get("iss") == claims.get("sub") == CLIENT, "iss and sub are the client", claims)
            audience = claims.get("aud")
            audience = audience[0] if isinstance(audience, list) and len(audience) == 1 else audience
            self.note(str(audience).rstrip("/") == issuer.issuer, "aud is the issuer", claims)
            self.note(claims.get("iat", 0) - 60 <= time.time() < claims.get("exp", 0), "the times", claims)
            self.note("client_secret" not in form, "no secret")
        self.note(self.taken(server, token), "the server takes the token")
        self.finish(issuer, server)

    def read(self, assertion, public):
        """Head, claims, and whether the key signed them."""
        parts = assertion.split(".")
        decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts]
        numbers = [decoded[2][:32], decoded[2][32:]]
        # As OpenSSL takes it: two integers in DER, without a sign bit.
        numbers = [number.lstrip(b"\0") or b"\0" for number in numbers]
        numbers = [b"\0" + number if number[0] > 127 else number for number in numbers]
        body = b"".join(bytes([2, len(number)]) + number for number in numbers)
        signature = self.house.place("signature")
        with open(signature, "wb") as file:
            file.write(bytes([0x30, len(body)]) + body)
        done = run("openssl", "dgst", "-sha256", "-verify", public, "-signature", signature, input=".".join(parts[:2]))
        return json.loads(decoded[0]), json.loads(decoded[1]), done.returncode == 0

    def wif(self):
        own = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ3b3JrbG9hZCJ9.valid"
        path = self.file("workload-token", own + "\n")
        settings = ['grant = "jwt_bearer"', f'assertion_file = "{path}"']
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        issuer, server, status, token, errors = self.play(
            "wif-jwt-bearer", grant, "none", settings, lambda request: request.form.get("assertion") == own)
        sent = issuer.sent(issuer.endpoint("token"))
        self.note(status == 0 and len(sent) == 1, "one token request, with the workload's token", errors)
        self.note(not any("Authorization" in seen.headers for seen in sent), "no client authentication")
        self.note(self.taken(server, token), "the server takes the token")
        # Another token of the workload, which the issuer refuses.
        self.file("workload-token", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ3b3JrbG9hZCJ9.expired\n")
        status = self.house.api("POST", f"/v1/accounts/{self.name}/refresh", {"force": True})[0]
        sent = issuer.sent(issuer.endpoint("token"))
        self.note(status != 200 and len(sent) == 2, "a refused one is sent once", len(sent))
        self.note({seen.form.get("grant_type") for seen in sent} == {grant}, "and no other grant is tried")
        self.finish(issuer, server)

    def all(self):
        self.client_credentials_basic()
        self.client_credentials_jwt()
        self.wif()
