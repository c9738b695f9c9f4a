"""The two clients: `Broker` waits, `AsyncBroker` is awaited. Both have the methods of `Operations`."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from typing import Any, TypeVar, cast

from . import calls, wire
from .calls import Call, NoDaemon
from .events import Event, EventParser
from .operations import Operations
from .twins import Awaits, Steps, Waits

Result = TypeVar("Result")
# What an answer may take beyond the time that the daemon was told to wait, in seconds.
GRACE = 15
# The stream of events has a comment every 15 s.
SILENCE = 45


class _Client(Operations):
    def __init__(self, socket_path: str | None = None, application: str | None = None):
        self.socket_path = calls.socket_path(socket_path)
        self.application = application

    def _gone(self, connects: bool) -> NoDaemon:
        return NoDaemon(f"no daemon answers at {self.socket_path}" if connects else "the daemon's answer broke off")


class Broker(_Client, Waits):
    """A client whose calls wait. It keeps no connection, and may be used by several threads.

    `socket_path`: `RINGBACK_SOCK` or the usual place if it is not given. `application`: the app's name, for display only.
    Calls raise RingbackError for what the daemon answers, and NoDaemon where none answers.
    """

    def _connect(self, timeout: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            connection.connect(self.socket_path)
            calls.check_server(self.socket_path, connection)
        except OSError as error:
            connection.close()
            raise self._gone(True) from error
        except NoDaemon:
            connection.close()
            raise
        return connection

    def _run(self, call: Call) -> Any:
        request = call.request(self.application)
        try:
            with closing(self._connect(call.waits + GRACE)) as connection, connection.makefile("rb") as stream:
                connection.sendall(request)
                status, fields = _drive(stream, wire.head())
                content = _drive(stream, wire.body(fields))
        except OSError as error:
            raise self._gone(False) from error
        return call.result(status, fields, content)

    def _walk(self, steps: Steps[Result]) -> Result:
        answer: Any = None
        failure: BaseException | None = None
        try:
            while True:
                step = steps.send(answer) if failure is None else steps.throw(failure)
                answer = failure = None
                try:
                    answer = self._run(step) if isinstance(step, Call) else step()
                except BaseException as error:
                    failure = error
        except StopIteration as end:
            return cast(Result, end.value)

    def _follow(self, call: Call, read: Callable[[Event], Result | None]) -> Generator[Result, None, None]:
        parser = EventParser()
        with closing(self._connect(SILENCE)) as connection, connection.makefile("rb") as stream:
            connection.sendall(call.request(self.application, "text/event-stream"))
            status, fields = _drive(stream, wire.head())
            if status != 200:
                call.result(status, fields, _drive(stream, wire.body(fields)))
            while content := _drive(stream, wire.part(fields)):
                yield from (found for event in parser.feed(content) if (found := read(event)) is not None)


class AsyncBroker(_Client, Awaits):
    """A client for asyncio. A call that is cancelled closes its connection. See Broker."""

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket_path, limit=wire.LONGEST_LINE)
        except OSError as error:
            raise self._gone(True) from error
        try:
            calls.check_server(self.socket_path, writer.get_extra_info("socket"))
        except NoDaemon:
            writer.close()
            raise
        return reader, writer

    async def _run(self, call: Call) -> Any:
        request = call.request(self.application)
        reader, writer = await self._connect()
        try:
            writer.write(request)
            status, fields = await _drive_async(reader, wire.head(), call.waits + GRACE)
            content = await _drive_async(reader, wire.body(fields), GRACE)
        finally:
            writer.close()
        return call.result(status, fields, content)

    async def _walk(self, steps: Steps[Result]) -> Result:
        answer: Any = None
        failure: BaseException | None = None
        try:
            while True:
                step = steps.send(answer) if failure is None else steps.throw(failure)
                answer = failure = None
                try:
                    # A function may block, such as one that opens a browser.
                    answer = await (self._run(step) if isinstance(step, Call) else asyncio.to_thread(step))
                except BaseException as error:
                    failure = error
        except StopIteration as end:
            return cast(Result, end.value)

    async def _follow(self, call: Call, read: Callable[[Event], Result | None]) -> AsyncGenerator[Result, None]:
        parser = EventParser()
        reader, writer = await self._connect()
        try:
            writer.write(call.request(self.application, "text/event-stream"))
            status, fields = await _drive_async(reader, wire.head(), SILENCE)
            if status != 200:
                call.result(status, fields, await _drive_async(reader, wire.body(fields), SILENCE))
            while content := await _drive_async(reader, wire.part(fields), SILENCE):
                for event in parser.feed(content):
                    if (found := read(event)) is not None:
                        yield found
        finally:
            writer.close()


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
