"""Fits that have not seen the known answers by which they are judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import LABELS, get_kind, kind_of
from wisecrowd.core.registry import get_method
from wisecrowd.inference.checking import Checking
from wisecrowd.truth.anchored_workers import require_blind


def gated(labels: Any) -> Annotations:
    """Return annotations of any kind, or data of any form accepted for classes."""
    if isinstance(labels, Annotations):
        return labels
    found: Annotations = get_kind(LABELS).gate(labels)
    return found


def checking_of(data: Annotations) -> Checking:
    """Return how results of the kind of some annotations are checked."""
    kind = kind_of(data)
    found = getattr(kind.part("scorer"), "CHECKING", None)
    if found is None:
        raise ParameterError(
            f"Results of {kind.name} cannot be checked task by task; compare methods by known "
            "answers instead."
        )
    made: Checking = found()
    return made


def fit_blind(data: Annotations, fit: Any = None) -> Any:
    """Return a given fit of these annotations, or one of the default method, without gold.

    Raises
    ------
    ParameterError
        If the fit has seen gold.
    DataError
        If it is one of other tasks, classes or labels, such as with those of the person.
    """
    if fit is None:
        return get_method(kind_of(data).default_method)()._fit_without_checks(data)
    if not getattr(fit, "__sklearn_is_fitted__", lambda: False)():
        raise ParameterError("fit is not fitted; call its fit first, or leave it out.")
    require_blind(fit)
    same = np.array_equal(fit.tasks_, data.tasks)
    if hasattr(fit, "classes_") and hasattr(data, "classes"):
        same = same and np.array_equal(fit.classes_, data.classes)
    counts = getattr(fit, "labels_per_task_", data.labels_per_task)
    if same and not np.array_equal(counts, data.labels_per_task):
        raise DataError(
            "The fit has other numbers of labels than these, perhaps with the answers of the "
            "person among them; give the fit of these labels."
        )
    if not same:
        raise DataError(
            "The fit has other tasks or classes than the labels; give the fit of these labels."
        )
    return fit
