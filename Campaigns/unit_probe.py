"""What a process of a unit can do: run inside of it, prints JSON. Nothing here needs a privilege, so that what is
refused is refused by the unit: beside it the same runs in a unit without directives.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.sched_setscheduler.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
libc.personality.argtypes = [ctypes.c_ulong]

PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
ANONYMOUS = 0x22  # MAP_PRIVATE | MAP_ANONYMOUS
CLONE_NEWUSER, CLONE_NEWNET = 0x1000_0000, 0x4000_0000
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
# exit(42) by the 32-bit way: movl $1,%eax; movl $42,%ebx; int $0x80
CODE = bytes.fromhex("b801000000bb2a000000cd80")


def answer(value):
    """ "ok", or the name of the error."""
    return "ok" if value not in (-1, ctypes.c_void_p(-1).value) else errno.errorcode.get(ctypes.get_errno(), "?")


def apart(probe):
    """In a process of its own, which what it changes ends with: the answer, or the signal that ended it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(probe()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    text = os.read(reader, 4_096).decode()
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else text


def family(name):
    try:
        socket.socket(getattr(socket, name), socket.SOCK_DGRAM if name != "AF_ALG" else socket.SOCK_SEQPACKET).close()
        return "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")


def made_executable():
    page = libc.mmap(None, 4_096, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0)
    return answer(libc.mprotect(page, 4_096, PROT_READ | PROT_EXEC))


def suid():
    path = os.path.join(os.environ["HOME"], ".probe")
    open(path, "w").close()
    try:
        os.chmod(path, 0o4700)
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.unlink(path)


def foreign_code():
    """A program of the 32-bit architecture: its exit status, as far as it comes to that."""
    if platform.machine() != "x86_64":
        return "not for this machine"
    base, head = 0x0804_8000, 52 + 32
    size = head + len(CODE)
    elf = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, base + head, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    elf += struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000) + CODE
    path = os.path.join(os.environ["HOME"], ".probe32")
    with open(path, "wb") as file:
        file.write(elf)
    os.chmod(path, 0o700)
    child = os.fork()
    if child == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            os._exit(error.errno)
    status = os.waitpid(child, 0)[1]
    os.unlink(path)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"


def keyring():
    """What the session keyring is called."""
    if KEYCTL is None:
        return "not for this machine"
    text = ctypes.create_string_buffer(256)
    # KEYCTL_DESCRIBE of KEY_SPEC_SESSION_KEYRING.
    if libc.syscall(KEYCTL, 6, -3, text, 256) < 0:
        return errno.errorcode.get(ctypes.get_errno(), "?")
    return text.value.decode().split(";")[-1]


def tasks():
    """How many processes there may be beside this one: up to 300 are tried."""
    reader, writer = os.pipe()
    children = []
    try:
        while len(children) < 300:
            child = os.fork()
            if child == 0:
                os.close(writer)
                # Until the end of all.
                os.read(reader, 1)
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    os.close(writer)
    for child in children:
        os.waitpid(child, 0)
    os.close(reader)
    return len(children)


def limits():
    """The limits of our control group, as far as a hierarchy has them."""
    found = {}
    for line in open("/proc/self/cgroup"):
        number, controllers, path = line.rstrip("\n").split(":", 2)
        places = ["/sys/fs/cgroup" + path, "/sys/fs/cgroup/unified" + path] if number == "0" else [
            f"/sys/fs/cgroup/{controllers}{path}"]
        for name in ["memory.max", "pids.max", "memory.limit_in_bytes"]:
            for place in places:
                if os.path.exists(f"{place}/{name}") and path.endswith("ringback-probe.service"):
                    found[name] = open(f"{place}/{name}").read().strip()
    return found


def main():
    status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    families = ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_ALG", "AF_PACKET", "AF_BLUETOOTH"]
    print(json.dumps({
        "no_new_privileges": status["NoNewPrivs"],
        # Of @debug; anybody may ask to be traced.
        "traceme": apart(lambda: answer(libc.ptrace(0, 0, 0, 0))),
        # The version of Landlock. It and its calls have these numbers on every processor.
        "landlock": answer(libc.syscall(444, None, 0, 1)),
        "families": {name: family(name) for name in families if hasattr(socket, name)},
        "user_namespace": apart(lambda: answer(libc.unshare(CLONE_NEWUSER))),
        "network_namespace": apart(lambda: answer(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET))),
        # With a bad address: the kernel would say EFAULT to anybody, before it asks for the privilege.
        "realtime": answer(libc.sched_setscheduler(0, os.SCHED_FIFO, 1)),
        "suid": suid(),
        "personality": apart(lambda: answer(libc.personality(0x004_0000))),
        "writable_code": apart(lambda: answer(libc.mmap(None, 4_096, 7, ANONYMOUS, -1, 0))),
        "made_executable": apart(made_executable),
        "foreign_code": foreign_code(),
        "umask": f"{os.umask(0o77):04o}",
        "core": list(resource.getrlimit(resource.RLIMIT_CORE)),
        "keyring": keyring(),
        "environment": dict(os.environ),
        "limits": limits(),
        "tasks": tasks(),
    }))


if __name__ == "__main__":
    sys.exit(main())
