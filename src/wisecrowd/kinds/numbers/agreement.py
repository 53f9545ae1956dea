r"""Agreement of numbers: intraclass correlations and Krippendorff's alpha.

Intraclass correlations come from half the mean squared difference of pairs of numbers: :math:`D_t`
of the same task, :math:`D_w` of the same worker, :math:`D_0` of neither. Tasks vary by
:math:`D_0 - D_t`, workers by :math:`D_0 - D_w`, and errors by :math:`D_t + D_w - D_0`. Nothing need
be complete; with complete data this is the analysis of variance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    Measured,
    labels_that_count,
    undefined,
)
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.metrics.coefficients import UnitLabels, alpha, quadratic
from wisecrowd.kinds.numbers.container import CrowdNumbers

LEVELS = ("interval",)
NO_VARIATION = 1e-12  # of numbers with variance 1


def agreement_evidence(data: CrowdNumbers, level: str | None = None) -> AgreementEvidence:
    """Return the numbers that count, with their coefficients.

    The numbers of each question are standardised first.

    Examples
    --------
    >>> data = CrowdNumbers.from_arrays([0, 0, 1, 1, 2, 2], list("ababab"), [1, 2, 4, 5, 8, 9])
    >>> found = agreement_evidence(data).coefficients
    >>> round(found["icc_1"].value, 3), round(found["icc_2"].value, 3)
    (0.96, 0.961)
    """
    data = labels_that_count(data)
    x = _standardised(data)
    distinct, code = np.unique(data.value if "question" not in data.columns else x,
                               return_inverse=True)  # fmt: skip
    labels = UnitLabels(data.task, code.ravel(), data.n_tasks, len(distinct))
    found = {"krippendorff_alpha": alpha(labels, quadratic(distinct))}
    found |= intraclass(x, data.task, data.worker)
    return AgreementEvidence(task=data.task, worker=data.worker, coefficients=found)


def _standardised(data: CrowdNumbers) -> Floats:
    """Return the numbers with mean 0 and variance 1 in each question."""
    _, of_task = data.questions
    group = np.zeros(data.n_annotations, np.int64) if of_task is None else of_task[data.task]
    n = np.maximum(np.bincount(group), 1)
    x = data.value - (np.bincount(group, data.value) / n)[group]
    spread = np.sqrt(np.bincount(group, x**2) / n)[group]
    return np.asarray(x / np.where(spread > 0, spread, 1.0))


class _Pairs(NamedTuple):
    """Squared differences of pairs of numbers: their mean, and the effects of each number."""

    mean: float
    of_task: Floats
    of_worker: Floats


def intraclass(x: Floats, task: Ints, worker: Ints) -> dict[str, Measured]:
    r"""Return intraclass correlations.

    ``icc_1`` is :math:`1 - D_t / D`, with D of all pairs of different tasks, for workers who differ
    between tasks. ``icc_2`` is :math:`1 - D_t / D_0`, the share of the variance of a single number
    that is due to its task, and ``icc_2_k`` the same of the mean of k numbers, with k the harmonic
    mean of the numbers per task.

    Examples
    --------
    >>> found = intraclass(np.array([1.0, 2, 4, 5, 8, 9]), np.repeat([0, 1, 2], 2),
    ...                    np.tile([0, 1], 3))
    >>> round(found["icc_2_k"].value, 3)
    0.98
    """
    in_task, in_worker = _sums(x, task), _sums(x, worker)
    everything = _sums(x, np.zeros(len(x), dtype=np.int64))
    names = ("icc_1", "icc_2", "icc_2_k")
    if not in_task[1].any():
        return {name: undefined(len(x)) for name in names}
    same = _pairs(in_task, 0.5, 1.0)
    other_tasks = _pairs(_less(everything, in_task), 1.0, 1.0)
    neither = _pairs(_less(_less(everything, in_task), in_worker), 1.0, 1.0)
    size = np.bincount(task)
    k = 1 / float(np.mean(1 / size[size >= 2]))
    return {
        "icc_1": _one_minus(same, other_tasks),
        "icc_2": _one_minus(same, neither),
        "icc_2_k": _of_mean(same, neither, k),
    }


Sums = tuple[Floats, Floats]  # of squared differences to other numbers, and how many these are


def _less(first: Sums, second: Sums) -> Sums:
    return first[0] - second[0], first[1] - second[1]


def _sums(x: Floats, group: Ints) -> Sums:
    """Return the sum of squared differences of each number to the others of its group, and n."""
    n = np.bincount(group).astype(np.float64)
    y = x - (np.bincount(group, x) / np.maximum(n, 1))[group]
    return n[group] * y**2 + np.bincount(group, y**2)[group], n[group] - 1


def _pairs(sums: Sums, by_task: float, by_worker: float) -> _Pairs:
    """Return the mean over pairs; each belongs to one or two tasks, and to one or two workers."""
    total, n = sums
    whole = float(n.sum()) / 2
    if not whole > 0:
        nothing = np.full(len(n), np.nan)
        return _Pairs(float("nan"), nothing, nothing)
    mean = float(total.sum()) / 2 / whole
    effect = (total - mean * n) / whole
    return _Pairs(mean, by_task * effect, by_worker * effect)


def _one_minus(top: _Pairs, bottom: _Pairs) -> Measured:
    if not bottom.mean > NO_VARIATION:
        return undefined(len(top.of_task))
    share = top.mean / bottom.mean
    return Measured(
        1 - share,
        (share * bottom.of_task - top.of_task) / bottom.mean,
        (share * bottom.of_worker - top.of_worker) / bottom.mean,
    )


def _of_mean(same: _Pairs, neither: _Pairs, k: float) -> Measured:
    """Return the correlation of means of k numbers."""
    whole = neither.mean - same.mean + same.mean / k
    if not neither.mean > NO_VARIATION or not whole > NO_VARIATION:
        return undefined(len(same.of_task))
    share = same.mean / k / whole
    of_task, of_worker = (
        (share * (n - s + s / k) - s / k) / whole
        for s, n in ((same.of_task, neither.of_task), (same.of_worker, neither.of_worker))
    )
    return Measured(1 - share, of_task, of_worker)
