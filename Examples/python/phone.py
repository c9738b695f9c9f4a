#!/usr/bin/env python3
"""Signs in to a Supabase project with a code that comes by SMS, says who that is, and signs out again.

    python3 phone.py app +4915112345678     then the code is a line of standard input; an empty one sends another
    python3 phone.py app sign-out

It needs the package ringback: python3-ringback, or `pip install ./Clients/python`.
"""

import sys
from contextlib import suppress

from ringback import Broker, Flow, NoDaemon, RingbackError


def enter_code(broker: Broker, flow: Flow) -> None:
    """Takes lines until one is the code that the flow waits for."""
    for line in sys.stdin:
        try:
            if code := line.strip():
                broker.verify(flow, code)
                return
            broker.resend(flow)
            print("Another code was sent.", flush=True)
        except RingbackError as error:
            # The next line may be right, or come later.
            if error.code not in ("invalid_credentials", "rate_limited", "validation_failed"):
                raise
            print(error.user_message or error, flush=True)
    sys.exit("there was no right code")


def main(account: str, phone: str) -> None:
    broker = Broker(application="Phone example")
    if phone == "sign-out":
        broker.sign_out(account)
        return print("nobody is signed in")
    flow = broker.sign_in(account, "otp", phone=phone)
    if flow["status"] == "pending":
        print(f"A code was sent to {phone}.", flush=True)
        try:
            enter_code(broker, flow)
        except BaseException:
            # While it is pending, another sign-in is refused.
            with suppress(RingbackError, NoDaemon):
                broker.cancel(flow)
            raise
    session = broker.session(account, include="user")
    print("signed in:", session.get("user", {}).get("phone") or session["subject"])


if __name__ == "__main__":
    try:
        main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
    except (RingbackError, NoDaemon) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
