#!/usr/bin/env -S python3 -B
"""Several daemons share one vault on a real PostgreSQL: what one of them does, all have; no token that one received is lost.

The provider rotates refresh tokens and forgives no reuse: a second refresh request of one session ends it, and is counted.
Each host is in a network namespace of its own and has joined by the commands that a person types. Parts:

compose   Examples/database/compose.yaml: Compose takes it, and its server does for docs/many-hosts.md
commands  those of docs/many-hosts.md, as they are typed
herd      all callers of all hosts ask at the moment of an expiry: one refresh request each time
pooler    the same through pgbouncer in transaction mode
sign-out  on one host ends the session on every host within a second
crash     SIGKILL of a daemon before and after each call of a refresh that writes, while another host asks
points    the database killed before each call of a refresh that writes, and in the midst of each of its statements
outage    the database killed and frozen, a host cut off and stopped beyond its lease, clocks an hour apart, of other boots
dead      a host that ends for good with a request under way, and one that is stopped right before it sends one
loss      a fifth of the packets between hosts and database is dropped
rows      the administrator changes rows: an older one put back, cut, exchanged and deleted ones
failover  to a streaming replica that lacks the last refreshes
standby   one that commits wait for: it is gone and comes back, and takes the primary's place in the middle of refreshes
cost      of a hand-out and of a refresh, beside a vault of one host, with 10,000 other rows in the database
crowd     10,000 accounts that are signed in, of two owners: starts, hand-outs, refreshes
move      a host with sessions of its own gets a database, killed at each call that writes
"""


import hosts_database
import hosts_network
from harness import Places, Trouble, played, progress
from hosts_commands import commands, compose
from hosts_crash import crash, move
from hosts_crowd import cost, crowd
from hosts_dead import dead
from hosts_herd import herd, pooler, sign_out
from hosts_outage import loss, outage
from hosts_points import points
from hosts_rows import rows
from hosts_standby import failover, standby

PARTS = {"compose": compose, "commands": commands, "herd": herd, "pooler": pooler, "sign-out": sign_out, "crash": crash,
         "points": points, "outage": outage, "dead": dead, "loss": loss, "rows": rows, "failover": failover,
         "standby": standby, "cost": cost, "crowd": crowd, "move": move}


@played(only=("", "only these parts, with commas: " + ", ".join(PARTS)))
def campaign(chosen, report, places):
    missing = hosts_database.is_possible() or hosts_network.is_possible()
    if missing:
        report.skip("hosts that share a vault", missing)
        return
    wanted = chosen.only.split(",") if chosen.only else list(PARTS)
    if not set(wanted) <= set(PARTS):
        raise Trouble(f"there is no part {' or '.join(set(wanted) - set(PARTS))}")
    for name, part in PARTS.items():
        if name not in wanted:
            continue
        progress(name)
        try:
            with Places() as own:
                part(chosen, report, own)
        except (Trouble, OSError) as trouble:
            report.note(False, name, f"{type(trouble).__name__}: {trouble}")
