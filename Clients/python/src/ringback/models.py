"""What the daemon answers, as the OpenAPI document describes it. Unknown members may be there too. Times are Unix seconds."""

from typing import Any, TypedDict


class Session(TypedDict, total=False):
    account: str
    subject: str
    access_token: str
    id_token: str
    token_type: str
    expires_at: int
    expires_in: int
    scope: str
    issuer: str
    user: dict[str, Any]
    aal: str
    next_aal: str
    provider_token: str
    lost_scope: str
    profile: dict[str, Any]
    profile_status: str
    migration: dict[str, str]


class Account(TypedDict, total=False):
    name: str
    provider: str
    state: str
    source: str
    notice: str
    lost_scope: str
    revocation: str
    default: bool
    stale: bool
    grant: str
    subject: str
    user: dict[str, Any]
    aal: str
    next_aal: str
    migration: dict[str, str]
    expires_at: int
    flow: dict[str, str]
    error: dict[str, Any]


class Flow(TypedDict, total=False):
    id: str
    account: str
    method: str
    status: str
    waiting_for: str
    authorization_url: str
    open_url: str
    open_url_error: dict[str, Any]
    open_urls: list[dict[str, Any]]
    challenge_id: str
    options: dict[str, Any]
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    redirect_uri: str
    expires_at: int
    resend_after: int
    awaiting: list[dict[str, Any]]
    error: dict[str, Any]
    user_message: str


class EventData(TypedDict, total=False):
    account: str
    state: str
    subject: str
    user: dict[str, Any]
    expires_at: int
    ends_at: int
    error: dict[str, Any]
    scheme: str
    reason: str
    seconds: int
    at: int


class OriginCredential(TypedDict, total=False):
    account: str
    headers: list[str]
    username: str
    secret: str
    expires_at: int
    warning: str


class Status(TypedDict, total=False):
    version: str
    build: str
    pid: int
    uptime: int
    vault: dict[str, Any]
    accounts: dict[str, int]
    listeners: list[str]
    confinement: dict[str, Any]
    sealed_sessions: list[dict[str, Any]]
    pending_revocations: int
    pending_revocations_by_account: dict[str, int]
    link_listeners: list[Any]
    warnings: list[Any]
