"""Which requests get a token: those to one origin, over TLS or on this machine."""

from urllib.parse import urlsplit

PORTS = {"https": 443, "http": 80}
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises ValueError for what can get no token."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in PORTS or not host:
        raise ValueError(f"{url} is no origin of a web API")
    return scheme, host, parts.port or PORTS[scheme]


class Target:
    """The origin that an auth object is for: no token leaves for another one, also not after a redirect."""

    def __init__(self, origin: str):
        self.origin = origin_of(origin)
        if self.origin[0] == "http" and self.origin[1] not in LOOPBACK:
            raise ValueError(f"a token is not sent without TLS: {origin}")
        # Whether the last token was bound to a key, and the server's last nonce (RFC 9449).
        self.is_bound = False
        self.nonce: str | None = None

    def takes(self, url: str) -> bool:
        try:
            return origin_of(url) == self.origin
        except ValueError:
            return False
