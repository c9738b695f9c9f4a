"""An auth object for `requests`."""

from typing import Any

import requests
from requests.auth import AuthBase

from .client import Broker
from .origin import Target
from .sending import Sending
from .twins import Steps


class RequestsAuth(AuthBase):
    """Puts the account's token into requests to `origin`. A token that is answered with 401 is replaced once.

    A token that is bound to a key gets its proofs (DPoP), if the daemon's table of origins has the origin for the account, or
    if it is that of the account's MCP server. Without `broker`: the one at the usual place.
    """

    def __init__(self, account: str, *, origin: str, broker: Broker | None = None):
        self._account, self._target, self._broker = account, Target(origin), broker or Broker()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = request.url or ""
        if self._target.takes(url):
            sending = Sending(self._account, self._target, request.method or "GET", url)
            request.headers.update(self._broker._walk(sending.fields()))
            request.register_hook(  # type: ignore[no-untyped-call]
                "response", lambda response, **more: self._answered(response, sending, more))
        return request

    def _answered(self, response: requests.Response, sending: Sending, more: dict[str, Any]) -> requests.Response:
        first = response.request
        # A proof is for one URL, and requests would copy it into the request that follows a redirect.
        proof = first.headers.pop("DPoP", None)
        if not self._target.takes(first.url or ""):
            return response
        # A body that is a stream is gone after the first request.
        is_kept = first.body is None or isinstance(first.body, (bytes, str))
        if not is_kept or first.headers.get("Authorization") != sending.authorization:
            sending.learn(response.headers)
            return response
        fields: Steps[dict[str, str]] | None
        if proof is None:
            fields = sending.redirected(first.method or "GET", first.url or "", response.status_code, response.headers)
        else:
            fields = sending.again(response.status_code, response.headers)
        while fields is not None:
            again = response.request.copy()
            again.headers.update(self._broker._walk(fields))
            # The connection is free for the next request once the answer is read.
            _ = response.content
            response.close()
            next_one: requests.Response = response.connection.send(again, **more)
            next_one.history.append(response)
            next_one.request = again
            response = next_one
            fields = sending.again(response.status_code, response.headers)
        # What follows a redirect has the token that was taken last.
        first.headers["Authorization"] = sending.authorization
        return response
