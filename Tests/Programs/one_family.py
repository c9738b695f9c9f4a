#!/usr/bin/env python3
"""A machine whose loopback interface has one address family, in a network namespace of its own.

    unshare -n one_family.py BINARIES DIRECTORY 4|6|none     (unshare -rn where the caller is not root)

With `none` the interface has no address, and there is no sandbox: nothing is asked of the provider before a page is
opened.

Signs in with a private daemon, the sandbox and a browser (curl): with the usual redirect URI, with one on [::1] and with
one of a custom scheme, whose links nothing delivers here. Says how each ended: `NAME STATUS OPENED`, the program's exit
status and the address that the browser was started with, its port and key left out, or `unopened`; what the program
printed follows, indented. It judges nothing.
"""
import fcntl
import os
import re
import socket
import struct
import subprocess
import sys

BOUND = 60 * max(1, int(os.environ.get("RINGBACK_TEST_PATIENCE") or 1))
binaries, directory, family = sys.argv[1:]


def set_up_loopback():
    if family != "6":
        with open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "w") as file:
            file.write("1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # SIOCSIFFLAGS with IFF_UP; SIOCSIFADDR with 0.0.0.0 takes 127.0.0.1 away.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", 1))
        if family != "4":
            fcntl.ioctl(any_socket, 0x8916, struct.pack("16sH22x", b"lo", socket.AF_INET))


def sign_in(name, provider, redirect_uri, *options):
    place = os.path.join(directory, name)
    os.makedirs(place, mode=0o700)
    opened, browser = os.path.join(place, "opened"), os.path.join(place, "browser")
    with open(os.open(browser, os.O_WRONLY | os.O_CREAT, 0o700), "w") as file:
        file.write(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >'{opened}'\nexec curl -sSgL -o /dev/null \"$1\"\n")
    configuration = os.path.join(place, "config.toml")
    with open(os.open(configuration, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f'[accounts.work]\n{provider}\nclient_id = "ringback-demo"\n')
        if redirect_uri:
            file.write(f'redirect_uri = "{redirect_uri}"\n')
    ringback = os.path.join(binaries, "ringback")
    ended = subprocess.run(
        [ringback, "agent", "--config", configuration, "--", ringback, "login", "work", *options], timeout=BOUND,
        env=os.environ | {"BROWSER": browser, "HOME": place, "TMPDIR": place, "DISPLAY": ":0"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    url = "unopened"
    if os.path.exists(opened):
        with open(opened) as file:
            url = re.sub(r":\d+/start/[\w-]+$", ":PORT/start/KEY", file.read().strip())
    print(name, ended.returncode, url)
    for line in ended.stdout.splitlines():
        print("    " + line, flush=True)


def sign_in_everywhere(provider):
    sign_in("usual", provider, None)
    sign_in("six", provider, "http://[::1]:{port}/callback/work")
    sign_in("scheme", provider, "org.example.app:/cb", "--timeout", "3")


set_up_loopback()
if family == "none":
    sign_in_everywhere(
        'scopes = ["email"]\n'
        'endpoints = { authorization = "https://id.example/authorize", token = "https://id.example/token" }')
    sys.exit()
sandbox = subprocess.Popen(
    [os.path.join(binaries, "ringback-sandbox"), "--host", "127.0.0.1" if family == "4" else "::1", "--port", "0",
     "--user", "alice", "--auto-approve", "alice", "--redirect-uri", "org.example.app:/cb"],
    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    origin = sandbox.stdout.readline().removeprefix("listening on ").strip()
    sign_in_everywhere(f'issuer = "{origin}"\nscopes = ["openid", "email"]')
finally:
    sandbox.terminate()
    sandbox.wait(BOUND)
