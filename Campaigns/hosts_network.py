"""The network of many hosts: a namespace with a bridge, where the database is, and one for each host, joined to it by a pair
of virtual devices. Nothing of the machine's own network is changed, and everything is gone when the processes that hold the
namespaces have ended.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading

from harness import Trouble, output, run, stop

CLONE_NEWNET = 0x40000000
NETWORK = "10.77.0"
BRIDGE = "hosts"


def is_possible():
    """"" or why there can be no such network."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    tried = run("unshare", "-n", "ip", "link", "add", BRIDGE, "type", "bridge")
    return "" if tried.returncode == 0 else f"no bridge can be made: {tried.stderr.strip()}"


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name, flags = struct.unpack("16sh", fcntl.ioctl(control, 0x8913, struct.pack("16sh", b"lo", 0)))
        fcntl.ioctl(control, 0x8914, struct.pack("16sh", name, flags | 1))


class Namespace:
    """A network namespace, which lives as long as a process in it."""

    def __init__(self):
        # It ends with its standard input, so also if the campaign is killed.
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; read -r line"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        if not self.holder.stdout.readline():
            raise Trouble("no network namespace can be made")
        self.inside(raise_loopback)

    @property
    def prefix(self):
        """What a command begins with that is to run in here."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]

    def run(self, *words):
        return output(*self.prefix, *words)

    def ip(self, *words):
        return self.run("ip", *words)

    def inside(self, work):
        """What a function returns that is called in this namespace."""
        done = []

        def enter():
            try:
                with open(f"/proc/{self.holder.pid}/ns/net") as place:
                    if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                done.append(work())
            except OSError as error:
                done.append(error)

        # A namespace is a thread's own.
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if isinstance(done[0], OSError):
            raise done[0]
        return done[0]

    def listen(self, port):
        """A socket that listens on this namespace's loopback."""
        return self.inside(lambda: socket.create_server(("127.0.0.1", port), backlog=256))

    def connect(self, port):
        """A connection to a port of this namespace's loopback."""
        return self.inside(lambda: socket.create_connection(("127.0.0.1", port), timeout=5))

    def close(self):
        self.holder.stdin.close()
        stop(self.holder)


class Hub(Namespace):
    """Where the bridge is, and the servers of the database, each with an address of its own."""

    def __init__(self, addresses):
        super().__init__()
        self.number = 0
        # An address of its own. Otherwise the bridge takes the lowest one of its ports, another one when a host joins, and
        # what the others send to the one that they know is lost for seconds.
        self.ip("link", "add", BRIDGE, "address", "02:00:0a:4d:00:01", "type", "bridge")
        self.ip("link", "set", BRIDGE, "up")
        for address in addresses:
            self.ip("addr", "add", f"{address}/24", "dev", BRIDGE)

    def join(self, host):
        """Joins a host's namespace to the bridge. Returns the name of the bridge's end."""
        self.number += 1
        inner, outer = f"in{self.number}", f"out{self.number}"
        self.ip("link", "add", outer, "type", "veth", "peer", "name", inner)
        self.ip("link", "set", inner, "netns", str(host.holder.pid))
        self.ip("link", "set", outer, "master", BRIDGE, "up")
        host.ip("addr", "add", f"{NETWORK}.{20 + self.number}/24", "dev", inner)
        host.ip("link", "set", inner, "up")
        return outer

    def cut(self, outer):
        """Every packet to and from this host is dropped, and nobody is told."""
        self.ip("link", "set", outer, "down")

    def mend(self, outer):
        self.ip("link", "set", outer, "up")
