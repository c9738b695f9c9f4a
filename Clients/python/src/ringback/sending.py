"""One request with an account's token: its fields, and whether it is sent again. Nothing here sends it."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from .operations import Operations
from .origin import Target
from .twins import Steps


def nonce_of(headers: Mapping[str, str]) -> str | None:
    """What a response states. None for what the daemon puts into no proof (RFC 9449 section 8.1), such as two nonces."""
    stated = headers.get("DPoP-Nonce") or ""
    return stated if re.fullmatch(r"[!#-\[\]-~]{1,2048}", stated) else None


class Sending:
    """A Bearer token goes alone. One that is bound to a key (RFC 9449) needs a proof for this method and URL, and perhaps the
    server's nonce, which is learned from every response."""

    def __init__(self, account: str, target: Target, method: str, url: str):
        self._account, self._target = account, target
        self._move(method, url)
        self._token = ""
        self._repeats = {"nonce", "token"}
        self.authorization = ""

    def _move(self, method: str, url: str) -> None:
        parts = urlsplit(url)
        # What is after `?` is in no proof.
        self._method = method
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path or '/'}"

    def fields(self, rejected: str | None = None, nonce: str | None = None) -> Steps[dict[str, str]]:
        """The fields of the request. `rejected`: the token that the server refused, which is replaced first. `nonce`: what it
        has answered this request with, if it was not taken without."""
        target = self._target
        if not target.is_bound:
            if rejected is not None:
                yield Operations.refresh.call(self._account, rejected=rejected)
            found: Any = yield Operations._session.call(self._account)
            target.is_bound, rejected = found["token_type"].lower() == "dpop", None
            if not target.is_bound:
                return self._noted(found, f"Bearer {found['access_token']}")
        found = yield Operations.proof.call(
            self._account, self._method, self._url, nonce=nonce or target.nonce, rejected=rejected)
        target.is_bound = "dpop" in found
        return self._noted(found, found["authorization"]) | ({"DPoP": found["dpop"]} if target.is_bound else {})

    def _noted(self, found: Any, authorization: str) -> dict[str, str]:
        self._token, self.authorization = found["access_token"], authorization
        return {"Authorization": authorization}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Notes the nonce of a response, for the next request."""
        self._target.nonce = nonce_of(headers) or self._target.nonce

    def again(self, status: int, headers: Mapping[str, str]) -> Steps[dict[str, str]] | None:
        """What gives the fields of the same request if it is to be sent again: once with another nonce, once with another
        token. None if the response is the last one."""
        # What is wrong with a proof is not wrong with the token.
        refusal = re.search(r'error="?(use_dpop_nonce|invalid_dpop_proof)\b', headers.get("WWW-Authenticate") or "")
        nonce = nonce_of(headers) if refusal and refusal[1] == "use_dpop_nonce" else None
        if status == 401 and nonce and "nonce" in self._repeats:
            # It may be good once, so it is for no other request.
            self._repeats.discard("nonce")
            return self.fields(nonce=nonce)
        self.learn(headers)
        if status != 401 or refusal or "token" not in self._repeats:
            return None
        self._repeats.discard("token")
        return self.fields(self._token)

    def redirected(self, method: str, url: str, status: int, headers: Mapping[str, str]) -> Steps[dict[str, str]] | None:
        """As `again`, for the response to which a redirect has led: its request had the token, but no proof."""
        self._move(method, url)
        if status == 401 and self._target.is_bound:
            self._repeats = {"nonce", "token"}
            return self.fields(nonce=nonce_of(headers))
        return self.again(status, headers)
