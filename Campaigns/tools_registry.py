"""docker's client, podman and skopeo at Debian's docker-registry, which takes the tokens of a token server, which takes
what Ringback's helper has given. Part of tools.py, which runs it.

docker's client pulls by the API of an engine; the engine here is podman's, so that nothing has to be root's daemon. What
docker's client itself asks the registry for (`docker manifest`) needs no engine.
"""

import io
import os
import re
import subprocess
import tarfile

from herd import STEP, requests
from house import stop, until
from report import progress
from tools_packages import Server

CONFIGURATION = """
version: 0.1
log: {{level: info}}
storage: {{filesystem: {{rootdirectory: {root}}}}}
http:
  addr: 127.0.0.1:0
  tls: {{certificate: {certificate}, key: {key}}}
auth:
  token: {{realm: "https://127.0.0.1:{tokens}/token", service: ringed, issuer: ringed, rootcertbundle: {certificate}}}
"""


class Registry:
    """The registry and its token server; the tools that get something from them."""

    def __init__(self, tools, userinfo):
        self.tools, self.house = tools, tools.house
        self.servers, self.process = [], None
        if not tools.has("docker-registry"):
            return
        directory = self.house.place("images")
        os.mkdir(directory)
        self.tokens = Server(self.house, "registry_tokens.py", directory, userinfo)
        self.servers.append(self.tokens)
        self.certificate = os.path.join(directory, "server.pem")
        path = os.path.join(directory, "registry.yml")
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(
                root=os.path.join(directory, "store"), certificate=self.certificate, tokens=self.tokens.port,
                key=os.path.join(directory, "server-key.pem")))
        self.log = os.path.join(directory, "registry.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", path], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={"PATH": os.environ["PATH"], "OTEL_TRACES_EXPORTER": "none"})
        self.servers.append(self)
        self.port = until("the port of docker-registry", self.find_port)
        # The same registry by two names: what the helper gives is a password at one, an identity token at the other.
        self.place, self.other = f"127.0.0.1:{self.port}", f"localhost:{self.port}"
        self.environment = {"SSL_CERT_FILE": self.certificate}

    def find_port(self):
        with open(self.log) as file:
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", file.read())
        return found and int(found[1])

    def close(self):
        stop(self.process)

    def configuration(self):
        if not self.process:
            return ""
        return (f'[[origin]]\nurl = "https://{self.place}/*"\naccount = "work"\n'
                f'[[origin]]\nurl = "https://{self.other}/*"\naccount = "work"\nusername = "<token>"\n')

    def run(self):
        if not self.process:
            return
        self.tools.ringback("setup", "docker", "--yes")
        if self.try_podman():
            if self.tools.has("skopeo"):
                self.try_program("skopeo", lambda place: ["skopeo", "inspect", f"docker://{place}/team/app:1"])
            if self.tools.has("docker"):
                self.try_docker()
                self.try_docker_pull()
        self.tools.ringback("setup", "docker", "--undo", "--yes")
        progress("the registry is done")

    def note(self, is_right, where, why):
        self.tools.note(is_right, where, why)

    def asked(self, method, scope):
        """True if the token server gave a token to who showed the account's present one."""
        token = self.tools.ringback("token", "work")
        return f"{method} {scope} 200 {token}\n" in self.tokens.text

    def podman(self, *words):
        """A store of its own; vfs needs no file system of a special kind. podman takes no runroot of over 50 characters."""
        store = [f"--root={self.house.place('images')}", f"--runroot={self.house.place('r')}"]
        return ["podman", *store, "--storage-driver=vfs", "--events-backend=file", "--cgroup-manager=cgroupfs", *words]

    def try_podman(self):
        """An image of one file goes to the registry and comes back. True if it is there."""
        if not self.tools.has("podman"):
            return False
        path = self.house.place("image.tar")
        with tarfile.open(path, "w") as tar:
            entry = tarfile.TarInfo("hello")
            entry.size = 6
            tar.addfile(entry, io.BytesIO(b"hello\n"))
        name = f"{self.place}/team/app:1"
        status, said = self.tools.run(*self.podman("import", path, name))
        if status != 0:
            self.tools.report.skip("podman", f"it makes no image here: {said.strip()[-200:]}")
            return False
        status, said = self.tools.run(*self.podman("push", name), **self.environment)
        pushed = status == 0 and self.asked("GET", "repository:team/app:pull,push")
        self.note(pushed, "podman pushes an image", said)
        self.tools.run(*self.podman("rmi", name))
        status, said = self.tools.run(*self.podman("pull", name), **self.environment)
        self.note(status == 0 and self.asked("GET", "repository:team/app:pull"), "podman pulls an image", said)
        self.tools.tried("podman", "--version")
        return pushed

    def try_program(self, name, command):
        """A program that asks for a manifest, with a password, with an identity token, with an expired token."""
        status, said = self.tools.run(*command(self.place), **self.environment)
        self.note(status == 0, f"{name} reads a manifest", said)
        status, said = self.tools.run(*command(self.other), **self.environment)
        self.note(status == 0 and self.asked("POST", "repository:team/app:pull"), f"{name} sends an identity token", said)
        self.house.clock.advance(STEP)
        before = requests(self.house)
        status, said = self.tools.run(*command(self.place), **self.environment)
        made, where = requests(self.house) - before, f"{name}, expired token"
        self.note(status == 0 and self.asked("GET", "repository:team/app:pull"), where, said)
        self.note(made == 1, where, f"{made} refresh requests")

    def try_docker(self):
        self.try_program("docker", lambda place: ["docker", "manifest", "inspect", f"{place}/team/app:1"])
        # The helper does not learn of a refusal; a person has the token refreshed.
        self.tools.revoke()
        inspect = ["docker", "manifest", "inspect", f"{self.place}/team/app:1"]
        status, said = self.tools.run(*inspect, **self.environment)
        self.note(status != 0, "docker, revoked token", said)
        self.tools.ringback("refresh", "work", "--force")
        status, said = self.tools.run(*inspect, **self.environment)
        self.note(status == 0, "docker, after ringback refresh --force", said)
        status, said = self.tools.run(
            "docker", "manifest", "create", f"{self.place}/team/list:1", f"{self.place}/team/app:1", **self.environment)
        self.note(status == 0, "docker makes a list of manifests", said)
        self.tools.tried("docker", "--version")

    def pull_by_docker(self):
        """docker's client gets the token from the helper and hands it to the engine: (status, what the client printed)."""
        socket = self.house.place("run/engine.sock")
        engine = self.tools.start(
            *self.podman("system", "service", "--time=0", "unix://" + socket),
            # Without a configuration of the user's: what the engine shows is what the client gave it.
            **self.environment, HOME=self.house.place("home-engine"), XDG_RUNTIME_DIR=self.house.place("tmp"))
        try:
            until("podman's service", lambda: os.path.exists(socket) or engine.poll() is not None)
            return self.tools.run("docker", "pull", f"{self.place}/team/app:1", DOCKER_HOST="unix://" + socket)
        finally:
            stop(engine)
            engine.stdout.close()
            if os.path.exists(socket):
                os.remove(socket)

    def try_docker_pull(self):
        self.tools.run(*self.podman("rmi", "--force", f"{self.place}/team/app:1"))
        before = len(self.tokens.text)
        status, said = self.pull_by_docker()
        token = self.tools.ringback("token", "work")
        line = f"GET repository:team/app:pull 200 {token}\n"
        self.note(status == 0 and line in self.tokens.text[before:], "docker pulls an image", said)

    def signed_out(self):
        """The account is signed out: every program fails, and those that show what the helper says show what signs in."""
        if not self.process:
            return
        self.tools.ringback("setup", "docker", "--yes")
        image, before = f"{self.place}/team/app:1", len(self.tokens.text)
        for name, shows, run in [
                ("skopeo", True, lambda: self.tools.run("skopeo", "inspect", "docker://" + image, **self.environment)),
                ("podman", True, lambda: self.tools.run(*self.podman("pull", image), **self.environment)),
                ("docker", False, lambda: self.tools.run("docker", "manifest", "inspect", image, **self.environment)),
                ("docker", False, self.pull_by_docker)]:
            if self.tools.has(name):
                status, said = run()
                says = "ringback login work" in said
                self.note(status != 0 and says == shows, f"{name}, signed out", f"status {status}: {said}")
        self.note(" 200 " not in self.tokens.text[before:], "signed out", "the token server gave a token")
        self.tools.ringback("setup", "docker", "--undo", "--yes")
