"""A daemon is killed at the calls of a refresh that write, while another host asks for the same session."""

import contextlib
import time

from harness import Died, Trouble, soon, table, until
from hosts_database import PRIMARY
from hosts_place import Fleet, Host
from house import ACCOUNT
from shim import KEPT, KILL_AFTER, KILL_BEFORE, MODES

SHORT_STRIDE = 9
SECONDS = 30
# A second account of a host that gets a database.
OTHER = "other"
# The calls at which it is killed in the short form, and more than it makes.
MOVE_STRIDE, SHORT_MOVE, MOST_CALLS = 4, 12, 300
# Rows of an owner, but for the one that has the mark of the hosts' key.
COUNT = """select count(*) from ringback.rows join ringback.owners using (owner)
    where name = '{}' and key <> decode(repeat('00', 32), 'hex')"""


def settled(host):
    """Until the daemon does nothing that writes: what belongs to an answer that was sent before it is written too."""
    count = -1
    while host.is_alive and count != host.shim.count:
        count = host.shim.count
        time.sleep(0.1)


def ending(fleet):
    """ "session" if every host serves a token that the provider honours, and so after one more refresh; else what the
    accounts say. The host that was killed asks: an earlier life of its own it does not wait for."""
    fleet.database.end_leases()

    def agreed():
        tokens = {host.token for host in fleet.hosts}
        return tokens if len(tokens) == 1 else None

    try:
        if until("the hosts to agree", agreed, SECONDS) != {None}:
            fleet.hosts[0].refresh()
            token = until("the hosts to agree after a refresh", agreed, SECONDS).pop()
            # No reuse is forgiven: a token that was presented twice has ended the session.
            if fleet.is_honoured(token):
                return "session"
        return " and ".join(sorted({str(host.held()) for host in fleet.hosts}))
    except Trouble as trouble:
        return f"{trouble}: {[host.held() for host in fleet.hosts]}"


def point(fleet, mode, number):
    """Kills the first host at this call of a refresh, while the other one asks. Returns how it ended, whether the call was
    reached, and whether the provider had rotated without the answer being stored: then nobody has received a token."""
    victim, other = fleet.hosts
    fleet.sign_in(other)
    before = fleet.rotations
    settled(victim)
    victim.shim.arm(mode, number)
    with contextlib.suppress(Died):
        victim.refresh()
    settled(victim)
    fired = victim.shim.has_fired
    rotated = fleet.rotations > before
    done = [call.text for call in victim.shim.log()]
    if fired and mode == KILL_BEFORE:
        done.pop()
    victim.kill()
    # It must not present the token that the first one may have used up, as long as its own access token lives.
    waits = other.refresh_in_background()
    victim.start()
    end = ending(fleet)
    waits.close()
    return end, fired, rotated and not has_stored(done)


def has_stored(calls):
    """Whether the answer of the provider was written. Which number a call has differs from run to run."""
    sent = next((index for index, text in enumerate(calls) if text.startswith("send ") and "POST /token" in text), None)
    return sent is not None and any(text.startswith("pwrite ") and ".sealed" in text for text in calls[sent:])


def reconnoitre(fleet):
    """How many calls that write there are in a refresh."""
    victim = fleet.hosts[0]
    fleet.sign_in(fleet.hosts[1])
    settled(victim)
    victim.shim.arm()
    victim.refresh_surely()
    settled(victim)
    count = victim.shim.count
    victim.shim.disarm()
    return count


def crash(chosen, report, places):
    fleet = places.add(Fleet(chosen.bin, 2, shimmed=1), chosen.keep)
    row = {"points": 0, "alive": 0, "unheard": 0, "lost": 0}
    calls = reconnoitre(fleet)
    report.note(calls > 4, "a refresh", f"writes with {calls} calls only: nothing would be interrupted")
    points = [(number, mode) for number in range(1, calls + 1) for mode in [KILL_BEFORE, KILL_AFTER]]
    for number, mode in points[::SHORT_STRIDE if chosen.short else 1]:
        where = f"killed {MODES[mode]} call {number} of {calls}"
        before = len(fleet.ends())
        end, fired, was_unheard = point(fleet, mode, number)
        row["points"] += fired
        is_unheard = end != "session" and was_unheard and "expired" in end
        row["alive"] += fired and end == "session"
        row["unheard"] += is_unheard
        row["lost"] += not (end == "session" or is_unheard)
        report.note(end == "session" or is_unheard, where, f"ended as: {end} (an answer nobody had received: {was_unheard})")
        if end != "session":
            # The audit log is written after the state is visible.
            told = soon(lambda: fleet.ends()[before:], SECONDS)
            report.note([line.get("unheard_host") for line in told] == [fleet.hosts[0].name], where,
                        f"what the logs say of the end: {told}")
    table("SIGKILL of one of two hosts at the calls of a refresh that write", ["what", "counted"],
          [["calls", calls], *([name, count] for name, count in row.items())])


def move(chosen, report, places):
    """A host that has two sessions in its own vault gets a database, and is killed on the way."""
    fleet = places.add(Fleet(chosen.bin, 1, accounts=(ACCOUNT, OTHER)), chosen.keep)
    rows = {"points": 0, "lost": 0}
    first = fleet.hosts[0]
    fleet.sign_in()
    number = 0
    fired = True
    # Until there is no further call.
    while fired and not (chosen.short and number >= SHORT_MOVE):
        number += MOVE_STRIDE if chosen.short else 1
        for mode in [KILL_BEFORE, KILL_AFTER]:
            fired, end = moved(fleet, mode, number)
            rows["points"] += fired
            rows["lost"] += end != "sessions"
            report.note(end == "sessions", f"moved, killed {MODES[mode]} call {number}", end)
        report.note(number < MOST_CALLS, "moved", f"there is no end of calls that write after {number}")
        fired = fired and number < MOST_CALLS
    report.note(rows["points"] >= 4, "moved", f"{rows['points']} points were reached")
    report.note(first.is_alive, "the first host", "it has ended")
    table("A vault of one host that gets a database, killed on the way", ["what", "counted"], list(map(list, rows.items())))


def moved(fleet, mode, number):
    """Returns whether it was killed, and how it ended."""
    # Of an owner of its own, so that no other host has written the row before.
    name = f"mover{number}-{mode}"
    host = Host(fleet, name, shimmed=True)
    fleet.hosts.append(host)
    try:
        host.start()
        for account in fleet.accounts:
            host.sign_in(account)
        held = [host.session(account) for account in fleet.accounts]
        invitation = fleet.prepare((PRIMARY,), owner=name)
        host.kill()
        host.configure(store=invitation["store"])
        host.start()
        host.shim.arm(mode, number, KEPT)
        words = ("vault", "join", "--name", name, "--no-wait", "--json")
        # The daemon may be killed at each of these.
        with contextlib.suppress(Trouble):
            host.type(*words, given=invitation["password"] + "\n")
        with contextlib.suppress(Died):
            host.api("POST", "/v1/vault/unlock", {})
        settled(host)
        fired = host.shim.has_fired
        host.restart()
        if host.vault.get("locked"):
            with contextlib.suppress(Trouble):
                host.type(*words, given=invitation["password"] + "\n")
            host.api("POST", "/v1/vault/unlock", {})
            until("the vault", lambda: host.vault.get("locked") is False, 30)
        if not all(held) or [host.session(account) for account in fleet.accounts] != held:
            return fired, f"it serves other tokens, or none: {host.held()}"
        host.type("vault", "move")
        if fleet.database.sql(COUNT.format(name)) != str(len(held)):
            return fired, "not every session is in the database"
        for account in fleet.accounts:
            status, answer = host.refresh(account)
            if status != 200 or not fleet.is_honoured(host.session(account)):
                return fired, f"the next refresh of {account} answered {status} {answer}"
        return fired, "sessions"
    finally:
        fleet.hosts.remove(host)
        host.close()
