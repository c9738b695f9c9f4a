#!/usr/bin/env python3
"""Programs of the grid find a kept file by WLCG's bearer discovery (BEARER_TOKEN_FILE, $XDG_RUNTIME_DIR/bt_uUID): XRootD's
client and gfal2, both of Debian, at a real xrootd that checks the token's signature, and HTCondor's library and SciTokens'
(PyPI). HTCondor's server can be had neither from Debian nor from PyPI: condor_server.py stands in its place.

The token is an ID token of the sandbox, since xrootd takes a JWT only. xrootd gets the provider's keys from its cache, since
it asks no issuer without TLS.
"""

import json
import os
import pwd
import re
import shutil
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from herd import STEP, Clock, ClockedHouse  # noqa: E402
from house import Died, stop, tcp_request, until  # noqa: E402
from operations import must  # noqa: E402
from report import Report, could_not_run, options, progress, table  # noqa: E402
from shim import NoCompiler  # noqa: E402
from stage import Trouble  # noqa: E402
from tools import Tools  # noqa: E402
from tools_packages import Server  # noqa: E402
from venv_programs import installed  # noqa: E402

PACKAGES = ["htcondor==25.14.1", "scitokens==1.9.7"]
CONTENT = "what the token is for\n"
CONDOR = """
import sys
import htcondor2 as htcondor
try:
    htcondor.Collector(sys.argv[1]).query()
except htcondor.HTCondorException:
    pass  # the server ends the connection when it has the token
"""
SCITOKENS = """
import scitokens
print(scitokens.SciToken.discover(insecure=True, audience="ringback-demo")._serialized_token)
"""
XROOTD = """
all.role server
all.export /
all.adminpath {place}/admin
all.pidpath {place}/admin
oss.localroot {place}/data
xrd.port any
xrd.network nodnr
xrd.tls {place}/server.pem {place}/server-key.pem
xrd.tlsca noverify
xrootd.tls capable all
xrootd.seclib libXrdSec.so
sec.protocol ztn -tokenlib libXrdAccSciTokens.so
sec.protbind * only ztn
ofs.authorize 1
ofs.authlib ++ libXrdAccSciTokens.so config={place}/issuers.cfg
acc.authdb {place}/rights
"""
ISSUERS = """
[Global]
audience = ringback-demo
[Issuer Sandbox]
issuer = {issuer}
base_path = /
"""


class Storage:
    """An xrootd that lets nobody in without a token of the sandbox."""

    def __init__(self, house):
        self.place, issuer = house.place("storage"), house.sandbox.issuer
        for name in ["", "/data", "/admin", "/cache/scitokens", "/authorities"]:
            os.makedirs(self.place + name)
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Tests/Programs"))
        import loopback_tls
        loopback_tls.context(self.place)
        shutil.copy(self.place + "/server.pem", self.place + "/authorities")
        subprocess.run(["openssl", "rehash", self.place + "/authorities"], check=True)
        self.write("data/a.txt", CONTENT)
        self.write("xrootd.cfg", XROOTD.format(place=self.place))
        self.write("issuers.cfg", ISSUERS.format(issuer=issuer))
        # Who is let in may read; that is not what is tried here.
        self.write("rights", "u * / rl\n")
        self.keep_keys(issuer)
        words = ["xrootd", "-c", self.place + "/xrootd.cfg"]
        if os.geteuid() == 0:
            # As root it does not start.
            nobody = pwd.getpwnam("nobody")
            os.chmod(house.directory, 0o711)
            for folder, _, names in os.walk(self.place):
                for name in ["", *names]:
                    os.chown(os.path.join(folder, name), nobody.pw_uid, nobody.pw_gid)
            words += ["-R", "nobody"]
        self.log_path = house.place("xrootd.log")
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            words, cwd=self.place, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={"PATH": os.environ["PATH"], "HOME": self.place, "XDG_CACHE_HOME": self.place + "/cache"})
        self.port = until("xrootd", self.find_port)

    def write(self, name, text):
        with open(os.path.join(self.place, name), "w") as file:
            file.write(text)

    def keep_keys(self, issuer):
        """As the SciTokens library writes down what it got from an issuer."""
        keys = json.loads(tcp_request(issuer + "/jwks")[2])
        now = int(time.time())
        with sqlite3.connect(self.place + "/cache/scitokens/scitokens_cpp.sqllite") as database:
            database.execute("CREATE TABLE keycache (issuer text UNIQUE PRIMARY KEY NOT NULL, keys text NOT NULL)")
            database.execute("INSERT INTO keycache VALUES (?, ?)", (issuer, json.dumps(
                {"jwks": keys, "expires": now + 86_400, "next_update": now + 80_000})))
        database.close()

    def find_port(self):
        if self.process.poll() is not None:
            raise Trouble(f"xrootd ended: {self.text[-400:]}")
        found = re.search(r":(\d+) initialization completed", self.text)
        return found and int(found[1])

    @property
    def text(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def close(self):
        stop(self.process)
        self.log.close()


class Walk:
    def __init__(self, house, report):
        self.house, self.report = house, report
        self.tools = Tools(house, report)
        # By the name of WLCG's bearer discovery, and a place that a variable names.
        self.discovered = house.place(f"run/bt_u{os.geteuid()}")
        self.named = house.place("run/named.jwt")
        self.environment, self.servers = {}, []

    def configuration(self):
        return "".join(
            f'[[file]]\npath = "{path}"\naccount = "work"\nformat = "id_token"\non_disk = true\n'
            for path in [self.discovered, self.named])

    def token(self):
        with open(self.discovered) as file:
            return file.read()

    def run(self):
        # The claim without which the SciTokens library takes no token.
        self.house.sandbox.control(perturb=["id_token_nbf"])
        self.house.configure(self.configuration())
        self.house.start()
        must(self.house.sign_in(), "the sign-in")
        for path in [self.discovered, self.named]:
            until(path, lambda path=path: os.path.exists(path))
        programs = self.try_storage() + self.try_libraries()
        self.try_variable()
        former = self.token()
        self.house.clock.advance(STEP)
        self.tools.ringback("token", "work")
        until("a new kept file", lambda: self.token() != former)
        for name, attempt in programs:
            self.report.note(attempt(), f"{name}, after the file was renewed", self.said)
        self.tools.ringback("logout", "work")
        for name, attempt in programs:
            self.report.note(not attempt(), f"{name}, signed out", self.said)

    said = ""

    def gets(self, *command, **environment):
        """What it printed; nothing if it failed."""
        status, self.said = self.tools.run(*command, **self.environment | environment)
        return self.said if status == 0 else ""

    # MARK: XRootD and gfal2

    def try_storage(self):
        if not (self.tools.has("xrootd") and self.tools.has("xrdfs")):
            return []
        storage = Storage(self.house)
        self.servers.append(storage)
        self.environment = {
            "X509_CERT_DIR": storage.place + "/authorities", "XRD_CONNECTIONRETRY": "1", "XRD_CONNECTIONWINDOW": "5",
            "GFAL_PYTHONBIN": "/usr/bin/python3"}
        server, nowhere = f"roots://localhost:{storage.port}", self.house.place("nowhere")
        tries = [
            ("xrdfs", lambda **more: "Size:" in self.gets("xrdfs", server, "stat", "/a.txt", **more)),
            ("xrdcp", lambda **more: CONTENT in self.gets("xrdcp", "--silent", server + "//a.txt", "-", **more))]
        if self.tools.has("gfal-cat"):
            tries.append(("gfal-cat", lambda **more: CONTENT in self.gets("gfal-cat", server + "//a.txt", **more)))
        for name, attempt in tries:
            self.report.note(attempt(), f"{name} finds the file in XDG_RUNTIME_DIR", self.said)
            right = attempt(XDG_RUNTIME_DIR=nowhere, BEARER_TOKEN_FILE=self.named)
            self.report.note(right, f"{name} reads the file of BEARER_TOKEN_FILE", self.said)
            self.report.note(not attempt(XDG_RUNTIME_DIR=nowhere), f"{name} without a file", self.said)
        self.tools.tried("xrdcp", "--version")
        if len(tries) > 2:
            self.tools.rows.append(["gfal2", self.gets("dpkg-query", "-W", "-f", "${Version}", "gfal2-plugin-xrootd")])
        progress("XRootD and gfal2 are done")
        return tries

    def try_variable(self):
        """gfal2 reads no file for https: the token is in a variable of this one process."""
        if not self.tools.has("gfal-cat"):
            return
        place = self.house.place("web")
        os.makedirs(place + "/authorities")
        server = Server(self.house, "registry_server.py", place, self.house.sandbox.issuer + "/userinfo")
        self.servers.append(server)
        shutil.copy(place + "/server.pem", place + "/authorities")
        subprocess.run(["openssl", "rehash", place + "/authorities"], check=True)
        said = self.gets(
            os.path.join(self.house.binaries, "ringback"), "exec", "work", "--env", "BEARER_TOKEN", "--", "gfal-cat",
            f"https://localhost:{server.port}/version", X509_CERT_DIR=place + "/authorities")
        self.report.note("v1.35.0-ringed" in said, "gfal-cat gets the token of ringback exec", self.said)

    # MARK: HTCondor and SciTokens

    def try_libraries(self):
        try:
            python = os.path.join(installed("grid", *PACKAGES), "python")
        except subprocess.CalledProcessError:
            self.report.skip("HTCondor's library", "it cannot be installed")
            return []
        os.makedirs(self.house.place("condor"))
        server = Server(self.house, "condor_server.py", self.house.place("condor"))
        self.servers.append(server)
        condor, scitokens = self.house.place("ask_condor.py"), self.house.place("ask_scitokens.py")
        for path, text in [(condor, CONDOR), (scitokens, SCITOKENS)]:
            with open(path, "w") as file:
                file.write(text)
        settings = {
            "CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_SEC_CLIENT_AUTHENTICATION": "REQUIRED",
            "_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "SCITOKENS",
            "_CONDOR_AUTH_SSL_CLIENT_CAFILE": self.house.place("condor/server.pem")}

        def ask_condor(**more):
            """True if the server got the token that is in the file."""
            before = server.text.count("\n")
            self.gets(python, "-B", condor, f"localhost:{server.port}", **settings, **more)
            # Without a token the client says so and goes.
            until("what the server says", lambda: server.text.count("\n") > before)
            return os.path.exists(self.named) and server.text.split("\n")[-2] == self.token()

        def ask_scitokens(**more):
            return os.path.exists(self.named) and self.token() in self.gets(python, "-B", scitokens, **more)

        nowhere = self.house.place("nowhere")
        for name, attempt in [("HTCondor's library", ask_condor), ("SciTokens' library", ask_scitokens)]:
            self.report.note(attempt(), f"{name} finds the file in XDG_RUNTIME_DIR", self.said)
            right = attempt(XDG_RUNTIME_DIR=nowhere, BEARER_TOKEN_FILE=self.named)
            self.report.note(right, f"{name} reads the file of BEARER_TOKEN_FILE", self.said)
            self.report.note(not attempt(XDG_RUNTIME_DIR=nowhere), f"{name} without a file", self.said)
        self.tools.rows += [package.split("==") for package in PACKAGES]
        progress("HTCondor and SciTokens are done")
        return [("HTCondor's library", ask_condor), ("SciTokens' library", ask_scitokens)]


def main():
    chosen = options(__doc__.splitlines()[0])
    report, house, walk = Report(), None, None
    try:
        house = ClockedHouse(chosen.bin, shimmed=False)
        house.clock = Clock(house.directory)
        house.fresh(access_token_lifetime=3_600)
        walk = Walk(house, report)
        walk.run()
    except NoCompiler as trouble:
        return could_not_run(trouble)
    except (Trouble, Died, OSError, subprocess.TimeoutExpired) as trouble:
        return could_not_run(trouble, house)
    finally:
        for server in walk.servers if walk else []:
            server.close()
        if house:
            house.close(chosen.keep)
    table("The programs of the grid", ["program", "version"], walk.tools.rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
