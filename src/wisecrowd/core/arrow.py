"""Columns of every type as Arrow arrays, and tables as frames of the user's library.

Libraries of frames are imported only when needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import (
    DataError,
    MissingDependencyError,
    ParameterError,
    WisecrowdWarning,
)
from wisecrowd.core.messages.descriptions import Places, suggestion

_ROWS = 1 << 16
HALF = "half a character (a lone surrogate)"


def as_arrow(values: Any, role: str, *, ids: bool = False) -> Any:
    """Return ``values`` as a pyarrow array; raise an error for mixed or unsupported types.

    With ``ids``, an integer and the equal float among objects become one id, with a warning.
    """
    import pyarrow as pa

    if (ready := _ready(values)) is not None:
        return ready
    if isinstance(values, np.ma.MaskedArray):
        values = unmasked(values)
    array = values if isinstance(values, np.ndarray) else to_numpy(values)
    if array.ndim != 1:
        raise DataError(f"The {role} values have {array.ndim} dimensions; give one per annotation.")
    if array.dtype.kind == "T":
        return compact_texts(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        arrow = pa.array(array, from_pandas=True)
        if isinstance(arrow.type, pa.BaseExtensionType):
            raise pa.ArrowTypeError  # UUID objects, for instance, are neither hashed nor sorted
    except UnicodeError:
        row = next(i for i, x in enumerate(array.tolist(), 1) if is_broken(x))
        raise DataError(
            f"The {role} values hold {HALF}, first in row {row}; correct the text."
        ) from None
    except (pa.ArrowException, OverflowError):
        _refuse_mixed_types(array, role)
        kinds = sorted({type(x).__name__ for x in array[:1000].tolist()})
        if kinds == ["int"]:
            raise DataError(
                f"The {role} values hold integers of more than 64 bits; convert them to text."
            ) from None
        raise DataError(
            f"The {role} values have types {', '.join(kinds)} that cannot serve as ids; "
            "convert them to text or integers first."
        ) from None
    if array.dtype == object and not (is_text(arrow.type) or pa.types.is_boolean(arrow.type)):
        _refuse_mixed_types(array, role)  # Arrow may read True as 1 and text as bytes
        if ids and pa.types.is_floating(arrow.type):
            _warn_of_equal_numbers(array, role)
    return arrow


def compact_texts(texts: NDArray[Any]) -> Any:
    """Return an array of ``StringDType`` as Arrow text, with few Python strings at a time.

    Examples
    --------
    >>> compact_texts(np.array(["a", "b"], dtype=np.dtypes.StringDType())).to_pylist()
    ['a', 'b']
    """
    import pyarrow as pa

    starts = range(0, max(len(texts), 1), _ROWS)
    blocks = (texts[start : start + _ROWS].astype(object) for start in starts)
    return pa.chunked_array([pa.array(block, pa.string(), from_pandas=True) for block in blocks])


def _ready(values: Any) -> Any:
    """Return Arrow arrays, and lists of text without a copy to objects; None for anything else."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not isinstance(values, list) or not values or type(values[0]) is not str:
        return None
    try:
        arrow = pa.array(values)
    except (pa.ArrowException, UnicodeError, OverflowError):
        return None  # the general way names the row
    return arrow if is_text(arrow.type) else None


def is_broken(value: Any) -> bool:
    """Return whether a text cannot be written as UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def refuse_halves(texts: NDArray[Any], role: str, places: Places) -> None:
    """Refuse texts that cannot be written as UTF-8."""
    broken = np.array([is_broken(text) for text in texts.tolist()], dtype=bool)
    if broken.any():
        raise DataError(
            f"The {places.column(role)} column holds {HALF} in {places.where(broken)}; correct the "
            "text."
        )


def refuse_strange_types(arrow_type: Any, role: str) -> None:
    """Refuse values that are not text, numbers, booleans, dates or durations."""
    import pyarrow as pa

    kind = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null,
             pa.types.is_date, pa.types.is_timestamp, pa.types.is_duration, is_text,
             is_text_view)  # fmt: skip
    if not any(is_kind(kind) for is_kind in known):
        what = "bytes; decode them to text" if "binary" in str(kind) else (
            f"of type {kind}; convert them to text or integers")  # fmt: skip
        raise DataError(f"The {role} values are {what} first.")


def unmasked(values: Any) -> NDArray[Any]:
    """Return a masked array as objects, None where it is masked."""
    objects = np.array(np.ma.getdata(values), dtype=object)
    objects[np.ma.getmaskarray(values)] = None
    return objects


def to_numpy(values: Any) -> NDArray[Any]:
    """Return a column as a NumPy array, lists as objects."""
    if isinstance(values, list | tuple):
        # numpy would quietly turn [1, "a"] into text and [True, 2] into integers.
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return np.asarray(values)


def _refuse_mixed_types(array: NDArray[Any], role: str) -> None:
    kinds: dict[str, int] = {}
    for row, value in enumerate(array.tolist()):
        if not is_missing(value):
            kinds.setdefault(kind_of(value), row + 1)
    if set(kinds) == {"int", "float"} and _exact_as_floats(array):
        return
    if len(kinds) > 1:
        seen = ", ".join(f"{kind} in row {row}" for kind, row in sorted(kinds.items()))
        raise DataError(
            f"The {role} values mix types ({seen}); convert the whole column to one type, "
            "for instance to text."
        )


def _warn_of_equal_numbers(array: NDArray[Any], role: str) -> None:
    values = [x for x in array.tolist() if not is_missing(x)]
    floats = {x for x in values if kind_of(x) == "float"}
    both = sorted({int(x) for x in values if kind_of(x) == "int"} & floats)
    if both:
        warnings.warn(
            f"The {role} values hold {int(both[0])} and {float(both[0])}, which count as one; if "
            "they are different, convert the column to text.",
            WisecrowdWarning,
            stacklevel=6,
        )


def _exact_as_floats(array: NDArray[Any]) -> bool:
    return all(is_missing(x) or abs(x) < 2**53 for x in array.tolist())


def is_missing(value: Any) -> bool:
    """Return whether a value means "missing": None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    same = value == value
    return not isinstance(same, bool | np.bool_) or not bool(same)


def kind_of(value: Any) -> str:
    """Return the name of a value's type; Python and NumPy numbers have the same names."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    for kinds, name in (((int, np.integer), "int"), (str, "str"), ((float, np.floating), "float")):
        if isinstance(value, kinds):
            return name
    return type(value).__name__


def chunks_of(array: Any) -> Iterator[Any]:
    """Yield the chunks of an Arrow array, with one dictionary if it has any.

    Text is cut into pieces that fit into the processor's cache.
    """
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type) and array.num_chunks:
            array = array.unify_dictionaries()
        chunks = array.chunks
    else:
        chunks = [array]
    for chunk in chunks:
        if is_text(chunk.type) or is_text_view(chunk.type):
            yield from (chunk.slice(start, _ROWS) for start in range(0, len(chunk), _ROWS))
        else:
            yield chunk


def to_one_type(chunks: list[Any], role: str) -> list[Any]:
    """Cast chunks of several types (files, batches) to one type, if no value changes."""
    import pyarrow as pa

    plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in chunks]
    plain = [c.cast(pa.large_string()) if is_text(c.type) else c for c in plain]
    types = sorted({str(c.type) for c in plain if not pa.types.is_null(c.type)})
    numeric = all(t.startswith(("int", "uint", "float", "double")) for t in types)
    if len(types) > 1 and not numeric:
        raise DataError(
            f"The {role} values mix types ({', '.join(types)}) between parts of the data; convert "
            "the whole column to one type, for instance to text."
        )
    common = next((c.type for c in plain if not pa.types.is_null(c.type)), pa.null())
    if len(types) > 1:
        common = pa.int64() if all("int" in t for t in types) else pa.float64()
    try:
        return [c.cast(common) for c in plain]
    except pa.ArrowInvalid:
        raise DataError(
            f"The {role} values are too large for one numeric type ({', '.join(types)}) in all "
            "parts of the data; convert the column to text."
        ) from None


def indices_of(chunk: Any) -> NDArray[np.int32]:
    """Return the codes of a dictionary array, -1 for null."""
    indices = chunk.indices
    if not indices.null_count:
        return np.asarray(indices.to_numpy(), dtype=np.int32)
    codes = np.array(indices.fill_null(0).to_numpy(), dtype=np.int32)
    codes[np.asarray(indices.is_null().to_numpy(zero_copy_only=False))] = -1
    return codes


def first_valid_row(chunk: Any) -> int:
    """Return the first row that is not null."""
    return int(np.argmax(np.asarray(chunk.is_valid().to_numpy(zero_copy_only=False))))


def is_empty(column: Any) -> bool:
    """Return whether an Arrow column has no values, or blank text only."""
    import pyarrow.compute as pc

    if is_text(column.type):
        return bool(pc.all(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py() is not False)
    return bool(pc.all(pc.is_null(column, nan_is_null=True)).as_py())


def is_text(arrow_type: Any) -> bool:
    """Return whether values are text in one buffer."""
    import pyarrow as pa

    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def is_text_view(arrow_type: Any) -> bool:
    """Return whether values are chunked text."""
    import pyarrow as pa

    return bool(pa.types.is_string_view(arrow_type))


LIBRARIES = ("pandas", "polars", "pyarrow")  # in the order of preference


def frame_library(asked: str | None, given: str | None = None) -> str:
    """Return the library of a frame to be made.

    Parameters
    ----------
    asked : {"pandas", "polars", "pyarrow"} or None
        The user's choice.
    given : str or None
        The library of the input, used without a choice of the user. If the input was not a frame,
        the first installed of pandas, polars and pyarrow is used.

    Examples
    --------
    >>> frame_library("pyarrow"), frame_library(None, "pyarrow")
    ('pyarrow', 'pyarrow')
    """
    if asked is None:
        return given or next(name for name in LIBRARIES if find_spec(name) is not None)
    if asked not in LIBRARIES:
        raise ParameterError(
            f"library is {asked!r}{suggestion(asked, LIBRARIES)}; choose one of "
            f"{', '.join(LIBRARIES)}."
        )
    if find_spec(asked) is None:
        raise MissingDependencyError(
            f"{asked} is not installed; install it with pip install {asked}, or choose another "
            "library."
        )
    return asked


def as_frame(table: Mapping[str, Any], library: str | None) -> Any:
    """Convert columns through Arrow to a frame of the named library; None means pyarrow."""
    import narwhals as nw
    import pyarrow as pa

    arrow = pa.table({name: _column(values) for name, values in table.items()})
    if library in (None, "pyarrow"):
        return arrow
    backend: Any = library
    return nw.from_arrow(arrow, backend=backend).to_native()


def _column(values: Any) -> Any:
    import pyarrow as pa

    compact = isinstance(values, np.ndarray) and values.dtype.kind == "T"
    return compact_texts(values) if compact else pa.array(values)
