"""Findings of a fit of ordered classes, as a part of an audit."""

from __future__ import annotations

from typing import Any

from wisecrowd.audit.fit import FitCheck
from wisecrowd.checks.fit_checks import not_converged
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.ordered_classes import ORDERED
from wisecrowd.core.registry import get_method


def check_ordered_fit(labels: CrowdLabels, *, fit: Any = None) -> FitCheck:
    """Return the findings of a fit of ordered classes; the default is one of the default method.

    The checks of classes do not apply: a method that knows the order may overrule the most common
    label, because its neighbours count too.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 1], [2, 2], [1, 1]], classes=range(3))
    >>> check_ordered_fit(labels).method
    'Thresholds'
    """
    model = fit
    if model is None or getattr(model, "takes", ORDERED) != ORDERED:
        model = get_method(KINDS[ORDERED].default_method)()._fit_without_checks(labels)
    found = list(model.findings_)
    name = type(model).__name__
    if not model.converged_ and not any(one.id == "not-converged" for one in found):
        found.append(not_converged(model.n_iter_, name))
    return FitCheck(name, tuple(found))
