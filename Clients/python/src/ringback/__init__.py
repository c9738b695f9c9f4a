"""Sessions, sign-ins and events of Ringback, over its Unix socket."""

from .calls import NoDaemon, RingbackError
from .client import AsyncBroker, Broker
from .events import EVENT_NAMES, Event
from .models import Account, EventData, Flow, OriginCredential, Session, Status

__all__ = [
    "Account", "AsyncBroker", "Broker", "EVENT_NAMES", "Event", "EventData", "Flow", "NoDaemon", "OriginCredential",
    "RingbackError", "Session", "Status",
]
