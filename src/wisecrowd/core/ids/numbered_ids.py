"""Numbered ids such as ``task-0012345`` or ``img7.png``: a number with fixed text around it.

Most exports number their tasks and workers. Such ids are stored as integers, which need no hash
table; the text is rebuilt for distinct ids only.
"""

# Measured with benchmarks/speed/ingest.py on 10^7 rows in random order: Arrow's dictionary_encode
# alone, without this module, takes 2.4 times the time and 1.5 times the memory.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_DIGITS = 16
_SAMPLE = 200
# The smallest number with n digits and no leading zero.
_SMALLEST = np.array([0, 0] + [10 ** (n - 1) for n in range(2, _MAX_DIGITS + 1)], dtype=np.int64)


class Shape(NamedTuple):
    """The text around the number."""

    prefix: bytes
    suffix: bytes


BARE = Shape(b"", b"")


class Numbers(NamedTuple):
    """Numbers of a chunk of ids, their number of digits, and whether none starts with 0."""

    values: NDArray[np.integer[Any]]
    fewest_digits: int
    most_digits: int
    canonical: bool


def find_shape(chunk: Any) -> Shape | None:
    """Return the text around the numbers in a sample of an Arrow text array, or None."""
    n = len(chunk)
    if n == 0 or chunk.null_count:
        return None
    sample = chunk.take(np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)))
    texts = [str(text).encode() for text in sample.to_pylist()]
    prefix = _common_prefix(texts).rstrip(b"0123456789")
    rests = [text[len(prefix) :][::-1] for text in texts]
    suffix = _common_prefix(rests)[::-1].lstrip(b"0123456789")
    numbers = [rest[len(suffix) :] for rest in rests]
    if not all(number.isdigit() and len(number) <= _MAX_DIGITS for number in numbers):
        return None
    return Shape(prefix, suffix)


def _common_prefix(texts: list[bytes]) -> bytes:
    first, last = min(texts), max(texts)
    size = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return first[:size] if size is not None else first  # start of the last text


def parse(chunk: Any, shape: Shape) -> Numbers | None:
    """Return the numbers in an Arrow text array, or None if a value has another form."""
    import pyarrow.compute as pc

    if chunk.null_count:
        return None
    digits = pc.binary_length(chunk).to_numpy() - len(shape.prefix) - len(shape.suffix)
    fewest, most = int(digits.min()), int(digits.max())
    if fewest < 1 or most > _MAX_DIGITS:
        return None
    read = _equally_long if fewest == most else _any_length
    values = read(chunk, shape, most)
    if values is None:
        return None
    canonical = bool(np.all(values >= (_SMALLEST[digits] if fewest < most else _SMALLEST[most])))
    return Numbers(values, fewest, most, canonical)


def _any_length(chunk: Any, shape: Shape, most: int) -> NDArray[np.integer[Any]] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    prefix, suffix = shape
    for has_shape in (pc.starts_with(chunk, prefix.decode()), pc.ends_with(chunk, suffix.decode())):
        if has_shape.false_count:
            return None
    stop = -len(suffix) or len(prefix) + most
    inside = pc.binary_slice(chunk.cast(pa.large_binary()), len(prefix), stop)
    inside = inside.cast(pa.large_string())
    if pc.ascii_is_decimal(inside).false_count:
        return None
    return np.asarray(inside.cast(pa.int32() if most < 10 else pa.int64()).to_numpy())


def _equally_long(chunk: Any, shape: Shape, n_digits: int) -> NDArray[np.integer[Any]] | None:
    """Read texts of one length, position by position.

    With :func:`_any_length` instead, the whole ingest takes 1.15 times as long.
    """
    import pyarrow as pa

    prefix, suffix = shape
    expected = np.frombuffer(prefix + b"0" * n_digits + suffix, np.uint8)
    limit = np.array([0] * len(prefix) + [9] * n_digits + [0] * len(suffix))
    n, length = len(chunk), len(expected)
    _, offsets, data = chunk.buffers()
    wide = pa.types.is_large_string(chunk.type)
    start = int(np.frombuffer(offsets, np.int64 if wide else np.int32)[chunk.offset])
    text = np.frombuffer(data, np.uint8, n * length, start).reshape(n, length)
    positions = np.array(text.T, order="C")  # a copy: changed below
    positions ^= expected[:, None]  # 0 to 9 for the digits alone, because "0" is 0x30
    if (positions.max(axis=1) > limit).any():
        return None
    values: NDArray[Any] = np.zeros(n, dtype=np.int32 if n_digits < 10 else np.int64)
    for digit in positions[len(prefix) : len(prefix) + n_digits]:
        values *= 10
        values += digit
    return values


def texts_of(values: NDArray[np.integer[Any]], shape: Shape, width: int | None) -> Any:
    """Return the ids as an Arrow text array; ``width`` pads with zeros, None does not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.cast(pa.array(values), pa.string())
    if width is not None:
        numbers = pc.utf8_lpad(numbers, width, "0")
    if shape == BARE:
        return numbers
    prefix, suffix = shape.prefix.decode(), shape.suffix.decode()
    return pc.binary_join_element_wise(prefix, numbers, suffix, "")
