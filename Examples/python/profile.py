#!/usr/bin/env python3
"""A small app of a Supabase project: says who is signed in, reads their row, follows what happens, signs in and out.

    PROJECT_URL=https://abcdefgh.supabase.co PROJECT_KEY=sb_publishable_... python3 profile.py app [sign-in PROVIDER | sign-out]

It needs the package ringback: python3-ringback, or `pip install ./Clients/python`.
"""

import json
import os
import sys
from urllib.request import Request, urlopen

from ringback import Broker, NoDaemon, RingbackError, Session


def current(broker: Broker, account: str) -> Session | None:
    """The session with a fresh access token, and its user; None for nobody."""
    try:
        return broker.session(account, include="user")
    except RingbackError as error:
        if error.code in ("sign_in_required", "session_expired"):
            return None
        raise


def show(session: Session | None) -> None:
    if session is None:
        return print("nobody is signed in", flush=True)
    print("signed in:", session.get("user", {}).get("email") or session["subject"])
    # The user's own row, by the project's REST endpoint.
    url = f"{os.environ['PROJECT_URL']}/rest/v1/profiles?select=*&id=eq.{session['subject']}"
    headers = {"apikey": os.environ["PROJECT_KEY"], "Authorization": "Bearer " + session["access_token"]}
    with urlopen(Request(url, headers=headers), timeout=20) as answer:
        print("profile:", json.dumps(next(iter(json.load(answer)), None), sort_keys=True), flush=True)


def main(account: str, deed: str = "", provider: str = "") -> None:
    broker = Broker(application="Profile example")
    if deed == "sign-in":
        broker.sign_in(account, oauth_provider=provider)
    elif deed == "sign-out":
        broker.sign_out(account)
    if deed:
        return show(current(broker, account))
    for event in broker.events(account):
        print("event:", event.name, flush=True)
        if event.name == "signed_out":
            return show(None)
        if event.name in ("initial_session", "signed_in", "user_updated"):
            show(current(broker, account))
    sys.exit("the daemon has ended the events")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:]) if len(sys.argv) in (2, 3, 4) else sys.exit(__doc__)
    except (RingbackError, NoDaemon) as error:
        sys.exit(str(error))
