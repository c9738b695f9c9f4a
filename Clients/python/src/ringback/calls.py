"""The calls of the API as values: what is sent, and what its answer means. Nothing here reads or writes a socket."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

from .models import Account, Flow, OriginCredential, Session, Status

Result = TypeVar("Result")


class RingbackError(Exception):
    """An error that the daemon has answered: an RFC 9457 problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]):
        self.status = status
        self.problem = dict(problem)
        self.code: str = str(problem.get("code", "internal_error"))
        self.recovery: str = str(problem.get("recovery", "none"))
        self.user_message: str | None = problem.get("user_message")
        super().__init__(str(problem.get("detail") or problem.get("title") or f"HTTP {status}"))


class NoDaemon(Exception):
    """No daemon answers at the socket, or its answer broke off."""


@dataclass(frozen=True)
class Call(Generic[Result]):
    """A request. `path` has names in braces, as the OpenAPI document has them; `names` has their values."""

    method: str
    path: str
    read: Callable[[Any], Result]
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    # How long the daemon may wait before it answers, in seconds.
    waits: float = 30

    @property
    def target(self) -> str:
        path = self.path.format(**{name: quote(value, safe="") for name, value in self.names.items()})
        query = urlencode({name: _text(value) for name, value in self.query.items() if value is not None})
        return f"{path}?{query}" if query else path

    def request(self, application: str | None, accept: str = "application/json") -> bytes:
        """The bytes of an HTTP/1.1 request."""
        lines = [f"{self.method} {self.target} HTTP/1.1", "Host: ringback", f"Accept: {accept}", "Connection: close"]
        if application is not None:
            if any(ord(each) < 0x20 or ord(each) > 0x7E for each in application):
                raise ValueError("application is printable ASCII")
            lines.append(f"Ringback-Application: {application}")
        content = b""
        if self.body is not None:
            content = json.dumps({name: value for name, value in self.body.items() if value is not None}).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        elif self.method not in ("GET", "DELETE"):
            lines.append("Content-Length: 0")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + content

    def result(self, status: int, content: bytes) -> Result:
        """What an answer means. Raises RingbackError for every status that is not a success."""
        try:
            answer = json.loads(content) if content else {}
        except ValueError as error:
            raise NoDaemon("the answer is not JSON: something else than Ringback is at the socket") from error
        if 200 <= status < 300:
            return self.read(answer)
        raise RingbackError(status, answer if isinstance(answer, dict) else {})


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def as_it_is(kind: type[Result]) -> Callable[[Any], Result]:
    return lambda answer: cast(Result, answer)


def socket_path(given: str | None) -> str:
    """`RINGBACK_SOCK`, else the place in `XDG_RUNTIME_DIR`; without the variable, the place of the user's login."""
    if path := given or os.environ.get("RINGBACK_SOCK"):
        return path
    directory = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    path = f"{directory}/ringback/ringback.sock"
    if os.environ.get("XDG_RUNTIME_DIR") or os.path.exists(path):
        return path
    raise NoDaemon("XDG_RUNTIME_DIR is not set, and neither is RINGBACK_SOCK")


def status() -> Call[Status]:
    return Call("GET", "/v1/status", as_it_is(Status))


def accounts() -> Call[list[Account]]:
    return Call("GET", "/v1/accounts", lambda answer: cast(list[Account], answer["accounts"]))


def account(name: str) -> Call[Account]:
    return Call("GET", "/v1/accounts/{account}", as_it_is(Account), {"account": name})


def session(name: str, min_valid: int | None, timeout: int | None, scope: str | None, audience: str | None,
            resource: str | None, kind: str | None, subject: str | None, include: str | None,
            sign_in: str | None) -> Call[Session]:
    query = {"min_valid": min_valid, "timeout": timeout, "scope": scope, "audience": audience, "resource": resource,
             "kind": kind, "subject": subject, "include": include, "sign_in": sign_in}
    waits = 3600 if sign_in else (timeout or 30)
    return Call("GET", "/v1/accounts/{account}/session", as_it_is(Session), {"account": name}, query, waits=waits)


def refresh(name: str, rejected: str | None, force: bool) -> Call[Account]:
    body: dict[str, Any] = {"force": True} if force else {}
    if rejected is not None:
        body["rejected_sha256"] = hashlib.sha256(rejected.encode()).hexdigest()
    return Call("POST", "/v1/accounts/{account}/refresh", as_it_is(Account), {"account": name}, body=body)


def sign_in(name: str, method: str, members: Mapping[str, Any]) -> Call[Flow]:
    return Call("POST", "/v1/accounts/{account}/sign-in", as_it_is(Flow), {"account": name},
                body={"method": method, **members}, waits=60)


def flow(identifier: str, wait: int) -> Call[Flow]:
    return Call("GET", "/v1/flows/{flow}", as_it_is(Flow), {"flow": identifier}, {"wait": wait}, waits=wait)


def cancel(identifier: str) -> Call[Flow]:
    return Call("DELETE", "/v1/flows/{flow}", as_it_is(Flow), {"flow": identifier})


def sign_out(name: str, scope: str | None) -> Call[Account]:
    return Call("DELETE", "/v1/accounts/{account}/session", as_it_is(Account), {"account": name}, {"scope": scope})


def lookup(url: str, username: str | None, rejected: str | None, interactive: bool,
           without_scheme: bool = False) -> Call[OriginCredential]:
    rejected_hash = hashlib.sha256(rejected.encode()).hexdigest() if rejected is not None else None
    body = {"url": url, "username": username, "rejected_sha256": rejected_hash, "interactive": interactive or None,
            "without_scheme": without_scheme or None}
    return Call("POST", "/v1/lookup", as_it_is(OriginCredential), body=body, waits=150 if interactive else 30)


def events(name: str | None) -> Call[None]:
    return Call("GET", "/v1/events", lambda answer: None, query={"account": name})
