"""Where the programs of mail.py run: with or without a terminal, watched by strace or not."""

import fcntl
import os
import re
import select
import shutil
import struct
import subprocess
import termios
import time

from mail_programs import USER
from mail_web import Files

# Seconds that a program may take; one that takes longer is ended. After a refusal not all end by themselves.
LIMIT, REFUSED_LIMIT = 60, 20
# The argument list of every program that is started goes into the file that comes next.
STRACE = ["strace", "-f", "-qq", "-s", "100000", "-e", "trace=execve,execveat", "-o"]


class Place:
    """What the programs find: their homes, the servers, and the names by which docs/tools.md calls these."""

    def __init__(self, tools, dovecot, sink, files):
        self.tools, self.dovecot = tools, dovecot
        self.sent, self.file_content = sink.messages, Files.CONTENT.decode()
        self.certificate = tools.house.place("server.pem")
        shutil.copy(dovecot.certificate, self.certificate)
        self.traced, self.limit = None, LIMIT
        imap, smtp = dovecot.imap, dovecot.submission
        self.names = [
            ("imaps://mail.example.org:993", f"imaps://localhost:{imap}"), ("mail.example.org:465", f"localhost:{smtp}"),
            ("mail.example.org:993", f"localhost:{imap}"),
            ("--origin imaps://mail.example.org", f"--origin imaps://localhost:{imap}"),
            ('"imaps://mail.example.org"', f'"imaps://localhost:{imap}"'),
            ("imaps://mail.example.org/ ", f"imaps://localhost:{imap}/ "),
            ("smtps://mail.example.org", f"smtps://localhost:{smtp}"), ("mail.example.org", "localhost"),
            ("ada%40example.org", USER.replace("@", "%40")), ("ada@example.org", USER),
            ("/etc/ssl/certs/ca-certificates.crt", self.certificate),
            ("https://files.example.org", f"https://localhost:{files.port}"),
        ] + [(f"{word}{sign}{usual}", f"{word}{sign}{port}") for usual, port in [("993", imap), ("465", smtp)]
             for word, sign in [("Port", " "), ("port", " "), ("port", " = "), ("Port", " = ")]]

    def home(self, name):
        path = self.tools.house.place("home-" + re.sub(r"[^a-z0-9]+", "-", name.lower()))
        os.mkdir(path, 0o700)
        return path

    def prepared(self, command, environment):
        if self.traced:
            command = [*STRACE, self.traced, *command]
        return list(command), self.tools.environment | {"TERM": "xterm", "LANG": "C.UTF-8"} | environment

    def execute(self, command, text, environment):
        command, environment = self.prepared(command, environment)
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=environment)
        try:
            said = process.communicate(text, timeout=self.limit)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return None, process.communicate()[0] + f"(ended by the campaign after {self.limit} seconds)"
        return process.returncode, said

    def execute_in_terminal(self, command, environment, keys=(("No mailbox is open", b"q"),)):
        return run_in_terminal(*self.prepared(command, environment), self.limit, keys)

    def mailbox(self):
        """The bytes of each message that the server has."""
        messages = []
        for folder in ["new", "cur"]:
            for name in os.listdir(self.dovecot.place("Maildir/" + folder)):
                with open(self.dovecot.place(f"Maildir/{folder}/{name}"), "rb") as file:
                    messages.append(file.read())
        return messages


def run_in_terminal(command, environment, seconds, keys=()):
    """(status, what it wrote on the screen, with its control sequences). `keys` has pairs of a text and what is typed when
    the screen first shows it. A program that stays is ended: status None."""
    keys = list(keys)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    deadline, pieces, has_ended = time.monotonic() + seconds, [], False
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the last holder of the other end has gone
                piece = b""
            if not piece:
                has_ended = True
                break
            pieces.append(piece)
            screen = b"".join(pieces).decode(errors="replace")
            for pair in [pair for pair in keys if pair[0] in screen]:
                os.write(ours, pair[1])
                keys.remove(pair)
        elif process.poll() is not None:
            has_ended = True
            break
    if not has_ended:
        process.kill()
    process.wait()
    os.close(ours)
    return process.returncode if has_ended else None, b"".join(pieces).decode(errors="replace")
