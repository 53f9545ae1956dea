"""Where a fit of classes starts: probabilities, or another method's posterior."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import as_number_table

Floats = NDArray[np.float64]


def as_start(init: Any, labels: CrowdLabels) -> Floats | None:
    """Return (n_tasks, n_classes) probabilities from ``init``, which may be a method; None if none.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["cat", "dog"])
    >>> as_start([[3, 1], [0, 2]], labels).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    if init is None:
        return None
    if hasattr(init, "tags"):
        init = _posterior_of(init, labels)
    start = as_number_table(init.toarray() if hasattr(init, "toarray") else init, "init")
    shape = (labels.n_tasks, labels.n_classes)
    if start.shape != shape:
        raise DataError(
            f"init has shape {start.shape}; give probabilities of shape {shape}: one row per "
            "task, one column per class."
        )
    bad = ~np.isfinite(start).all(axis=1) | (start < 0).any(axis=1) | ~start.any(axis=1)
    if bad.any():
        raise DataError(
            "init must be finite, not negative, and not all zero in any row; correct row "
            f"{int(np.argmax(bad)) + 1}."
        )
    return np.asarray(start / start.sum(axis=1, keepdims=True))


def _posterior_of(model: Any, labels: CrowdLabels) -> Floats:
    """Return what a method, fitted to whatever data, says of these tasks in their class order."""
    if not model.__sklearn_is_fitted__():
        model = copy.deepcopy(model).fit(labels)  # the user's own object stays as it is
    inductive = model.tags().inductive
    given = model.predict_proba(labels) if inductive else model._known_answers(labels).probas
    given = given.toarray() if hasattr(given, "toarray") else given
    column = lookup(labels.classes, model.classes_)
    probas = np.zeros((labels.n_tasks, labels.n_classes))
    probas[:, column >= 0] = given[:, column[column >= 0]]
    return probas
