#!/usr/bin/env -S python3 -B
"""Signs in on another device at a real provider, django-oauth-toolkit: its endpoints, its pages, its rules.

The person is a browser without a screen: cookies, forms, redirects. Every question that Ringback asks is seen in the
provider's log.
"""

import http.cookiejar
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from harness import Trouble, begun, free_ports, played, progress, read, stop, write  # noqa: E402
from house import House  # noqa: E402

from device_provider import CLIENT, PASSWORD, PERSON  # noqa: E402

BOUND = 60


class Provider:
    """The provider as a process, and its log of requests: (seconds, method, path, status)."""

    def __init__(self, directory, python=sys.executable):
        [self.port] = free_ports(1)
        self.directory = os.path.join(directory, "django")
        os.mkdir(self.directory, 0o700)
        self.log = os.path.join(self.directory, "log")
        self.process, _ = begun(
            [python, "-B", os.path.join(HERE, "device_provider.py"), self.directory, str(self.port)], self.log)

    @property
    def issuer(self):
        return f"http://127.0.0.1:{self.port}/o"

    def why(self):
        return "the provider said: " + read(self.log)[-1500:]

    def close(self):
        stop(self.process)


class Person:
    """Whoever carries the code to a browser."""

    def __init__(self):
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def open(self, url, **form):
        """Loads a page, or answers its form with what stands in it and what the person adds: (where, the page)."""
        if form:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page)
            form["csrfmiddlewaretoken"] = token.group(1) if token else ""
        body = urllib.parse.urlencode(form).encode() if form else None
        with self.opener.open(urllib.request.Request(url, body), timeout=BOUND) as answer:
            self.page = answer.read().decode()
            self.place = answer.geturl()
        return self.place, self.page

    def enter(self, address, code, action):
        """The whole way: the page, the sign-in, the code, the decision."""
        place, _ = self.open(address)
        if "/login/" in place:
            place, _ = self.open(place, username=PERSON, password=PASSWORD)
        place, _ = self.open(address, user_code=code)
        if "device-confirm" not in place:
            raise Trouble(f"the code {code} led to {place}: {self.page[:200]}")
        return self.open(place, action=action)[1]


def started(house):
    """`ringback login --method device`, once it has printed the code: (the process, the flow)."""
    program = subprocess.Popen(
        [house.program(), "login", "work", "--method", "device"], env=house.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in program.stderr:
        if line.startswith("and enter the code:"):
            flows = house.api("GET", "/v1/flows")[1]["flows"]
            return program, line.split(":")[1].strip(), next(one for one in flows if one["status"] == "pending")
    raise Trouble(f"login ended with {program.wait()}")


def walk(house, provider, report):
    def note(is_right, what, why=""):
        report.note(is_right, what, str(why)[-300:])

    begun = time.monotonic()
    program, code, flow = started(house)
    note(flow["user_code"] == code, "the code that is printed is the flow's", f"{code}, {flow}")
    note(flow["verification_uri"] == f"{provider.issuer}/device/", "the page is the provider's", flow)
    Person().enter(flow["verification_uri"], code, "accept")
    out, errors = program.communicate(timeout=BOUND)
    note(program.returncode == 0 and out.startswith("Signed in to work as "), "a yes signs in", out + errors)
    note(time.monotonic() - begun >= 5, "the first question waits for the interval")
    status, session = house.api("GET", "/v1/accounts/work/session")
    note(status == 200 and session.get("access_token"), "there is a token", session)
    status, session = house.api("POST", "/v1/accounts/work/refresh", {"force": True})
    note(status == 200, "it can be refreshed", session)

    program, code, flow = started(house)
    Person().enter(flow["verification_uri"], code, "deny")
    out, errors = program.communicate(timeout=BOUND)
    note(program.returncode == 4 and not out, "a no is a no", f"{program.returncode} {out} {errors}")
    status, session = house.api("GET", "/v1/accounts/work/session")
    note(status == 200, "and costs no session", session)

    program, code, flow = started(house)
    time.sleep(12)
    Person().enter(flow["verification_uri"], code, "accept")
    out, errors = program.communicate(timeout=BOUND)
    note(program.returncode == 0, "a slow person is waited for", out + errors)
    lines = read(provider.log)
    note("slow_down" not in lines, "the provider never had to say slow_down", lines)


@played(only=("", "device: this one of the three"))
def campaign(chosen, report, places):
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    provider = places.add(Provider(house.directory))
    progress(f"{provider.issuer} is up")
    write(house.configuration, (
        f'[accounts.work]\nclient_id = "{CLIENT}"\nscopes = ["read"]\n[accounts.work.endpoints]\n'
        f'authorization = "{provider.issuer}/authorize/"\ntoken = "{provider.issuer}/token/"\n'
        f'device_authorization = "{provider.issuer}/device-authorization/"\n'))
    house.start()
    walk(house, provider, report)
