"""What happens to the daemon as a unit, from its installation to its removal; a session must outlive all of it."""

import ctypes
import json
import os
import time

from harness import ROOT, Trouble, read
from kinds import openid_account

SERVICE, SOCKET = "ringback.service", "ringback.socket"
SCHEME = "org.example.unit"
VAULT = '[vault]\nkey_source = "%s"\n'


PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
WALL = 0x4000_0000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def freeze(pid, begins):
    """Stops the thread whose name begins so, until its process ends. Returns the thread."""
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        if not read(f"/proc/{pid}/task/{thread}/comm").startswith(begins):
            continue
        for request in [PTRACE_SEIZE, PTRACE_INTERRUPT]:
            if libc.ptrace(request, thread, None, None) < 0:
                raise Trouble(f"the thread {thread} cannot be stopped: {os.strerror(ctypes.get_errno())}")
        os.waitpid(thread, WALL)
        return thread
    raise Trouble(f"no thread of {pid} is called {begins}")


def has_ended(thread):
    """True once the thread has ended. To be asked until then: a process is not gone while its tracer has not looked."""
    try:
        found, status = os.waitpid(thread, WALL | os.WNOHANG)
    except ChildProcessError:
        return True
    return found == thread and (os.WIFEXITED(status) or os.WIFSIGNALED(status))


def autostart(path):
    """The command of a desktop file, which has nothing in it that a shell reads in another way."""
    return next(line for line in read(path).splitlines() if line.startswith("Exec=")).removeprefix("Exec=")


class Walk:
    def __init__(self, report, manager, sandbox):
        self.expect, self.manager, self.sandbox = report.note, manager, sandbox

    def ringback(self, *words, **variables):
        return self.manager.run("ringback", *words, **variables)

    def configure(self, more="", key_source="key-file"):
        text = VAULT % key_source + openid_account("work", self.sandbox.issuer) + f'[schemes."{SCHEME}"]\n' + more
        self.manager.write(".config/ringback/config.toml", text)

    def drop_in(self, name, text):
        """Another directive for the service; none takes it away."""
        path = f".config/systemd/user/{SERVICE}.d/{name}.conf"
        if text is None:
            os.unlink(os.path.join(self.manager.home, path))
        else:
            self.manager.write(path, "[Service]\n" + text)
        self.manager.systemctl("daemon-reload")

    @property
    def notes(self):
        return read(os.path.join(self.manager.home, "notes"))

    @property
    def pid(self):
        return int(self.manager.show(SERVICE, "MainPID") or 0)

    @property
    def state(self):
        return self.manager.show(SERVICE, "ActiveState")

    def works(self, done, what, is_right=True):
        self.expect(done.returncode == 0 and is_right, what, done)

    def expect_session(self, when):
        """The session is there, and its provider honours its token."""
        token = self.ringback("token", "work")
        subject = self.sandbox.subject(token.stdout.strip()) if token.returncode == 0 else None
        self.expect(subject is not None, f"the session is there {when}", token)

    def go(self, tarball):
        self.install(tarball)
        for part in [self.first_request, self.stop_and_start, self.link, self.environment, self.reload, self.crash,
                     self.watchdog, self.bad_start, self.held_elsewhere, self.credential]:
            # What the parts before have started does not count towards the limit of starts.
            self.manager.systemctl("reset-failed")
            part()

    def install(self, tarball):
        self.configure()
        # In the place of a journal; and what systemd thinks of each end.
        self.drop_in("notes", f"StandardError=append:{self.manager.home}/notes\n"
                     f"ExecStopPost=/bin/sh -c 'echo ended: $$SERVICE_RESULT >>{self.manager.home}/notes'\n")
        done = self.manager.run(f"{tarball}/install")
        self.works(done, "./install", not done.stdout)
        # The line that it prints.
        line = "systemctl --user daemon-reload && systemctl --user enable --now ringback.socket"
        self.expect(line in done.stderr, "which says what to type", done)
        self.works(self.manager.run("sh", "-c", line), "the line that it says")
        for unit in [SOCKET, SERVICE]:
            shown = self.manager.show(unit, "FragmentPath")
            self.expect(shown == f"{self.manager.home}/.local/share/systemd/user/{unit}", f"{unit} is ours", shown)
        self.expect(self.manager.systemctl("is-enabled", SOCKET).stdout.strip() == "enabled", "the socket is enabled")
        self.expect(self.manager.show(SOCKET, "SubState") == "listening", "and listened at")
        self.expect(self.state == "inactive", "the daemon does not run yet", self.state)
        directory = os.path.join(self.manager.runtime, "ringback")
        modes = [oct(os.stat(path).st_mode & 0o777) for path in [directory, directory + "/ringback.sock"]]
        self.expect(modes == ["0o700", "0o600"], "socket and directory are the person's alone", modes)
        self.works(self.manager.run(f"{tarball}/install"), "./install, once more")
        entry = os.path.join(self.manager.home, ".local/share/ringback/ringbackd.desktop")
        done = self.manager.run("sh", "-c", autostart(entry))
        self.works(done, "the autostart entry starts no daemon beside the unit", self.state == "inactive")

    def first_request(self):
        done = self.ringback("status", "--json")
        status = json.loads(done.stdout) if done.returncode == 0 else {}
        self.expect(status.get("pid") == self.pid and self.pid, "the first request starts the daemon", done)
        self.expect(self.state == "active", "which says when it is ready", self.state)
        self.works(self.ringback("login", "work", BROWSER="curl -sSL -o /dev/null"), "a sign-in")
        self.expect_session("after the sign-in")

    def stop_and_start(self):
        self.works(self.manager.systemctl("stop", SERVICE), "systemctl stop")
        self.expect(self.manager.show(SERVICE, "Result") == "success" and self.state == "inactive", "a clean end",
                    self.manager.show(SERVICE, "Result"))
        self.expect_session("after a stop and a request")
        before = self.pid
        self.works(self.manager.systemctl("restart", SERVICE), "systemctl restart")
        self.expect(self.pid not in (0, before), "another process", self.pid)
        self.expect_session("after a restart")

    def link(self):
        """A link wakes the daemon, though not even its socket is there."""
        self.manager.systemctl("stop", SOCKET, SERVICE)
        self.expect(self.pid == 0 and self.manager.show(SOCKET, "ActiveState") == "inactive", "socket and service stop")
        self.works(self.ringback("open", f"{SCHEME}:x"), "ringback open starts the daemon through its socket unit", self.pid)
        self.expect(self.manager.show(SOCKET, "ActiveState") == "active", "and the socket is there")

    def environment(self):
        """environment.d: the example as systemd's own generator reads it."""
        text = read(os.path.join(ROOT, "systemd/environment.d/50-ringback.conf"))
        self.manager.write(".config/environment.d/50-ringback.conf", text)
        made = self.manager.run("/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator")
        wanted = f"RINGBACK_SOCK={self.manager.runtime}/ringback/ringback.sock"
        self.works(made, "systemd reads environment.d", wanted in made.stdout.splitlines() and not made.stderr)
        os.unlink(os.path.join(self.manager.home, ".config/environment.d/50-ringback.conf"))
        os.rmdir(os.path.join(self.manager.home, ".config/environment.d"))

    def held_elsewhere(self):
        """Another daemon holds the state: the unit ends with 69, and is not tried again."""
        self.manager.systemctl("stop", SOCKET, SERVICE)
        other = os.path.join(self.manager.home, "other.sock")
        script = f"ringbackd --socket {other} </dev/null >/dev/null 2>&1 & echo $!"
        pid = self.manager.run("sh", "-c", script).stdout.strip()
        self.manager.until("another daemon", lambda: self.ringback("status", "--socket", other).returncode == 0)
        self.manager.systemctl("start", SERVICE)
        self.manager.until("the failure", lambda: self.state == "failed")
        result = [self.manager.show(SERVICE, name) for name in ["ExecMainStatus", "NRestarts"]]
        self.expect(result == ["69", "0"], "a state that another daemon holds is not tried again", result)
        self.manager.signal(pid, "TERM")
        self.manager.until("its end", lambda: not os.path.exists(other))
        self.manager.systemctl("reset-failed", SERVICE)
        self.manager.systemctl("start", SOCKET)
        self.expect_session("after another daemon has ended")

    @property
    def names(self):
        return [each["name"] for each in json.loads(self.ringback("accounts", "--json").stdout)["accounts"]]

    def reload(self):
        before = self.pid
        self.configure(openid_account("home", self.sandbox.issuer))
        done = self.manager.systemctl("reload", SERVICE)
        self.works(done, "systemctl reload", self.names == ["home", "work"])
        self.configure('[accounts.bad]\nissur = "https://id.example.org"\n')
        done = self.manager.systemctl("reload", SERVICE)
        self.expect(done.returncode != 0, "systemctl reload reports a bad configuration", done)
        status = self.manager.systemctl("status", SERVICE)
        self.expect("active (running)" in status.stdout and "status=78" in status.stdout, "systemctl status says so",
                    status.stdout)
        self.expect("issur" in self.notes, "the journal names the mistake", self.notes)
        self.expect(self.names == ["home", "work"] and self.pid == before, "and nothing has changed", self.names)
        self.configure()
        self.works(self.manager.systemctl("reload", SERVICE), "mended, it is reloaded")
        self.expect_session("after reloads")

    def restarted(self, before, what):
        self.manager.until(what, lambda: self.state == "active" and self.pid not in (0, before))

    def crash(self):
        before = self.pid
        self.manager.signal(before, "KILL")
        self.restarted(before, "a restart after SIGKILL")
        self.expect(self.manager.show(SERVICE, "NRestarts") == "1", "a killed daemon is started anew")
        self.expect_session("after SIGKILL")

    def watchdog(self):
        self.expect(self.manager.show(SERVICE, "WatchdogUSec") == "30s", "the watchdog's 30 seconds")
        self.drop_in("watchdog", "WatchdogSec=1\n")
        self.manager.systemctl("restart", SERVICE)
        before = self.pid
        time.sleep(3.5)
        self.expect(self.pid == before and self.state == "active", "a daemon that answers is left alone", self.state)
        self.manager.signal(before, "STOP")
        self.restarted(before, "a restart of a hung daemon")
        self.expect("ended: watchdog" in self.notes, "the watchdog ends a hung daemon, and starts it anew", self.notes)
        self.expect_session("after the watchdog")
        # A process that runs while its sockets are dead is none that lives.
        self.manager.systemctl("reset-failed")
        before, ends = self.pid, self.notes.count("ended: watchdog")
        thread = freeze(self.manager.outside(before), "sockets")
        self.manager.until("an end of the daemon whose sockets hang", lambda: has_ended(thread))
        self.restarted(before, "a restart of a daemon whose sockets' thread hangs")
        self.expect(self.notes.count("ended: watchdog") > ends, "and one whose sockets' thread alone hangs",
                    self.notes)
        self.expect_session("after that, too")
        self.drop_in("watchdog", None)
        self.manager.systemctl("restart", SERVICE)

    def bad_start(self):
        self.manager.systemctl("stop", SERVICE)
        self.manager.write(".config/ringback/config.toml", "[accounts.work\n")
        began = time.monotonic()
        done = self.ringback("status")
        self.expect(done.returncode == 2 and time.monotonic() - began < 10, "a request to one that cannot start", done)
        self.manager.until("the failure", lambda: self.state == "failed")
        result = [self.manager.show(SERVICE, name) for name in ["Result", "ExecMainStatus", "NRestarts"]]
        self.expect(result == ["exit-code", "78", "0"], "a bad configuration is not tried again", result)
        self.expect(self.manager.show(SOCKET, "SubState") == "listening", "the socket stays",
                    self.manager.show(SOCKET, "SubState"))
        self.configure()
        self.expect_session("after the configuration was mended")

    def vault(self):
        return json.loads(self.ringback("status", "--json").stdout)["vault"]

    def credential(self):
        """LoadCredential=: the vault's key from systemd's hands."""
        self.manager.write("vault-key", os.urandom(32).hex())
        line = f"LoadCredential=ringback-vault-key:{self.manager.home}/vault-key\n"
        self.drop_in("credential", line)
        self.manager.systemctl("restart", SERVICE)
        done = self.ringback("vault", "rekey", "systemd-credential")
        self.configure(key_source="systemd-credential")
        self.expect(done.returncode == 0, "ringback vault rekey systemd-credential", done)
        self.manager.systemctl("restart", SERVICE)
        vault = self.vault()
        self.expect(vault["key_source"] == "systemd-credential" and not vault["locked"], "the key is a credential", vault)
        self.expect_session("with its key in a credential")
        self.drop_in("credential", None)
        self.manager.systemctl("restart", SERVICE)
        vault = self.vault()
        token = self.ringback("token", "work")
        self.expect(vault["locked"] and token.returncode != 0 and not token.stdout, "without it the vault is locked",
                    f"{vault} {token}")
        self.expect("LoadCredential" in self.ringback("status").stdout + token.stderr, "which says why", token)
        self.drop_in("credential", line)
        self.manager.systemctl("restart", SERVICE)
        self.expect_session("with the credential again")

    def undo(self):
        home = self.manager.home
        kept = os.path.join(home, ".local/state/ringback")
        self.works(self.manager.run(f"{home}/.local/share/ringback/install", "--undo"), "./install --undo")
        left = [os.path.relpath(os.path.join(place, name), home) for place, _, names in os.walk(home) for name in names]
        own = [".config/ringback/", ".local/state/ringback/", ".local/share/ringback/keys/", "vault-key", "notes",
               f".config/systemd/user/{SERVICE}.d/", ".config/systemd/user/ringback-"]
        foreign = [path for path in left if not path.startswith(tuple(own))]
        self.expect(not foreign, "nothing of it is left", foreign)
        self.expect(os.listdir(kept), "but the sessions")
        links = os.path.join(home, ".config/systemd/user/sockets.target.wants")
        self.expect(not os.path.exists(links), "and no link of systemd", links)
        for unit in [SOCKET, SERVICE]:
            state = self.manager.show(unit, "LoadState") + " " + self.manager.show(unit, "ActiveState")
            self.expect(state in ["not-found inactive", "not-found failed"], f"{unit} is gone", state)
        self.expect(not os.path.exists(os.path.join(self.manager.runtime, "ringback/ringback.sock")), "and the socket")
