"""Requests for a held token: how many a second, how long each takes and what it costs. The floor, the daemon and
oidc-agent take turns in each round, so that all of them see the same machine."""

import os
import subprocess
from statistics import median

from measure import TOOLS, at_least, at_most, cpu_seconds, family, progress, row, table, tool
from stage import ACCOUNT, Trouble

SESSION = f"/v1/accounts/{ACCOUNT}/session"
CLIENTS = [1, 8, 64]
# Of the floor's requests a second, at least.
OF_FLOOR = {("connect", 1): 0.85, ("connect", 8): 0.65, ("connect", 64): 0.80, ("keep", 64): 0.50}
# Of the floor's processor time for a request, at most.
CPU_OF_FLOOR = 1.6
# Of the floor's 99th percentile with this many clients, at most.
P99_OF_FLOOR, P99_CLIENTS = 2.0, 8
# Of oidc-agent's requests a second with this many connecting clients, at least.
OF_AGENT, AGENT_CLIENTS = 3.0, 8


class Server:
    """One that is measured. `keeps`: whether it takes more than one request on a connection."""

    def __init__(self, name, socket, pids, kind=None, target=SESSION):
        self.name, self.socket, self.pids, self.kind, self.target = name, socket, pids, kind, target

    def round(self, mode, clients, seconds):
        before = cpu_seconds(self.pids)
        seen = tool("load", self.socket, self.target, clients, self.kind or mode, seconds)
        if seen["requests"] == 0:
            raise Trouble(f"{self.name} answered nothing ({mode}, {clients} clients)")
        seen["cpu"] = 1e6 * (cpu_seconds(self.pids) - before) / seen["requests"]
        return seen


def start_floor(stage, length):
    path = os.path.join(stage.directory, "floor.sock")
    process = subprocess.Popen([os.path.join(TOOLS, "floor"), path, str(length)], stdout=subprocess.PIPE)
    stage.processes.append(process)
    process.stdout.readline()
    return Server("floor", path, [process.pid])


def start_engine(stage, length):
    """The daemon's server alone, whose handler does nothing. Its head takes about 100 bytes of the length."""
    path = os.path.join(stage.directory, "engine.sock")
    process = subprocess.Popen([stage.program("engine-server"), path, str(length - 100)], stdout=subprocess.PIPE)
    stage.processes.append(process)
    process.stdout.readline()
    return Server("engine alone", path, [process.pid])


def in_turn(servers, mode, clients, options):
    """The medians of each server: name to {"rate", "p50", "p99", "cpu", "errors"}, and the rounds themselves."""
    rounds = {server.name: [] for server in servers}
    for number in range(options.rounds + 1):
        # Another one begins each round. The first round only warms up.
        first = number % len(servers)
        for server in servers[first:] + servers[:first]:
            seen = server.round(mode, clients, options.seconds)
            if number > 0:
                rounds[server.name].append(seen)
    middle = {}
    for name, all_seen in rounds.items():
        middle[name] = {key: median([seen[key] for seen in all_seen]) for key in ["rate", "p50", "p99", "cpu"]}
        middle[name]["errors"] = sum(seen["errors"] for seen in all_seen)
    return middle, rounds


def compare(stage, agent, why_no_agent, options, results):
    """Prints what was measured. Returns the rows of what has a target."""
    length = stage.answer_length(SESSION)
    servers = [
        start_floor(stage, length), start_engine(stage, length),
        Server("ringbackd", stage.socket, family(stage.daemon.pid)),
    ]
    others = [Server("oidc-agent", agent.socket, agent.pids, "agent", ACCOUNT)] if agent else []
    measured, targets = [], []
    for mode in ["connect", "keep"]:
        for clients in CLIENTS:
            progress(f"{mode}, {numbered(clients)}, {options.rounds} rounds")
            # oidc-agent closes a connection after one answer.
            present = servers + (others if mode == "connect" else [])
            middle, rounds = in_turn(present, mode, clients, options)
            floor = middle["floor"]
            for name, seen in middle.items():
                measured.append([
                    f"{mode:7} {clients:2}  {name}", f"{seen['rate']:,.0f}", ratio(seen, floor, "rate"),
                    f"{seen['p50']:.0f}", f"{seen['p99']:.0f}", ratio(seen, floor, "p99"), f"{seen['cpu']:.1f}",
                    ratio(seen, floor, "cpu"), f"{seen['errors']:.0f}",
                ])
            targets += judge(mode, clients, middle)
            results["load"].append({"mode": mode, "clients": clients, "rounds": rounds, "medians": middle})
    if not agent:
        targets.append(row("connecting: requests a second, of oidc-agent", why_no_agent))
    table(
        f"Session requests, answers of {length} bytes, medians of {options.rounds} rounds of {options.seconds:g} s in turn",
        ["mode, clients, server", "req/s", "of floor", "p50 µs", "p99 µs", "of floor", "CPU µs", "of floor", "errors"],
        measured,
    )
    return targets


def numbered(clients):
    return f"{clients} client{'s' if clients > 1 else ''}"


def ratio(seen, floor, key):
    return f"{seen[key] / floor[key]:.2f}" if floor[key] > 0 else ""


def judge(mode, clients, middle):
    ours, floor = middle["ringbackd"], middle["floor"]
    name = f"{'connecting' if mode == 'connect' else 'keep-alive'}, {numbered(clients)}"
    rows = []
    alone = middle["engine alone"]["rate"] / floor["rate"]
    rows.append(row(f"{name}: requests a second of the engine alone, of the floor", f"{alone:.2f}"))
    if (mode, clients) in OF_FLOOR:
        rows.append(at_least(f"{name}: requests a second, of the floor", ours["rate"] / floor["rate"],
                             OF_FLOOR[mode, clients]))
    if floor["cpu"] > 0:
        rows.append(at_most(f"{name}: processor time of a request, of the floor", ours["cpu"] / floor["cpu"],
                            CPU_OF_FLOOR))
    if clients == P99_CLIENTS:
        rows.append(at_most(f"{name}: 99th percentile, of the floor", ours["p99"] / floor["p99"], P99_OF_FLOOR))
    if "oidc-agent" in middle:
        share = ours["rate"] / middle["oidc-agent"]["rate"]
        what = f"{name}: requests a second, of oidc-agent"
        rows.append(at_least(what, share, OF_AGENT) if clients == AGENT_CLIENTS else row(what, f"{share:.2f}"))
    if ours["errors"] > 0:
        rows.append(at_most(f"{name}: errors", ours["errors"], 0, digits=0))
    return rows
