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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.storage.atomic import atomic_write
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


def _pieces(value: object) -> Iterator[bytes | memoryview]:
    """Yield the content of a file of values."""
    encoder = _Encoder()
    body = encoder.encode(value, "value")
    places, start = {}, 0
    arrays = {name: np.ascontiguousarray(array) for name, array in encoder.arrays.items()}
    for name, array in arrays.items():
        places[name] = [start, array.dtype.str, list(array.shape)]
        start += -(-array.nbytes // _ALIGNED) * _ALIGNED
    head = json.dumps({"value": body, "arrays": places}, allow_nan=False).encode()
    head += b" " * (-(len(head) + 1) % _ALIGNED) + b"\n"
    yield head
    for array in arrays.values():
        yield array.reshape(-1).view(np.uint8).data
        yield b"\0" * (-array.nbytes % _ALIGNED)


def digest_of_values(value: object) -> str:
    """Return the SHA-256 of the file that values would make."""
    digest = hashlib.sha256()
    for piece in _pieces(value):
        digest.update(piece)
    return digest.hexdigest()


def write_values(path: Path, value: object) -> None:
    """Write values to a file that appears when it is complete."""
    with atomic_write(path, "wb") as file:
        for piece in _pieces(value):
            file.write(piece)


def read_values(path: Path, package: str = _PACKAGE) -> Any:
    """Return the values of a file; their arrays are mapped and may be changed in memory.

    Parameters
    ----------
    path : Path
    package : str
        A package besides wisecrowd whose classes may occur.
    """
    try:
        with path.open("rb") as file:
            line = file.readline()
            size = path.stat().st_size
        head = json.loads(line)
        places = head["arrays"]

        def load(name: str) -> NDArray[Any]:
            start, dtype, shape = places[name]
            kind, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
            end = len(line) + start + count * kind.itemsize
            if kind.hasobject or start < 0 or count < 0 or end > size:
                raise DataError(f"the array {name} is cut off")
            if count == 0:
                return np.empty(shape, kind)
            mapped = np.memmap(path, kind, "c", len(line) + start, tuple(shape))
            return mapped.view(np.ndarray)

        return _Decoder(load, package).decode(head["value"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ImportError) as error:
        raise DataError(f"{path} is damaged ({error}); remove it and start again.") from error


def require_values(value: object) -> None:
    """Refuse a model that cannot be written, such as one with a user's own object in it."""
    try:
        _Encoder().encode(value, "model")
    except ParameterError as error:
        raise ParameterError(
            f"This model cannot be sent to shards: {error} Choose a prior of wisecrowd."
        ) from None
