"""Methods that two clients have. Each is written once: `Broker` waits for it, `AsyncBroker` is awaited."""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from hashlib import sha256
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload
from urllib.parse import quote

from .calls import Call
from .events import Event

P = ParamSpec("P")
Result = TypeVar("Result")
Waited = TypeVar("Waited")
Awaited = TypeVar("Awaited")
#: What a method of several steps yields: calls, and functions that may block. It is sent their results.
Steps: TypeAlias = Generator[Call | Callable[[], Any], Any, Result]


class Waits:
    """A client whose methods wait."""


class Awaits:
    """A client whose methods are awaited."""


class Row:
    """A route of the API, and the function whose parameters are its names, its query and its body's members."""

    def __init__(self, words: str, function: Callable[..., Any], take: str | None = None, body: str | None = None,
                 check: Callable[[Any], object] | None = None):
        self.method, self.path = words.split()
        self.take, self.body, self.check, self.function = take, body, check, function
        signature = inspect.signature(function)
        self.signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        self.names = [name for name in self.signature.parameters if f"{{{name}}}" in self.path]

    def call(self, *arguments: Any, **named: Any) -> Call:
        """The request. A parameter that is not given is not sent."""
        given: dict[str, Any] = {}
        for name, value in self.signature.bind(*arguments, **named).arguments.items():
            is_rest = self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
            given.update(value if is_rest else {name: value})
        names = {name: quote(_identifier(given.pop(name)), safe="") for name in self.names}
        # Of a token that was refused, the daemon needs only the hash. A keyword of Python's has a `_` at its end.
        if (rejected := given.pop("rejected", None)) is not None:
            given["rejected_sha256"] = sha256(rejected.encode()).hexdigest()
        given = {name.removesuffix("_"): value for name, value in given.items() if value is not None}
        path = self.path.format(**names)
        waits = 3600 if given.get("sign_in") or given.get("interactive") else 60 + max(
            given.get("wait") or 0, given.get("timeout") or 0)
        if self.method in ("GET", "DELETE"):
            return Call(self.method, path, given, take=self.take, waits=waits, check=self.check)
        # Of all routes with a body, the only member of a query.
        query = {"consent": given.pop("consent", None)}
        if self.body is not None:
            given = given.get(self.body) or {}
        return Call(self.method, path, query, given, take=self.take, waits=waits, check=self.check)


def _identifier(value: Any) -> str:
    return str(value["id"]) if isinstance(value, Mapping) else str(value)


class Twin(Generic[P, Waited, Awaited]):
    """A method of both clients. `run` does it: it gets the client, and what the method was given."""

    def __init__(self, function: Callable[..., Any], run: Callable[..., Any], row: Row | None = None):
        self.function, self.run, self.row = function, run, row
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, client: None, kind: type) -> "Twin[P, Waited, Awaited]": ...
    @overload
    def __get__(self, client: Waits, kind: type) -> Callable[P, Waited]: ...
    @overload
    def __get__(self, client: Awaits, kind: type) -> Callable[P, Awaited]: ...

    def __get__(self, client: Any, kind: type) -> Any:
        if client is None:
            return self

        @functools.wraps(self.function.__get__(client))
        def method(*arguments: Any, **named: Any) -> Any:
            return self.run(client, *arguments, **named)
        return method

    def call(self, *arguments: P.args, **named: P.kwargs) -> Call:
        """The request of a method that is one."""
        assert self.row is not None
        return self.row.call(*arguments, **named)


Both: TypeAlias = Twin[P, Result, Coroutine[Any, Any, Result]]
Stream: TypeAlias = Twin[P, Generator[Result, None, None], AsyncGenerator[Result, None]]


def route(words: str, *, take: str | None = None, body: str | None = None,
          check: Callable[[Any], object] | None = None
          ) -> Callable[[Callable[Concatenate[Any, P], Result]], Both[P, Result]]:
    """A method that is one request; the function has no code. `take`: the member of the answer that is the result.
    `body`: the parameter that is the whole body. `check` raises for a result that is an error."""
    def made(function: Callable[Concatenate[Any, P], Result]) -> Both[P, Result]:
        row = Row(words, function, take, body, check)
        return Twin(function, lambda client, *given, **named: client._run(row.call(*given, **named)), row)
    return made


def stream(words: str, read: Callable[[Event], Result | None]
           ) -> Callable[[Callable[Concatenate[Any, P], Result]], Stream[P, Result]]:
    """A method that gives one event of a route after the other, as `read` sees it: None is left out."""
    def made(function: Callable[Concatenate[Any, P], Result]) -> Stream[P, Result]:
        row = Row(words, function)
        return Twin(function, lambda client, *given, **named: client._follow(row.call(*given, **named), read), row)
    return made


def steps(function: Callable[Concatenate[Any, P], Steps[Result]]) -> Both[P, Result]:
    """A method of several steps."""
    return Twin(function, lambda client, *given, **named: client._walk(function(client, *given, **named)))
