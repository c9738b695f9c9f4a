"""A host that ends for good with a refresh under way, and one that is stopped right before it sends one."""

import os
import signal

from harness import Relay, table, until
from hosts_outage import refreshes
from hosts_place import LOOPBACK, SESSION, STEP, Fleet
from hosts_tap import ANSWERED

# Seconds after which less than half of a lease is left.
HALF_A_LEASE = 40
# Seconds after which an account whose end is uncertain is asked about again.
ASKED_AGAIN = 400
OPEN = "select encode(id, 'hex') from ringback.attempts where ended_at is null"


def dead(chosen, report, places):
    rows = []
    fleet = places.add(Fleet(chosen.bin, 3), chosen.keep)
    for is_processed in [False, True]:
        gone(fleet, report, rows, is_processed)
    without_provider(fleet, report, rows)
    fleet = places.add(Fleet(chosen.bin, 2, through=(LOOPBACK,)), chosen.keep)
    for is_taken_over in [False, True]:
        stopped_before_sending(fleet, report, rows, is_taken_over)
    table("A host that stays away with the row in its hands", ["what", "refresh requests", "presented again"], rows)


def gone(fleet, report, rows, is_processed):
    """The host is killed while the provider has its request, and is not started again."""
    where = f"a host that ended for good, its request {'answered' if is_processed else 'not received'}"
    host, other, third = fleet.hosts
    fleet.sign_in(host)
    ends, before, reused = len(fleet.ends()), fleet.requests, fleet.reuses
    if is_processed:
        fleet.sandbox.hold()
    else:
        fleet.sandbox.control(faults=[{"endpoint": "token", "kind": "hang", "processed": False, "count": 1}])
    waits = host.refresh_in_background()
    fleet.sandbox.await_held()
    host.kill()
    waits.close()
    fleet.sandbox.release()
    fleet.database.end_leases()

    # The first host may come back with a newer token: nobody presents the former one while the access token lives.
    sent = fleet.requests
    status, answer = other.refresh()
    report.note(status == 503 and answer.get("code") == "vault_unreachable", where, f"{status} {answer}")
    report.note(fleet.requests == sent, where, f"{fleet.requests - sent} requests while the access token lived")
    report.note(other.api("GET", SESSION)[0] == 200, where, "the access token is not served any more")

    fleet.settle()
    fleet.clock.advance(STEP)
    status, answer = other.api("GET", f"{SESSION}?timeout=20")
    report.note(fleet.requests == sent + 1, where, f"{fleet.requests - sent} requests when it had ended")
    if is_processed:
        report.note(status == 503, where, f"the refusal is believed at once: {status} {answer}")
        report.note(other.held() == ("authenticated", "vault_unreachable"), where, f"the account is {other.held()}")
        # An hour later nobody waits for the first host any more.
        fleet.database.sql("update ringback.attempts set began_at = began_at - interval '61 minutes'")
        fleet.settle()
        fleet.clock.advance(ASKED_AGAIN)
        until("the session to end on every host left", lambda: {
            each.held()[0] for each in [other, third] if each.api("GET", f"{SESSION}?timeout=5")} == {"unauthenticated"}, 60)
        told = fleet.ends()[ends:]
        report.note(len(told) == 1, where, f"{len(told)} lines say that the session has ended")
        for line in told:
            report.note(line.get("unheard_host") == host.name and line.get("unheard_seconds", 0) > 3_600, where, str(line))
    else:
        report.note(status == 200 and fleet.is_honoured(other.token), where, f"the refresh answered {status} {answer}")
        fleet.await_token(other.token, hosts=[other, third])
        report.note(fleet.reuses == reused, where, "a token was presented again")
    rows.append([where, fleet.requests - before, fleet.reuses - reused])

    # It comes back, and has what the others have.
    sent = fleet.requests
    host.start()
    until("the same on every host", lambda: len({(each.token, each.held()[0]) for each in fleet.hosts}) == 1, 60)
    report.note(fleet.requests == sent, where, f"{fleet.requests - sent} requests when the host was back")
    report.note(bool(host.token) != is_processed, where, f"it has a session: {bool(host.token)}")


def without_provider(fleet, report, rows):
    """A host that does not reach the provider holds up nobody."""
    where = "a host that does not reach the provider"
    host, other = fleet.hosts[:2]
    fleet.sign_in(other)
    before, reused = fleet.requests, fleet.reuses
    host.forwarder.close()
    status, answer = host.refresh()
    report.note(status in (502, 503) and answer.get("code") == "provider_unreachable", where, f"{status} {answer}")
    left = fleet.database.sql(OPEN), fleet.database.sql("select count(*) from ringback.rows where lease_id is not null")
    report.note(left == ("", "0"), where, f"open attempts and leases: {left}")
    refreshes(fleet, report, where, other)
    host.forwarder = Relay(host.namespace.listen(host.forwarder.target), host.forwarder.target)
    refreshes(fleet, report, where, host)
    rows.append([where, fleet.requests - before, fleet.reuses - reused])


def stopped_before_sending(fleet, report, rows, is_taken_over):
    """The host has taken the row, and is stopped before it sends the request. When it wakes up, too little of its lease is
    left, or another host has refreshed meanwhile."""
    where = f"stopped before sending, {'until another host refreshed' if is_taken_over else 'for most of its lease'}"
    victim, other = fleet.hosts
    fleet.sign_in(other)
    fleet.settle()
    victim.tap.arm()
    victim.refresh_surely()
    fleet.settle()
    take = victim.tap.names.index("take") + 1
    before, reused, attempts = fleet.requests, fleet.reuses, fleet.attempts

    victim.tap.arm(take, ANSWERED)
    waits = victim.refresh_in_background()
    until("the host to have taken the row", victim.tap.reached.is_set)
    attempt = fleet.database.sql(OPEN)
    report.note(len(attempt) == 32, where, f"open attempts: {attempt}")
    if is_taken_over:
        fleet.database.end_leases()
        fleet.settle()
        fleet.clock.advance(STEP)
        status, answer = other.api("GET", f"{SESSION}?timeout=30")
        report.note(status == 200 and fleet.requests == before + 1, where, f"{status} {answer}, {fleet.requests - before} requests")
    else:
        fleet.clock.advance(HALF_A_LEASE)
    victim.tap.arm()
    os.kill(victim.daemon.pid, signal.SIGCONT)
    status = waits.getresponse().status
    waits.close()

    made = fleet.requests - before
    report.note(made == (1 if is_taken_over or status == 200 else 0), where, f"an answer {status}, {made} requests")
    appended = fleet.database.sql(f"select count(*) from ringback.candidates where attempt = '\\x{attempt}'")
    report.note(appended == "0", where, "a request was sent in the attempt whose time was over")
    until("the attempt to end", lambda: fleet.database.sql(OPEN) == "", 60)
    until("the hosts to agree", fleet.agreed, 60)
    for host in fleet.hosts:
        host.refresh_surely()
        fleet.await_token(host.token)
    report.note(fleet.is_honoured(victim.token), where, "the session has ended")
    report.note(fleet.reuses == reused, where, "a token was presented again")
    report.note(fleet.requests == before + made + 2, where, f"{fleet.requests - before - made} requests for two refreshes")
    counted = fleet.attempts - attempts
    # The first attempt is counted too.
    report.note(counted == made + 3, where, f"the hosts have counted {counted} attempts for {fleet.requests - before} requests")
    rows.append([where, made, fleet.reuses - reused])
