#!/usr/bin/env -S python3 -B
"""What does a command get by `ringback exec --relay`?

A server that repeats what it is sent, an account of the sandbox, and a program that has the relay's address (`relayed_probe.py`):
curl, a client of the kind that chat APIs have, bodies of every kind, redirects, refusals. The token is in nothing that comes
back, the server gets the account's credentials, and the relay ends with the command. `confined.py` does the same behind the
wall.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

from harness import HERE, Daemon, Trouble, play, stop, until, write

PROBE = os.path.join(HERE, "relayed_probe.py")


def account(issuer, secret, port):
    """The configuration of a service account with an origin, and of another one with an origin below that."""
    return "".join(f'[accounts.{name}]\nissuer = "{issuer}"\nclient_id = "probe"\nclient_secret_file = "{secret}"\n'
                   f'grant = "client_credentials"\nscopes = ["openid"]\n\n' for name in ("given", "other")) + origins(port)


def origins(port):
    """What the probe reaches, and a part of it that has another account."""
    return "".join(f'[[origin]]\nurl = "http://127.0.0.1:{port}/{path}/*"\naccount = "{name}"\n'
                   for path, name in (("api", "given"), ("api/elsewhere", "other")))


def judge(report, what, folder, token):
    """Notes what the probe wrote. `token` gives the account's present token."""
    place = os.path.join(folder, "relayed.json")
    if not os.path.exists(place):
        report.note(False, what, "the probe has written nothing")
        return
    with open(place, encoding="utf-8") as file:
        found = json.load(file)
    with open(os.path.join(folder, "came"), encoding="utf-8") as file:
        came = file.read()
    for is_right, name, why in found["rows"]:
        report.note(is_right, f"{what}: {name}", why)
    first, last = token
    for each in token:
        report.note(each not in came, f"{what}: the token comes back", "it is in what the command got")

    def sent(each):
        return hashlib.sha256(f"Bearer {each}".encode()).hexdigest()

    report.note(found["sent"] == sent(first), f"{what}: the server gets the account's token", found["sent"])
    report.note(first != last and found["again"] == sent(last), f"{what}: a refused token is replaced", found["again"])


def relays(socket):
    """The pids of relays that ask this daemon."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"ringback-relay") and socket.encode() in words:
            found.append(int(pid))
    return found


def campaign(chosen, report, places):
    directory = places.directory("relayed", chosen.keep)
    daemon = Daemon(chosen.bin, directory)
    sandbox = subprocess.Popen([daemon.program("ringback-sandbox"), "--port", "0", "--client", "probe:hush"], stdout=subprocess.PIPE,
                               text=True)
    places.callback(stop, sandbox)
    issuer = sandbox.stdout.readline().split()[-1]
    server = subprocess.Popen(["python3", PROBE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    places.callback(stop, server)
    port = server.stdout.readline().strip()
    if not port:
        raise Trouble("the server does not start")
    write(daemon.place("secret"), "hush\n")
    write(daemon.configuration, account(issuer, daemon.place("secret"), port))
    daemon.start()
    places.callback(daemon.kill)
    folder = daemon.place("tmp")
    relay = ["exec", "given", "--relay", f"API=http://127.0.0.1:{port}/api", "--"]

    def token():
        return daemon.ringback("token", "given").stdout.strip()

    def ran(*words):
        return subprocess.run([daemon.program(), *relay, *words], env=daemon.environment, cwd=folder, capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL)

    first = token()
    ended = ran("python3", PROBE, "use")
    report.note(ended.returncode == 0, "the probe", ended.stderr[-500:])
    judge(report, "exec", folder, (first, token()))
    until("the end of the relay", lambda: not relays(daemon.socket))

    ended = ran("sh", "-c", 'echo "$API ${RINGBACK_TOKEN_FD-none}"; kill -TERM $$')
    report.note(ended.returncode == -signal.SIGTERM and ended.stdout.strip().endswith("/api none"), "the command's end", ended)
    until("the end of the relay", lambda: not relays(daemon.socket))
    # The command has no child that it does not know of.
    ended = ran("python3", "-c", "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')")
    report.note(ended.stdout == "none\n", "the command's children", ended)
    process = subprocess.Popen([daemon.program(), *relay, "sleep", "60"], env=daemon.environment)
    until("the relay", lambda: relays(daemon.socket))
    process.kill()
    process.wait()
    until("the end of the relay after a kill", lambda: not relays(daemon.socket))

    killed(daemon, relay, report)
    another_user(daemon, relay, report)
    for words, text in ((["--relay", "API=http://127.0.0.1:1/api"], "ringback origin add"),
                        (["--relay", "API=http://api.example.org/"], "cannot be relayed"),
                        (["--relay", "api"], "--relay is"), (["--relay", relay[3], "--env", "T"], "--relay gives no token")):
        ended = daemon.ringback("exec", "given", *words, "--", "touch", daemon.place("ran"))
        report.note(ended.returncode != 0 and text in ended.stderr and not os.path.exists(daemon.place("ran")), " ".join(words),
                    f"{ended.returncode}: {ended.stderr}")


def killed(daemon, relay, report):
    """The relay is killed in the middle of a response: the command sees the end at once, and its next request is refused."""
    ask = "curl -sS -N --max-time 60"
    process = subprocess.Popen(
        [daemon.program(), *relay, "sh", "-c", f'{ask} "$API/events"; echo "first $?"; {ask} "$API/echo"; echo "second $?"'],
        env=daemon.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    for pid in relays(daemon.socket):
        os.kill(pid, signal.SIGKILL)
    started = time.monotonic()
    said = process.communicate(timeout=120)[0]
    elapsed = time.monotonic() - started
    # 18: the response is not whole; 56: the connection broke; 7: nobody listens.
    is_right = line.startswith("data:") and any(f"first {status}\nsecond 7\n" in said for status in (18, 56))
    report.note(is_right and elapsed < 10, "the relay is killed in the middle of a response", f"{elapsed:.1f} s: {line}{said}")


def another_user(daemon, relay, report):
    """Another user of the machine can reach the port, and gets nothing."""
    if os.geteuid() != 0:
        report.skip("another user", "only root can become one")
        return
    process = subprocess.Popen([daemon.program(), *relay, "sh", "-c", 'echo "$API"; exec sleep 60'], env=daemon.environment,
                               stdout=subprocess.PIPE, text=True)
    base = process.stdout.readline().strip()
    ask = ["curl", "-sS", "--max-time", "20", "-o", "/dev/null", "-w", "%{http_code}", f"{base}/echo"]
    own = subprocess.run(ask, capture_output=True, text=True)
    other = subprocess.run(["setpriv", "--reuid=5002", "--regid=5002", "--clear-groups", *ask], capture_output=True, text=True)
    report.note(own.stdout == "200" and other.stdout == "000", "another user", f"{own.stdout} {other.stdout} {other.stderr}")
    process.kill()
    process.wait()


if __name__ == "__main__":
    sys.exit(play(__doc__, campaign))
