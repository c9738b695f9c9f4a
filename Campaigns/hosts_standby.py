"""A standby takes the database's place: one that lacks what came last, and one that commits wait for."""

import signal
import threading

from harness import Died, table, until
from hosts_database import PRIMARY, STANDBY
from hosts_outage import asks_in_vain, held_refresh, refreshes, serves, until_sent
from hosts_place import STEP, Fleet, measured

# How often the primary is killed, and how many refreshes there are before that at least.
FAILOVERS, SHORT_FAILOVERS = 6, 1
REFRESHES, SHORT_REFRESHES = 40, 12


def failover(chosen, report, places):
    """The primary is killed; the standby lacks what came last. What a host received is put back by it."""
    fleet = places.add(Fleet(chosen.bin, 2, through=(PRIMARY, STANDBY), standby=True), chosen.keep)
    where = "a failover"
    fleet.sign_in()
    fleet.database.watch_put_backs()
    refreshes(fleet, report, where)
    until("the standby", fleet.database.has_caught_up, 30)
    fleet.database.hold_standby()
    for _ in range(2):
        refreshes(fleet, report, where, fleet.hosts[0])
    token = fleet.hosts[0].token
    fleet.database.kill()
    fleet.database.promote()
    report.note(all(host.token == token for host in fleet.hosts), where, "what was held is not served any more")
    _, took = measured(lambda: until("the standby to be used", lambda: fleet.hosts[1].refresh()[0] == 200, 60))
    fleet.await_token(fleet.hosts[1].token, 30)
    refreshes(fleet, report, where, fleet.hosts[0])
    put_backs = fleet.database.put_backs(STANDBY)
    report.note(put_backs > 0, where, "nothing was put back, though the standby lacked it")
    table("A failover to a replica that lacks two refreshes", ["what", "measured"], [
        ["until a refresh through it succeeded", f"{took:.1f} s"], ["rows put back by hosts", put_backs]])


class Refresher(threading.Thread):
    """Refreshes on one host, one after the other, until it is to end."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.host = host
        self.succeeded = 0
        self.refusals = []
        self.is_to_end = False
        self.start()

    def run(self):
        while not self.is_to_end:
            try:
                status, answer = self.host.refresh()
            except Died as trouble:
                status, answer = 0, {"code": str(trouble)}
            if status == 200:
                self.succeeded += 1
            else:
                self.refusals.append(f"{status} {answer.get('code')}")


def replaced(fleet, report, primary, standby, least):
    """The primary is killed in the middle of refreshes by both hosts, and the synchronous standby promoted. Returns the
    seconds until each host has refreshed through it, and how many refreshes there were before and after."""
    where = "a failover to a synchronous standby"
    reuses = fleet.reuses
    requests, attempts = fleet.requests, fleet.attempts
    workers = [Refresher(host) for host in fleet.hosts]
    try:
        until("refreshes by both hosts", lambda: min(each.succeeded for each in workers) >= least // 2, 120)
        fleet.database.kill(primary)
        fleet.database.promote(standby)
        fleet.database.require_standby(False, of=standby)
        before = [each.succeeded for each in workers]
        _, took = measured(lambda: until(
            "refreshes through the standby",
            lambda: all(each.succeeded > count + 1 for each, count in zip(workers, before)), 90))
    finally:
        for each in workers:
            each.is_to_end = True
        for each in workers:
            each.join(60)
    until("the hosts to agree", fleet.agreed, 60)
    report.note(fleet.is_honoured(fleet.agreed()), where, f"the session has ended: {[host.held() for host in fleet.hosts]}")
    reused = fleet.reuses - reuses
    report.note(reused == 0, where, f"{reused} tokens were presented again")
    made, told = fleet.requests - requests, fleet.attempts - attempts
    report.note(made == told, where, f"{made} requests, of which the hosts know {told}")
    put_backs = fleet.database.put_backs(standby)
    report.note(put_backs == 0, where, f"{put_backs} rows were put back")
    for host in fleet.hosts:
        before = fleet.requests
        status, answer = host.refresh()
        report.note(status == 200, where, f"{host.name}: a refresh afterwards answered {status} {answer.get('code')}")
        fleet.await_token(host.token, 30)
        report.note(fleet.requests == before + 1, where, f"{fleet.requests - before} requests afterwards")
    return took, sum(each.succeeded for each in workers), made


def standby(chosen, report, places):
    """Commits wait for a standby."""
    fleet = places.add(Fleet(chosen.bin, 2, through=(PRIMARY, STANDBY), standby=True), chosen.keep)
    database = fleet.database
    rows, spans = [], []
    warnings(fleet, report)
    fleet.sign_in()
    database.watch_put_backs()
    gone(fleet, report, rows)
    succeeded, requests = 0, 0
    places = [PRIMARY, STANDBY]
    for number in range(SHORT_FAILOVERS if chosen.short else FAILOVERS):
        primary, other = places
        if number:
            database.start_standby(other, of=primary)
            database.require_standby(of=primary)
        took, done, made = replaced(fleet, report, primary, other, SHORT_REFRESHES if chosen.short else REFRESHES)
        spans.append(took)
        succeeded, requests = succeeded + done, requests + made
        places.reverse()
    rows += [["failovers", len(spans)], ["refreshes that callers got", succeeded], ["refresh requests", requests],
             ["until both hosts refreshed through the standby, worst", f"{max(spans):.1f} s"], ["rows put back", 0]]
    table("A standby that commits wait for", ["what", "measured"], rows)


def warnings(fleet, report):
    """`vault status` warns as long as no commit waits for a standby."""
    url = fleet.database.administrator()
    said = fleet.administrate("status", url, status=1)
    report.note("No standby is synchronous" in said, "vault status URL", said)
    fleet.database.require_standby()
    said = fleet.administrate("status", url)
    report.note("standby" not in said and "Schema" in said, "vault status URL with a synchronous standby", said)


def gone(fleet, report, rows):
    """The standby is stopped: no commit returns. What is held is served, nothing is refreshed, and it goes on by itself."""
    where = "a synchronous standby that is gone"
    backends = "select count(*) from pg_stat_activity where usename like 'ringback_%'"
    # A refresh whose answer comes when the standby is gone.
    host = fleet.hosts[0]
    waits = held_refresh(fleet, host)
    former = host.token
    fleet.database.signal(signal.SIGSTOP, STANDBY)
    fleet.sandbox.release()
    until("its own new token", lambda: host.token not in (None, former), 30)
    report.note(fleet.is_honoured(host.token), where, "the provider does not honour what the host serves")
    status = waits.getresponse().status
    waits.close()
    report.note(status == 200, where, f"the refresh that was on its way answered {status}")
    serves(fleet, report, where)
    fleet.clock.advance(STEP)
    asks_in_vain(fleet, report, where, is_silent=True)
    asks_in_vain(fleet, report, where, is_silent=True)
    left = fleet.database.sql(backends)
    fleet.database.signal(signal.SIGCONT, STANDBY)
    before = fleet.requests
    _, took = measured(lambda: until("the hosts to refresh again", lambda: all(host.token for host in fleet.hosts), 90))
    until("the hosts to agree", fleet.agreed, 60)
    report.note(fleet.requests == before + 1, where, f"{fleet.requests - before} refresh requests when it was back")
    until_sent(fleet, host)
    refreshes(fleet, report, where)
    rows += [["standby gone: connections of two hosts", left], ["until every host had a token again", f"{took:.1f} s"]]
