#!/usr/bin/env python3
"""A machine whose loopback interface has one address family, in a network namespace of its own.

    unshare -n one_family.py BINARIES DIRECTORY 4|6     (unshare -rn where the caller is not root)

Signs in with a private daemon, the sandbox and a browser (curl), once with the usual redirect URI and once with one on
[::1], and says how each ended: `NAME STATUS OPENED`, the program's exit status and whether the browser was opened; what
the program printed follows, indented. It judges nothing.
"""
import fcntl
import os
import socket
import struct
import subprocess
import sys

BOUND = 60 * max(1, int(os.environ.get("RINGBACK_TEST_PATIENCE") or 1))
binaries, directory, family = sys.argv[1:]


def set_up_loopback():
    if family == "4":
        with open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "w") as file:
            file.write("1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS with IFF_UP; SIOCSIFADDR with 0.0.0.0 takes 127.0.0.1 away.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", 1))
        if family == "6":
            fcntl.ioctl(any_socket, 0x8916, struct.pack("16sH22x", b"lo", socket.AF_INET))


def sign_in(name, origin, redirect_uri):
    place = os.path.join(directory, name)
    os.makedirs(place, mode=0o700)
    opened, browser = os.path.join(place, "opened"), os.path.join(place, "browser")
    with open(os.open(browser, os.O_WRONLY | os.O_CREAT, 0o700), "w") as file:
        file.write(f"#!/bin/sh\ntouch '{opened}'\nexec curl -sSgL -o /dev/null \"$1\"\n")
    configuration = os.path.join(place, "config.toml")
    with open(os.open(configuration, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f'[accounts.work]\nissuer = "{origin}"\nclient_id = "ringback-demo"\nscopes = ["openid", "email"]\n')
        if redirect_uri:
            file.write(f'redirect_uri = "{redirect_uri}"\n')
    ringback = os.path.join(binaries, "ringback")
    ended = subprocess.run(
        [ringback, "agent", "--config", configuration, "--", ringback, "login", "work"], timeout=BOUND,
        env=os.environ | {"BROWSER": browser, "HOME": place, "TMPDIR": place, "DISPLAY": ":0"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(name, ended.returncode, "opened" if os.path.exists(opened) else "unopened")
    for line in ended.stdout.splitlines():
        print("    " + line, flush=True)


set_up_loopback()
sandbox = subprocess.Popen(
    [os.path.join(binaries, "ringback-sandbox"), "--host", "127.0.0.1" if family == "4" else "::1", "--port", "0",
     "--user", "alice", "--auto-approve", "alice"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    origin = sandbox.stdout.readline().removeprefix("listening on ").strip()
    sign_in("usual", origin, None)
    sign_in("six", origin, "http://[::1]:{port}/callback/work")
finally:
    sandbox.terminate()
    sandbox.wait(BOUND)
