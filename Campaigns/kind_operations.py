"""The operations at accounts of other kinds: users of a Supabase project, sessions that are not kept, services.

A Supabase project takes the former refresh token for a lost answer, at any time: what rotates once loses nothing there,
also with no patience at all. A session that is not kept ends with the daemon and with a lock, and the project is told
of it where the daemon had the time; a service has its session from its configuration.
"""

import base64
import hashlib
import hmac
import os
import struct
import time

from harness import Trouble, claims_of, soon
from house import ACCOUNT
from kinds import BOUND, NOT_KEPT, PASSWORD, SERVICE_ACCOUNT, SUPABASE_V1, SUPABASE_V2
from operations import (
    OPERATIONS, SESSION, Operation, asking, interrupted, lock, must, refresh, refreshing, reload, sign_out, signed_in,
    signed_in_and_locked, signed_out, start, start_again, stop, stopped, two_refreshes, unlock,
)

REST = f"/v1/accounts/{ACCOUNT}"
NEW_EMAIL = "new@example.org"
# A daemon looks every 30 seconds for what its projects have yet to be told.
SECONDS_TO_TELL = 45


def totp(secret):
    """RFC 6238 with SHA-1, as authenticator apps have it."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", int(time.time()) // 30), hashlib.sha1)
    place = digest[19] & 15
    return f"{(struct.unpack_from('>I', digest, place)[0] & 0x7FFFFFFF) % 1_000_000:06}"


def challenged(house):
    """A second factor that is enrolled and asked for."""
    signed_in(house)
    status, factor = house.api("POST", f"{REST}/factors", {"factor_type": "totp"})
    if status != 201:
        raise Trouble(f"enrolling a second factor answered {status}: {factor}")
    path = f"{REST}/factors/{factor['id']}"
    challenge = must(house.api("POST", f"{path}/challenge", {}), "the challenge")
    house.proof = (f"{path}/verify", challenge["id"], factor["totp"]["secret"])


def prove(house):
    path, challenge, secret = house.proof
    return house.api("POST", path, {"challenge_id": challenge, "code": totp(secret)})


def is_proven(house):
    level = house.account().get("aal")
    return "" if level == "aal2" else f"the second factor was verified, and the session is {level}"


update = asking("PATCH", f"{REST}/user", {"data": {"color": "blue"}})


def is_updated(house):
    found = (house.account().get("user") or {}).get("user_metadata", {}).get("color")
    return "" if found == "blue" else f"the user was updated, and their color is {found}"


def address_awaited(house):
    """A new address waits for the code that was sent to it."""
    house.sandbox.project.control(supabase={"autoconfirm": False})
    signed_in(house)
    status, document = house.api("PATCH", f"{REST}/user", {"email": NEW_EMAIL})
    if "flow" not in document:
        raise Trouble(f"the new address waits for nothing: {status} {document}")
    letter = house.sandbox.project.look("mailbox")["letters"][-1]
    house.proof = (document["flow"]["id"], letter["code"])


def confirm_address(house):
    flow, code = house.proof
    return house.api("POST", f"/v1/flows/{flow}/verify", {"code": code, "email": NEW_EMAIL})


def is_confirmed(house):
    found = (house.account().get("user") or {}).get("email")
    return "" if found == NEW_EMAIL else f"the address was confirmed, and it is {found}"


def link(house):
    return house.finish(*house.api("POST", f"{REST}/identities", {"oauth_provider": "github"}))


def is_linked(house):
    status, document = house.api("GET", f"{REST}/identities")
    found = [one.get("provider") for one in document.get("identities", [])]
    return "" if "github" in found else f"the identity was linked, and there are: {status} {found}"


def offered(house):
    signed_out(house)
    house.proof = house.kind.other_session(house)


def hand_in(house):
    tokens = {name: house.proof[name] for name in ["access_token", "refresh_token"]}
    return house.api("POST", f"{REST}/sign-in", {"method": "session"} | tokens)


def session_of(token):
    return claims_of(token)["session_id"]


def held_token(house):
    return must(house.api("GET", SESSION), "the session")["access_token"]


def signed_in_before(house):
    signed_in(house)
    house.former = held_token(house)


def signed_in_as_another(house):
    signed_in_before(house)
    house.sandbox.project.control(supabase={"users": [{"email": NEW_EMAIL, "password": PASSWORD}]})


switch = asking("POST", f"{REST}/sign-in", {
    "method": "password", "email": NEW_EMAIL, "password": PASSWORD, "switch_subject": True})


def signed_in_with_deaf_project(house):
    signed_in_before(house)
    house.sandbox.project.control(faults=[{"endpoint": "supabase_logout", "kind": "status", "status": 503}])


def project_back(house):
    house.sandbox.project.control(clear=True)


def former_is_over(house):
    """The former session is over at the project, if another one has taken its place here."""
    if session_of(held_token(house)) == session_of(house.former):
        return ""
    if soon(lambda: not house.kind.honours(house, house.former), SECONDS_TO_TELL):
        return ""
    return "the session was replaced, and the former one lives on at the project"


def is_told_at_the_next_start(house):
    """The same of a project that was away: a new daemon tells it at once, one that failed to waits for half a minute."""
    house.restart()
    return former_is_over(house)


def is_replaced(house):
    if session_of(held_token(house)) == session_of(house.former):
        return "the sign-in was done, and the former session is held"
    return former_is_over(house)


def supabase(kind):
    return [
        Operation(f"{kind.name}: {name}", run, kind=kind, **more)
        for name, run, more in [
            ("sign-in", lambda house: house.sign_in(), {"prepare": signed_out, "before": "none"}),
            ("sign-in again", lambda house: house.sign_in(), {
                "prepare": signed_in_before, "shows": is_replaced, "replaces": former_is_over}),
            ("switch", switch, {
                "prepare": signed_in_as_another, "shows": is_replaced, "replaces": former_is_over}),
            ("sign-in again, project away", lambda house: house.sign_in(), {
                "prepare": signed_in_with_deaf_project, "back": project_back, "shows": is_told_at_the_next_start,
                "replaces": is_told_at_the_next_start}),
            ("refresh", refresh, {}),
            ("two refreshes", two_refreshes, {"rotations": 2}),
            ("second factor", prove, {"prepare": challenged, "shows": is_proven, "is_two_behind": True}),
            ("user update", update, {"shows": is_updated}),
            ("new address", confirm_address, {"prepare": address_awaited, "shows": is_confirmed}),
            ("identity link", link, {"shows": is_linked}),
            ("session handed in", hand_in, {"prepare": offered, "before": "none"}),
            ("sign-out", sign_out, {"after": "none", "is_sign_out": True}),
            ("lock", lock, {"writes": False}),
            ("unlock", unlock, {"prepare": signed_in_and_locked, "writes": False}),
            ("start", start, {"prepare": stopped}),
            ("start after a cut refresh", start, {"prepare": interrupted, "is_unheard": True}),
            ("stop in a refresh", stop, {"prepare": refreshing, "back": start_again}),
        ]
    ]


def kept(house):
    signed_out(house)
    must(house.kind.sign_in(house, ACCOUNT, is_kept=True), "the sign-in before")


def stop_idle(house):
    return stop(house, held=0)


def not_kept():
    gone = ("none", "none")
    return [
        Operation(f"{NOT_KEPT.name}: {name}", run, kind=NOT_KEPT, writes=False, **more)
        for name, run, more in [
            ("sign-in", lambda house: house.sign_in(), {
                "prepare": signed_out, "before": "none", "restarted": gone}),
            ("refresh", refresh, {"restarted": gone}),
            ("second factor", prove, {
                "prepare": challenged, "shows": is_proven, "restarted": gone, "is_two_behind": True}),
            ("over a kept one", lambda house: house.sign_in(), {
                "prepare": kept, "restarted": ("session", "none")}),
            ("a kept one over it", lambda house: house.kind.sign_in(house, ACCOUNT, is_kept=True), {
                "restarted": ("none", "session")}),
            ("reload", reload, {"restarted": gone}),
            ("sign-out", sign_out, {"after": "none", "restarted": gone, "is_sign_out": True}),
            ("lock", lock, {"after": "none", "restarted": gone, "is_sign_out": True}),
            ("stop", stop_idle, {"after": "none", "restarted": gone, "is_sign_out": True, "back": start_again}),
        ]
    ]


def is_not_kept(house):
    """Nothing of a service is in the vault."""
    found = os.listdir(house.place("kept/state/vault"))
    return f"of a service there is in the vault: {found}" if found else ""


def fetched(house):
    signed_out(house)
    must(house.api("GET", SESSION), "the first token")


def fetched_and_locked(house):
    fetched(house)
    must(lock(house), "locking before")


def fetched_and_stopped(house):
    fetched(house)
    house.kill()


def service():
    return [
        Operation(f"service: {name}", run, prepare, kind=SERVICE_ACCOUNT, writes=False, shows=is_not_kept)
        for name, run, prepare in [
            ("first token", lambda house: house.api("GET", SESSION), signed_out),
            ("refresh", refresh, fetched),
            ("sign-out", sign_out, fetched),
            ("reload", reload, fetched),
            ("lock", lock, fetched),
            ("unlock", unlock, fetched_and_locked),
            ("start", start, fetched_and_stopped),
        ]
    ]


def bound():
    return [
        Operation(f"{BOUND.name}: {name}", run, kind=BOUND, **more)
        for name, run, more in [
            ("sign-in", lambda house: house.sign_in(), {"prepare": signed_out, "before": "none"}),
            ("sign-in again", lambda house: house.sign_in(), {}),
            ("refresh", refresh, {}),
            ("two refreshes", two_refreshes, {"rotations": 2}),
            ("start after a cut refresh", start, {"prepare": interrupted, "is_unheard": True}),
            ("stop in a refresh", stop, {"prepare": refreshing, "back": start_again}),
        ]
    ]


OTHERS = [*supabase(SUPABASE_V2), *supabase(SUPABASE_V1), *not_kept(), *service(), *bound()]
EVERY = OPERATIONS + OTHERS


def chosen_operations(only, is_short):
    """Those of this name, or all that begin with it and a colon; if none is named all, or in a short campaign a sample."""
    if only:
        return [item for item in EVERY if item.name == only or item.name.startswith(only + ":")]
    return [item for item in EVERY if not is_short or item in OPERATIONS or item.name in SAMPLE]

# What the short campaigns take of the others: whatever brings a new refresh token in another way, and what must be gone.
SAMPLE = {
    *(f"{SUPABASE_V2.name}: {name}" for name in [
        "sign-in", "sign-in again", "refresh", "second factor", "user update", "new address", "identity link", "session handed in",
        "sign-out"]),
    *(f"{SUPABASE_V1.name}: {name}" for name in ["refresh", "second factor"]),
    *(f"{NOT_KEPT.name}: {name}" for name in ["refresh", "over a kept one", "lock"]),
    "service: first token", "service: lock", "bound: sign-in again", "bound: refresh",
}
