r"""The one-coin model by rank-one completion of worker agreement.

.. math::
    \min_x f(x) = \tfrac12 \sum_{j<k} n_{jk} (v_{jk} - x_j x_k)^2
    \quad \text{s.t. } low \le x \le high

with a value :math:`v_{jk}` of each pair of workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.loop import squarem
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    PairMethod,
    on_simplex,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments
from wisecrowd.kinds.classes.families.moments.third_moments import (
    class_shares,
    unidentified_workers,
)
from wisecrowd.kinds.classes.families.posteriors import single_task_workers, worker_weights
from wisecrowd.kinds.classes.families.skill_vote import (
    fill_in,
    orient,
    right_labels,
    sum_by,
    vote_agreement,
)
from wisecrowd.kinds.classes.methods.one_coin import coin_confusion

LONGEST = 0.5  # a full step would make the length of the vector oscillate
SHORTEST = 2.0**-30  # shortest step that is tried
ALONE = "share too little with others to compare them", "they have the mean skill"
LEAST = 1e-9  # least maximum skill of a component that counts as better than chance


class RankOneFit(NamedTuple):
    """The vector (J,), the objective after each step, and whether it converged."""

    factor: Floats
    history: tuple[float, ...]
    converged: bool


def rank_one_fit(
    pairs: PairMoments,
    values: Floats,
    start: Floats,
    bounds: tuple[float, float],
    *,
    max_iter: int,
    tol: float,
) -> RankOneFit:
    """Minimise by projected gradient until no entry moves by more than ``tol``.

    The gradient is divided by the curvature along each entry, so that workers with few and with
    many labels converge equally fast. A step that lowers the objective makes the next one longer; a
    step that would raise it is halved. An extrapolation of every three points (SQUAREM) is used if
    its objective is lower, so the objective never rises.
    """
    i, k = pairs.first, pairs.second
    weight = pairs.n_shared / max(float(pairs.n_shared.sum()), 1e-300)

    def by_worker(of_first: Floats, of_second: Floats) -> Floats:
        return sum_by(i, of_first, len(start)) + sum_by(k, of_second, len(start))

    def at(x: Floats) -> _Iterate:
        off = x[i] * x[k] - values
        gradient = by_worker(weight * off * x[k], weight * off * x[i])
        curvature = by_worker(weight * x[k] ** 2, weight * x[i] ** 2)
        least = 1e-12 * max(float(curvature.max(initial=0.0)), 1e-300)
        misfit = 0.5 * float((weight * off**2).sum())
        return _Iterate(x, misfit, gradient / np.maximum(curvature, least))

    met = by_worker(weight, weight) > 0
    here = at(np.where(met, start, 0.0).clip(*bounds))
    history: list[float] = []
    path = [here.x]
    step, converged = LONGEST, False
    for number in range(1, max_iter + 1):
        step, there = _descend(at, here, step, bounds)
        converged = float(np.abs(there.x - here.x).max(initial=0.0)) <= tol
        here = there
        path.append(here.x)
        if len(path) == 3:
            further = squarem(*path)
            trial = None if further is None else at(further.clip(*bounds))
            here = trial if trial is not None and trial.value < here.value else here
            path = [here.x]
        history.append(here.value)
        report(Progress(number, max_iter, here.value))
        if converged:
            break
    return RankOneFit(here.x, tuple(history), converged)


class _Iterate(NamedTuple):
    """A vector, the objective there, and the gradient over the curvature."""

    x: Floats
    value: float
    slope: Floats


def _descend(
    at: Callable[[Floats], _Iterate], here: _Iterate, step: float, bounds: tuple[float, float]
) -> tuple[float, _Iterate]:
    """Return the next step's length, and a point that is not worse than ``here``."""
    while step > SHORTEST:
        there = at((here.x - step * here.slope).clip(*bounds))
        if there.value <= here.value:
            return min(2 * step, LONGEST), there
        step *= 0.5
    return step, here


@dataclass(eq=False, repr=False, kw_only=True)
class RankOne(PairMethod):
    r"""One accuracy per worker by a rank-one fit to pairwise agreement.

    .. math::
        X_{jk} = A_{jk} - \sum_l m_j(l) m_k(l), \quad
        E[X_{jk}] = s_j s_k (1 - \textstyle\sum_l \pi_l^2), \qquad
        \min_{s} \tfrac12 \sum_{j<k} n_{jk} (X_{jk} - t_j t_k)^2

    with :math:`A_{jk}` the share of equal labels on the :math:`n_{jk}` common tasks, :math:`m_j`
    the label frequencies of a worker, :math:`s_j = (K p_j - 1) / (K - 1)`, and :math:`t_j`
    proportional to it.

    Use it when workers share few tasks and differ in how often they err, not in how: one parameter
    per worker needs the fewest labels, and no posterior is iterated. Cost per round: O(pairs of
    workers who share a task).

    Parameters
    ----------
    statistic : "covariance" or "agreement"
        The fitted statistic: agreement beyond that of the workers' own label frequencies or, as in
        the paper, beyond 1 / K, :math:`(K A_{jk} - 1) / (K - 1)` with expectation :math:`s_j s_k`.
    max_iter : int
        Maximum number of projected-gradient steps.
    tol : float
        Largest change of a skill that counts as converged.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.kinds.classes.families.moments.moment_method.PairMethod`. Pairs are
        weighted by their shared tasks, so by default all of them count.

    Attributes
    ----------
    skill_ : (n_workers,)
        :math:`s_j`: 1 for always right, 0 for chance.
    confusion_ : (n_workers, n_classes, n_classes)
        The one-coin matrices given by the skills, with one pseudo-label per row.
    class_prior_ : (n_classes,)
        Least-squares fit to the workers' label frequencies.
    identified_ : (n_workers,) bool
        Whether the worker is in a pair that counts, in a component of the crowd where some workers
        agree beyond chance. The others get the mean skill, or 1/2 if no worker is identified.
    history_ : tuple of float
        The objective after each step; it never rises.

    Notes
    -----
    Steps are scaled by the curvature along each skill and shortened until the objective falls. In
    each connected component of the crowd the skills are determined up to a common sign. The sign is
    chosen so that the weighted vote agrees with the plain vote in total, which assumes that most
    workers are better than chance.

    Both statistics are exact for one-coin workers. Under the paper's statistic, spammers who favour
    the same label agree and seem skilled; their covariance is zero. Where a class is rare, the
    paper's statistic has less noise. Workers who labelled a single task are in no pair: one label,
    right or wrong, would make them perfect or hopeless. The class prior is the one that fits the
    workers' label frequencies :math:`m_j(l) = s_j \pi_l + (1 - s_j) / K` best. Where some workers
    are adversaries, use MMSR, which leaves out their pairs.

    References
    ----------
    Y. Ma, A. Olshevsky, V. Saligrama and C. Szepesvari (2018). Gradient descent for sparse rank-one
    matrix completion for crowd-sourced aggregation of sparsely interacting workers. ICML, PMLR 80,
    3335-3344.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 0, 1], [1, 1, 1, 0], [2, 2, 1, 1], [1, 1, 1, 1], [0, 0, 2, 2]]
    >>> model = RankOne().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_
    array([0, 1, 2, 1, 0])
    >>> model.skill_.argmin()
    np.int64(3)
    """

    statistic: str = "covariance"
    max_iter: int = 500
    tol: float = 1e-6
    class_prior: Any = "auto"
    min_shared: Any = 1
    max_pairs: int = 2_000_000
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "skill_": SavedArray("J"),
    }
    promises: ClassVar[Tags] = Tags(inductive=True, likelihood=True, confusion=True)
    footprint = Footprint(label=70.0, cell=20.0, confusion=100.0, pair_table=5.0)
    tells_classes_apart = False
    limits: ClassVar[Limits] = {"statistic": Choice(("covariance", "agreement"))}

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        found = super()._fit(problem)
        # Gold labels act as one more worker, who is not part of the result.
        own = {name: found.extra[name][: labels.n_workers] for name in ("skill", "identified")}
        return replace(found, extra={**found.extra, **own})

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        J, K = labels.n_workers, labels.n_classes
        pairs = self._pairs(labels, rng)
        single = single_task_workers(labels)
        pairs = pairs.select(~(single[pairs.first] | single[pairs.second]))
        total = worker_weights(labels)
        start = np.full(J, 0.5)
        if problem.start is not None and K > 1:
            share = right_labels(labels, problem.start) / np.maximum(total, 1.0)
            start = (K * share - 1) / (K - 1)
        low = -1 / max(K - 1, 1)
        values = beyond_chance(pairs) if self.statistic == "agreement" else beyond_own(pairs)
        fit = rank_one_fit(pairs, values, start, (low, 1.0), max_iter=self.max_iter, tol=self.tol)
        part, n_parts = pairs.parts()
        agreement = vote_agreement(labels, np.full(labels.n_tasks, -1))
        factor = orient(fit.factor, agreement, part, n_parts)
        largest = np.zeros(n_parts)
        np.maximum.at(largest, part, np.abs(factor))
        identified = (np.diff(pairs.partners[0]) > 0) & (largest[part] > LEAST)
        weight = np.where(identified, total, 0.0)
        prior, scale = coin_class_prior(labels, pairs.marginals, factor, weight, self.statistic)
        skill = fill_in((factor / scale).clip(low, 1.0), identified, total)
        return MomentEstimate(
            coin_confusion((1 + (K - 1) * skill) / K, K),
            prior,
            np.ones(J, dtype=bool),  # workers whom no pair identifies get the mean skill
            part,
            n_iter=len(fit.history),
            converged=fit.converged,
            history=fit.history,
            findings=unidentified_workers(labels, (total > 0) & ~identified, *ALONE)
            + pairs.findings,
            extra={"skill": skill, "identified": identified},
        )


def beyond_chance(pairs: PairMoments) -> Floats:
    """Return the agreement of each pair, scaled so that chance is 0 and full agreement is 1."""
    chance = 1 / max(pairs.n_classes - 1, 1)
    return np.asarray(pairs.agreement * (1 + chance) - chance)


def beyond_own(pairs: PairMoments) -> Floats:
    """Return the agreement of each pair beyond that of their own label frequencies.

    The frequencies use all labels of a worker, because a pair has too few common tasks.
    """
    own = np.einsum("pl,pl->p", pairs.marginals[pairs.first], pairs.marginals[pairs.second])
    return np.asarray(pairs.agreement - own)


def coin_class_prior(
    labels: CrowdLabels, marginals: Floats, factor: Floats, weight: Floats, statistic: str
) -> tuple[Floats, float]:
    r"""Return the class prior that fits the label frequencies best, and the scale of the skills.

    The scaled skill is :math:`t = c s` with :math:`c = 1` for agreement and
    :math:`c^2 = 1 - \sum_l \pi_l^2` for covariance. Regression of
    :math:`m_j(l) - 1/K = t_j (\pi_l - 1/K) / c` gives :math:`d = (\pi - 1/K) / c`, and hence
    :math:`c^2 = (1 - 1/K) / (1 + \sum_l d_l^2)`.
    """
    K = marginals.shape[1]
    size = float(weight @ factor**2)
    if K == 1 or not size > 0:
        return class_shares(labels, np.zeros(K)), 1.0
    direction = (weight * factor) @ (marginals - 1 / K) / size
    scale = 1.0
    if statistic == "covariance":
        scale = float(np.sqrt((1 - 1 / K) / (1 + direction @ direction)))
    return on_simplex(1 / K + scale * direction), scale
