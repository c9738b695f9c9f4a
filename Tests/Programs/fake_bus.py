#!/usr/bin/env python3
"""Services of a desktop for tests, in one small program that speaks D-Bus itself: a Secret Service, a logind, a
notification server and a service manager.

    fake_bus.py ADDRESS secrets [plain] [silent] [locked] [file=PATH]     fake_bus.py ADDRESS login1
    fake_bus.py ADDRESS notifications [bare] [markup] [unicast]           fake_bus.py ADDRESS systemd1 [old] [failing]

What is in the file outlives the fake, as a keyring outlives its service.

It is written from the specifications alone and shares no line with what it tests; AES is the openssl command's. Lines
on standard input are orders, lines on standard output say what happened:

    secrets:  lock, unlock       the collection; said as a signal
              prompt yes|no|never  what the person will answer (default yes)
              forget             the default collection
              garble             the next secrets are kept wrongly
    login1:   signal PATH        Lock of that session
              hint PATH          LockedHint of that session becomes true
              locked             LockedHint is true when asked for
    notifications: answer ID KEY [TOKEN]   an action of a notice is chosen
              close ID REASON    a notice goes: 1 expired, 2 dismissed
              silent             calls are not answered any more
    Every notice is written as a line: shown and its members in JSON; so is every unit: unit and its members.
"""
import hashlib
import hmac
import json
import os
import secrets
import selectors
import socket
import struct
import subprocess
import sys

ALIGN = {"y": 1, "b": 4, "u": 4, "i": 4, "s": 4, "o": 4, "g": 1, "v": 1, "a": 4, "(": 8, "{": 8, "t": 8}


def split(signature):
    """The complete types of a signature."""
    types, start, at = [], 0, 0
    while at < len(signature):
        while signature[at] == "a":
            at += 1
        if signature[at] in "({":
            depth = 0
            while True:
                depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(signature[at], 0)
                if depth == 0:
                    break
                at += 1
        at += 1
        types.append(signature[start:at])
        start = at
    return types


def write(out, signature, values):
    for kind, value in zip(split(signature), values):
        out.extend(b"\0" * (-len(out) % ALIGN[kind[0]]))
        if kind == "y":
            out.append(value)
        elif kind in "bui":
            out.extend(struct.pack("<I", int(value)))
        elif kind in "so":
            data = value.encode()
            out.extend(struct.pack("<I", len(data)) + data + b"\0")
        elif kind == "g":
            data = value.encode()
            out.extend(bytes([len(data)]) + data + b"\0")
        elif kind == "v":
            write(out, "g", [value[0]])
            write(out, value[0], [value[1]])
        elif kind[0] == "a":
            place = len(out)
            out.extend(b"\0\0\0\0")
            out.extend(b"\0" * (-len(out) % ALIGN[kind[1]]))
            start = len(out)
            for item in value.items() if isinstance(value, dict) else value:
                write(out, kind[1:], [item])
            out[place:place + 4] = struct.pack("<I", len(out) - start)
        else:
            write(out, kind[1:-1], value)


def read(data, at, signature):
    values = []
    for kind in split(signature):
        at += -at % ALIGN[kind[0]]
        if kind == "y":
            value, at = data[at], at + 1
        elif kind in "bui":
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        elif kind in "so":
            size = struct.unpack_from("<I", data, at)[0]
            value, at = data[at + 4:at + 4 + size].decode(), at + size + 5
        elif kind == "g":
            value, at = data[at + 1:at + 1 + data[at]].decode(), at + data[at] + 2
        elif kind == "v":
            (inner,), at = read(data, at, "g")
            (value,), at = read(data, at, inner)
        elif kind[0] == "a":
            size = struct.unpack_from("<I", data, at)[0]
            at += 4
            at += -at % ALIGN[kind[1]]
            end, value = at + size, []
            while at < end:
                (item,), at = read(data, at, kind[1:])
                value.append(item)
            if kind[1] == "{":
                value = dict(value)
            elif kind == "ay":
                value = bytes(value)
        else:
            value, at = read(data, at, kind[1:-1])
            value = tuple(value)
        values.append(value)
    return values, at


class Refusal(Exception):
    pass


class Bus:
    def __init__(self, address, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address.removeprefix("unix:path=").split(",")[0])
        self.socket.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n")
        answer = b""
        while answer.count(b"\r\n") < 2:
            answer += self.socket.recv(1)
        self.serial, self.held = 0, b""
        for member, values in (("Hello", []), ("RequestName", [name, 0])):
            self.send(1, "su"[:len(values)], values, path="/org/freedesktop/DBus", interface="org.freedesktop.DBus",
                      member=member, destination="org.freedesktop.DBus")

    def send(self, kind, signature="", values=(), path=None, interface=None, member=None, error=None, reply=None,
             destination=None):
        self.serial += 1
        body = bytearray()
        write(body, signature, values)
        fields = [(1, ("o", path)), (2, ("s", interface)), (3, ("s", member)), (4, ("s", error)), (5, ("u", reply)),
                  (6, ("s", destination)), (8, ("g", signature or None))]
        head = bytearray()
        write(head, "yyyyuua(yv)", [ord("l"), kind, 0, 1, len(body), self.serial,
                                    [field for field in fields if field[1][1] is not None]])
        head.extend(b"\0" * (-len(head) % 8))
        self.socket.sendall(head + body)

    def signal(self, path, interface, member, signature="", values=()):
        self.send(4, signature, values, path=path, interface=interface, member=member)

    def receive(self):
        """The calls that have come; None when the bus is gone."""
        data = self.socket.recv(65536)
        if not data:
            return None
        self.held += data
        calls = []
        while len(self.held) >= 16:
            fields_size = struct.unpack_from("<I", self.held, 12)[0]
            body_at = 16 + fields_size + -fields_size % 8
            size = body_at + struct.unpack_from("<I", self.held, 4)[0]
            if len(self.held) < size:
                break
            message, self.held = self.held[:size], self.held[size:]
            values, _ = read(message, 0, "yyyyuua(yv)")
            fields = dict(values[6])
            body, _ = read(message[body_at:], 0, fields.get(8, ""))
            if values[1] == 1:
                calls.append((values[5], fields[7], fields[1], fields.get(2, ""), fields[3], body))
        return calls

    def serve(self, service):
        selector = selectors.DefaultSelector()
        selector.register(self.socket, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    line = sys.stdin.readline()
                    if not line:
                        return
                    service.order(line.split())
                    print("done " + line.strip(), flush=True)
                    continue
                calls = self.receive()
                if calls is None:
                    return
                for serial, sender, path, interface, member, arguments in calls:
                    try:
                        answer = service.call(sender, path, interface, member, arguments)
                    except Refusal as refusal:
                        self.send(3, error=str(refusal), reply=serial, destination=sender)
                        continue
                    if answer is not None:
                        self.send(2, answer[0], answer[1], reply=serial, destination=sender)


ROOT = "/org/freedesktop/secrets"
HOME = ROOT + "/collection/home"
PREFIX = "org.freedesktop.Secret."
PRIME = int("FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DDEF9519B3CD"
            "3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F"
            "24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF", 16)


def aes(key, vector, data, *direction):
    command = ["openssl", "enc", "-aes-128-cbc", "-K", key.hex(), "-iv", vector.hex(), *direction]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


class Secrets:
    """The Secret Service, version 0.2, with one collection."""

    def __init__(self, bus, modes):
        self.bus, self.modes = bus, modes
        self.locked, self.answer, self.has_default, self.garbles = "locked" in modes, "yes", True, False
        self.items, self.sessions, self.prompts, self.count = {}, {}, {}, 0
        self.file = next((mode[5:] for mode in modes if mode.startswith("file=")), None)
        if self.file and os.path.exists(self.file):
            with open(self.file) as file:
                for attributes, value in json.load(file):
                    self.items[self.path("collection/home")] = attributes, bytes.fromhex(value)

    def order(self, words):
        if words[0] in ("lock", "unlock"):
            self.set_locked(words[0] == "lock")
        elif words[0] == "prompt":
            self.answer = words[1]
        elif words[0] == "forget":
            self.has_default = False
        elif words[0] == "garble":
            self.garbles = True

    def keep(self):
        if self.file:
            with open(self.file, "w") as file:
                json.dump([(attributes, value.hex()) for attributes, value in self.items.values()], file)

    def set_locked(self, locked):
        self.locked = locked
        self.bus.signal(ROOT, PREFIX + "Service", "CollectionChanged", "o", [HOME])

    def path(self, kind):
        self.count += 1
        return f"{ROOT}/{kind}/n{self.count}"

    def prompt(self, action):
        path = self.path("prompt")
        self.prompts[path] = action
        return path

    def call(self, sender, path, interface, member, arguments):
        if "silent" in self.modes:
            print("silent", flush=True)
            return None
        name = interface.removeprefix(PREFIX) + "." + member
        if name == "Service.OpenSession":
            return self.open_session(*arguments)
        if name == "Service.ReadAlias":
            return "o", [HOME if arguments == ["default"] and self.has_default else "/"]
        if name == "Service.SearchItems":
            found = [item for item, (attributes, _) in self.items.items()
                     if arguments[0].items() <= attributes.items()]
            return "aoao", [[], found] if self.locked else [found, []]
        if name == "Service.Unlock":
            if not self.locked:
                return "aoo", [arguments[0], "/"]
            return "aoo", [[], self.prompt(lambda: self.set_locked(False))]
        if name == "Prompt.Prompt":
            return self.show(path)
        if name == "Prompt.Dismiss":
            self.prompts.pop(path, None)
            print("dismissed", flush=True)
            return "", []
        if name == "org.freedesktop.DBus.Properties.Get" and arguments == [PREFIX + "Collection", "Locked"]:
            return "v", [("b", self.locked)]
        if self.locked:
            raise Refusal(PREFIX + "Error.IsLocked")
        if name == "Collection.CreateItem":
            item = self.path("collection/home")
            self.items[item] = (arguments[0][PREFIX + "Item.Attributes"], self.opened(arguments[1]))
            self.keep()
            print("kept " + arguments[0][PREFIX + "Item.Label"], flush=True)
            return "oo", [item, "/"]
        if path not in self.items:
            raise Refusal(PREFIX + "Error.NoSuchObject")
        if name == "Item.GetSecret":
            return "(oayays)", [self.sealed(arguments[0], self.items[path][1])]
        if name == "Item.Delete":
            del self.items[path]
            self.keep()
            return "o", ["/"]
        raise Refusal("org.freedesktop.DBus.Error.UnknownMethod")

    def show(self, path):
        action = self.prompts.pop(path)
        print("asked", flush=True)
        if self.answer != "never":
            if self.answer == "yes":
                action()
            self.bus.signal(path, PREFIX + "Prompt", "Completed", "bv", [self.answer == "no", ("s", "")])
        return "", []

    def open_session(self, algorithm, number):
        session = self.path("session")
        if algorithm == "plain":
            self.sessions[session] = None
            return "vo", [("s", ""), session]
        if "plain" in self.modes:
            raise Refusal("org.freedesktop.DBus.Error.NotSupported")
        exponent = secrets.randbelow(PRIME - 3) + 2
        shared = pow(int.from_bytes(number, "big"), exponent, PRIME).to_bytes(128, "big")
        root = hmac.new(b"\0" * 32, shared, hashlib.sha256).digest()
        self.sessions[session] = hmac.new(root, b"\1", hashlib.sha256).digest()[:16]
        return "vo", [("ay", pow(2, exponent, PRIME).to_bytes(128, "big")), session]

    def opened(self, secret):
        session, vector, value, _ = secret
        key = self.sessions[session]
        value = value if key is None else aes(key, vector, value, "-d")
        return value[:-1] + b"A" if self.garbles else value

    def sealed(self, session, value):
        key = self.sessions[session]
        if key is None:
            return session, b"", value, "text/plain"
        vector = secrets.token_bytes(16)
        return session, vector, aes(key, vector, value), "text/plain"


LOGIN = "org.freedesktop.login1."


class Login:
    """logind with two sessions of ours, of which the first sits before the display, and one of somebody else."""

    def __init__(self, bus, _):
        self.bus, self.locked = bus, False

    def order(self, words):
        if words[0] == "signal":
            self.bus.signal(words[1], LOGIN + "Session", "Lock")
        elif words[0] == "hint":
            self.bus.signal(words[1], "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
                            [LOGIN + "Session", {"IdleHint": ("b", True), "LockedHint": ("b", True)}, []])
        elif words[0] == "locked":
            self.locked = True

    def call(self, sender, path, interface, member, arguments):
        if member == "GetUser":
            return "o", ["/org/freedesktop/login1/user/self"]
        if member == "Get" and arguments[1] == "Display":
            return "v", [("(so)", ("1", "/org/freedesktop/login1/session/_31"))]
        if member == "Get" and arguments[1] == "LockedHint":
            print("hint asked", flush=True)
            return "v", [("b", self.locked)]
        raise Refusal(LOGIN + "NoSuchSession")


NOTIFICATIONS = "org.freedesktop.Notifications"


class Notifications:
    """A notification server: the Desktop Notifications Specification, 1.3. `bare` has no actions, `markup` reads it in
    bodies, `unicast` tells nobody but whoever showed a notice, as GNOME's shell does."""

    def __init__(self, bus, modes):
        self.bus, self.modes, self.last, self.shown, self.is_silent = bus, modes, 0, {}, False

    def tell(self, member, signature, values):
        destination = self.shown[values[0]] if "unicast" in self.modes else None
        self.bus.send(4, signature, values, path="/org/freedesktop/Notifications", interface=NOTIFICATIONS,
                      member=member, destination=destination)

    def order(self, words):
        if words[0] == "answer":
            notice = int(words[1])
            if len(words) > 3:
                self.tell("ActivationToken", "us", [notice, words[3]])
            self.tell("ActionInvoked", "us", [notice, words[2]])
            self.close(notice, 2)
        elif words[0] == "close":
            self.close(int(words[1]), int(words[2]))
        elif words[0] == "silent":
            self.is_silent = True

    def close(self, notice, reason):
        self.tell("NotificationClosed", "uu", [notice, reason])
        del self.shown[notice]

    def call(self, sender, path, interface, member, arguments):
        if self.is_silent:
            return None
        if member == "GetCapabilities":
            return "as", [["body"] + ["actions"] * ("bare" not in self.modes)
                          + ["body-markup"] * ("markup" in self.modes)]
        if member == "Notify":
            app, replaces, icon, summary, body, actions, hints, timeout = arguments
            notice = replaces
            if not notice:
                self.last += 1
                notice = self.last
            elif notice not in self.shown:
                print(f"stale {notice}", flush=True)
            self.shown[notice] = sender
            members = {"id": notice, "replaces": replaces, "app": app, "summary": summary, "body": body,
                       "actions": actions, "hints": hints,
                       "timeout": struct.unpack("<i", struct.pack("<I", timeout))[0]}
            print("shown " + json.dumps(members, ensure_ascii=False, sort_keys=True), flush=True)
            return "u", [notice]
        if member == "CloseNotification":
            print(f"closed {arguments[0]}", flush=True)
            if arguments[0] in self.shown:
                self.close(arguments[0], 3)
            return "", []
        raise Refusal("org.freedesktop.DBus.Error.UnknownMethod")


SYSTEMD = "org.freedesktop.systemd1"


class Systemd:
    """A service manager that says it has started what it is asked to. `old` knows no ExitType, `failing` starts
    nothing."""

    def __init__(self, bus, modes):
        self.bus, self.modes = bus, modes

    def order(self, words):
        pass

    def call(self, sender, path, interface, member, arguments):
        if member == "Subscribe":
            return "", []
        if member == "Get":
            return "v", [("as", ["DISPLAY=:7", "LANG=C.UTF-8"])]
        if member == "StartTransientUnit":
            properties = dict(arguments[2])
            if "old" in self.modes and "ExitType" in properties:
                raise Refusal("org.freedesktop.DBus.Error.PropertyReadOnly")
            print("unit " + json.dumps({"name": arguments[0], "mode": arguments[1], **properties}), flush=True)
            # Its result may come before the answer is read, or among others'.
            manager = ("/org/freedesktop/systemd1", SYSTEMD + ".Manager", "JobRemoved", "uoss")
            self.bus.signal(*manager, [1, SYSTEMD_JOB + "1", "other.service", "failed"])
            self.bus.signal(*manager, [2, SYSTEMD_JOB + "2", arguments[0],
                                       "failed" if "failing" in self.modes else "done"])
            return "o", [SYSTEMD_JOB + "2"]
        raise Refusal("org.freedesktop.DBus.Error.UnknownMethod")


SYSTEMD_JOB = "/org/freedesktop/systemd1/job/"


if __name__ == "__main__":
    address, role, *modes = sys.argv[1:]
    name, kind = {"secrets": ("org.freedesktop.secrets", Secrets), "login1": (LOGIN[:-1], Login),
                  "notifications": (NOTIFICATIONS, Notifications), "systemd1": (SYSTEMD, Systemd)}[role]
    bus = Bus(address, name)
    bus.serve(kind(bus, modes))
