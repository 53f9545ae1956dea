"""Checks of arrays that the metrics share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Probabilities read back from a text file carry rounding of this order; more is a wrong column.
ROW_SUM_TOLERANCE = 1e-6


def _as_vector(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"`{name}` must have one dimension, but its shape is {array.shape}.")
    if array.size == 0:
        raise DataError(f"`{name}` is empty; a metric needs at least one value.")
    return array


def _reject_missing(array: npt.NDArray[Any], name: str) -> None:
    """Refuse NaN and None."""
    if array.dtype.kind not in "fcO":
        return
    missing = np.asarray(array != array)
    if array.dtype == object:
        missing |= np.array([value is None for value in array])
    if missing.any():
        raise DataError(
            f"`{name}` has a missing value at position {int(np.argmax(missing))}; leave such "
            "entries out."
        )


def _id_type(array: npt.NDArray[Any]) -> str:
    """'text', 'number' or 'other': ids of different types never compare equal."""
    if array.dtype.kind in "USTO":
        types = {str} if array.dtype.kind != "O" else {type(value) for value in array}
        if all(issubclass(t, str) for t in types):
            return "text"
        is_number = all(issubclass(t, (int, float, np.number, np.bool_)) for t in types)
        return "number" if is_number else "other"
    return "number" if array.dtype.kind in "biuf" else "other"


def encode_ids(values: npt.ArrayLike, name: str) -> tuple[IntArray, npt.NDArray[Any]]:
    """Codes of the ids among the sorted distinct ones, and those."""
    array = _as_vector(values, name)
    _reject_missing(array, name)
    try:
        distinct, codes = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise DataError(f"`{name}` mixes ids that cannot be sorted.") from error
    return codes, distinct


def encode_pair(
    truth: npt.ArrayLike, predicted: npt.ArrayLike
) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    """Codes of both arrays in the sorted union of their ids, and that union."""
    true_ids, predicted_ids = _as_vector(truth, "truth"), _as_vector(predicted, "predicted")
    if true_ids.shape != predicted_ids.shape:
        raise DataError(
            f"`truth` has {true_ids.size} values but `predicted` has {predicted_ids.size}; "
            "give one prediction per task, in the same order."
        )
    _reject_missing(true_ids, "truth")
    _reject_missing(predicted_ids, "predicted")
    true_type, predicted_type = _id_type(true_ids), _id_type(predicted_ids)
    if true_type != predicted_type:
        raise DataError(
            f"`truth` holds ids of type {true_type} but `predicted` of type {predicted_type}, "
            "so that no two could be equal; convert one of them."
        )
    try:
        classes, codes = np.unique(np.concatenate([true_ids, predicted_ids]), return_inverse=True)
    except TypeError as error:
        raise DataError("`truth` and `predicted` mix ids that cannot be sorted.") from error
    return codes[: true_ids.size], codes[true_ids.size :], classes


def _as_floats(array: npt.NDArray[Any], name: str) -> FloatArray:
    """Return a copy as floats, which the caller may change."""
    if array.dtype.kind not in "biuf":
        raise DataError(f"`{name}` must be numbers, but its type is {array.dtype}.")
    return array.astype(np.float64)


def as_table(values: npt.ArrayLike, name: str, *axes: str) -> FloatArray:
    """Float array with these axes, all of them of size one or more."""
    array = np.asarray(values)
    if array.ndim != len(axes) or 0 in array.shape or array.dtype.kind not in "biuf":
        raise DataError(
            f"`{name}` must be numbers of shape ({', '.join(axes)}) with at least one of each, "
            f"but it has shape {array.shape} and type {array.dtype}."
        )
    return array.astype(np.float64)


def as_scores(scores: npt.ArrayLike, name: str = "scores") -> FloatArray:
    """Finite float vector."""
    floats = _as_floats(_as_vector(scores, name), name)
    finite = np.isfinite(floats)
    if not finite.all():
        raise DataError(f"`{name}` is not finite at position {int(np.argmin(finite))}.")
    return floats


def as_probabilities(probas: npt.ArrayLike, name: str = "probas") -> FloatArray:
    """(N, K) float matrix whose rows are probability vectors."""
    array = np.asarray(probas)
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            f"`{name}` must have shape (n_tasks, n_classes) with at least one of each, "
            f"but its shape is {array.shape}."
        )
    floats = _as_floats(array, name)
    bad = ~np.isfinite(floats).all(axis=1) | (floats < 0).any(axis=1)
    bad |= ~(np.abs(floats.sum(axis=1) - 1.0) <= ROW_SUM_TOLERANCE)
    if bad.any():
        raise DataError(
            f"Row {int(np.argmax(bad))} of `{name}` is not a probability vector "
            "(non-negative, finite, sum one)."
        )
    return floats


def as_codes(
    truth: npt.ArrayLike, shape: tuple[int, ...], classes: npt.ArrayLike | None
) -> IntArray:
    """Column of each task's true class in an (N, K) matrix.

    With `classes` the truth holds class ids, looked up there; without, it holds the codes.
    """
    ids = _as_vector(truth, "truth")
    _reject_missing(ids, "truth")
    n_tasks, n_classes = shape
    if ids.size != n_tasks:
        raise DataError(f"`truth` has {ids.size} values for {n_tasks} rows of probabilities.")
    if classes is None:
        return _check_codes(ids, n_classes)
    columns = _as_vector(classes, "classes")
    if columns.size != n_classes:
        raise DataError(f"`classes` names {columns.size} classes for {n_classes} columns.")
    if np.unique(columns).size != columns.size:
        raise DataError("`classes` names a class twice.")
    if _id_type(columns) != _id_type(ids):
        raise DataError(
            f"`truth` holds ids of type {_id_type(ids)} but `classes` of type "
            f"{_id_type(columns)}; convert one of them."
        )
    order = np.argsort(columns, kind="stable")
    place = np.minimum(np.searchsorted(columns[order], ids), n_classes - 1)
    codes = order[place]
    unknown = columns[codes] != ids
    if unknown.any():
        first = int(np.argmax(unknown))
        raise DataError(f"`truth` has {ids[first]!r} at position {first}, not one of `classes`.")
    return codes


def _check_codes(ids: npt.NDArray[Any], n_classes: int) -> IntArray:
    if ids.dtype.kind not in "biu":
        raise DataError(
            f"`truth` must hold class codes 0..{n_classes - 1}, but its type is {ids.dtype}; "
            "pass `classes` to use your own ids."
        )
    codes = ids.astype(np.intp)
    outside = (codes < 0) | (codes >= n_classes)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(
            f"`truth` has code {codes[first]} at position {first}, outside 0..{n_classes - 1}."
        )
    return codes
