#!/usr/bin/env -S python3 -B
"""What does a program reach that `ringback run` confines?

A person's session in a network of its own: services at every kind of address, a process, files, keys, a repository. A
probe (`confined_probe.py`) tries each way out. The control is the same probe outside, where each way must succeed; inside
none may, in any configuration. Then what must work inside: git, python, the Internet, a shell with job control, signals,
exit statuses, an MCP client with its server, the commands of docs/confined.md; and that a kill at any point leaves no process
behind. Needs root, bubblewrap, passt, iproute2 and tmux.
"""

import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import relayed
from confined_walks import mcp_client, recipes, walk_in_tmux
from confined_work import Forge
from harness import HERE, Trouble, play, read, stop, table, until, write

UID = 5001
FAR, NEAR, INTERNET = "203.0.113.1", "203.0.113.2", "198.51.100.7"
OTHER, PRIVATE, METADATA = "172.17.0.1", "10.9.0.1", "169.254.169.254"
PORT = 8_123
KILLS, SHORT_KILLS = 50, 6
# What is not shut in a configuration, on purpose.
OPEN = {"nested": {"a user namespace"},
        "intranet": {"a service of the private network", "a device of this network"}}
# What is not there unless it is given.
GIVEN = {"hooks of a folder that was given"}
CONFIGURATIONS = {"internet": [], "intranet": ["--network", "intranet"], "none": ["--network", "none"],
                  "nested": ["--nested"], "read and write": ["--read", "{data}", "--write", "{out}"]}
# This kernel may not have them; the control tells.
OPTIONAL = {"a service by multicast", "a line typed into the terminal", "a ring of io_uring", "userfaultfd", "a socket of AF_VSOCK",
            "a socket of AF_ALG", "the rules of the network", "a service at ::1", "the metadata of a cloud",
            "a service of the private network"}


class Network:
    """A machine in a namespace of its own, and what is beyond its gateway."""

    def __init__(self, places):
        self.near, self.far = f"rb-near-{os.getpid()}", f"rb-far-{os.getpid()}"
        for name in (self.near, self.far):
            self.ip("netns", "add", name)
            places.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
            self.within(name, "link", "set", "lo", "up")
        self.ip("link", "add", "eth0", "netns", self.near, "type", "veth", "peer", "name", "eth0", "netns", self.far)
        for name, address in ((self.near, NEAR), (self.far, FAR)):
            self.within(name, "address", "add", f"{address}/24", "dev", "eth0")
            self.within(name, "link", "set", "eth0", "up")
        for address in (INTERNET, PRIVATE, METADATA):
            self.within(self.far, "address", "add", f"{address}/32", "dev", "lo")
        self.within(self.near, "route", "add", "default", "via", FAR)
        # As docker's: another address of this machine.
        self.within(self.near, "address", "add", f"{OTHER}/32", "dev", "lo")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def within(self, name, *words):
        self.ip("-n", name, *words)


class Person:
    """An ordinary user with a home directory, a repository and programs that run."""

    uid = UID

    def __init__(self, chosen, places):
        self.network = Network(places)
        self.directory = places.directory("confined", chosen.keep)
        os.chmod(self.directory, 0o755)
        self.ringback = os.path.join(self.directory, "ringback")
        for name in ("ringback", "ringback-relay", "ringbackd", "ringback-sandbox"):
            shutil.copy(os.path.join(chosen.bin, name), self.directory)
        self.home, self.work = f"{self.directory}/home", f"{self.directory}/home/work"
        self.data, self.out = f"{self.directory}/data", f"{self.directory}/out"
        for folder in (self.work, self.data, self.out, f"{self.home}/.config/ringback", f"{self.home}/.local/bin",
                       f"{self.home}/run", f"{self.work}/.vscode"):
            os.makedirs(folder)
        for name, text in {f"{self.home}/secret": "a secret", f"{self.home}/.bashrc": "# outside",
                           f"{self.home}/.config/ringback/config.toml": "", f"{self.home}/.local/bin/git": "",
                           f"{self.work}/.vscode/settings.json": "{}", f"{self.work}/.envrc": "", f"{self.home}/.gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.org\n",
                           f"{self.work}/.mcp.json": "{}",
                           f"{self.directory}/temporary": "somebody else's", f"{self.data}/set": "data"}.items():
            write(name, text)
        os.symlink("../secret", f"{self.work}/.idea")
        os.symlink(self.home, f"{self.work}/.claude")
        self.probe = f"{self.work}/probe.py"
        shutil.copy(os.path.join(HERE, "confined_probe.py"), self.probe)
        git = ["env", f"HOME={self.home}", "git", "-C", self.work]
        for words in (["init", "--quiet"], ["add", "probe.py"], ["commit", "--quiet", "--message", "one"]):
            subprocess.run([*git, *words], check=True)
        subprocess.run(["git", "init", "--quiet", "--bare", f"{self.work}/.git/modules/lib"], check=True)
        subprocess.run(["git", "init", "--quiet", self.out], check=True)
        os.makedirs(f"{self.work}/.git/worktrees/side")
        write(f"{self.work}/.git/worktrees/side/commondir", "../..\n")
        self.facts = f"{self.work}/facts.json"
        self.result = f"{self.work}/result.json"
        write(self.facts, json.dumps({
            "home": self.home, "work": self.work, "home_socket": f"{self.home}/agent.sock", "other": OTHER, "private": PRIVATE,
            "daemon_socket": f"{self.home}/run/ringback/ringback.sock", "bus_socket": f"{self.home}/run/bus", "any": PORT,
            "metadata": METADATA, "key": f"ringback-probe-{os.getpid()}", "temporary": f"{self.directory}/temporary",
            "result": self.result, "neighbour": FAR, "out": self.out}))
        self.own()
        far = self.started(self.network.far, ["python3", os.path.join(HERE, "confined_probe.py"), "far", str(PORT)], places)
        far.stdout.readline()
        self.started(self.network.near, [*self.as_user(), "python3", self.probe, "serve", self.facts, "victim"], places)
        until("what is outside", lambda: "victim" in json.load(open(self.facts)))

    def own(self):
        """Gives the person what was made for them."""
        subprocess.run(["chown", "-Rh", f"{UID}:{UID}", self.home, self.data, self.out, f"{self.directory}/temporary"], check=True)

    def started(self, network, words, places):
        process = subprocess.Popen(["ip", "netns", "exec", network, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        places.callback(stop, process)
        return process

    def daemon(self, places):
        """A daemon of the person's with service accounts, a server that one is for, and an account at an MCP server. Returns the
        daemon's socket, and what starts it again."""
        server, mcp = (self.started(self.network.near, ["python3", "-B", each, "serve"], places)
                       for each in (relayed.PROBE, os.path.join(HERE, "confined_mcp.py")))
        self.api = server.stdout.readline().decode().strip()
        mcp_url = mcp.stdout.readline().decode().strip()
        sandbox = self.started(self.network.near, [*self.as_user(), f"{self.directory}/ringback-sandbox", "--port", "0",
                                                       "--client", "probe:hush"], places)
        issuer = sandbox.stdout.readline().decode().split()[-1]
        self.forge = Forge(self, INTERNET, places)
        place = f"{self.home}/daemon"
        os.makedirs(f"{place}/run/ringback")
        write(f"{place}/secret", "hush\n")
        write(f"{place}/config.toml", "".join(
            f'[accounts.{name}]\nissuer = "{issuer}"\nclient_id = "probe"\n'
            f'client_secret_file = "{place}/secret"\ngrant = "client_credentials"\nscopes = ["openid", "email"]\n'
            for name in ("given", "other", "work")) + f'[accounts.linear]\nmcp = "{mcp_url}"\n' + "".join(
            f'[[origin]]\nurl = "{url}/*"\naccount = "given"\n'
            for url in ("https://git.example.org", "https://api.example.org")) + relayed.origins(self.api)
            + self.forge.origins("given"))
        self.own()
        for folder in (place, f"{place}/run", f"{place}/run/ringback"):
            os.chmod(folder, 0o700)
        socket = f"{place}/run/ringback/ringback.sock"

        def begin():
            # Without a line on standard output: it is ready when somebody answers.
            words = [*self.as_user(), f"XDG_STATE_HOME={place}/state", f"XDG_RUNTIME_DIR={place}/run",
                     f"{self.directory}/ringbackd", "--config", f"{place}/config.toml", "--socket", socket]
            process = self.started(self.network.near, words, places)
            until("the daemon", lambda: subprocess.run(self.session(self.ringback, "status", "--socket", socket),
                                                       capture_output=True).returncode == 0)
            return process

        return socket, begin

    def as_user(self):
        return ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "env", "-i", f"HOME={self.home}",
                f"XDG_RUNTIME_DIR={self.home}/run", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "TERM=dumb", "LANG=C.UTF-8"]

    def session(self, *words):
        """The words of a command in the person's session."""
        return ["ip", "netns", "exec", self.network.near, *self.as_user(), "python3", self.probe, "start", self.facts, *words]

    def run(self, options, *words):
        return self.session(self.ringback, "run", *(each.format(data=self.data, out=self.out) for each in options), "--", *words)

    def on_terminal(self, words, steps=(), seconds=60):
        """Runs a command on a terminal of its own. Each step is what to wait for, and what to type then. Returns what it
        printed and its exit status; Trouble if something does not come."""
        pid, terminal = pty.fork()
        if pid == 0:
            # They are ignored where the campaign was started in the background.
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(words[0], words)
        said, place, left, end = b"", 0, list(steps), time.monotonic() + seconds
        while time.monotonic() < end:
            while left and (found := said.find(left[0][0], place)) >= 0:
                place = found + len(left[0][0])
                os.write(terminal, left.pop(0)[1])
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    piece = os.read(terminal, 4_096)
                except OSError:
                    piece = b""
                if not piece:
                    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    os.close(terminal)
                    if left:
                        raise Trouble(f"{words[-1]}: no {left[0][0]} in {said[-400:]}")
                    return said.decode(errors="replace"), status
                said += piece
        # Jobs that do not end with the shell would be found by what comes next.
        subprocess.run(["pkill", "-KILL", "-s", str(pid)], check=False)
        os.waitpid(pid, 0)
        os.close(terminal)
        raise Trouble(f"{words[-3:]} did not end: {said[-400:]}")

    def tried(self, words):
        """What a run of the probe reached."""
        if os.path.exists(self.result):
            os.unlink(self.result)
        said, status = self.on_terminal(words)
        if not os.path.exists(self.result):
            raise Trouble(f"the probe ended with {status}: {said[-600:]}")
        return json.load(open(self.result))

    def processes(self):
        """The processes of confined commands, by their ids: what this user of the machine has."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            # The owner of the folder in /proc is root for a program that refuses dumps, as pasta does.
            if f"\nUid:\t{UID}\t" in read(f"/proc/{pid}/status") and re.search(rb"bwrap|pasta|ringback|launcher|sleep", words[0]):
                found[pid] = b" ".join(words)[:80]
        return found


def escapes(person, report):
    control = person.tried(person.session("python3", person.probe, "try", person.facts))
    shut = {name for name, done in control.items() if done is not True}
    for name in shut - OPTIONAL:
        report.note(False, f"the control: {name}", control[name])
    report.note(len(control) - len(shut) >= 30, "the control", f"only {len(control) - len(shut)} ways succeed outside")
    rows, cells = [], 0
    for what, options in CONFIGURATIONS.items():
        inside = person.tried(person.run(options, "python3", person.probe, "try", person.facts))
        reached = {name for name, done in inside.items() if done is True}
        for name in control:
            report.note(name not in reached or name in OPEN.get(what, ()), f"{what}: {name}", "was reached")
            cells += 1
        for name in OPEN.get(what, set()) - shut:
            report.note(name in reached, f"{what}: {name}", f"should be reached: {inside[name]}")
        rows.append([what, len(inside), len(reached)])
    table("Ways out", ["configuration", "tried", "reached"], [["outside", len(control), len(control) - len(shut)], *rows])
    if shut:
        report.skip("ways that this kernel does not have", ", ".join(sorted(shut)))


def work(person, report):
    """What a person does inside."""
    def said(options, *words, status=0):
        text, ended = person.on_terminal(person.run(options, *words))
        report.note(ended == status, " ".join(words)[:80], f"status {ended}: {text[-300:]}")
        return text

    fetch = f"import socket; s = socket.create_connection(('{INTERNET}', {PORT}), 5); s.sendall(b'?'); print(s.recv(9))"
    report.note("b'!'" in said([], "python3", "-c", fetch), "the Internet", "was not reached")
    said(["--network", "none"], "python3", "-c", fetch, status=1)
    said([], "sh", "-c", "echo two > two && git add two && git commit --quiet --message two && git log --oneline | grep -q two")
    said([], "python3", "-c", "import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))")
    report.note("outside" not in said([], "sh", "-c", "cat ~/.bashrc; echo kept > ~/kept; ls -a ~"), "the home", "is the person's")
    said([], "grep", "kept", f"{person.home}/kept")
    said(["--home", "other"], "grep", "kept", f"{person.home}/kept", status=2)
    said(["--read", person.data, "--write", person.out], "sh", "-c", f"grep data {person.data}/set && echo x > {person.out}/x")
    said(["--read", person.data], "sh", "-c", f"echo x > {person.data}/x", status=2)
    said([], "sh", "-c", "exit 7", status=7)
    said([], "sh", "-c", "kill -TERM $$", status=143)
    said([], "no-such-command", status=127)
    said([], "/etc/passwd", status=126)
    text = said(["--env", "PROBE_TOKEN"], "sh", "-c", 'test "$PROBE_TOKEN" = "a secret"')
    report.note("note:" not in text, "the end", text)
    text = said([], "sh", "-c", "mkdir -p .husky; echo x > .husky/pre-commit")
    report.note(".husky was made or changed" in text, "what runs outside", text)
    text, _ = person.on_terminal(person.run(["--explain"], "git", "push"))
    report.note(person.work in text and "network" in text and "git push" in text, "--explain", text)
    report.note("/opt" in text or not os.path.exists("/opt"), "--explain names the system's other folders", text)
    # Ringback as it is inside, where the person's own is not.
    text, _ = person.on_terminal(person.run([], "sh", "-c", 'ringback "$@"', "ringback", "token", "play"))
    report.note("ringback run --account ACCOUNT" in text and "ringbackd" not in text,
                "without an account ringback says how to give one", text)


def terminal(person, report):
    """Job control: of the whole by a shell outside, and of a shell inside."""
    run = f"{person.ringback} run --network none -- "
    # It starts no program, which dash does by vfork: Ctrl-Z can stop the child before it has become the program, and dash,
    # which waits for that, then does not stop, however often the key is pressed. Nor does it wait for anything: a signal that
    # arrives just before a system call that waits is seen only after that.
    waiting = 'trap "echo res\"\"umed" CONT; echo st""arted; while :; do :; done'
    shell = ["env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i"]
    # A key is pressed when the program that it is for has written something, and so has the terminal.
    steps = [(b"$ ", f"{run}python3 -q\n".encode()), (b">>> ", b'print("st" "arted"); exec("while True: pass")\n'),
             (b"started", b"\x03"), (b"KeyboardInterrupt", b""), (b">>> ", b"\x1a"), (b"Stopped", b""), (b"$ ", b"fg\n"),
             (b"python3 -q", b"print(6 * 7)\n"), (b"42", b""), (b">>> ", b"exit()\n"),
             (b"$ ", f"{run}bash --norc -i\n".encode()), (b"bash-", f"sh -c '{waiting}'\n".encode()),
             (b"started", b"\x1a"), (b"Stopped", b""), (b"bash-", b"fg\n"), (b"resumed", b"\x03"), (b"$ ", b"stty size; exit 3\n"),
             (b"$ ", b"echo was $?\n"), (b"was 3", b"exit\n")]
    try:
        person.on_terminal(person.session(*shell), steps)
        report.note(True, "job control")
    except Trouble as trouble:
        report.note(False, "job control", trouble)


def signals(person, report, count):
    words = person.run(["--network", "none"], "sh", "-c", "trap 'echo got it; exit 9' USR1; echo ready; while :; do sleep 0.1; done")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGUSR1)
    report.note(process.wait(20) == 9 and process.stdout.read() == "got it\n", "a signal", process.returncode)
    chances = random.Random(38)
    # Another campaign may run at the same time.
    others = person.processes().keys()

    def left():
        return {pid: words for pid, words in person.processes().items() if pid not in others}

    for _ in range(count):
        process = subprocess.Popen(person.run([], "sleep", "60"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chances.random() * 0.5)
        process.kill()
        process.wait()
        try:
            until("nothing is left", lambda: not left())
            report.note(True, "a kill")
        except Trouble:
            report.note(False, "a kill", left())
            break


def keys(person, report, count):
    """Ctrl-C at any point of the start ends the run, also before the command has begun."""
    chances = random.Random(39)
    for _ in range(count):
        press = f'(sleep {chances.random() * 0.4:.3f}; echo press) & exec "$@"'
        try:
            # The shell starts in the session: Python, which makes that, loses a key now and then.
            words = person.session("sh", "-c", press, "sh", person.ringback, "run", "--", "sleep", "60")
            person.on_terminal(words, [(b"press", b"\x03")], seconds=20)
            report.note(True, "Ctrl-C")
        except Trouble as trouble:
            report.note(False, "Ctrl-C", trouble)
            break


def accounts(person, report, places):
    """A token of what was given, and of nothing else; the socket ends with the command, and not with the daemon."""
    socket, begin = person.daemon(places)
    daemon = begin()
    exposed = os.path.join(os.path.dirname(socket), "exposed")
    # Ringback as it is inside, where the person's own is not.
    inside = ["sh", "-c", 'ringback "$@"', "ringback"]

    def left():
        return [name for name in os.listdir(exposed) if name.startswith("run-")] if os.path.isdir(exposed) else []

    def said(words, *more):
        return person.on_terminal(person.run(["--socket", socket, "--account", "given", *more, "--network", "none"], *words))

    text, status = said([*inside, "token", "given"])
    report.note(status == 0 and "note: without --scope" in text and len(text.split()[-1]) > 20, "a token", f"{status}: {text[-300:]}")
    for words in ([*inside, "token", "other"], [*inside, "vault", "hosts"], [*inside, "reload"],
                  [*inside, "login", "given"], [*inside, "expose", "more", "--account", "given"], ["ls", socket]):
        text, status = said(words, "--scope", "openid")
        report.note(status != 0 and "eyJ" not in text, " ".join(words), f"{status}: {text[-300:]}")
    until("the end of the sockets", lambda: not left())
    process = subprocess.Popen(person.run(["--socket", socket, "--account", "given", "--network", "none"], "sleep", "60"),
                               stderr=subprocess.DEVNULL)
    until("a socket", left)
    process.kill()
    process.wait()
    until("the end of the socket", lambda: not left())
    fill = ["sh", "-c", "printf 'protocol=https\\nhost=git.example.org\\npath=x\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill"]
    text, status = said(fill)
    report.note(status == 0 and re.search(r"(password|credential)=\S{20}", text), "git's helper", f"{status}: {text[-300:]}")
    text, status = person.on_terminal(person.run(["--network", "none"], *fill))
    report.note(status != 0 and "daemon" not in text, "git's helper without an account", f"{status}: {text[-300:]}")
    said(["true"], "--nested")
    text, status = person.on_terminal(person.session(person.ringback, "audit", "--json", "--socket", socket))
    report.note(text.count('"nested":true') == 1, "--nested in the audit log", text[-400:])
    text, _ = person.on_terminal(person.run(["--display", "--network", "none"], "true"))
    report.note(text.count("the wall is weaker") == 1, "--display", text[-300:])
    text, _ = person.on_terminal(person.session(person.ringback, "doctor", "--socket", socket))
    report.note("A command can be confined here, with a network." in text.replace("\r\n", " "), "doctor", text[-600:])
    for number in (signal.SIGKILL, signal.SIGTERM):
        ask = "until ringback token given; do sleep 0.1; done >/dev/null 2>&1"
        lost = "while ringback token given; do sleep 0.1; done >/dev/null 2>&1"
        for name in ("ready", "lost", "again"):
            if os.path.exists(f"{person.work}/{name}"):
                os.unlink(f"{person.work}/{name}")
        words = person.run(["--socket", socket, "--account", "given", "--network", "none"], "sh", "-c",
                           f"{ask}; touch ready; {lost}; touch lost; {ask}; touch again; exit 5")
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        until("a token", lambda: os.path.exists(f"{person.work}/ready"))
        daemon.send_signal(number)
        daemon.wait(20)
        until("no token", lambda: os.path.exists(f"{person.work}/lost"))
        daemon = begin()
        try:
            report.note(process.wait(30) == 5, f"a restart of the daemon after {number.name}", process.returncode)
        except subprocess.TimeoutExpired:
            process.kill()
            report.note(False, f"a restart of the daemon after {number.name}", "no token afterwards")
    until("the end of the sockets", lambda: not left())

    def restart():
        nonlocal daemon
        daemon.kill()
        daemon.wait(20)
        daemon = begin()

    mcp_client(person, report, socket, restart)
    until("the end of the sockets of MCP servers", lambda: not left())
    recipes(person, report, socket)
    text, status = person.on_terminal(person.run(["--socket", socket, "--account", "missing"], "touch", f"{person.work}/ran"))
    report.note(status == 125 and not os.path.exists(f"{person.work}/ran"), "an account that is not there", f"{status}: {text[-300:]}")
    relay(person, report, socket)


def relay(person, report, socket):
    """A server of this machine, which is not reached otherwise, by an address inside."""
    shutil.copy(relayed.PROBE, f"{person.work}/relayed_probe.py")

    def token():
        return subprocess.run(person.session(person.ringback, "token", "given", "--socket", socket), capture_output=True,
                              text=True).stdout.strip()

    first = token()
    options = ["--socket", socket, "--relay", f"API=http://127.0.0.1:{person.api}/api"]
    for network in ("none", "internet"):
        text, status = person.on_terminal(
            person.run([*options, "--network", network], "python3", "relayed_probe.py", "use"), seconds=120)
        report.note(status == 0, f"relay, {network}", f"{status}: {text[-500:]}")
        last = token()
        if network == "none":
            relayed.judge(report, "run", person.work, (first, last))
    text, status = person.on_terminal(person.run([*options, "--network", "none"], "sh", "-c",
                                                 'echo "$API"; env | grep -c RINGBACK_; ls /run/ringback'))
    report.note("http://127.0.0.1:8701/api" in text and "exposed" not in text, "what is there of the relay", text)
    text, _ = person.on_terminal(person.run([*options, "--explain"], "sh"))
    report.note("of given" in text and "by API" in text, "--explain of a relay", text)
    person.forge.walk(report, socket, "given", token())
    until("the end of the relays", lambda: not relayed.relays(socket))


def refusals(person, report):
    """Where the wall cannot be built nothing runs."""
    def refused(what, words, text):
        said, status = person.on_terminal(words)
        report.note(status == 125 and text in said, what, f"{status}: {said[-300:]}")

    here = ["python3", "-c", "import os, sys; os.chdir(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"]
    command = [person.ringback, "run", "--network", "none", "--", "touch", f"{person.home}/ran"]
    for folder in (person.home, "/", f"{person.home}/.config/ringback", "/usr/share"):
        refused(folder, person.session(*here, folder, *command), "The work folder would be")
    # What a confined program can change says nothing about what the next one gets.
    write(f"{person.work}/config.toml", "[run.more]\ncommand = [\"true\"]\n")
    os.symlink(person.data, f"{person.work}/link")
    os.symlink("work/link", f"{person.home}/chained")
    person.own()
    for variable in ("RINGBACK_CONFIG=config.toml", f"RINGBACK_STATE={person.work}/state"):
        refused(variable, person.session("env", variable, *command), "is Ringback's own")
    refused("a table of the work folder", person.session(person.ringback, "run", "more"), "no table [run.more]")
    for path in (f"{person.work}/link", "link", f"{person.home}/chained"):
        for option in ("--read", "--write"):
            refused(f"{option} {path}", person.run([option, path], "touch", f"{person.home}/ran"), "leads through the link")
    refused("root", ["ip", "netns", "exec", person.network.near, *here, person.work, *command], "As root")
    person.network.within(person.network.near, "route", "delete", "default")
    refused("offline", person.run([], "touch", f"{person.home}/ran"), "--network none")
    report.note(not os.path.exists(f"{person.home}/ran"), "refusals", "the command has run")


def campaign(chosen, report, places):
    for tool in ("bwrap", "pasta", "ip", "setpriv", "tmux"):
        if not shutil.which(tool):
            raise Trouble(f"{tool} is not installed")
    if not os.path.exists("/dev/net/tun"):
        raise Trouble("there is no /dev/net/tun")
    if os.stat("/dev/net/tun").st_mode & 0o006 != 0o006:
        # udev makes it so on every distribution.
        os.chmod("/dev/net/tun", 0o666)
    person = Person(chosen, places)
    escapes(person, report)
    work(person, report)
    terminal(person, report)
    if not chosen.short:
        walk_in_tmux(person, report, places)
    count = SHORT_KILLS if chosen.short else KILLS
    signals(person, report, count)
    keys(person, report, count)
    accounts(person, report, places)
    refusals(person, report)


if __name__ == "__main__":
    sys.exit(play(__doc__, campaign, root="only root can make a network for it"))
