"""HTTP servers that a campaign plays, each on a free port of 127.0.0.1. Every request is noted, so that it can be said what
must and what must not have happened.
"""

import http.server
import json
import threading
import urllib.parse


class Request:
    def __init__(self, method, target, headers, body):
        parts = urllib.parse.urlsplit(target)
        self.method, self.target = method, target
        self.path = parts.path
        self.query = dict(urllib.parse.parse_qsl(parts.query))
        self.headers = headers
        self.body = body

    @property
    def form(self):
        return dict(urllib.parse.parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def json(self):
        return json.loads(self.body)


class Served:
    def __init__(self, handler, kind=http.server.ThreadingHTTPServer):
        # With the usual five, a burst of connections overflows the queue, and the kernel resets some of them.
        kind.request_queue_size = 128
        self.listen(kind, "127.0.0.1", handler)

    def listen(self, kind, host, handler):
        self.server = kind((host, 0), handler)
        self.server.daemon_threads = True
        # A client that goes away is no error of the server.
        self.server.handle_error = lambda *_: None
        self.origin = f"http://{f'[{host}]' if ':' in host else host}:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Party(Served):
    """`respond` gives (status, headers, document or bytes)."""

    def __init__(self):
        self.requests = []
        party = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A head and its body are two writes: the second must not wait for the first one's acknowledgement.
            disable_nagle_algorithm = True

            def serve(self):
                length = int(self.headers.get("Content-Length", 0))
                request = Request(self.command, self.path, self.headers, self.rfile.read(length))
                party.requests.append(request)
                status, headers, content = party.respond(request)
                # What writes a body piece by piece.
                stream = content if callable(content) else None
                if stream is None and not isinstance(content, bytes):
                    content = json.dumps(content).encode()
                    headers = {"Content-Type": "application/json"} | headers
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if callable(stream):
                    self.close_connection = True
                    self.end_headers()
                    return stream(self.wfile)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = serve

            def log_message(self, *_):
                pass

        super().__init__(Handler)

    def respond(self, request):
        raise NotImplementedError

    def count(self, path, method=None):
        return sum(1 for seen in self.requests if seen.path == path and method in (None, seen.method))

    def sent(self, path):
        return [seen for seen in self.requests if seen.path == path]
