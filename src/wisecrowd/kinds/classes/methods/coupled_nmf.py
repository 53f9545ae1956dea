r"""Coupled factorisation of all pair tables under the Kullback-Leibler divergence.

.. math::
    \min_{\theta, \pi} \sum_{jj'} c_{jj'} KL\big( R_{jj'} \,\|\, \theta_j^T diag(\pi) \theta_{j'}
    \big)

With :math:`c` the number of shared tasks, this is the composite likelihood of all pairs of labels.
Its EM algorithm, in which the class of each pair is latent, needs no step size and is monotone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    PairMethod,
    inner_start,
    start_from,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments
from wisecrowd.kinds.classes.methods.multi_spa import multi_spa

FLOOR = 1e-300  # stands for a probability of zero; its logarithm and inverse are finite
RESOLUTION = 2.0**-52  # gains below this, in nats, are rounding: an exact fit has converged


class PairFit(NamedTuple):
    """Confusion (J, K, K), class prior (K,), divergence after each step, whether it converged."""

    confusion: Floats
    class_prior: Floats
    divergence: tuple[float, ...]
    converged: bool


def fit_pairs(
    pairs: PairMoments,
    confusion: Floats,
    class_prior: Floats,
    *,
    weight: Floats | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> PairFit:
    """Fit all pair tables from a start.

    Parameters
    ----------
    pairs : PairMoments
        Moments of samples or of a population.
    confusion, class_prior : (n_workers, K, K), (K,)
        The start. Zeros stay zero. Workers without pairs keep their matrix.
    weight : (n_pairs,), optional
        Weight of each pair's table; by default the number of shared tasks.
    max_iter, tol : int, float
        Maximum number of steps; relative decrease of the divergence that counts as converged. A
        decrease below floating-point resolution also counts.
    """
    weight = pairs.n_shared if weight is None else weight
    total = float(weight.sum())
    if not total > 0:
        return PairFit(confusion, class_prior, (0.0,), True)
    share = weight / total
    history: list[float] = []
    converged = False
    for number in range(1, max_iter + 1):
        model = _model(pairs, confusion, class_prior)
        history.append(_divergence(pairs.tables, model, share))  # before this step
        report(Progress(number, max_iter, -history[-1]))
        confusion, class_prior = _step(pairs, share, model, confusion, class_prior)
        if number > 1 and history[-2] - history[-1] <= max(tol * history[-1], RESOLUTION):
            converged = True
            break
    history.append(_divergence(pairs.tables, _model(pairs, confusion, class_prior), share))
    return PairFit(confusion, class_prior, tuple(history[1:]), converged)


def _model(pairs: PairMoments, confusion: Floats, class_prior: Floats) -> Floats:
    """Return the tables (P, L, L') that the parameters predict."""
    both = class_prior[:, None] * confusion[pairs.second]
    return np.maximum(confusion[pairs.first].transpose(0, 2, 1) @ both, FLOOR)


def _divergence(tables: Floats, model: Floats, share: Floats) -> float:
    """Return the weighted mean divergence, without cancellation where the fit is nearly exact."""
    seen = tables > 0
    apart = np.where(seen, model / np.where(seen, tables, 1.0) - 1.0, 0.0)
    cells = np.where(seen, tables * (apart - np.log1p(apart)), model)
    return float(share @ cells.sum(axis=(1, 2)))


def _step(
    pairs: PairMoments, share: Floats, model: Floats, confusion: Floats, class_prior: Floats
) -> tuple[Floats, Floats]:
    """Return the parameters after one step."""
    one, two = confusion[pairs.first], confusion[pairs.second]  # (P, K, L)
    both = class_prior[:, None] * two
    ratio = share[:, None, None] * pairs.tables / model
    of_first = one * (both @ ratio.transpose(0, 2, 1))  # expected counts (P, K, L)
    of_second = both * (one @ ratio)
    counts = pairs.sum_by_worker(of_first, of_second)
    rows = counts.sum(axis=2, keepdims=True)
    updated = np.where(rows > 0, counts / np.where(rows > 0, rows, 1.0), confusion)
    mass = of_first.sum(axis=(0, 2))
    return updated, mass / mass.sum()


@dataclass(eq=False, repr=False, kw_only=True)
class CoupledNMF(PairMethod):
    r"""Confusion matrices that explain the pair tables of all workers at once.

    .. math::
        \min_{\theta, \pi} \sum_{jj'} c_{jj'} KL\big( R_{jj'} \,\|\,
        \theta_j^T diag(\pi) \theta_{j'} \big)

    Use it when each task has few labels but pairs of workers share many tasks, or as a start for
    EM that does not depend on the vote. Cost per step: O(p K³) for p pairs of workers who share
    tasks.

    Parameters
    ----------
    weights : "shared" or "equal"
        :math:`c`: the number of shared tasks, which makes this a composite likelihood, or 1 as in
        the paper.
    max_iter, tol : int, float
        Maximum number of steps; relative decrease of the divergence that counts as converged.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.kinds.classes.families.moments.moment_method.PairMethod`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the worker shares tasks with any other worker.
    history_ : tuple of float
        Minus the divergence per pair of labels; it never decreases.

    Notes
    -----
    The start is :class:`~wisecrowd.aggregation.MultiSPA`'s estimate, or the given one, smoothed
    slightly because zeros stay zero. The paper uses mirror descent; here the updates are those of
    EM with a latent class for every pair, which are monotone and need no step size. The model is
    identifiable if two disjoint groups of workers have class experts. A divergence of nearly zero
    does not prove that the matrices are right: without strict experts, many matrices fit.

    The classes are named so that the workers are right most often. For gold labels, unidentified
    workers and zeros, see :mod:`wisecrowd.kinds.classes.families.moments.moment_method`.

    References
    ----------
    S. Ibrahim, X. Fu, N. Kargas and K. Huang (2019). Crowdsourcing via pairwise co-occurrences:
    identifiability and algorithms. NeurIPS 32, 7847-7857.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> CoupledNMF().fit(CrowdLabels.from_matrix(votes)).labels_
    array([0, 1, 0, 1, 0, 1])
    """

    weights: str = "shared"
    max_iter: int = 5000
    tol: float = 1e-6
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, confusion=True, likelihood=True, pooled=True, shardable=True
    )
    footprint = Footprint(label=42.6, cell=34.0, confusion=100.0, pair_table=34.8)
    limits: ClassVar[Limits] = {"weights": Choice(("shared", "equal"))}

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        pairs = self._pairs(labels, rng)
        first = None if problem.start is not None else multi_spa(pairs, noise=1.0)
        confusion, class_prior = start_from(labels, problem.start, first)
        fit = fit_pairs(
            pairs,
            inner_start(confusion),
            inner_start(class_prior),
            weight=None if self.weights == "shared" else np.ones(pairs.n_pairs),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        return MomentEstimate(
            fit.confusion,
            fit.class_prior,
            np.diff(pairs.partners[0]) > 0,
            pairs.parts()[0],
            pairs,
            n_iter=len(fit.divergence),
            converged=fit.converged,
            history=tuple(-x for x in fit.divergence),
        )
