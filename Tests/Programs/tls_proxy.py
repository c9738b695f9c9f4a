#!/usr/bin/env python3
"""An HTTP proxy that inspects TLS, as companies have them. It knows one name, provider.test, ends the TLS of a tunnel to
it with a certificate of its own, and passes what it reads on to a port of 127.0.0.1, without TLS. Prints its port, then a
line for each request: the method and the target. The certificate is made when it starts, in DIRECTORY/authority.pem.

    tls_proxy.py DIRECTORY PORT"""

import select
import socket
import socketserver
import ssl
import subprocess
import sys

CERTIFICATE = sys.argv[1] + "/authority.pem"
KEY = sys.argv[1] + "/authority-key.pem"
PORT = int(sys.argv[2])


def tunnel(outer, inner):
    while True:
        ready = [outer] if outer.pending() else select.select([outer, inner], [], [])[0]
        for source in ready:
            data = source.recv(16384)
            if not data:
                return
            (inner if source is outer else outer).sendall(data)


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            data = self.request.recv(4096)
            if not data:
                return
            head += data
        method, target = head.split(b" ")[:2]
        print(method.decode(), target.decode(), flush=True)
        if (method, target) != (b"CONNECT", b"provider.test:443"):
            self.request.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            with context.wrap_socket(self.request, server_side=True) as outer:
                with socket.create_connection(("127.0.0.1", PORT)) as inner:
                    tunnel(outer, inner)
        except OSError:
            # A client that does not trust the certificate ends the handshake.
            pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
     "-subj", "/CN=test", "-addext", "subjectAltName=DNS:provider.test", "-keyout", KEY, "-out", CERTIFICATE],
    check=True, stderr=subprocess.DEVNULL)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
with Server(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
