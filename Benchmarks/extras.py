"""What is measured besides requests a second: memory, start-up, the callback, the command line. Each function returns
rows (see measure.py)."""

import os
import shutil
import subprocess
import time
from statistics import median

from measure import ROOT, TOOLS, anonymous_memory, at_most, children, progress, row, tool
from harness import read, write
from stage import ACCOUNT, GIT_HOST, Trouble


def memory(stage, when, target=None):
    """Anonymous memory of the daemon and of its helper. The target is in MB, of the daemon."""
    what, megabytes = f"anonymous memory, {when}", anonymous_memory(stage.daemon.pid) / 1e6
    rows = [at_most(what, megabytes, target, " MB", 1) if target else row(what, f"{megabytes:.1f} MB")]
    for child in children(stage.daemon.pid):
        rows.append(row(f"  its helper, {when}", f"{anonymous_memory(child) / 1e6:.1f} MB"))
    return rows


def start_up(stage):
    """From the start of the program to its first answer, and from SIGTERM to its end."""
    progress("start-up, 15 times")
    path, state = stage.place("second.sock"), stage.place("second-state")
    # With the session of the first daemon, which is not refreshed while this runs.
    shutil.copytree(stage.place("kept/state"), state, ignore=shutil.ignore_patterns("*.sock"))
    # The daemon's start-up lines would stand among ours; they are of interest when something fails.
    place = os.path.join(stage.directory, "start-up.log")
    try:
        with open(place, "w") as log:
            seen = tool(
                "spawn", "ready", 15, path, "/v1/status", stage.program("ringbackd"), "--config", stage.configuration,
                "--socket", path, "--state", state, env=stage.environment, stderr=log,
            )
    except Trouble as trouble:
        raise Trouble(f"{trouble}: {read(place)[-500:]}") from None
    spread = f" ({seen['min'] / 1e3:.1f} to {seen['max'] / 1e3:.1f})"
    return [
        at_most("start to first answer", seen["median"] / 1e3, 10, " ms", 1, spread),
        at_most("SIGTERM to the end", seen["stop"] / 1e3, 5_000, " ms", 1),
    ]


def agenda():
    """What each of many sessions costs the schedule: put at an instant, moved by a refresh, taken out when due."""
    progress("the schedule of 1,000 to 100,000 sessions")
    program = os.path.join(TOOLS, "agenda")
    scheduling = "Sources/Broker/BrokerCore/Scheduling"
    sources = [f"{scheduling}/Scheduler.swift", f"{scheduling}/Instants.swift", "Benchmarks/agenda.swift"]
    try:
        command = ["swiftc", "-O", "-swift-version", "6", "-parse-as-library", "-o", program]
        subprocess.run([*command, *[os.path.join(ROOT, source) for source in sources]], check=True)
        output = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Trouble(f"the schedule could not be measured: {error}") from None
    rows = []
    for line in output.splitlines():
        words = line.split()
        seen = dict(zip(words[::2], words[1::2]))
        costs = " / ".join(f"{float(seen[name]):.2f}" for name in ["placed", "moved", "taken"])
        name = f"schedule of {int(seen['sessions']):,} sessions (set / moved / due)"
        rows.append(row(name, f"{costs} µs"))
    return rows


def configuration(stage):
    """How long a configuration of 1 MiB takes: `ringback config check` reads it and ends."""
    progress("reading a configuration of 1 MiB, 5 times")
    path = os.path.join(stage.directory, "large.toml")
    accounts = []
    size = 0
    # One byte more than the limit is refused.
    while size < (1 << 20) - 400:
        accounts.append(
            f"[accounts.account{len(accounts)}]\nissuer = \"https://id{len(accounts)}.example.org\"\n"
            'client_id = "ringback-demo"\nscopes = ["openid", "email", "offline_access"]\n\n'
        )
        size += len(accounts[-1])
    write(path, "".join(accounts))
    command = [stage.program(), "config", "check", "--config", path]
    times = []
    for _ in range(5):
        started = time.perf_counter()
        checked = subprocess.run(command, env=stage.environment, capture_output=True, text=True)
        times.append(time.perf_counter() - started)
        if checked.returncode != 0:
            raise Trouble(f"ringbackd --check-config: {(checked.stderr or checked.stdout)[:300]}")
    name = f"a configuration of 1 MiB read ({len(accounts):,} accounts)"
    return [at_most(name, 1e3 * median(times), 1_000, " ms", 0)]


def callback(stage):
    """What Ringback adds between the browser's callback and its 303, beside the provider's own answer to the same token
    request. Its reading of keys and userinfo, and the checks, are in the difference."""
    progress("callbacks, 21 sign-ins")
    whole, exchange = [], []
    for _ in range(21):
        exchange.append(stage.direct_exchange()[0])
        whole.append(stage.sign_in())
    total, bare = 1e3 * median(whole), 1e3 * median(exchange)
    return [
        row("callback to 303", f"{total:.1f} ms"),
        row("  the same token request alone", f"{bare:.1f} ms"),
        row("  added by Ringback", f"{total - bare:.1f} ms"),
    ]


def command_line(stage, agent, why_no_agent):
    """`ringback token` and git's helper in turn with /bin/true, and the first with oidc-token where there is one."""
    progress("`ringback token` next to /bin/true, 200 times each")
    token = [stage.program(), "token", ACCOUNT]
    subprocess.run(token, env=stage.environment, check=True, stdout=subprocess.DEVNULL)
    seen = tool("spawn", "alternate", 200, *token, "--", "/bin/true", env=stage.environment)
    rows = [
        row("`ringback token`", f"{seen['a'] / 1e3:.2f} ms"),
        at_most("  of /bin/true", seen["ratio"], 1.9, " ×", 2, f" ({seen['b'] / 1e3:.2f} ms)"),
    ]
    rows += git_helper(stage)
    if not agent:
        return rows + [row("`ringback token` of `oidc-token`", why_no_agent)]
    progress("`ringback token` next to `oidc-token`, 200 times each")
    seen = tool("spawn", "alternate", 200, *token, "--", "oidc-token", ACCOUNT, env=agent.environment)
    return rows + [at_most("`ringback token` of `oidc-token`", seen["ratio"], 1, " ×", 2, f" ({seen['b'] / 1e3:.2f} ms)")]


def git_helper(stage):
    """`ringback git-credential get`, which git runs for every connection."""
    progress("`ringback git-credential get` next to /bin/true, 200 times each")
    place = os.path.join(stage.directory, "git-request")
    with open(place, "w") as file:
        file.write(f"capability[]=authtype\nprotocol=https\nhost={GIT_HOST}\n\n")
    get = [stage.program(), "git-credential", "get"]
    with open(place) as request:
        said = subprocess.run(get, env=stage.environment, check=True, stdin=request, stdout=subprocess.PIPE, text=True).stdout
    if "password=" not in said:
        raise Trouble("git's helper gives no token")
    seen = tool("spawn", "alternate", 200, *get, "--", "/bin/true", env=stage.environment | {"SPAWN_INPUT": place})
    return [
        row("`ringback git-credential get`", f"{seen['a'] / 1e3:.2f} ms"),
        at_most("  of /bin/true", seen["ratio"], 2, " ×", 2, f" ({seen['b'] / 1e3:.2f} ms)"),
    ]
