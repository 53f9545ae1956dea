"""Models, parameters and statistics as one file each, whose arrays are mapped into memory.

A file has a line of JSON and then the arrays, one after the other. Frozen dataclasses and
NamedTuples are written as ``module:Class`` with their fields, so nothing is pickled and no code is
stored. Another process gets the same bits.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.storage.atomic import clear_write_errors
from wisecrowd.storage.state_codec import StateDecoder, StateEncoder

_ALIGNED = 64  # bytes
_PACKAGE = "wisecrowd"


class _Encoder(StateEncoder):
    """Encoder that also knows dataclasses and NamedTuples."""

    def encode(self, value: object, where: str) -> Any:
        fields = _fields_of(value)
        if fields is None:
            return super().encode(value, where)
        items = {name: self.encode(getattr(value, name), f"{where}.{name}") for name in fields}
        kind = type(value)
        return {"$type": "object", "class": f"{kind.__module__}:{kind.__qualname__}", **items}


class _Decoder(StateDecoder):
    """Decoder of :class:`_Encoder`; classes come from wisecrowd or from one more package."""

    def __init__(self, load_array: Any, package: str) -> None:
        super().__init__(load_array)
        self._packages = (_PACKAGE, package)

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("$type") != "object":
            return super().decode(value)
        module, _, name = value["class"].partition(":")
        if module.split(".")[0] not in self._packages:
            raise DataError(f"{module} is not a module of {' or '.join(self._packages)}")
        found = getattr(importlib.import_module(module), name, None)
        if not isinstance(found, type) or not (
            dataclasses.is_dataclass(found) or hasattr(found, "_fields")
        ):
            raise DataError(f"{value['class']} is not a class of values")
        items = {key: item for key, item in value.items() if key not in ("$type", "class")}
        return found(**{key: self.decode(item) for key, item in items.items()})


def _fields_of(value: object) -> list[str] | None:
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.init]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(value._fields)
    return None


def _encoded(value: object) -> tuple[bytes, list[NDArray[Any]]]:
    """Return the line of JSON and the arrays of a file of values."""
    encoder = _Encoder()
    body = encoder.encode(value, "value")
    places, start, digest = {}, 0, hashlib.sha256()
    arrays = {name: np.ascontiguousarray(array) for name, array in encoder.arrays.items()}
    for name, array in arrays.items():
        places[name] = [start, array.dtype.str, list(array.shape)]
        start += -(-array.nbytes // _ALIGNED) * _ALIGNED
        for piece in _padded(array):
            digest.update(piece)
    facts = {"value": body, "arrays": places, "sha256": digest.hexdigest()}
    head = json.dumps(facts, allow_nan=False).encode()
    return head + b" " * (-(len(head) + 1) % _ALIGNED) + b"\n", list(arrays.values())


def _padded(array: NDArray[Any]) -> tuple[memoryview, bytes]:
    return array.reshape(-1).view(np.uint8).data, b"\0" * (-array.nbytes % _ALIGNED)


def digest_of_values(value: object) -> str:
    """Return a digest that the same values have, and no others."""
    return hashlib.sha256(_encoded(value)[0]).hexdigest()


def write_values(path: Path, value: object) -> None:
    """Write values to a file that appears when it is complete.

    The file is not forced to the disk, which would cost more than a pass over a small pack. After
    a power failure its digest shows whether it is complete.
    """
    head, arrays = _encoded(value)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with clear_write_errors(path):
        try:
            with temporary.open("wb") as file:
                file.write(head)
                for array in arrays:
                    file.writelines(_padded(array))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def read_values(path: Path, package: str = _PACKAGE, *, verify: bool = False) -> Any:
    """Return the values of a file; their arrays are mapped and may be changed in memory.

    Parameters
    ----------
    path : Path
    package : str
        A package besides wisecrowd whose classes may occur.
    verify : bool
        Compare the digest of the arrays.
    """
    try:
        with path.open("rb") as file:
            line = file.readline()
            size = path.stat().st_size
            head = json.loads(line)
            if verify and hashlib.file_digest(file, "sha256").hexdigest() != head["sha256"]:
                raise DataError("its digest differs")

        def map_values(kind: np.dtype[Any], start: int, shape: tuple[int, ...]) -> NDArray[Any]:
            return np.memmap(path, kind, "c", len(line) + start, shape).view(np.ndarray)

        return _decoded(head, size - len(line), map_values, package)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ImportError) as error:
        raise DataError(f"{path} is damaged ({error}); remove it and start again.") from error


def values_to_bytes(value: object, most: int) -> bytes | None:
    """Return values as the content of a file, or None if it would have more bytes than ``most``.

    Examples
    --------
    >>> content = values_to_bytes((2.5, np.arange(3)), 1000)
    >>> values_from_bytes(content)
    (2.5, array([0, 1, 2]))
    >>> values_to_bytes(np.zeros(10**6), 1000) is None
    True
    """
    head, arrays = _encoded(value)
    if len(head) + sum(array.nbytes + _ALIGNED for array in arrays) > most:
        return None
    return b"".join([head, *(piece for array in arrays for piece in _padded(array))])


def values_from_bytes(content: bytes, package: str = _PACKAGE) -> Any:
    """Return the values that are the content of a file."""
    line, _, body = content.partition(b"\n")

    def copy_values(kind: np.dtype[Any], start: int, shape: tuple[int, ...]) -> NDArray[Any]:
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(body, kind, count, start).reshape(shape).copy()

    return _decoded(json.loads(line), len(body), copy_values, package)


def _decoded(
    head: Any,
    size: int,
    take: Callable[[np.dtype[Any], int, tuple[int, ...]], NDArray[Any]],
    package: str,
) -> Any:
    """Return values from the line of JSON; ``take`` returns the array at a place."""
    places = head["arrays"]

    def load(name: str) -> NDArray[Any]:
        start, dtype, shape = places[name]
        kind, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        if kind.hasobject or start < 0 or count < 0 or start + count * kind.itemsize > size:
            raise DataError(f"the array {name} is cut off")
        return take(kind, start, tuple(shape)) if count else np.empty(shape, kind)

    return _Decoder(load, package).decode(head["value"])
