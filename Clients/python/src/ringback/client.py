"""The two clients: `Broker` waits, `AsyncBroker` is awaited. Both have the same calls."""

import asyncio
import socket
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing, suppress
from typing import Any, TypeVar, cast

from . import calls, wire
from .calls import Call, NoDaemon, RingbackError
from .events import Event, EventParser
from .models import Account, Flow, OriginCredential, Session, Status

Result = TypeVar("Result")
# What an answer may take beyond the time that the daemon was told to wait, in seconds.
GRACE = 15
# The stream of events has a comment every 15 s.
SILENCE = 45


def _default(accounts: list[Account]) -> str:
    """The account that is meant where none is named: the default one, or the only one."""
    chosen = [each["name"] for each in accounts if each.get("default")] or [each["name"] for each in accounts]
    if len(chosen) == 1:
        return chosen[0]
    raise ValueError(f"which account: {', '.join(chosen) or 'there is none'}")


def _page(flow: Flow) -> str:
    """The address for a program to open, once."""
    if "open_url" in flow:
        return flow["open_url"]
    raise RingbackError(409, flow.get("open_url_error") or {"code": "method_unsupported", "title": "There is no page."})


def _ended(flow: Flow) -> Flow:
    """A flow that has left `pending`. Raises if it has no session."""
    if flow["status"] == "completed":
        return flow
    problem = flow.get("error") or {"code": f"flow_{flow['status']}", "title": f"The sign-in is {flow['status']}."}
    raise RingbackError(int(problem.get("status", 410)), problem)


class Broker:
    """A client whose calls wait. It keeps no connection, and may be used by several threads.

    `socket_path`: `RINGBACK_SOCK` or the usual place if it is not given. `application`: the app's name, for display only.
    Calls raise RingbackError for what the daemon answers, and NoDaemon where none answers.
    """

    def __init__(self, socket_path: str | None = None, application: str | None = None):
        self.socket_path = calls.socket_path(socket_path)
        self.application = application

    def status(self) -> Status:
        return self._run(calls.status())

    def accounts(self) -> list[Account]:
        return self._run(calls.accounts())

    def account(self, name: str) -> Account:
        return self._run(calls.account(name))

    def session(self, account: str | None = None, *, min_valid: int | None = None, timeout: int | None = None,
                scope: str | None = None, audience: str | None = None, resource: str | None = None,
                kind: str | None = None, subject: str | None = None, include: str | None = None,
                sign_in: str | None = None) -> Session:
        """The token of an account's session, refreshed where needed. Times are seconds; see docs/api.md for the rest."""
        return self._run(calls.session(account or _default(self.accounts()), min_valid, timeout, scope, audience,
                                       resource, kind, subject, include, sign_in))

    def token(self, account: str | None = None, *, min_valid: int | None = None) -> str:
        return self.session(account, min_valid=min_valid)["access_token"]

    def refresh(self, account: str, *, rejected: str | None = None, force: bool = False) -> Account:
        """`rejected`: the token that a server refused. No request if the daemon has another one by now."""
        return self._run(calls.refresh(account, rejected, force))

    def sign_in(self, account: str, method: str = "browser", **members: Any) -> Flow:
        """Starts or joins a sign-in. `members`: those of the request's body."""
        return self._run(calls.sign_in(account, method, members))

    def sign_in_with_browser(self, account: str, *, open_page: Callable[[str], Any] = webbrowser.open,
                             timeout: float = 600) -> Account:
        """Opens the sign-in's page, and waits until there is a session; cancels after `timeout` seconds."""
        flow = self.sign_in(account)
        deadline = time.monotonic() + timeout
        try:
            open_page(_page(flow))
            while flow["status"] == "pending":
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError("the sign-in has taken too long")
                flow = self.flow(flow["id"], wait=min(60, int(left) + 1))
        except BaseException:
            with suppress(RingbackError):
                self._run(calls.cancel(flow["id"]))
            raise
        return self.account(_ended(flow)["account"])

    def flow(self, identifier: str, *, wait: int = 0) -> Flow:
        """A flow, once it has left `pending` or `wait` seconds are over."""
        return self._run(calls.flow(identifier, wait))

    def cancel(self, identifier: str) -> Flow:
        return self._run(calls.cancel(identifier))

    def sign_out(self, account: str, *, scope: str | None = None) -> Account:
        return self._run(calls.sign_out(account, scope))

    def lookup(self, url: str, *, username: str | None = None, rejected: str | None = None,
               interactive: bool = False, without_scheme: bool = False) -> OriginCredential:
        """What a tool sends to a server, by the configuration's table of origins."""
        return self._run(calls.lookup(url, username, rejected, interactive, without_scheme))

    def events(self, account: str | None = None) -> Iterator[Event]:
        """The state of each account, then each change, until the daemon ends the stream."""
        call, parser = calls.events(account), EventParser()
        with closing(self._connect(SILENCE)) as connection, connection.makefile("rb") as stream:
            connection.sendall(call.request(self.application, "text/event-stream"))
            status, fields = _drive(stream, wire.head())
            if status != 200:
                call.result(status, _drive(stream, wire.body(fields)))
            while content := _drive(stream, wire.part(fields)):
                yield from parser.feed(content)

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            connection.connect(self.socket_path)
        except OSError as error:
            connection.close()
            raise NoDaemon(f"no daemon answers at {self.socket_path}") from error
        return connection

    def _run(self, call: Call[Result]) -> Result:
        try:
            with closing(self._connect(call.waits + GRACE)) as connection, connection.makefile("rb") as stream:
                connection.sendall(call.request(self.application))
                status, fields = _drive(stream, wire.head())
                content = _drive(stream, wire.body(fields))
        except OSError as error:
            raise NoDaemon(f"the daemon at {self.socket_path} does not answer") from error
        return call.result(status, content)


class AsyncBroker:
    """A client for asyncio. A call that is cancelled closes its connection. See Broker."""

    def __init__(self, socket_path: str | None = None, application: str | None = None):
        self.socket_path = calls.socket_path(socket_path)
        self.application = application

    async def status(self) -> Status:
        return await self._run(calls.status())

    async def accounts(self) -> list[Account]:
        return await self._run(calls.accounts())

    async def account(self, name: str) -> Account:
        return await self._run(calls.account(name))

    async def session(self, account: str | None = None, *, min_valid: int | None = None, timeout: int | None = None,
                      scope: str | None = None, audience: str | None = None, resource: str | None = None,
                      kind: str | None = None, subject: str | None = None, include: str | None = None,
                      sign_in: str | None = None) -> Session:
        """The token of an account's session, refreshed where needed. Times are seconds; see docs/api.md for the rest."""
        return await self._run(calls.session(account or _default(await self.accounts()), min_valid, timeout, scope,
                                             audience, resource, kind, subject, include, sign_in))

    async def token(self, account: str | None = None, *, min_valid: int | None = None) -> str:
        return (await self.session(account, min_valid=min_valid))["access_token"]

    async def refresh(self, account: str, *, rejected: str | None = None, force: bool = False) -> Account:
        """`rejected`: the token that a server refused. No request if the daemon has another one by now."""
        return await self._run(calls.refresh(account, rejected, force))

    async def sign_in(self, account: str, method: str = "browser", **members: Any) -> Flow:
        """Starts or joins a sign-in. `members`: those of the request's body."""
        return await self._run(calls.sign_in(account, method, members))

    async def sign_in_with_browser(self, account: str, *, open_page: Callable[[str], Any] = webbrowser.open,
                                   timeout: float = 600) -> Account:
        """Opens the sign-in's page (in a thread), and waits until there is a session; cancels after `timeout` seconds."""
        flow = await self.sign_in(account)
        try:
            async with asyncio.timeout(timeout):
                await asyncio.to_thread(open_page, _page(flow))
                while flow["status"] == "pending":
                    flow = await self.flow(flow["id"], wait=60)
        except BaseException:
            with suppress(RingbackError):
                await asyncio.shield(self._run(calls.cancel(flow["id"])))
            raise
        return await self.account(_ended(flow)["account"])

    async def flow(self, identifier: str, *, wait: int = 0) -> Flow:
        """A flow, once it has left `pending` or `wait` seconds are over."""
        return await self._run(calls.flow(identifier, wait))

    async def cancel(self, identifier: str) -> Flow:
        return await self._run(calls.cancel(identifier))

    async def sign_out(self, account: str, *, scope: str | None = None) -> Account:
        return await self._run(calls.sign_out(account, scope))

    async def lookup(self, url: str, *, username: str | None = None, rejected: str | None = None,
                     interactive: bool = False, without_scheme: bool = False) -> OriginCredential:
        """What a tool sends to a server, by the configuration's table of origins."""
        return await self._run(calls.lookup(url, username, rejected, interactive, without_scheme))

    async def events(self, account: str | None = None) -> AsyncIterator[Event]:
        """The state of each account, then each change, until the daemon ends the stream."""
        call, parser = calls.events(account), EventParser()
        reader, writer = await self._connect()
        try:
            writer.write(call.request(self.application, "text/event-stream"))
            status, fields = await _drive_async(reader, wire.head(), SILENCE)
            if status != 200:
                call.result(status, await _drive_async(reader, wire.body(fields), SILENCE))
            while content := await _drive_async(reader, wire.part(fields), SILENCE):
                for event in parser.feed(content):
                    yield event
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_unix_connection(self.socket_path, limit=wire.LONGEST_LINE)
        except OSError as error:
            raise NoDaemon(f"no daemon answers at {self.socket_path}") from error

    async def _run(self, call: Call[Result]) -> Result:
        reader, writer = await self._connect()
        try:
            writer.write(call.request(self.application))
            status, fields = await _drive_async(reader, wire.head(), call.waits + GRACE)
            content = await _drive_async(reader, wire.body(fields), GRACE)
        finally:
            writer.close()
        return call.result(status, content)


def _drive(stream: Any, reader: Generator[wire.Need, bytes, Result]) -> Result:
    """Gives a reader what it asks for, from a stream that blocks."""
    try:
        need = next(reader)
        while True:
            if need is None:
                content = stream.readline(wire.LONGEST_LINE)
            elif need == wire.SOME:
                content = stream.read1(wire.LONGEST_LINE)
            else:
                content = stream.read(need or wire.LARGEST_BODY)
                if len(content) < need:
                    raise NoDaemon("the daemon's answer broke off")
            need = reader.send(content)
    except StopIteration as end:
        return cast(Result, end.value)
    except OSError as error:
        raise NoDaemon("the daemon's answer broke off") from error


async def _drive_async(stream: asyncio.StreamReader, reader: Generator[wire.Need, bytes, Result],
                       seconds: float) -> Result:
    try:
        need = next(reader)
        while True:
            async with asyncio.timeout(seconds):
                if need is None:
                    content = await stream.readline()
                elif need == wire.SOME:
                    content = await stream.read(wire.LONGEST_LINE)
                else:
                    content = await (stream.readexactly(need) if need else stream.read())
            need = reader.send(content)
    except StopIteration as end:
        return cast(Result, end.value)
    except (OSError, ValueError, EOFError) as error:
        raise NoDaemon("the daemon's answer broke off") from error
