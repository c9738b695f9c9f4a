"""An auth object for `httpx`, for both of its clients."""

from collections.abc import AsyncGenerator, Generator

import httpx

from .client import AsyncBroker, Broker
from .origin import Target
from .sending import Sending
from .twins import Steps


class AuthHeaders(httpx.Headers):
    """Shows the proof to the transport alone. httpx copies the other fields into the request that follows a redirect, for
    which the proof would be wrong: it names one method and one URL."""

    def __init__(self, others: httpx.Headers, fields: dict[str, str]):
        super().__init__(others)
        self["Authorization"] = fields["Authorization"]
        self._proof = [(b"DPoP", fields["DPoP"].encode())] if "DPoP" in fields else []

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        return super().raw + self._proof


class HTTPXAuth(httpx.Auth):
    """Puts the account's token into requests to `origin`. A token that is answered with 401 is replaced once.

    A token that is bound to a key gets its proofs (DPoP), if the daemon's table of origins has the origin for the account, or
    if it is that of the account's MCP server. Made as RequestsAuth is; the broker may be of either kind.
    """

    def __init__(self, account: str, *, origin: str, broker: Broker | AsyncBroker | None = None):
        self._account, self._target = account, Target(origin)
        path, application = (broker.socket_path, broker.application) if broker else (None, None)
        self._broker, self._async_broker = Broker(path, application), AsyncBroker(path, application)

    def _sending(self, request: httpx.Request) -> Sending | None:
        if not self._target.takes(str(request.url)):
            return None
        return Sending(self._account, self._target, request.method, str(request.url))

    def _again(self, sending: Sending, request: httpx.Request, response: httpx.Response) -> Steps[dict[str, str]] | None:
        last, status, headers = response.request, response.status_code, response.headers
        if not self._target.takes(str(last.url)) or last.headers.get("Authorization") != sending.authorization:
            return None
        if last is request:
            return sending.again(status, headers)
        return sending.redirected(last.method, str(last.url), status, headers)

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        sending = self._sending(request)
        if sending is None:
            yield request
            return
        fields: Steps[dict[str, str]] | None = sending.fields()
        while fields is not None:
            request.headers = AuthHeaders(request.headers, self._broker._walk(fields))
            response = yield request
            fields = self._again(sending, request, response)
            request = response.request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        sending = self._sending(request)
        if sending is None:
            yield request
            return
        fields: Steps[dict[str, str]] | None = sending.fields()
        while fields is not None:
            request.headers = AuthHeaders(request.headers, await self._async_broker._walk(fields))
            response = yield request
            fields = self._again(sending, request, response)
            request = response.request
