"""What is measured besides requests a second: memory, start-up, the callback, the command line. Each function returns
rows of (what, measured, target)."""

import os
import shutil
import subprocess
import time

from stage import ACCOUNT, Trouble
from tokenissuer import TokenIssuer


def memory(stage, anonymous_memory, children, when, target=""):
    rows = [[f"anonymous memory, {when}", f"{anonymous_memory(stage.daemon.pid) / 1e6:.1f} MB", target]]
    for child in children(stage.daemon.pid):
        rows.append([f"  its helper, {when}", f"{anonymous_memory(child) / 1e6:.1f} MB", ""])
    return rows


def start_up(stage, tool, progress):
    """From the start of the program to its first answer, and from SIGTERM to its end."""
    progress("start-up, 15 times")
    arguments = stage.daemon_arguments("second-")
    path = arguments[arguments.index("--socket") + 1]
    # The daemon's start-up lines would stand among ours; they are of interest when something fails.
    place = os.path.join(stage.directory, "start-up.log")
    try:
        with open(place, "w") as log:
            seen = tool(
                "spawn", "ready", 15, path, "/v1/status", stage.binary("ringbackd"), *arguments,
                env=stage.environment, stderr=log,
            )
    except Trouble as trouble:
        raise Trouble(f"{trouble}: {stage.why('start-up')}") from None
    spread = f"{seen['min'] / 1e3:.1f} to {seen['max'] / 1e3:.1f}"
    return [
        ["start to first answer", f"{seen['median'] / 1e3:.1f} ms ({spread})", "15 ms"],
        ["SIGTERM to the end", f"{seen['stop'] / 1e3:.1f} ms", "5,000 ms"],
    ]


def agenda(root, tools, progress):
    """What each of many sessions costs the schedule: put at an instant, moved by a refresh, taken out when it is due."""
    progress("the schedule of 1,000 to 100,000 sessions")
    program = os.path.join(tools, "agenda")
    scheduling = "Sources/BrokerCore/Scheduling"
    sources = [f"{scheduling}/Scheduler.swift", f"{scheduling}/Instants.swift", "Benchmarks/agenda.swift"]
    try:
        command = ["swiftc", "-O", "-swift-version", "6", "-parse-as-library", "-o", program]
        subprocess.run([*command, *[os.path.join(root, source) for source in sources]], check=True)
        output = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Trouble(f"the schedule could not be measured: {error}") from None
    rows = []
    for line in output.splitlines():
        words = line.split()
        seen = dict(zip(words[::2], words[1::2]))
        costs = " / ".join(f"{float(seen[name]):.2f}" for name in ["placed", "moved", "taken"])
        name = f"a session in the schedule, of {int(seen['sessions']):,} (set / moved / due)"
        rows.append([name, f"{costs} µs", ""])
    return rows


def configuration(stage, median, progress):
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
    with open(path, "w") as file:
        file.write("".join(accounts))
    os.chmod(path, 0o600)
    command = [stage.binary("ringback"), "config", "check", "--config", path]
    times = []
    for _ in range(5):
        started = time.perf_counter()
        checked = subprocess.run(command, env=stage.environment, capture_output=True, text=True)
        times.append(time.perf_counter() - started)
        if checked.returncode != 0:
            raise Trouble(f"config check: {(checked.stderr or checked.stdout)[:300]}")
    name = f"a configuration of 1 MiB read ({len(accounts):,} accounts)"
    return [[name, f"{1e3 * median(times):.0f} ms", "1,000 ms"]]


def callback(stage, median, progress):
    """What Ringback adds between the browser's callback and its 303, beside the provider's own answer to the same token
    request. Its reading of keys and userinfo, and the checks, are in the difference."""
    progress("callbacks, 21 sign-ins")
    whole, exchange = [], []
    for _ in range(21):
        exchange.append(stage.direct_exchange()[0])
        whole.append(stage.sign_in())
    total, bare = 1e3 * median(whole), 1e3 * median(exchange)
    return [
        ["callback to 303", f"{total:.1f} ms", ""],
        ["  the same token request alone", f"{bare:.1f} ms", ""],
        ["  added by the walk", f"{total - bare:.1f} ms", ""],
    ]


def command_line(stage, tool, progress):
    progress("`ringback token` next to /bin/true, 200 times each")
    token = [stage.binary("ringback"), "token", ACCOUNT]
    subprocess.run(token, env=stage.environment, check=True, stdout=subprocess.DEVNULL)
    seen = tool("spawn", "alternate", 200, *token, "--", "/bin/true", env=stage.environment)
    rows = [
        ["`ringback token`", f"{seen['a'] / 1e3:.2f} ms", ""],
        ["  of /bin/true", f"{seen['ratio']:.2f} × ({seen['b'] / 1e3:.2f} ms)", "2.00 ×"],
    ]
    if not all(map(shutil.which, ["oidc-agent", "oidc-gen", "oidc-token"])):
        return rows + [["`oidc-token`", "not installed: skipped", ""]]
    try:
        return rows + oidc_token(stage, tool, progress)
    except (Trouble, subprocess.SubprocessError, OSError) as error:
        return rows + [["`oidc-token`", f"skipped: {error}", ""]]


def oidc_token(stage, tool, progress):
    """An agent of its own, loaded with one account; the tokens it hands out are as long as ours."""
    progress("`oidc-token` next to `ringback token`, 200 times each")
    directory = os.path.join(stage.directory, "oidc-agent")
    os.makedirs(directory, mode=0o700)
    environment = dict(stage.environment, OIDC_CONFIG_DIR=directory, TMPDIR=directory)
    started = subprocess.run(["oidc-agent"], env=environment, capture_output=True, text=True, timeout=10, check=True)
    for assignment in started.stdout.replace(";", "\n").splitlines():
        name, _, value = assignment.strip().partition("=")
        if name in ("OIDC_SOCK", "OIDCD_PID"):
            environment[name] = value
    issuer = TokenIssuer(stage.direct_exchange()[1]["access_token"])
    try:
        made = subprocess.run(
            [
                "oidc-gen", "--manual", "--prompt=none", "--confirm-default", "--flow=refresh", "--pw-cmd=echo bench",
                f"--issuer={issuer.url}", "--client-id=bench", "--client-secret=bench", "--rt=bench",
                "--redirect-uri=http://localhost:8080", "--scope=openid offline_access", ACCOUNT,
            ],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        )
        if made.returncode != 0:
            raise Trouble("oidc-gen: " + " ".join((made.stderr or made.stdout).split())[:200])
        subprocess.run(["oidc-token", ACCOUNT], env=environment, check=True, capture_output=True, timeout=30)
        seen = tool(
            "spawn", "alternate", 200, stage.binary("ringback"), "token", ACCOUNT, "--", "oidc-token", ACCOUNT,
            env=environment,
        )
        return [
            ["`oidc-token`", f"{seen['b'] / 1e3:.2f} ms", ""],
            ["  `ringback token` of it", f"{seen['ratio']:.2f} × ({seen['a'] / 1e3:.2f} ms)", ""],
        ]
    finally:
        issuer.close()
        # The agent keeps its socket below /tmp, whatever TMPDIR says.
        subprocess.run(["kill", environment.get("OIDCD_PID", "")], capture_output=True, timeout=10)
        if os.path.basename(os.path.dirname(environment.get("OIDC_SOCK", ""))).startswith("oidc-"):
            shutil.rmtree(os.path.dirname(environment["OIDC_SOCK"]), ignore_errors=True)
