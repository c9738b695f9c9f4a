"""The real providers, each on a free port of loopback, with its data in a directory of its own.

What is registered with them is what a person would register: a client with one exact redirect URI, mostly public.
"""

import base64
import json
import os
import sys
import time
import urllib.parse

from harness import Trouble, output, read, started, stop, tcp_request, until, write

PERSON = "alice"
EMAIL = "alice@example.org"
PASSWORD = "correct-horse-battery"
# Starting Python with all of canaille takes seconds, on a busy machine many.
START_SECONDS = 90


class Provider:
    """A provider's process, and what its own endpoints say."""

    def __init__(self, directory, port, name):
        self.directory = os.path.join(directory, name)
        os.mkdir(self.directory, 0o700)
        self.port = port
        self.issuer = f"http://127.0.0.1:{port}"
        self.process = None
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.directory, "LANG": "C.UTF-8",
            # Both check for https by themselves; these run on loopback only.
            "AUTHLIB_INSECURE_TRANSPORT": "1", "PYTHONWARNINGS": "ignore",
        }

    def program(self, name):
        return os.path.join(os.path.dirname(sys.executable), name)

    def serve(self, *command):
        log = os.path.join(self.directory, "log")
        self.process = started(command, log, env=self.environment, cwd=self.directory)

        def metadata():
            if self.process.poll() is not None:
                raise Trouble(f"{command[0]} ended: {self.why()}")
            try:
                status, _, body, _ = tcp_request(self.issuer + "/.well-known/openid-configuration")
                return json.loads(body) if status == 200 else None
            except OSError:
                return None
        self.metadata = until(f"{command[0]} to answer", metadata, START_SECONDS)

    def why(self, lines=12):
        return "\n".join(read(os.path.join(self.directory, "log")).splitlines()[-lines:])

    def userinfo(self, token):
        """What the provider says of a token: (status, claims)."""
        headers = {"Authorization": "Bearer " + token}
        status, _, body, _ = tcp_request(self.metadata["userinfo_endpoint"], headers=headers)
        return status, json.loads(body) if status == 200 else body[:200]

    def post(self, url, form, client=None):
        """`client`: its id and secret, where the endpoint wants to know who asks."""
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if client:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(client).encode()).decode()
        status, _, body, _ = tcp_request(url, "POST", urllib.parse.urlencode(form), headers)
        return status, body

    def register(self, **metadata):
        """A client by RFC 7591. Returns its registration."""
        headers = {"Content-Type": "application/json"}
        url = self.metadata["registration_endpoint"]
        status, _, body, _ = tcp_request(url, "POST", json.dumps(metadata), headers)
        if status not in (200, 201):
            raise Trouble(f"the registration at {url} answered {status}: {body[:300]!r}")
        return json.loads(body)

    def close(self):
        if self.process:
            stop(self.process)


class Canaille(Provider):
    """canaille: consent pages, PKCE demanded of public clients, exact redirect URIs, JWT access tokens, `iss` in
    callbacks, a key of each kind."""

    def __init__(self, directory, port):
        super().__init__(directory, port, "canaille")
        configuration = os.path.join(self.directory, "canaille.toml")
        self.environment["CANAILLE_CONFIG"] = configuration
        write(configuration, (
            f'SECRET_KEY = "of-a-provider-under-test"\nSERVER_NAME = "127.0.0.1:{port}"\n'
            'PREFERRED_URL_SCHEME = "http"\n'
            f'[CANAILLE_SQL]\nDATABASE_URI = "sqlite:///{self.directory}/canaille.db"\n'
            f"[CANAILLE_OIDC]\nDYNAMIC_CLIENT_REGISTRATION_OPEN = true\nACTIVE_JWKS = [{self.keys()}]\n"))

    def keys(self):
        """A key of each kind, as TOML."""
        from joserfc.jwk import ECKey, OKPKey, RSAKey

        keys = [RSAKey.generate_key(2048, auto_kid=True), ECKey.generate_key("P-256", auto_kid=True),
                OKPKey.generate_key("Ed25519", auto_kid=True)]
        self.first_key = keys[0]
        tables = [", ".join(f'{name} = "{value}"' for name, value in key.as_dict(private=True).items())
                  for key in keys]
        return ", ".join("{ " + table + " }" for table in tables)

    def manage(self, *arguments):
        output(self.program("canaille"), *arguments, env=self.environment, cwd=self.directory, timeout=START_SECONDS)

    def start(self):
        self.manage("install")
        self.manage("create", "user", "--user-name", PERSON, "--password", PASSWORD, "--emails", EMAIL,
                    "--given-name", "Alice", "--family-name", "Example", "--formatted-name", "Alice Example")
        self.serve(self.program("canaille"), "run", "--bind", f"127.0.0.1:{self.port}",
                   "--accesslog", "-")

    def client(self, redirect_uri, algorithm, method="none"):
        return self.register(
            client_name=f"Ringback {algorithm}", redirect_uris=[redirect_uri], token_endpoint_auth_method=method,
            grant_types=["authorization_code", "refresh_token"], response_types=["code"], application_type="native",
            scope="openid profile email", id_token_signed_response_alg=algorithm)

    def service(self):
        """A client that gets tokens for itself."""
        return self.register(
            client_name="Ringback's service", redirect_uris=["http://127.0.0.1:1/unused"],
            token_endpoint_auth_method="client_secret_basic", grant_types=["client_credentials"], response_types=[],
            scope="openid profile email")

    def pod(self):
        """A client that trades assertions. Registration offers it to nobody: whoever runs the provider makes it."""
        self.manage("create", "client", "--client-id", "pod", "--client-secret", "unused",
                    "--grant-types", "urn:ietf:params:oauth:grant-type:jwt-bearer",
                    "--client-uri", "http://127.0.0.1:1", "--redirect-uris", "http://127.0.0.1:1/unused",
                    "--scope", "openid", "--scope", "profile")
        return {"client_id": "pod", "client_secret": "unused"}

    def assertion(self, client):
        """What this provider takes as a grant: a statement by its own first key, about a person, for a client."""
        from joserfc import jwt

        now = int(time.time())
        claims = {"iss": client, "sub": PERSON, "aud": self.metadata["token_endpoint"], "iat": now, "exp": now + 3600,
                  "jti": os.urandom(8).hex()}
        return jwt.encode({"alg": "RS256"}, claims, self.first_key)

    def introspect(self, token, client):
        """What the provider says of a token to the client that it is for."""
        status, body = self.post(self.metadata["introspection_endpoint"], {"token": token}, client)
        return json.loads(body) if status == 200 else {"status": status, "body": body[:200]}
