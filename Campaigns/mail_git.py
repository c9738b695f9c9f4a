"""git's mail commands, as programs of mail.py: they ask the credential helper."""

import smtplib
import ssl
import subprocess

from mail_programs import USER, Program


class Git(Program):
    chapter, command = "git send-email and git imap-send", "git"
    tells = True

    def configuration(self, **changes):
        # Git before 2.51 takes no authMethod for curl; curl then chooses one that fits a password.
        text = self.lines(
            ("\tauthMethod = XOAUTH2\n", f"\tauthMethod = {self.mechanism}\n" if self.number >= (2, 51) else ""),
            (" = XOAUTH2", f" = {self.mechanism}"))
        environment = {
            "GIT_CONFIG_GLOBAL": self.write("gitconfig", text), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false", "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": USER,
            "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": USER}
        return environment | ({"GIT_TRACE": "1", "GIT_TRACE_CURL": "1"} if self.debug else {})

    @property
    def number(self):
        said = subprocess.run(["git", "--version"], capture_output=True, text=True).stdout
        return tuple(int(part) for part in said.split()[2].split(".")[:2])


class GitSend(Git):
    fetches = False

    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"git send-email, {mechanism}"
        super().__init__(place)
        if mechanism != "PLAIN" and self.number < (2, 50):
            self.lacks = "that needs git 2.50"

    def run(self, subject):
        path = self.write("0001-a.patch", (
            f"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: Ada <{USER}>\n"
            f"Date: Sat, 1 Nov 2025 12:00:00 +0000\nSubject: {subject}\n\nA text.\n---\n"))
        return self.execute(
            "git", "send-email", "--quiet", *(["--smtp-debug=1"] if self.debug else []), "--confirm=never", "--no-thread",
            "--suppress-cc=all", "--to=bob@example.org", path, **self.configuration())


class GitPlayed(Git):
    """What git send-email does from 2.50 on, for a git that is older: it asks its helper, and sends the password that it
    gets as the token. git asks, the campaign sends."""

    fetches = False

    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"git credential fill, SMTP, {mechanism}"
        super().__init__(place)

    def run(self, subject):
        port = self.place.dovecot.submission
        question = f"protocol=smtp\nhost=localhost:{port}\nusername={USER}\n\n"
        status, said = self.execute("git", "credential", "fill", text=question, **self.configuration())
        if status != 0:
            return status, said
        token = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)["password"]
        word = {"XOAUTH2": f"user={USER}\1auth=Bearer {token}\1\1",
                "OAUTHBEARER": f"n,a={USER},\1host=localhost\1port={port}\1auth=Bearer {token}\1\1"}[self.mechanism]
        context = ssl.create_default_context(cafile=self.place.certificate)
        with smtplib.SMTP_SSL("localhost", port, context=context) as connection:
            try:
                connection.ehlo()
                connection.auth(self.mechanism, lambda challenge=None: word)
                connection.sendmail(USER, ["bob@example.org"], f"Subject: {subject}\n\nA text.\n")
            except smtplib.SMTPException as error:
                answer = question[:-1] + f"password={token}\n\n"
                self.execute("git", "credential", "reject", text=answer, **self.configuration())
                return 1, str(error)
        return 0, ""


class GitImap(Git):
    fetches = False

    def __init__(self, place, mechanism):
        self.mechanism, self.name = mechanism, f"git imap-send, {mechanism}"
        super().__init__(place)
        if mechanism != "PLAIN" and self.number < (2, 51):
            self.lacks = "that needs git 2.51"

    def run(self, subject):
        message = (
            f"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: Ada <{USER}>\n"
            f"Date: Sat, 1 Nov 2025 12:00:00 +0000\nSubject: {subject}\n\nThe text of {subject}.\n---\n")
        # It has no option for the certificate of one's own server.
        return self.execute(
            "git", "-c", "imap.sslVerify=false", "imap-send", "--curl", *(["-v"] if self.debug else []), text=message,
            **self.configuration())

    def did(self, subject, said):
        return any(f"The text of {subject}.".encode() in message for message in self.place.mailbox())


def gits(place):
    return [
        GitImap(place, "PLAIN"), GitImap(place, "XOAUTH2"), GitImap(place, "OAUTHBEARER"), GitSend(place, "PLAIN"),
        GitSend(place, "XOAUTH2"), GitSend(place, "OAUTHBEARER"), GitPlayed(place, "XOAUTH2"),
        GitPlayed(place, "OAUTHBEARER"),
    ]
