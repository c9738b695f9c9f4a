"""What a confined program might try to reach.

    confined_probe.py try FILE          tries each way to what FILE (JSON) says is outside, and writes what succeeded
    confined_probe.py start FILE WORDS  as a person's session: with a key and an open descriptor, starts a command
    confined_probe.py serve FILE        is what is outside: services, a process, shared memory
    confined_probe.py far PORT          is what is beyond: a service at every address
"""

import contextlib
import ctypes
import json
import os
import resource
import socket
import sys
import termios
import threading

C = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL, IO_URING_SETUP, USERFAULTFD = 248, 250, 425, 323
DESCRIPTOR = 9


def call(*arguments):
    ctypes.set_errno(0)
    result = C.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "a system call")
    return result


def connected(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as channel:
        channel.settimeout(2)
        channel.connect(address)
        channel.sendall(b"?")
        return channel.recv(16) == b"!"


def content(path):
    with open(path, "rb") as file:
        return file.read(1 << 20)


def written(path):
    with open(path, "a"):
        return True


def made(path):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.close(descriptor)
    os.unlink(path)
    return True


def renamed(path):
    os.rename(path, path + ".away")
    os.rename(path + ".away", path)
    return True


def shared_memory(key):
    number = C.shmget(key, 0, 0)
    if number < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    return True


def key(name):
    # KEYCTL_SEARCH in the session keyring.
    return call(KEYCTL, 10, ctypes.c_long(-3), b"user", name.encode(), 0) > 0


def typed():
    # Standard input is the terminal of whoever called.
    for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 40):
        if C.ioctl(0, ctypes.c_ulong(request), b"#") == 0:
            return True
    raise OSError(ctypes.get_errno(), "TIOCSTI")


def user_namespace():
    if os.fork() == 0:
        os._exit(0 if C.unshare(0x10000000) == 0 else 1)
    return os.wait()[1] == 0


def route_deleted():
    return os.system("ip rule del pref 100 2>/dev/null") == 0 and os.system("ip route add 10.0.0.0/8 dev lo") == 0


def multicast(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(2)
        channel.sendto(b"?", ("224.0.0.251", port))
        return channel.recv(16) == b"!"


def environments():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            yield content(f"/proc/{pid}/environ")


def process(pid, name):
    return bool(content(f"/proc/{pid}/{name}"))


def ways(outside):
    """Each way: its name, and what returns true or throws."""
    home, pid = outside["home"], outside["victim"]
    return {
        "a socket in the home directory": lambda: connected(socket.AF_UNIX, outside["home_socket"]),
        "the daemon's socket": lambda: connected(socket.AF_UNIX, outside["daemon_socket"]),
        "the session bus's socket": lambda: connected(socket.AF_UNIX, outside["bus_socket"]),
        "an abstract socket": lambda: connected(socket.AF_UNIX, outside["abstract"]),
        "a service at 127.0.0.1": lambda: connected(socket.AF_INET, ("127.0.0.1", outside["port"])),
        "a service at ::1": lambda: connected(socket.AF_INET6, ("::1", outside["port6"])),
        "a service at another address of this machine": lambda: connected(socket.AF_INET, (outside["other"], outside["any"])),
        "a service of UDP at 127.0.0.1":
            lambda: connected(socket.AF_INET, ("127.0.0.1", outside["udp"]), socket.SOCK_DGRAM),
        "a service of the private network": lambda: connected(socket.AF_INET, (outside["private"], outside["any"])),
        "the metadata of a cloud": lambda: connected(socket.AF_INET, (outside["metadata"], outside["any"])),
        "a process's environment": lambda: process(pid, "environ"),
        "a process's memory map": lambda: process(pid, "maps"),
        "a process's command line": lambda: b"victim" in content(f"/proc/{pid}/cmdline"),
        "a process's root": lambda: bool(os.listdir(f"/proc/{pid}/root{home}")),
        "a signal to a process": lambda: os.kill(pid, 0) is None,
        "a trace of a process": lambda: C.ptrace(0x4206, pid, None, None) == 0,
        "a process's limits": lambda: bool(resource.prlimit(pid, 7)),
        "shared memory": lambda: shared_memory(outside["memory"]),
        "a key of the session": lambda: key(outside["key"]),
        "a file of the home directory": lambda: bool(content(home + "/secret")),
        "a file's date in the home directory": lambda: bool(os.stat(home + "/secret")),
        "a list of the home directory": lambda: "secret" in os.listdir(home),
        "the configuration of Ringback": lambda: written(home + "/.config/ringback/config.toml"),
        "a program in the home's PATH folder": lambda: written(home + "/.local/bin/git"),
        "the shell's start file": lambda: b"outside" in content(home + "/.bashrc"),
        "a temporary file of somebody else": lambda: bool(content(outside["temporary"])),
        "git's hooks": lambda: made(outside["work"] + "/.git/hooks/pre-commit"),
        "git's configuration": lambda: written(outside["work"] + "/.git/config"),
        "git's folder out of the way": lambda: renamed(outside["work"] + "/.git"),
        "a submodule's hooks": lambda: made(outside["work"] + "/.git/modules/lib/hooks/pre-commit"),
        "an editor's settings": lambda: written(outside["work"] + "/.vscode/settings.json"),
        "direnv's file": lambda: written(outside["work"] + "/.envrc"),
        "a file behind a link of the repository": lambda: b"a secret" in content(outside["work"] + "/.idea"),
        "a folder behind a link of the repository": lambda: "secret" in os.listdir(outside["work"] + "/.claude"),
        "an agent's servers": lambda: written(outside["work"] + "/.mcp.json"),
        "a descriptor that was open": lambda: bool(os.pread(DESCRIPTOR, 16, 0)),
        "a variable of any process": lambda: any(b"PROBE_TOKEN=" in each for each in environments()),
        "the group of the caller": lambda: os.kill(0, 0) is None,
        "a service by multicast": lambda: multicast(outside["multicast"]),
        "a device of this network": lambda: connected(socket.AF_INET, (outside["neighbour"], outside["any"])),
        "hooks of a folder that was given": lambda: made(outside["out"] + "/.git/hooks/pre-commit"),
        "where git finds what work trees share": lambda: made(outside["work"] + "/.git/worktrees/side/commondir.new")
            and written(outside["work"] + "/.git/worktrees/side/commondir"),
        "a variable": lambda: os.environ["PROBE_TOKEN"] == "a secret",
        "a line typed into the terminal": typed,
        "a ring of io_uring": lambda: call(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)) >= 0,
        "userfaultfd": lambda: call(USERFAULTFD, 1) >= 0,
        "a socket of AF_VSOCK": lambda: bool(socket.socket(socket.AF_VSOCK)),
        "a socket of AF_ALG": lambda: bool(socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)),
        "a user namespace": user_namespace,
        "the rules of the network": route_deleted,
    }


def attempt(outside):
    done = {}
    for name, way in ways(outside).items():
        try:
            done[name] = bool(way())
        except Exception as error:  # Each says in its way that there is nothing.
            done[name] = f"{type(error).__name__} {error}"
    with open(outside["result"], "w") as file:
        json.dump(done, file)


def start(outside, words):
    call(KEYCTL, 1, None)
    call(ADD_KEY, b"user", outside["key"].encode(), b"a secret", 8, ctypes.c_long(-3))
    secret = os.open(outside["home"] + "/secret", os.O_RDONLY)
    os.dup2(secret, DESCRIPTOR)
    os.environ["PROBE_TOKEN"] = "a secret"
    os.chdir(outside["work"])
    os.execvp(words[0], words)


def answering(family, address, kind=socket.SOCK_STREAM):
    """Answers everybody at an address. Returns the port, if there is one."""
    channel = socket.socket(family, kind)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    channel.bind(address)

    def stream():
        channel.listen()
        while True:
            caller, _ = channel.accept()
            with caller:
                if caller.recv(16):
                    caller.sendall(b"!")

    def datagrams():
        if family == socket.AF_INET:
            with contextlib.suppress(OSError):
                group = socket.inet_aton("224.0.0.251") + socket.inet_aton("0.0.0.0")
                channel.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        while True:
            channel.sendto(b"!", channel.recvfrom(16)[1])

    threading.Thread(target=stream if kind == socket.SOCK_STREAM else datagrams, daemon=True).start()
    return None if family == socket.AF_UNIX else channel.getsockname()[1]


def serve(outside, path):
    for name in ("home_socket", "daemon_socket", "bus_socket"):
        os.makedirs(os.path.dirname(outside[name]), exist_ok=True)
        answering(socket.AF_UNIX, outside[name])
    outside["abstract"] = f"\0ringback-probe-{os.getpid()}"
    answering(socket.AF_UNIX, outside["abstract"])
    outside |= {"port": answering(socket.AF_INET, ("127.0.0.1", 0)), "port6": answering(socket.AF_INET6, ("::1", 0)),
                "udp": answering(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM), "victim": os.getpid(),
                "memory": 0x52420000 + os.getpid() % 0xFFFF}
    answering(socket.AF_INET, ("0.0.0.0", outside["any"]))
    outside["multicast"] = answering(socket.AF_INET, ("0.0.0.0", 0), socket.SOCK_DGRAM)
    if C.shmget(outside["memory"], 4_096, 0o1600) < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    with open(path + ".new", "w") as file:
        json.dump(outside, file)
    os.rename(path + ".new", path)
    sys.stdin.read()
    C.shmctl(C.shmget(outside["memory"], 0, 0), 0, 0)


def main():
    mode, where, *words = sys.argv[1:]
    if mode == "far":
        answering(socket.AF_INET, ("0.0.0.0", int(where)))
        print("ready", flush=True)
        return sys.stdin.read()
    with open(where) as file:
        outside = json.load(file)
    return {"try": lambda: attempt(outside), "start": lambda: start(outside, words),
            "serve": lambda: serve(outside, where)}[mode]()


if __name__ == "__main__":
    main()
