#!/usr/bin/env python3
"""A small app of a Supabase project: says who is signed in, reads their row, follows what happens, signs in and out.

    PROJECT_URL=https://abcdefgh.supabase.co PROJECT_KEY=sb_publishable_... python3 profile.py app [sign-in PROVIDER | sign-out]

Python's standard library alone. Ringback keeps the session; this program never sees a refresh token.
"""

import http.client
import json
import os
import socket
import struct
import sys
import urllib.parse
import urllib.request
import webbrowser


class Problem(Exception):
    """What the daemon said: `code` is for programs, the text for people."""

    def __init__(self, document):
        super().__init__(document.get("user_message") or document.get("detail") or document.get("title"))
        self.code = document.get("code")


class Connection(http.client.HTTPConnection):
    """HTTP over the daemon's Unix socket."""

    def __init__(self, timeout):
        super().__init__("ringback", timeout=timeout)

    def connect(self):
        path = os.environ.get("RINGBACK_SOCK") or os.environ["XDG_RUNTIME_DIR"] + "/ringback/ringback.sock"
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(path)
        # Nobody else's server is told anything.
        _, uid, _ = struct.unpack("3i", self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():
            raise PermissionError(f"{path} is served by somebody else (uid {uid})")


class Ringback:
    """One account of Ringback's."""

    def __init__(self, account):
        self.path = "/v1/accounts/" + urllib.parse.quote(account, safe="")
        self.account = account

    def call(self, method, path, body=None, timeout=60):
        connection = Connection(timeout)
        headers = {"Ringback-Application": "Profile example"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        document = json.load(answer)
        connection.close()
        if answer.status >= 400:
            raise Problem(document)
        return document

    def session(self):
        """The session with a fresh access token, and its user; None for nobody."""
        try:
            return self.call("GET", self.path + "/session?include=user")
        except Problem as problem:
            if problem.code in ("sign_in_required", "session_expired"):
                return None
            raise

    def sign_in(self, **fields):
        """Signs in; a page is opened in the browser where there is one."""
        started = self.call("POST", self.path + "/sign-in", fields)
        if "status" not in started:
            return self.session()
        if started["status"] == "pending":
            begin(started)
        while started["status"] == "pending":
            started = self.call("GET", f"/v1/flows/{started['id']}?wait=30")
        if started["status"] != "completed":
            raise Problem(started.get("error", {"title": "The sign-in was " + started["status"]}))
        return self.session()

    def sign_out(self):
        self.call("DELETE", self.path + "/session")

    def on_auth_state_change(self):
        """What happens, an event at a time: (name, data). The first says how things are. A daemon that goes is an
        error: an app that lives on asks again, and is told first how things are then."""
        connection = Connection(timeout=60)
        connection.request("GET", "/v1/events?account=" + urllib.parse.quote(self.account, safe=""))
        answer = connection.getresponse()
        if answer.status >= 400:
            raise Problem(json.load(answer))
        name = None
        for line in answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text[7:]
            elif text.startswith("data: "):
                yield name, json.loads(text[6:])
        raise ConnectionError("the daemon has ended the events")


def begin(flow):
    """Opens the page of a sign-in, or says where to go on. A program is started with `open_url` alone: all users of the
    machine can read its arguments, and that address works once."""
    if flow.get("words"):
        print("The page shows the words:", flow["words"], file=sys.stderr)
    if flow.get("waiting_for") in ("code", "email_confirmation"):
        print("A message was sent. Go on with it: ringback verify, or the link in it.", file=sys.stderr)
    elif "user_code" in flow:
        print("Open:", flow["verification_uri"], "and enter:", flow["user_code"], file=sys.stderr)
    elif "open_url" not in flow or not webbrowser.open(flow["open_url"]):
        # A page of Ringback itself has no other address.
        shown = flow.get("authorization_url") or flow.get("open_url")
        if not shown:
            raise Problem(flow.get("open_url_error", {"title": "The sign-in has no page to open."}))
        print("Open:", shown, file=sys.stderr)


def row(session):
    """The person's own row, by the project's REST endpoint."""
    url = f"{os.environ['PROJECT_URL']}/rest/v1/profiles?select=*&id=eq.{session['subject']}"
    request = urllib.request.Request(
        url, headers={"apikey": os.environ["PROJECT_KEY"], "Authorization": "Bearer " + session["access_token"]})
    with urllib.request.urlopen(request, timeout=20) as answer:
        rows = json.load(answer)
    return rows[0] if rows else None


def show(session):
    if session is None:
        print("nobody is signed in", flush=True)
        return
    user = session.get("user", {})
    print("signed in:", user.get("email") or session["subject"], flush=True)
    print("profile:", json.dumps(row(session), sort_keys=True), flush=True)


def main():
    app = Ringback(sys.argv[1])
    if "sign-out" in sys.argv[2:]:
        app.sign_out()
        return show(app.session())
    if "sign-in" in sys.argv[2:3]:
        return show(app.sign_in(oauth_provider=sys.argv[3]))
    for name, data in app.on_auth_state_change():
        print("event:", name, data["state"], flush=True)
        if name in ("initial_session", "signed_in", "user_updated"):
            show(app.session())
        elif name == "signed_out":
            return show(None)


if __name__ == "__main__":
    main()
