"""What the daemon answers and takes, as the OpenAPI document describes it. Unknown members may be there too. Times are
Unix seconds."""

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict

Channel = Literal["sms", "whatsapp"]
Method = Literal[
    "browser", "password", "sign_up", "otp", "magic_link", "id_token", "passkey", "anonymous", "sso", "page", "session",
    "device",
]


class Problem(TypedDict, total=False):
    title: Required[str]
    status: Required[int]
    code: Required[str]
    detail: str
    recovery: Required[str]
    user_message: str
    retry_after: int
    errors: list[dict[str, Any]]
    provider_code: str
    provider_message: str
    reasons: list[str]
    account: str
    host: str
    port: int
    setting: str
    registration: dict[str, Any]
    params: dict[str, str]
    file: str
    line: int
    credential: str
    cause: str
    path: str
    field: str
    method: str
    key_source: str
    other_key_source: str
    exposed_socket: str
    notified: bool


Migration = TypedDict("Migration", {"from": str, "to": str})


class Session(TypedDict, total=False):
    account: Required[str]
    subject: str
    access_token: str
    id_token: str
    token_type: Required[str]
    expires_at: int
    expires_in: int
    scope: str
    issuer: Required[str]
    user: dict[str, Any]
    aal: str
    next_aal: str
    provider_token: str
    profile: dict[str, Any]
    migration: Migration
    lost_scope: str
    profile_status: str


class Account(TypedDict, total=False):
    name: Required[str]
    provider: Required[str]
    state: Required[str]
    source: Required[str]
    provider_host: str
    notice: str
    lost_scope: str
    revocation: str
    default: bool
    browser: list[str]
    display_name: str
    interactive: str
    same_user_as: list[str]
    stale: bool
    grant: str
    through: str
    sign_in: bool
    subject: str
    user: dict[str, Any]
    aal: str
    next_aal: str
    migration: Migration
    expires_at: int
    ends_at: int
    refreshable: bool
    flow: dict[str, str]
    error: Problem


class StillValid(TypedDict, total=False):
    access_token: bool
    access_token_expires_at: int
    refresh_token: bool
    refresh_token_expires_at: int


class SignedOut(Account, total=False):
    had_session: bool
    revocation_pending: bool
    revocation_error: Problem
    still_valid: StillValid
    end_session_url: str
    end_session_open_url: str
    end_session_open_url_error: Problem
    end_session_error: Problem


class Flow(TypedDict, total=False):
    """A sign-in, or another step that waits for a person. Without `id`: it was complete at once, and waited for nothing."""

    id: str
    account: Required[str]
    method: Required[str]
    status: Required[str]
    waiting_for: str
    authorization_url: str
    open_url: str
    open_url_error: Problem
    open_urls: list[dict[str, Any]]
    words: str
    challenge_id: str
    options: dict[str, Any]
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    redirect_uri: str
    expires_at: int
    resend_after: int
    awaiting: list[dict[str, Any]]
    error: Problem
    user_message: str


class DiagnosticLink(TypedDict, total=False):
    id: Required[str]
    scheme: Required[str]
    url: Required[str]
    arrived: Required[bool]
    executable: str


class LinkArrival(TypedDict):
    id: str
    scheme: str
    heard: bool


class CallbackResult(TypedDict, total=False):
    flow: Flow
    deep_link: LinkArrival
    diagnostic_link: DiagnosticLink
    notified: bool


class OriginCredential(TypedDict, total=False):
    account: Required[str]
    headers: Required[list[str]]
    username: str
    secret: str
    expires_at: int
    warning: str


class RequestProof(TypedDict, total=False):
    account: Required[str]
    authorization: Required[str]
    dpop: str
    access_token: Required[str]
    token_type: Required[str]
    expires_at: int
    expires_in: int


class VaultDatabase(TypedDict, total=False):
    place: Required[str]
    reachable: Required[bool]
    problem: str
    away_seconds: int
    notifications: bool
    synchronous_standby: bool
    unsent: Required[int]


class Vault(TypedDict, total=False):
    kind: Required[str]
    locked: Required[bool]
    reason: str
    key_source: Required[str]
    protects: Required[str]
    needs_new_passphrase: bool
    other_key_source: str
    cause: str
    path: str
    database: VaultDatabase


class SealedSession(TypedDict, total=False):
    account: Required[str]
    provider: Required[str]
    client_id: Required[str]
    subject: str
    display_name: Required[str]
    signed_in_at: Required[int]
    signed_out: Required[bool]
    revocable: Required[bool]


class Status(TypedDict, total=False):
    version: Required[str]
    build: Required[str]
    pid: Required[int]
    uptime: Required[int]
    vault: Required[Vault]
    accounts: Required[dict[str, int]]
    listeners: Required[list[str]]
    confinement: Required[dict[str, Any]]
    link_listeners: Required[list[str]]
    warnings: Required[list[str]]
    file_warnings: Required[list[str]]
    pending_revocations: Required[int]
    pending_revocations_by_account: Required[dict[str, int]]
    sealed_sessions: list[SealedSession]


class Program(TypedDict, total=False):
    executable: str
    unit: str
    verified: Required[bool]
    changeable: Required[bool]
    text: Required[str]


class Peer(TypedDict, total=False):
    uid: Required[int]
    pid: Required[int]
    executable: str
    unit: str
    confidence: Required[str]
    operations: Required[list[str]]
    policy: Required[str]
    program: Required[Program]


class ChangedUser(TypedDict, total=False):
    user: Required[dict[str, Any]]
    flow: Flow


class Consent(TypedDict, total=False):
    client_id: Required[str]
    client_name: str
    client_uri: str
    scopes: Required[list[str]]
    granted_at: str


class RevokedConsent(TypedDict, total=False):
    account: Required[str]
    revoked: Required[str]


class Enrolment(TypedDict, total=False):
    id: Required[str]
    factor_type: Required[str]
    status: Required[str]
    friendly_name: str
    phone: str
    totp: dict[str, Any]


class WebAuthnChallenge(TypedDict, total=False):
    type: Required[str]
    options: Required[dict[str, Any]]


class Challenge(TypedDict, total=False):
    id: Required[str]
    factor: Required[str]
    expires_at: int
    webauthn: WebAuthnChallenge


class Sent(TypedDict, total=False):
    account: Required[str]
    sent: Required[bool]


class Passkey(TypedDict, total=False):
    id: Required[str]
    friendly_name: str
    created_at: str
    last_used_at: str


class PasskeyChallenge(TypedDict, total=False):
    challenge_id: Required[str]
    options: Required[dict[str, Any]]
    expires_at: int


class RemovedPasskey(TypedDict, total=False):
    account: Required[str]
    removed: Required[str]


class Acknowledgement(TypedDict, total=False):
    id: Required[str]
    acknowledged: Required[bool]


class Audit(TypedDict, total=False):
    entries: Required[list[dict[str, Any]]]
    truncated: Required[bool]


class Link(TypedDict, total=False):
    """A link of an app's own scheme. Anybody may have written it: trust nothing in it."""

    id: Required[str]
    scheme: Required[str]
    url: Required[str]
    at: Required[int]


class EventData(TypedDict, total=False):
    reason: str
    at: int
    seconds: int
    scheme: str
    account: str
    state: str
    subject: str
    user: dict[str, Any]
    expires_at: int
    error: Problem
    ends_at: int
    event: str
    method: str
    duration_ms: int
    error_type: str
    id: str
    scope: str
    program: Program
    operation: str
    requested_at: int
    decision: str
    remember: str


class SignInMembers(TypedDict, total=False):
    """What a sign-in may have besides its method, see docs/api.md."""

    scopes: str
    params: Mapping[str, str]
    timeout: int
    switch_subject: bool
    replace: bool
    callback_port: int
    oauth_provider: str
    email: str
    phone: str
    password: str
    password_confirmation: str
    data: Mapping[str, Any]
    channel: Channel
    captcha_token: str
    id_token: str
    nonce: str
    from_account: str
    user: Mapping[str, Any]
    access_token: str
    refresh_token: str
    domain: str
    provider_id: str
    persist: bool
    create_user: bool
    provider_token: bool


class LinkMembers(TypedDict, total=False):
    """What linking an identity may have."""

    oauth_provider: str
    id_token: str
    nonce: str
    access_token: str
    scopes: str
    params: Mapping[str, str]
    timeout: int
    replace: bool


class UserChanges(TypedDict, total=False):
    """What can be changed of a project's user."""

    email: str
    phone: str
    password: str
    password_confirmation: str
    current_password: str
    nonce: str
    data: Mapping[str, Any]
    channel: Channel
