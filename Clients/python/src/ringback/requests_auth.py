"""An auth object for `requests`."""

from typing import Any

import requests
from requests.auth import AuthBase

from .client import Broker
from .origin import Target


class RequestsAuth(AuthBase):
    """Puts the account's token into requests to `origin`. A token that is answered with 401 is replaced once.

    Without `broker`: the one at the usual place.
    """

    def __init__(self, account: str, *, origin: str, broker: Broker | None = None):
        self._account, self._target, self._broker = account, Target(origin), broker or Broker()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._target.takes(request.url or ""):
            token = self._broker.token(self._account)
            request.headers["Authorization"] = f"Bearer {token}"
            # A body that is a stream is gone after the first request.
            if request.body is None or isinstance(request.body, (bytes, str)):
                request.register_hook(  # type: ignore[no-untyped-call]
                    "response", lambda response, **more: self._answered(response, token, more))
        return request

    def _answered(self, response: requests.Response, token: str, more: dict[str, Any]) -> requests.Response:
        sent = response.request.headers.get("Authorization")
        if response.status_code != 401 or sent != f"Bearer {token}" or not self._target.takes(response.request.url or ""):
            return response
        self._broker.refresh(self._account, rejected=token)
        again = response.request.copy()
        again.headers["Authorization"] = f"Bearer {self._broker.token(self._account)}"
        # The connection is free for the next request once the answer is read.
        _ = response.content
        response.close()
        second: requests.Response = response.connection.send(again, **more)
        second.history.append(response)
        second.request = again
        return second
