"""Bodies of requests: read within limits of size and time, parsed in small pieces.

A body is scanned once, in time that grows with its length, before any of it is parsed. It is parsed
in pieces, because Python's parser lets no other thread run before it has finished.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

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
