#!/usr/bin/env python3
"""Signs in to a Supabase project with a code that comes by SMS, says who that is, and signs out again.

    python3 phone.py app +4915112345678     then the code is a line of standard input; an empty one sends another
    python3 phone.py app sign-out

It needs the package ringback: python3-ringback, or `pip install ./Clients/python`.
"""

import sys

from ringback import Broker, Flow, NoDaemon, RingbackError


def enter_code(broker: Broker, flow: Flow) -> None:
    """Takes lines until one is the code that the flow waits for."""
    for line in sys.stdin:
        code = line.strip()
        try:
            flow = broker.verify(flow, code) if code else broker.resend(flow)
        except RingbackError as error:
            # The next line may be right, or come later.
            if error.code not in ("invalid_credentials", "rate_limited"):
                raise
            print(error.user_message or error, flush=True)
        else:
            if flow["status"] == "completed":
                return
            print("Another code was sent.", flush=True)
    broker.cancel(flow)
    sys.exit("there was no right code")


def main(account: str, phone: str) -> None:
    broker = Broker(application="Phone example")
    if phone == "sign-out":
        broker.sign_out(account)
        return print("nobody is signed in")
    flow = broker.sign_in(account, "otp", phone=phone)
    if flow["status"] == "pending":
        print(f"A code was sent to {phone}.", flush=True)
        enter_code(broker, flow)
    session = broker.session(account, include="user")
    print("signed in:", session.get("user", {}).get("phone") or session["subject"])


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (RingbackError, NoDaemon) as error:
        sys.exit(str(error))
