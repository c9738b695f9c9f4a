#!/usr/bin/env python3
"""Answers in a daemon's place: whatever is asked of its socket, it says the same.

    hostile_daemon.py SOCKET DOCUMENT

Prints a line when it listens, and goes on until it is ended.
"""
import socket
import sys

path, document = sys.argv[1:]
body = document.encode()
head = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
    f"Content-Length: {len(body)}\r\n\r\n").encode()


def answer(connection):
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(65536)
        if not part:
            return
        request += part
    start, _, rest = request.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in start.split(b"\r\n")[1:] if b":" in line)
    missing = int(fields.get(b"content-length", b"0")) - len(rest)
    while missing > 0 and (part := connection.recv(65536)):
        missing -= len(part)
    connection.sendall(head + body)


server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(16)
print("listening", flush=True)
while True:
    with server.accept()[0] as connection:
        try:
            answer(connection)
        except OSError:
            # Whoever asked has gone.
            pass
