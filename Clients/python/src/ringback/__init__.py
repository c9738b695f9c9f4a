"""Sessions, sign-ins and events of Ringback, over its Unix socket."""

from .calls import NoDaemon, RingbackError
from .client import AsyncBroker, Broker
from .events import Event
from .models import Account, Flow, OriginCredential, Session, Status

__all__ = [
    "Account", "AsyncBroker", "Broker", "Event", "Flow", "NoDaemon", "OriginCredential", "RingbackError", "Session",
    "Status",
]
