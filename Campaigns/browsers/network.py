"""A machine beside this one: a network with nothing in it but its loopback, and the ports that are relayed from there."""

import ctypes
import os
import socket
import subprocess
import sys
import threading

from harness import Relay, Trouble, stop

# In the other network: raises the loopback, listens at each port, and passes what comes to a Unix socket.
HOLDER = r"""
import fcntl, os, socket, struct, sys, threading
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    flags = struct.unpack("16sh", fcntl.ioctl(control, 0x8913, struct.pack("16sh", b"lo", 0)))[1]
    fcntl.ioctl(control, 0x8914, struct.pack("16sh", b"lo", flags | 1))
def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def serve(listener, path):
    while True:
        near = listener.accept()[0]
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(path)
        except OSError:
            near.close()
            continue
        for pair in [(near, far), (far, near)]:
            threading.Thread(target=copy, args=pair, daemon=True).start()
for port, path in zip(sys.argv[1::2], sys.argv[2::2]):
    listener = socket.create_server(("127.0.0.1", int(port)))
    threading.Thread(target=serve, args=(listener, path), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Network:
    """Needs root. `ports` of this machine are reached there under the same numbers."""

    def __init__(self, desk, *ports):
        self.relays, words = [], []
        for port in ports:
            path = desk.place(f"relay-{port}")
            self.relays.append(Relay.at(path, port))
            words += [str(port), path]
        self.process = subprocess.Popen(["unshare", "-n", sys.executable, "-B", "-c", HOLDER, *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            self.close()
            raise Trouble("the kernel lends no network namespace")
        self.pid = self.process.pid

    def connect(self, port):
        """A connection to a port of its loopback."""
        result = []

        def inside():
            descriptor = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
            try:
                # Of this thread alone, which ends.
                if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0x40000000) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
                result.append(socket.create_connection(("127.0.0.1", port), timeout=5))
            except OSError as error:
                result.append(error)
            finally:
                os.close(descriptor)
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if isinstance(result[0], OSError):
            raise result[0]
        return result[0]

    def close(self):
        stop(self.process)
        for relay in self.relays:
            path = relay.listener.getsockname()
            relay.close()
            os.unlink(path)
