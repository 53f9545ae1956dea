"""Who may send what to the service: addresses, hosts, pages of other sites, rates and secrets."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from wisecrowd.acquire.request_bodies import RefusedError
from wisecrowd.core.exceptions import ParameterError

RATE, BURST = 1000.0, 2000.0  # requests of one client per second, and at once
MOST_CLIENTS = 10_000  # clients that the limit of the rate remembers
WRONG_SECONDS = 1.0  # how long a wrong secret waits for its reply
MOST_WAITING = 100  # wrong secrets that wait at a time
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
ELSEWHERE = (b"cross-site", b"same-site")  # pages of other sites, and of other ports of this one
# For every reply: nothing is cached, framed, sniffed or handed to other sites.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


class RateLimit:
    """A limit on the requests of each client: a bucket of ``burst`` that ``rate`` refills.

    Examples
    --------
    >>> limit = RateLimit(rate=1.0, burst=2.0)
    >>> [limit.allows("a", now) for now in (0.0, 0.0, 0.0, 1.0, 1.0)]
    [True, True, False, True, False]
    """

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, client: str, now: float) -> bool:
        """Return whether a request at a time, in seconds, is within the limit, and count it."""
        left, before = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + max(now - before, 0.0) * self._rate)
        while len(self._left) >= MOST_CLIENTS:  # forget the client that was silent longest
            del self._left[next(iter(self._left))]
        self._left[client] = (left - 1 if left >= 1 else left), now
        return left >= 1


def check_address(host: str, secret: str | None) -> bool:
    """Return whether an address is loopback; another one without a secret is refused.

    Examples
    --------
    >>> check_address("127.0.0.1", None), check_address("0.0.0.0", "long secret")
    (True, False)
    """
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ParameterError(
            f"--listen names {host!r}; give a numeric address such as 127.0.0.1:8765."
        ) from None
    if not loopback and not secret:
        raise ParameterError(
            f"{host} can be reached by others; give --secret env:NAME, or listen on 127.0.0.1."
        )
    return loopback


def hosts_of(address: str, port: int) -> frozenset[str]:
    """Return the values of ``Host`` that a service on a loopback address answers to.

    Examples
    --------
    >>> sorted(hosts_of("127.0.0.1", 8765))
    ['127.0.0.1:8765', '[::1]:8765', 'localhost:8765']
    """
    names = {*LOOPBACK_NAMES, f"[{address}]" if ":" in address else address}
    usual = names if port == 80 else set()  # browsers leave out the usual port
    return frozenset({f"{name}:{port}" for name in names} | usual)


class Guard:
    """Refuse requests that pages of other sites make browsers send, and complete the headers.

    A page elsewhere can have a name that leads to loopback (DNS rebinding), or send requests whose
    replies it cannot read. The first has a foreign ``Host``, the second a foreign ``Origin`` or
    ``Sec-Fetch-Site``, which scripts cannot change.

    Parameters
    ----------
    app : ASGI application
    hosts : set of str or None
        Values of ``Host`` to answer to; None for all, where a secret is needed anyway.
    """

    def __init__(self, app: App, hosts: frozenset[str] | None) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                message["headers"] = [
                    *message.get("headers", []), *(one for one in _HEADERS if one[0] not in given),
                ]  # fmt: skip
            await send(message)

        refused = self._refusal(scope)
        if refused is None:
            await self._app(scope, receive, send_with_headers)
            return
        body = json.dumps({"error": refused.sentence}).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close"),
                   (b"content-length", str(len(body)).encode())]  # fmt: skip
        start = {"type": "http.response.start", "status": refused.status, "headers": headers}
        await send_with_headers(start)
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Any) -> RefusedError | None:
        given: dict[bytes, bytes] = dict(scope["headers"])
        host = given.get(b"host", b"").decode("latin-1").lower()
        if self._hosts is not None and host not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            return RefusedError(421, f"The service answers to {known} only; use one of these.")
        site = given.get(b"sec-fetch-site", b"")
        is_link = scope["path"] == "/" and given.get(b"sec-fetch-dest") == b"document"
        if site in ELSEWHERE and not is_link:  # the page itself holds no data
            return RefusedError(403, "Pages of other sites may not use the service.")
        origin = given.get(b"origin")
        if origin is not None and site != b"same-origin" and not self._is_own(origin, host):
            return RefusedError(403, "Pages of other sites may not use the service.")
        return None

    def _is_own(self, origin: bytes, host: str) -> bool:
        try:
            place = urlsplit(origin.decode("latin-1").lower())
        except ValueError:
            return False
        own = self._hosts if self._hosts is not None else {host}
        return place.scheme in ("http", "https") and place.netloc in own


class SecretCheck:
    """Compare secrets in constant time; a wrong one waits for its reply.

    The right secret is never refused, however many wrong ones others send.
    """

    def __init__(self) -> None:
        self._waiting = 0

    async def require(self, given: str, wanted: str, how: str) -> None:
        """Refuse a secret that is not the wanted one, and say how it is sent."""
        if hmac.compare_digest(given.encode("latin-1", "replace"), wanted.encode()):
            return
        if self._waiting >= MOST_WAITING:
            raise RefusedError(429, "Too many wrong secrets; wait a second.", Connection="close")
        self._waiting += 1
        try:
            await asyncio.sleep(WRONG_SECONDS)
        finally:
            self._waiting -= 1
        raise RefusedError(
            401, f"The secret is missing or wrong; send {how}.", WWW_Authenticate="Bearer"
        )


def bearer(header: str) -> str:
    """Return the token of an ``Authorization`` header; "" if it is not one of type Bearer.

    Examples
    --------
    >>> bearer("Bearer abc"), bearer("abc")
    ('abc', '')
    """
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
