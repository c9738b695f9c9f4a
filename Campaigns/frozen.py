"""Lets one thread of another process stand still, and the others run: by ptrace, which root may."""

import ctypes
import os

from harness import Trouble

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
WALL = 0x4000_0000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def freeze(pid, begins):
    """Stops the thread whose name begins so, until its process ends. Returns the thread."""
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        with open(f"/proc/{pid}/task/{thread}/comm") as name:
            if not name.read().startswith(begins):
                continue
        for request in [PTRACE_SEIZE, PTRACE_INTERRUPT]:
            if libc.ptrace(request, thread, None, None) < 0:
                raise Trouble(f"the thread {thread} cannot be stopped: {os.strerror(ctypes.get_errno())}")
        os.waitpid(thread, WALL)
        return thread
    raise Trouble(f"no thread of {pid} is called {begins}")


def has_ended(thread):
    """True once the thread has ended. To be asked until then: a process is not gone while its tracer has not looked."""
    try:
        found, status = os.waitpid(thread, WALL | os.WNOHANG)
    except ChildProcessError:
        return True
    return found == thread and (os.WIFEXITED(status) or os.WIFSIGNALED(status))
