"""An auth object for `httpx`, for both of its clients."""

from collections.abc import AsyncGenerator, Generator

import httpx

from .client import AsyncBroker, Broker
from .origin import Target


class HTTPXAuth(httpx.Auth):
    """Puts the account's token into requests to `origin`. A token that is answered with 401 is replaced once.

    Made as RequestsAuth is; the broker may be of either kind.
    """

    def __init__(self, account: str, *, origin: str, broker: Broker | AsyncBroker | None = None):
        self._account, self._target = account, Target(origin)
        path, application = (broker.socket_path, broker.application) if broker else (None, None)
        self._broker, self._async_broker = Broker(path, application), AsyncBroker(path, application)

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if not self._target.takes(str(request.url)):
            yield request
            return
        token = self._broker.token(self._account)
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == 401:
            self._broker.refresh(self._account, rejected=token)
            request.headers["Authorization"] = f"Bearer {self._broker.token(self._account)}"
            yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if not self._target.takes(str(request.url)):
            yield request
            return
        token = await self._async_broker.token(self._account)
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == 401:
            await self._async_broker.refresh(self._account, rejected=token)
            request.headers["Authorization"] = f"Bearer {await self._async_broker.token(self._account)}"
            yield request
