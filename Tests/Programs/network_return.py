#!/usr/bin/env python3
"""A machine that loses its network and gets it back, in a network namespace of its own.

    unshare -n network_return.py BINARIES DIRECTORY     (unshare -rn where the caller is not root)

Starts ringback-sandbox and ringbackd, signs in, takes the loopback interface down and up again, and says what happened:
one line `name value` for each thing that was seen. It judges nothing. It waits for events alone, each within a bound.
"""
import fcntl
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.parse

BOUND = 20 * max(1, int(os.environ.get("RINGBACK_TEST_PATIENCE") or 1))
binaries, directory = sys.argv[1:]
API = directory + "/run/ringback.sock"


def say(name, value):
    print(name, json.dumps(value), flush=True)


def loopback(is_up):
    """What `ip link set lo up` does, and `down`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP.
        entry = fcntl.ioctl(any_socket, 0x8913, struct.pack("16sH22x", b"lo", 0))
        flags = struct.unpack("16sH22x", entry)[1]
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", flags | 1 if is_up else flags & ~1))


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(API)


def exchange(connection, method, path, body=None, headers=None):
    headers = dict(headers or {})
    if isinstance(body, dict):
        body, headers["Content-Type"] = json.dumps(body), "application/json"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, answer.headers, data


def api(method, path, body=None):
    status, _, data = exchange(UnixConnection("ringback", timeout=2 * BOUND), method, path, body)
    return status, json.loads(data)


def web(url, method="GET", body=None, headers=None):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=BOUND)
    return exchange(connection, method, parts._replace(scheme="", netloc="").geturl(), body, headers)


def events():
    """What the daemon tells of the account, as (name, data)."""
    connection = UnixConnection("ringback", timeout=2 * BOUND)
    connection.request("GET", "/v1/events?account=work")
    name = None
    for line in connection.getresponse():
        line = line.decode().strip()
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            yield name, json.loads(line[5:])


def await_event(stream, wanted):
    for name, data in stream:
        if name == wanted:
            return data
    raise SystemExit("the events ended before " + wanted)


def sign_in():
    """As a person with a browser does it."""
    navigation = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": "text/html"}
    _, flow = api("POST", "/v1/accounts/work/sign-in", {})
    page_url = flow["authorization_url"]
    page = web(page_url, headers=navigation)[2].decode()
    form = {"interaction": re.search(r'name="interaction" value="([^"]*)"', page)[1], "user": "alice",
            "decision": "allow"}
    action = urllib.parse.urljoin(page_url, re.search(r'action="([^"]*)"', page)[1])
    posted = dict(navigation, **{"Content-Type": "application/x-www-form-urlencoded"})
    callback = web(action, "POST", urllib.parse.urlencode(form), posted)[1]["Location"]
    return web(callback, headers=navigation)[0]


def control(switches):
    web(issuer + "/sandbox/control", "POST", switches)


def counters():
    return json.loads(web(issuer + "/sandbox/counters")[2])


loopback(True)
os.makedirs(directory + "/run", mode=0o700)
environment = {"PATH": "/usr/bin:/bin", "HOME": directory, "XDG_RUNTIME_DIR": directory + "/run",
               "XDG_DATA_HOME": directory + "/data"}
programs = []
try:
    sandbox = subprocess.Popen([binaries + "/ringback-sandbox", "--port", "0"], env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    programs.append(sandbox)
    issuer = sandbox.stdout.readline().split()[-1]
    with open(directory + "/config.toml", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(f'[accounts.work]\nissuer = "{issuer}"\nclient_id = "ringback-demo"\n'
                   'scopes = ["openid", "offline_access"]\n')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(directory + "/notify")
        notices.settimeout(BOUND)
        daemon = subprocess.Popen(
            [binaries + "/ringbackd", "--config", directory + "/config.toml", "--socket", API, "--state",
             directory + "/state"],
            env=dict(environment, NOTIFY_SOCKET=directory + "/notify"), stdin=subprocess.DEVNULL)
        programs.append(daemon)
        while b"READY=1" not in notices.recv(4096):
            pass

    control({"access_token_lifetime": 8})
    say("signed-in", sign_in())
    token = api("GET", "/v1/accounts/work/session")[1]["access_token"]
    stream = events()
    # Each failure doubles the back-off. A provider that says no is quicker than a network that says nothing.
    control({"access_token_lifetime": 3600,
             "faults": [{"endpoint": "token", "kind": "status", "status": 503, "count": 8}]})
    for _ in range(8):
        api("POST", "/v1/accounts/work/refresh", {"force": True})
    say("failures", counters()["requests"]["token"] - 1)
    before = counters()["requests"]["token"]

    loopback(False)
    status, answer = api("POST", "/v1/accounts/work/refresh", {"force": True})
    say("refused", [status, answer.get("code")])
    account = api("GET", "/v1/accounts/work")[1]
    say("account", [account["state"], account.get("error", {}).get("code"), account.get("subject")])
    # The attempt took longer than the token lived: from now on the back-off alone keeps the daemon from asking.
    status, answer = api("GET", "/v1/accounts/work/session")
    say("session", [status, answer.get("code")])

    loopback(True)
    at = time.monotonic()
    await_event(stream, "token_refreshed")
    say("seconds", int(time.monotonic() - at))
    say("requests", counters()["requests"]["token"] - before)
    status, session = api("GET", "/v1/accounts/work/session")
    say("session-again", [status, session.get("access_token") not in (None, token)])
    account = api("GET", "/v1/accounts/work")[1]
    say("account-again", [account["state"], account.get("error"), account.get("subject")])
finally:
    for program in reversed(programs):
        program.send_signal(signal.SIGTERM)
        try:
            program.wait(BOUND)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
