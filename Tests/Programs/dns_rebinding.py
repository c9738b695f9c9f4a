#!/usr/bin/env python3
"""Names whose address changes between two lookups (DNS rebinding), in a network namespace of its own.

    unshare -n dns_rebinding.py BINARIES DIRECTORY     (unshare -rn where the caller is not root)

Makes a resolver for the names of the servers, MCP servers with their authorization servers at addresses outside, and the same
servers on loopback, where no request may come. Signs in at each of them with a private daemon, and says what happened: one
line `name value` for each thing that was seen. It judges nothing. It waits for events alone, each within a bound.
"""
import collections
import ctypes
import fcntl
import http.client
import http.server
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import urllib.parse

BOUND = 20 * max(1, int(os.environ.get("RINGBACK_TEST_PATIENCE") or 1))
binaries, directory = sys.argv[1:]
API = directory + "/run/ringback.sock"
DOMAIN = "rebinding.test"
# Outside, in a private network, on this machine.
OUTSIDE, PRIVATE, INSIDE = "198.51.100.2", "10.1.2.3", "127.0.0.1"
# A port for each endpoint: libcurl remembers the address of a name and a port.
SERVER, ISSUER, REGISTRATION, TOKEN = 8443, 8444, 8445, 8446

# The sign-ins: the host of the authorization server, and the addresses of the two hosts, one for each lookup; the last one
# stays.
CASES = {
    "honest": ("id", [OUTSIDE], [OUTSIDE]),
    "issuer": ("id", [OUTSIDE], [OUTSIDE, INSIDE]),
    "server": ("mcp", [OUTSIDE, INSIDE], []),
    "inside": ("id", [OUTSIDE], [INSIDE]),
    "private": ("id", [OUTSIDE], [PRIVATE]),
    "network": ("id", [PRIVATE], [PRIVATE]),
    # The server's name leads inside after the sign-in.
    "moved": ("id", [OUTSIDE, INSIDE], [OUTSIDE]),
}
lookups = collections.Counter()
# What came to each address: (address, what).
seen = []


def say(name, value):
    print(name, json.dumps(value), flush=True)


# MARK: the network

def set_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS with IFF_UP.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", 1))


def route_to_loopback(address):
    """What `ip route add local ADDRESS dev lo` does. The address is not one of an interface."""
    destination = struct.pack("=HH4s", 8, 1, socket.inet_aton(address))
    interface = struct.pack("=HHi", 8, 4, socket.if_nametoindex("lo"))
    # RTM_NEWROUTE; a host's route of the type and the table `local`.
    route = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, 255, 3, 254, 2, 0) + destination + interface
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(route), 24, 0x405, 1, 0) + route)
        error = struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    if error:
        raise OSError(-error, "RTM_NEWROUTE")


def use_resolver():
    """The system's resolver asks the one below: in a mount namespace, with files of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    # CLONE_NEWNS; then MS_REC | MS_PRIVATE.
    if libc.unshare(0x20000) != 0 or libc.mount(None, b"/", None, 0x44000, None) != 0:
        raise OSError(ctypes.get_errno(), "no mount namespace")
    files = {"resolv.conf": f"nameserver {INSIDE}\n", "nsswitch.conf": "hosts: dns\npasswd: files\ngroup: files\n"}
    for name, text in files.items():
        place = os.path.join(directory, name)
        with open(place, "w") as file:
            file.write(text)
        # MS_BIND.
        if libc.mount(place.encode(), b"/etc/" + name.encode(), None, 0x1000, None) != 0:
            raise OSError(ctypes.get_errno(), "/etc/" + name)


def answer_lookups():
    """Answers questions for IPv4 addresses (RFC 1035); there are no others."""
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind((INSIDE, 53))

    def serve():
        while True:
            query, asker = resolver.recvfrom(512)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
                at += 1 + query[at]
            kind = struct.unpack_from(">H", query, at + 1)[0]
            case, _, role = labels[0].partition("-")
            found = dict(zip(("mcp", "id"), CASES[case][1:])).get(role) if case in CASES else None
            answer = b""
            if kind == 1 and found:
                address = found[min(lookups[labels[0]], len(found) - 1)]
                lookups[labels[0]] += 1
                answer = struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
            flags, code = 0x8580, 0 if found else 3
            head = query[:2] + struct.pack(">HHHHH", flags | code, 1, 1 if answer else 0, 0, 0)
            resolver.sendto(head + query[12:at + 5] + answer, asker)

    threading.Thread(target=serve, daemon=True).start()


# MARK: the servers

class Server(http.server.ThreadingHTTPServer):
    def get_request(self):
        connection, place = super().get_request()
        if self.server_address[0] == INSIDE:
            seen.append((INSIDE, f"connection to port {self.server_port}"))
        return connection, place

    def finish_request(self, request, client_address):
        with tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, *_):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def serve(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen.append((self.server.server_address[0], f"{self.command} {self.path}"))
        label = self.headers["Host"].partition(".")[0]
        case = label.partition("-")[0]
        base = f"https://{label}.{DOMAIN}"
        status, fields, body = 200, {}, {}
        if self.path == "/mcp":
            place = f"{base}:{SERVER}/.well-known/oauth-protected-resource/mcp"
            status, fields = 401, {"WWW-Authenticate": f'Bearer resource_metadata="{place}"'}
        elif self.path.startswith("/.well-known/oauth-protected-resource"):
            issuer = f"https://{case}-{CASES[case][0]}.{DOMAIN}:{ISSUER}"
            body = {"resource": f"{base}:{SERVER}/mcp", "authorization_servers": [issuer]}
        elif self.path == "/.well-known/oauth-authorization-server":
            body = {
                "issuer": f"{base}:{ISSUER}", "authorization_endpoint": f"{base}:{ISSUER}/authorize",
                "token_endpoint": f"{base}:{TOKEN}/token", "registration_endpoint": f"{base}:{REGISTRATION}/register",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"], "grant_types_supported": ["authorization_code"],
            }
        elif self.path == "/register":
            status, body = 201, {"client_id": "c1", "token_endpoint_auth_method": "none"}
        elif self.path == "/token":
            body = {"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}
        else:
            status = 404
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (fields | {"Content-Type": "application/json", "Content-Length": str(len(text))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = serve


def start_servers():
    global tls
    certificate, key = directory + "/server.pem", directory + "/server-key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=test", "-addext", f"subjectAltName=DNS:*.{DOMAIN}", "-out", certificate, "-keyout", key],
        check=True, stderr=subprocess.DEVNULL)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    for address in (OUTSIDE, PRIVATE, INSIDE):
        for port in (SERVER, ISSUER, REGISTRATION, TOKEN):
            server = Server((address, port), Handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
    return certificate


# MARK: the daemon

def api(method, path, body=None):
    connection = http.client.HTTPConnection("ringback", timeout=3 * BOUND)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(3 * BOUND)
    connection.sock.connect(API)
    fields = {"Content-Type": "application/json"} if body is not None else {}
    connection.request(method, path, None if body is None else json.dumps(body), fields)
    response = connection.getresponse()
    found = json.loads(response.read())
    connection.close()
    return response.status, found


def approve(page):
    """What the authorization server's page and the browser do."""
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page).query))
    callback = urllib.parse.urlsplit(query["redirect_uri"])
    back = urllib.parse.urlencode({"code": "code1", "state": query["state"]})
    connection = http.client.HTTPConnection(callback.hostname, callback.port, timeout=BOUND)
    navigation = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": "text/html"}
    connection.request("GET", callback.path + "?" + back, headers=navigation)
    connection.getresponse().read()
    connection.close()


def play(case):
    """A sign-in: what the daemon says of its page, how often each name was looked up until then, and how it ended."""
    seen.clear()
    _, flow = api("POST", f"/v1/accounts/{case}/sign-in", {})
    page = flow.get("authorization_url")
    say(case + "-page", True if page else flow.get("code"))
    say(case + "-lookups", {name.partition("-")[2]: count for name, count in sorted(lookups.items()) if name.startswith(case)})
    if page:
        approve(page)
        _, found = api("GET", f"/v1/flows/{flow['id']}?wait={BOUND}")
        say(case + "-end", found.get("error", {}).get("code") or found["status"])
    say(case + "-tokens", [address for address, what in seen if what == "POST /token"])
    say(case + "-inside", [what for address, what in seen if address == INSIDE])
    say(case + "-private", [what for address, what in seen if address == PRIVATE and case != "network"])


def bridge(case):
    """A message of a client of `ringback mcp`: the error that it gets, and where something came."""
    seen.clear()
    message = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    ran = subprocess.run(
        [binaries + "/ringback", "mcp", case], input=json.dumps(message) + "\n", capture_output=True, text=True,
        timeout=3 * BOUND, env={"PATH": "/usr/bin:/bin", "HOME": directory, "RINGBACK_SOCK": API})
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    say(case + "-bridge", answers[0].get("error", {}).get("message") if answers else ran.stderr)
    say(case + "-servers", sorted({address for address, _ in seen}))


set_up_loopback()
for place in (OUTSIDE, PRIVATE):
    route_to_loopback(place)
use_resolver()
answer_lookups()
authority = start_servers()
os.makedirs(directory + "/run", mode=0o700)
with open(directory + "/config.toml", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
    for case in CASES:
        file.write(f'[accounts.{case}]\nmcp = "https://{case}-mcp.{DOMAIN}:{SERVER}/mcp"\nca_file = "{authority}"\n')
daemon = None
try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(directory + "/notify")
        notices.settimeout(BOUND)
        daemon = subprocess.Popen(
            [binaries + "/ringbackd", "--config", directory + "/config.toml", "--socket", API, "--state",
             directory + "/state"],
            env={"PATH": "/usr/bin:/bin", "HOME": directory, "XDG_RUNTIME_DIR": directory + "/run",
                 "XDG_DATA_HOME": directory + "/data", "NOTIFY_SOCKET": directory + "/notify"}, stdin=subprocess.DEVNULL)
        while b"READY=1" not in notices.recv(4096):
            pass
    for case in CASES:
        play(case)
    for case in ("honest", "moved"):
        bridge(case)
finally:
    if daemon:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(BOUND)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
