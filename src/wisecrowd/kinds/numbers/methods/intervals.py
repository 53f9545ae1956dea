r"""Intervals of numbers: errors with biases and level integrated out, and calibration on gold.

Given the noise, numbers, biases and level are jointly normal:

.. math::
    y_e = z_i + b_j + \varepsilon_e, \quad \varepsilon_e \sim N(0, 1 / P_e), \qquad
    z_i \sim N(\mu, \tau^2), \quad b_j \sim N(0, \omega^2)

with a flat prior of :math:`\mu`. Without the numbers the precision of :math:`(\mu, b)` is

.. math:: S = B - C^\top D^{-1} C, \qquad D_i = \tau^{-2} + \sum_{e \in i} P_e, \qquad
          C_{ij} = \sum_{e \in ij} P_e, \quad C_{i \mu} = -\tau^{-2},

where :math:`B` has :math:`\omega^{-2} + \sum_{e \in j} P_e` and :math:`\sum_i \tau^{-2}` on its
diagonal. The variance of a number is

.. math:: V_i = \frac{1}{D_i} + k_i^\top S^{-1} k_i, \qquad k_i = C_i / D_i.

Both terms are estimated from the same labels. The quantile of the interval is that of a t
distribution with the degrees of freedom of Satterthwaite.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.saved_attributes import is_finite
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.numbers.answers import NumberAnswers, known_numbers
from wisecrowd.kinds.numbers.methods.facts import logarithms

MOST_CELLS = 1_000_000  # entries of the joint variance of all biases; above, they are independent
BLOCK = 4096  # tasks whose variances are computed at once
LEAST_FREEDOM, MOST_FREEDOM = 1.0, 1e6  # degrees of freedom; the largest stand for a normal
LEAST_GOLD = 10  # tasks that the calibration of intervals needs
GOLD_FOR_LEVEL = 30  # tasks that a correction of level and slope needs
SHARED_BIAS = "shared-bias-invisible"  # id of the finding that known numbers answer
CALIBRATED_AT = 0.9  # share of the gold that calibrated intervals of this level contain


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalDesign:
    """Numbers of tasks, biases of workers and a level, with labels of known noise.

    Attributes
    ----------
    task, worker : (E,)
    own, cross, bias : (E,)
        Precision that a label gives to the number of its task, to its product with the bias, and to
        the bias; without gains all are the precision of the label.
    prior : (N,)
        Precision of the numbers around the level, or around their own prior.
    known : (N,) bool
        Tasks whose number is known.
    omega : float
        Variance of the biases; 0 for none.
    n_workers : int
    has_level : bool
        Whether the level is unknown.
    """

    task: Ints
    worker: Ints
    own: Floats
    cross: Floats
    bias: Floats
    prior: Floats
    known: NDArray[np.bool_]
    omega: float
    n_workers: int
    has_level: bool

    def own_precision(self) -> Floats:
        """Return the precision (N,) of each number if biases and level were known."""
        return np.asarray(self.prior + np.bincount(self.task, self.own, len(self.prior)))

    def loadings(self) -> Any:
        """Return the sparse (N, 1 + J) table of C, the level first; known numbers have zeros."""
        from scipy.sparse import csr_matrix

        free = np.flatnonzero(~self.known) if self.has_level else np.empty(0, np.int64)
        labels = np.flatnonzero(~self.known[self.task]) if self.omega > 0 else free[:0]
        rows = np.concatenate([free, self.task[labels]])
        columns = np.concatenate([np.zeros(len(free), np.int64), self.worker[labels] + 1])
        values = np.concatenate([-self.prior[free], self.cross[labels]])
        shape = len(self.prior), self.n_workers + 1
        return csr_matrix((values, (rows, columns)), shape=shape)


def joint_variance(design: NormalDesign) -> Floats | None:
    """Return the variance (1 + J, 1 + J) of level and biases; None if there are too many workers.

    Rows of what is known, such as biases of variance 0, are zeros.
    """
    size = design.n_workers + 1
    if size * size > MOST_CELLS:
        return None
    joint = np.zeros((size, size))
    active = np.append(design.has_level, np.full(design.n_workers, design.omega > 0))
    place = np.flatnonzero(active)
    if not len(place):
        return joint
    diagonal = np.zeros(size)
    diagonal[0] = design.prior.sum()
    if design.omega > 0:
        diagonal[1:] = 1 / design.omega + np.bincount(design.worker, design.bias, design.n_workers)
    loadings = design.loadings()
    weighted = loadings.multiply(1 / design.own_precision()[:, None]).tocsr()
    precision = np.diag(diagonal) - (loadings.T @ weighted).toarray()
    joint[np.ix_(place, place)] = _inverse(precision[np.ix_(place, place)])
    return joint


def _inverse(precision: Floats) -> Floats:
    """Return the inverse of a positive definite matrix, at a scale where its diagonal is 1."""
    unit = 1 / np.sqrt(np.maximum(np.diag(precision), 1e-300))
    scaled = precision * unit * unit[:, None]
    value, vector = np.linalg.eigh((scaled + scaled.T) / 2)
    least = len(value) * np.finfo(float).eps * value[-1]
    inverse = (vector / np.maximum(value, least)) @ vector.T
    return np.asarray(inverse * unit * unit[:, None])


class Errors(NamedTuple):
    """Variance (N,) of the numbers, by noise of their own labels, and by biases and level."""

    own: Floats
    shared: Floats

    @property
    def variance(self) -> Floats:
        """(N,) sum of both."""
        return self.own + self.shared

    def freedom(self, of_own: float, of_shared: float) -> Floats:
        """Return the degrees of freedom (N,) of the variances, by Satterthwaite.

        ``of_own`` and ``of_shared`` are those of the noise and of the spread of the biases; each
        counts as one at least.
        """
        largest = np.maximum(self.variance, 1e-300)
        own, shared = self.own / largest, self.shared / largest
        rest = own**2 / max(of_own, 1.0) + shared**2 / max(of_shared, 1.0)
        found = 1 / np.maximum(rest, 1 / MOST_FREEDOM)
        return np.where(self.variance > 0, np.maximum(found, LEAST_FREEDOM), MOST_FREEDOM)


def task_errors(design: NormalDesign, joint: Floats) -> Errors:
    """Return the errors of the numbers with biases and level integrated out.

    Parameters
    ----------
    design : NormalDesign
    joint : (1 + J', 1 + J')
        Variance of level and biases, as :func:`joint_variance` returns it. It may be of the first
        workers only: the others have no bias.
    """
    precision = design.own_precision()
    loadings = design.loadings()[:, : len(joint)].multiply(1 / precision[:, None]).tocsr()
    shared = np.empty(len(precision))
    for start in range(0, len(precision), BLOCK):
        part = loadings[start : start + BLOCK]
        spread = part.multiply(part @ joint).sum(axis=1)
        shared[start : start + BLOCK] = np.asarray(spread).ravel()
    shared = np.maximum(shared, 0.0)
    return Errors(np.where(design.known, 0.0, 1 / precision), shared)


def independent_errors(design: NormalDesign, spread: Floats, level: float) -> Errors:
    """Return errors for biases with independent variances (J,), and a variance of the level."""
    precision = design.own_precision()
    loadings = design.loadings()[:, 1:].multiply(1 / precision[:, None]).tocsr()
    shared = np.asarray(loadings.multiply(loadings) @ spread).ravel() + level
    return Errors(np.where(design.known, 0.0, 1 / precision), np.where(design.known, 0.0, shared))


def average_errors(
    task: Ints, worker: Ints, share: Floats, noise: Floats, omega: float, n_tasks: int
) -> Errors:
    """Return the errors of weighted means whose workers have a noise (J,) and a bias.

    Parameters
    ----------
    task, worker, share : (E,)
        ``share`` is the weight of a label in the value of its task; the weights are scaled to 1.
    noise : (J,)
        Variance of the labels of each worker.
    omega : float
        Variance of the biases.
    n_tasks : int

    Examples
    --------
    >>> pair, share = np.array([0, 0]), np.ones(2)
    >>> average_errors(pair, np.array([0, 1]), share, np.array([1.0, 3.0]), 0.5, 1)
    Errors(own=array([1.]), shared=array([0.25]))
    """
    total = np.bincount(task, share, n_tasks)
    a = share / np.where(total > 0, total, 1.0)[task]
    own = np.bincount(task, a**2 * noise[worker], n_tasks)
    cell, place = np.unique(task.astype(np.int64) * len(noise) + worker, return_inverse=True)
    by_worker = np.bincount(place, a, len(cell))
    shared = omega * np.bincount(cell // len(noise), by_worker**2, n_tasks)
    return Errors(np.asarray(own, np.float64), np.asarray(shared, np.float64))


def calibrate(method: Any, gold: Any) -> Any:
    r"""Return a copy of a fitted method for numbers that is calibrated on known numbers.

    With 30 known numbers or more, values are first replaced by :math:`a + c m_i`, the least squares
    line of the known numbers :math:`z_i`, and standard deviations by :math:`c` times their size. A
    slope that is not positive is no correction: then only the level moves.

    The finding on errors that all workers share goes, because known numbers show them.

    All standard deviations get one factor, with which the 90% intervals contain 90% of the gold:
    the value at :math:`\lceil .9 (n + 1) \rceil / n` of :math:`|e_i| / (q_i \sqrt{v_i})`. Here
    :math:`q_i` is the 95% quantile of the method's own interval, and :math:`e_i` the error of a
    known number, predicted without it where a line was fitted.

    Parameters
    ----------
    method : fitted method for numbers
        Fitted without this gold, because known tasks have no error.
    gold : mapping from task to number, (task, value) frame, or (n_tasks,) array with NaN
        Known numbers of at least ten tasks.

    Examples
    --------
    >>> from wisecrowd.aggregation import Mean
    >>> task, worker = [i for i in range(20) for _ in "ab"], ["ann", "bob"] * 20
    >>> fitted = Mean().fit((task, worker, [i % 7 for i in range(40)]))
    >>> low, high = fitted.interval(0.9)
    >>> wider = calibrate(fitted, dict(zip(range(20), high + (high - low) / 2)))
    >>> round(wider.interval_factor_, 6), wider.correction_
    (2.0, (0.0, 1.0))
    """
    method._require_fitted()
    scale, mean, variance = method._scale(), method._fitted_mean(), method.variance_
    known = _on_scale(known_numbers(gold, _Tasks(method.tasks_), "gold"), method, scale)  # type: ignore[arg-type]
    estimated = variance > 0
    used = ~np.isnan(known) & estimated
    n = int(used.sum())
    if n < LEAST_GOLD:
        raise DataError(
            f"Gold has {n} task{'' if n == 1 else 's'} whose number the fit estimated, and the "
            f"calibration of intervals needs {LEAST_GOLD}; give more gold, and fit without it."
        )
    level, slope, error = 0.0, 1.0, known[used] - mean[used]
    if n >= GOLD_FOR_LEVEL:
        level, slope, error = _line(mean[used], known[used])
        mean = np.where(estimated, level + slope * mean, mean)
        variance = slope**2 * variance
    width = np.broadcast_to(method._quantiles(0.5 + CALIBRATED_AT / 2), mean.shape)[used]
    ratio = np.sort(np.abs(error) / (width * np.sqrt(variance[used])))
    factor = float(ratio[min(math.ceil(CALIBRATED_AT * (n + 1)), n) - 1])
    freedom = vars(method).get("freedom_")
    answers = NumberAnswers.normal(mean, variance, scale, factor, freedom)
    made = copy.copy(method)
    vars(made).update(answers.attributes({}))
    before = vars(method).get("correction_", (0.0, 1.0))
    made.interval_factor_ = factor
    made.correction_ = (level + slope * before[0], slope * before[1])
    made.findings_ = tuple(one for one in made.findings_ if one.id != SHARED_BIAS)
    made.warnings_ = tuple(str(one) for one in made.findings_)
    return made


def with_known(method: Any, gold: Any) -> Any:
    """Return a copy of a fitted method for numbers whose known tasks have their known number.

    Parameters
    ----------
    method : fitted method for numbers
    gold : mapping from task to number, (task, value) frame, or (n_tasks,) array with NaN

    Examples
    --------
    >>> from wisecrowd.aggregation import Mean
    >>> fitted = Mean().fit((["t", "t", "u"], ["ann", "bob", "ann"], [1.0, 2.0, 3.0]))
    >>> found = with_known(fitted, {"t": 1.7})
    >>> found.values_.tolist(), (found.high_ - found.low_).round(1).tolist()
    ([1.7, 3.0], [0.0, 2.8])
    """
    method._require_fitted()
    known = known_numbers(gold, _Tasks(method.tasks_), "gold")  # type: ignore[arg-type]
    given, made = ~np.isnan(known), copy.copy(method)
    for name in ("values_", "low_", "high_"):
        setattr(made, name, np.where(given, known, vars(method)[name]))
    made.variance_ = np.where(given, 0.0, method.variance_)
    return made


def _line(mean: Floats, known: Floats) -> tuple[float, float, Floats]:
    """Return level and slope of the known numbers on the values, and errors without each (n,)."""
    n, away = len(mean), mean - mean.mean()
    squares = float(away @ away)
    slope = float(away @ known) / squares if squares > 0 else 1.0
    leverage = np.full(n, 1 / n)
    if squares > 0 and slope > 0:
        leverage = leverage + away**2 / squares
    else:
        slope = 1.0
    level = float(known.mean() - slope * mean.mean())
    return level, slope, (known - level - slope * mean) / np.maximum(1 - leverage, 1e-9)


def _on_scale(known: Floats, method: Any, scale: str) -> Floats:
    """Return known numbers on the scale of the fit."""
    if scale != "log":
        return known
    rows = np.flatnonzero(~np.isnan(known))
    known = known.copy()
    known[rows] = logarithms(
        known[rows], lambda i: f"gold of task {method.tasks_[rows[i]]!r}", type(method).__name__
    )
    return known


def is_correction(value: Any) -> bool:
    """Return whether a value is a level and a positive slope."""
    pair = isinstance(value, tuple) and len(value) == 2
    return pair and all(isinstance(x, float) and is_finite(x) for x in value) and value[1] > 0


@dataclass(frozen=True, eq=False)
class _Tasks:
    """The ids of tasks alone, which are all that reading gold needs."""

    tasks: NDArray[Any]

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)
