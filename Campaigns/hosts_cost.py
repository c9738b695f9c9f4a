"""What the database costs: a hand-out and a refresh, beside those of a vault of one host, with many rows in the database."""

import os
from statistics import median

from harness import Kept, table
from hosts_place import SESSION, Fleet, Host, measured

ROWS, SHORT_ROWS = 10_000, 1_000
# Milliseconds that a refresh may take longer than with a vault of one host. Times are shown beside what is aimed at and
# fail nothing: other campaigns may run at the same time.
MOST_MORE = 10

FILLER = """
insert into ringback.rows (owner, key, version, sealed)
    select o.owner, sha256(convert_to('filler ' || n, 'UTF8')), 1, convert_to(repeat(md5(n::text), 60), 'UTF8')
    from ringback.owners o, generate_series(1, {}) n;
analyze ringback.rows;
"""


def hand_out_seconds(client, count):
    return median([measured(lambda: client.get(SESSION))[1] for _ in range(count)])


def cost(chosen, report, places):
    rows, rounds = (SHORT_ROWS, 10) if chosen.short else (ROWS, 60)
    fleet = places.add(Fleet(chosen.bin, 2), chosen.keep)
    fleet.sign_in()
    alone = places.add(Host(fleet, "alone"))
    alone.start()
    alone.sign_in()
    shared = fleet.hosts[0]
    empty = hand_out_seconds(Kept(shared.socket), 500)
    fleet.database.sql(FILLER.format(rows))
    report.note(int(fleet.database.sql("select count(*) from ringback.rows")) > rows, "rows", "the database is not filled")
    callers = [Kept(shared.socket), Kept(alone.socket)]
    hand_outs = [[], []]
    spans = [[], []]
    # By turns, so that what else the machine does falls on both.
    for _ in range(rounds):
        for index, host in enumerate([shared, alone]):
            spans[index].append(measured(host.refresh_surely)[1])
            hand_outs[index].append(hand_out_seconds(callers[index], 50))
    served = [median(each) for each in hand_outs]
    taken = [median(each) for each in spans]
    more = 1_000 * (taken[0] - taken[1])
    table(f"Cost with {rows} other rows, medians by turns, {os.cpu_count()} processors", ["what", "shared", "one host"], [
        ["a hand-out, µs", f"{1e6 * served[0]:.0f}", f"{1e6 * served[1]:.0f}"],
        ["a hand-out before there were other rows, µs", f"{1e6 * empty:.0f}", ""],
        ["a refresh, ms", f"{1e3 * taken[0]:.1f}", f"{1e3 * taken[1]:.1f}"],
        [f"  more, ms (aim: {MOST_MORE})", f"{more:.1f}", "" if more <= MOST_MORE else "missed"],
    ])
