"""The true classes: drawn from a prior, or given."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.simulate._checks import Codes, Floats, check_room

_BYTES_PER_TASK = 20.0  # a random number, the class drawn, its code


class Truth(NamedTuple):
    """True classes of the tasks."""

    codes: Codes
    classes: npt.NDArray[Any]
    prior: Floats


def draw_truth(
    n_tasks: int | None,
    truth: npt.ArrayLike | None,
    classes: npt.ArrayLike | None,
    n_classes: int | None,
    class_prior: npt.ArrayLike | None,
    rng: np.random.Generator,
) -> Truth:
    """Draw the classes of all tasks, or encode those given.

    Examples
    --------
    >>> import numpy as np
    >>> made = draw_truth(None, ["b", "a", "b"], None, None, None, np.random.default_rng(0))
    >>> made.codes.tolist(), made.classes.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    if n_classes is not None:
        check_integer("n_classes", n_classes, 1)
    if truth is not None:
        if class_prior is not None:
            raise ParameterError("Give `truth` or `class_prior`: a given truth is not drawn.")
        return _encode(truth, n_tasks, classes, n_classes)
    check_integer("n_tasks", n_tasks, 1, math.inf)
    size = int(cast(int, n_tasks))
    ids = None if classes is None else _as_classes(classes)
    prior = None if class_prior is None else _as_prior(class_prior)
    sizes = {
        "n_classes": n_classes,
        "classes": None if ids is None else ids.size,
        "class_prior": None if prior is None else prior.size,
    }
    stated = {name: number for name, number in sizes.items() if number is not None}
    if len(set(stated.values())) > 1:
        said = ", ".join(f"`{name}` says {number}" for name, number in stated.items())
        raise ParameterError(f"How many classes? {said}.")
    k = next(iter(stated.values()), 2)
    check_room(8.0 * k**2, f"The confusion matrix of one worker and {k} classes")
    check_room(_BYTES_PER_TASK * size, f"The true classes of {size} tasks")
    if prior is None:
        prior = np.full(k, 1.0 / k)
    codes = rng.choice(k, size=size, p=prior).astype(np.int32)
    return Truth(codes, np.arange(k) if ids is None else ids, prior)


def _encode(
    truth: npt.ArrayLike, n_tasks: int | None, classes: npt.ArrayLike | None, n_classes: int | None
) -> Truth:
    values = np.asarray(truth)
    if values.ndim != 1 or values.size == 0:
        raise DataError(
            f"`truth` must be one class per task in one dimension, but its shape is {values.shape}."
        )
    if n_tasks is not None and n_tasks != values.size:
        raise ParameterError(f"`n_tasks` is {n_tasks}, but `truth` has {values.size} tasks.")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise DataError(f"`truth` is missing for task {int(np.argmax(np.isnan(values)))}.")
    if classes is not None:
        ids = _as_classes(classes)
    elif n_classes is not None and values.dtype.kind in "iu":
        ids = np.arange(n_classes)
    else:
        ids = _distinct(values)
    if n_classes not in (None, ids.size):
        raise ParameterError(
            f"`n_classes` is {n_classes}, but there are {ids.size} classes; "
            "name them all with `classes`."
        )
    order = np.argsort(ids, kind="stable")
    try:
        place = np.minimum(np.searchsorted(ids[order], values), ids.size - 1)
    except TypeError as error:
        raise DataError("`truth` and `classes` hold ids of different types.") from error
    codes = order[place].astype(np.int32)
    unknown = np.asarray(ids[codes] != values)
    if unknown.any():
        first = int(np.argmax(unknown))
        raise DataError(f"`truth` of task {first} is {values[first]!r}, which is not a class.")
    prior = np.bincount(codes, minlength=ids.size) / codes.size
    return Truth(codes, ids, prior)


def _distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return np.unique(values)
    except TypeError as error:
        raise DataError("`truth` mixes class ids that cannot be sorted.") from error


def _as_classes(classes: npt.ArrayLike) -> npt.NDArray[Any]:
    ids = np.array(classes)
    if ids.ndim != 1 or ids.size == 0 or _distinct(ids).size != ids.size:
        raise ParameterError("`classes` must be distinct class ids, at least one.")
    return ids


def _as_prior(class_prior: npt.ArrayLike) -> Floats:
    prior = np.array(class_prior, dtype=np.float64)
    if prior.ndim != 1 or prior.size == 0 or not (prior >= 0).all():
        raise ParameterError("`class_prior` must be one non-negative probability per class.")
    if not abs(prior.sum() - 1.0) <= 1e-6:
        raise ParameterError(f"`class_prior` must sum to 1, but sums to {prior.sum():.6g}.")
    normalised: Floats = prior / prior.sum()
    return normalised
