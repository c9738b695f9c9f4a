#!/usr/bin/env -S python3 -B
"""DU-03, DU-04: lets the disk, the network and the provider fail under ringbackd, and looks whether a session was lost.

1. Each call that writes to the state fails in turn, once or from then on, with each of four errors, or writes half.
   The operation may fail, with an answer that says why; when the fault is gone, and after a kill and a restart, there
   is the session from before or from after. Also killed and restarted while the fault still is there.
2. The token endpoint's answer ends after each of its bytes.
3. The token endpoint gives each of more than 200 wrong answers.

The provider rotates refresh tokens. It forgives the use of a replaced one for 10 seconds: then nothing may be lost.
Parts 2 and 3 run again with a provider that forgives nothing: then a session may end where the provider had rotated and
the new token could not be read in what arrived, if the account says so; and with a Supabase project, which takes the
former token at any time: there nothing may be lost.
"""


from answers import CASES, unprocessed, unreadable
from harness import Trouble, must, played, progress, table, within
from house import House
from kind_operations import chosen_operations
from kinds import OPENID, SUPABASE_V1, Supabase
from operations import REFRESH, ending, is_revoked, reconnoitre, settle
from proxy import Cut, Instead, Proxy
from shim import ERRORS, FAIL, KEPT, SHORT

GRACE = 10
# At accounts of other kinds: which error it is makes no difference that those at an OpenID provider do not show.
SOME_ERRORS = {name: ERRORS[name] for name in ["ENOSPC", "EIO"]}
IN_MEMORY = "in memory"
# Behind the proxy: the kind of the provider (of a Supabase project its refresh tokens) and its grace.
PROVIDERS = [("OpenID", GRACE), ("OpenID", 0), ("v2", 0), ("v1", 0)]
# Of each part in the short campaign.
SHORT_SECONDS = 22
MOST = 400


def is_clear(answer):
    """Success, or a problem that a person can do something about."""
    status, document = answer
    return status in (200, 201) or bool(document.get("code") and document.get("detail"))


def disk_point(house, operation, mode, error, sticky, target, is_killed):
    """One fault. Returns (what is wrong, whether there was a fault at all)."""
    operation.fresh(house, GRACE)
    operation.prepare(house)
    house.shim.arm(mode, target, KEPT, error, sticky)
    answer = operation.run(house)
    settle(house)
    fired = house.shim.has_fired
    if not is_clear(answer):
        return f"the answer does not say what is wrong: {answer[0]} {answer[1]}", fired
    shown = house.account().get("error") if house.is_alive else None
    # What was announced as done, without a word about the disk, is done.
    is_done = answer[0] in (200, 201) and not shown
    promised = {operation.after} if is_done else operation.ends
    restarted = {operation.after_restarted} if is_done else operation.restarted_ends
    if not is_killed:
        house.shim.disarm()
        if not house.is_alive:
            house.start()
        end = look(house, operation, is_done)
        if end not in promised:
            return f"when the fault was gone: {end} (it had answered {answer[0]} {answer[1].get('code', '')})", fired
        if operation.before != operation.after:
            restarted = {operation.after_restarted if end == operation.after else operation.before_restarted}
        if is_in_memory(house):
            return IN_MEMORY, fired
    house.restart()
    end = look(house, operation, is_done and operation.after == operation.after_restarted)
    return ("" if end in restarted else f"after the restart: {end} (it had answered {answer[0]})"), fired


def look(house, operation, is_to_show):
    """How the account stands; a sign-out is over only when the provider knows, if it had the time."""
    operation.back(house)
    end = ending(house, operation.shows if is_to_show else None)
    if end == "none" and operation.is_sign_out and operation.writes and not is_revoked(house):
        return "signed out, and the provider was never told"
    return end


def is_in_memory(house):
    """The vault found no place to write at its first opening, and says so."""
    return house.api("GET", "/v1/status")[1].get("vault", {}).get("kind") == "memory"


def disk(house, report, chosen):
    rows, points = {}, []
    for operation in chosen_operations(chosen.operation, chosen.short):
        # What is written is the same for both kinds of tokens.
        if chosen.operation == "" and operation.kind is SUPABASE_V1:
            continue
        row = rows[operation.name] = {"calls": 0, "points": 0, "memory": 0, "lost": 0}
        try:
            calls = reconnoitre(house, operation, GRACE, KEPT)
        except Trouble as trouble:
            report.note(False, operation.name, str(trouble))
            continue
        row["calls"] = len(calls)
        for number, call in enumerate(calls, 1):
            for name, code in (ERRORS if operation.kind is OPENID else SOME_ERRORS).items():
                for sticky in [False, True]:
                    for is_killed in [False, True]:
                        points.append((number, operation, FAIL, name, code, sticky, is_killed))
            if call.text.split()[0] in ("write", "pwrite", "writev"):
                points.append((number, operation, SHORT, "short write", 0, False, False))
    if chosen.short:
        # A stride that shares no factor with the variants, so that each of them comes.
        points = sorted(points[::7], key=lambda point: point[0])
    bound = SHORT_SECONDS if chosen.short else None
    for tried, point in enumerate(within(bound, points, "faults of the disk")):
        number, operation, mode, name, code, sticky, is_killed = point
        how = " from then on" if sticky else ""
        where = f"{operation.name}, {name} at call {number}{how}" + (", killed with it" if is_killed else "")
        try:
            wrong, fired = disk_point(house, operation, mode, code, sticky, number, is_killed)
        except Trouble as trouble:
            wrong, fired = f"{trouble}", True
        row = rows[operation.name]
        row["points"] += fired
        row["memory"] += wrong == IN_MEMORY
        row["lost"] += wrong not in ("", IN_MEMORY)
        report.note(wrong in ("", IN_MEMORY), where, wrong)
        if tried % 200 == 199:
            progress(f"disk: {tried + 1} of {len(points)}")
    table(
        "ENOSPC, EIO, EROFS, EDQUOT and short writes at each call to the state",
        ["operation", "calls", "faults", "in memory, as status says", "lost or unclear"],
        [[name, row["calls"], row["points"], row["memory"], row["lost"]] for name, row in rows.items()],
    )


class Provider:
    """A daemon whose token endpoint is behind the proxy, signed in, again and again."""

    def __init__(self, house, kind, grace):
        self.house = house
        self.grace = grace
        self.proxy = Proxy(house.sandbox.issuer)
        if kind == "OpenID":
            house.kind = OPENID
            house.fresh(reuse_grace=grace, endpoints={"token": self.proxy.url})
        else:
            house.kind = Supabase(kind, through=self.proxy.origin)
            house.fresh(reuse_grace=grace)
        self.name = f"{house.kind.name}, forgiven for {grace} s"
        # A project takes the former token for a lost answer: nothing that happens once may end a session there.
        self.may_lose = grace == 0 and not house.kind.forgives_one
        house.start()
        must(house.sign_in(), "the sign-in")
        if not self.proxy.seen:
            raise Trouble("the token requests do not go through the proxy: nothing would be spoiled")
        self.row = {"tried": 0, "kept": 0, "unheard": 0, "lost": 0}

    def attempt(self, report, where, plan, may_be_unheard, restarts):
        """A refresh that this happens to; then everything is well again."""
        try:
            self.proxy.next(plan)
            self.house.api("POST", REFRESH, {"force": True})
            if restarts:
                self.house.restart()
            end = ending(self.house)
        except Trouble as trouble:
            end = str(trouble)
            if not self.house.is_alive:
                self.house.restart()
        is_unheard = end == "expired" and self.may_lose and may_be_unheard
        self.row["tried"] += 1
        self.row["kept"] += end == "session"
        self.row["unheard"] += is_unheard
        self.row["lost"] += end != "session" and not is_unheard
        where = f"{self.house.kind.name}: {where}, grace {self.grace}"
        report.note(end == "session" or is_unheard, where, f"ended as: {end}")
        if end != "session":
            must(self.house.sign_in(), "the next sign-in")

    def answer_length(self):
        must(self.house.api("POST", REFRESH, {"force": True}), "a refresh")
        return self.proxy.seen[-1][-1]

    def close(self):
        self.house.kill()
        self.proxy.close()


def each_provider(house, chosen):
    """Each, and the seconds for it."""
    for kind, grace in PROVIDERS:
        provider = Provider(house, kind, grace)
        yield provider, SHORT_SECONDS / len(PROVIDERS) if chosen.short else None
        provider.close()


def cuts(house, report, chosen):
    rows = []
    for provider, bound in each_provider(house, chosen):
        length = provider.answer_length()
        for number in within(bound, range(0, length, 13 if chosen.short else 1), "cuts"):
            provider.attempt(report, f"cut after byte {number}", Cut(number), True, restarts=number % 10 == 9)
        rows.append([provider.name, length, *provider.row.values()])
    table(
        "A token answer that ends after each of its bytes", ["reuse", "bytes", "tried", "kept", "unheard", "lost"], rows
    )


def is_for_project(case):
    """A project's token answers have no ID token, and by its invalid_client the session is one of another client's: it has
    ended for us."""
    return "id_token" not in case.name and not case.name.endswith(" invalid_client")


def answers(house, report, chosen):
    rows = []
    for provider, bound in each_provider(house, chosen):
        cases = CASES if house.kind is OPENID else [case for case in CASES if is_for_project(case)]
        for number, case in enumerate(within(bound, cases[:: 3 if chosen.short else 1], "wrong answers")):
            plan = Instead(case.make, case.was_processed)
            may_be_unheard = case.was_processed and not case.is_readable
            provider.attempt(report, case.name, plan, may_be_unheard, restarts=number % 10 == 9)
        rows.append([provider.name, *provider.row.values()])
    untouched, lost = len(unprocessed()), len(unreadable())
    table(
        f"{len(CASES)} wrong token answers: {untouched} where the provider did nothing, {len(CASES) - untouched - lost}"
        f" whose new refresh token can be read, {lost} where it cannot",
        ["reuse", "tried", "kept", "unheard", "lost"], rows,
    )


@played(only=("", "only this part: disk, cuts or answers"),
         operation=("", "of the disk's faults only those of this operation, or all that begin with it and a colon"))
def campaign(chosen, report, places):
    for part in [disk, cuts, answers]:
        if chosen.only in ("", part.__name__):
            progress(part.__name__)
            part(places.add(House(chosen.bin, shimmed=part is disk), chosen.keep), report, chosen)
