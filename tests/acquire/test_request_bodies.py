from __future__ import annotations

import json
import random

import pytest

from wisecrowd.acquire.service_guard import (
    DEEPEST,
    MOST_ANSWERS,
    PIECE,
    RefusedError,
    parse_json,
    scan,
)


def shape_by_hand(content: bytes) -> tuple[int, list[int]]:
    """Return depth and outermost commas, byte by byte."""
    depth = deepest = 0
    inside = escaped = False
    commas = []
    for place, one in enumerate(content):
        mark = bytes([one])
        if mark == b'"' and not escaped:
            inside = not inside
        if not inside:
            depth += (mark in (b"[", b"{")) - (mark in (b"]", b"}"))
            if mark == b"," and depth == 1:
                commas.append(place)
        deepest = max(deepest, depth)
        escaped = mark == b"\\" and not escaped
    return deepest, commas


@pytest.mark.parametrize("seed", range(200))
def test_the_scan_is_that_by_hand(seed, monkeypatch):
    monkeypatch.setattr("wisecrowd.acquire.service_guard.PIECE", 7)  # states cross the borders
    rng = random.Random(seed)
    content = bytes(rng.choices(b'[]{},"\\a', k=rng.randrange(60)))
    deepest, commas = shape_by_hand(content)
    found = scan(content)
    assert (found.depth, found.commas.tolist()) == (deepest, commas)


@pytest.mark.parametrize(
    "unit", [b'\\"', b'"', b"\\", b"[", b'"\\', b'["', b'{"a":"\\\\', b"[]", b"\n", b'"\\"]']
)
def test_the_scan_is_linear(unit):
    """A quadratic scan of 2 MB would take an hour."""
    with pytest.raises(RefusedError):
        parse_json(b"[" + unit * (2_000_000 // len(unit)))


def test_pieces_are_the_whole():
    rows = [{"a": "[,]" * (n % 40), "b": [n, {"c": '"\\' * (n % 7)}]} for n in range(5000)]
    for content in (
        json.dumps(rows),
        json.dumps(rows, indent=1),
        json.dumps(rows, ensure_ascii=False),
    ):
        assert len(content) > 3 * PIECE
        assert parse_json(f" {content}\n".encode()) == rows


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400), (b"[1,]", 400), (b"[,1]", 400), (b"[1]]", 400), (b"nan", 400), (b"NaN", 400),
        (b"[Infinity]", 400), (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), 400),
        (b'{"a": "' + b"x" * PIECE + b'"}', 413), (b'["' + b"x" * PIECE + b'"]', 413),
        (b"[" + b"1," * PIECE + b"1]", 413), (b"[" + b" " * (PIECE + 1) + b"]", 413),
        (b"[" + b'"abcdefgh",' * (MOST_ANSWERS - 1) + b"]", 400),
        (b"[" + b'"abcdefgh",' * (MOST_ANSWERS - 2) + b",1]", 400),
        (b"[" + b'"abcdefgh",' * (MOST_ANSWERS - 2) + b"1],[2]", 400),
        (b"[" + b'"abcdefgh",' * (MOST_ANSWERS - 2) + b"NaN]", 400),
        (b"[" + b'"abcdefgh",' * (MOST_ANSWERS - 2) + b'"]', 400),
        ("[1]".encode("utf-16"), 400), (b'["\xff"]', 400), (b"1" * 5000, 400),
    ],
)  # fmt: skip
def test_what_is_refused(content, status):
    with pytest.raises(RefusedError) as refused:
        parse_json(content)
    assert refused.value.status == status


def test_what_is_taken():
    assert parse_json(b"[" + b'"abcdefgh",' * (MOST_ANSWERS - 1) + b"1]")[-1] == 1
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST)
    assert parse_json(b"\xef\xbb\xbf [1] ") == [1]
    assert parse_json(b"{}") == {}
    assert parse_json(b"[" + b" " * PIECE + b"]") == []


def test_time_is_limited():
    with pytest.raises(RefusedError, match="too long"):
        parse_json(b"[" + b'"abcdefgh",' * 9000 + b"1]", seconds=0.0)
