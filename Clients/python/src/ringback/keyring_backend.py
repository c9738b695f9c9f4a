"""A backend for the package `keyring`: the token of the configuration's origins, as the password of a package index.

twine, and pip with `--keyring-provider import`, find it by its entry point. It stores nothing. What is for no origin is left
to the other backends.
"""

from __future__ import annotations

from keyring.backend import KeyringBackend
from keyring.credentials import SimpleCredential
from keyring.errors import KeyringError

from .calls import NoDaemon, RingbackError
from .client import Broker

# The user name where neither the tool nor the configuration states one.
USUAL_NAME = "oauth2"


class Ringback(KeyringBackend):
    """Asked before the backends that store passwords."""

    priority = 9

    def get_credential(self, service: str, username: str | None) -> SimpleCredential | None:
        """The credential for a URL, or for a host alone if the origin allows that. None without an origin or a daemon."""
        without_scheme = "://" not in service
        url = f"https://{service}/" if without_scheme else service
        if not url.isascii() or not url.isprintable() or " " in url or not url.startswith(("https://", "http://")):
            return None
        try:
            found = Broker(application="keyring").lookup(
                url.split("#")[0].split("?")[0], username=username, without_scheme=without_scheme)
        except NoDaemon:
            return None
        except RingbackError as error:
            # Of a host alone: the tool may connect without TLS, and the origin does not allow that.
            if error.status in (400, 404, 422) or (without_scheme and error.status == 403):
                return None
            raise KeyringError(f"Ringback: {error}") from error
        if "secret" not in found:
            return None
        return SimpleCredential(found.get("username") or username or USUAL_NAME, found["secret"])

    def get_password(self, service: str, username: str) -> str | None:
        found = self.get_credential(service, username)
        return found.password if found else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError("Ringback stores no passwords.")

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError("Ringback stores no passwords.")
