#!/usr/bin/env python3
"""Unlocks a gnome-keyring that nobody sits before.

    unlock_keyring.py bus ADDRESS PASSWORD       over the bus, as the window that asks the person does
    unlock_keyring.py control SOCKET PASSWORD    as signing in to the desktop does: of this, the bus hears nothing
"""
import socket
import struct
import sys

from fake_bus import Bus, read

SERVICE, ROOT = "org.freedesktop.secrets", "/org/freedesktop/secrets"


class Client(Bus):
    def __init__(self, address):
        super().__init__(address, "org.example.ringback.Unlocker")

    def ask(self, path, interface, member, signature, values):
        """Sends a call, and waits for the values of its answer."""
        self.send(1, signature, values, path=path, interface=interface, member=member, destination=SERVICE)
        while True:
            while len(self.held) < 16 or len(self.held) < self.size():
                data = self.socket.recv(65536)
                if not data:
                    sys.exit("the bus is gone")
                self.held += data
            message, self.held = self.held[:self.size()], self.held[self.size():]
            head, _ = read(message, 0, "yyyyuua(yv)")
            fields = dict(head[6])
            if fields.get(5) != self.serial:
                continue
            values, _ = read(message[len(message) - head[4]:], 0, fields.get(8, ""))
            if head[1] == 3:
                sys.exit(f"{member}: {fields[4]} {values}")
            return values

    def size(self):
        fields = struct.unpack_from("<I", self.held, 12)[0]
        return 16 + fields + -fields % 8 + struct.unpack_from("<I", self.held, 4)[0]


def by_bus(address, password):
    client = Client(address)
    session = client.ask(ROOT, "org.freedesktop.Secret.Service", "OpenSession", "sv", ["plain", ("s", "")])[1]
    client.ask(ROOT, "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface", "UnlockWithMasterPassword",
               "o(oayays)", [ROOT + "/collection/login", (session, b"", password, "text/plain")])


def by_control(path, password):
    # Operation 1, with the password.
    control = socket.socket(socket.AF_UNIX)
    control.connect(path)
    body = struct.pack(">II", 1, len(password)) + password
    control.sendall(b"\0" + struct.pack(">I", len(body) + 4) + body)
    answer = struct.unpack(">II", control.recv(8))[1]
    if answer != 0:
        sys.exit(f"the keyring answered {answer}")


if __name__ == "__main__":
    way, place, word = sys.argv[1:]
    {"bus": by_bus, "control": by_control}[way](place, word.encode())
