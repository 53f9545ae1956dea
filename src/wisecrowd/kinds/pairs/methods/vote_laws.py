r"""Penalised maximum likelihood of votes, for any law of a vote.

A law gives the log-likelihood of the votes of a row, and its derivatives, in the few numbers that
matter to it: the gap :math:`d = s_l - s_r`, shared parameters (g of them) and the parameters of the
worker (k of them). Gradient, optimisation by L-BFGS, Hessian and sandwich covariance are the same
for all laws and stand here.

Worker parameters are profiled out of the covariance of the scores:
:math:`H_{\beta\beta} - H_{\beta w} H_{ww}^{-1} H_{w\beta}` with :math:`\beta` = (scores, shared).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.packed_sort import stable_order
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods.comparisons import Votes, centred, virtual_item
from wisecrowd.kinds.pairs.methods.covariance import (
    FEW_DRAWS,
    MOST_DENSE,
    Clusters,
    choose_clusters,
    cluster_meat,
    humble,
    inverse,
    laplacian,
    sandwich,
    scores_errors,
    sparse_laplacian,
)
from wisecrowd.kinds.pairs.methods.intervals import item_answers, item_findings

STEP = 1e-5  # of central differences for second derivatives
LEAST_SQUARE = 0.02  # of a derivative, so that a lucky start does not stretch a parameter
MEMORY = 20  # corrections that L-BFGS keeps
WORKER_BLOCK = 1 << 22  # numbers in a block of mixed derivatives


Values = tuple[float, Floats, Floats, Floats]
Objective = Callable[[Floats, Floats, Floats], Values]


class VoteLaw(Protocol):
    """The law of a vote; one object per method."""

    def terms(
        self, gap: Floats, shared: Floats, own: Floats, counts: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log-likelihood (n_rows,) and its gradient (n_rows, 1 + g + k).

        Parameters
        ----------
        gap : (n_rows,)
        shared : (g,)
        own : (n_rows, k), parameters of the row's worker
        counts : (n_rows, 3), weight of the votes for left, right and tie
        """

    def log_prior(self, shared: Floats, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of shared (g,) and worker (J, k) parameters, and its gradients."""

    def item_prior(self, scores: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of the scores, its gradient and minus its second derivative."""


@dataclass(frozen=True, eq=False)
class VirtualItem:
    """Part of a law: the prior of scores by the virtual item with ``prior`` wins and losses."""

    prior: float

    def item_prior(self, scores: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior of the scores, its gradient and minus its second derivative."""
        return virtual_item(scores, self.prior)


class Solution(NamedTuple):
    """Parameters at the optimum: scores (n_items,), shared (g,), own (J, k), and the way there."""

    scores: Floats
    shared: Floats
    own: Floats
    history: tuple[float, ...]
    n_iter: int
    converged: bool


# ------------------------------------------------------------------------------------ optimisation


def objective(law: VoteLaw, votes: Votes, scores: Floats, shared: Floats, own: Floats) -> Values:
    """Return the penalised log-likelihood and its gradients in scores, shared and own."""
    worker = np.zeros(len(votes.left), np.int32) if votes.worker is None else votes.worker
    values, slope = law.terms(votes.gap(scores), shared, own[worker], votes.counts)
    item_value, item_slope, _ = law.item_prior(scores)
    value, to_shared, to_own = law.log_prior(shared, own)
    g = len(shared)
    to_shared = to_shared + slope[:, 1 : 1 + g].sum(axis=0)
    sums = [np.bincount(worker, slope[:, 1 + g + k], len(own)) for k in range(own.shape[1])]
    if sums:
        to_own = to_own + np.stack(sums, axis=1)
    to_items = votes.item_sums(slope[:, 0]) + item_slope
    return value + item_value + float(values.sum()), to_items, to_shared, to_own


def maximise(
    law: VoteLaw,
    votes: Votes,
    start: tuple[Floats, Floats, Floats],
    max_iter: int,
    tol: float,
    evaluate: Objective | None = None,
) -> Solution:
    """Return the maximum of the penalised log-likelihood near a start (scores, shared, own).

    ``tol`` bounds the largest derivative, per vote of an average item. ``evaluate`` returns the
    same as :func:`objective`, by a compiled kernel.
    """
    n, g = votes.n_items, len(start[1])
    shape = start[2].shape

    def general(scores: Floats, shared: Floats, own: Floats) -> Values:
        return objective(law, votes, scores, shared, own)

    def split(x: Floats) -> tuple[Floats, Floats, Floats]:
        return x[:n], x[n : n + g], x[n + g :].reshape(shape)

    scale = _scale(law, votes, start)

    def loss(x: Floats) -> tuple[float, Floats]:
        value, *slopes = (evaluate or general)(*split(x / scale))
        return -value, -np.concatenate([slope.ravel() for slope in slopes]) / scale

    x0 = scale * np.concatenate([part.ravel() for part in start])
    gradient_tol = tol * np.sqrt(max(1.0, votes.total / n))
    x, history, n_iter, converged = lbfgs(loss, x0, max_iter, gradient_tol)
    scores, shared, own = split(x / scale)
    return Solution(scores, shared, own, history, n_iter, converged)


def _scale(law: VoteLaw, votes: Votes, start: tuple[Floats, Floats, Floats]) -> Floats:
    """Return units in which the curvature of all parameters is about one, which saves iterations.

    The curvature is that of the prior plus the sum of squared derivatives of the votes.
    """
    at = Solution(*start, (), 0, False)
    worker = np.zeros(len(votes.left), np.int32) if votes.worker is None else votes.worker
    share = votes.counts / np.maximum(votes.counts.sum(axis=1, keepdims=True), 1e-300)
    slope = law.terms(votes.gap(at.scores), at.shared, at.own[worker], share)[1]
    square = np.maximum(slope**2, LEAST_SQUARE) * votes.counts.sum(axis=1)[:, None]
    n, g = votes.n_items, len(at.shared)
    items = np.bincount(votes.left, square[:, 0], n) + np.bincount(votes.right, square[:, 0], n)
    shared_prior, own_prior = _prior_curvature(law, at)
    own = [np.bincount(worker, square[:, 1 + g + k], len(at.own)) for k in range(at.own.shape[1])]
    parts = [
        items + law.item_prior(at.scores)[2],
        square[:, 1 : 1 + g].sum(axis=0) + shared_prior,
        (np.stack(own, axis=1) if own else np.zeros(at.own.shape)).ravel() + own_prior.ravel(),
    ]
    return np.asarray(np.sqrt(np.maximum(np.concatenate(parts), 1e-6)))


def lbfgs(
    loss: Any,
    start: Floats,
    max_iter: int,
    tol: float,
    limits: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, tuple[float, ...], int, bool]:
    """Return the minimum, minus the losses after each iteration, their number, and convergence.

    ``limits`` are the lowest and highest values of the parameters.
    """
    from scipy.optimize import minimize

    history: list[float] = []

    def seen(intermediate_result: Any) -> None:
        history.append(-float(intermediate_result.fun))

    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", callback=seen,
        bounds=None if limits is None else np.stack(limits, axis=1),
        options={"maxiter": max_iter, "maxfun": 50 * max_iter, "gtol": tol, "ftol": 0.0,
                 "maxcor": MEMORY},
    )  # fmt: skip
    if not history:
        history.append(-float(found.fun))
    slope = found.jac
    if limits is not None:  # at a limit, a slope that leads across it does not count
        slope = found.x - np.clip(found.x - slope, *limits)
    steepest = float(np.abs(slope).max(initial=0.0))
    # The line search ends in rounding before a strict tolerance is met.
    converged = steepest <= max(tol, 1e-9 * abs(float(found.fun)))
    return found.x, tuple(history), max(1, int(found.nit)), bool(converged)


# ------------------------------------------------------------------------------------ uncertainty


class Curvature(NamedTuple):
    """Negative Hessian of scores and shared parameters, and derivatives of single votes.

    Attributes
    ----------
    bread : (n + g, n + g), inverse of the profiled Hessian
    prior : (n + g,), curvature of the prior
    rows : (n_rows, m), derivatives of each row
    meat : (n + g, n + g), sum over votes of g gᵀ, profiled in the same way
    """

    bread: Floats
    prior: Floats
    rows: Floats
    meat: Floats


def row_hessian(law: VoteLaw, gap: Floats, shared: Floats, own: Floats, counts: Floats) -> Floats:
    """Return minus the second derivatives (n_rows, m, m) by central differences of the gradient."""
    g, k = len(shared), own.shape[1]
    found = np.empty((len(gap), 1 + g + k, 1 + g + k))
    for column in range(1 + g + k):
        ends = []
        for sign in (1, -1):
            at = [gap, shared, own]
            if column == 0:
                at[0] = gap + sign * STEP
            elif column <= g:
                at[1] = shared + sign * STEP * (np.arange(g) == column - 1)
            else:
                at[2] = own + sign * STEP * (np.arange(k) == column - 1 - g)
            ends.append(law.terms(at[0], at[1], at[2], counts)[1])
        found[:, :, column] = (ends[1] - ends[0]) / (2 * STEP)
    return (found + found.transpose(0, 2, 1)) / 2


def curvature(law: VoteLaw, votes: Votes, at: Solution) -> Curvature:
    """Return the curvature at the optimum, with worker parameters profiled out."""
    n, g, k = votes.n_items, len(at.shared), at.own.shape[1]
    worker = np.zeros(len(votes.left), np.int32) if votes.worker is None else votes.worker
    gap, own = votes.gap(at.scores), at.own[worker]
    rows = row_hessian(law, gap, at.shared, own, votes.counts)
    hessian = np.zeros((n + g, n + g))
    hessian[:n, :n] = laplacian(votes, rows[:, 0, 0])
    prior = np.zeros(n + g)
    prior[:n] = law.item_prior(at.scores)[2]
    for b in range(g):
        hessian[:n, n + b] = hessian[n + b, :n] = votes.item_sums(rows[:, 0, 1 + b])
        hessian[n + b, n : n + g] = rows[:, 1 + b, 1 : 1 + g].sum(axis=0)
    shared_prior, own_prior = _prior_curvature(law, at)
    prior[n:] = shared_prior
    hessian[np.diag_indices(n + g)] += prior
    slope = law.terms(gap, at.shared, own, votes.counts)[1]
    meat = vote_meat(votes, slope, g)
    if k:
        lost, added = _profiled(votes, worker, rows, slope, own_prior, g)
        hessian -= lost
        meat += added
    bread = inverse((hessian + hessian.T) / 2)
    return Curvature(bread, np.maximum(prior, 0.0), slope, meat)


def _prior_curvature(law: VoteLaw, at: Solution) -> tuple[Floats, Floats]:
    """Return minus the second derivatives of the log prior; it has no mixed ones."""
    g, k = len(at.shared), at.own.shape[1]
    shared, own = np.zeros(g), np.zeros((len(at.own), k))
    for b in range(g):
        move = STEP * (np.arange(g) == b)
        up, down = (law.log_prior(at.shared + sign * move, at.own)[1] for sign in (1, -1))
        shared[b] = (down[b] - up[b]) / (2 * STEP)
    for c in range(k):
        move = STEP * (np.arange(k) == c)
        up, down = (law.log_prior(at.shared, at.own + sign * move)[2] for sign in (1, -1))
        own[:, c] = (down[:, c] - up[:, c]) / (2 * STEP)
    return shared, own


class WorkerSums(NamedTuple):
    """Sums over the votes of each worker in a block.

    Attributes
    ----------
    mixed : (size, k, n + g), of worker parameters with scores and shared ones
    block : (size, k, k), of worker parameters with each other
    """

    mixed: Floats
    block: Floats


def _worker_sums(
    votes: Votes, e: NDArray[Any], w: NDArray[Any], size: int, products: Any, g: int, k: int
) -> WorkerSums:
    """Return sums of products of derivatives; ``products(a, b)`` gives those of two columns."""
    n = votes.n_items
    width = n + g
    mixed, block = np.zeros((size, k, width)), np.zeros((size, k, k))
    at = w.astype(np.int64) * width
    for c in range(k):
        values = products(0, 1 + g + c)[e]
        flat = np.bincount(at + votes.left[e], values, size * width)
        flat -= np.bincount(at + votes.right[e], values, size * width)
        for b in range(g):
            flat += np.bincount(at + n + b, products(1 + b, 1 + g + c)[e], size * width)
        mixed[:, c] = flat.reshape(size, width)
        for other in range(k):
            block[:, c, other] = np.bincount(w, products(1 + g + c, 1 + g + other)[e], size)
    return WorkerSums(mixed, block)


def _profiled(
    votes: Votes,
    worker: NDArray[Any],
    rows: Floats,
    slope: Floats,
    own_prior: Floats,
    g: int,
) -> tuple[Floats, Floats]:
    """Return what worker parameters take from the Hessian and add to the meat of votes.

    With A = H_βw H_ww⁻¹ these are A H_wβ, and A M_ww Aᵀ - A M_wβ - M_βw Aᵀ, where M are the sums of
    products of first derivatives; both (n + g, n + g), over blocks of workers.
    """
    J, k = len(own_prior), own_prior.shape[1]
    width = votes.n_items + g
    weight = np.maximum(votes.counts.sum(axis=1), 1e-300)
    lost, added = np.zeros((width, width)), np.zeros((width, width))
    order = stable_order(worker, J)
    ends = np.append(0, np.cumsum(np.bincount(worker, minlength=J)))
    step = max(1, WORKER_BLOCK // (width * k))
    for first in range(0, J, step):
        last = min(first + step, J)
        e = order[ends[first] : ends[last]]
        w, size = worker[e] - first, last - first
        second = _worker_sums(votes, e, w, size, lambda a, b: rows[:, a, b], g, k)
        squares = _worker_sums(
            votes, e, w, size, lambda a, b: slope[:, a] * slope[:, b] / weight, g, k
        )
        block = second.block
        block[:, np.arange(k), np.arange(k)] += own_prior[first:last]
        values, vectors = np.linalg.eigh(block)
        values = np.maximum(values, 1e-8 * np.maximum(values[:, -1:], 1e-12))
        inverted = np.einsum("jab,jb,jcb->jac", vectors, 1 / values, vectors)
        A = np.einsum("jab,jbc->jac", inverted, second.mixed).reshape(size * k, width)
        lost += A.T @ second.mixed.reshape(size * k, width)
        inner = np.einsum("jab,jbc->jac", squares.block, A.reshape(size, k, width))
        half = A.T @ (0.5 * inner - squares.mixed).reshape(size * k, width)
        added += half + half.T
    return lost, added


def vote_meat(votes: Votes, slope: Floats, g: int) -> Floats:
    """Return the sum over votes of g gᵀ, (n + g, n + g); a vote of weight w counts as w votes.

    Parameters
    ----------
    votes : Votes
        One row per vote, so that each row has one outcome.
    slope : (n_rows, m)
        Derivatives of the weighted log-likelihood of each row.
    g : int
    """
    n = votes.n_items
    weight = np.maximum(votes.counts.sum(axis=1), 1e-300)
    meat = np.zeros((n + g, n + g))
    meat[:n, :n] = laplacian(votes, slope[:, 0] ** 2 / weight)
    for b in range(g):
        meat[:n, n + b] = votes.item_sums(slope[:, 0] * slope[:, 1 + b] / weight)
        meat[n + b, n:] = (slope[:, 1 + b] / weight) @ slope[:, 1 : 1 + g]
    meat[n:, :n] = meat[:n, n:].T
    return meat


def _squares(law: VoteLaw, votes: Votes, at: Solution) -> Floats:
    """Return the sum over the votes of each row of the squared derivative in the gap."""
    worker = np.zeros(len(votes.left), np.int32) if votes.worker is None else votes.worker
    found = np.zeros(len(votes.left))
    for outcome, one in enumerate(np.eye(3)):
        counts = np.broadcast_to(one, votes.counts.shape)
        slope = law.terms(votes.gap(at.scores), at.shared, at.own[worker], counts)[1][:, 0]
        found += votes.counts[:, outcome] * slope**2
    return found


def uncertain_scores(
    law: VoteLaw, votes: Votes, at: Solution, data: CrowdPairs, cluster: str
) -> tuple[ItemAnswers, Floats, Clusters]:
    """Return the answers, the standard errors (g,) of shared parameters, and the clusters."""
    clusters = choose_clusters(data, cluster)
    scores, n, g = centred(at.scores, votes.compared), votes.n_items, len(at.shared)
    if n > MOST_DENSE:
        return _many_items(law, votes, at, clusters, scores)
    found = curvature(law, votes, at)
    meat = found.meat + np.diag(found.prior)
    covariance = sandwich(found.bread, meat, votes.compared)
    errors = _shared_errors(found.bread, meat, n)
    if clusters.code is not None:
        meat = cluster_meat(
            votes.left, votes.right, found.rows[:, 0], clusters.code, found.rows[:, 1 : 1 + g], n
        )
        meat += np.diag(found.prior)
        by_clusters = sandwich(found.bread, meat, votes.compared)
        covariance = humble(covariance, by_clusters, clusters.number)
        errors = np.maximum(errors, _shared_errors(found.bread, meat, n))
    answers = item_answers(scores, votes, covariance=covariance, clusters=clusters)
    return answers, errors, clusters


def _shared_errors(bread: Floats, meat: Floats, n: int) -> Floats:
    """Return the standard errors of the parameters behind the scores."""
    rows = bread[n:]
    return np.asarray(np.sqrt(np.maximum(np.einsum("ab,bc,ac->a", rows, meat, rows), 0.0)))


def _many_items(
    law: VoteLaw, votes: Votes, at: Solution, clusters: Clusters, scores: Floats
) -> tuple[ItemAnswers, Floats, Clusters]:
    """Return answers from draws of the errors, with other parameters held at their estimates."""
    worker = np.zeros(len(votes.left), np.int32) if votes.worker is None else votes.worker
    gap, own = votes.gap(at.scores), at.own[worker]
    rows = row_hessian(law, gap, at.shared, own, votes.counts)
    slope = law.terms(gap, at.shared, own, votes.counts)[1][:, 0]
    if clusters.code is None:
        slope = np.sqrt(_squares(law, votes, at))
    prior = law.item_prior(at.scores)[2]
    hessian = sparse_laplacian(votes, np.maximum(rows[:, 0, 0], 0.0))
    draws = scores_errors(hessian, prior, votes, slope, clusters.code, FEW_DRAWS)
    answers = item_answers(scores, votes, draws=draws, clusters=clusters)
    return answers, np.full(len(at.shared), np.nan), clusters


def fitted(
    answers: ItemAnswers,
    at: Solution,
    clusters: Clusters,
    data: Any,
    accuracy: tuple[Floats, Floats],
    extra: dict[str, Any],
    findings: tuple[Finding, ...] = (),
) -> Fit:
    """Return the fit: answers, worker accuracy with its error, history, findings and extras."""
    own = (clusters.finding,) if clusters.finding else ()
    return Fit(
        answers, worker_accuracy=accuracy[0], worker_accuracy_error=accuracy[1],
        n_iter=at.n_iter, converged=at.converged, history=at.history,
        findings=(*findings, *own, *item_findings(answers, data.items)),
        extra=extra,
    )  # fmt: skip
