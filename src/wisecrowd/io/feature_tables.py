"""Features from the columns of a table: numbers, lists of numbers, or text to embed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_text, is_text_view
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.features import as_numbers, n_rows_of
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.cells import may_have_commas, points_in
from wisecrowd.io.platforms.hugging_face import class_names

ID_COLUMNS = ("task", "task_id", "item", "item_id", "id")
TEXT_COLUMNS = ("text", "sentence", "content", "document")
Embed = Callable[[list[str]], Any]


class Columns(NamedTuple):
    """Features of a table, the ids of their rows if it has them, and what was chosen."""

    X: Any
    ids: NDArray[Any] | None
    note: str


def table_features(
    table: Any, name: str, columns: Sequence[str] | None = None, embed: Embed | None = None
) -> Columns:
    """Return the features and ids of a table.

    Without ``columns``, a column of lists of numbers is taken alone; otherwise all columns besides
    the ids must be numbers.

    Parameters
    ----------
    table : pyarrow.Table
    name : str
        What messages call it.
    columns : sequence of str, optional
        Columns with the features, or the column with the text.
    embed : callable, optional
        Turns a list of texts into their features.
    """
    names = list(table.column_names)
    own = next((one for one in names if one.lower() in ID_COLUMNS), None)
    others = [one for one in names if one != own]
    if not others:
        raise DataError(f"{name} has no column of features besides {own!r}.")
    ids = None if own is None else _ids(table[own], own, name)
    if columns is not None:
        _require_columns(columns, names, name)
    if embed is not None:
        chosen = [_text_column(table, others, name, columns)]
        X = embedded(_texts(table[chosen[0]], chosen[0], name), embed, name)
    else:
        chosen = list(columns) if columns is not None else _feature_columns(table, others)
        X = _stacked([_numbers(_with_points(table, one, name), one, name) for one in chosen])
    unused = [one for one in others if one not in chosen]
    note = f"features of {name}: {_listed(chosen)}; not used: {_listed(unused)}" if unused else ""
    return Columns(X, ids, note)


def _require_columns(columns: Sequence[str], names: list[str], name: str) -> None:
    if isinstance(columns, str) or not columns:
        raise ParameterError("columns must be a list of names; give one or more.")
    for one in columns:
        if one not in names:
            raise ParameterError(
                f"{name} has no column {one!r}{suggestion(one, names)}; it has {_listed(names)}."
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# ------------------------------------------------------------------------------------------- text


def _text_column(table: Any, names: list[str], name: str, columns: Sequence[str] | None) -> str:
    if columns is not None:
        if len(columns) > 1:
            raise ParameterError(
                f"Texts to embed are one column, and {_listed(columns)} are {len(columns)}; name "
                "one."
            )
        return columns[0]
    texts = [one for one in names if is_text(table[one].type) or is_text_view(table[one].type)]
    usual = [one for one in texts if one.lower() in TEXT_COLUMNS]
    found = usual if len(usual) == 1 else texts
    if len(found) != 1:
        which = f"{_listed(found)} may be it" if found else f"it has {_listed(names)}"
        raise DataError(
            f"Which column of {name} has the texts to embed is not clear: {which}; give "
            + for_reader("columns=[NAME].", "--feature-columns NAME.")
        )
    return found[0]


def _texts(column: Any, column_name: str, name: str) -> list[str]:
    values: list[Any] = column.to_pylist()
    for row, value in enumerate(values):
        if not isinstance(value, str):
            what = "nothing" if value is None else repr(value)
            raise DataError(
                f"Column {column_name!r} of {name} holds {what} in row {row} (counted from 0) and "
                "not a text; correct it, or name another column."
            )
    return values


def embedded(texts: list[str], embed: Embed, name: str) -> Any:
    """Return the features of texts: the array, or sparse matrix, that ``embed`` makes of them."""
    try:
        result = embed(texts)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise DataError(
            f"The embed function failed on the {len(texts)} texts of {name}: "
            f"{type(error).__name__}: {reason}; correct the function or the texts."
        ) from error
    if hasattr(result, "detach"):  # a tensor, perhaps on another device
        result = result.detach().cpu()
    try:
        X = as_numbers(result)
    except (TypeError, DataError):
        raise DataError(
            f"The embed function returned a {type(result).__name__} that is not numbers; it must "
            "return an array with one row per text."
        ) from None
    if X.ndim < 2 or X.shape[0] != len(texts):
        raise DataError(
            f"The embed function returned shape {X.shape} for the {len(texts)} texts of {name}; it "
            "must return an array with one row per text."
        )
    return X


# ---------------------------------------------------------------------------------------- numbers


def _feature_columns(table: Any, names: list[str]) -> list[str]:
    """Return the columns of lists of numbers if there are any, otherwise all but the classes."""
    vectors = [one for one in names if _is_vector(table[one].type)]
    classes = class_names(table.schema)
    return vectors or [one for one in names if one not in classes] or names


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_vector(kind: Any) -> bool:
    import pyarrow as pa

    while _is_list(kind):
        kind = kind.value_type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return True
    return False


def _with_points(table: Any, column_name: str, name: str) -> Any:
    """Return a column with points for the decimal commas of a file separated by semicolons."""
    column = table[column_name]
    if not may_have_commas(table) or not is_text(column.type):
        return column
    return points_in(column, f"The column {column_name!r} of {name}")


def _numbers(column: Any, column_name: str, name: str) -> NDArray[Any]:
    """Return a column as (n,) or (n, ...) numbers; an empty cell is an error."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise _no_number(column_name, name, row, None)
    if _is_list(column.type):
        return _vectors(column, column_name, name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type) or is_text_view(column.type):
        try:
            column = pc.cast(pc.utf8_trim_whitespace(column), pa.float64())
        except pa.ArrowException:
            return _parsed(column.to_pylist(), column_name, name)
    if not _is_number(column.type):
        raise DataError(
            f"The column {column_name!r} of {name} is no feature but of type {column.type}; remove "
            f"it, encode it as numbers, or {_name_columns()}."
        )
    return np.asarray(column.to_numpy())


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _vectors(column: Any, column_name: str, name: str) -> NDArray[Any]:
    """Return a column of lists of one length as an array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy()
    other = np.flatnonzero(lengths != lengths[:1])
    if len(other):
        raise DataError(
            f"Column {column_name!r} of {name} has a list of {lengths[other[0]]} numbers in row "
            f"{other[0]} (counted from 0) and one of {lengths[0]} in row 0; give lists of one "
            "length."
        )
    flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
    if flat.null_count:
        place = int(np.argmax(flat.is_null().to_numpy(zero_copy_only=False)))
        raise _no_number(column_name, name, place // max(int(lengths[0]), 1), None)
    if _is_list(flat.type):
        inner = _vectors(flat, column_name, name)
    elif _is_number(flat.type):
        inner = np.asarray(flat.to_numpy())
    else:
        raise DataError(
            f"The column {column_name!r} of {name} holds lists of something else than numbers; "
            f"{_name_columns()}."
        )
    return inner.reshape(len(column), int(lengths[0]) if len(lengths) else 0, *inner.shape[1:])


def _parsed(values: list[Any], column_name: str, name: str) -> NDArray[np.float64]:
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = float(value)
        except ValueError:
            raise _no_number(column_name, name, row, value) from None
    return numbers


def _no_number(column_name: str, name: str, row: int, value: Any) -> DataError:
    if value is None or not str(value).strip():
        return DataError(
            f"Column {column_name!r} of {name} is empty in row {row} (counted from 0); fill in or "
            "remove such rows."
        )
    shown = str(value) if len(str(value)) <= 40 else f"{str(value)[:37]}..."
    return DataError(
        f"The column {column_name!r} of {name} is no feature: row {row} (counted from 0) holds "
        f"{shown!r}; remove it, encode it as numbers, or {_name_columns()}."
    )


def _name_columns() -> str:
    return for_reader(
        "name the columns of features with columns, or embed its text with embed",
        "name the columns of features with --feature-columns, or embed its text with --embed",
    )


def _stacked(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len(parts) == 1 and parts[0].ndim > 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


# -------------------------------------------------------------------------------------------- ids


def _ids(column: Any, column_name: str, name: str) -> NDArray[Any]:
    values = column.to_pylist()
    for row, value in enumerate(values):
        if value is None or value == "":
            raise DataError(
                f"Column {column_name!r} of {name} has no id in row {row} (counted from 0); give "
                "each row its own."
            )
    return as_text(values)


def as_text(values: Sequence[Any]) -> NDArray[Any]:
    """Return ids as text, as annotations read from files have them."""
    array = np.empty(len(values), dtype=object)
    array[:] = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    return array


def require_ids(ids: NDArray[Any], X: Any, name: str) -> None:
    """Refuse ids of another number than the rows, and ids that are given twice."""
    n_rows = n_rows_of(X)
    if ids.shape != (n_rows,):
        raise DataError(
            f"{name} has {len(ids)} ids and the features have {n_rows} rows; give one id per row."
        )
    first: dict[str, int] = {}
    for row, value in enumerate(ids.tolist()):
        if first.setdefault(value, row) != row:
            raise DataError(
                f"{name} gives the id {value!r} to rows {first[value]} and {row} (counted from 0); "
                "give each row its own id."
            )
