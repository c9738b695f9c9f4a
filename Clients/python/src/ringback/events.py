"""Server-sent events (WHATWG HTML, section 9.2)."""

import json
from dataclasses import dataclass
from typing import cast

from .models import EventData

#: The names of the events that the daemon sends now; a later version may send others.
EVENT_NAMES = frozenset({
    "initial_session", "signed_in", "token_refreshed", "user_updated", "signed_out", "password_recovery",
    "mfa_challenge_verified", "sign_in_failed", "callback_refused", "refresh_failed", "session_ending", "deep_link",
    "listener_replaced", "database_away", "database_returned", "account_used", "consent_requested", "consent_decided",
    "dropped",
})


@dataclass(frozen=True)
class Event:
    """An event of the daemon, with a name of `EVENT_NAMES` or one of a later version. `data` never has a token."""

    name: str
    data: EventData
    id: str | None = None


class EventParser:
    """Takes the stream as it comes, cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._name, self._id = "message", None  # type: str, str | None
        self._data: list[str] = []

    def feed(self, content: bytes) -> list[Event]:
        *lines, self._rest = (self._rest + content).split(b"\n")
        found = []
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if text:
                self._take(text)
            elif self._data:
                found.append(self._event())
        return [event for event in found if event is not None]

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value

    def _event(self) -> Event | None:
        name, text, identifier = self._name, "\n".join(self._data), self._id
        self._name, self._id, self._data = "message", None, []
        try:
            data = json.loads(text)
        except ValueError:
            return None
        return Event(name, cast(EventData, data), identifier) if isinstance(data, dict) else None
