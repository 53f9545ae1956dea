"""What methods for ordered classes share: decision, findings, and cuts of a latent level."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.findings import Finding, not_converged
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit, confidence_of
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import subsample_step, subsample_tasks
from wisecrowd.kinds.classes.findings.data_checks import data_findings
from wisecrowd.kinds.classes.findings.little_evidence import little_evidence
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.kinds.ordered.answers import DECISIONS, OrderedAnswers, decided

GRID = np.linspace(-6.0, 6.0, 193)  # levels at which final posteriors are computed
PSEUDO_GOLD = 5.0  # gold tasks that the cuts to start from count for


@dataclass(eq=False, repr=False, kw_only=True)
class OrderedMethod(Aggregator):
    """Base of methods for ordered classes, with the parameter ``decide``."""

    decide: str = "median"

    takes: ClassVar[str] = "ordered"

    limits: ClassVar[Limits] = {"decide": Choice(DECISIONS)}

    def _answers(self, probas: Any) -> OrderedAnswers:
        """Return a posterior as answers, decided by the method's rule."""
        return OrderedAnswers(probas, self.decide)

    def _findings(self, problem: Problem, result: Fit, gold: Any) -> list[Finding]:
        """Return findings on the data, on too little evidence and on convergence.

        Checks against the majority vote do not apply: the median of ordered classes may rightly
        be a class that few workers chose.
        """
        labels = problem.data
        some, step = subsample_tasks(labels), subsample_step(labels)
        found = list(data_findings(labels, some))
        if gold is not None and (gold >= 0).any():
            some = some.select_annotations((gold < 0)[::step][some.task])
        if some.n_annotations > 0 and not problem.prior.given:
            probas = result.probas[::step]
            codes, _ = decided(probas, labels.class_totals, self.decide)
            confidence = confidence_of(probas, codes)
            found += little_evidence(some, codes, confidence, labels.labels_per_worker)
        if not result.converged and self._wants_convergence():
            found.append(not_converged(result.n_iter, type(self).__name__))
        return found

    def _wants_convergence(self) -> bool:
        """Return whether ``max_iter`` is at its default or above; lower means stopping early."""
        usual = inspect.signature(type(self).__init__).parameters.get("max_iter")
        limit = getattr(self, "max_iter", None)
        return usual is None or limit is None or bool(np.greater_equal(limit, usual.default))


def cuts_at_shares(shares: Floats, density: Floats, grid: Floats) -> Floats:
    """Return the cuts (K - 1,) below which a density on a grid has the given shares of classes.

    Examples
    --------
    >>> cuts_at_shares(np.array([0.25, 0.75]), np.ones(5), np.arange(5.0)).tolist()
    [0.75]
    """
    below = np.cumsum(density) - density / 2
    below /= density.sum()
    return np.asarray(np.interp(np.cumsum(shares)[:-1], below, grid))


def cuts_from_gold(level: Floats, gold: Ints, cuts: Floats, density: Floats, grid: Floats) -> (
    Floats
):  # fmt: skip
    r"""Return the cuts with the least absolute error on gold tasks.

    The absolute error is a sum over cuts, so that each cut ``k`` is found alone, among the given
    cut and the midpoints between gold tasks. It minimises

    .. math::
        \#\{z_i > k, x_i \le c\} + \#\{z_i \le k, x_i > c\} + \lambda |G(c) - G(c_k)|

    where ``G`` is the distribution of levels: the given cuts count for :math:`\lambda` gold tasks,
    and few gold tasks move them only a little. The minima of increasing ``k`` increase.

    Parameters
    ----------
    level, gold : (n,)
        Estimated level and true class of each gold task.
    cuts : (K - 1,)
        Cuts to start from.
    density, grid : (G,)
        Distribution of the levels of all tasks.

    Examples
    --------
    >>> grid = np.linspace(-3, 3, 61)
    >>> level, gold = np.array([-1.0, 0.5, 0.7, 2.0]), np.array([0, 0, 0, 1])
    >>> level, gold = np.repeat(level, 5), np.repeat(gold, 5)
    >>> cuts_from_gold(level, gold, np.array([0.0]), np.ones(61), grid).round(2).tolist()
    [1.35]
    """
    order = np.argsort(level, kind="stable")
    x, z = level[order], gold[order]
    below = np.cumsum(density) / density.sum()
    places = np.unique(x)
    middles = (places[1:] + places[:-1]) / 2
    found = np.empty(len(cuts))
    for k, cut in enumerate(cuts.tolist()):
        candidates = np.concatenate([[cut], middles, x[:1] - 1, x[-1:] + 1])
        n_below = np.searchsorted(x, candidates, side="right")
        above = np.concatenate([[0], np.cumsum(z > k)])
        wrong = above[n_below] + (len(z) - n_below) - (above[-1] - above[n_below])
        moved = np.abs(np.interp(candidates, grid, below) - np.interp(cut, grid, below))
        cost = wrong + PSEUDO_GOLD * moved
        near = np.flatnonzero(cost <= cost.min() + 1e-9)
        found[k] = candidates[near[np.argmin(np.abs(candidates[near] - cut))]]
    # Ties may be broken out of order; the mean of both envelopes treats both ends alike.
    up, down = np.maximum.accumulate(found), np.minimum.accumulate(found[::-1])[::-1]
    return np.asarray((up + down) / 2)


def between_cuts(q: Floats, cuts: Floats) -> Floats:
    """Return the probability between neighbouring cuts (n, K), of densities on the grid (n, G)."""
    below = np.cumsum(q, axis=1) - q / 2
    place = np.clip(np.searchsorted(GRID, cuts) - 1, 0, len(GRID) - 2)
    part = np.clip((cuts - GRID[place]) / (GRID[1] - GRID[0]), 0.0, 1.0)
    at = below[:, place] + part * (below[:, place + 1] - below[:, place])
    at = np.where(cuts <= GRID[0], 0.0, np.where(cuts >= GRID[-1], 1.0, at))
    ends = np.ones((len(q), 1))
    probas = np.maximum(np.diff(at, axis=1, prepend=0 * ends, append=ends), 0.0)
    return np.asarray(probas / probas.sum(axis=1, keepdims=True))


def normal_shares(cuts: Floats) -> Floats:
    """Return the probability of each class, (K,), for a standard normal level."""
    from scipy.special import ndtr

    return np.asarray(np.diff(ndtr(cuts), prepend=0.0, append=1.0))


def with_task_prior(probas: Floats, prior: TaskPrior, class_cuts: Floats) -> Floats:
    """Return the posterior with the task prior instead of the shares of the classes; with gold."""
    if not prior.rows.any():
        return probas
    n = len(probas)
    factor = prior.probabilities(n)
    if prior.given:
        factor = factor / np.maximum(normal_shares(class_cuts), 1e-12)
    table = probas * factor
    total = table.sum(axis=1, keepdims=True)
    table = np.where(total > 0, table, prior.probabilities(n))
    return np.asarray(table / table.sum(axis=1, keepdims=True))
