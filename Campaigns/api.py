#!/usr/bin/env -S python3 -B
"""Holds the daemon to the OpenAPI document that it serves: schemathesis asks, through a bridge from TCP to the socket.

No 500, and no answer that the document does not name, by status, media type and shape. Asked three times: for accounts
of any name, for one that is signed in, and with the vault locked. Streams are left out: they do not end.
"""

import json
import os
import socket
import subprocess
import xml.etree.ElementTree as XML

from harness import Relay, Trouble, must, played, write
from house import ACCOUNT, House
from venv_programs import installed

SCHEMATHESIS = "schemathesis==4.32.5"
STREAMS = ["streamEvents"]
# Fetched first of all, but never asked as an operation.
DOCUMENT = "getOpenAPI"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# By name: the account that is asked for (none: any), and the operations that would end what the variant is about.
VARIANTS = {
    "any account": (None, []),
    "signed in": (ACCOUNT, ["signOut", "lockVault", "rekeyVault"]),
    "locked": (ACCOUNT, ["unlockVault", "rekeyVault"]),
}
# A variant that overruns its seconds by this much is stuck.
GRACE = 60


def ask(program, house, bridge, name, seconds, source=None):
    """Runs schemathesis for a variant, by the served document or another one.

    Returns (its words, the complaint of each operation that it asked).
    """
    account, left_out = VARIANTS.get(name, (None, []))
    place = house.place("schemathesis-" + name.replace(" ", "-"))
    os.mkdir(place)
    settings = os.path.join(place, "schemathesis.toml")
    # A pending flow may be waited for as long as a caller wishes: not here.
    write(settings, (f'[parameters]\n"path.account" = "{account}"\n\n' if account else "")
          + '[[operations]]\ninclude-operation-id = "getFlow"\nparameters = { "query.wait" = 1 }\n')
    junit = os.path.join(place, "junit.xml")
    command = [program, "--config-file", settings, "run", source or url_of(bridge) + "/v1/openapi.json",
               "--url", url_of(bridge), "--checks", CHECKS, "--max-time", str(seconds), "--request-timeout", "20", "--workers", "1",
               "--continue-on-failure", "--generation-database", "none", "--report-junit-path", junit]
    for operation in STREAMS + left_out:
        command += ["--exclude-operation-id", operation]
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": house.place("home"), "NO_COLOR": "1"}
    done = subprocess.run(command, env=environment, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds + GRACE)
    words = done.stdout.decode(errors="replace")
    if not os.path.exists(junit):
        raise Trouble(f"schemathesis did not run: {words[-2000:]}")
    complaints = {}
    for case in XML.parse(junit).getroot().iter("testcase"):
        found = [*case.iter("failure"), *case.iter("error")]
        skipped = case.find("skipped") is not None
        complaints[case.get("name")] = "was skipped" if skipped else "\n".join(
            (one.get("message") or "") + (one.text or "") for one in found)
    return words, complaints


def expected(house, left_out):
    """The operations of the document that a variant asks, as "METHOD /path"."""
    document = must(house.api("GET", "/v1/openapi.json"), "the OpenAPI document")
    return {
        f"{method.upper()} {path}" for path, methods in document["paths"].items()
        for method, operation in methods.items() if operation["operationId"] not in [DOCUMENT, *STREAMS, *left_out]
    }


def prepare(house, name):
    house.fresh()
    house.start()
    if name != "any account":
        must(house.sign_in(), "the sign-in")
    if name == "locked":
        must(house.api("POST", "/v1/vault/lock", {}), "locking")
        if not house.api("GET", "/v1/status")[1]["vault"]["locked"]:
            raise Trouble("the vault does not lock")


def sees(program, house, bridge):
    """Whether an answer that the document does not name is noticed: the document says no word of 404 for an account."""
    document = house.api("GET", "/v1/openapi.json")[1]
    path = "/v1/accounts/{account}"
    document["paths"] = {path: {"get": document["paths"][path]["get"]}}
    del document["paths"][path]["get"]["responses"]["404"]
    spoilt = write(house.place("spoilt.json"), json.dumps(document))
    _, complaints = ask(program, house, bridge, "spoilt document", 20, spoilt)
    return "404" in complaints.get("GET " + path, "")


def judge(report, house, name, complaints):
    # What is asked beyond single operations (sequences of them) counts too.
    for operation in sorted(expected(house, VARIANTS[name][1]) | set(complaints)):
        report.note(not complaints.get(operation, "was not asked"), f"{name}: {operation}",
                    complaints.get(operation, "was not asked"))
    report.note(house.is_alive, f"{name}: the daemon", f"has ended: {house.why()}")
    if name == "signed in":
        state = house.account().get("state")
        report.note(state == "authenticated", f"{name}: the session", f"is {state} afterwards")
    if name == "locked":
        is_locked = house.api("GET", "/v1/status")[1]["vault"]["locked"]
        report.note(is_locked, f"{name}: the vault", "is open afterwards")


def url_of(bridge):
    return f"http://127.0.0.1:{bridge.listener.getsockname()[1]}"


@played(seconds=(30, "for each of the variants"), only=("", "only variants with this in their names"))
def campaign(chosen, report, places):
    program = os.path.join(installed("api", SCHEMATHESIS), "schemathesis")
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    # A port of loopback whose every connection is one to the socket.
    bridge = places.add(Relay(socket.create_server(("127.0.0.1", 0), backlog=64), house.socket))
    house.fresh()
    house.start()
    if not sees(program, house, bridge):
        raise Trouble("schemathesis does not complain of a document that leaves an answer out: nothing was asked")
    report.note(True, "a document that leaves 404 out")
    for name in VARIANTS:
        if chosen.only not in name:
            continue
        prepare(house, name)
        words, complaints = ask(program, house, bridge, name, 24 if chosen.short else chosen.seconds)
        if not complaints:
            raise Trouble(f"schemathesis asked for nothing: {words[-500:]}")
        print(f"\n{name}\n" + "\n".join(words.splitlines()[-12:]), flush=True)
        judge(report, house, name, complaints)
