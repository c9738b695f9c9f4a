"""idpyoidc as a provider whose tokens are bound to a key (RFC 9449), behind Python's HTTP server.

Checks, tokens and responses are the library's, which has no server of its own. Run as a program it serves. Two faults
of its release are mended here; without that it accepts no proof at userinfo and binds no refreshed token.
"""

import base64
import hashlib
import http.server
import json
import os
import sys
import types
import urllib.parse

PERSON, EMAIL, CLIENT = "mira", "mira@example.org", "ringback-dpop"
SCOPES = ["openid", "email", "offline_access"]


def digest(content):
    """The library compares `ath` with a digest in hexadecimal; it is one in base64url (RFC 9449 section 4.2)."""
    text = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return types.SimpleNamespace(hexdigest=lambda: text)


def provider(directory, issuer):
    from cryptojwt.key_jar import init_key_jar
    from idpyoidc.server import Server
    from idpyoidc.server.configure import OPConfiguration
    from idpyoidc.server.oauth2.add_on import dpop

    dpop.sha256 = digest
    keys = [{"type": "RSA", "use": ["sig"]}, {"type": "EC", "crv": "P-256", "use": ["sig"]}]
    jar = init_key_jar(key_defs=keys, issuer_id=issuer)
    jar.import_jwks(jar.export_jwks(True, issuer), "")
    password = {"kwargs": {"crypt_conf": {"kwargs": {"password": os.urandom(16).hex(), "salt": os.urandom(16).hex()}}}}
    signed = {"class": "idpyoidc.server.token.jwt_token.JWTToken", "kwargs": {"lifetime": 3600}}
    classes = {"provider_config": "idpyoidc.server.oidc.provider_config.ProviderConfiguration",
               "authorization": "idpyoidc.server.oidc.authorization.Authorization",
               "token": "idpyoidc.server.oidc.token.Token", "userinfo": "idpyoidc.server.oidc.userinfo.UserInfo"}
    methods = {"token": ["none"], "userinfo": ["dpop", "bearer_header"]}
    with open(os.path.join(directory, "users.json"), "w") as file:
        json.dump({PERSON: {"email": EMAIL, "email_verified": True}}, file)
    server = Server(OPConfiguration({
        "issuer": issuer, "base_url": issuer, "httpc_params": {},
        "preference": {"subject_types_supported": ["public"], "response_types_supported": ["code"],
                       "id_token_signing_alg_values_supported": ["ES256"],
                       "token_endpoint_auth_methods_supported": ["none"],
                       "scopes_supported": SCOPES},
        "keys": {"uri_path": "jwks", "key_defs": keys},
        "endpoint": {name: {"path": ".well-known/openid-configuration" if name == "provider_config" else name,
                            "class": kind, "kwargs": {"client_authn_method": methods.get(name, [])}}
                     for name, kind in classes.items()},
        "add_on": {
            "pkce": {"function": "idpyoidc.server.oauth2.add_on.pkce.add_support",
                     "kwargs": {"essential": True}},
            "dpop": {"function": "idpyoidc.server.oauth2.add_on.dpop.add_support",
                     "kwargs": {"dpop_signing_alg_values_supported": ["ES256"],
                                "dpop_endpoints": ["token", "userinfo"]}}},
        "token_handler_args": {"code": password | {"lifetime": 600}, "token": signed, "refresh": signed,
                               "id_token": {"class": "idpyoidc.server.token.id_token.IDToken", "kwargs": {}}},
        "authentication": {"anon": {"acr": "urn:example:nobody-asks", "kwargs": {"user": PERSON},
                                    "class": "idpyoidc.server.user_authn.user.NoAuthn"}},
        "userinfo": {"class": "idpyoidc.server.user_info.UserInfo", "kwargs": {"db_file": "users.json"}},
    }, base_path=directory), cwd=directory, keyjar=jar)
    # The constructor overwrites what the add-on has put there.
    server.context.provider_info["dpop_signing_alg_values_supported"] = ["ES256"]
    return server


class Handler(http.server.BaseHTTPRequestHandler):
    """A request becomes what the library reads, and its result a response."""

    def serve(self):
        path, _, query = self.path[1:].partition("?")
        if path == "jwks":
            return self.answer(200, self.provider.keyjar.export_jwks_as_json())
        endpoint = next((one for one in self.provider.endpoint.values() if one.endpoint_path.lstrip("/") == path), None)
        if endpoint is None:
            return self.answer(404, "")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode() or query
        form = dict(urllib.parse.parse_qsl(body))
        seen = {"headers": {name.lower(): value for name, value in self.headers.items()}, "method": self.command,
                "url": endpoint.full_path}
        try:
            request = endpoint.parse_request(form, http_info=seen)
            result = request if "error" in request else endpoint.process_request(request=request, http_info=seen)
        except Exception as error:
            # What is wrong with a proof comes as an exception.
            result = {"error": "invalid_request", "error_description": str(error)}
        if "error" in result:
            return self.answer(401 if path == "userinfo" else 400, json.dumps(dict(result)))
        written = endpoint.do_response(request=request, **result)
        if path == "authorization":
            return self.answer(303, "", Location=written["response"])
        self.answer(200, written["response"])

    do_GET = do_POST = serve

    def answer(self, status, content, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content.encode())))
        self.end_headers()
        self.wfile.write(content.encode())


def main(directory, port, callback):
    issuer = f"http://127.0.0.1:{port}"
    Handler.provider = provider(directory, issuer)
    Handler.provider.context.cdb[CLIENT] = {
        "client_id": CLIENT, "redirect_uris": [(callback, {})], "token_endpoint_auth_method": "none",
        "response_types_supported": ["code"], "grant_types_supported": ["authorization_code", "refresh_token"],
        "allowed_scopes": SCOPES}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
