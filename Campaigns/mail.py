#!/usr/bin/env python3
"""Real mail programs, git's mail commands, rclone and curl get their tokens from Ringback, with the lines of docs/tools.md.

Each fetches or sends at a token that is valid, at one that has expired (one refresh request, and no server is shown the old
token), and while the account is signed out. The arguments of every program that is started, as strace sees them, have no
token, nor have what the programs print and their logs. The server is Dovecot, with OAuth by token introspection.
"""

import base64
import imaplib
import os
import re
import shutil
import ssl
import subprocess
import sys

sys.dont_write_bytecode = True
from herd import STEP, Clock, ClockedHouse, requests, revoke  # noqa: E402
from house import Died  # noqa: E402
from mail_git import gits  # noqa: E402
from mail_place import LIMIT, REFUSED_LIMIT, STRACE, Place  # noqa: E402
from mail_programs import USER, programs  # noqa: E402
from mail_servers import Dovecot, Sink  # noqa: E402
from mail_web import Files, Introspection  # noqa: E402
from operations import must  # noqa: E402
from report import Report, could_not_run, options, progress, table  # noqa: E402
from shim import NoCompiler  # noqa: E402
from stage import Trouble  # noqa: E402
from tools import Tools  # noqa: E402

# Programs without OAuth in the versions that were tried: what they say then, and the reason.
WITHOUT = [
    ("fetchmail", ["fetchmail", "--auth", "oauthbearer", "--version"], "Invalid authentication",
     "version 6.4 has no OAuth"),
]


def forms(token):
    """The token as it is, and the three ways in which it may stand in base64."""
    found = [token]
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + token.encode()).decode()
        found.append(text[4 if shift else 0: (len(token) + shift) // 3 * 4 - 4])
    return found


class Mail:
    """One run through all programs, at a state of the account."""

    def __init__(self, house, tools, place, shown, report):
        self.house, self.tools, self.place, self.report = house, tools, place, report
        # The tokens that the servers were shown, and those that there are.
        self.shown, self.tokens, self.rows = shown, set(), {}

    def token(self):
        token = self.tools.ringback("token", "work")
        self.tokens.add(token)
        return token

    def has_token(self, text):
        return any(form in text for token in self.tokens for form in forms(token))

    def attempt(self, program, state):
        subject = re.sub(r"[^a-z0-9]+", "-", f"{state} {program.name}".lower())
        if program.fetches:
            self.place.dovecot.deliver(subject)
        status, said = program.run(subject)
        return status, said, program.did(subject, said)

    def valid(self, program, traces):
        where, before, shown = f"{program.name}, valid token", requests(self.house), len(self.shown)
        token = self.token()
        self.place.traced = self.house.place("trace") if traces else None
        status, said, did = self.attempt(program, "valid")
        self.report.note(status == 0 and did, where, f"status {status}: {said[-600:]} {self.place.dovecot.text[-600:]}")
        self.report.note(requests(self.house) == before, where, "there was a refresh request")
        self.report.note(set(self.shown[shown:]) == {token}, where, "no server was shown the token, or another one")
        self.report.note(not self.has_token(said + program.logs()), where, "its output or its logs have the token")
        if traces:
            with open(self.place.traced) as file:
                trace = file.read()
            self.place.traced = None
            self.report.note("execve(" in trace and "ringback" in trace, where, "strace saw no start of ringback")
            self.report.note(not self.has_token(trace), where, "an argument list has the token")
        return status == 0 and did

    def expired(self, program):
        where = f"{program.name}, expired token"
        # The provider takes the old token no more, as if it had expired there too.
        former = self.token()
        revoke(self.house, former)
        self.house.clock.advance(STEP)
        before, shown = requests(self.house), len(self.shown)
        status, said, did = self.attempt(program, "expired")
        made = requests(self.house) - before
        token = self.token()
        self.report.note(status == 0 and did, where, f"status {status}: {said[-600:]} {self.place.dovecot.text[-600:]}")
        self.report.note(made == 1, where, f"{made} refresh requests")
        self.report.note(set(self.shown[shown:]) == {token}, where, "no server was shown the new token, or another one too")

    def revoked(self, program):
        """Only git tells that the server refused the token; for the others a person has to have it refreshed."""
        where = f"{program.name}, revoked token"
        # After an expiry it is the first refusal in a row; after a while the refresh before it is not taken for a new one.
        self.house.clock.advance(STEP)
        revoke(self.house, self.token())
        self.house.clock.advance(60)
        before = requests(self.house)
        self.place.limit = REFUSED_LIMIT
        _, shows, did = self.attempt(program, "revoked")
        self.place.limit = LIMIT
        self.report.note(not did, where, "the server took the token")
        self.report.note(requests(self.house) == before, where, "there was a refresh request")
        if not program.tells:
            self.tools.ringback("refresh", "work")
        status, said, did = self.attempt(program, "after-revocation")
        made = requests(self.house) - before
        self.token()
        self.report.note(status == 0 and did, where, f"then status {status}: {said[-600:]} {self.place.dovecot.text[-600:]}")
        self.report.note(made == 1, where, f"{made} refresh requests")
        return shows

    def debug(self, program):
        """Whether the token is in what the program writes when it is told to write everything."""
        program.debug = True
        status, said, did = self.attempt(program, "debug")
        program.debug = False
        self.report.note(status == 0 and did, f"{program.name}, debug output", f"status {status}: {said[-600:]}")
        self.rows[program.name][1] = "yes" if self.has_token(said + program.logs()) else "no"

    def signed_out(self, program):
        where, shown = f"{program.name}, signed out", len(self.shown)
        status, said, did = self.attempt(program, "signed-out")
        self.report.note(not did and len(self.shown) == shown, where, "it did its work without a token")
        says = "ringback login work" in said
        self.rows[program.name][2:] = [status, "yes" if says else "no"]
        return said


def try_formats(mail):
    """Both initial responses, as `ringback token` prints them, at Dovecot itself."""
    context = ssl.create_default_context(cafile=mail.place.certificate)
    port = mail.place.dovecot.imap
    for form in ["xoauth2", "oauthbearer"]:
        word = mail.tools.ringback("token", "--origin", f"imaps://localhost:{port}", "--format", form)
        try:
            with imaplib.IMAP4_SSL("localhost", port, ssl_context=context) as connection:
                answer = connection.authenticate(form.upper(), lambda _, word=word: base64.b64decode(word))[0]
        except imaplib.IMAP4.error as error:
            answer = error
        mail.report.note(answer == "OK", f"Dovecot takes --format {form}", answer)


def can_trace(mail):
    """Whether strace sees an argument list here: one that has the token is found."""
    token, path = mail.token(), mail.house.place("control")
    if not shutil.which("strace"):
        mail.report.skip("argument lists", "strace is not installed")
        return False
    done = subprocess.run(
        [*STRACE, path, "sh", "-c", f"/bin/echo {token}; :"], capture_output=True)
    if done.returncode != 0:
        mail.report.skip("argument lists", "strace may not trace here")
        return False
    with open(path) as file:
        mail.report.note(mail.has_token(file.read()), "strace sees argument lists", "the control was not found")
    return True


def left_out(report):
    for name, command, sign, reason in WITHOUT:
        if not shutil.which(command[0]):
            report.skip(name, f"it is not installed; of Debian's version it is known: {reason}")
            continue
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        has_none = sign in done.stdout + done.stderr
        report.skip(name, reason if has_none else "this version has OAuth, and no test has been written for it")
    report.skip("vdirsyncer", "its OAuth is for Google's servers only, and it runs no command for a token")


def walk(mail, chosen):
    traces = can_trace(mail)
    try_formats(mail)
    left_out(mail.report)
    ready = []
    for program in programs(mail.place) + gits(mail.place):
        if program.lacks or not shutil.which(program.command):
            mail.report.skip(program.name, program.lacks or "it is not installed")
            continue
        said = mail.tools.run(program.command, *program.version)[1]
        mail.rows[program.name] = [(re.search(r"\d+(\.\d+)+|\d{8}", said) or [said.strip()])[0], "-", "-", "-"]
        if mail.valid(program, traces):
            ready.append(program)
    progress("every program has used a valid token")
    for program in ready:
        mail.expired(program)
    progress("every program has used an expired token")
    # In the short form one that fetches, one that sends and git.
    for program in ready:
        if not chosen.short or program.name in ["getmail", "msmtp, XOAUTH2", "git imap-send, PLAIN"]:
            said = mail.revoked(program)
            if chosen.texts:
                print(f"--- {program.name}, revoked\n{said}")
    if not chosen.short:
        for program in ready:
            mail.debug(program)
    mail.tools.ringback("logout", "work")
    for program in ready:
        said = mail.signed_out(program)
        if chosen.texts:
            print(f"--- {program.name}\n{said}")


def main():
    chosen = options(__doc__.splitlines()[0], texts=("", "anything: print what each program shows when signed out"))
    report, house, servers, mail = Report(), None, [], None
    try:
        house = ClockedHouse(chosen.bin, shimmed=False)
        house.clock = Clock(house.directory)
        # Reuse of a refresh token ends the session at once: a second request would not go unseen.
        house.fresh(access_token_lifetime=3_600, reuse_grace=0)
        shown = []
        servers += [Introspection(house.sandbox.issuer, shown), Sink()]
        dovecot = Dovecot(*servers)
        servers.append(dovecot)
        servers.append(Files(house.sandbox.issuer, shown, (dovecot.certificate, dovecot.key)))
        tools = Tools(house, report)
        os.symlink(os.path.join(house.binaries, "ringback"), os.path.join(tools.links, "ringback"))
        # As docs/tools.md has it; git asks with protocols that say nothing about the encryption.
        house.configure("".join(
            f'[[origin]]\nurl = "{url}"\naccount = "work"\nusername = "{USER}"\n' for url in [
                f"imaps://localhost:{dovecot.imap}/*", "imaps://localhost/*", f"smtps://localhost:{dovecot.submission}/*",
                f"smtp://localhost:{dovecot.submission}/*", f"https://localhost:{servers[-1].port}/*"]))
        house.start()
        must(house.sign_in(), "the sign-in")
        if not house.clock.asked:
            raise Trouble("the clock is not in the daemon: is it a static executable?")
        mail = Mail(house, tools, Place(tools, dovecot, servers[1], servers[-1]), shown, report)
        walk(mail, chosen)
    except NoCompiler as trouble:
        return could_not_run(trouble)
    except (Trouble, Died, OSError, subprocess.SubprocessError) as trouble:
        return could_not_run(trouble, house)
    finally:
        for server in reversed(servers):
            server.close()
        if house:
            house.close(chosen.keep)
    table("The programs", ["program", "version", "token in its debug output", "status when signed out", "shows the command"],
          [[name, *row] for name, row in mail.rows.items()])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
