"""Fit that a part of an audit uses: the given one, or one of the default method."""

from __future__ import annotations

from typing import Any

from wisecrowd.core.labels import CrowdLabels


def fit_or_default(labels: CrowdLabels, fit: Any) -> Any:
    """Return the given fit of these labels, or one of the default method for None."""
    if fit is not None:
        return fit
    from wisecrowd.aggregation.classes.auto import Auto

    return Auto()._fit_without_checks(labels)


def fit_with_law(labels: CrowdLabels, fit: Any, default: Any = None) -> Any:
    """Return the given fit if it has a label law, else ``default`` or one of the default method.

    Examples
    --------
    >>> from wisecrowd.aggregation import MajorityVote, OneCoin
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0]])
    >>> [fit_with_law(labels, method().fit(labels)) for method in (OneCoin, MajorityVote)]
    [OneCoin(), Auto()]
    """
    if fit is not None and fit._label_law() is not None:
        return fit
    return fit_or_default(labels, default)


def compared_workers(labels: CrowdLabels, fit: Any = None) -> Any:
    """Return the tested pairs of workers, which several parts look at; None with one class."""
    from wisecrowd.families.worker_groups import compare_workers

    return compare_workers(labels) if labels.n_classes > 1 else None
