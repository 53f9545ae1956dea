"""Validation of user data: columns and frames become checked annotations.

What the columns of all kinds have in common; :mod:`wisecrowd.core.intake` puts it together.
Decisions are recorded in ``notes``. Every error names the column, the row (counted from 1, without
the header) and the remedy.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Set
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import ANNOTATION_COLUMNS, Annotations, Payload
from wisecrowd.core.arrow import as_arrow, is_empty
from wisecrowd.core.columns import (
    LABEL,
    OPTIONAL_ROLES,
    find_columns,
    header_rows,
    header_sentence,
    unknown_workers,
)
from wisecrowd.core.duplicates import DUPLICATES
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.messages.descriptions import Places, describe_ids, describe_rows, suggestion
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Codes
from wisecrowd.core.value_columns import (
    as_numbers,
    as_texts,
    as_timestamps,
    as_weights,
)

Container = TypeVar("Container", bound=Annotations)


class Frame(NamedTuple):
    """A table of any library, opened; ``names`` are those of its columns, as texts and as given."""

    native: Any
    names: dict[str, Any]
    library: str | None

    def column(self, name: str) -> Any:
        """Return the values of a column."""
        if isinstance(self.native, Mapping):
            return self.native[self.names[name]]
        return values_of(self.native.get_column(self.names[name]))


def annotations_from_frame(container: type[Container], frame: Any, **options: Any) -> Container:
    """Build annotations of any kind from a frame; see :meth:`Annotations.from_frame`."""
    roles = container.roles()
    opened = open_frame(frame)
    options.pop("type", None)
    named = ("task", "worker", "label", *roles, *OPTIONAL_ROLES)
    asked = container.asked_columns({role: options.pop(role, None) for role in named})
    found, note = find_columns(list(opened.names), asked, roles, container.optional_roles)
    columns = frame_columns(opened, asked, found, note)
    return container.from_arrays(**{"task": None, "worker": None, **columns}, **options)


def frame_columns(
    frame: Frame, asked: Mapping[str, str | None], found: Mapping[str, str], note: str | None
) -> dict[str, Any]:
    """Return what ``from_arrays`` takes of a frame: columns by role, their places and notes."""
    values = {role: frame.column(name) for role, name in found.items()}
    _refuse_header(values, found)
    said = (note, unknown_workers(list(frame.names), found))
    empty = _drop_empty_weight(values, found, asked)
    return values | {
        "places": Places(dict(found), header=list(frame.names)),
        "notes": tuple(filter(None, (*said, empty))),
        "frame_library": frame.library,
    }


def _refuse_header(values: Mapping[str, Any], found: Mapping[str, str]) -> None:
    """Refuse a row of a frame that holds the names of the columns."""
    columns = {found[role]: column for role, column in values.items() if is_column(column)}
    rows = header_rows(columns)
    if len(rows):
        raise DataError(header_sentence(f"The table's {describe_rows(rows)}", list(columns)))


def _drop_empty_weight(
    values: dict[str, Any], found: Mapping[str, str], asked: Mapping[str, Any]
) -> str:
    """Remove the weights if the column is empty and nobody asked for it, as in files; say so."""
    weight = values.get("weight")
    if weight is None or asked.get("weight") or not is_column(weight) or not len(weight):
        return ""
    try:
        if not is_empty(as_arrow(weight, "weight")):
            return ""
    except DataError:
        return ""  # what is wrong with it is said where weights are read
    del values["weight"]
    return f"the column {found['weight']!r} is empty and not read"


def other_kind(data: Annotations, needed: type[Annotations]) -> DataError:
    """Return the error for annotations of a kind that the method does not take."""
    names = type(data).__name__, needed.__name__
    such = f", such as {option('type', 'labels')}" if names == ("CrowdSets", "CrowdLabels") else ""
    return DataError(
        f"The data are {type(data).__name__}, and {needed.__name__} are needed; choose a method "
        f"that takes such data, or read the data with another type{such}."
    )


def check_roles(columns: Mapping[str, Any], payload: Collection[str] = LABEL) -> None:
    """Refuse an option that is neither a role of a column nor a policy."""
    for name in sorted(set(columns) - {*OPTIONAL_ROLES, *payload}):
        options = ("task", "worker", *payload, *OPTIONAL_ROLES, "duplicates", "abstain", "classes")
        raise ParameterError(
            f"Unknown option {name!r}{suggestion(name, options)}; known are {', '.join(options)}, "
            "tasks, workers, type."
        )


def open_frame(frame: Any) -> Frame:
    """Open a frame or a mapping of columns; refuse what is neither."""
    if isinstance(frame, Mapping):
        return Frame(frame, {str(name): name for name in frame}, None)
    import narwhals as nw

    if hasattr(frame, "collect"):
        raise DataError(
            f"A {type(frame).__name__} cannot be read as labels; call its collect() first."
        )
    names = [str(name) for name in getattr(frame, "columns", ()) if isinstance(name, Hashable)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"There are several columns named {twice[0]!r}; rename or remove one.")
    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"A {type(frame).__name__} cannot be read as labels; give a pandas, polars or pyarrow "
            "frame, a tasks × workers matrix, or CrowdLabels."
        ) from None
    library = str(native.implementation).rsplit(".", 1)[-1].lower()
    return Frame(native, {str(name): name for name in native.columns}, library)


def is_column(values: Any) -> bool:
    """Return whether a value of a mapping can be a column; those of frames always can."""
    return hasattr(values, "__len__") and not isinstance(values, Mapping | Set | str | bytes)


def values_of(series: Any) -> Any:
    """Convert a narwhals series to an Arrow array; return mixed Python objects unchanged."""
    import narwhals as nw

    if series.dtype == nw.Object:
        return series.to_numpy()  # Arrow reads [1.0, True] as [1.0, 1.0]
    try:
        return series.to_arrow()
    except Exception:
        # Mixed Python objects: the object path reports the rows that differ.
        return series.to_numpy()


def check_columns(duplicates: str, columns: Mapping[str, Any]) -> None:
    """Refuse an unknown policy for duplicates, and columns of unknown roles."""
    if duplicates not in DUPLICATES:
        raise ParameterError(
            f"duplicates is {duplicates!r}; choose one of {', '.join(DUPLICATES)}."
        )
    for name in sorted(set(columns) - set(ANNOTATION_COLUMNS)):
        raise ParameterError(f"Unknown column {name!r}; known are {', '.join(ANNOTATION_COLUMNS)}.")


def check_lengths(columns: Mapping[str, Any]) -> None:
    """Require columns, all of the same length."""
    given = {
        role: values
        for role, values in columns.items()
        if values is not None and not (role == "worker_kind" and isinstance(values, Mapping))
    }
    for role, values in given.items():
        if not is_column(values) and not isinstance(values, Encoded):
            raise DataError(
                f"The {role} column is a {type(values).__name__}; give a list or an array with one "
                "value per annotation."
            )
    sizes = {
        role: len(values.codes if isinstance(values, Encoded) else values)
        for role, values in given.items()
    }
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{role} {size}" for role, size in sizes.items())
        raise DataError(
            f"Columns have different lengths ({listed}); give one value per annotation."
        )


# -------------------------------------------------------------------------- tasks, workers, classes


def complete_ids(values: Any, role: str, places: Places, declared: Any) -> Encoded:
    """Return a column of ids without gaps, in the declared vocabulary if there is one."""
    encoded = encode(values, places.column(role))
    if len(encoded.codes) and encoded.codes.min() < 0:
        raise DataError(
            f"The {places.column(role)} column is empty in {places.where(encoded.codes < 0)}; "
            f"fill in the {role} or remove the row."
        )
    if declared is None:
        return encoded
    vocabulary = distinct_ids(declared, role + "s")
    return Encoded(recoded(encoded, vocabulary, f"{role}s", places, None), vocabulary)


def distinct_ids(declared: Any, what: str) -> NDArray[Any]:
    """Return declared ids as a vocabulary; each must be given once."""
    if isinstance(declared, str | bytes) or not hasattr(declared, "__iter__"):
        raise ParameterError(f"{what} is {declared!r}; give a list of all {what}.")
    column = encode(list(declared), what)
    if not len(column.codes) or column.codes.min() < 0:
        raise ParameterError(f"The declared {what} must be distinct and not empty; name each.")
    if len(column.vocabulary) != len(column.codes):
        repeated = column.vocabulary[np.bincount(column.codes) > 1]
        raise ParameterError(
            f"The declared {what} must be distinct; {describe_ids(repeated)} is named twice."
        )
    return np.array(column.vocabulary[column.codes])


def recoded(
    encoded: Encoded,
    vocabulary: NDArray[Any],
    what: str,
    places: Places,
    ignored: Any,
    declared_by: str | None = None,
) -> Codes:
    """Convert codes to a vocabulary that contains all ids, except those of ignored rows."""
    position = np.append(lookup(encoded.vocabulary, vocabulary), np.int32(-1))
    codes: Codes = position[encoded.codes]
    if (position[:-1] < 0).any():
        outside = codes < 0 if ignored is None else (codes < 0) & ~ignored
        if outside.any():
            code = encoded.codes[np.argmax(outside)]
            value = encoded.vocabulary[code]
            one = {"tasks": "Task", "workers": "Worker", "classes": "Label"}[what]
            raise DataError(
                f"{one} {value!r}{suggestion(value, vocabulary)} in "
                f"{places.where(encoded.codes == code)} is not among the declared {what} "
                f"({describe_ids(vocabulary)}); correct it, or add it to {declared_by or what}."
            )
    return codes


def codes_of_fit(codes: Codes, own: NDArray[Any], ids: NDArray[Any], part: Payload) -> Codes:
    """Convert codes of a part of the payload to the ids of a fit, which must contain them."""
    found = lookup(own, ids)
    unknown = (found < 0) & (np.bincount(codes, minlength=len(own)) > 0)
    if unknown.any():
        value = own[int(np.argmax(unknown))]
        raise DataError(
            f"{part.name.capitalize()} {value!r}{suggestion(value, ids)} was not among the "
            f"{part.vocabulary} of the fit ({describe_ids(ids)}); correct it, or fit again "
            "with it."
        )
    return np.asarray(found[codes], dtype=np.int32)


# ------------------------------------------------------------------------------- optional columns


def measured_columns(columns: Mapping[str, Any], places: Places) -> dict[str, NDArray[Any]]:
    """Return weights, times, questions and other measures as arrays, by role."""
    measures: dict[str, NDArray[Any]] = {}
    for role, values in columns.items():
        if values is None:
            continue
        if role == "weight":
            measures[role] = as_weights(values, places)
        elif role == "timestamp":
            measures[role] = as_timestamps(values, places)
        elif role == "question":
            measures[role] = as_texts(values, role, places)
        else:
            measures[role] = as_numbers(values, role, places)
    return measures


def worker_kinds(
    worker_kind: Any, worker: Codes, workers: NDArray[Any], places: Places
) -> NDArray[Any] | None:
    """Return (n_workers,) kinds from a mapping or from one value per annotation."""
    if worker_kind is None:
        return None
    kinds = np.full(len(workers), None, dtype=object)
    if isinstance(worker_kind, Mapping):
        kinds[:] = [worker_kind.get(w) for w in workers.tolist()]
        return kinds
    column = encode(worker_kind, places.column("worker_kind"))
    known = np.flatnonzero(column.codes >= 0)
    code = np.full(len(workers), -1, dtype=np.int32)
    code[worker[known]] = column.codes[known]
    differs = np.flatnonzero(code[worker[known]] != column.codes[known])
    if len(differs):
        row = known[differs[0]]
        here, elsewhere = column.vocabulary[[column.codes[row], code[worker[row]]]].tolist()
        raise DataError(
            f"Worker {workers[worker[row]]!r} is of kind {here!r} in "
            f"{places.rows(np.array([row]))} and {elsewhere!r} elsewhere; "
            "give each worker one kind."
        )
    kinds[code >= 0] = column.vocabulary[code[code >= 0]]
    return kinds
