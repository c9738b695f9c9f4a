"""Work inside `ringback run` at servers that want a token, for `confined.py`: git clones, commits and pushes, pip installs, and
tests run. Once with the token of the exposed socket, which git's helper asks for, and once by the relay, without a token inside.

    confined_work.py serve DIRECTORY HOST [CERTIFICATE KEY]    such a server: git's repositories and an index of packages
"""

import base64
import hashlib
import http.server
import io
import os
import ssl
import subprocess
import sys
import zipfile

BACKEND = "/usr/lib/git-core/git-http-backend"
WHEEL = "probe_lib-1.0-py3-none-any.whl"


def wheel():
    """A package of one module."""
    files = {"probe_lib.py": "def six():\n    return 6\n",
             "probe_lib-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: probe-lib\nVersion: 1.0\n",
             "probe_lib-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: probe\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "probe_lib-1.0.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    bytes_ = io.BytesIO()
    with zipfile.ZipFile(bytes_, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return bytes_.getvalue()


class Server(http.server.BaseHTTPRequestHandler):
    """Takes any token, and notes its digest: who started it knows the right one."""

    protocol_version = "HTTP/1.1"
    directory = ""

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", fields=()):
        self.send_response(status)
        for name, value in [*fields, ("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def token(self):
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        return base64.b64decode(value).decode().partition(":")[2] if scheme == "Basic" else value

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not (token := self.token()):
            return self.answer(401, fields=[("WWW-Authenticate", 'Basic realm="probe"')])
        path, _, query = self.path.partition("?")
        with open(f"{self.directory}/seen", "a") as file:
            file.write(f"{self.command} {path} {hashlib.sha256(token.encode()).hexdigest()}\n")
        match path.split("/")[1:]:
            case ["git", *rest]:
                self.run_git("/" + "/".join(rest), query, body)
            case ["simple", "probe-lib", ""]:
                self.answer(200, f'<a href="{WHEEL}">{WHEEL}</a>'.encode(), [("Content-Type", "text/html")])
            case ["simple", "probe-lib", name] if name == WHEEL:
                self.answer(200, wheel())
            case _:
                self.answer(404)

    def run_git(self, path, query, body):
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": f"{self.directory}/git", "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "ada",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        ran = subprocess.run([BACKEND], input=body, stdout=subprocess.PIPE, env=environment, check=False)
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.answer(int(fields.pop("Status", "200").split()[0]), content, fields.items())

    do_GET = do_POST = do_HEAD = serve


def serve(directory, host, *files):
    Server.directory = directory
    server = http.server.ThreadingHTTPServer((host, 0), Server)
    if files:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*files)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    server.serve_forever()


class Forge:
    """The servers: one on this machine, for the relay, and one with TLS beyond its gateway."""

    def __init__(self, person, host, places):
        self.person = person
        self.directory = f"{person.directory}/forge"
        os.makedirs(f"{self.directory}/git")
        self.authority = f"{person.work}/authority.pem"
        key = f"{self.directory}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=forge", "-addext", f"subjectAltName=IP:{host}", "-out", self.authority, "-keyout", key],
                       check=True, capture_output=True)
        ports = []
        for network, words in ((person.network.near, ["127.0.0.1"]), (person.network.far, [host, self.authority, key])):
            server = person.started(network, ["python3", "-B", os.path.abspath(__file__), "serve", self.directory, *words], places)
            ports.append(server.stdout.readline().decode().strip())
        self.near, self.far = f"http://127.0.0.1:{ports[0]}", f"https://{host}:{ports[1]}"
        for name in ("socket", "relay"):
            first, bare = f"{self.directory}/{name}", f"{self.directory}/git/{name}.git"
            for words in (["init", "-q", "-b", "main", first],
                          ["-C", first, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "1"],
                          ["clone", "-q", "--bare", first, bare]):
                subprocess.run(["git", *words], check=True)

    def origins(self, account):
        return "".join(f'[[origin]]\nurl = "{url}/*"\naccount = "{account}"\n' for url in (self.near, self.far))

    def walk(self, report, socket, account, token):
        """`token`: what the account has now."""
        change = 'cd cloned && echo two > two && git add two && git commit -q -m "by $0" && git {} push -q origin HEAD:main'

        def run(what, options, script, *words):
            if os.path.exists(f"{self.directory}/seen"):
                os.unlink(f"{self.directory}/seen")
            text, status = self.person.on_terminal(
                self.person.run(["--socket", socket, *options], "sh", "-ec", script, what, *words), seconds=120)
            with open(f"{self.directory}/seen") as file:
                digests = {line.split()[-1] for line in file}
            right = {hashlib.sha256(token.encode()).hexdigest()}
            report.note(status == 0 and digests == right, f"{what}: work inside", f"{status}: {text[-500:]}, {digests == right}")
            report.note(token not in text, f"{what}: what it printed", "has the token")

        def pushed(what):
            log = subprocess.run(["git", "-C", f"{self.directory}/git/{what}.git", "log", "--format=%s", "main"],
                                 capture_output=True, text=True)
            report.note(log.stdout.split("\n")[:2] == [f"by {what}", "1"], f"{what}: the commit is at the server", log)

        clone = "rm -rf cloned && git {} clone -q {} cloned && "
        script = clone.format("", '"$1"') + change.format("")
        # The certificate's file is in the work folder.
        run("socket", ["--account", account, "--network", "internet"],
            f"export GIT_SSL_CAINFO={self.authority}; {script}", f"{self.far}/git/socket.git")
        pushed("socket")
        # The clone keeps the server's own address.
        instead = '-c url."$REMOTE/".insteadOf=https://git.example.org/'
        script = clone.format(instead, "https://git.example.org/relay.git") + change.format(instead)
        run("relay", ["--relay", f"REMOTE={self.near}/git", "--network", "none"], script)
        pushed("relay")
        tests = "import unittest, probe_lib\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(probe_lib.six(), 6)\n"
        run("pip", ["--relay", f"PIP_INDEX_URL={self.near}/simple", "--network", "none"],
            'python3 -m venv venv; venv/bin/pip install -q --disable-pip-version-check probe-lib; printf %s "$1" > test_probe.py; '
            "venv/bin/python -m unittest -q test_probe", tests)


if __name__ == "__main__":
    serve(*sys.argv[2:])
