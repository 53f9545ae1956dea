"""Fits that have not seen the known answers by which they are judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import LABELS, get_kind, kind_of
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.registry import get_method
from wisecrowd.inference.checking import Checking


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


def require_blind(fit: Any) -> None:
    """Raise a ParameterError if known answers went into a fit, because they cannot judge it."""
    if vars(fit).get("saw_gold_", False):
        raise ParameterError(
            "The fit has seen gold, so that known answers cannot judge it; "
            + for_reader("give a fit without gold, or leave fit out.", "fit it without --gold.")
        )


def fit_without_gold(labels: Annotations, fit: Any = None) -> Any:
    """Return the given fit of these labels, or one of the default method; it has seen no gold."""
    if fit is None:
        return get_method(kind_of(labels).default_method)()._fit_without_checks(labels)
    if not getattr(fit, "__sklearn_is_fitted__", lambda: False)():
        raise ParameterError("fit is not fitted; call its fit first, or leave it out.")
    require_blind(fit)
    differ = [
        name for name, ids in labels.vocabularies().items()
        if hasattr(fit, f"{name}_") and not np.array_equal(getattr(fit, f"{name}_"), ids)
    ]  # fmt: skip
    counts = getattr(fit, "labels_per_task_", labels.labels_per_task)
    if not differ and not np.array_equal(counts, labels.labels_per_task):
        differ = ["numbers of labels"]
    if differ:
        person = ", perhaps with the answers of the person among them"
        raise DataError(
            f"The fit has other {' and '.join(differ)} than these labels"
            f"{'' if 'tasks' in differ else person}; give the fit of these labels."
        )
    return fit
