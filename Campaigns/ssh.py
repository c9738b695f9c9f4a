#!/usr/bin/env -S python3 -B
"""A restricted socket at the far end of a real SSH connection, and a sign-in there whose browser is here.

A real sshd listens on loopback with keys of its own. `ssh -R` brings a restricted socket over; `ssh -L`, by the very line
that `ringback login` prints, brings the browser to the callback. So that both ends can have the same port, the person's
own machine is a network namespace with nothing in it but its loopback; it reaches sshd through a Unix socket.
"""

import getpass
import json
import os
import re
import shutil
import socket
import subprocess
import sys

from harness import Relay, Trouble, free_ports, played, read, run, started, stop, until, write
from house import House

EXPOSE = '[[expose]]\nname = "durable"\naccount = "work"\nscope = "openid"\n'


class Server:
    """An sshd of our own, for the user who runs this."""

    def __init__(self, house, name, unlinks=True):
        self.house = house
        self.directory = house.place(f"sshd-{name}")
        os.mkdir(self.directory, 0o700)
        [self.port] = free_ports(1)
        for key in ["host", "user"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.place(key)], check=True)
        shutil.copyfile(self.place("user.pub"), self.place("authorized"))
        write(self.place("known"), f"ringback-far {read(self.place('host.pub'))}")
        write(self.place("config"), (
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.place('host')}\nPidFile none\n"
            f"AuthorizedKeysFile {self.place('authorized')}\nUsePAM no\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nStrictModes no\n"
            f"AllowStreamLocalForwarding yes\nStreamLocalBindUnlink {'yes' if unlinks else 'no'}\nPrintMotd no\n"))
        if os.getuid() == 0:
            # Where sshd locks up what it does before anybody is known.
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.process = started(
            [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", self.place("config")], self.place("log"))
        until("sshd", self.answers)

    def place(self, name):
        return os.path.join(self.directory, name)

    def answers(self):
        if self.process.poll() is not None:
            raise Trouble(f"sshd ended: {read(self.place('log'))[-500:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def client(self, more=""):
        """A configuration file of ssh in which this server is everybody."""
        return write(self.place("ssh_config"), (
            f"Host *\n  HostKeyAlias ringback-far\n  UserKnownHostsFile {self.place('known')}\n"
            f"  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  IdentityFile {self.place('user')}\n"
            f"  IdentitiesOnly yes\n  IdentityAgent none\n  BatchMode yes\n  ConnectTimeout 15\n"
            f"  ControlMaster no\n  Port {self.port}\n{more}"))

    def ssh(self, *arguments):
        return ["ssh", "-F", self.client(), *arguments]

    def close(self):
        stop(self.process)


class Far:
    """What runs at the far end of one connection, with a restricted socket brought along."""

    def __init__(self, house, server, report):
        self.house, self.server, self.report = house, server, report
        self.directory = house.place("far")
        self.socket = os.path.join(self.directory, "ringback.sock")
        if not os.path.isdir(self.directory):
            os.mkdir(self.directory, 0o700)

    def run(self, exposed, *words, timeout=60):
        """`ringback` there, over a connection that ends with it: (status, output, errors)."""
        program = self.house.program()
        command = f"env -i PATH=/usr/bin:/bin RINGBACK_SOCK={self.socket} {program} {' '.join(words)}"
        done = run(*self.server.ssh("-o", "ExitOnForwardFailure=yes", "-R", f"{self.socket}:{exposed}", "127.0.0.1", command),
                   timeout=timeout)
        return done.returncode, done.stdout, done.stderr

    def expect(self, where, done, status, wanted=""):
        self.report.note(done[0] == status and wanted in done[1], where, f"status {done[0]}, {done[1]!r} {done[2]!r}")


def downscoped(house):
    return house.api("GET", "/v1/accounts/work/session?scope=openid")[1].get("access_token", "?")


def forwarding(house, report):
    """A restricted socket over `ssh -R`."""
    server = Server(house, "unlinks")
    keeper = Server(house, "keeps", unlinks=False)
    try:
        far = Far(house, server, report)
        made = house.ringback("expose", "far", "--account", "work", "--scope", "openid", "--ttl", "8h")
        exposed = made.stdout.strip()
        report.note(made.returncode == 0 and os.path.exists(exposed), "expose", f"{made}")
        far.expect("token over ssh -R", far.run(exposed, "token", "work"), 0, downscoped(house))
        far.expect("accounts over ssh -R", far.run(exposed, "accounts"), 0, "work")
        far.expect("status over ssh -R", far.run(exposed, "status"), 0, "Restricted")
        far.expect("another scope over ssh -R", far.run(exposed, "token", "work", "--scope", "email"), 4)
        far.expect("an ID token over ssh -R", far.run(exposed, "token", "work", "--kind", "id_token"), 4)
        far.expect("a sign-in over ssh -R", far.run(exposed, "login", "work", "--again"), 4)
        far.expect("what calls made over ssh -R", far.run(exposed, "expose", "list"), 4)

        # Each connection left its socket behind: sshd removes it only where it is told to.
        report.note(os.path.exists(far.socket), "the socket that a connection leaves behind", "it is gone")
        stale = Far(house, keeper, report)
        done = stale.run(exposed, "token", "work")
        report.note(done[0] == 255, "without StreamLocalBindUnlink a second connection fails", f"{done}")
        far.expect("with StreamLocalBindUnlink it works", far.run(exposed, "token", "work"), 0, downscoped(house))

        # One connection that stays, while the daemon does not.
        if os.path.exists(far.socket):
            os.unlink(far.socket)
        staying = subprocess.Popen(
            server.ssh("-N", "-o", "ExitOnForwardFailure=yes", "-R", f"{far.socket}:{exposed}", "127.0.0.1"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until("the forwarded socket", lambda: os.path.exists(far.socket))
            environment = {"PATH": "/usr/bin:/bin", "RINGBACK_SOCK": far.socket}
            program = house.program()

            def token():
                return run(program, "token", "work", env=environment, timeout=60)
            report.note(token().stdout.strip() == downscoped(house), "a connection that stays", f"{token()}")
            house.kill()
            report.note(token().returncode in (1, 2), "while the daemon is dead", f"{token()}")
            house.start()
            report.note(token().stdout.strip() == downscoped(house), "after the daemon was killed", f"{token()}")
            entries = house.api("GET", "/v1/audit")[1].get("entries", [])
            given = [e for e in entries if e["event"] == "issued_token" and e.get("exposed_socket") == "far"]
            report.note(given and all(e.get("executable", "").endswith("/ssh") and e.get("scope") == "openid"
                                      for e in given), "the audit log", f"{given}")
            report.note(house.ringback("expose", "revoke", "far").returncode == 0, "revoke", "it failed")
            report.note(token().returncode in (1, 2) and not token().stdout, "after it was revoked", f"{token()}")
        finally:
            stop(staying)
        durable = os.path.join(os.path.dirname(exposed), "durable.sock")
        far.expect("one of the configuration", far.run(durable, "token", "work"), 0, downscoped(house))
    finally:
        server.close()
        keeper.close()


def namespace():
    """What starts a program in a network of its own; None where the kernel lends none."""
    for flags in [["-n"], ["-r", "-n"]]:
        line = ["unshare", *flags]
        if subprocess.run([*line, "true"], capture_output=True).returncode == 0:
            return line
    return None


# The person's machine: a loopback, the line that was printed, and a browser.
LAPTOP = r"""
import fcntl, os, socket, struct, subprocess, sys, time, urllib.request
line, callback, port = sys.argv[1], sys.stdin.readline().strip(), int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    flags = struct.unpack("16sh", fcntl.ioctl(control, 0x8913, struct.pack("16sh", b"lo", 0)))[1]
    fcntl.ioctl(control, 0x8914, struct.pack("16sh", b"lo", flags | 1))
# By a shell, as a person would.
ssh = subprocess.Popen(["/bin/sh", "-c", "exec " + line], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
try:
    for _ in range(1000):
        if ssh.poll() is not None:
            sys.exit("ssh ended: %d" % ssh.returncode)
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.02)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(callback, timeout=20) as page:
        print(page.geturl(), page.status, flush=True)
finally:
    ssh.stdin.close()
    ssh.kill()
    ssh.wait()
"""

STDIO = r"""
import os, socket, sys, threading
far = socket.socket(socket.AF_UNIX)
far.connect(sys.argv[1])
def send():
    while True:
        data = os.read(0, 65536)
        if not data:
            return far.shutdown(socket.SHUT_WR)
        far.sendall(data)
threading.Thread(target=send, daemon=True).start()
while True:
    data = far.recv(65536)
    if not data:
        break
    while data:
        data = data[os.write(1, data):]
"""


def callback(house, report):
    """A sign-in over SSH: the line that `login` prints is run as it stands."""
    unshared = namespace()
    if unshared is None:
        report.skip("a sign-in over ssh -L", "the kernel lends no network namespace")
        return
    server = Server(house, "callback")
    relay = Relay.at(server.place("relay"), server.port)
    login = None
    try:
        program = house.program()
        login = subprocess.Popen(
            server.ssh("127.0.0.1", f"env -u DISPLAY -u WAYLAND_DISPLAY PATH=/usr/bin:/bin RINGBACK_SOCK={house.socket} "
                       f"{program} login other --no-browser --method browser"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(house.place("login.errors"), "wb"), text=True)
        url = login.stdout.readline().strip()
        report.note(url.startswith(house.sandbox.issuer), "the address is the first line", repr(url))

        def printed():
            return re.search(r"ssh -L \S+ \S+(?: -p \d+)?", read(house.place("login.errors")))
        line = until("the line that login prints", printed).group(0)
        report.note(f"{getpass.getuser()}@127.0.0.1" in line, "the line names user and host", line)
        port = int(re.search(r"-L (?:\S+?:)?(\d+):", line).group(1))
        way = write(server.place("stdio.py"), STDIO)
        # What the person has in ~/.ssh/config: how to reach the far machine from theirs.
        shim = house.place("bin")
        os.makedirs(shim, exist_ok=True)
        config = server.client(f"  ProxyCommand python3 {way} {server.place('relay')}\n")
        write(os.path.join(shim, "ssh"), f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n', 0o700)
        environment = {"PATH": f"{shim}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": house.place("home")}
        done = run(*unshared, sys.executable, "-B", "-c", LAPTOP, line, str(port), env=environment,
                   input=house.sandbox.approve(url) + "\n", timeout=60)
        report.note(done.returncode == 0 and "/done" in done.stdout and done.stdout.endswith(" 200\n"), "the browser's page", f"{done}")
        rest = login.communicate(timeout=30)[0]
        report.note(login.returncode == 0 and "Signed in to other" in rest, "the sign-in", f"{login.returncode} {rest!r}")
        report.note(house.account("other").get("state") == "authenticated", "the account", json.dumps(house.account("other")))
    finally:
        if login:
            stop(login)
        relay.close()
        server.close()


@played()
def campaign(chosen, report, places):
    house = places.add(House(chosen.bin, accounts=("work", "other"), shimmed=False), chosen.keep)
    house.fresh()
    house.configure(EXPOSE)
    house.start()
    report.note(house.sign_in()[0] == 200, "the stage", "no sign-in")
    forwarding(house, report)
    callback(house, report)
