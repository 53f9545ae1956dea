r"""Agreement beyond chance: of the labels of a task, of two workers, and of each with all others.

The formulas for all labels are in :mod:`~wisecrowd.kinds.classes.metrics.coefficients`. Time and
memory are proportional to the annotations, for pairs of workers to the pairs of annotations of the
same task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wisecrowd.core.agreement_evidence import Measured
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.metric_inputs import FloatArray, IntArray, encode_ids, encode_pair
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.statistics import NO_BOOTSTRAP, Bootstrap, Interval, interval_of
from wisecrowd.core.types import Ints
from wisecrowd.kinds.classes.metrics.coefficients import (
    UnitLabels,
    alpha,
    chance_of,
    fleiss,
    nominal,
    ordinal_alpha,
    quadratic,
)
from wisecrowd.kinds.classes.metrics.worker_kappas import two_worker_kappa

Level = Literal["nominal", "ordinal", "interval"]
LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(
    task: npt.ArrayLike, label: npt.ArrayLike, *, level: Level = "nominal"
) -> float:
    r"""Krippendorff's alpha: one minus observed over expected disagreement.

    .. math::
        \alpha = 1 - (n - 1) \frac{\sum_{c, k} o_{ck} \delta^2_{ck}}
                                  {\sum_{c, k} n_c n_k \delta^2_{ck}}, \qquad
        o_{ck} = \sum_i \frac{n_{ic} (n_{ik} - [c = k])}{m_i - 1}

    with :math:`n_{ic}` labels c among the :math:`m_i \ge 2` labels of task i. Differences are
    :math:`\delta = [c \ne k]` (nominal), :math:`v_c - v_k` (interval), or the difference of the
    classes' mid-ranks among all labels (ordinal).

    Parameters
    ----------
    task, label : array-like of shape (n_annotations,)
        Ids. For "ordinal" the sorted labels are in order; for "interval" they are numbers.
    level : {"nominal", "ordinal", "interval"}, default "nominal"

    Returns
    -------
    float
        1 for perfect agreement, 0 for chance; NaN when only one class was ever used or no task
        has two labels, as chance and perfection are then the same.

    References
    ----------
    K. Krippendorff (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.

    Examples
    --------
    >>> round(krippendorff_alpha([1, 1, 2, 2, 3, 3], ["a", "a", "b", "b", "a", "b"]), 4)
    0.4444
    """
    check_choice("level", level, LEVELS)
    labels, classes = _encode(task, label)
    if level == "interval" and classes.dtype.kind not in "biuf":
        raise DataError(
            f"The interval level needs labels that are numbers, but their type is {classes.dtype}."
        )
    return alpha_at(level, labels, classes if level == "interval" else None).value


def fleiss_kappa(task: npt.ArrayLike, label: npt.ArrayLike) -> float:
    r"""Fleiss' kappa, for any number of labels per task.

    .. math::
        \kappa = \frac{\bar P - \sum_c \pi_c^2}{1 - \sum_c \pi_c^2}, \qquad
        \bar P = \frac{1}{N} \sum_i \frac{\sum_c n_{ic} (n_{ic} - 1)}{m_i (m_i - 1)}

    Where the numbers of labels :math:`m_i` differ, every task with two labels or more counts once
    in :math:`\bar P`, and :math:`\pi_c` is the mean over all tasks of the share
    :math:`n_{ic} / m_i` (Gwet's form). With equal numbers this is Fleiss' formula.

    Parameters
    ----------
    task, label : array-like of shape (n_annotations,)
        Ids.

    Returns
    -------
    float
        NaN when only one class was ever used or no task has two labels.

    References
    ----------
    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5), 378-382.

    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition. Advanced Analytics.

    Examples
    --------
    >>> round(fleiss_kappa([1, 1, 2, 2, 3, 3], ["a", "a", "b", "b", "a", "b"]), 4)
    0.3333
    """
    labels, _ = _encode(task, label)
    return fleiss(chance_of(labels, nominal(labels.n_classes))).value


def alpha_at(level: Level, labels: UnitLabels, position: Any = None) -> Measured:
    """Return Krippendorff's alpha at a level of measurement.

    Parameters
    ----------
    level : {"nominal", "ordinal", "interval"}
    labels : UnitLabels
        Codes are ranks at the ordinal level.
    position : (n_classes,), optional
        The numbers of the classes, for the interval level.
    """
    if level == "ordinal":
        return ordinal_alpha(labels)
    if level == "interval":
        return alpha(labels, quadratic(np.asarray(position, dtype=np.float64)))
    return alpha(labels, nominal(labels.n_classes))


def class_positions(
    classes: npt.NDArray[Any], level: Level, order: Sequence[Any] | None = None
) -> FloatArray:
    """Return the position of each class: its number, its rank in the order, or its code.

    Examples
    --------
    >>> class_positions(np.array(["10", "2"], dtype=object), "interval").tolist()
    [10.0, 2.0]
    >>> class_positions(np.array(["bad", "good", "ok"], dtype=object), "ordinal",
    ...                 ["bad", "ok", "good"]).tolist()
    [0.0, 2.0, 1.0]
    """
    if order is not None and level != "ordinal":
        raise ParameterError(f"order has no meaning for the level {level!r}; leave it out.")
    if level == "nominal":
        return np.arange(len(classes), dtype=np.float64)
    if order is not None:
        place = lookup(classes, np.array(list(order), dtype=object)).astype(np.float64)
        if (place < 0).any() or len(order) != len(classes):
            raise ParameterError(
                f"order must name every class once: {describe_ids(classes)}, each as in the labels."
            )
        return place
    try:
        numbers = np.array([float(name) for name in classes.tolist()])
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        way_out = "; give order=[lowest, ..., highest]" if level == "ordinal" else ""
        raise DataError(
            f"The {level} level needs classes that are numbers, but they are "
            f"{describe_ids(classes)}{way_out or '; use the nominal level'}."
        )
    if level == "ordinal":
        return np.argsort(np.argsort(numbers, kind="stable"), kind="stable").astype(np.float64)
    return numbers


def _encode(task: npt.ArrayLike, label: npt.ArrayLike) -> tuple[UnitLabels, npt.NDArray[Any]]:
    """Return the labels sorted by task, and the sorted classes."""
    task_codes, tasks = encode_ids(task, "task")
    label_codes, classes = encode_ids(label, "label")
    if len(task_codes) != len(label_codes):
        raise DataError(
            f"`task` has {len(task_codes)} values but `label` has {len(label_codes)}; "
            "give one of each per annotation."
        )
    order = np.argsort(task_codes, kind="stable")
    return UnitLabels(task_codes[order], label_codes[order], len(tasks), len(classes)), classes


def cohen_kappa(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    r"""Cohen's kappa: how far two workers agree beyond chance.

    .. math::
        \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_e = \sum_c f_c g_c

    with :math:`p_o` the share of equal labels, and f and g the shares of class c among the first
    and the second worker's labels.

    Parameters
    ----------
    first, second : array-like of shape (n_tasks,)
        Labels of the two workers on the same tasks, in the same order.

    Returns
    -------
    float
        NaN when both always gave the same one class.

    References
    ----------
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological
    Measurement 20(1), 37-46.

    Examples
    --------
    >>> round(cohen_kappa(["a", "a", "b", "b"], ["a", "b", "b", "b"]), 4)
    0.5
    """
    one, two, classes = encode_pair(first, second)
    return two_worker_kappa(one, two, np.arange(len(classes), dtype=np.float64))


def worker_agreement(
    indptr: Ints,
    worker: Ints,
    label: Ints,
    n_workers: int,
    n_classes: int,
    bootstrap: Bootstrap = NO_BOOTSTRAP,
) -> tuple[IntArray, Interval]:
    r"""Return how far each worker agrees with the others of the same tasks.

    .. math::
        A_j = \frac{1}{n_j} \sum_{i} \frac{n_{i y_{ij}} - 1}{m_i - 1}, \qquad
        \kappa_j = \frac{A_j - E_j}{1 - E_j}, \qquad E_j = \frac{1}{n_j} \sum_i p_{y_{ij}}

    over the tasks of worker j that have two labels or more; :math:`p_c` is the share of class c
    among all labels of such tasks. The bootstrap resamples the tasks of each worker.

    Parameters
    ----------
    indptr, worker, label
        See :func:`pair_kappas`.
    n_workers, n_classes : int
    bootstrap : Bootstrap

    Returns
    -------
    compared : (n_workers,) int
        Labels that could be compared.
    measures : Interval of (2, n_workers)
        Agreement and kappa; NaN for workers without such labels.
    """
    from scipy.sparse import csr_array

    per_task = np.diff(indptr)
    task = np.repeat(np.arange(len(per_task)), per_task)
    rows = np.flatnonzero(per_task[task] >= 2)
    cell = task[rows].astype(np.int64) * n_classes + label[rows]
    _, entry, same = np.unique(cell, return_inverse=True, return_counts=True)
    share = (same[entry] - 1) / (per_task[task[rows]] - 1)
    overall = np.bincount(label[rows], minlength=n_classes) / max(len(rows), 1)

    # Labels of one worker with the same class and the same share are one pattern.
    values, value = np.unique(share, return_inverse=True)
    n_values = max(len(values), 1)
    key = (worker[rows].astype(np.int64) * n_classes + label[rows]) * n_values + value
    distinct, repeats = np.unique(key, return_counts=True)
    rest, of_value = np.divmod(distinct, n_values)
    who, of_class = np.divmod(rest, n_classes)
    compared = np.bincount(who, weights=repeats, minlength=n_workers).astype(np.intp)
    # Sparse (patterns, workers) matrices that sum over the patterns of each worker.
    _, column = np.unique(who, return_inverse=True)
    shape = (len(who), int(column.max(initial=-1)) + 1)
    sums = [
        csr_array((row, column, np.arange(len(who) + 1)), shape=shape)
        for row in (np.ones(len(who)), values[of_value], overall[of_class])
    ]

    def statistic(times: FloatArray) -> FloatArray:
        n, agreeing, chance = (times @ table for table in sums)
        agreement, expected = agreeing / n, chance / n
        full = np.full((len(times), 2, n_workers), np.nan)
        full[:, 0, compared > 0] = agreement
        full[:, 1, compared > 0] = (agreement - expected) / (1 - expected)
        return full

    return compared, interval_of(statistic, repeats, bootstrap, 2 * n_workers)
