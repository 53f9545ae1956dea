r"""Plackett-Luce: a ranking chooses the best item, then the best of the rest, and so on.

.. math:: \log P(r_1 \succ \dots \succ r_m) =
    \sum_{i < m} \Bigl[s_{r_i} - \log \sum_{j \ge i} e^{s_{r_j}}\Bigr]

With :math:`S_i = \sum_{j \ge i} e^{s_{r_j}}`, the derivative in the score of the item at place j is
:math:`1 - e^{s} \sum_{i \le j} 1 / S_i`, and minus the second one of the places j < k is
:math:`-e^{s_{r_j} + s_{r_k}} \sum_{i \le j} 1 / S_i^2`. Rankings of equal length are processed as
one table. Of very many items no table of pairs is made: sums along the rankings give the product of
the second derivatives with vectors, and errors of scores are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.methods.comparisons import Votes, centred, virtual_item
from wisecrowd.kinds.pairs.methods.covariance import (
    FEW_CLUSTERS,
    FEW_DRAWS,
    MOST_DENSE,
    Clusters,
    check_clusters,
    choose_clusters,
    conjugate_gradients,
    humble,
    inverse,
    sandwich,
)
from wisecrowd.kinds.pairs.methods.intervals import item_answers, item_findings
from wisecrowd.kinds.pairs.methods.vote_laws import lbfgs
from wisecrowd.kinds.rankings.container import CrowdRankings

BLOCK = 1 << 22  # numbers in a block of products with the second derivatives


class Group(NamedTuple):
    """Rankings of equal length: their rows (n,), items (n, m) and weights (n,)."""

    rows: Ints
    table: Ints
    weight: Floats


class Stages(NamedTuple):
    """Log-likelihood (n,), strengths (n, m), S (n, m), and sums of 1 / S over places so far."""

    value: Floats
    strength: Floats
    rest: Floats
    first: Floats


def groups_of(data: CrowdRankings) -> list[Group]:
    """Return the rankings by length."""
    found = []
    for length in np.unique(data.lengths).tolist():
        rows = np.flatnonzero(data.lengths == length)
        table = data.ranking[data.pointer[rows][:, None] + np.arange(length)]
        found.append(Group(rows, table, data.weights[rows]))
    return found


def stages(scores: Floats, table: Ints) -> Stages:
    """Return the likelihood of rankings and what its derivatives need."""
    s = scores[table]
    top = s.max(axis=1, keepdims=True)
    strength = np.exp(s - top)
    rest = np.maximum(np.cumsum(strength[:, ::-1], axis=1)[:, ::-1], 1e-300)
    value = (s - top - np.log(rest)).sum(axis=1)
    return Stages(value, strength, rest, np.cumsum(1 / rest, axis=1))


def slopes(found: Stages) -> Floats:
    """Return the derivatives (n, m) of the log-likelihood in the score of each place."""
    return 1 - found.strength * found.first


def log_probas(scores: Floats, data: CrowdRankings) -> Floats:
    """Return the log-probability (n_annotations,) of each ranking, given the scores of items.

    Examples
    --------
    >>> rankings = CrowdRankings.from_arrays(None, None, ["x > y", "y > x"], items=["x", "y"])
    >>> np.exp(log_probas(np.log([3.0, 1.0]), rankings)).round(2)
    array([0.75, 0.25])
    """
    found = np.zeros(data.n_annotations)
    for group in groups_of(data):
        found[group.rows] = stages(scores, group.table).value
    return found


@dataclass(eq=False, repr=False, kw_only=True)
class PlackettLuce(Aggregator):
    r"""One score per item, from rankings of any number of items.

    .. math:: P(r_1 \succ \dots \succ r_m) = \prod_{i < m}
        \frac{e^{s_{r_i}}}{\sum_{j \ge i} e^{s_{r_j}}}

    Use it when workers order three items or more; rankings of two items give Bradley-Terry. Cost:
    O(ranked items) per iteration, some tens of iterations, and O(items³) for the intervals; above
    5000 items, these are from 200 draws of the errors at O(ranked items) per step of a solver.

    Parameters
    ----------
    prior : float
        Wins and losses of every item against a virtual item with score 0.
    cluster : {"auto", "workers", "tasks", "votes"}
        Rankings that may depend on each other, for intervals; "votes" means none. "auto" takes
        workers if there are two or more. Fewer than 10 only widen the intervals by rankings.
    max_iter, tol : int, float
        Maximum number of iterations; largest derivative, per ranking of an item, that counts as
        converged.

    Attributes
    ----------
    scores_, low_, high_ : (n_items,)
        Scores in logits with mean 0, and their 95% intervals.
    rank_, rank_low_, rank_high_, p_best_, tied_with_best_, component_ : (n_items,)
    covariance_ : (n_items, n_items)
        Covariance of the scores, up to 5000 items.

    Notes
    -----
    The papers have no prior, and estimate by fixed-point iteration.

    References
    ----------
    R. L. Plackett (1975). The analysis of permutations. Applied Statistics 24.

    R. D. Luce (1959). Individual Choice Behavior.

    Examples
    --------
    >>> PlackettLuce().fit((["ann", "bob"], ["x > y > z", "y > x > z"])).rank_
    array([1, 1, 3])
    """

    prior: float = 0.5
    cluster: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7

    takes: ClassVar[str] = "rankings"
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=False, likelihood=True)

    limits: ClassVar[Limits] = {"prior": Number(1e-06, 1000000.0), "cluster": check_clusters}

    def _fit(self, problem: Problem[CrowdRankings, None]) -> Fit:
        data, n = problem.data, problem.data.n_items
        size = 60 * n * n if n <= MOST_DENSE else 70 * FEW_DRAWS * n
        require_memory(size, f"PlackettLuce with {n} items would", "use fewer items")
        groups, votes = groups_of(data), _neighbours(data)
        if not votes.compared.any():
            raise DataError("No ranking has a weight above zero; give at least one.")

        def loss(scores: Floats) -> tuple[float, Floats]:
            value, gradient, _ = virtual_item(scores, self.prior)
            for group in groups:
                found = stages(scores, group.table)
                value += float(group.weight @ found.value)
                pull = group.weight[:, None] * slopes(found)
                gradient = gradient + np.bincount(group.table.ravel(), pull.ravel(), n)
            return -value, -gradient

        tol = self.tol * max(1.0, data.n_annotations / n)
        scores, history, n_iter, converged = lbfgs(loss, np.zeros(n), self.max_iter, tol)
        clusters = choose_clusters(data, self.cluster)
        curve = virtual_item(scores, self.prior)[2]
        errors: dict[str, Any] = {}
        if n <= MOST_DENSE:
            errors["covariance"] = _covariance(groups, scores, curve, clusters, votes)
        else:
            errors["draws"] = _draws(groups, scores, curve, clusters, votes)
        answers = item_answers(centred(scores, votes.compared), votes, clusters=clusters, **errors)
        findings = (clusters.finding,) if clusters.finding else ()
        return Fit(
            answers, n_iter=n_iter, converged=converged, history=history,
            findings=(*findings, *item_findings(answers, data.items)),
        )  # fmt: skip

    def _log_likelihood(self, problem: Problem[CrowdRankings, None]) -> float:
        data = problem.data
        return float(data.weights @ log_probas(self.scores_, data))

    def _known_answers(self, data: Annotations) -> ItemAnswers:
        return ItemAnswers.of_fit(vars(self), np.arange(0))

    def item_table(self, library: str | None = None) -> Any:
        """Return a frame, one row per item, with P(best), the tie with the best item, and Elo."""
        self._require_fitted()
        return self._as_frame(ItemAnswers.item_columns(vars(self)), library)


def _neighbours(data: CrowdRankings) -> Votes:
    """Return neighbours in rankings as votes: they connect the items that are comparable."""
    last = np.zeros(len(data.ranking), dtype=bool)
    last[data.pointer[1:] - 1] = True
    at = np.flatnonzero(~last)
    weight = np.repeat(data.weights, data.lengths)[at]
    counts = np.column_stack([weight, np.zeros((len(at), 2))])
    return Votes(data.ranking[at], data.ranking[at + 1], None, counts, data.n_items, data.n_workers)


def _gradients(groups: list[Group], scores: Floats, code: Ints, n: int, power: float) -> Any:
    """Return a sparse matrix with the sum of w^power g of each cluster in its row."""
    from scipy import sparse

    row, column, value = [], [], []
    for group in groups:
        pull = group.weight[:, None] ** power * slopes(stages(scores, group.table))
        row.append(np.repeat(code[group.rows], group.table.shape[1]))
        column.append(group.table.ravel())
        value.append(pull.ravel())
    where = np.concatenate(row), np.concatenate(column)
    shape = (int(code.max()) + 1, n)
    return sparse.csr_matrix((np.concatenate(value), where), shape=shape)


# -------------------------------------------------------------------------------- a table of pairs


def _covariance(
    groups: list[Group], scores: Floats, curve: Floats, clusters: Clusters, votes: Votes
) -> Floats:
    """Return the covariance of centred scores, (n_items, n_items)."""
    hessian, meat = _second_order(groups, scores, votes.n_items)
    bread = inverse(hessian + np.diag(curve))
    found = sandwich(bread, meat + np.diag(curve), votes.compared)
    if clusters.code is None:
        return found
    sums = _gradients(groups, scores, clusters.code, votes.n_items, 1.0)
    meat = (sums.T @ sums).toarray() + np.diag(curve)
    return humble(found, sandwich(bread, meat, votes.compared), clusters.number)


def _second_order(groups: list[Group], scores: Floats, n: int) -> tuple[Floats, Floats]:
    """Return minus the Hessian of the log-likelihood, and the sum over rankings of g gᵀ."""
    hessian, meat = np.zeros(n * n), np.zeros(n * n)
    for group in groups:
        found = stages(scores, group.table)
        pull, second = slopes(found), np.cumsum(1 / found.rest**2, axis=1)
        weight = group.weight[:, None]
        for j in range(group.table.shape[1]):  # pairs of a place with itself and those behind it
            cell = (group.table[:, j : j + 1].astype(np.int64) * n + group.table[:, j:]).ravel()
            own = slice(j, j + 1)
            value = -weight * found.strength[:, own] * found.strength[:, j:] * second[:, own]
            value[:, 0] += group.weight * found.strength[:, j] * found.first[:, j]
            np.add.at(hessian, cell, value.ravel())
            np.add.at(meat, cell, (weight * pull[:, own] * pull[:, j:]).ravel())
    tables = []
    for flat in (hessian, meat):
        upper = flat.reshape(n, n)
        tables.append(upper + upper.T - np.diag(np.diag(upper)))
    return tables[0], tables[1]


# ------------------------------------------------------------------------------ very many items


class Curvature:
    """Minus the Hessian of the penalised log-likelihood, which is known by its products."""

    def __init__(self, groups: list[Group], scores: Floats, prior: Floats) -> None:
        self._groups, self._prior = groups, np.maximum(prior, 1e-12)
        self._stages = [stages(scores, group.table) for group in groups]

    def diagonal(self) -> Floats:
        """Return the second derivatives in each score, (n_items,)."""
        total = self._prior.copy()
        for group, found in zip(self._groups, self._stages, strict=True):
            second = np.cumsum(1 / found.rest**2, axis=1)
            value = found.strength * found.first - found.strength**2 * second
            np.add.at(total, group.table.ravel(), (group.weight[:, None] * value).ravel())
        return total

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return the product with (n_items, n) vectors."""
        total = self._prior[:, None] * vectors
        for group, found in zip(self._groups, self._stages, strict=True):
            step = max(1, BLOCK // (group.table.shape[1] * vectors.shape[1]))
            for start in range(0, len(group.table), step):
                rows = slice(start, start + step)
                _add_product(total, vectors, group, found, rows)
        return total


def _add_product(total: Floats, vectors: Floats, group: Group, found: Stages, rows: slice) -> None:
    """Add the product of some rankings' second derivatives with vectors."""
    from scipy import sparse

    table, strength = group.table[rows], found.strength[rows][..., None]
    pushed = strength * vectors[table]
    behind = np.cumsum(pushed[:, ::-1], axis=1)[:, ::-1]
    shared = np.cumsum(behind / found.rest[rows][..., None] ** 2, axis=1)
    pushed *= found.first[rows][..., None]
    pushed -= strength * shared
    pushed *= group.weight[rows][:, None, None]
    ends, each = np.arange(table.size + 1), vectors.shape[1]
    place = sparse.csc_matrix(
        (np.ones(table.size), table.ravel(), ends), shape=(len(total), table.size)
    )
    total += place @ pushed.reshape(-1, each)


def _draws(
    groups: list[Group], scores: Floats, curve: Floats, clusters: Clusters, votes: Votes
) -> Floats:
    """Return draws (n_draws, n_items) of the errors of centred scores, as wide as `humble` says."""
    matrix, n = Curvature(groups, scores, curve), votes.n_items
    n_rankings = sum(len(group.rows) for group in groups)

    def errors(code: Ints, power: float) -> Floats:
        rng = np.random.default_rng(0)
        sums = _gradients(groups, scores, code, n, power)
        sides = sums.T @ rng.standard_normal((sums.shape[0], FEW_DRAWS))
        sides += np.sqrt(curve)[:, None] * rng.standard_normal((n, FEW_DRAWS))
        found = conjugate_gradients(matrix, sides)
        found[votes.compared] -= found[votes.compared].mean(axis=0)
        return np.asarray(found.T)

    by_votes = errors(np.arange(n_rankings), 0.5)
    if clusters.code is None:
        return by_votes
    by_clusters, number = errors(clusters.code, 1.0), clusters.number
    vote, cluster = ((one**2).mean(axis=0) for one in (by_votes, by_clusters))
    rise = number / max(number - 1, 1)
    if number < FEW_CLUSTERS:
        ratio = float(cluster.sum() / max(vote.sum(), 1e-300)) * rise
        return np.asarray(by_votes * np.sqrt(max(1.0, ratio)))
    factor = np.maximum(rise, vote / np.maximum(cluster, 1e-300))
    return np.asarray(by_clusters * np.sqrt(factor))
