"""A Debian of its own, made by debootstrap, with a user manager of a person in it, in namespaces without network.

It has what the package depends on and curl, in the place of a browser; no Swift. Needs root. Everything ends with the pid
namespace, and nothing outside of the directory is written.
"""

import os
import shutil
import subprocess

from harness import Trouble, run
from user_manager import NAME, UID, UserManager

INCLUDED = ["ca-certificates", "curl", "dbus", "libstdc++6", "libsystemd0", "man-db", "systemd"]
# By version: the suite, and the libraries that are named after their ABI there.
DEBIANS = {12: ("bookworm", ["libcurl4", "libssl3"]), 13: ("trixie", ["libcurl4t64", "libssl3t64"])}

# The first process of the namespaces: mounts, brings the loopback interface up, starts the manager in the new root, reaps,
# and ends with its standard input.
INIT = r"""
import fcntl, os, select, socket, struct, subprocess, sys
root, uid, log = sys.argv[1], sys.argv[2], open(sys.argv[3], "ab")
def mount(*words): subprocess.run(["/usr/bin/mount", *words], check=True)
mount("--make-rprivate", "/")
mount("-t", "proc", "proc", root + "/proc")
mount("--rbind", "/dev", root + "/dev")
mount("--rbind", "/sys", root + "/sys")
mount("-t", "tmpfs", "tmpfs", root + "/run")
os.makedirs(root + "/run/systemd/system")
os.makedirs(root + "/run/user/" + uid, 0o700)
os.makedirs(root + "/run/user/0", 0o700)
os.chown(root + "/run/user/" + uid, int(uid), int(uid))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))
manager = None
print("begun", flush=True)
while True:
    readable, _, _ = select.select([0], [], [], 0.2)
    if readable:
        order = os.read(0, 1)
        if not order: break
        # The person logs in.
        words = ["chroot", root, "setpriv", "--reuid", uid, "--regid", uid, "--init-groups", "env", "-i"]
        words += open(root + "/environment").read().splitlines()
        manager = subprocess.Popen([*words, "/lib/systemd/systemd", "--user", "--log-target=console", "--unit=basic.target"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: pass
"""


def base(version, directory, say):
    """The tarball of the new system; made once, with network, and kept."""
    suite, libraries = DEBIANS[version]
    path = os.path.join(directory, f"debian-{version}.tar")
    if os.path.exists(path):
        return path
    if shutil.which("debootstrap") is None:
        raise Trouble("debootstrap is not installed")
    say(f"debootstrap makes a Debian {version} once, in {path}: two minutes")
    root = path + ".root"
    shutil.rmtree(root, ignore_errors=True)
    done = run("debootstrap", "--variant=minbase", "--include=" + ",".join(INCLUDED + libraries), suite, root)
    if done.returncode != 0:
        shutil.rmtree(root, ignore_errors=True)
        raise Trouble(f"debootstrap could not make a Debian {version}: {(done.stdout + done.stderr)[-300:]}")
    shutil.rmtree(os.path.join(root, "var/cache/apt/archives"), ignore_errors=True)
    subprocess.run(["tar", "-C", root, "--exclude=./dev/*", "-cf", path + ".new", "."], check=True)
    shutil.rmtree(root)
    os.rename(path + ".new", path)
    return path


class RootedManager(UserManager):
    """The user manager of a person in a system of its own; started when the person logs in."""

    def __init__(self, directory, tarball):
        if os.geteuid() != 0:
            raise Trouble("a system of its own needs root: run it as root, or with sudo")
        self.directory, self.root = directory, os.path.join(directory, "root")
        self.groups, self.process, self.pid = [], None, None
        os.chmod(directory, 0o711)
        os.mkdir(self.root, 0o755)
        subprocess.run(["tar", "-C", self.root, "-xpf", tarball], check=True)
        os.makedirs(os.path.join(self.root, "dev"), exist_ok=True)
        self.home, self.runtime = f"/home/{NAME}", f"/run/user/{UID}"
        subprocess.run(["chroot", self.root, "/usr/sbin/useradd", "--create-home", "--uid", str(UID), NAME],
                       check=True, capture_output=True)
        self.know(self.root, "/usr/local/bin:/usr/bin:/bin")

    def start(self):
        self.begin(INIT, self.root, os.path.join(self.directory, "manager.log"), namespaces=["--net"])

    def log_in(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()
        self.until("the user manager", self.answers)
        self.until("its sockets", lambda: self.show("basic.target", "ActiveState") == "active")

    def inside(self, words, user, variables, timeout):
        environment = [f"{name}={value}" for name, value in variables.items()]
        who = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"] if user else []
        return run("nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "chroot", self.root, *who, "env", "-i",
                   *environment, *words, timeout=timeout, cwd="/")

    def run(self, *words, timeout=60, **variables):
        """A program of the person's."""
        return self.inside(words, True, self.environment | variables, timeout)

    def as_root(self, *words, timeout=120):
        return self.inside(words, False, {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": "/run/user/0", "DEBIAN_FRONTEND": "noninteractive"}, timeout)

    def path(self, inside):
        return self.root + inside
