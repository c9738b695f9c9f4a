"""A real systemd user manager for a person of our own making, in namespaces of its own.

Needs root, and no booted systemd: a tmpfs on /run/systemd, in a mount namespace, makes the manager believe that there
is one. Everything runs in a pid namespace whose end takes all of it along, in control groups of its own (a manager moves
what it finds in its group), and with a home directory below the campaign's.
"""

import contextlib
import os
import subprocess
import time

from harness import Trouble, children, read, run, until, write

UID = 60_123
NAME = "ringback-person"
PYTHON = "/usr/bin/python3"

# The first process of the namespaces: prepares them, starts the manager, reaps, and ends with its standard input.
INIT = r"""
import os, select, subprocess, sys
place, uid = sys.argv[1], int(sys.argv[2])
def mount(*words): subprocess.run(["/usr/bin/mount", *words], check=True)
mount("--make-rprivate", "/")
mount("-t", "tmpfs", "tmpfs", "/run/systemd")
os.mkdir("/run/systemd/system")
mount("--bind", place + "/passwd", "/etc/passwd")
mount("-t", "proc", "proc", "/proc")
log = open(place + "/manager.log", "ab")
environment = dict(line.split("=", 1) for line in open(place + "/environment").read().splitlines())
manager = subprocess.Popen(["/lib/systemd/systemd", "--user", "--log-target=console", "--unit=basic.target"],
    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd="/", user=uid, group=uid, extra_groups=[])
print("begun", flush=True)
while True:
    readable, _, _ = select.select([0], [], [], 0.2)
    if readable and not os.read(0, 1): break
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: break
"""


class UserManager:
    def __init__(self, directory):
        if os.geteuid() != 0:
            raise Trouble("a user manager of our own needs root: run it as root, or with sudo")
        self.directory = directory
        self.home = os.path.join(directory, "home")
        self.runtime = os.path.join(directory, "runtime")
        self.groups, self.process, self.pid = [], None, None
        # The person must reach the home through it.
        os.chmod(directory, 0o711)
        for path in [self.home, self.runtime]:
            os.mkdir(path, 0o700)
            os.chown(path, UID, UID)
        person = f"{NAME}:x:{UID}:{UID}:A Person:{self.home}:/bin/sh\n"
        write(os.path.join(directory, "passwd"), person + read("/etc/passwd"), 0o644)
        self.know(directory, f"{self.home}/.local/bin:/usr/local/bin:/usr/bin:/bin")

    def know(self, place, path):
        """The person's environment, which the first process reads at that place."""
        self.environment = {
            "HOME": self.home, "XDG_RUNTIME_DIR": self.runtime, "USER": NAME, "LOGNAME": NAME, "LANG": "C.UTF-8", "PATH": path}
        write(os.path.join(place, "environment"), "".join(f"{name}={value}\n" for name, value in self.environment.items()))

    def start(self):
        self.begin(INIT, self.directory)
        self.until("the user manager", self.answers)

    def begin(self, program, place, *more, namespaces=()):
        """The first process of new namespaces."""
        self.make_groups()
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", *namespaces, "--fork", "--kill-child", PYTHON, "-c", program, place, str(UID), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", preexec_fn=self.enter_groups)
        if self.process.stdout.readline() != b"begun\n":
            raise Trouble(f"the namespaces of the user manager were not made: {self.why()}")
        self.pid = children(self.process.pid)[0]

    def answers(self):
        return self.systemctl("show", "--property=Version").returncode == 0

    def make_groups(self):
        """A control group in each hierarchy, the person's own: the manager puts its units there, and limits them."""
        mounts = {}
        for line in open("/proc/self/mountinfo"):
            left, right = line.split(" - ")
            kind, _, options = right.split()[:3]
            if kind in ("cgroup", "cgroup2"):
                mounts[kind if kind == "cgroup2" else options] = left.split()[4]
        for line in open("/proc/self/cgroup"):
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if number == "0":
                place = mounts.get("cgroup2")
            else:
                wanted = set(controllers.split(","))
                place = next((at for options, at in mounts.items() if wanted <= set(options.split(","))), None)
            if place is None:
                continue
            above = place + path.rstrip("/")
            group = f"{above}/ringback-campaign-{os.getpid()}"
            try:
                if number == "0":
                    # Where this may be: limits of memory and tasks can be shown then.
                    for controller in ["+memory", "+pids"]:
                        with contextlib.suppress(OSError):
                            write(above + "/cgroup.subtree_control", controller)
                os.mkdir(group)
            except OSError:
                continue
            self.groups.append(group)
            for name in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "tasks"]:
                if os.path.exists(os.path.join(group, name)):
                    os.chown(os.path.join(group, name), UID, UID)

    def enter_groups(self):
        for group in self.groups:
            # A hierarchy may want more said first, as cpuset does; nobody but root moves anything there.
            with contextlib.suppress(OSError):
                write(group + "/cgroup.procs", str(os.getpid()))

    def run(self, *words, text=None, timeout=60, **variables):
        """A program of the person's, beside the manager."""
        environment = self.environment | variables
        return run("nsenter", f"--target={self.pid}", "--mount", "--pid", "setpriv", f"--reuid={UID}", f"--regid={UID}",
                   "--clear-groups", "env", "-i", *[f"{name}={value}" for name, value in environment.items()], *words,
                   **({} if text is None else {"input": text}), timeout=timeout, cwd=self.home)

    def systemctl(self, *words):
        return self.run("systemctl", "--user", "--no-pager", *words)

    def show(self, unit, name):
        return self.systemctl("show", "--value", f"--property={name}", unit).stdout.strip()

    def write(self, path, text, mode=0o600):
        """A file of the person's, below the home directory."""
        path = os.path.join(self.home, path)
        directory = self.home
        for part in os.path.relpath(os.path.dirname(path), self.home).split(os.sep):
            directory = os.path.join(directory, part)
            if not os.path.isdir(directory):
                os.mkdir(directory, 0o700)
                os.chown(directory, UID, UID)
        write(path, text, mode)
        os.chown(path, UID, UID)
        return path

    def signal(self, pid, number):
        """A signal to a process, whose pid is that of the namespace."""
        self.run("kill", f"-{number}", str(pid))

    def outside(self, pid):
        """A process of the namespace by the pid that it has outside of it."""
        ours = os.readlink(f"/proc/{self.pid}/ns/pid")
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, StopIteration):
                with open(f"/proc/{name}/status") as status:
                    numbers = next(line.split()[1:] for line in status if line.startswith("NSpid"))
                if numbers[-1] == str(pid) and os.readlink(f"/proc/{name}/ns/pid") == ours:
                    return int(name)
        raise Trouble(f"there is no process {pid} in the namespace")

    def until(self, what, is_so, seconds=30):
        try:
            until(what, is_so, seconds)
        except Trouble as trouble:
            raise Trouble(f"{trouble}: {self.why()}") from None

    def why(self, lines=12):
        return " | ".join(line.strip() for line in read(os.path.join(self.directory, "manager.log")).splitlines()[-lines:])

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
        for group in self.groups:
            for place, _, _ in os.walk(group, topdown=False):
                for _ in range(100):
                    try:
                        os.rmdir(place)
                        break
                    except OSError:
                        time.sleep(0.02)
