"""What both clients can do. The functions of `route` and `stream` have no code: their parameters and the line above say
which request they are. The tests compare each with the OpenAPI document."""
# mypy: disable-error-code="empty-body"

import functools
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Unpack

from .calls import Call, NoDaemon, RingbackError
from .events import Event
from .models import (
    Account, Acknowledgement, Audit, CallbackResult, Challenge, ChangedUser, Channel, Consent, Enrolment, Flow, Link,
    LinkMembers, Method, OriginCredential, Passkey, PasskeyChallenge, Peer, RemovedPasskey, RequestProof, RevokedConsent, Sent, Session,
    SignedOut, SignInMembers, Status, UserChanges,
)
from .twins import Steps, route, steps, stream

ACCOUNT = "/v1/accounts/{account}"
Open = bool | Callable[[str], object]
Show = Callable[[str], object]
# How many seconds a browser has to open a page before the address is shown as well.
PATIENCE = 5


def on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _as_it_is(event: Event) -> Event:
    return event


def _as_link(event: Event) -> Link | None:
    data: Any = event.data
    return data if event.name == "deep_link" else None


def _ended(flow: Flow) -> Flow:
    """The flow, unless it has ended without a session: then RingbackError."""
    if flow["status"] in ("pending", "completed"):
        return flow
    problem: Any = flow.get("error") or {
        "code": f"flow_{flow['status']}", "title": f"The sign-in is {flow['status']}.", "recovery": "sign_in"}
    raise RingbackError(int(problem.get("status", 410)), problem)


def _ended_by_callback(result: CallbackResult) -> None:
    if "flow" in result:
        _ended(result["flow"])


class Operations:
    """The methods of `Broker` and `AsyncBroker`."""

    # --- The daemon and its accounts

    @route("GET /v1/status")
    def status(self) -> Status:
        """What the daemon says of itself."""

    @route("GET /v1/peer")
    def peer(self) -> Peer:
        """What the daemon knows about this program."""

    @route("GET /v1/accounts", take="accounts")
    def accounts(self) -> list[Account]:
        """The accounts, by name."""

    @route(f"GET {ACCOUNT}")
    def account(self, account: str) -> Account:
        """One account with its state."""

    @route("GET /v1/audit")
    def audit(self, *, since: str | int | None = None, account: str | None = None, limit: int | None = None) -> Audit:
        """The newest entries of the audit log, oldest first."""

    # --- Tokens

    @steps
    def session(self, account: str | None = None, *, issuer: str | None = None, min_valid: int | None = None,
                timeout: int | None = None, scope: str | None = None, audience: str | None = None,
                resource: str | None = None, kind: Literal["access_token", "id_token"] | None = None,
                subject: str | None = None, include: str | Sequence[str] | None = None,
                sign_in: Literal["wait"] | None = None, consent: Literal["never"] | None = None) -> Steps[Session]:
        """The token of an account's session, refreshed where needed: of the default or only account, of a named one, or
        of the one at `issuer`. Times are seconds. `include`: any of id_token, provider_token, user and profile. The profile
        is the user's row at a Supabase project, of an account that has the key `profile`. `consent="never"`: if the user had
        to be asked, RingbackError `consent_required` at once."""
        rest: Any = {"min_valid": min_valid, "timeout": timeout, "scope": scope, "audience": audience,
                     "resource": resource, "kind": kind, "subject": subject, "include": include, "sign_in": sign_in,
                     "consent": consent}
        if account is None and issuer is not None:
            found: Session = yield Operations._session_at.call(issuer, **rest)
            return found
        if account is None:
            accounts: list[Account] = yield Operations.accounts.call()
            account = _default(accounts)
        found = yield Operations._session.call(account, **rest)
        return found

    @route(f"GET {ACCOUNT}/session")
    def _session(self, account: str, *, min_valid: int | None = None, timeout: int | None = None,
                 scope: str | None = None, audience: str | None = None, resource: str | None = None,
                 kind: str | None = None, subject: str | None = None, include: str | Sequence[str] | None = None,
                 sign_in: str | None = None, consent: Literal["never"] | None = None) -> Session: ...

    @route("GET /v1/session")
    def _session_at(self, issuer: str, *, min_valid: int | None = None, timeout: int | None = None,
                    scope: str | None = None, audience: str | None = None, resource: str | None = None,
                    kind: str | None = None, subject: str | None = None, include: str | Sequence[str] | None = None,
                    sign_in: str | None = None, consent: Literal["never"] | None = None) -> Session: ...

    @steps
    def token(self, account: str | None = None, *, min_valid: int | None = None) -> Steps[str]:
        """The access token alone. RingbackError `state_conflict` for one that is bound to a key: see `proof`."""
        found = yield from Operations.session.function(self, account, min_valid=min_valid)
        if found["token_type"].lower() == "dpop":
            raise RingbackError(409, {
                "code": "state_conflict", "cause": "token_bound", "account": found["account"],
                "detail": f"The access token of {found['account']} is bound to a key (DPoP): each request needs a proof."})
        return str(found["access_token"])

    @route(f"POST {ACCOUNT}/proof")
    def proof(self, account: str, method: str, url: str, *, nonce: str | None = None, rejected: str | None = None,
              consent: Literal["never"] | None = None) -> RequestProof:
        """The fields `Authorization` and `DPoP` (RFC 9449) of one request to a server of the account: its MCP server, or one
        of the configuration's table of origins. `nonce`: the server's last `DPoP-Nonce`. `rejected`: the token that the server
        refused, which is refreshed first. A token that is bound to no key has no `dpop`."""

    @route(f"POST {ACCOUNT}/refresh")
    def refresh(self, account: str, *, rejected: str | None = None, force: bool | None = None) -> Account:
        """`rejected`: the token that a server refused. No request if the daemon has another one by now."""

    @route("POST /v1/lookup")
    def lookup(self, url: str, *, username: str | None = None, rejected: str | None = None,
               rejected_is_guess: bool | None = None, without_scheme: bool | None = None, ca_sha256: str | None = None,
               tls_server_name: str | None = None, insecure_skip_tls_verify: bool | None = None,
               proxy_url: str | None = None, interactive: bool | None = None, method: str | None = None,
               nonce: str | None = None, without_token: bool | None = None,
               consent: Literal["never"] | None = None) -> OriginCredential:
        """What a tool sends to a server, by the configuration's table of origins."""

    # --- Signing in and out

    @steps
    def sign_in(self, account: str, method: Method = "browser", *, open: Open = True, show: Show = on_stderr,
                **members: Unpack[SignInMembers]) -> Steps[Flow]:
        """Signs in. Raises RingbackError if that fails.

        A sign-in in the browser or on another device is waited for: `open` opens its page (True: the account's browser,
        which the daemon starts, or else the default one; or a function that gets the address), and `show` gets what the user has to read, line by line. If the wait is
        interrupted, the sign-in is cancelled. With `open=False` nothing is opened, shown or waited for.

        A sign-in that waits for a code or a mail is returned as it is, with the status `pending`: go on with `verify`, or
        with `wait` until the link in the mail was opened. Where nothing is waited for, the status is `completed`.
        """
        begun: Any = yield Operations._begin.call(account, method=method, **members)
        if "status" not in begun:
            return Flow(account=begun["name"], method=method, status="completed")
        return (yield from _bring_on(begun, open, show))

    @route(f"POST {ACCOUNT}/sign-in")
    def _begin(self, account: str, *, method: Method, **members: Unpack[SignInMembers]) -> Flow: ...

    @steps
    def wait(self, flow: Flow | str) -> Steps[Flow]:
        """Waits until a sign-in has ended. Raises RingbackError if it has no session."""
        return _ended((yield from _waited(flow)))

    @route("GET /v1/flows", take="flows")
    def flows(self) -> list[Flow]:
        """The sign-ins that are pending, and those that ended in the last ten minutes."""

    @route("GET /v1/flows/{flow}")
    def flow(self, flow: Flow | str, *, wait: int | None = None) -> Flow:
        """A flow, once it has left `pending` or `wait` seconds are over."""

    @route("POST /v1/flows/{flow}/verify", check=_ended)
    def verify(self, flow: Flow | str, code: str | None = None, *, token_hash: str | None = None,
               email: str | None = None, phone: str | None = None, credential: Mapping[str, Any] | None = None,
               type: Literal["email_change", "phone_change"] | None = None) -> Flow:
        """Gives a flow the code that it waits for. A wrong one is a RingbackError, and may be followed by another. So is
        a sign-in that fails by it, as one of another user than the account's: then the flow has ended."""

    @route("POST /v1/flows/{flow}/resend", check=_ended)
    def resend(self, flow: Flow | str, *, captcha_token: str | None = None) -> Flow:
        """Sends the message with the code again; not before `resend_after` of the flow."""

    @route("POST /v1/flows/{flow}/open")
    def open_page(self, flow: Flow | str, *, activation_token: str | None = None) -> Flow:
        """Lets the daemon open the page of a pending flow in the account's browser."""

    @route("DELETE /v1/flows/{flow}")
    def cancel(self, flow: Flow | str, *, all: bool | None = None) -> Flow:
        """Takes back one sign-in call; the flow is cancelled when none is left. `all`: for every caller."""

    @route("POST /v1/callbacks", check=_ended_by_callback)
    def complete(self, url: str, *, notify: bool | None = None) -> CallbackResult:
        """Passes on the address of a callback, or a link, that came by another way than the daemon's own. RingbackError if
        the sign-in fails by it."""

    @route(f"DELETE {ACCOUNT}/session")
    def sign_out(self, account: str, *, scope: Literal["local", "global", "others"] | None = None,
                 forget: bool | None = None, end_session: Literal["true", "plain"] | None = None) -> SignedOut:
        """Signs out, at the provider too. It is no error if nobody is signed in."""

    # --- Events and links

    @stream("GET /v1/events", _as_it_is)
    def events(self, account: str | None = None, *, telemetry: bool | None = None) -> Event:
        """The state of each account, then each change, until the daemon ends the stream. `telemetry`: steps of sign-ins
        for an app's own statistics instead."""

    @stream("GET /v1/deep-links", _as_link)
    def links(self, scheme: str) -> Link:
        """The links of an app's own scheme, until another program listens for it. A link comes again to the next
        listener until it is acknowledged."""

    @route("POST /v1/deep-links/{id}/ack")
    def acknowledge(self, id: Link | str) -> Acknowledgement:
        """The app has taken the link over."""

    # --- The user of a Supabase project

    @route(f"GET {ACCOUNT}/user", take="user")
    def user(self, account: str) -> dict[str, Any]:
        """The user, as the project says now."""

    @route(f"PATCH {ACCOUNT}/user")
    def update_user(self, account: str, **changes: Unpack[UserChanges]) -> ChangedUser:
        """Changes the user. A new address or number waits for its codes in the answer's `flow`: see `verify`."""

    @route(f"POST {ACCOUNT}/password-reset")
    def reset_password(self, account: str, *, email: str, captcha_token: str | None = None,
                       replace: bool | None = None) -> Flow:
        """Sends the mail to a user who forgot the password. After `verify`, set another one by `update_user`."""

    @route(f"POST {ACCOUNT}/reauthenticate")
    def reauthenticate(self, account: str) -> Sent:
        """Sends the code that a change of the password may need, as its `nonce`."""

    @route(f"POST {ACCOUNT}/rpc/{{function}}", take="result", body="arguments")
    def rpc(self, account: str, function: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Calls a function of the project's database that the configuration lists."""

    @route(f"POST {ACCOUNT}/functions/{{function}}", take="result", body="arguments")
    def invoke(self, account: str, function: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Calls an Edge Function of the project that the configuration lists. Its response is JSON, or None."""

    @route(f"GET {ACCOUNT}/identities", take="identities")
    def identities(self, account: str) -> list[dict[str, Any]]:
        """The user's identities at providers."""

    @steps
    def link(self, account: str, *, open: Open = True, show: Show = on_stderr,
             **members: Unpack[LinkMembers]) -> Steps[Flow]:
        """Links an identity, in the browser or by an ID token. `open` and `show` are those of `sign_in`."""
        begun: Any = yield Operations._link.call(account, **members)
        if "status" not in begun:
            return Flow(account=begun["name"], method="link", status="completed")
        return (yield from _bring_on(begun, open, show))

    @route(f"POST {ACCOUNT}/identities")
    def _link(self, account: str, **members: Unpack[LinkMembers]) -> Flow: ...

    @route(f"DELETE {ACCOUNT}/identities/{{id}}", take="identities")
    def unlink(self, account: str, id: str) -> list[dict[str, Any]]:
        """Unlinks an identity; the other ones are returned."""

    @route(f"GET {ACCOUNT}/oauth-consents", take="consents")
    def consents(self, account: str) -> list[Consent]:
        """The OAuth clients that the user has allowed at the project."""

    @route(f"DELETE {ACCOUNT}/oauth-consents/{{id}}")
    def revoke_consent(self, account: str, id: str) -> RevokedConsent:
        """Revokes the consent for a client, by its `client_id`."""

    @route(f"GET {ACCOUNT}/factors", take="factors")
    def factors(self, account: str) -> list[dict[str, Any]]:
        """The second factors."""

    @route(f"POST {ACCOUNT}/factors")
    def enroll_factor(self, account: str, *, factor_type: Literal["totp", "phone", "webauthn"] | None = None,
                      friendly_name: str | None = None, issuer: str | None = None, phone: str | None = None) -> Enrolment:
        """Adds a second factor, which is active once it is verified. Without a type: an authenticator app."""

    @route(f"POST {ACCOUNT}/factors/{{id}}/challenge")
    def challenge_factor(self, account: str, id: str | Enrolment, *, channel: Channel | None = None,
                         rp_id: str | None = None, rp_origins: Sequence[str] | None = None) -> Challenge:
        """Requests a challenge: a phone gets its code, a security key its options."""

    @route(f"POST {ACCOUNT}/factors/{{id}}/verify")
    def verify_factor(self, account: str, id: str | Enrolment, code: str | None = None, *,
                      challenge_id: str | None = None, credential: Mapping[str, Any] | None = None,
                      rp_id: str | None = None, rp_origins: Sequence[str] | None = None) -> Account:
        """Verifies a factor by its code, or by what a security key has made."""

    @route(f"DELETE {ACCOUNT}/factors/{{id}}")
    def remove_factor(self, account: str, id: str | Enrolment) -> Account:
        """Removes a second factor."""

    @route(f"GET {ACCOUNT}/passkeys", take="passkeys")
    def passkeys(self, account: str) -> list[Passkey]:
        """The passkeys."""

    @route(f"POST {ACCOUNT}/passkey-options")
    def passkey_options(self, account: str) -> PasskeyChallenge:
        """What an authenticator needs for a new passkey."""

    @route(f"POST {ACCOUNT}/passkeys")
    def register_passkey(self, account: str, *, challenge_id: str, credential: Mapping[str, Any]) -> Passkey:
        """Adds the passkey that an authenticator has made."""

    @route(f"PATCH {ACCOUNT}/passkeys/{{id}}")
    def rename_passkey(self, account: str, id: str | Passkey, friendly_name: str) -> Passkey:
        """Gives a passkey another name."""

    @route(f"DELETE {ACCOUNT}/passkeys/{{id}}")
    def remove_passkey(self, account: str, id: str | Passkey) -> RemovedPasskey:
        """Removes a passkey."""

    @route(f"POST {ACCOUNT}/migration")
    def migrate(self, account: str, from_: str) -> Account:
        """Stores the app's former identifier of this user."""

    @route(f"DELETE {ACCOUNT}/migration")
    def finish_migration(self, account: str) -> Account:
        """Says that the app has moved the user's data."""

    # --- Everything else

    @steps
    def request(self, method: str, path: str, *, query: Mapping[str, Any] | None = None,
                body: Mapping[str, Any] | None = None, waits: float = 60) -> Steps[Any]:
        """A request of docs/api.md that has no method here, such as `request("POST", "/v1/reload")`: its JSON, or its text.
        `waits`: how long the daemon may take, in seconds."""
        return (yield Call(method, path, query or {}, body, waits=waits))


def _default(accounts: list[Account]) -> str:
    """The account that is meant where none is named: the default one, or the only one."""
    chosen = [each["name"] for each in accounts if each.get("default")] or [each["name"] for each in accounts]
    if len(chosen) == 1:
        return chosen[0]
    raise ValueError(f"which account: {', '.join(chosen) or 'there is none'}")


def _waited(flow: Flow | str) -> Steps[Flow]:
    while True:
        found: Flow = yield Operations.flow.call(flow, wait=60)
        if found["status"] != "pending":
            return found


def _bring_on(flow: Flow, open: Open, show: Show) -> Steps[Flow]:
    """Opens what a flow needs opened, and waits for its end. One that needs a code or a mail is left as it is."""
    if flow["status"] != "pending":
        return _ended(flow)
    if open is False or flow.get("waiting_for") not in ("callback", "page", "device"):
        return flow
    try:
        if "words" in flow:
            show(f"The page shows the words: {flow['words']}")
        if "user_code" in flow:
            show(f"Open: {flow['verification_uri']} and enter: {flow['user_code']}")
        elif (yield from _opened(flow, open, show)):
            yield from _watched(flow, show)
        found = yield from _waited(flow)
    except GeneratorExit:
        raise
    except BaseException:
        with suppress(RingbackError, NoDaemon):
            yield Operations.cancel.call(flow)
        raise
    return _ended(found)


def _watched(flow: Flow, show: Show) -> Steps[None]:
    """Shows the address if the browser has not asked for it in time. One without a display ends after it was started."""
    found: Flow = yield Operations.flow.call(flow, wait=PATIENCE)
    addresses = found.get("open_urls", [])
    if found["status"] == "pending" and addresses and all(each["status"] == "unused" for each in addresses):
        show(f"The page has not been opened yet. Open: {flow.get('authorization_url') or flow['open_url']}")


def _opened(flow: Flow, open: Open, show: Show) -> Steps[bool]:
    """True if a program was started. It gets `open_url` alone: every user of the machine can read its arguments, and that
    address works once. The other one is to be shown. A page of Ringback itself has no other address."""
    if "open_url" in flow and (yield from _started(flow, open)):
        return True
    shown = flow.get("authorization_url") or flow.get("open_url")
    if shown is None:
        problem: Any = flow.get("open_url_error") or {"code": "method_unsupported", "title": "There is no page to open."}
        raise RingbackError(int(problem.get("status", 409)), problem)
    show(f"Open: {shown}")
    return False


def _started(flow: Flow, open: Open) -> Steps[bool]:
    """False if no browser was started. An account's own browser, which the daemon starts, is not replaced by another one,
    where another user may be signed in."""
    if callable(open):
        return (yield functools.partial(open, flow["open_url"])) is not False
    account: Account | None = None
    # A program may be allowed to sign in and not to see accounts.
    with suppress(RingbackError):
        account = yield Operations.account.call(flow["account"])
    if account is None or "browser" not in account:
        return bool((yield functools.partial(webbrowser.open, flow["open_url"])))
    with suppress(RingbackError):
        yield Operations.open_page.call(flow)
        return True
    return False
