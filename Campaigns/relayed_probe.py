#!/usr/bin/env -S python3 -B
"""Both ends of a relay, for `relayed.py` and `confined.py`: a server that repeats what it gets (`serve`), and the program that
has the relay's address in API (`use`), which tries the rules and writes what came into the present folder. Needs nothing of the project."""

import gzip
import hashlib
import http.client
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request


class Server(http.server.BaseHTTPRequestHandler):
    """Below /api what it gets comes back, the credentials among it, in several ways."""

    protocol_version = "HTTP/1.1"
    elsewhere = ""
    goes_on = threading.Event()
    was_refused = threading.Event()

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, piece):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def begin(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def serve(self):
        body = self.body()
        sent = self.headers["Authorization"] or ""
        own = f"http://{self.headers['Host']}"
        match urllib.parse.urlsplit(self.path).path:
            case "/api/echo" | "/api/chat/completions" if self.command == "HEAD" or "stream" not in body.decode(errors="ignore"):
                facts = {"method": self.command, "path": self.path, "headers": self.headers.items(), "length": len(body),
                         "digest": hashlib.sha256(body).hexdigest(), "sent": hashlib.sha256(sent.encode()).hexdigest(),
                         "choices": [{"message": {"content": "hello"}}]}
                self.answer(200, json.dumps(facts).encode(), Content_Type="application/json", X_Echo=sent, Set_Cookie="session=1")
            case "/api/chat/completions" | "/api/events":
                self.begin("text/event-stream")
                for number in range(3):
                    self.chunk(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % number)
                    # The next one is sent when the client says that it has this one.
                    if not self.goes_on.wait(20):
                        return
                    self.goes_on.clear()
                self.chunk(b"data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")
            case "/api/go":
                self.goes_on.set()
                self.answer(204)
            case "/api/pieces":
                self.begin("text/plain")
                for letter in f"before {sent} after":
                    self.chunk(letter.encode())
                self.wfile.write(b"0\r\n\r\n")
            case "/api/packed":
                self.answer(200, gzip.compress(sent.encode()), Content_Encoding="gzip")
            case "/api/odd":
                self.answer(200, sent.encode(), Content_Encoding="odd")
            case "/api/away":
                self.answer(302, Location=f"{self.elsewhere}/stolen")
            case "/api/here":
                self.answer(302, Location=f"{own}/api/echo?here=1", Link=f'<{own}/api/echo?page=2>; rel="next"')
            case "/api/refused" if not self.was_refused.is_set():
                self.was_refused.set()
                self.answer(401, b"{}")
            case "/api/refused":
                self.answer(200, hashlib.sha256(sent.encode()).hexdigest().encode())
            case _:
                self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_PROPFIND = serve


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Another server, which a redirect names. It tells what it was sent."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        text = json.dumps(self.headers.items()).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)


def serve():
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), each) for each in (Server, Elsewhere)]
    Server.elsewhere = f"http://127.0.0.1:{servers[1].server_port}"
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(servers[0].server_port, flush=True)
    sys.stdin.read()


class Client:
    def __init__(self, base):
        self.base = base
        place = urllib.parse.urlsplit(base)
        self.host, self.port = place.hostname, place.port
        self.rows = []
        self.came = ""

    def note(self, is_right, what, why=""):
        self.rows.append([bool(is_right), what, str(why)[:300]])

    def call(self, method, path, body=None, **fields):
        """A request over a connection of its own: (status, fields, body)."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request(method, "/api" + path, body=body, headers={k.replace("_", "-"): v for k, v in fields.items()},
                           encode_chunked=not isinstance(body, (bytes, type(None))))
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        self.came += f"{found}"
        connection.close()
        return found

    def raw(self, text):
        """The status of the response to bytes."""
        with socket.create_connection((self.host, self.port), 30) as connection:
            connection.sendall(text.replace("\n", "\r\n").encode())
            said = b""
            while piece := connection.recv(65_536):
                said += piece
        self.came += said.decode(errors="replace")
        return int(said.split()[1]) if said else 0

    def half_closed(self):
        """A client that ends its direction after its request gets the response."""
        with socket.create_connection((self.host, self.port), 30) as connection:
            connection.sendall(f"POST /api/echo HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Length: 2\r\n"
                               "Expect: 100-continue\r\n\r\n".encode())
            said = connection.recv(65_536)
            connection.sendall(b"{}")
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65_536):
                said += piece
        self.came += said.decode(errors="replace")
        self.note(b"HTTP/1.1 200" in said and b'"length": 2' in said, "a client that ends its direction", said)

    def credentials(self):
        status, fields, body = self.call(
            "GET", "/echo?a=b", Authorization="Bearer mine", X_API_Key="mine", Cookie="a=mine", Accept_Encoding="gzip, br")
        facts = json.loads(body)
        got = {name.lower(): value for name, value in facts["headers"]}
        self.note(status == 200 and "mine" not in body.decode(), "the client's credentials are replaced", body)
        self.note(got.get("accept-encoding") == "identity" and "cookie" not in got and "x-api-key" not in got, "the fields", got)
        self.note("****" in fields.get("X-Echo", "") and "Set-Cookie" not in fields, "the response's fields", fields)
        self.note(facts["path"] == "/api/echo?a=b", "the path", facts["path"])
        for path in ("/pieces", "/packed"):
            status, _, body = self.call("GET", path)
            self.note(status == 200 and b"****" in body, f"the token in {path}", (status, body))
        status, _, body = self.call("GET", "/odd")
        self.note(status == 502, "an unknown coding", (status, body))
        return facts["sent"]

    def bodies(self):
        large = os.urandom(3 << 20)
        for method, body in (("POST", b"{}"), ("PUT", large), ("PATCH", b""), ("DELETE", b"x"), ("PROPFIND", b"<a/>")):
            facts = json.loads(self.call(method, "/echo", body, Content_Type="text/plain")[2])
            self.note(facts["method"] == method and facts["digest"] == hashlib.sha256(body).hexdigest(), f"a body of {method}", facts)
        pieces = [large[start:start + 70_000] for start in range(0, len(large), 70_000)]
        facts = json.loads(self.call("POST", "/echo", iter(pieces), Transfer_Encoding="chunked")[2])
        self.note(facts["digest"] == hashlib.sha256(large).hexdigest(), "a body in chunks", facts["length"])
        status, fields, body = self.call("HEAD", "/echo")
        self.note(status == 200 and body == b"" and int(fields["Content-Length"]) > 100, "HEAD", fields)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        for number in range(20):
            connection.request("GET", f"/api/echo?{number}")
            self.note(json.loads(connection.getresponse().read())["path"].endswith(f"?{number}"), "a kept connection")
        connection.close()

    def redirects(self):
        status, fields, _ = self.call("GET", "/away")
        self.note(status == 302 and fields["Location"].endswith("/stolen"), "a redirect elsewhere is passed on", fields)
        try:
            with urllib.request.urlopen(f"{self.base}/away", timeout=30) as answer:
                sent = answer.read().decode()
            self.note("authorization" not in sent.lower() and "Bearer" not in sent, "and has no credentials", sent)
        except OSError:
            # Behind the wall there is nothing at that address.
            self.note(True, "and leads nowhere")
        status, fields, _ = self.call("GET", "/here")
        own = f"http://{self.host}:{self.port}/api/echo"
        self.note(fields["Location"] == f"{own}?here=1" and fields["Link"].startswith(f"<{own}?page=2>"), "a redirect here", fields)
        with urllib.request.urlopen(f"{self.base}/here", timeout=30) as answer:
            self.note(json.load(answer)["path"] == "/api/echo?here=1", "is followed to the relay")

    def refusals(self):
        host = f"Host: {self.host}:{self.port}\nConnection: close\n"
        for text, status in (
                ("GET /api/echo HTTP/1.1\nHost: rebound.example\n\n", 421),
                (f"GET /api/echo HTTP/1.1\nHost: localhost:{self.port}\n\n", 421),
                ("GET http://other.example/api/echo HTTP/1.1\nHost: other.example\n\n", 421),
                (f"GET /api/echo HTTP/1.1\n{host}Origin: https://page.example\n\n", 403),
                (f"GET /api/echo HTTP/1.1\n{host}Sec-Fetch-Site: cross-site\n\n", 403),
                (f"GET /api/echo HTTP/1.1\n{host}Sec-Fetch-Mode: cors\n\n", 200),
                (f"GET /other HTTP/1.1\n{host}\n", 403), (f"GET /api/../other HTTP/1.1\n{host}\n", 403),
                (f"GET /api/elsewhere/a HTTP/1.1\n{host}\n", 403),
                (f"TRACE /api/echo HTTP/1.1\n{host}\n", 405), (f"CONNECT {self.host}:22 HTTP/1.1\n{host}\n", 400),
                (f"GET /api/echo HTTP/1.1\n{host}Upgrade: websocket\n\n", 501),
                (f"POST /api/echo HTTP/1.1\n{host}Content-Length: 2\nTransfer-Encoding: chunked\n\n0\n\n", 400),
                ("nonsense\n\n", 400)):
            found = self.raw(text)
            self.note(found == status, text.split("\n")[0] + " " + text.split("\n")[-3][:30], f"{found}, not {status}")

    def events(self):
        request = urllib.request.Request(
            f"{self.base}/chat/completions", json.dumps({"model": "m", "stream": True}).encode(),
            {"Authorization": "Bearer dummy", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = []
            for line in answer:
                if line.startswith(b"data: {"):
                    found.append(json.loads(line[6:])["choices"][0]["delta"]["content"])
                    self.call("POST", "/go")
        self.note(found == ["0", "1", "2"], "events come one by one", found)
        with urllib.request.urlopen(urllib.request.Request(
                f"{self.base}/chat/completions", b'{"model":"m"}', {"Authorization": "Bearer dummy"}), timeout=30) as answer:
            self.note(json.load(answer)["choices"][0]["message"]["content"] == "hello", "a completion")

    def curl(self):
        ended = subprocess.run(["curl", "-sS", "-i", "--max-time", "30", "-H", "Authorization: Bearer mine", f"{self.base}/echo"],
                               capture_output=True, text=True)
        self.came += ended.stdout
        self.note(ended.returncode == 0 and "200" in ended.stdout.split("\n")[0] and "mine" not in ended.stdout, "curl", ended)

    def use(self):
        sent = self.credentials()
        for part in (self.bodies, self.redirects, self.refusals, self.events, self.half_closed, self.curl):
            try:
                part()
            except Exception as error:  # Whatever ends a part is its result.
                self.note(False, part.__name__, repr(error))
        first = self.call("GET", "/refused")[0]
        again = self.call("GET", "/refused")[2].decode()
        self.note(first == 401, "a refused token", first)
        # Who started this knows the token, and looks for it.
        with open("came", "w", encoding="utf-8", errors="replace") as file:
            file.write(self.came)
        with open("relayed.json", "w", encoding="utf-8") as file:
            json.dump({"rows": self.rows, "sent": sent, "again": again}, file)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        Client(os.environ["API"]).use()
