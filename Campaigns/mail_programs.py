"""The programs of mail.py: how each is run with the lines of docs/tools.md, and how to see that it did its work."""

import os
import re
import subprocess

from house import ROOT
from stage import Trouble

USER = "alice@example.org"


def printed_lines(chapter):
    """What docs/tools.md prints for a program: the first block of configuration or commands below its heading."""
    with open(os.path.join(ROOT, "docs/tools.md")) as page:
        block = r"(?:(?!^#).)*?^```(?:conf|console)\n(.*?)^```$"
        found = re.search(rf"^### {re.escape(chapter)}$" + block, page.read(), re.M | re.S)
    if not found:
        raise Trouble(f"docs/tools.md prints nothing for {chapter}")
    return found[1]


class Program:
    """`run` does what a person would; `fetches`: mail comes, otherwise mail goes."""

    name, command, version, fetches = "", "", ["--version"], True
    # The chapter of docs/tools.md, where it is not the name.
    chapter = None
    # True: it tells Ringback that the server refused a token.
    tells = False
    # What the program lacks in this version, in which case it is left out.
    lacks = ""

    def __init__(self, place):
        self.place = place
        self.home = place.home(self.name)
        self.mail = os.path.join(self.home, "Mail")
        self.debug = False

    def lines(self, *changes):
        """The printed configuration, for the servers of the campaign."""
        text = printed_lines(self.chapter or self.name)
        for former, new in [*changes, *self.place.names, ("~/", self.home + "/")]:
            text = text.replace(former, new)
        return text

    def write(self, name, text):
        path = os.path.join(self.home, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return path

    def execute(self, *command, text="", **environment):
        """(status, what it printed)."""
        return self.place.execute(command, text, {"HOME": self.home, **environment})

    def run(self, subject):
        raise NotImplementedError

    def did(self, subject, said):
        """Whether the mail has arrived: here, or at the server."""
        if not self.fetches:
            return any(f"Subject: {subject}".encode() in message for message in self.place.sent)
        needle = f"The text of {subject}.".encode()
        for folder, _, files in os.walk(self.home):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    if needle in file.read():
                        return True
        return needle.decode() in said

    def logs(self):
        """The programs' own files below their home."""
        pieces = []
        for folder, _, files in os.walk(self.home):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    pieces.append(file.read())
        return b"\n".join(pieces).decode(errors="replace")


class Mbsync(Program):
    name = command = "mbsync"

    def run(self, subject):
        os.makedirs(self.mail, exist_ok=True)
        path = self.write("mbsyncrc", self.lines())
        return self.execute("mbsync", *(["-D"] if self.debug else []), "-c", path, "work")


class Getmail(Program):
    """It delivers no mail as root: there it runs in a user namespace, in which it has another uid."""

    name = command = "getmail"
    UNSHARE = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]

    def __init__(self, place):
        super().__init__(place)
        self.prefix = Getmail.UNSHARE if os.geteuid() == 0 else []
        if self.prefix and subprocess.run([*self.prefix, "true"], capture_output=True).returncode != 0:
            self.lacks = "it delivers no mail as root, and there are no user namespaces here"

    def run(self, subject):
        for name in ["", "/cur", "/new", "/tmp"]:
            os.makedirs(self.mail + name, exist_ok=True)
        path = self.write("getmailrc", self.lines())
        command = [*self.prefix, "getmail", *(["--trace"] if self.debug else []), "--new", "--getmaildir", self.home,
                   "--rcfile", path]
        status, said = self.execute(*command)
        if status is None:
            # getmail 6.18 may miss the end of the process in which it writes a message, and wait for it for a minute.
            status, said = self.execute(*command)
        return status, said


class Offlineimap(Program):
    name = command = "offlineimap"

    def run(self, subject):
        path = self.write("offlineimaprc", self.lines())
        return self.execute(
            "offlineimap", *(["-d", "imap"] if self.debug else []), "-c", path, "-o", "-u", "basic")


class Neomutt(Program):
    """It has a terminal, and keys are pressed in it."""

    chapter = command = "neomutt"
    version = ["-v"]

    def configuration(self, mechanism, *more):
        text = self.lines(("oauthbearer:xoauth2", mechanism))
        return self.write("neomuttrc", "\n".join([text, *more, "set wait_key = no", "set quit = yes", ""]))

    def log_options(self):
        return ["-d", "3", "-l", os.path.join(self.home, "neomutt.log")] if self.debug else []


class NeomuttFetch(Neomutt):
    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"neomutt, IMAP, {mechanism.upper()}"
        super().__init__(place)

    def run(self, subject):
        output = os.path.join(self.home, "message")
        path = self.configuration(
            self.mechanism, "set sort = reverse-mailbox-order", "set header_cache = ''")
        keys = f'push "<first-entry><pipe-message>cat >> {output}<enter><exit><exit>"'
        return self.place.execute_in_terminal(
            ["neomutt", "-n", "-F", path, *self.log_options(), "-e", keys], {"HOME": self.home})


class NeomuttSend(Neomutt):
    fetches = False

    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"neomutt, SMTP, {mechanism.upper()}"
        super().__init__(place)

    def run(self, subject):
        path = self.configuration(self.mechanism, "set copy = no")
        return self.execute(
            "neomutt", "-n", "-F", path, *self.log_options(), "-s", subject, "bob@example.org", text="A text.\n")


class Aerc(Program):
    """It has a terminal, and keys are pressed in it: where a mail is listed, it is opened, and its text ends the run."""

    chapter = command = "aerc"
    version = ["-v"]

    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"aerc, IMAP, {mechanism.upper()}"
        super().__init__(place)

    def run(self, subject):
        os.makedirs(os.path.join(self.home, ".config/aerc"), exist_ok=True)
        self.write(".config/aerc/accounts.conf", self.lines(("imaps+oauthbearer", f"imaps+{self.mechanism}")))
        log = f"log-file = {self.home}/log\nlog-level = {'trace' if self.debug else 'info'}\n"
        self.write(".config/aerc/aerc.conf", f"[general]\n{log}")
        return self.place.execute_in_terminal(
            ["aerc"], {"HOME": self.home, "SSL_CERT_FILE": self.place.certificate, "XDG_CONFIG_HOME": ""},
            [(subject, b":quit\r"), ("ringback login work", b":quit\r")])

    def did(self, subject, said):
        return subject in said


class Msmtp(Program):
    chapter, command, fetches = "msmtp", "msmtp", False

    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"msmtp, {mechanism.upper()}"
        super().__init__(place)

    def run(self, subject):
        path = self.write("msmtprc", self.lines(("auth xoauth2", f"auth {self.mechanism}")) + f"logfile {self.home}/log\n")
        return self.execute(
            "msmtp", *(["--debug"] if self.debug else []), "-C", path, "-a", "work", "bob@example.org",
            text=f"From: {USER}\nTo: bob@example.org\nSubject: {subject}\n\nA text.\n")


class Curl(Program):
    """IMAP by OAUTHBEARER: the token comes in a file descriptor."""

    name, chapter, command = "curl, IMAP", "curl", "curl"

    def run(self, subject):
        command = self.lines().splitlines()[0]
        return self.execute("bash", "-c", command + (" -v" if self.debug else ""), CURL_CA_BUNDLE=self.place.certificate)

    def did(self, subject, said):
        return f"* STATUS INBOX (MESSAGES {len(self.place.mailbox())})" in said


class CurlHeader(Program):
    """A field in a file descriptor."""

    name, chapter, command = "curl, HTTPS", "curl", "curl"

    def run(self, subject):
        command = self.lines().splitlines()[1]
        return self.execute("bash", "-c", command + (" -v" if self.debug else ""), CURL_CA_BUNDLE=self.place.certificate)

    def did(self, subject, said):
        return self.place.file_content in said


class Rclone(CurlHeader):
    name = chapter = command = "rclone"
    version = ["version"]

    def run(self, subject):
        path = self.write("rclone.conf", self.lines())
        return self.execute(
            "rclone", *(["-vv", "--dump", "headers"] if self.debug else []), "--config", path, "--retries", "1",
            "--ca-cert", self.place.certificate, "cat", "files:a.txt")


def programs(place):
    return [
        Mbsync(place), NeomuttFetch(place, "xoauth2"), NeomuttFetch(place, "oauthbearer"), Getmail(place),
        Aerc(place, "oauthbearer"), Aerc(place, "xoauth2"), Offlineimap(place), Curl(place), Msmtp(place, "xoauth2"), Msmtp(place, "oauthbearer"),
        NeomuttSend(place, "xoauth2"), NeomuttSend(place, "oauthbearer"), Rclone(place), CurlHeader(place),
    ]
