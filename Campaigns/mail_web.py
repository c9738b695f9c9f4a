"""The HTTP servers of mail.py, on loopback: token introspection (RFC 7662) for Dovecot, and WebDAV.

The sandbox has no introspection endpoint: the one here asks the sandbox's userinfo endpoint whose token it is.
"""

import base64
import http.server
import json
import ssl
import threading
import urllib.parse

from stage import tcp_request

# The user name and password by which Dovecot asks.
INTROSPECTOR = ("dovecot", "introspection-secret")


def whose(issuer, token):
    """The mail address of the token's user by the provider's word; None for a token that it does not take."""
    status, _, body, _ = tcp_request(issuer + "/userinfo", headers={"Authorization": "Bearer " + token})
    return json.loads(body)["email"] if status == 200 else None


class Web:
    """An HTTP server, with TLS if there is a certificate. `answer(handler, body)` gives (status, type, content)."""

    def __init__(self, answer, certificate=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, kind, content = answer(self, body)
                self.send_response(status)
                if status == 401:
                    self.send_header("WWW-Authenticate", "Bearer")
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_PROPFIND = do_OPTIONS = serve

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Introspection(Web):
    """What Dovecot asks about each token, which is added to `seen`."""

    def __init__(self, issuer, seen):
        self.issuer, self.seen = issuer, seen
        super().__init__(self.answer)

    def answer(self, handler, body):
        word = base64.b64encode(":".join(INTROSPECTOR).encode()).decode()
        if handler.command != "POST" or handler.headers.get("Authorization") != "Basic " + word:
            return 401, "text/plain", b""
        token = urllib.parse.parse_qs(body.decode()).get("token", [""])[0]
        address = whose(self.issuer, token)
        self.seen.append(token)
        document = {"active": True, "username": address, "token_type": "Bearer"} if address else {"active": False}
        return 200, "application/json", json.dumps(document).encode()


class Files(Web):
    """WebDAV with one file, `a.txt`, to whoever has a token that the provider takes; each token is added to `seen`."""

    CONTENT = b"the file's content"

    def __init__(self, issuer, seen, certificate):
        self.issuer, self.seen = issuer, seen
        super().__init__(self.answer, certificate)

    def answer(self, handler, _):
        scheme, _, token = handler.headers.get("Authorization", "").partition(" ")
        is_good = scheme == "Bearer" and token and whose(self.issuer, token)
        if token:
            self.seen.append(token)
        if not is_good:
            return 401, "text/plain", b""
        path = urllib.parse.urlsplit(handler.path).path
        if handler.command == "PROPFIND":
            # The root with its one file, or the file.
            rows = [Files.entry("/", "<D:collection/>")] if path == "/" else []
            rows.append(Files.entry("/a.txt"))
            return 207, "application/xml", f'<D:multistatus xmlns:D="DAV:">{"".join(rows)}</D:multistatus>'.encode()
        return (200, "text/plain", Files.CONTENT) if path == "/a.txt" else (404, "text/plain", b"")

    @staticmethod
    def entry(path, kind=""):
        length = "" if kind else f"<D:getcontentlength>{len(Files.CONTENT)}</D:getcontentlength>"
        return (f"<D:response><D:href>{path}</D:href><D:propstat><D:prop><D:resourcetype>{kind}</D:resourcetype>{length}"
                "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>")
