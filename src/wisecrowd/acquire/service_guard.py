"""Who may send what to the service: addresses, hosts, pages of other sites, rates, secrets, bodies.

A body is read within limits of size and time. It is scanned once, in time that grows with its
length, before any of it is parsed. It is parsed in pieces, because Python's parser lets no other
thread run before it has finished.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_BYTES = 10_000_000  # of a body
MOST_ANSWERS = 10_000  # of a body
PIECE = 65_536  # bytes that are parsed at a time, and the most of one answer
SMALL = 2_000  # bytes of a body that is parsed sooner than a thread could be asked to do it
DEEPEST = 100  # levels of nested JSON
ARRIVING = 30.0  # seconds that a body may take to arrive
PARSING = 5.0  # seconds that a body may take to be parsed

_QUOTE, _BACKSLASH, _COMMA = b'"\\,'
_STEP = np.zeros(256, dtype=np.int64)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1
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


class RefusedError(Exception):
    """A request that is answered with an error status and a fixed sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Shape(NamedTuple):
    """Nesting of JSON, and where the commas between its outermost elements are."""

    depth: int
    commas: NDArray[np.int64]


async def read_body(request: Request, keep: bool = True) -> bytes:
    """Return the body of a request within the limits of size and time; b"" if it is not kept."""
    content = bytearray()
    size = 0
    try:
        async with asyncio.timeout(ARRIVING):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise RefusedError(
                        413, f"A body has at most {MOST_BYTES} bytes; send fewer answers.",
                        Connection="close",
                    )  # fmt: skip
                content += part if keep else b""
    except TimeoutError:
        raise RefusedError(
            408, f"The body did not arrive within {ARRIVING:g} seconds; send it again.",
            Connection="close",
        ) from None  # fmt: skip
    return bytes(content)


def require_json(request: Request) -> None:
    """Refuse a body that does not say that it is JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(415, "Send JSON, with content type application/json.")


def parse_json(content: bytes, seconds: float = PARSING) -> Any:
    """Return JSON within the limits of nesting, number of elements and time.

    Examples
    --------
    >>> parse_json(b'[{"task": "t[1"}, 2]')
    [{'task': 't[1'}, 2]
    """
    deadline = time.monotonic() + seconds
    text = content.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
    if len(text) <= PIECE and text.count(b"[") + text.count(b"{") <= DEEPEST:
        return _loads(text)  # most bodies: too few brackets to be nested too deeply
    shape = scan(text, deadline)
    if shape.depth > DEEPEST:
        raise RefusedError(400, "The JSON is nested too deeply.")
    if len(text) <= PIECE:
        return _loads(text)
    if not (text.startswith(b"[") and text.endswith(b"]")):
        raise RefusedError(413, f"An answer has at most {PIECE} bytes.")
    if len(shape.commas) >= MOST_ANSWERS:
        raise RefusedError(413, f"A body has at most {MOST_ANSWERS} answers; send fewer.")
    return _loads_in_pieces(text, shape.commas, deadline)


def _loads_in_pieces(text: bytes, commas: NDArray[np.int64], deadline: float) -> list[Any]:
    """Return the elements of an outermost array, parsed a few at a time."""
    rows: list[Any] = []
    start, end = 1, len(text) - 1
    while start <= end:
        _check_time(deadline)
        last = int(np.searchsorted(commas, start + PIECE, side="right")) - 1
        stop = int(commas[last]) if last >= 0 and commas[last] >= start else end
        stop = end if end - start <= PIECE else stop
        if stop - start > PIECE:
            raise RefusedError(413, f"An answer has at most {PIECE} bytes.")
        some = _loads(b"[" + text[start:stop] + b"]")
        if not some and len(commas):  # nothing between two commas
            _refuse_text()
        rows += some
        start = stop + 1
    return rows


def scan(content: bytes, deadline: float = float("inf")) -> Shape:
    r"""Return the shape of JSON without parsing it, in one pass over its bytes.

    Text inside of strings does not count. What is not JSON has a shape too.

    Examples
    --------
    >>> scan(b'[{"a": "[[[\\"["}, []]').depth
    2
    """
    inside, escaped, depth, deepest = 0, False, 0, 0
    commas = []
    for start in range(0, len(content), PIECE):
        _check_time(deadline)
        block = np.frombuffer(content, dtype=np.uint8, count=min(PIECE, len(content) - start),
                              offset=start)  # fmt: skip
        is_escaped, escaped = _escaped(block == _BACKSLASH, escaped)
        quotes = np.cumsum((block == _QUOTE) & ~is_escaped) + inside
        outside = quotes % 2 == 0
        level = np.cumsum(np.where(outside, _STEP[block], 0)) + depth
        commas.append(np.flatnonzero(outside & (block == _COMMA) & (level == 1)) + start)
        inside, depth = int(quotes[-1]) % 2, int(level[-1])
        deepest = max(deepest, int(level.max()))
        if deepest > DEEPEST:
            break
    return Shape(deepest, np.concatenate(commas) if commas else np.empty(0, dtype=np.int64))


def _escaped(backslash: NDArray[np.bool_], before: bool) -> tuple[NDArray[np.bool_], bool]:
    """Return which bytes follow an odd number of backslashes, and whether the next one would."""
    places = np.arange(len(backslash))
    # A run that began in the block before is one longer if an odd number of them came there.
    start = np.maximum.accumulate(np.where(backslash, -1, places))
    run = places - start + np.where(start < 0, int(before), 0)
    odd = backslash & (run % 2 == 1)
    return np.concatenate([[before], odd[:-1]]), bool(odd[-1])


def _loads(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _refuse_text()


def _refuse_constant(name: str) -> NoReturn:
    raise RefusedError(400, "NaN and Infinity are not JSON; send a text or a finite number.")


def _refuse_text() -> NoReturn:
    raise RefusedError(400, "The body is not JSON.")


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RefusedError(413, "The body takes too long to read; send fewer answers.")


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
