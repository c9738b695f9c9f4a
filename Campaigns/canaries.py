#!/usr/bin/env -S python3 -B
"""SK-21, SK-29: looks for every secret of a run in every place where none may be.

A daemon that logs everything, a client with a secret, a vault with a passphrase; sign-ins that end well and badly,
refreshes, wrong answers, hostile callbacks, mistakes in the configuration, sign-out, crashes. All the while the command
lines and environments of the daemon, its helper and the command line are read. Afterwards none of the secrets (each
recognizable, each known from the provider's own log) is in a log, in the output of a command that is not to print it,
in what was kept, in a temporary file or in what a crash left.
"""

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

from answers import HTML
from harness import Trouble, UnixHTTP, children, played, progress, read, stop, table, tcp_request, write
from house import ACCOUNT, PASSPHRASE, House
from kinds import openid_account
from memory_search import encoded
from operations import REFRESH, SESSION
from proxy import Answer, Cut, Instead, Proxy, compose

# What the sandbox's secrets look like: at-, rt- and code- with 256 random bits.
PATTERN = re.compile(rb"\b(?:at|rt|code)-[A-Za-z0-9_-]{43}")
SHORTEST = 16

CLIENT_SECRET = "client-secret-canary-5uNbE4mW1tHf3aTh3r"
INLINE_SECRET = "inline-secret-canary-9wInGs0fTh3s0nG"


def files(house):
    """Everything below the private directory, but what the secrets were put into by the campaign itself."""
    own = {house.place("config/client.secret"), house.configuration}
    for directory, _, names in os.walk(house.directory):
        for name in names:
            path = os.path.join(directory, name)
            if path not in own and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    yield "file " + os.path.relpath(path, house.directory), file.read()


class Watcher(threading.Thread):
    """Reads command lines and environments of the processes it is told of, and of their children."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pids = set()
        self.seen = {}
        self.unreadable = set()
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.01):
            for pid in list(self.pids):
                self.look(pid)

    def look(self, pid):
        family = [pid]
        with contextlib.suppress(OSError):
            family += children(pid)
        for member in family:
            for name in ["cmdline", "environ"]:
                try:
                    with open(f"/proc/{member}/{name}", "rb") as file:
                        self.seen.setdefault((member, name), set()).add(file.read())
                except PermissionError:
                    self.unreadable.add((member, name))
                except OSError:
                    pass


class Walk:
    """What happens while the secrets are about."""

    def __init__(self, house, report, watcher):
        self.house = house
        self.report = report
        self.watcher = watcher
        # Secrets that no provider has seen, and the rest by and by.
        self.secrets = {CLIENT_SECRET: "client secret", INLINE_SECRET: "inline secret", PASSPHRASE: "passphrase"}
        self.output = []
        self.steps = 0
        self.proxy = Proxy(house.sandbox.issuer)

    def expect(self, what, answer, *statuses):
        """A step that does not go as planned leaves secrets unlooked for: a failure."""
        self.steps += 1
        status, document = answer
        self.report.note(status in statuses, what, f"answered {status} {document}")
        # Problem documents are shown to people.
        if status >= 400:
            self.output.append((f"answer to {what}", json.dumps(document).encode()))
        return document

    def command(self, *arguments, text=None, is_secret=False, statuses=(0,)):
        """Runs `ringback`; what it prints is looked at, but for the output that is the secret asked for."""
        process = subprocess.Popen(
            [self.house.program(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.house.environment, cwd=self.house.place("tmp"))
        self.watcher.pids.add(process.pid)
        self.watcher.look(process.pid)
        try:
            out, complaints = process.communicate(text.encode() if text else None, timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            out, complaints = process.communicate()
        name = "ringback " + " ".join(arguments)
        self.steps += 1
        why = f"exit status {process.returncode}: {complaints[-200:].decode(errors='replace')}"
        self.report.note(process.returncode in statuses, name, why)
        self.output.append((name + ": stderr", complaints))
        if not is_secret:
            self.output.append((name + ": stdout", out))
        return out.decode(errors="replace")

    def snapshot(self, when):
        """What is kept and what is temporary, as it is now."""
        self.output += [(f"{where} {when}", text) for where, text in files(self.house)]

    def page(self, path):
        """An answer for everybody's eyes, whatever its type."""
        connection = UnixHTTP(self.house.socket)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        self.steps += 1
        self.report.note(answer.status == 200, f"GET {path}", f"answered {answer.status}")
        self.output.append((f"answer to GET {path}", body))

    def listen(self):
        """Reads the events until the daemon ends."""

        def read():
            connection = UnixHTTP(self.house.socket)
            connection.timeout = None
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/v1/events")
                answer = connection.getresponse()
                while piece := answer.read1(65_536):
                    self.output.append(("events", piece))
            connection.close()

        threading.Thread(target=read, daemon=True).start()

    def start(self):
        self.house.start()
        self.watcher.pids.add(self.house.daemon.pid)
        self.watcher.look(self.house.daemon.pid)
        self.house.unlock()
        self.listen()

    def configure(self, more=""):
        """The account's client has a secret, in a file of its own."""
        path = write(self.house.place("config/client.secret"), CLIENT_SECRET + "\n")
        account = openid_account(ACCOUNT, self.house.sandbox.issuer, client_id="canary", client_secret_file=path)
        write(self.house.configuration, account + more)

    def sign_in_by_hand(self):
        """`ringback login --no-browser`, and the callback pasted into `ringback complete`."""
        process = subprocess.Popen(
            [self.house.program(), "login", ACCOUNT, "--again", "--no-browser"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.house.environment,
        )
        self.watcher.pids.add(process.pid)
        url = process.stdout.readline().decode().strip()
        callback = self.house.sandbox.approve(url)
        time.sleep(0.05)
        self.command("complete", text=callback + "\n")
        try:
            out, complaints = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            stop(process)
            out, complaints = b"", b"it did not end"
        self.steps += 1
        self.report.note(process.returncode == 0, "ringback login", complaints.decode(errors="replace"))
        self.output += [("ringback login: stdout", out), ("ringback login: stderr", complaints)]

    def failed_sign_ins(self):
        """Lies in the callback and in the answer; a code that comes to the wrong door."""
        sandbox = self.house.sandbox
        sandbox.control(perturb=[{"name": "id_token_wrong_signature", "count": 1}])
        self.expect("a sign-in with a forged ID token", self.house.sign_in(), 200, 502)
        for lie in ["callback_wrong_state", "callback_with_error", "callback_repeated_state", "callback_with_tokens"]:
            sandbox.control(perturb=[{"name": lie, "count": 1}])
            flow = self.expect("a sign-in", self.begin(), 200, 201)
            callback = sandbox.approve(flow["authorization_url"])
            tcp_request(callback)
            answer = self.house.api("POST", "/v1/callbacks", {"url": callback})
            self.expect("a callback to the API", answer, 200, 400, 410)
            self.expect("cancelling", self.house.api("DELETE", f"/v1/flows/{flow['id']}?all=true"), 200)
        answer = self.house.api("POST", "/v1/callbacks", {"url": callback[:-20], "x": 1})
        self.expect("half a callback", answer, 400, 410)

    def begin(self):
        return self.house.api("POST", f"/v1/accounts/{ACCOUNT}/sign-in", {"method": "browser"})

    def failed_refreshes(self):
        wrong = [
            Instead(lambda answer: compose(500, [], HTML), False),
            Instead(lambda answer: compose(400, [("Content-Type", "application/json")], Answer(answer).body), True),
            Instead(lambda answer: compose(200, [("Content-Type", "text/plain")], Answer(answer).body[:-1]), True),
            Instead(lambda answer: b"HTTP/1.1 200 OK\r\nX: " + Answer(answer).body + b"\r\n\r\n{}", True),
            Instead(lambda answer: b"HTTP/1.1 302 Found\r\nLocation: /?" + Answer(answer).body[-200:], True),
            Cut(150), Cut(400), Cut(0),
        ]
        for plan in wrong:
            self.proxy.next(plan)
            answer = self.house.api("POST", REFRESH, {"force": True})
            self.expect("a refresh that fails", answer, 200, 502, 503, 422, 400)
            self.expect("the next refresh", self.house.api("POST", REFRESH, {"force": True}), 200)

    def mistakes(self):
        """A configuration that is wrong just where a secret is."""
        secret = f'client_secret = "{INLINE_SECRET}'
        self.configure(f'[accounts.bad]\nissuer = 7\nclient_id = ["x"]\n{secret}"\nclient_sekret = 1\n')
        self.expect("reloading mistakes", self.house.api("POST", "/v1/reload", {}), 400)
        self.command("config", "check", statuses=(78,))
        self.configure(f'[accounts.bad]\nissuer = "{self.house.sandbox.issuer}"\nclient_id = "x\n{secret}')
        self.expect("reloading half a file", self.house.api("POST", "/v1/reload", {}), 400)
        self.command("config", "check", statuses=(78,))
        self.configure()
        self.expect("reloading", self.house.api("POST", "/v1/reload", {}), 200)

    def crash(self, number):
        """The kernel's own word: what the daemon leaves behind then is all there is."""
        self.snapshot(f"before signal {number}")
        self.house.daemon.send_signal(number)
        self.house.daemon.wait()
        self.steps += 1
        self.report.note(self.house.daemon.returncode == -number, f"signal {number}", f"{self.house.daemon.returncode}")
        self.house.daemon = None
        self.snapshot(f"after signal {number}")
        self.start()

    def vault(self):
        api = self.house.api
        self.expect(
            "rekeying", api("POST", "/v1/vault/rekey", {"key_source": "passphrase", "passphrase": PASSPHRASE}), 200)
        self.snapshot("with a passphrase")
        self.expect("locking", api("POST", "/v1/vault/lock", {}), 200)
        self.expect("a session of a locked vault", api("GET", SESSION), 423)
        self.expect("a wrong passphrase", api("POST", "/v1/vault/unlock", {"passphrase": PASSPHRASE + "x"}), 401, 423)
        self.command("unlock", text=PASSPHRASE + "\n")
        self.expect("a session of an unlocked vault", api("GET", SESSION), 200)

    def run(self):
        house = self.house
        client = {"id": "canary", "secret": CLIENT_SECRET}
        house.fresh(reuse_grace=30, endpoints={"token": self.proxy.url}, clients=[client])
        self.configure()
        self.start()
        self.sign_in_by_hand()
        self.command("token", ACCOUNT, is_secret=True)
        self.command("session", ACCOUNT, is_secret=True)
        for verb in [["accounts"], ["status"], ["refresh", ACCOUNT], ["reload"]]:
            self.command(*verb)
        self.expect("every kind of token", house.api("GET", SESSION + "?include=id_token,user"), 200)
        self.snapshot("signed in")
        self.failed_sign_ins()
        self.failed_refreshes()
        self.snapshot("after failures")
        self.mistakes()
        self.vault()
        for number in [signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGKILL]:
            self.crash(number)
            self.expect("a session after a crash", house.api("GET", SESSION), 200)
            self.expect("a refresh after a crash", house.api("POST", REFRESH, {"force": True}), 200)
        house.sandbox.control(faults=[{"endpoint": "revocation", "kind": "status", "status": 503, "count": 1}])
        for path in ["status", "accounts", "flows", "peer", "audit", "metrics"]:
            self.page("/v1/" + path)
        self.command("logout", ACCOUNT)
        self.snapshot("signed out, the provider not told")
        self.expect("signing in again", self.house.sign_in(), 200)
        house.sandbox.control(revoke_all=True)
        self.expect("a refresh of a dead session", house.api("POST", REFRESH, {"force": True}), 401)
        stop(house.daemon)

    def collect(self):
        """What the provider was told and what it gave out."""
        for request in self.house.sandbox.look("log")["requests"]:
            for name in ["code", "code_verifier", "refresh_token", "client_secret", "token"]:
                value = request["parameters"].get(name)
                for text in value if isinstance(value, list) else [value] if value else []:
                    self.secrets.setdefault(text, name)
            kind, _, credentials = request["headers"].get("authorization", "").partition(" ")
            if credentials:
                self.secrets.setdefault(credentials, f"{kind} credentials")
        for _, _, _, answer, _ in self.proxy.seen:
            try:
                document = json.loads(Answer(answer).body) if answer else {}
            except ValueError:
                continue
            for name in ["access_token", "refresh_token", "id_token"]:
                if isinstance(document.get(name), str):
                    self.secrets.setdefault(document[name], name)


def forms(secret):
    """A secret as it would stand in a file: itself, in hexadecimal, and in Base64 at each of the three places."""
    plain = secret.encode()
    return [plain, plain.hex().encode(), *encoded(plain)]


def places(house, walk, watcher):
    """Every text that is looked at, and what it is."""
    yield from files(house)
    yield from walk.output
    for (pid, name), contents in watcher.seen.items():
        for content in contents:
            yield f"/proc/{pid}/{name} of {content.split(bytes(1))[0].decode(errors='replace')[-40:]}", content


def is_searchable():
    """The search finds what is there: a secret in each of its forms, wherever it begins."""
    secret = "at-canary-that-is-there"
    padded = [b"x" * before + secret.encode() + b"yz" for before in range(3)]
    texts = [secret.encode(), secret.encode().hex().encode(), *map(base64.b64encode, padded)]
    return all(any(form in b"before" + text + b"behind" for form in forms(secret)) for text in texts)


def search(report, house, walk, watcher):
    """Returns a row per kind of secret."""
    report.note(is_searchable(), "the search", "does not find a secret that is there")
    looked = list(places(house, walk, watcher))
    rows = {}
    for secret, kind in walk.secrets.items():
        row = rows.setdefault(kind, [0, 0])
        if len(secret) < SHORTEST:
            report.note(False, kind, "too short to be told from anything else")
            continue
        found = sorted({where for form in forms(secret) for where, text in looked if form in text})
        row[0] += 1
        row[1] += len(found)
        report.note(not found, f"a {kind}", "found in " + ", ".join(found[:3]))
    for where, text in looked:
        found = PATTERN.search(text)
        report.note(not found, where, "has what looks like " + (found.group()[:8].decode() + "…" if found else ""))
    return looked, rows


@played()
def campaign(chosen, report, places):
    watcher = Watcher()
    house = places.add(House(chosen.bin, shimmed=False, log_level="trace"), chosen.keep)
    walk = Walk(house, report, watcher)
    places.add(walk.proxy)
    watcher.start()
    progress("walking")
    try:
        walk.run()
    except (Trouble, KeyError) as trouble:
        report.note(False, "the walk", f"it broke off: {type(trouble).__name__} {trouble} {house.why()}")
    finally:
        watcher.is_over.set()
        watcher.join()
    walk.collect()
    house.kill()
    progress(f"looking for {len(walk.secrets)} secrets")
    looked, rows = search(report, house, walk, watcher)
    table("Canaries", ["secret", "of them", "found"], [[kind, *row] for kind, row in sorted(rows.items())])
    print(f"\nsteps: {walk.steps}; places looked at: {len(looked)}; bytes: {sum(len(text) for _, text in looked)}")
    print(f"core files would go to: {read('/proc/sys/kernel/core_pattern').strip()}")
    if watcher.unreadable:
        print(f"of processes, not readable without being root: {len(watcher.unreadable)}")
