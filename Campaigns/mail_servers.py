"""The mail servers of mail.py, all on loopback: Dovecot (IMAP and submission) with OAuth by token introspection, and the
SMTP server behind Dovecot's submission service.
"""

import os
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading

from house import stop, until
from mail_web import INTROSPECTOR
from stage import Trouble

# Whom Dovecot runs as where the campaign runs as root: nobody and nogroup.
NOBODY = 65534


class Sink:
    """Takes the mail that Dovecot's submission service hands on; `messages` are their bytes."""

    def __init__(self):
        messages = self.messages = []

        class Handler(socketserver.StreamRequestHandler):
            def say(self, text):
                self.wfile.write((text + "\r\n").encode())

            def handle(self):
                self.say("220 sink ESMTP")
                for line in self.rfile:
                    verb = line.strip().upper()
                    if verb == b"DATA":
                        self.say("354 go on")
                        messages.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                        self.say("250 taken")
                    elif verb == b"QUIT":
                        return self.say("221 bye")
                    else:
                        self.say("250 sink" if verb.startswith(b"EHLO") else "250 ok")

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def free_ports(count):
    """Ports that nobody listens on now: Dovecot takes no listening socket from others."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Dovecot:
    """IMAP and submission, each with TLS from the first byte, by XOAUTH2, OAUTHBEARER and PLAIN; one user's mailbox."""

    PROGRAM = "/usr/sbin/dovecot"

    def __init__(self, introspection, sink):
        # Its own directory: it runs as another user where the campaign is root, since it lets root read no mail.
        self.directory = tempfile.mkdtemp(prefix="ringback-dovecot-")
        self.certificate, self.key = self.place("cert.pem"), self.place("key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", self.key,
             "-out", self.certificate], check=True, stderr=subprocess.DEVNULL)
        self.imap, self.submission = free_ports(2)
        user, password = INTROSPECTOR
        self.write("oauth2.conf", f"""
introspection_mode = post
introspection_url = http://{user}:{password}@127.0.0.1:{introspection.port}/introspect
force_introspection = yes
username_attribute = username
active_attribute = active
active_value = true
""")
        self.write("dovecot.conf", self.configuration(sink))
        for name in ["Maildir", "Maildir/new", "Maildir/cur", "Maildir/tmp"]:
            os.mkdir(self.place(name), 0o700)
        self.delivered = 0
        command = [Dovecot.PROGRAM, "-F", "-c", self.place("dovecot.conf")]
        if os.geteuid() == 0:
            for folder, folders, files in os.walk(self.directory):
                for name in [folder, *(os.path.join(folder, name) for name in folders + files)]:
                    os.chown(name, NOBODY, NOBODY)
            command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        self.log = open(self.place("dovecot.out"), "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            for port in [self.imap, self.submission]:
                until("Dovecot", lambda port=port: self.process.poll() is not None or listens(port))
            if self.process.poll() is not None:
                raise Trouble(f"Dovecot did not start: {self.text}")
        except Trouble:
            self.close()
            raise

    def configuration(self, sink):
        user = f"#{NOBODY}" if os.geteuid() == 0 else f"#{os.geteuid()}"
        name = subprocess.run(["id", "-nu", user[1:]], capture_output=True, text=True).stdout.strip()
        group = subprocess.run(["id", "-ng", user[1:]], capture_output=True, text=True).stdout.strip()
        return f"""
base_dir = {self.place("run")}
state_dir = {self.place("state")}
log_path = {self.place("dovecot.log")}
auth_verbose = yes
auth_failure_delay = 0
default_internal_user = {name}
default_internal_group = {group}
default_login_user = {name}
first_valid_uid = 1
protocols = imap submission
listen = 127.0.0.1
ssl = required
ssl_cert = <{self.certificate}
ssl_key = <{self.key}
auth_mechanisms = plain xoauth2 oauthbearer
passdb {{
  driver = oauth2
  args = {self.place("oauth2.conf")}
}}
userdb {{
  driver = static
  args = uid={name} gid={group} home={self.directory}
}}
mail_location = maildir:{self.place("Maildir")}
submission_relay_host = 127.0.0.1
submission_relay_port = {sink.port}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {self.imap}
    ssl = yes
  }}
}}
service submission-login {{
  chroot =
  inet_listener submission {{
    port = 0
  }}
  inet_listener submissions {{
    port = {self.submission}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  chroot =
}}
"""

    def place(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.place(name), "w") as file:
            file.write(text)

    def deliver(self, subject):
        """A new message, which is then the only one."""
        for folder in ["new", "cur"]:
            for name in os.listdir(self.place("Maildir/" + folder)):
                os.remove(self.place(f"Maildir/{folder}/{name}"))
        self.delivered += 1
        path = self.place(f"tmp-{self.delivered}")
        with open(path, "w") as file:
            file.write(
                f"From: bob@example.org\nTo: alice@example.org\nSubject: {subject}\nMessage-ID: <{subject}@example.org>\n"
                f"Date: Sat, 01 Nov 2025 12:00:00 +0000\n\nThe text of {subject}.\n")
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        os.rename(path, self.place(f"Maildir/new/1762000000.M{self.delivered}.campaign"))

    @property
    def text(self):
        """What it wrote into its logs."""
        pieces = []
        for name in ["dovecot.out", "dovecot.log"]:
            if os.path.exists(self.place(name)):
                with open(self.place(name), errors="replace") as log:
                    pieces.append(log.read())
        return "".join(pieces)

    def close(self):
        stop(self.process)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False
