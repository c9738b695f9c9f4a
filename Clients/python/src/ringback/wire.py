"""HTTP/1.1 answers, read by generators that ask for bytes: one reader for sockets that block and for asyncio.

A generator yields what it needs, and is sent the bytes: None for a line with its end, a number for that many bytes, ALL
for all until the end, SOME for what comes next.
"""

from collections.abc import Generator

from .calls import NoDaemon

Need = int | None
ALL, SOME = 0, -1
# An answer is small; an event stream has chunks of a few kilobytes.
LONGEST_LINE = 64 * 1024
LARGEST_BODY = 16 * 1024 * 1024


def head() -> Generator[Need, bytes, tuple[int, dict[str, str]]]:
    """The status and the header fields, with names in lower case."""
    line = yield None
    words = line.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise NoDaemon("the daemon's answer broke off" if not line else "something else than Ringback is at the socket")
    fields: dict[str, str] = {}
    while True:
        line = yield None
        if not line.endswith(b"\n"):
            raise NoDaemon("the daemon's answer broke off")
        if line in (b"\r\n", b"\n"):
            return int(words[1]), fields
        name, _, value = line.decode("latin-1").partition(":")
        fields[name.strip().lower()] = value.strip()


def chunk() -> Generator[Need, bytes, bytes]:
    """The next chunk; the last one is empty."""
    line = yield None
    try:
        size = int(line.split(b";")[0], 16)
    except ValueError:
        raise NoDaemon("the daemon's answer broke off") from None
    if size > LARGEST_BODY:
        raise NoDaemon("the answer is too long")
    content = (yield size) if size > 0 else b""
    yield None
    return content


def body(fields: dict[str, str]) -> Generator[Need, bytes, bytes]:
    if fields.get("transfer-encoding", "").lower() == "chunked":
        content = bytearray()
        while piece := (yield from chunk()):
            content += piece
            if len(content) > LARGEST_BODY:
                raise NoDaemon("the answer is too long")
        return bytes(content)
    if (length := fields.get("content-length")) is not None:
        if not length.isdigit() or int(length) > LARGEST_BODY:
            raise NoDaemon("the answer is too long")
        return (yield int(length)) if int(length) > 0 else b""
    return (yield ALL)


def part(fields: dict[str, str]) -> Generator[Need, bytes, bytes]:
    """The next part of a stream; the last one is empty."""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return (yield from chunk())
    return (yield SOME)
