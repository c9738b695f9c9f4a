"""The least of a provider that oidc-agent accepts, so that it has a token to return. Not the sandbox: oidc-agent sends
form values without escaping their spaces, which the sandbox refuses as malformed."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class TokenIssuer:
    """Answers discovery, and every token request with the same token, on a free loopback port until closed."""

    def __init__(self, access_token):
        # With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
        ThreadingHTTPServer.request_queue_size = 128
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.access_token = access_token
        self.url = self.server.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = self.server.url
        self.answer({
            "issuer": url, "authorization_endpoint": url + "/authorize", "token_endpoint": url + "/token",
            "jwks_uri": url + "/keys", "userinfo_endpoint": url + "/userinfo", "response_types_supported": ["code"],
            "scopes_supported": ["openid", "offline_access"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
        })

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({
            "access_token": self.server.access_token, "refresh_token": "bench", "token_type": "Bearer",
            "expires_in": 86_400, "scope": "openid offline_access",
        })
