"""Turn columns of ids into int32 codes and a sorted vocabulary, without one object per row.

Arrow's hash table does the work per row; everything else touches distinct values only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError

MAX_IDS = np.iinfo(np.int32).max


class Encoded(NamedTuple):
    """Codes into a vocabulary; ``-1`` stands for a missing value."""

    codes: NDArray[np.int32]
    vocabulary: NDArray[Any]


def as_arrow(values: Any, role: str) -> Any:
    """Return ``values`` as a pyarrow array; mixed or unsupported types are a clear error."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), None, values.astype(object))
    array = values if isinstance(values, np.ndarray) else _to_numpy(values)
    if array.ndim != 1:
        raise DataError(f"The {role} values have {array.ndim} dimensions; give one per annotation.")
    if array.dtype.kind in "OT":
        array = np.asarray(array, dtype=object)
        _refuse_mixed_types(array, role)
    try:
        return pa.array(array, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        kinds = sorted({type(x).__name__ for x in array.ravel()[:1000]})
        raise DataError(
            f"The {role} values have types {', '.join(kinds)} that cannot serve as ids; "
            "convert them to text or integers first."
        ) from None


def _to_numpy(values: Any) -> NDArray[Any]:
    if isinstance(values, list | tuple):
        # numpy would quietly turn [1, "a"] into text and [True, 2] into integers.
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return np.asarray(values)


def _refuse_mixed_types(array: NDArray[Any], role: str) -> None:
    missing = _is_missing_object(array)
    kinds = np.array([_kind(x) for x in array[~missing].tolist()], dtype=object)
    distinct = sorted(set(kinds.tolist()))
    if len(distinct) > 1:
        rows = [int(np.flatnonzero(~missing)[np.argmax(kinds == kind)]) + 1 for kind in distinct]
        seen = ", ".join(f"{kind} in row {row}" for kind, row in zip(distinct, rows, strict=True))
        raise DataError(
            f"The {role} values mix types ({seen}); convert the whole column to one type, "
            "for instance to text."
        )


def _kind(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "bool"
    for kind, name in ((int, "int"), (np.integer, "int"), (str, "str"), (float, "float")):
        if isinstance(value, kind):
            return name
    return type(value).__name__


def _is_missing_object(array: NDArray[Any]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.array([x is None or x != x for x in array.tolist()], dtype=bool)


def encode(values: Any, role: str) -> Encoded:
    """Encode a column of ids; the vocabulary is sorted and so independent of the row order.

    Text that is made of canonical integers only ("0", "1", ... "10") sorts by value, other text by
    code point. Missing values and empty text become code ``-1``.
    """
    import pyarrow as pa

    codes, distinct = _dictionary(as_arrow(values, role))
    if pa.types.is_floating(distinct.type):
        numbers = distinct.to_numpy(zero_copy_only=False)
        missing = np.isnan(numbers)
        if np.isinf(numbers).any():
            raise DataError(f"The {role} values contain infinity; ids must be finite.")
        whole = numbers[~missing]
        if len(whole) and np.all(whole == np.round(whole)) and np.abs(whole).max() < 2**53:
            numbers = np.where(missing, 0, numbers).astype(np.int64)  # 1.0 once was 1
    elif _is_text(distinct.type):
        numbers = None
        missing = np.asarray(_blank(distinct))
    else:
        numbers = distinct.to_numpy(zero_copy_only=False)
        missing = np.zeros(len(numbers), dtype=bool)
    order = _text_order(distinct) if numbers is None else np.argsort(numbers, kind="stable")
    order = order[~missing[order]]
    if len(order) > MAX_IDS:
        raise DataError(f"There are {len(order)} distinct {role} values; at most {MAX_IDS} fit.")
    new_code = np.full(len(distinct) + 1, -1, dtype=np.int32)  # the last one serves code -1
    used = np.zeros(len(distinct) + 1, dtype=bool)
    used[codes] = True
    order = order[used[order]]  # a category nobody used is no id
    new_code[order] = np.arange(len(order), dtype=np.int32)
    if numbers is None:
        vocabulary = distinct.take(pa.array(order)).to_numpy(zero_copy_only=False).astype(object)
    else:
        vocabulary = numbers[order]
    return Encoded(new_code[codes], np.array(vocabulary))


def _dictionary(array: Any) -> tuple[NDArray[np.int32], Any]:
    """Return (codes with -1 for null, distinct values) of an Arrow array, chunked or not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type):
            array = array.unify_dictionaries()
        else:
            array = array.dictionary_encode()
        chunks = array.chunks
        if not chunks:
            return np.empty(0, np.int32), pa.array([], array.type.value_type)
        codes = np.concatenate([_indices(chunk) for chunk in chunks])
        return codes, chunks[0].dictionary
    if not pa.types.is_dictionary(array.type):
        if pa.types.is_nested(array.type):
            raise DataError("A column holds lists or records; give one plain value per annotation.")
        array = pc.dictionary_encode(array)
    return _indices(array), array.dictionary


def _indices(chunk: Any) -> NDArray[np.int32]:
    indices = chunk.indices
    if indices.null_count:
        indices = indices.fill_null(-1) if indices.type != "uint64" else indices.cast("int64")
    return indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)


def _is_text(arrow_type: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(arrow_type) for check in checks)


def _blank(distinct: Any) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    blank = pc.equal(pc.utf8_trim_whitespace(distinct), "")
    return np.asarray(blank.fill_null(True).to_numpy(zero_copy_only=False), dtype=bool)


def _text_order(distinct: Any) -> NDArray[np.int64]:
    """Sort text by value if all of it is canonical integers, else by code point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(distinct, pa.int64())
        if pc.all(pc.equal(pc.cast(numbers, distinct.type), distinct)).as_py() is not False:
            return np.asarray(np.argsort(numbers.to_numpy(zero_copy_only=False), kind="stable"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass  # not integers: the ordinary case
    return np.asarray(pc.sort_indices(distinct).to_numpy(zero_copy_only=False), dtype=np.int64)


def lookup(values: Any, vocabulary: NDArray[Any]) -> NDArray[np.int32]:
    """Return the code of each value in ``vocabulary``, ``-1`` where it is unknown."""
    position = {value: code for code, value in enumerate(vocabulary.tolist())}
    asked = _to_numpy(values).tolist() if not isinstance(values, np.ndarray) else values.tolist()
    kinds = {_kind(x) for x in vocabulary[:1].tolist()}
    found = [
        # 1 == True == 1.0 for Python: the types must agree as well.
        position.get(x, -1) if not kinds or _kind(x) in kinds else -1
        for x in asked
    ]
    return np.array(found, dtype=np.int32)
