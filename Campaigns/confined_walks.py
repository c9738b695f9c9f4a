"""What a person does with `ringback run`: the commands of docs/confined.md, an MCP client with its server, and a shell with job
control in tmux."""

import contextlib
import json
import os
import re
import select
import shutil
import subprocess

from harness import HERE, ROOT, Trouble, output, read, run, soon, stop, until, write

# In the place of what the document's commands start: it says what it is, and what it sees.
STAND_IN = """#!/bin/sh
printf '%s' "I am ${0##*/} with $*"
printf ', key %s' "${ANTHROPIC_API_KEY:-}${OPENAI_API_KEY:-}"
test -n "$OPENAI_BASE_URL" && printf ', at %s' "$OPENAI_BASE_URL"
test -e ~/secret && printf ', and the secret'
test -e /run/ringback/mcp && printf ', with the tool %s' "$(python3 confined_mcp.py list)"
test -n "$RINGBACK_SOCK" && ringback token work >/dev/null && printf ', with a token'
echo .
"""
# What a command of the document prints.
SAYS = {"ringback run claude": "I am claude with , key a key.", "ringback run codex": "I am codex with , key another.",
        "ringback run aider": "I am aider with , key another.",
        "ringback run claude -- claude --continue": "I am claude with --continue, key a key.",
        "ringback run claude --write ~/data --network intranet": "I am claude with , key a key.",
        "ringback run --account work --scope email -- ./report": "I am report with , key , with a token.",
        "ringback run --mcp linear --tool list_issues -- ./agent": "I am agent with , key , with the tool list_issues",
        "ringback run --relay OPENAI_BASE_URL=https://api.example.org/v1 -- ./agent":
            "I am agent with , key , at http://127.0.0.1:8701/v1.",
        "ringback run --explain --read ~/data -- ./train": "MAY"}
# These go on until somebody ends them: what to wait for, and what to type then.
STEPS = {"ringback run -- python3 -m http.server": [(b"Serving HTTP", b"\x03")],
         "ringback run shell": [(b"$ ", b"cat ~/secret; echo en\"\"ded\n"), (b"ended", b"exit\n")]}


def blocks(language):
    with open(os.path.join(ROOT, "docs/confined.md")) as file:
        return re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


def recipes(person, report, socket):
    """Each command of the document, with the tables that it prints."""
    for name in ("claude-1", "claude-2", "codex", "aider"):
        write(f"{person.home}/.local/bin/{name}", STAND_IN, 0o755)
    # As Claude Code keeps its versions.
    claude = f"{person.home}/.local/bin/claude"
    os.symlink("claude-1", claude)
    for name in ("agent", "report", "train"):
        write(f"{person.work}/{name}", STAND_IN, 0o755)
    for folder in (f"{person.home}/data", f"{person.home}/.local/share/uv"):
        os.makedirs(folder, exist_ok=True)
    configuration = f"{person.home}/.config/ringback/config.toml"
    write(configuration, "".join(blocks("toml")))
    person.own()
    lines = [line for line in "".join(blocks("console")).splitlines() if line.startswith("ringback run")]
    report.note(set(lines) == SAYS.keys() | STEPS.keys(), "the commands of docs/confined.md", lines)
    variables = [f"RINGBACK_SOCK={socket}", "ANTHROPIC_API_KEY=a key", "OPENAI_API_KEY=another",
                 f"PATH={person.directory}:{person.home}/.local/bin:/usr/bin:/bin"]
    for line in lines:
        text, status = person.on_terminal(person.session("env", *variables, "bash", "-c", line), STEPS.get(line, ()))
        is_right = SAYS.get(line, "") in text.replace("\r", "") and "a secret" not in text and "the secret" not in text
        report.note(is_right and status in (0, 130), line, f"{status}: {text[-400:]}")
    os.unlink(claude)
    os.symlink("claude-2", claude)
    text, status = person.on_terminal(person.session("env", *variables, "ringback", "run", "claude"))
    report.note(status == 0 and "I am claude" in text, "another version of a program", f"{status}: {text[-300:]}")
    text, status = person.on_terminal(person.session("env", *variables, "ringback", "run", "cluade"))
    report.note(status == 125 and "did you mean claude?" in text, "a table that is not there", f"{status}: {text[-300:]}")
    write(configuration, "[run.claude]\nnetwrok = \"none\"\n")
    person.own()
    text, status = person.on_terminal(person.session("env", *variables, "ringback", "run", "claude"))
    report.note(status == 125 and "config.toml:2: run.claude.netwrok: unknown key" in text, "a mistake in a table",
                f"{status}: {text[-300:]}")
    write(configuration, "")
    person.own()


class Confined:
    """A client in the person's session that is asked line by line."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        stop(self.process)

    def line(self):
        if not select.select([self.process.stdout], [], [], 60)[0]:
            raise Trouble(f"{self.process.args[-3:]} says nothing")
        return self.process.stdout.readline()

    def ask(self):
        print(file=self.process.stdin, flush=True)
        return self.line()


def behind_the_wall(person, text):
    """Processes of the person's that are behind a wall, and where they have a text: in their memory, environment and arguments,
    and in the files that they see. What is in a mapping that cannot be read (the page of a file that was cut off) is not known."""
    pids, places, here = [], [], os.readlink("/proc/self/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            # The owner of the folder in /proc is root for a program that refuses dumps.
            if f"\nUid:\t{person.uid}\t" not in read(f"/proc/{pid}/status") or os.readlink(f"/proc/{pid}/ns/pid") == here:
                continue
            pids.append(pid)
            for name in ("environ", "cmdline"):
                places += [f"{pid} {name}"] if text in read(f"/proc/{pid}/{name}") else []
            with open(f"/proc/{pid}/mem", "rb") as memory:
                for line in read(f"/proc/{pid}/maps").splitlines():
                    begin, end = (int(each, 16) for each in line.split()[0].split("-"))
                    if line.split()[1].startswith("rw"):
                        with contextlib.suppress(OSError):
                            memory.seek(begin)
                            places += [f"{pid} {line}"] if text.encode() in memory.read(end - begin) else []
        except OSError:
            # It has ended.
            continue
    for pid in pids[:1]:
        roots = [f"/proc/{pid}/root{folder}" for folder in ("/run", "/tmp", person.home, person.work)]
        places += run("grep", "-rlsF", "-D", "skip", "-f", "-", *roots, input=text).stdout.split()
    return pids, places


def mcp_client(person, report, socket, restart):
    """An MCP client with its server: it has the tools that were named, and nothing inside has the token."""
    write(f"{person.work}/.mcp.json", "".join(blocks("conf")))
    shutil.copy(os.path.join(HERE, "confined_mcp.py"), person.work)
    person.own()
    flow = json.loads(output(*person.session("curl", "-sS", "--unix-socket", socket, "-H", "Content-Type: application/json", "-d",
                                             "{}", "http://ringback/v1/accounts/linear/sign-in")))
    output(*person.session("curl", "-sSL", "-o", "/dev/null", flow["authorization_url"]))
    token = until("the token", lambda: run(*person.session(person.ringback, "token", "linear", "--socket", socket)).stdout.strip())
    client = ["python3", "confined_mcp.py", "use"]
    with Confined(person.session("env", f"RINGBACK_SOCK={socket}", f"PATH={person.directory}:/usr/bin:/bin", *client)) as outside:
        found = json.loads(outside.line())
    report.note(len(found["tools"]) == 3 and token in str(found["show_credentials"]) and "result" in found["delete_issue"],
                "the control: an MCP client outside", found)
    options = ["--socket", socket, "--network", "none"]
    with Confined(person.run([*options, "--account", "linear"], "sh", "-c", "T=$(ringback token linear); echo; read more")) as given:
        given.line()
        pids, places = behind_the_wall(person, token)
        report.note(places, "the control: a token that was given is found", pids)
    until("the end of what was inside", lambda: not behind_the_wall(person, token)[0])
    named = ["--mcp", "linear", "--tool", "list_issues", "--tool", "show_credentials"]
    with Confined(person.run([*options, *named], *client)) as inside:
        found = json.loads(inside.line())
        report.note(found["tools"] == ["list_issues", "show_credentials"], "an MCP client: the tools that were named", found)
        report.note("was called" in str(found["list_issues"]), "an MCP client: a call", found)
        for name, code in (("delete_issue", "policy_denied"), ("show_credentials", "response_withheld")):
            report.note(found[name].get("error", {}).get("data", {}).get("code") == code, f"an MCP client: {name}", found[name])
        pids, places = behind_the_wall(person, token)
        report.note(len(pids) > 2 and not places, "an MCP client: the token is nowhere inside", (pids, places))
        restart()
        names = inside.ask().split()
        report.note(names == found["tools"], "an MCP client: after a restart of the daemon", names)
    text, status = person.on_terminal(person.run([*options, "--mcp", "linear", "--account", "given"], "sh", "-c",
                                                 "ringback token given >/dev/null && ! ringback token linear && "
                                                 "python3 confined_mcp.py list"))
    report.note(status == 0 and "delete_issue" in text and token not in text, "an MCP server beside a token", f"{status}: {text[-400:]}")
    text, status = person.on_terminal(person.run([*options, "--mcp", "given"], "touch", f"{person.work}/ran"))
    report.note(status == 125 and not os.path.exists(f"{person.work}/ran"), "an account without an MCP server", f"{status}: {text[-300:]}")
    text, _ = person.on_terminal(person.run([*named, "--explain"], "sh"))
    report.note("list_issues" in text and "ringback mcp linear" in text, "--explain of an MCP server", text)


class Tmux:
    """A terminal of tmux, in the person's session."""

    def __init__(self, person, places):
        self.words = ["tmux", "-f", "/dev/null", "-S", f"{person.home}/tmux.sock"]
        self.client = person.as_user()
        subprocess.run(person.session(*self.words, "new-session", "-d", "-x", "100", "-y", "30",
                                      "env PS1='$ ' bash --norc --noprofile -i"), check=True, timeout=30)
        places.callback(self.call, "kill-server", check=False)
        self.marks = 0

    def call(self, *words, check=True):
        return subprocess.run([*self.client, *self.words, *words], check=check, capture_output=True, text=True, timeout=30).stdout

    @property
    def screen(self):
        return self.call("capture-pane", "-p", "-J")

    def enter(self, line):
        self.call("send-keys", "-l", line)
        self.call("send-keys", "Enter")

    def wait(self, text, seconds=60):
        if not soon(lambda: text in self.screen, seconds):
            raise Trouble(f"no {text!r} in {self.screen.strip()[-400:]}")

    def press(self, key, command, text):
        """Presses a key for a command, once it is in the foreground: until then the key is the shell's."""
        terminal = self.call("display-message", "-p", "#{pane_tty}").strip()

        def is_there():
            rows = (row.split(None, 2) for row in run("ps", "-t", terminal, "-o", "pgid=,tpgid=,args=").stdout.splitlines())
            return any(group == foreground and words == command for group, foreground, words in rows)

        until(f"{command} in the foreground", is_there, 60)
        self.call("send-keys", key)
        self.wait(text)

    def ask(self, line, expected):
        """Enters a line at a shell, and waits for what it prints before a mark of its own."""
        self.call("send-keys", "-R")
        self.call("clear-history")
        self.marks += 1
        self.enter(f'{line}; echo "ma""rk {self.marks}"')
        self.wait(f"mark {self.marks}")
        found = self.screen
        if not re.search(expected, found):
            raise Trouble(f"{line}: no {expected!r} in {found.strip()[-400:]}")


def walk_in_tmux(person, report, places):
    """What a person does all day: a shell inside, jobs in it, a full-screen program, another window size, the whole
    stopped and continued, and the terminal closed."""
    tmux = Tmux(person, places)
    run = f"{person.ringback} run --network none -- "

    def inside():
        # The prompt of a bash that has no configuration, as there is none inside.
        tmux.enter(f"clear; {run}bash --norc --noprofile -i")
        tmux.wait("bash-")

    def jobs():
        inside()
        tmux.enter("sleep 1000")
        tmux.press("C-z", "sleep 1000", "Stopped")
        tmux.ask("jobs", r"Stopped +sleep 1000")
        tmux.enter("bg; sleep 2000 &")
        tmux.ask("jobs", r"Running +sleep 1000")
        tmux.enter("fg %2")
        tmux.press("C-c", "sleep 2000", "^C")
        tmux.ask("kill %1; wait; jobs", r"mark")
        tmux.ask("ps -o args= | grep -c '[s]leep' ", r"(?m)^0$")

    def screens():
        tmux.enter("clear; less facts.json")
        tmux.wait('"home"')
        tmux.call("send-keys", "q")
        tmux.ask("stty size", r"(?m)^30 100$")
        # The signal is for the job in the foreground, which is this shell.
        tmux.enter("""sh -c 'trap "stty size; exit" WINCH; echo wai""ting; while :; do sleep 0.2; done'""")
        tmux.wait("waiting")
        tmux.call("resize-window", "-x", "70", "-y", "20")
        tmux.wait("20 70")
        tmux.ask("stty size", r"(?m)^20 70$")
        tmux.enter("exit 3")
        tmux.ask("echo was $?", r"was 3")

    def whole():
        tmux.enter(f"clear; {run}python3 -q")
        tmux.wait(">>>")
        tmux.press("C-z", "python3 -q", "Stopped")
        tmux.ask("jobs", r"Stopped .*python3 -q")
        tmux.enter("fg")
        tmux.enter("print(6 * 7)")
        tmux.wait("42")
        tmux.enter("exit(4)")
        tmux.ask("echo was $?", r"was 4")
        tmux.enter(f"clear; {run}sleep 1000")
        tmux.press("C-c", "sleep 1000", "^C")
        tmux.ask("echo was $?", r"was 130")

    def closed():
        before = person.processes().keys()
        inside()
        tmux.enter("sleep 3000")
        until("what the shell started", lambda: any(b"sleep" in words for pid, words in person.processes().items() if pid not in before))
        tmux.call("kill-server")
        until("the end of all of it", lambda: not person.processes().keys() - before, 30)

    for step in (jobs, screens, whole, closed):
        try:
            step()
            report.note(True, f"in tmux: {step.__name__}")
        except (Trouble, subprocess.SubprocessError) as trouble:
            return report.note(False, f"in tmux: {step.__name__}", trouble)
