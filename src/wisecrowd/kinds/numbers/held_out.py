r"""Held-out numbers: how well a fit predicts numbers that were hidden from it, without any truth.

A share of the annotations is hidden, a method is fitted to the others, and its values
:math:`\hat z_i` predict the hidden ones,

.. math:: \log p(y_{ij}) = \log t_\nu\bigl((y_{ij} - \hat z_i - \hat b_j) / (f \hat s_j)\bigr)
          - \log f \hat s_j.

Biases and scales of workers come from one common judge, so the scores of methods with different
models, or without a model of the workers, are comparable. The judge estimates them from the visible
labels, by reweighted least squares, and shrinks them to the crowd's. Labels that a value was fitted
to are closer to it than new ones, by more for one method than for another. The common factor
:math:`f` corrects that: it maximises the density of the hidden labels of the other tasks, in two
halves. So do the degrees of freedom :math:`\nu` and, if all numbers are positive, the choice
between numbers and their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan
from wisecrowd.kinds.numbers.container import CrowdNumbers

DEGREES = (2.0, 4.0, 8.0, np.inf)  # degrees of freedom of the judge
PSEUDO_LABELS = 4.0  # labels at the crowd's scale that each worker's own scale counts with
ROUNDS = 12  # reweighted least squares
FACTORS = np.exp(np.linspace(np.log(0.2), np.log(5.0), 66))  # 5% apart
LEAST_SHARE = 1e-3  # smallest scale, as a share of the spread of the numbers


def held_out_number_score(
    make_fit: Callable[[CrowdNumbers], Floats], plan: ScoringPlan
) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the numbers that were hidden from it.

    Parameters
    ----------
    make_fit : function of CrowdNumbers to (n_tasks,) values
        Fits the method to the visible numbers, which keep all vocabularies.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no number can be hidden, because every task has one label at most.

    Examples
    --------
    >>> from wisecrowd.aggregation import Mean, Median
    >>> from wisecrowd.inference.held_out import scoring_plan
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    >>> value = rng.normal(size=60)[task] + rng.normal(size=300)
    >>> plan = scoring_plan(CrowdNumbers.from_arrays(task, worker, value))
    >>> mean, median = (
    ...     held_out_number_score(lambda visible: method().fit(visible).values_, plan)
    ...     for method in (Mean, Median)
    ... )
    >>> mean.mean > median.mean  # of normal errors
    True
    """
    numbers = plan.labels

    def score(hidden: Mask) -> Floats:
        return score_hidden_numbers(numbers, hidden, make_fit(numbers.select_annotations(~hidden)))

    return plan.scores(score)


def score_hidden_numbers(numbers: CrowdNumbers, hidden: Mask, values: Floats) -> Floats:
    """Return the log densities (n_hidden,) of the hidden numbers, in their order.

    Parameters
    ----------
    numbers : CrowdNumbers
        Visible and hidden numbers.
    hidden : (n_annotations,) bool
    values : (n_tasks,) float64
        Values of a fit to the visible numbers.
    """
    half = np.random.default_rng(1).permutation(numbers.n_tasks)[numbers.task[hidden]] % 2
    weight = np.ones(len(half)) if numbers.weight is None else numbers.weight[hidden]
    positive = (numbers.value > 0).all() and (values > 0).all()
    judges = [
        _densities(numbers, hidden, values, is_log, nu)
        for is_log in ((False, True) if positive else (False,))
        for nu in DEGREES
    ]
    found = np.empty(len(half))
    for own in (0, 1):
        other = half != own if (half != own).any() else half == own
        tables = [table[other] for table, _ in judges]  # each (n_hidden, n_factors)
        totals = np.array([weight[other] @ table for table in tables])
        best, factor = np.unravel_index(int(np.argmax(totals)), totals.shape)
        found[half == own] = judges[best][0][half == own, factor]
    return found


def _densities(
    numbers: CrowdNumbers, hidden: Mask, values: Floats, is_log: bool, nu: float
) -> tuple[Floats, NumberJudge]:
    """Return the log densities (n_hidden, n_factors) of hidden numbers, and their judge."""
    y, z = (np.log(numbers.value), np.log(values)) if is_log else (numbers.value, values)
    away = y - z[numbers.task]
    visible = ~hidden
    weight = None if numbers.weight is None else numbers.weight[visible]
    judge = fit_number_judge(
        away[visible], numbers.worker[visible], weight, numbers.n_workers, float(np.ptp(y)), nu
    )
    table = judge.log_densities(away[hidden], numbers.worker[hidden])
    return (table - y[hidden][:, None] if is_log else table), judge


@dataclass(frozen=True, eq=False)
class NumberJudge:
    """The common model of the workers, estimated from visible deviations.

    Attributes
    ----------
    bias, scale : (J,)
        Location and scale of the deviations of each worker from the values.
    nu : float
        Degrees of freedom.
    """

    bias: Floats
    scale: Floats
    nu: float

    def log_densities(self, away: Floats, worker: Ints) -> Floats:
        """Return the log density (n, n_factors) of each deviation with every common factor."""
        wide = self.scale[worker][:, None] * FACTORS
        ratio = (away - self.bias[worker])[:, None] / wide
        return log_student(ratio, self.nu) - np.log(wide)


def fit_number_judge(
    away: Floats, worker: Ints, weight: Floats | None, n_workers: int, spread: float, nu: float
) -> NumberJudge:
    """Estimate bias and scale of each worker from deviations of labels from values.

    Parameters
    ----------
    away, worker : (n,)
        Deviations and codes of workers.
    weight : (n,), optional
    n_workers : int
    spread : float
        Range of the numbers, for the smallest scale.
    nu : float
        Degrees of freedom.
    """
    w = np.ones(len(away)) if weight is None else weight
    n = np.bincount(worker, w, n_workers)
    known = n > 0
    floor = (LEAST_SHARE * spread or LEAST_SHARE) ** 2
    bias = np.zeros(n_workers)
    square = np.full(n_workers, max(float(np.average(away**2, weights=w)), floor))
    between = float(square[0]) / 10
    for _ in range(ROUNDS):
        rest = (away - bias[worker]) ** 2
        u = w if nu == np.inf else w * (nu + 1) / (nu + rest / square[worker])
        total = np.bincount(worker, u, n_workers)
        precision = total / square + 1 / max(between, floor)
        bias = np.bincount(worker, u * away, n_workers) / square / precision
        between = float((bias**2 + 1 / precision)[known].mean())
        rest = (away - bias[worker]) ** 2
        crowd = max(float((u * rest).sum() / n.sum()), floor)
        sums = np.bincount(worker, u * rest, n_workers)
        square = np.maximum((sums + PSEUDO_LABELS * crowd) / (n + PSEUDO_LABELS), floor)
    return NumberJudge(bias, np.sqrt(square), nu)


def log_student(x: Floats, nu: float) -> Floats:
    """Return the log density of the t distribution; normal for infinite ``nu``."""
    if nu == np.inf:
        return np.asarray(-0.5 * (x**2 + np.log(2 * np.pi)))
    from scipy.special import gammaln

    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
    return np.asarray(constant - (nu + 1) / 2 * np.log1p(x**2 / nu))
