#!/usr/bin/env -S python3 -B
"""Runs the modules of the OpenID conformance suite for relying parties against ringbackd, offline.

The sandbox is the provider and tells the lie of each module; what the relying party did is seen from outside, as the
suite sees it, and closer: what is held afterwards, and what is said. A module that cannot run has failed.
"""

import json
import re
import traceback

from harness import Died, Refuted, Trouble, claims_of, expect, must, played, table, tcp_request, until, write
from house import ACCOUNT, House
from kinds import SCOPES, openid_account
from oidf_fapi import CLIENT, FAPI, FAPI_BEYOND, FAPI_SERVICE, NOT_PLAYED
from oidf_front import Front, Key, browse
from oidf_modules import BASIC, BEYOND, CONFIG, FORM_POST, MODULES, REFRESH
from operations import SESSION, opened, refresh

# The profiles, and how many modules each has in the suite's plans. FAPI 2 has three more, of Grant Management.
PLANS = {BASIC: 14, FORM_POST: 14, CONFIG: 6, REFRESH: 3, FAPI: 24, FAPI_SERVICE: 5, BEYOND: None, FAPI_BEYOND: None}
# Characters of a complaint: some quote the daemon.
LONGEST = 300
# RFC 9700 wants both unguessable. The state is 256 random bits as base64url. The nonce is the SHA-256 of 256 random bits
# in hexadecimal, because Supabase compares an ID token's nonce with such a digest of the value that it is sent.
STATE = re.compile(r"[A-Za-z0-9_-]{43}\Z")
NONCE = re.compile(r"[0-9a-f]{64}\Z")


class Outcome:
    """How a sign-in ended."""

    def __init__(self, status, flow, callback=None, page=""):
        self.status = status
        self.flow = flow
        self.callback = callback
        # Where the browser was sent.
        self.page = page
        self.is_completed = flow.get("status") == "completed"
        problem = flow.get("error", {}) if "id" in flow else flow
        self.code = problem.get("code", "")
        self.detail = problem.get("detail", "")

    def __str__(self):
        return str(self.flow.get("status", self.status)) + (f" {self.code}: {self.detail}" if self.code else "")


class Party(House):
    """A house without a shim, whose configuration a module may change."""

    def __init__(self, binaries):
        super().__init__(binaries, shimmed=False)
        self.fronts = []
        self.response_mode = "query"
        # True: tokens, client and requests are as the FAPI 2 Security Profile has them.
        self.is_strict = False
        # True: with nobody to sign in, as a service.
        self.is_service = False
        self.key, self.own_key = [Key(self.directory, curve) for curve in ["P-256", "Ed25519"]]
        self.reset()

    def reset(self):
        self.scopes = SCOPES
        self.client = ("ringback-demo", "")
        # More keys of the account.
        self.keys = {}
        # Where userinfo is.
        self.userinfo = self.sandbox.issuer + "/userinfo"

    def configure(self, more="", client=None):
        identity, secret = self.client
        keys = {"client_secret": secret} if secret else {}
        if self.response_mode != "query":
            keys["response_mode"] = self.response_mode
        if self.is_strict:
            identity = CLIENT
            keys = {"client_key_file": self.key.path, "client_key_id": "examiner", "dpop": "required"}
            keys |= {"grant": "client_credentials"} if self.is_service else {}
            more += f'[[origin]]\nurl = "{self.userinfo}"\naccount = "{ACCOUNT}"\n'
        write(self.configuration, openid_account(
            ACCOUNT, self.sandbox.issuer, self.scopes, client_id=identity, **keys | self.keys) + more)

    def begin(self, algorithm="", **switches):
        """A new daemon without a session, at a provider with new keys."""
        self.fresh()
        # What a complaint quotes is this daemon's own.
        open(self.log_path, "w").close()
        if self.is_strict:
            clients = [{"id": CLIENT, "jwks": self.key.published({"keys": []})}]
            switches = {"strict": True, "clients": clients} | switches
        algorithm = algorithm or ("PS256" if self.is_strict else "RS256")
        self.sandbox.control(algorithm=algorithm, rotate_keys=True, **switches)
        self.start()
        self.open_vault()

    def restart(self):
        super().restart()
        self.open_vault()

    def open_vault(self):
        status, document = opened(self)
        if status != 200:
            raise Trouble(f"the vault does not open: {document}")
        until("the account to be loaded", lambda: self.account()["state"] != "loading", 10)

    def front(self, *endpoints, **changes):
        """From now on the metadata names other places for these endpoints; the changes are by endpoint too."""
        front = Front(self.sandbox.issuer)
        front.changes = changes
        self.fronts.append(front)
        self.sandbox.control(endpoints={name: front.url(name) for name in [*endpoints, *changes]})
        if self.is_strict and "userinfo" in [*endpoints, *changes]:
            self.userinfo = front.url("userinfo")
            self.configure()
            must(self.api("POST", "/v1/reload", {}), "a reload")
        return front

    def lie(self, perturbation):
        """In the next answer, and in no other."""
        self.sandbox.control(perturb=[{"name": perturbation, "count": 1}])

    @property
    def untold(self):
        """The lies that are still to be told."""
        return sorted(self.sandbox.look("control")["perturbations"])

    def log(self, endpoint):
        return [entry for entry in self.sandbox.look("log")["requests"] if entry["endpoint"] == endpoint]

    def count(self, endpoint):
        return self.sandbox.counters["requests"][endpoint]

    def attempt(self, meanwhile=lambda: None, **request):
        """A sign-in from its beginning to its end, whatever that is."""
        asked = {"method": "browser"} | request
        status, flow = self.api("POST", f"/v1/accounts/{ACCOUNT}/sign-in", asked)
        if "authorization_url" not in flow:
            return Outcome(status, flow)
        callback = browse(flow["authorization_url"])
        meanwhile()
        arrived, page = callback.deliver()
        expect(arrived == 303, f"the browser got {arrived}, not a way to a page")
        status, flow = self.api("GET", f"/v1/flows/{flow['id']}?wait=20")
        return Outcome(status, flow, callback, page)

    def session(self, query=""):
        return self.api("GET", SESSION + query)

    def refresh(self):
        return refresh(self)

    def token(self):
        status, document = self.session()
        expect(status == 200, f"there is no token: {status} {document.get('code')}")
        return document["access_token"]

    def identity(self):
        """The claims of the ID token that is handed out; None if there is none."""
        status, document = self.session("?include=id_token")
        if status != 200 or "id_token" not in document:
            return None
        return claims_of(document["id_token"])

    def end(self):
        self.kill()
        for front in self.fronts:
            front.close()
        self.fronts = []
        self.reset()

    def accepts(self, **request):
        """The sign-in completes, and the userinfo was read with the new token. Returns the outcome."""
        if self.is_service:
            return expect(self.honours(self.token(), CLIENT), "the token is not honoured")
        before = self.count("userinfo")
        outcome = self.attempt(**request)
        expect(outcome.is_completed, f"the sign-in ended as {outcome}")
        expect(outcome.page.startswith("/done/"), f"the browser was sent to {outcome.page}")
        expect(self.account()["state"] == "authenticated", f"the account is {self.account()['state']}")
        self.check_requests(outcome)
        read = self.log("userinfo")
        expect(self.count("userinfo") > before, "the userinfo was not asked for")
        expect(read[-1]["status"] == 200, f"the userinfo answered {read[-1]['status']}")
        token = self.token()
        kind = "DPoP " if self.is_strict else "Bearer "
        expect(read[-1]["headers"].get("authorization") == kind + token, "the userinfo saw another token")
        expect(not read[-1]["parameters"], "the userinfo request has parameters")
        expect(self.honours(token), "the token is not honoured")
        return outcome

    def honours(self, token, user="alice"):
        """Whether userinfo takes the access token for this user's; where tokens are bound, with a proof alone."""
        unproven = self.sandbox.subject(token)
        if not self.is_strict:
            return unproven == user
        expect(unproven is None, "the provider takes the token without a proof")
        nonce = {}
        for _ in range(2):
            fields = must(self.api("POST", f"/v1/accounts/{ACCOUNT}/proof", {
                "method": "GET", "url": self.userinfo} | nonce), "the proof")
            expect(fields["access_token"] == token, "the proof is for another token")
            headers = {"Authorization": fields["authorization"], "DPoP": fields["dpop"]}
            status, answer, body, _ = tcp_request(self.userinfo, headers=headers)
            if status == 200:
                return json.loads(body)["sub"] == user
            nonce = {"nonce": answer.get("DPoP-Nonce", "")}
        return False

    def check_requests(self, outcome):
        """What the suite looks for in the requests themselves."""
        asked = self.log("authorize")[-1]["parameters"]
        exchanged = self.log("token")[-1]["parameters"]
        if self.is_strict:
            expect(set(asked) == {"client_id", "request_uri"}, f"the authorization request has {', '.join(asked)}")
            asked = self.log("par")[-1]["parameters"]
            expect(asked["redirect_uri"] == outcome.callback.url.partition("?")[0], "another redirect URI was pushed")
            sent = [each["parameters"] for name in ["par", "token"] for each in self.log(name)]
            assertions = [each["client_assertion"] for each in sent]
            expect(len(set(assertions)) == len(assertions), "an assertion was sent twice")
        expect(asked["response_type"] == "code", "the response type is not code")
        expect(NONCE.match(asked.get("nonce", "")), f"the nonce is {asked.get('nonce')!r}")
        expect(STATE.match(asked.get("state", "")), f"the state is {asked.get('state')!r}")
        expect(asked["nonce"] != asked["state"], "nonce and state are one")
        expect(asked.get("code_challenge_method") == "S256", "no PKCE by S256")
        expect("openid" in asked["scope"].split(), "the scope has no openid")
        expect(exchanged["redirect_uri"] == asked["redirect_uri"], "the token request has another redirect URI")
        expect(exchanged["code"] == outcome.callback.parameters["code"], "the token request has another code")
        self.check_mode(asked, outcome)

    def check_mode(self, asked, outcome):
        expect(asked.get("response_mode", "query") == self.response_mode, "another response mode was asked for")
        method = "POST" if self.response_mode == "form_post" else "GET"
        expect(outcome.callback.method == method, f"the answer came by {outcome.callback.method}")
        expect(method == "GET" or "code=" not in outcome.callback.url, "the code is in an address")

    def refuses(self, part, code="invalid_provider_response", may_read=False, **request):
        """The sign-in fails for this part of the answer; nothing is held, now and after a restart."""
        before = self.count("userinfo")
        outcome = self.attempt(**request)
        expect(not self.untold, f"the provider did not get to say {', '.join(self.untold)}")
        expect(not outcome.is_completed, "the sign-in completed")
        expect(outcome.code == code, f"the sign-in ended as {outcome}")
        expect(part in outcome.detail, f"refused for something else: {outcome.detail}")
        expect(outcome.page.startswith("/failed/"), f"the browser was sent to {outcome.page}")
        expect(may_read or self.count("userinfo") == before, "the userinfo was asked for")
        self.holds_nothing()
        self.restart()
        self.holds_nothing()
        return outcome

    def holds_nothing(self):
        account = self.account()
        expect(account["state"] == "unauthenticated", f"the account is {account['state']}")
        expect("user" not in account and "subject" not in account, "the account knows a user")
        for query in ["", "?include=id_token", "?kind=id_token"]:
            status, document = self.session(query)
            expect((status, document.get("code")) == (401, "sign_in_required"), f"session{query} answered {status}")
            expect("access_token" not in document and "id_token" not in document, "a token is handed out")

    def ignores(self, perturbation, code="", part=""):
        """The authorization response is not used, and the flow goes on waiting for a genuine one."""
        flow, exchanged = self.new_flow(), self.count("token")
        self.lie(perturbation)
        callback = browse(flow["authorization_url"])
        expect(not self.untold, f"the provider did not get to say {', '.join(self.untold)}")
        _, page = callback.deliver()
        expect("/done/" not in page, f"the browser was sent to {page}")
        _, flow = self.api("GET", f"/v1/flows/{flow['id']}")
        problem = flow.get("error", {})
        expect(flow["status"] == "pending" and problem.get("code", "") == code and part in problem.get("detail", ""),
               f"the flow is {flow['status']}: {problem}")
        expect(self.count("token") == exchanged, "the code was exchanged")
        expect(self.session()[0] == 401, "there is a session")
        self.api("DELETE", f"/v1/flows/{flow['id']}")
        self.accepts()

    def refuses_lie(self, perturbation, part, **more):
        """Refused for the lie, and for nothing but the lie: the next sign-in, an honest one, completes."""
        self.lie(perturbation)
        self.refuses(part, **more)
        self.accepts()


def attempt(party, plan, module):
    """Why the module failed; nothing if it passed."""
    party.response_mode = "form_post" if plan == FORM_POST else "query"
    party.is_strict = plan in (FAPI, FAPI_SERVICE, FAPI_BEYOND)
    party.is_service = plan == FAPI_SERVICE
    try:
        module.function(party)
        return ""
    except (Refuted, Trouble, Died) as reason:
        return str(reason)
    except (OSError, LookupError, ValueError, TypeError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} {error} at {place.name}:{place.lineno}"
    finally:
        party.end()


def is_refuted(check, *arguments):
    try:
        check(*arguments)
    except Refuted:
        return True
    return False


def examiner_sees(party):
    """Who cannot see the difference sees nothing: where the provider lies nothing is accepted, where it does not lie
    nothing is refused, and a session that is held is not nothing."""
    try:
        party.begin()
        party.lie("id_token_wrong_issuer")
        sees_refusal = is_refuted(party.accepts)
        sees_belief = is_refuted(party.refuses, "(iss)")
        return sees_refusal and sees_belief and is_refuted(party.holds_nothing)
    finally:
        party.end()


def honest(party):
    """Why a sign-in at a provider that does not lie does not pass; nothing if it does."""
    try:
        party.begin()
        party.accepts()
        return ""
    except Refuted as reason:
        return str(reason)
    finally:
        party.end()


@played(only=("", "only modules with this in their names"), plan=("", "only this profile: " + ", ".join(PLANS)))
def campaign(chosen, report, places):
    party = places.add(Party(chosen.bin), chosen.keep)
    rows = []
    for is_strict in [False, True]:
        party.is_strict = is_strict
        # An honest provider first: if that is refused, every module would be, and for no reason of its own.
        complaint = honest(party)
        if complaint:
            raise Trouble(f"an honest provider: {complaint}: no module was run")
        if not examiner_sees(party):
            raise Trouble("the examiner does not see belief and refusal apart: no module was run")
    for plan, size in PLANS.items():
        modules = [module for module in MODULES if plan in module.plans]
        if size is not None and len(modules) != size:
            report.note(False, plan, f"has {len(modules)} modules here, and {size} in the suite")
        for module in modules:
            if chosen.only not in module.name or chosen.plan not in ("", plan):
                continue
            # What a module asks for is the same when the answer comes as a form: one shows that it does.
            if chosen.short and plan == FORM_POST and module is not modules[0]:
                continue
            why = attempt(party, plan, module)
            report.note(not why, f"{plan}: {module.name}", f"{why[:LONGEST]} ({module.text})")
            rows.append([module.name, plan, "failed" if why else "passed"])
    table("OpenID relying party", ["module", "profile", "result"], rows)
    table("Not played", ["module", "why"], NOT_PLAYED)
