r"""Equations of CrowdBT: the reliability of each worker is integrated, and its Beta is learnt.

.. math:: L(s, a, b) = \sum_j \log \sum_g w_g(a, b) \prod_{e \in j}
    [\eta_g p_e + (1 - \eta_g)(1 - p_e)] + \log p(s) + \log p(a, b)

:math:`p_e` is the probability that the winner of vote e wins, :math:`w_g` the mass of
Beta(a, b) in cell g of the reliabilities, and :math:`\log p(a, b) = 8 \log \frac{a}{a + b} -
\frac12 (\log(a + b) - \log 10)^2`. With the posterior :math:`r_{jg}` of the cells of a worker and
:math:`L_{jg}` the logarithm of the product,

.. math:: \nabla L_j = \sum_g r_{jg} \nabla L_{jg}, \qquad
    \nabla^2 L_j = \sum_g r_{jg} \nabla^2 L_{jg} + \mathrm{Cov}_{r_j}(\nabla L_{jg}),

where :math:`\nabla L_{jg}` includes the derivatives of :math:`\log w_g`. Scores and (log a, log b)
are estimated together by L-BFGS, from the Bradley-Terry scores. A tie is half a win for each side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.kernels import Wins, chances
from wisecrowd.kinds.pairs.methods.comparisons import Votes, centred, virtual_item
from wisecrowd.kinds.pairs.methods.covariance import (
    FEW_DRAWS,
    MOST_DENSE,
    Clusters,
    choose_clusters,
    cluster_meat,
    few_workers,
    humble,
    inverse,
    laplacian,
    sandwich,
    scores_errors,
    sparse_laplacian,
)
from wisecrowd.kinds.pairs.methods.intervals import item_answers
from wisecrowd.kinds.pairs.methods.vote_laws import lbfgs

N_CELLS = 27
EDGES = 1 - (1 - np.arange(N_CELLS + 1) / N_CELLS) ** 2  # of the cells, finer near 1
ETA = (EDGES[1:] + EDGES[:-1]) / 2
START = np.log([9.0, 1.0])  # log a, log b
LOWEST, HIGHEST = np.array([-2.0, -5.0]), np.array([6.0, 4.0])  # limits of log a and log b
HONESTY = 8.0  # workers known to be right that the prior of the mean reliability counts as
USUAL_TOTAL = np.log(10.0)  # of the prior of log(a + b), with standard deviation 1
STEP, WIDE_STEP = 1e-4, 1e-3  # of differences in log a and log b, first and second derivatives
N_SHAPES = 16  # values of log a and of log b over which reliabilities average
LEAST_MASS = 1e-300
WORK = 5  # simple terms that a win costs, to decide whether compiling is worth its time
NEGLIGIBLE = 1e-12  # posterior of a cell that adds nothing to the covariance


class Fitted(NamedTuple):
    """Scores, (log a, log b), posterior of the cells (J, G) at these, and the way there."""

    scores: Floats
    shape: Floats
    posterior: Floats
    history: tuple[float, ...]
    n_iter: int
    converged: bool


def cells(shape: Floats) -> Floats:
    """Return the masses (G,) of Beta(a, b) in the cells; ``shape`` is (log a, log b).

    Examples
    --------
    >>> round(float(cells(np.log([9.0, 1.0])) @ ETA), 3)
    0.9
    """
    from scipy.special import betainc

    a, b = np.exp(shape)
    low, high = betainc(a, b, EDGES), betainc(b, a, 1 - EDGES)
    below, above = np.diff(low), -np.diff(high)
    return np.asarray(np.maximum(np.where(low[1:] < 0.5, below, above), LEAST_MASS))


def shape_prior(shape: Floats) -> tuple[float, Floats]:
    """Return the log prior of (log a, log b) and its gradient."""
    share = chances(shape[::-1] - shape)  # b / (a + b), a / (a + b)
    excess = np.logaddexp(*shape) - USUAL_TOTAL
    value = HONESTY * (shape[0] - np.logaddexp(*shape)) - 0.5 * excess**2
    slope = HONESTY * share[0] * np.array([1.0, -1.0]) - excess * share[::-1]
    return float(value), slope


@dataclass(frozen=True, eq=False)
class ReliabilityMixture:
    """The penalised log-likelihood of votes with integrated reliabilities.

    Attributes
    ----------
    wins : Votes
        One row per win, with the winner on the left; a tie is two rows.
    vote, sign : (n_wins,)
        Vote of each win, and 1 if its left item won, otherwise -1.
    prior : float
        Wins and losses of every item against the virtual item.
    """

    wins: Votes
    vote: NDArray[np.int64]
    sign: Floats
    prior: float

    @classmethod
    def of(cls, votes: Votes, prior: float) -> ReliabilityMixture:
        """Return the likelihood of single votes."""
        assert votes.worker is not None
        vote, side = np.nonzero(votes.halved > 0)
        turned = side == 1
        counts = np.zeros((len(vote), 3))
        counts[:, 0] = votes.halved[vote, side]
        wins = Votes(
            np.where(turned, votes.right[vote], votes.left[vote]),
            np.where(turned, votes.left[vote], votes.right[vote]),
            votes.worker[vote], counts, votes.n_items, votes.n_workers,
        )  # fmt: skip
        return cls(wins, vote, np.where(turned, -1.0, 1.0), prior)

    def rows(self) -> Wins:
        """Return the wins as kernels take them."""
        assert self.wins.worker is not None
        weight = np.ascontiguousarray(self.wins.counts[:, 0])
        return Wins(self.wins.left, self.wins.right, self.wins.worker, weight)

    def evaluate(self, scores: Floats, shape: Floats) -> tuple[float, Floats, Floats, Floats]:
        """Return value, gradients in scores and shape, and the posterior of the cells (J, G)."""
        rows = self.rows()
        kernels = kernels_for("comparisons", WORK * len(rows.winner))
        mass = cells(shape)
        logs = kernels.reliability_logs(rows, scores, ETA, self.wins.n_workers)
        top = logs.max(axis=1, keepdims=True)
        joint = np.exp(logs - top)
        evidence = joint @ mass
        posterior = joint * mass / evidence[:, None]
        pull = kernels.reliability_pulls(rows, scores, ETA, posterior)
        item_value, item_slope, _ = virtual_item(scores, self.prior)
        shape_value, shape_slope = shape_prior(shape)
        to_mass = (joint / evidence[:, None]).sum(axis=0)
        to_shape = shape_slope + _mass_slopes(shape) @ to_mass
        value = float((np.log(evidence) + top[:, 0]).sum()) + item_value + shape_value
        return value, self.wins.item_sums(pull) + item_slope, to_shape, posterior

    def maximise(self, start: Floats, max_iter: int, tol: float) -> Fitted:
        """Return the maximum near the scores of a start; ``tol`` is that of the vote laws."""
        n, rows = self.wins.n_items, self.rows()
        p = chances(start[rows.winner] - start[rows.loser])
        square = rows.weight * np.maximum((p * (1 - p)) ** 2, 0.02)
        curve = np.bincount(rows.winner, square, n) + np.bincount(rows.loser, square, n)
        scale = np.append(np.sqrt(curve + virtual_item(start, self.prior)[2]), [1.0, 1.0])

        def loss(x: Floats) -> tuple[float, Floats]:
            value, to_items, to_shape, _ = self.evaluate(*np.split(x / scale, [n]))
            return -value, -np.concatenate([to_items, to_shape]) / scale

        free = np.full(n, np.inf)
        limits = np.append(-free, LOWEST) * scale, np.append(free, HIGHEST) * scale
        x0 = np.concatenate([start, START]) * scale
        gradient_tol = tol * np.sqrt(max(1.0, self.wins.total / n))
        x, history, n_iter, converged = lbfgs(loss, x0, max_iter, gradient_tol, limits)
        scores, shape = np.split(x / scale, [n])
        posterior = self.evaluate(scores, shape)[3]
        return Fitted(scores, shape, posterior, history, n_iter, converged)

    def reliabilities(self, scores: Floats) -> tuple[Floats, float]:
        """Return the posterior mean of the reliability of each worker (J,), and of a new one.

        Both average over (a, b): few workers do not determine it, and its mode may be the limit
        where all workers are perfect.
        """
        shapes = np.stack(np.meshgrid(*np.linspace(LOWEST, HIGHEST, N_SHAPES).T), axis=-1)
        shapes = shapes.reshape(-1, 2)
        mass = np.stack([cells(shape) for shape in shapes], axis=1)
        kernels = kernels_for("comparisons", WORK * len(self.vote))
        logs = kernels.reliability_logs(self.rows(), scores, ETA, self.wins.n_workers)
        joint = np.exp(logs - logs.max(axis=1, keepdims=True))
        evidence = joint @ mass
        total = np.log(evidence).sum(axis=0) + [shape_prior(shape)[0] for shape in shapes]
        weight = np.exp(total - total.max())
        weight /= weight.sum()
        return (joint * ETA) @ mass / evidence @ weight, float(ETA @ mass @ weight)

    # ------------------------------------------------------------------------------ uncertainty

    def information(self, at: Fitted) -> Floats:
        """Return minus the second derivative of each win in its gap, averaged over cells."""
        rows = self.rows()
        p = chances(at.scores[rows.winner] - at.scores[rows.loser])
        total = np.zeros(len(p))
        for g, eta in enumerate(ETA.tolist()):
            slope = (2 * eta - 1) * p * (1 - p) / ((1 - eta) + (2 * eta - 1) * p)
            total += at.posterior[rows.worker, g] * slope * (slope + 2 * p - 1)
        return np.asarray(rows.weight * total)

    def pulls(self, at: Fitted) -> Floats:
        """Return the derivative of the log-likelihood in the gap of each win."""
        rows = self.rows()
        kernels = kernels_for("comparisons", WORK * len(rows.winner))
        return np.asarray(kernels.reliability_pulls(rows, at.scores, ETA, at.posterior))

    def hessian(self, at: Fitted) -> Floats:
        """Return minus the Hessian in scores, log a and log b, (n_items + 2, n_items + 2)."""
        n, rows = self.wins.n_items, self.rows()
        found = np.zeros((n + 2, n + 2))
        found[:n, :n] = laplacian(self.wins, self.information(at))
        found[np.diag_indices(n)] += virtual_item(at.scores, self.prior)[2]
        voted = np.bincount(rows.worker, minlength=self.wins.n_workers)
        found[n:, n:] = _shape_curvature(at.shape, at.posterior[voted > 0].sum(axis=0))
        p, mean = chances(at.scores[rows.winner] - at.scores[rows.loser]), self.pulls(at)
        slopes = _mass_slopes(at.shape) / cells(at.shape)  # of log w, (2, G)
        away = (slopes[:, None, :] - (at.posterior @ slopes.T).T[:, :, None]) / np.maximum(
            voted[:, None], 1
        )
        for g, eta in enumerate(ETA.tolist()):
            used = at.posterior[rows.worker, g] > NEGLIGIBLE
            if not used.any():
                continue
            worker = rows.worker[used]
            root = np.sqrt(at.posterior[worker, g])
            slope = (2 * eta - 1) * p * (1 - p) / ((1 - eta) + (2 * eta - 1) * p)
            pull = root * (rows.weight * slope - mean)[used]
            extra = root[:, None] * away[:, worker, g].T
            found -= cluster_meat(rows.winner[used], rows.loser[used], pull, worker, extra, n)
        return found

    def answers(
        self, at: Fitted, data: CrowdPairs, votes: Votes, cluster: str
    ) -> tuple[ItemAnswers, Clusters]:
        """Return scores with intervals from the curvature, and the clusters of votes.

        Named clusters widen the intervals where votes depend more on each other than the
        reliabilities explain.
        """
        active = len(np.unique(self.rows().worker))
        few = few_workers(active, "intervals lean on the prior of reliabilities")
        clusters = Clusters("votes", None, data.n_annotations, few)
        if cluster != "auto":
            clusters = choose_clusters(data, cluster)
        scores = centred(at.scores, votes.compared)
        signed, prior = self.sign * self.pulls(at), virtual_item(at.scores, self.prior)[2]
        if votes.n_items > MOST_DENSE:
            draws = self._draws(at, signed, prior, votes, clusters)
            return item_answers(scores, votes, draws=draws, clusters=clusters), clusters
        n, free = votes.n_items, (at.shape > LOWEST) & (at.shape < HIGHEST)
        kept = np.append(np.arange(n), n + np.flatnonzero(free))
        hessian = self.hessian(at)[np.ix_(kept, kept)]
        bread = inverse(hessian)
        covariance = sandwich(bread, hessian, votes.compared)
        if clusters.code is not None:
            pull = np.bincount(self.vote, signed, data.n_annotations).astype(np.float64)
            none, meat = np.zeros((len(pull), 0)), np.zeros(hessian.shape)
            meat[:n, :n] = cluster_meat(data.left, data.right, pull, clusters.code, none, n)
            meat[np.diag_indices(n)] += prior
            by_clusters = sandwich(bread, meat, votes.compared)
            covariance = humble(covariance, by_clusters, clusters.number)
        return item_answers(scores, votes, covariance=covariance, clusters=clusters), clusters

    def _draws(
        self, at: Fitted, signed: Floats, prior: Floats, votes: Votes, clusters: Clusters
    ) -> Floats:
        """Return draws of the errors of very many items, with the reliabilities held."""
        weight = np.maximum(self.information(at), 0.0)
        hessian = sparse_laplacian(self.wins, weight)
        if clusters.code is None:
            pull, code = np.sqrt(weight), None
        else:
            pull, code = self.sign * signed, clusters.code[self.vote]
        wins = Votes(
            self.wins.left, self.wins.right, None, self.wins.counts, votes.n_items, votes.n_workers
        )
        return scores_errors(hessian, prior, wins, pull, code, FEW_DRAWS)


def _mass_slopes(shape: Floats) -> Floats:
    """Return the derivatives (2, G) of the masses in log a and log b."""
    ends = [cells(shape + STEP * move) - cells(shape - STEP * move) for move in np.eye(2)]
    return np.stack(ends) / (2 * STEP)


def _shape_curvature(shape: Floats, workers: Floats) -> Floats:
    """Return minus the second derivatives of the log prior and of Σ workers_g log w_g, (2, 2)."""

    def value(at: Floats) -> float:
        return shape_prior(at)[0] + float(workers @ np.log(cells(at)))

    found = np.empty((2, 2))
    for (i, j), _ in np.ndenumerate(found):
        one, two = WIDE_STEP * np.eye(2)[i], WIDE_STEP * np.eye(2)[j]
        found[i, j] = -(
            value(shape + one + two) - value(shape + one - two)
            - value(shape - one + two) + value(shape - one - two)
        ) / (4 * WIDE_STEP**2)  # fmt: skip
    return found
