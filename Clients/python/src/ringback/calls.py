"""Requests of the API as values, and what an answer means. Nothing here reads or writes a socket."""

import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode


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
    """No daemon of this user answers at the socket, or its answer broke off."""


@dataclass(frozen=True)
class Call:
    """A request. A query's value None is not sent."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    # The member of the answer that is the result, in place of the whole answer.
    take: str | None = None
    # How long the daemon may wait before it answers, in seconds.
    waits: float = 60
    # Raises for a result that is an error.
    check: Callable[[Any], object] | None = None

    def request(self, application: str | None, accept: str = "*/*") -> bytes:
        """The bytes of an HTTP/1.1 request."""
        query = urlencode({name: _text(value) for name, value in self.query.items() if value is not None})
        target = f"{self.path}?{query}" if query else self.path
        lines = [f"{self.method} {target} HTTP/1.1", "Host: ringback", f"Accept: {accept}", "Connection: close"]
        if application is not None:
            lines.append(f"Ringback-Application: {application}")
        content = b""
        if self.body is not None:
            content = json.dumps(self.body).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        elif self.method not in ("GET", "DELETE"):
            lines.append("Content-Length: 0")
        if any(ord(each) < 0x20 or ord(each) > 0x7E for line in lines for each in line) or lines[0].count(" ") != 2:
            raise ValueError("method, path and application are printable ASCII, and the first two have no spaces")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + content

    def result(self, status: int, fields: Mapping[str, str], content: bytes) -> Any:
        """What an answer means. Raises RingbackError for every status that is not a success, and what `check` raises."""
        is_json = "json" in fields.get("content-type", "json")
        try:
            answer = json.loads(content or b"{}") if is_json else content.decode()
        except ValueError as error:
            raise NoDaemon("the answer is not JSON: something else than Ringback is at the socket") from error
        members: dict[str, Any] = answer if isinstance(answer, dict) else {}
        if not 200 <= status < 300:
            raise RingbackError(status, members)
        result = answer if self.take is None else members[self.take]
        if self.check is not None:
            self.check(result)
        return result


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset)) else str(value)


def socket_path(given: str | None) -> str:
    """`RINGBACK_SOCK`, else the place in `XDG_RUNTIME_DIR`; without the variable, the place of the user's login."""
    if path := given or os.environ.get("RINGBACK_SOCK"):
        return path
    directory = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    path = f"{directory}/ringback/ringback.sock"
    if os.environ.get("XDG_RUNTIME_DIR") or os.path.exists(path):
        return path
    raise NoDaemon("XDG_RUNTIME_DIR is not set, and neither is RINGBACK_SOCK")


def check_server(path: str, connection: Any) -> None:
    """Raises NoDaemon if another user serves a connected socket: nothing is sent to it.

    In a container that has the user under another number, `RINGBACK_SERVER_UID` says which uid is meant.
    """
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid != os.getuid() and str(uid) != os.environ.get("RINGBACK_SERVER_UID"):
        raise NoDaemon(f"the socket {path} is served by uid {uid}, which is not yours ({os.getuid()})")
