"""Sessions, sign-ins and events of Ringback, over its Unix socket."""

from .calls import NoDaemon, RingbackError
from .client import AsyncBroker, Broker
from .events import EVENT_NAMES, Event
from .models import (
    Account, Audit, CallbackResult, Challenge, ChangedUser, Consent, Enrolment, EventData, Flow, Link, Method,
    OriginCredential, Passkey, PasskeyChallenge, Peer, Problem, RequestProof, Session, SignedOut, Status,
)

__all__ = [
    "Account", "AsyncBroker", "Audit", "Broker", "CallbackResult", "Challenge", "ChangedUser", "Consent", "EVENT_NAMES",
    "Enrolment", "Event", "EventData", "Flow", "Link", "Method", "NoDaemon", "OriginCredential", "Passkey",
    "PasskeyChallenge", "Peer", "Problem", "RequestProof", "RingbackError", "Session", "SignedOut", "Status",
]
