"""What every campaign and every benchmark is made of: a daemon in a private directory, requests to it, waiting with a bound,
and the report: progress on standard error, tables and the last line, "N passed, N failed", on standard output.
"""

import argparse
import base64
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


class Trouble(Exception):
    """Something that a campaign needs is missing or does not work: what failed, for the person who runs it."""


class Died(Trouble):
    """The daemon went away in the middle of a request."""


class Refuted(Exception):
    """Something is not as it has to be: what was asked, what came."""


def expect(is_right, otherwise):
    if not is_right:
        raise Refuted(otherwise)


def options(description, **more):
    """The options that every campaign has, and more by name: (default, help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", default=os.path.join(ROOT, ".build/release"), help="the executables' directory")
    parser.add_argument("--short", action="store_true", help="a part that takes under 90 seconds")
    parser.add_argument("--keep", action="store_true", help="leave the private directory behind")
    for name, (default, text) in more.items():
        parser.add_argument("--" + name.replace("_", "-"), default=default, type=type(default), help=text)
    return parser.parse_args()


class Places(contextlib.ExitStack):
    """What a campaign has opened. Everything is closed at its end, the last one first."""

    def __init__(self):
        super().__init__()
        self.spoken = []

    def directory(self, name, keeps):
        """A private directory, which is removed at the end unless it is kept."""
        path = tempfile.mkdtemp(prefix=f"ringback-{name}-")
        self.callback(put_away, path, keeps)
        return path

    def add(self, place, *arguments):
        """Calls `place.close` with these arguments at the end. Returns the place."""
        self.callback(place.close, *arguments)
        if hasattr(place, "why"):
            self.spoken.append(place)
        return place

    @property
    def why(self):
        return " ".join(f"({place.why()})" for place in self.spoken if place.why())


def play(document, campaign, root="", **more):
    """Runs `campaign(chosen, report, places)`: the chosen options, where results go, and what is closed at the end.
    A campaign that cannot go on has failed. Returns the exit status.

    `root`: why it needs to be root; `more`: further options.
    """
    chosen = options(document.splitlines()[0], **more)
    if root and os.geteuid() != 0:
        progress(root)
        return 1
    report = Report()
    try:
        with Places() as places:
            try:
                campaign(chosen, report, places)
            except (Trouble, OSError, ValueError, KeyError, subprocess.SubprocessError) as trouble:
                report.note(False, "the campaign could not run", f"{type(trouble).__name__} {trouble} {places.why}")
    except (OSError, subprocess.SubprocessError) as trouble:
        report.note(False, "the end", f"{type(trouble).__name__} {trouble}")
    return report.finish()


def played(root="", **more):
    """Makes a function the campaign of its file, which is played when the file is run as a program."""

    def made(campaign):
        if campaign.__module__ == "__main__":
            sys.exit(play(sys.modules["__main__"].__doc__, campaign, root, **more))
        return campaign

    return made


class Report:
    """Counts what passed and what did not; the same complaint is shown a few times only."""

    SHOWN = 8

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skipped = []
        self.started = time.monotonic()

    def note(self, is_right, where, why=""):
        """One thing that was tried; `why` it is wrong may be anything that can be shown."""
        why = str(why)[:1_200]
        if is_right:
            self.passed += 1
            return
        self.failures.append((where, why))
        if len(self.failures) <= Report.SHOWN:
            progress(f"FAILED {where}: {why}")
        elif len(self.failures) == Report.SHOWN + 1:
            progress("more failures are only counted")

    def skip(self, where, why):
        """Something that cannot be tried here. It is counted; `Scripts/count-tests` reads the line."""
        self.skipped.append(where)
        progress(f"left out: {where}: {why}")
        print(f"skip {where}: {why}", flush=True)

    def finish(self):
        """The last line. Returns the exit status."""
        for where, why in self.failures[: 3 * Report.SHOWN]:
            print(f"FAILED {where}: {why}")
        print(f"in {time.monotonic() - self.started:.0f} s")
        if self.skipped:
            print(f"{len(self.skipped)} skipped: {', '.join(self.skipped)}")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 0 if self.passed and not self.failures else 1


def progress(text):
    print(f"ringback: {text}", file=sys.stderr, flush=True)


def table(title, head, rows):
    """A plain table: the first column to the left, numbers to the right."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        cells = [str(row[0]).ljust(widths[0])] + [str(c).rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip(), flush=True)


class UnixHTTP(http.client.HTTPConnection):
    def __init__(self, path, timeout=30):
        super().__init__("ringback", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = unix_connection(self.path, self.timeout)


def unix_connection(path, timeout=None):
    """A connection to a Unix socket. With a timeout it would not wait for its turn to be accepted: that is set afterwards."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.settimeout(timeout)
    return connection


class Kept:
    """A client that keeps its connection for as long as it can. Asking and reading are apart: many can ask before the first
    one reads. Responses are (status, document)."""

    def __init__(self, path, timeout=40):
        self.connection = UnixHTTP(path, timeout)

    def ask(self, path):
        self.connection.request("GET", path)

    def get(self, path):
        self.ask(path)
        return self.read()

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return self.read()

    def read(self):
        answer = self.connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if answer.headers.get("Content-Type", "").endswith("json") else content

    def close(self):
        self.connection.close()


def claims_of(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def must(answer, what):
    """The document of an answer (status, document) that must be a success."""
    status, document = answer
    if status != 200:
        raise Trouble(f"{what} answered {status}: {document}")
    return document


def tcp_request(url, method="GET", body=None, headers=None):
    """One request over a new connection, redirects not followed: (status, headers, body, seconds)."""
    parts = urllib.parse.urlsplit(url)
    target = parts.path + ("?" + parts.query if parts.query else "")
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    started = time.perf_counter()
    connection.request(method, target or "/", body=body, headers=headers or {})
    answer = connection.getresponse()
    content = answer.read()
    elapsed = time.perf_counter() - started
    connection.close()
    return answer.status, answer.headers, content, elapsed


def carry(near, far):
    """Carries bytes between two sockets, both ways, until both ends are closed. Returns the threads that do it."""

    def copy(source, target):
        try:
            while piece := source.recv(65_536):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for each in [source, target]:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    threads = [threading.Thread(target=copy, args=pair, daemon=True) for pair in [(near, far), (far, near)]]
    for thread in threads:
        thread.start()
    return threads


def exactly(source, size):
    """So many bytes of a file; EOFError if it ends before."""
    piece = source.read(size)
    if len(piece) < size:
        raise EOFError
    return piece


class Relay:
    """Carries what comes to a listening socket to a port of 127.0.0.1, or to the Unix socket at a path, which reaches over
    network namespaces."""

    def __init__(self, listener, target):
        self.listener, self.target = listener, target
        threading.Thread(target=self.serve, daemon=True).start()

    @classmethod
    def at(cls, path, target):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        return cls(listener, target)

    def connect(self):
        if isinstance(self.target, int):
            return socket.create_connection(("127.0.0.1", self.target))
        return unix_connection(self.target)

    def serve(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            try:
                self.carry(near, self.connect())
            except OSError:
                # As where nobody listens.
                near.close()

    def carry(self, near, far):
        carry(near, far)

    def close(self):
        # Who waits for a connection stops waiting.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def free_ports(count):
    """Ports of 127.0.0.1 that nobody listens on now, for servers that take no listening socket from others."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def started(words, log, **more):
    """Starts a program without input, whose outputs go to the end of a file."""
    with open(log, "ab") as file:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **more)


def begun(words, log, **more):
    """Starts a program that prints a line when it is ready: the process, and the line."""
    with open(log, "ab") as file:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file, **more)
    line = process.stdout.readline().decode().strip()
    if not line:
        stop(process)
        raise Trouble(f"{os.path.basename(words[0])} did not start: {read(log)[-500:]}")
    return process, line


def memory(pid, field="RssAnon"):
    """Kilobytes of anonymous memory that are resident; or another field of /proc/PID/status."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def run(*words, **more):
    """A program to its end: what became of it, with both outputs as text. Without an `input` it has none."""
    given = {} if "input" in more else {"stdin": subprocess.DEVNULL}
    return subprocess.run(words, **given | {"capture_output": True, "text": True} | more)


def output(*words, **more):
    """What a program writes that must succeed."""
    done = run(*words, **more)
    if done.returncode:
        raise Trouble(f"{' '.join(map(str, words))[:120]} ended with {done.returncode}: {done.stderr[-800:].strip()}")
    return done.stdout


def stop(process, number=signal.SIGTERM):
    """Ends a process that was started here, gently at first."""
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


def soon(look, seconds=20):
    """The first answer that is something, or the last one when the time is up."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def until(what, look, seconds=20):
    """The first answer that is something; there must be one in time."""
    found = soon(look, seconds)
    if not found:
        raise Trouble(f"waited in vain for {what}")
    return found


def within(seconds, items, what):
    """The items one after the other until the time is up; all of them without a bound."""
    deadline = time.monotonic() + seconds if seconds else None
    for number, item in enumerate(items):
        if deadline and time.monotonic() > deadline:
            return progress(f"time is up: {number} of {len(items)} {what}")
        yield item


def write(path, content, mode=0o600):
    """A file of a text or of bytes that only its owner can read, unless the mode says otherwise. Returns its path."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)
    return path


def read(path):
    """A file's text; empty if there is none."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def certificate(directory, name="server", host="localhost"):
    """A certificate for 127.0.0.1 and a host that is its own authority: its path and its key's."""
    paths = [os.path.join(directory, f"{name}.{kind}") for kind in ["pem", "key"]]
    try:
        output("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
               f"/CN={name}", "-addext", f"subjectAltName=IP:127.0.0.1,DNS:{host}", "-out", paths[0], "-keyout", paths[1])
    except FileNotFoundError:
        raise Trouble("there is no openssl command") from None
    os.chmod(paths[1], 0o600)
    return paths


def compiled(target, *arguments):
    """Compiles C to a program or a library. Returns its path."""
    for compiler in filter(None, [os.environ.get("CC"), "cc", "clang", "gcc"]):
        if shutil.which(compiler):
            subprocess.run([compiler, "-O2", "-std=gnu17", "-o", target, *arguments], check=True)
            return target
    raise Trouble("there is no C compiler (cc, clang or gcc)")


def put_away(directory, keeps=False):
    """Removes a campaign's directory, or says where it is."""
    if keeps:
        progress(f"everything is in {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)


class Daemon:
    """A daemon in a private directory, what is asked of it, and the command line beside it. Nothing of the user's own set-up
    is read or changed: every place is named, the environment is a new one.

    What the daemon keeps (state, key) is below one directory, `kept`, so that the shim can tell it from the rest.
    """

    shim = None
    log_level = "info"

    def __init__(self, binaries, directory):
        # Without symbolic links (`.build/release` is one): a program that asks for its own path is told the real one.
        self.binaries = os.path.realpath(binaries)
        self.directory = directory
        self.daemon = None
        for name in ["", "config", "run", "tmp", "home"]:
            os.makedirs(self.place(name), 0o700, exist_ok=True)
        self.kept = self.place("kept")
        self.socket = self.place("run/ringback.sock")
        self.configuration = self.place("config/config.toml")
        self.log_path = self.place("ringbackd.log")
        self.empty()

    def place(self, name):
        return os.path.join(self.directory, name)

    def program(self, name="ringback"):
        return os.path.join(self.binaries, name)

    def empty(self):
        shutil.rmtree(self.kept, ignore_errors=True)
        for name in ["kept", "kept/state", "kept/data"]:
            os.mkdir(self.place(name), 0o700)

    @property
    def environment(self):
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.place("home"), "TMPDIR": self.place("tmp"),
            "XDG_RUNTIME_DIR": self.place("run"), "XDG_DATA_HOME": self.place("kept/data"),
            "RINGBACK_SOCK": self.socket, "RINGBACK_CONFIG": self.configuration,
        }

    @property
    def command(self):
        return [
            self.program("ringbackd"), "--config", self.configuration, "--socket", self.socket,
            "--state", self.place("kept/state"), "--log-level", self.log_level]

    def launch(self):
        """Starts the daemon; does not wait for it."""
        environment = self.environment | (self.shim.environment if self.shim else {})
        self.daemon = started(self.command, self.log_path, env=environment, cwd=self.place("tmp"))

    def start(self):
        self.launch()
        if not self.wait():
            raise Trouble(f"ringbackd does not answer: {self.why()}")
        if self.shim and self.shim.get("pid") != self.daemon.pid:
            raise Trouble("the shim is not in the daemon: is it a static executable?")

    def wait(self, seconds=20):
        """True once the daemon answers; False if it ends instead."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.daemon.poll() is None:
            try:
                return self.api("GET", "/v1/status")[0] == 200
            except Died:
                time.sleep(0.005)
        return False

    def kill(self):
        """SIGKILL, if it still runs."""
        if self.daemon:
            if self.daemon.poll() is None:
                self.daemon.kill()
            self.daemon.wait()
        self.daemon = None
        if self.shim:
            self.shim.disarm()

    def restart(self):
        self.kill()
        self.start()

    @property
    def is_alive(self):
        return self.daemon is not None and self.daemon.poll() is None

    def why(self, lines=5):
        return " | ".join(line.strip() for line in read(self.log_path).splitlines()[-lines:])

    def api(self, method, path, body=None, timeout=40):
        """A request to the daemon: (status, document)."""
        connection = UnixHTTP(self.socket, timeout)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Died(f"{method} {path}: {type(error).__name__} {error}") from None
        finally:
            connection.close()

    def account(self, name="work"):
        return self.api("GET", f"/v1/accounts/{name}")[1]

    def new_flow(self, account="work", **body):
        """A sign-in that a program has asked for: the flow, which waits for the browser."""
        status, flow = self.api("POST", f"/v1/accounts/{account}/sign-in", {"method": "browser"} | body)
        if "authorization_url" not in flow:
            raise Trouble(f"a sign-in of {account} did not begin: {status} {flow}")
        return flow

    def api_in_background(self, method, path, body, timeout=30):
        """Sends a request whose answer nobody waits for. Returns the connection."""
        connection = UnixHTTP(self.socket, timeout)
        connection.request(method, path, body=json.dumps(body), headers={"Content-Type": "application/json"})
        return connection

    def ringback(self, *words, given="", timeout=60, **environment):
        """The command line: what became of it, with its exit status and both outputs as text."""
        return run(self.program(), *words, env=self.environment | environment, input=given, timeout=timeout)
