"""Columns of measured values: weights, costs, durations, times."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_arrow
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Floats

# Beyond these limits rounding errors dominate a posterior.
LARGEST_TOTAL, SMALLEST_WEIGHT = 1e100, 1e-9
_CURRENCIES = "$€£¥"
_CURRENCY = f"{_CURRENCIES} \t"
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def as_weights(values: Any, places: Places) -> Floats:
    """Return weights as floats; each must be finite and at least 0."""
    weights = _numbers(values, "weight", places)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        raise DataError(
            f"The {places.column('weight')} column is negative, infinite or missing in "
            f"{places.where(bad)}; weights must be finite and at least 0."
        )
    with np.errstate(over="ignore"):
        total, largest = weights.sum(), weights.max(initial=0.0)
    if len(weights) and not (total <= LARGEST_TOTAL and largest >= SMALLEST_WEIGHT):
        size = "all zero" if largest == 0 else f"all at most {largest:.3g}, {total:.3g} in total"
        raise DataError(
            f"The {places.column('weight')} values are {size}: they say how often a row counts; "
            "scale them to numbers around 1."
        )
    return weights


EMPTY = "correct it or leave it empty"


def as_numbers(values: Any, role: str, places: Places, remedy: str = EMPTY) -> Floats:
    """Return a column of numbers, or of text such as ``$0.05``, as floats; NaN where missing.

    ``remedy`` is what an error tells the user to do.
    """
    return _finite(_numbers(values, role, places, remedy), role, places, remedy)


def _finite(numbers: Floats, role: str, places: Places, remedy: str = EMPTY) -> Floats:
    """Refuse infinite numbers; an infinite time would always be the last repeat."""
    bad = np.isinf(numbers)
    if bad.any():
        raise DataError(
            f"The {places.column(role)} column is infinite in {places.where(bad)}; {remedy}."
        )
    return numbers


def _numbers(values: Any, role: str, places: Places, remedy: str = EMPTY) -> Floats:
    import pyarrow as pa

    array = _one_array(values, places.column(role))
    if pa.types.is_duration(array.type):
        return _floats(array.cast(pa.int64())) / _PER_SECOND[array.type.unit]
    if not _is_text(array.type):
        try:
            return _floats(array)
        except pa.ArrowException:
            raise DataError(
                f"The {places.column(role)} column has values of type {array.type}; it must hold "
                "numbers."
            ) from None
    return _parse_text(array, role, places, remedy)


def _parse_text(array: Any, role: str, places: Places, remedy: str) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = array.cast(pa.large_string())
    _refuse_currencies(array, role, places)
    text = pc.utf8_trim(array, _CURRENCY)
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    try:
        return _floats(text)
    except pa.ArrowInvalid:
        bad = np.array([not _is_number(x) for x in text.to_pylist()], dtype=bool)
    row = int(np.argmax(bad))
    raise DataError(
        f"The {places.column(role)} column holds {array[row].as_py()!r}, which is not a number, in "
        f"{places.where(bad)}; {remedy}."
    )


def _refuse_currencies(texts: Any, role: str, places: Places) -> None:
    """Refuse amounts of money in several currencies: their numbers cannot be compared."""
    import pyarrow.compute as pc

    having = {sign: pc.match_substring(texts, sign) for sign in _CURRENCIES}
    found = [sign for sign, has in having.items() if pc.any(has).as_py()]
    if len(found) > 1:
        first = [having[sign].index(True).as_py() for sign in found[:2]]
        where = " and ".join(
            f"{texts[row].as_py()!r} in {places.rows(np.array([row]))}" for row in sorted(first)
        )
        raise DataError(
            f"The {places.column(role)} column holds amounts in several currencies, {where}; "
            "convert them to one."
        )


def _is_number(text: str | None) -> bool:
    import pyarrow as pa

    try:
        pa.scalar(text, pa.large_string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _floats(array: Any) -> Floats:
    import pyarrow as pa

    # Nanoseconds since 1970 have more digits than a float; the nearest float is precise enough.
    numbers = array.cast(pa.float64(), safe=not pa.types.is_integer(array.type))
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def as_timestamps(values: Any, places: Places) -> NDArray[Any]:
    """Return times as ``datetime64[us]`` (in UTC), or as floats if they are plain numbers.

    Missing times are NaT or NaN.
    """
    import pyarrow as pa

    array = _one_array(values, places.column("timestamp"))
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return _times(array)
    if not _is_text(array.type):
        return as_numbers(array, "timestamp", places)
    array = array.cast(pa.large_string())
    try:
        numbers = _numbers(array, "timestamp", places)
    except DataError:
        pass  # not plain numbers: dates
    else:
        return _finite(numbers, "timestamp", places)
    for zone in (None, "UTC"):
        try:
            return _times(array.cast(pa.timestamp("us", tz=zone)))
        except pa.ArrowInvalid:
            continue
    return _parse_times(encode(array, "timestamp"), places)


def _times(array: Any) -> NDArray[Any]:
    import pyarrow as pa

    zone = getattr(array.type, "tz", None)
    times = array.cast(pa.timestamp("us", tz=zone), safe=False)
    return np.array(times.to_numpy(zero_copy_only=False), dtype="datetime64[us]")


def _parse_times(column: Encoded, places: Places) -> NDArray[Any]:
    times = np.full(len(column.vocabulary) + 1, np.datetime64("NaT", "us"))
    for code, text in enumerate(column.vocabulary.tolist()):
        try:
            moment = datetime.datetime.fromisoformat(text.strip())
        except ValueError:
            raise DataError(
                f"The {places.column('timestamp')} column holds {text!r} in "
                f"{places.where(column.codes == code)}; write times like 2024-05-31T14:00:00Z or "
                "as numbers."
            ) from None
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        times[code] = np.datetime64(moment, "us")
    return times[column.codes]


def as_texts(values: Any, role: str, places: Places) -> NDArray[Any]:
    """Return a column of names, with one object per distinct value and None where missing."""
    column = encode(values, places.column(role))
    vocabulary = np.array([*column.vocabulary.tolist(), None], dtype=object)
    return np.asarray(vocabulary[column.codes])


def _one_array(values: Any, called: str) -> Any:
    import pyarrow as pa

    array = as_arrow(values, called)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # no chunk, or too large for one
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def _is_text(arrow_type: Any) -> bool:
    import pyarrow as pa

    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(arrow_type) for check in checks)


LARGEST = 1e100  # squares of larger numbers, and their sums, may overflow


SMALLEST_SPREAD = 1e-100  # squares of smaller differences vanish


def finite_numbers(values: Any, role: str, places: Places) -> NDArray[np.float64]:
    """Return a column of finite numbers; missing and very large values are errors."""
    classes = option("type", "labels")
    numbers = as_numbers(
        values, role, places, f"correct it, or give {classes} if the labels are classes"
    )
    missing = np.isnan(numbers)
    if missing.any():
        raise DataError(
            f"The {places.column(role)} column is empty or NaN in {places.where(missing)}; fill it "
            "in or remove the row."
        )
    large = np.abs(numbers) > LARGEST
    if large.any():
        raise DataError(
            f"The {places.column(role)} column holds numbers beyond {LARGEST:g} in "
            f"{places.where(large)}; correct them, or change the unit."
        )
    return numbers


def require_spread(least: float, largest: float, column: str) -> None:
    """Refuse numbers so close to each other that squares of differences are lost."""
    if 0 < largest - least < SMALLEST_SPREAD:
        raise DataError(
            f"The numbers of the {column} column differ by less than {SMALLEST_SPREAD:g}; change "
            "the unit."
        )
