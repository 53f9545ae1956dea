"""A model's state as JSON plus named arrays, and back.

JSON objects always carry a ``$type``, so no value can be mistaken for another: tuples, mappings,
floats that are not finite, arrays, object arrays of ids and CSR matrices come back as they were.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import is_text_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPE = "$type"
_CSR_PARTS = ("data", "indices", "indptr")


class StateEncoder:
    """Turns values into JSON and collects their arrays.

    Attributes
    ----------
    arrays : dict
        The arrays met so far, under names that are safe as file names.

    Examples
    --------
    >>> encoder = StateEncoder()
    >>> encoder.encode({"tol": 1e-6}, "params")
    {'$type': 'dict', 'items': [['tol', 1e-06]]}
    >>> encoder.encode(np.eye(2), "confusion_")
    {'$type': 'array', 'name': 'confusion_', 'dtype': '<f8', 'shape': [2, 2]}
    >>> list(encoder.arrays)
    ['confusion_']
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._taken: set[str] = set()

    def encode(self, value: object, where: str) -> Any:
        """Return the JSON form of a value; ``where`` names it in errors and file names."""
        if isinstance(value, np.generic):
            # item() turns some dates into plain integers: what has no JSON form of its own stays
            # an array without axes.
            value = value.item() if value.dtype.kind in "biufU" else np.asarray(value)
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {_TYPE: "float", "value": repr(value)}
        if isinstance(value, list):
            return self._encode_all(value, where)
        if isinstance(value, tuple):
            return {_TYPE: "tuple", "items": self._encode_all(value, where)}
        if isinstance(value, Mapping):
            pairs = [
                [self.encode(key, where), self.encode(item, f"{where}.{key}")]
                for key, item in value.items()
            ]
            return {_TYPE: "dict", "items": pairs}
        if isinstance(value, np.ndarray):
            return self._encode_array(value, where)
        if _is_csr(value):
            return self._encode_csr(value, where)
        raise _not_storable(value, where)

    def _encode_all(self, values: list[Any] | tuple[Any, ...], where: str) -> list[Any]:
        # Long lists of ids are nearly always of one plain type, which needs no work per element.
        if {type(value) for value in values} <= {str, int, bool}:
            return list(values)
        return [self.encode(value, where) for value in values]

    def _encode_array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if is_text_ids(array):
            items = self._encode_all(array.ravel().tolist(), where)
            return {_TYPE: "ids", "shape": list(array.shape), "items": items}
        if array.dtype.hasobject or array.dtype.kind not in "biufcUSMm":
            raise _not_storable(array, where)
        name = self._file_name(where)
        self.arrays[name] = array
        shape = list(array.shape)
        return {_TYPE: "array", "name": name, "dtype": array.dtype.str, "shape": shape}

    def _encode_csr(self, matrix: Any, where: str) -> dict[str, Any]:
        parts = {part: self.encode(getattr(matrix, part), f"{where}.{part}") for part in _CSR_PARTS}
        container, shape = type(matrix).__name__, list(matrix.shape)
        return {_TYPE: "csr", "container": container, "shape": shape, **parts}

    def _file_name(self, where: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]+", "-", where)[:80]
        name, copy = stem, 1
        # Compared without case: some file systems do not tell A from a.
        while name.lower() in self._taken:
            copy += 1
            name = f"{stem}-{copy}"
        self._taken.add(name.lower())
        return name


class StateDecoder:
    """Turns the JSON of `StateEncoder` back into values.

    Parameters
    ----------
    load_array : callable
        Returns the array of a name; the decoder checks that its dtype and shape are those written.
    """

    def __init__(self, load_array: Callable[[str], NDArray[Any]]) -> None:
        self._load_array = load_array

    def decode(self, value: Any) -> Any:
        """Return the value of its JSON form.

        Raises
        ------
        DataError, KeyError, TypeError, ValueError, RecursionError
            If the JSON is not what the encoder writes; callers name the file.
        """
        if isinstance(value, list):
            return self._decode_all(value)
        if not isinstance(value, dict):
            return value
        kind = value[_TYPE]
        if kind == "float":
            return float(value["value"])
        if kind == "tuple":
            return tuple(self._decode_all(value["items"]))
        if kind == "dict":
            return {self.decode(key): self.decode(item) for key, item in value["items"]}
        if kind == "ids":
            return self._decode_ids(value)
        if kind == "array":
            return self._decode_array(value)
        if kind == "csr":
            return self._decode_csr(value)
        raise DataError(f"unknown type {kind!r}")

    def _decode_all(self, values: list[Any]) -> list[Any]:
        if not isinstance(values, list):
            raise DataError(f"a list was expected, not {values!r}")
        if {type(value) for value in values} <= {str, int, bool}:
            return values
        return [self.decode(value) for value in values]

    def _decode_ids(self, value: dict[str, Any]) -> NDArray[Any]:
        items = self._decode_all(value["items"])
        ids = np.empty(len(items), dtype=object)
        for position, item in enumerate(items):  # one by one: a tuple is an id, not an axis
            ids[position] = item
        return ids.reshape(tuple(value["shape"]))

    def _decode_array(self, value: dict[str, Any]) -> NDArray[Any]:
        array = self._load_array(value["name"])
        if array.dtype.str != value["dtype"] or list(array.shape) != value["shape"]:
            raise DataError(
                f"array {value['name']} is {array.dtype.str} {list(array.shape)}, "
                f"not {value['dtype']} {value['shape']}"
            )
        return array

    def _decode_csr(self, value: dict[str, Any]) -> Any:
        from scipy import sparse

        containers = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}
        parts = tuple(self.decode(value[part]) for part in _CSR_PARTS)
        matrix = containers[value["container"]](parts, shape=tuple(value["shape"]))
        # Compiled code trusts these indices: a wrong one would read foreign memory.
        matrix.check_format(full_check=True)
        return matrix


def _is_csr(value: object) -> bool:
    is_sparse = type(value).__module__.startswith("scipy.sparse")
    return is_sparse and getattr(value, "format", None) == "csr"


def _not_storable(value: object, where: str) -> ParameterError:
    kind = (
        f"array of dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    )
    return ParameterError(
        f"Cannot save {where}: it holds a value of type {kind}; turn it into numbers or text first."
    )
