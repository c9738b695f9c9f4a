#!/usr/bin/env -S python3 -B
"""Signs in at a real provider whose tokens are bound to a key, idpyoidc, and uses them with proofs (RFC 9449)."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from harness import Refuted, begun, claims_of, expect, free_ports, must, played, read, stop  # noqa: E402
from harness import tcp_request, write  # noqa: E402
from house import ACCOUNT, House  # noqa: E402
from kinds import account  # noqa: E402
from oidf_front import browse  # noqa: E402

from dpop_provider import CLIENT, EMAIL, SCOPES  # noqa: E402


class Provider:
    def __init__(self, directory):
        self.directory = os.path.join(directory, "idpyoidc")
        os.mkdir(self.directory, 0o700)
        self.log = os.path.join(self.directory, "log")
        port, callbacks = free_ports(2)
        self.issuer = f"http://127.0.0.1:{port}"
        self.userinfo = self.issuer + "/userinfo"
        self.callback = f"http://127.0.0.1:{callbacks}/callback"
        program = [sys.executable, "-B", os.path.join(HERE, "dpop_provider.py")]
        self.process, _ = begun([*program, self.directory, str(port), self.callback], self.log)

    def why(self):
        return "the provider said: " + read(self.log)[-1500:]

    def close(self):
        stop(self.process)


def proof(house, provider):
    body = {"method": "GET", "url": provider.userinfo}
    return must(house.api("POST", f"/v1/accounts/{ACCOUNT}/proof", body), "the proof")


def asked(provider, authorization, *proofs):
    """The status of userinfo."""
    fields = {"Authorization": authorization} | {"DPoP": each for each in proofs}
    return tcp_request(provider.userinfo, headers=fields)[0]


def signs_in(house, provider):
    _, flow = house.api("POST", f"/v1/accounts/{ACCOUNT}/sign-in", {"method": "browser"})
    browse(flow["authorization_url"]).deliver()
    flow = must(house.api("GET", f"/v1/flows/{flow['id']}?wait=20"), "the flow")
    expect(flow["status"] == "completed", f"it ended as {flow}")
    # The address comes from userinfo alone.
    expect(house.account()["user"].get("email") == EMAIL, f"userinfo refused the proof: {house.account()}")


def is_used(house, provider):
    first = proof(house, provider)
    expect(first["token_type"] == "DPoP", f"the token is a {first['token_type']}")
    expect(asked(provider, first["authorization"], first["dpop"]) == 200, "userinfo refused a token with its proof")
    for authorization in [first["authorization"], "Bearer " + first["access_token"]]:
        expect(asked(provider, authorization) == 401, "userinfo took a token without its proof")
    shown = house.ringback("token", ACCOUNT, "--dpop", "GET", provider.userinfo).stdout
    fields = dict(line.split(": ", 1) for line in shown.splitlines())
    expect(asked(provider, fields["Authorization"], fields["DPoP"]) == 200, f"userinfo refused {shown}")
    expect(house.ringback("token", ACCOUNT).returncode == 1, "the token is given without a proof")


def is_refreshed(house, provider):
    """Also by a daemon that has read the key from its vault."""
    held = [proof(house, provider)]
    for restarts in [False, True]:
        if restarts:
            house.restart()
        must(house.api("POST", f"/v1/accounts/{ACCOUNT}/refresh", {"force": True}), "the refresh")
        held.append(proof(house, provider))
        expect(held[-1]["access_token"] != held[-2]["access_token"], "the refresh brought the same token")
        expect(asked(provider, held[-1]["authorization"], held[-1]["dpop"]) == 200, "userinfo refused the new token")
    expect(len({claims_of(each["access_token"])["cnf"]["jkt"] for each in held}) == 1, "the key has changed")
    expect(asked(provider, held[-1]["authorization"], held[-2]["dpop"]) == 401, "userinfo took another token's proof")


@played(only=("", "dpop: this one of the three"))
def campaign(chosen, report, places):
    house = places.add(House(chosen.bin, shimmed=False), chosen.keep)
    provider = places.add(Provider(house.directory))
    write(house.configuration, account(
        ACCOUNT, issuer=provider.issuer, client_id=CLIENT, redirect_uri=provider.callback, scopes=SCOPES,
        dpop="required") + f'[[origin]]\nurl = "{provider.userinfo}"\naccount = "{ACCOUNT}"\n')
    house.start()
    walks = {"a sign-in binds the tokens to a key": signs_in, "a bound token is used with proofs": is_used,
             "a bound session is refreshed": is_refreshed}
    for title, walk in walks.items():
        try:
            walk(house, provider)
            report.note(True, title)
        except (Refuted, LookupError, OSError, ValueError) as reason:
            report.note(False, title, f"{type(reason).__name__} {reason} {provider.why()}")
