#!/usr/bin/env -S python3 -B
"""Runs the modules of the OpenID conformance suite for relying parties against ringbackd, offline.

The sandbox is the provider and tells the lie of each module; what the relying party did is seen from outside, as the
suite sees it, and closer: what is held afterwards, and what is said. A module that cannot run has failed.
"""

import traceback

from harness import Died, Refuted, Trouble, played, table
from oidf_modules import BASIC, BEYOND, CONFIG, FORM_POST, MODULES, REFRESH
from oidf_party import Party

# The profiles, and how many modules each has in the suite's plans.
PLANS = {BASIC: 14, FORM_POST: 14, CONFIG: 6, REFRESH: 3, BEYOND: None}

# Characters of a complaint: some quote the daemon.
LONGEST = 300


def attempt(party, plan, module):
    """Why the module failed; nothing if it passed."""
    party.response_mode = "form_post" if plan == FORM_POST else "query"
    try:
        module.function(party)
        return ""
    except (Refuted, Trouble, Died) as reason:
        return str(reason)
    except (OSError, LookupError, ValueError, TypeError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} {error} at {place.name}:{place.lineno}"
    finally:
        party.end()


def is_refuted(check, *arguments):
    try:
        check(*arguments)
    except Refuted:
        return True
    return False


def examiner_sees(party):
    """Who cannot see the difference sees nothing: where the provider lies nothing is accepted, where it does not lie
    nothing is refused, and a session that is held is not nothing."""
    try:
        party.begin()
        party.lie("id_token_wrong_issuer")
        sees_refusal = is_refuted(party.accepts)
        sees_belief = is_refuted(party.refuses, "(iss)")
        return sees_refusal and sees_belief and is_refuted(party.holds_nothing)
    finally:
        party.end()


def honest(party):
    """Why a sign-in at a provider that does not lie does not pass; nothing if it does."""
    try:
        party.begin()
        party.accepts()
        return ""
    except Refuted as reason:
        return str(reason)
    finally:
        party.end()


@played(only=("", "only modules with this in their names"), plan=("", "only this profile: " + ", ".join(PLANS)))
def campaign(chosen, report, places):
    party = places.add(Party(chosen.bin), chosen.keep)
    rows = []
    # An honest provider first: if that is refused, every module would be, and for no reason of its own.
    complaint = honest(party)
    if complaint:
        raise Trouble(f"an honest provider: {complaint}: no module was run")
    if not examiner_sees(party):
        raise Trouble("the examiner does not see belief and refusal apart: no module was run")
    for plan, size in PLANS.items():
        modules = [module for module in MODULES if plan in module.plans]
        if size is not None and len(modules) != size:
            report.note(False, plan, f"has {len(modules)} modules here, and {size} in the suite")
        for module in modules:
            if chosen.only not in module.name or chosen.plan not in ("", plan):
                continue
            # What a module asks for is the same when the answer comes as a form: one shows that it does.
            if chosen.short and plan == FORM_POST and module is not modules[0]:
                continue
            why = attempt(party, plan, module)
            report.note(not why, f"{plan}: {module.name}", f"{why[:LONGEST]} ({module.text})")
            rows.append([module.name, plan, "failed" if why else "passed"])
    table("OpenID relying party", ["module", "profile", "result"], rows)
