"""Shares of classes, or the mean of classes that are numbers, under human judgement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.targets import Targets
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold

OF = ("shares", "mean")


def targets(data: CrowdLabels, known: Any, fit: Callable[[], Any], of: str) -> Targets:
    """Return known classes beside the posterior of the fit.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> data = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["3", "5"])
    >>> fit = SimpleNamespace(probas_=np.array([[0.9, 0.1], [0.5, 0.5]]))
    >>> found = targets(data, {"t2": "5"}, lambda: fit, "mean")
    >>> found.prediction.ravel().round(2).tolist(), found.answer.ravel().tolist()
    ([3.2, 4.0], [nan, 5.0])
    """
    known_class = as_gold(known, data)
    assert known_class is not None
    answered = known_class >= 0
    copies = answered[data.task] & (data.label == known_class[data.task])
    values = np.eye(data.n_classes) if of == "shares" else class_numbers(data)[:, None]
    answer = np.where(answered[:, None], values[known_class], np.nan)
    probas = fit().probas_
    names = tuple(map(str, data.classes.tolist())) if of == "shares" else ("mean",)
    prediction = probas if of == "shares" else np.asarray(probas @ values)
    return Targets(names, answer, prediction, of == "shares", np.arange(data.n_tasks), copies)


def class_numbers(data: CrowdLabels) -> Floats:
    """Return the classes as numbers; refuse other classes.

    Examples
    --------
    >>> class_numbers(CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["1", "5"])).tolist()
    [1.0, 5.0]
    """
    try:
        found = np.array([float(one) for one in data.classes.tolist()])
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if not np.isfinite(found).all():
        raise DataError(
            f"The classes {describe_ids(data.classes)} are not numbers, so that they have no mean; "
            "ask for shares."
        )
    return found
