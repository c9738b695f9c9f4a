"""A small proxy in front of the sandbox's token endpoint, which spoils answers on their way.

What it does with the next answer is its `plan`: a function of the whole answer (bytes, or None before the provider was
asked) that returns what is sent. Every answer the provider gave is kept, and how much of it was handed to the network.
"""

import http.client
import socket
import threading
import time
import urllib.parse


class Plan:
    """Passes everything on."""

    # False: the provider never hears of the request.
    forwards = True
    # Seconds before anything happens.
    delay = 0

    def spoil(self, answer):
        return answer


class Cut(Plan):
    """The connection ends after so many bytes of the answer."""

    def __init__(self, length):
        self.length = length

    def spoil(self, answer):
        return answer[:self.length]


class Instead(Plan):
    """Another answer; made from the provider's own if it was asked."""

    def __init__(self, make, forwards):
        self.make = make
        self.forwards = forwards

    def spoil(self, answer):
        return self.make(answer)


class Answer:
    """An HTTP answer taken apart, to be put together in another way."""

    def __init__(self, whole):
        head, _, self.body = whole.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.fields = [tuple(line.split(": ", 1)) for line in lines[1:]]


def compose(status, fields, body, length=None):
    """The bytes of an answer; `length` is what Content-Length says, if not the truth (False: nothing)."""
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unnamed')}"]
    lines += [f"{name}: {value}" for name, value in fields]
    if length is not False:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Proxy:
    def __init__(self, issuer):
        parts = urllib.parse.urlsplit(issuer)
        self.target = (parts.hostname, parts.port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.origin = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        # Of the token endpoint.
        self.url = f"{self.origin}/token"
        self.choose = lambda request: Plan()
        self.lock = threading.Lock()
        # (when, the path, the request's body, the provider's answer or None, bytes sent)
        self.seen = []
        threading.Thread(target=self.accept, daemon=True).start()

    def next(self, plan):
        """This plan for the next request, and none for those after."""
        plans = [plan]
        self.choose = lambda request: plans.pop() if plans else Plan()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            connection.settimeout(60)
            try:
                self.exchange(connection)
            except OSError:
                return

    def exchange(self, connection):
        head, body = read_request(connection)
        if not head:
            return
        at = time.monotonic()
        with self.lock:
            plan = self.choose(body)
        if plan.delay:
            threading.Event().wait(plan.delay)
        answer = self.ask(head, body) if plan.forwards else None
        sending = plan.spoil(answer)
        if sending:
            connection.sendall(sending)
        with self.lock:
            path = head.split(b" ")[1].decode("latin-1").split("?")[0]
            self.seen.append((at, path, body, answer, len(sending or b"")))

    def ask(self, head, body):
        """The provider's answer, whole."""
        lines = head.split(b"\r\n")
        kept = [line for line in lines[1:] if line.split(b":")[0].lower() not in (b"host", b"connection")]
        host = f"Host: {self.target[0]}:{self.target[1]}".encode()
        with socket.create_connection(self.target, timeout=60) as provider:
            provider.sendall(b"\r\n".join([lines[0], host, b"Connection: close", *kept]) + b"\r\n\r\n" + body)
            answer = b""
            while piece := provider.recv(65_536):
                answer += piece
            return answer

    def close(self):
        self.listener.close()


def read_request(connection):
    """Head (without its end) and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            return b"", b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        piece = connection.recv(65_536)
        if not piece:
            return b"", b""
        body += piece
    return head, body
