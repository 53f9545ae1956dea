r"""Graded responses: a latent level per task, a bias and a spread per worker.

.. math::
    x_i \sim N(0, 1), \qquad p(y_{ij} \le k \mid x_i) = F\!\left(\frac{c_k - x_i - b_j}{s_j}\right)

EM with the posterior of each level on Gauss-Hermite nodes. The M-step maximises the expected
log-likelihood, given expected counts of labels per (worker, label, node), by a few steps of L-BFGS
with the analytic gradient. Steps that would lower the objective are not taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Choice, Count, Flag, Limits, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import rows_into
from wisecrowd.inference.loop import iterate, squarem
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import check_fixed_class_prior, fixed_class_prior
from wisecrowd.kinds.classes.shards import Shard
from wisecrowd.kinds.classes.worker_errors import worker_evidence
from wisecrowd.kinds.ordered.methods.base import (
    GRID,
    OrderedMethod,
    between_cuts,
    cuts_at_shares,
    cuts_from_gold,
    normal_shares,
    with_task_prior,
)
from wisecrowd.kinds.ordered.methods.graded_link import (
    LINKS,
    GradedParams,
    GradedTable,
    graded_table,
)

LABELS_FOR_SCALE = 30.0  # labels per worker from which spreads of workers are estimated
PSEUDO_LABELS = 1.0  # labels of a typical worker, spread evenly over the classes
STEPS = 15  # of L-BFGS in each M-step
GRID_ROWS = 1 << 13  # tasks whose final posteriors are computed at once


class GradedStats(NamedTuple):
    """Additive statistics: expected labels per cell and node (C, Q), and the log-likelihood."""

    counts: Floats
    log_likelihood: float


class LevelStats(NamedTuple):
    """Additive statistics of final posteriors: their sum over labelled tasks, (G,)."""

    density: Floats


@dataclass(frozen=True, eq=False)
class GradedModel:
    """The model that iterates.

    Attributes
    ----------
    nodes, log_weights : (Q,)
        Gauss-Hermite rule for a standard normal level.
    cells : (C,) int64
        The (worker, label) pairs that occur, as worker × n_classes + label, sorted.
    n_workers, n_classes : int
    link : {"probit", "logit"}
    moves_bias, moves_ratio : bool
        Whether biases and spreads of workers are estimated.
    """

    nodes: Floats
    log_weights: Floats
    cells: NDArray[np.int64]
    n_workers: int
    n_classes: int
    link: str
    moves_bias: bool
    moves_ratio: bool

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """Workers with labels."""
        return np.unique(self.cells // self.n_classes)

    def begin(self, shard: Shard) -> Any:
        """Return the labels of a shard as a sparse matrix (tasks, cells) of weights."""
        from scipy.sparse import csr_array

        weight = np.ones(len(shard.cell)) if shard.weight is None else shard.weight
        column = np.searchsorted(self.cells, shard.cell)
        return csr_array((weight, column, shard.indptr), shape=(shard.n_tasks, len(self.cells)))

    def first(self, shard: Shard, state: Any, start: tuple[Floats, Floats]) -> tuple[Any, Any]:
        """Return the statistics of starting probabilities of classes, given the first cuts."""
        probas, cuts = start
        place = np.searchsorted(cuts, self.nodes)
        weight = np.exp(self.log_weights)
        share = np.bincount(place, weight, self.n_classes)
        q = (probas[shard.tasks] / np.maximum(share, 1e-12))[:, place] * weight + 1e-12 * weight
        q /= q.sum(axis=1, keepdims=True)
        return state, GradedStats(np.asarray(state.T @ q), 0.0)

    def local_step(self, shard: Shard, state: Any, params: GradedParams) -> tuple[Any, GradedStats]:
        """Compute the posterior of each level on the nodes, and the expected counts."""
        scores = np.asarray(state @ self.table(params, self.nodes).log_p) + self.log_weights
        top = scores.max(axis=1, keepdims=True)
        q = np.exp(scores - top)
        total = q.sum(axis=1, keepdims=True)
        q /= total
        value = float((top + np.log(total))[shard.labelled].sum())
        return state, GradedStats(np.asarray(state.T @ q), value)

    def global_step(self, stats: GradedStats, params: GradedParams) -> GradedParams:
        """Maximise over cuts, biases and spreads, then over their standard deviations."""
        if self.n_classes < 2:
            return params
        moved = self._maximised(stats.counts, params)
        return moved.with_deviations(self.used)

    def objective(self, stats: GradedStats, params: GradedParams) -> float:
        """Return the log posterior: log-likelihood and log prior of all parameters."""
        return stats.log_likelihood + self.log_prior(params)

    def extrapolate(
        self, first: GradedParams, second: GradedParams, third: GradedParams
    ) -> GradedParams | None:
        """Return the extrapolated parameters, inside their bounds."""
        path = squarem(first.path(), second.path(), third.path())
        if path is None:
            return None
        return third.at(path).clipped()

    # -------------------------------------------------------------------------------- equations

    def table(self, params: GradedParams, levels: Floats) -> GradedTable:
        """Return p(label | level) of each cell at each level, and its derivatives."""
        worker, label = np.divmod(self.cells, self.n_classes)
        cuts = params.cuts(self.n_classes)
        return graded_table(cuts, label, params.bias[worker], params.spread[worker], levels,
                            self.link)  # fmt: skip

    def log_prior(self, params: GradedParams) -> float:
        """Return the log prior density, up to a constant, including the pseudo-labels."""
        value = params.log_prior(self.used)
        pseudo = self._pseudo_table(params).log_p @ np.exp(self.log_weights)
        return float(value + PSEUDO_LABELS / self.n_classes * pseudo.sum())

    def _pseudo_table(self, params: GradedParams) -> GradedTable:
        """Return p(label | level) of a typical worker, one row per class."""
        K = self.n_classes
        return graded_table(params.cuts(K), np.arange(K), np.zeros(K),
                            np.full(K, np.exp(params.noise)), self.nodes, self.link)  # fmt: skip

    def expected(self, counts: Floats, params: GradedParams) -> tuple[float, Floats]:
        """Return the expected log posterior, which the M-step maximises, and its gradient.

        The gradient is by the entries of ``params.path()``, without the standard deviations.
        """
        K = self.n_classes
        worker, label = np.divmod(self.cells, K)
        found, pseudo = self.table(params, self.nodes), self._pseudo_table(params)
        weights = np.exp(self.log_weights) * PSEUDO_LABELS / K
        value = float((counts * found.log_p).sum() + (weights * pseudo.log_p).sum())
        d_cut = found.by_cut(counts, label, K) + pseudo.by_cut(weights, np.arange(K), K)
        d_ratio = np.bincount(worker, (counts * found.d_log_spread).sum(axis=1), self.n_workers)
        d_bias = np.bincount(worker, (counts * found.d_bias).sum(axis=1), self.n_workers)
        d_noise = d_ratio.sum() + (weights * pseudo.d_log_spread).sum()
        # A gap moves the cuts above it up and, because their mean stays, all cuts down.
        above = np.arange(K - 1)[:, None] > np.arange(max(K - 2, 0))
        by_gap = np.exp(params.log_gaps) * (d_cut @ (above - above.mean(axis=0)))
        slope = np.concatenate([[d_cut.sum()], by_gap, [d_noise], d_bias, d_ratio])
        return value + params.log_prior(self.used), slope + params.log_prior_slope()

    def _maximised(self, counts: Floats, params: GradedParams) -> GradedParams:
        """Return better cuts, biases and spreads by L-BFGS; the given ones if there are none."""
        from scipy.optimize import minimize

        start = params.path()
        n_gaps, J = len(params.log_gaps), self.n_workers
        free = np.zeros(len(start), dtype=bool)
        free[: n_gaps + 2] = True
        blocks = ((n_gaps + 2, self.moves_bias), (n_gaps + 2 + J, self.moves_ratio))
        for offset, moves in blocks:
            free[offset + self.used] = moves
        limits = params.limits()

        def negative(some: Floats) -> tuple[float, Floats]:
            path = start.copy()
            path[free] = some
            value, slope = self.expected(counts, params.at(path))
            return -value, -slope[free[:-2]]

        found = minimize(
            negative, start[free], jac=True, method="L-BFGS-B", bounds=limits[free],
            options={"maxiter": STEPS},
        )  # fmt: skip
        path = start.copy()
        path[free] = found.x
        moved = params.at(path)
        better = np.isfinite(found.fun) and found.fun <= -self.expected(counts, params)[0]
        return moved if better else params

    # ---------------------------------------------------------------------------------- answers

    def answer(
        self, shard: Shard, state: Any, given: tuple[GradedParams, Floats]
    ) -> tuple[tuple[Floats, Floats, Floats], LevelStats]:
        """Return class probabilities (n, K) for these class cuts, mean and variance of levels."""
        params, class_cuts = given
        log_p = self.table(params, GRID).log_p
        probas = np.empty((shard.n_tasks, self.n_classes))
        mean, variance = np.empty(shard.n_tasks), np.empty(shard.n_tasks)
        density = np.zeros(len(GRID))
        for begin in range(0, shard.n_tasks, GRID_ROWS):
            rows = slice(begin, min(begin + GRID_ROWS, shard.n_tasks))
            scores = np.asarray(state[rows] @ log_p) - 0.5 * GRID**2
            q = np.exp(scores - scores.max(axis=1, keepdims=True))
            q /= q.sum(axis=1, keepdims=True)
            mean[rows] = (q * GRID).sum(axis=1)
            variance[rows] = (q * (GRID - mean[rows, None]) ** 2).sum(axis=1)
            probas[rows] = between_cuts(q, class_cuts)
            density += q[shard.labelled[rows]].sum(axis=0)
        return (probas, mean, variance), LevelStats(density)


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalLatent(OrderedMethod):
    r"""A latent level per task, and a bias and a spread per worker (graded responses).

    .. math::
        x_i \sim N(0, 1), \qquad
        p(y_{ij} \le k \mid x_i) = \Phi\!\left(\frac{c_k - x_i - b_j}{s_j}\right), \qquad
        b_j \sim N(0, \omega^2), \quad \log s_j \sim N(\mu, \kappa^2)

    Use it when workers are lenient or strict, or use only part of the scale: its worker table says
    who. Also use it when gold or the true class shares are known, which place the cuts between
    classes. Cost per iteration: O(annotations × nodes), and 15 times workers × classes × nodes.

    Parameters
    ----------
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Shares of the true classes. Cuts between classes are placed so that tasks have these shares;
        "auto" takes the cuts of the labels. With gold, gold places the cuts.
    bias : bool
        Whether workers have biases.
    scale : "auto" or bool
        Whether workers have spreads of their own; "auto": with at least 30 labels per worker.
    link : {"probit", "logit"}
        Distribution of a worker's noise: normal or logistic.
    n_nodes : int
        Number of Gauss-Hermite nodes.
    decide : {"median", "mode", "mean"}
        Label of a task: the median of its posterior minimises the mean absolute error, the mode the
        number of errors, and the rounded mean the squared error.
    max_iter, tol : int, float
        Maximum number of iterations; relative gain that counts as converged.

    Attributes
    ----------
    bias_, spread_ : (n_workers,)
        :math:`b_j`, positive for lenient workers, and :math:`s_j`; in units of the standard
        deviation of levels.
    cuts_, class_cuts_ : (n_classes - 1,)
        Cuts of the labels, :math:`c_k`, and cuts between the classes of tasks.
    level_, level_variance_ : (n_tasks,)
        Posterior mean and variance of :math:`x_i`.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior.
    history_ : tuple of float
        The log posterior of the parameters; it never decreases.

    Notes
    -----
    Cuts are those of the crowd: where workers prefer the middle of the scale, so do the classes.
    Give ``class_prior`` or gold if the true shares differ. Gold places the cuts and does not change
    the worker parameters; a task prior multiplies the class probabilities and does not either.
    The standard deviations :math:`\omega, \kappa` maximise the posterior, with five pseudo-workers
    at .3 and .2; cuts have one pseudo-label. The typical spread :math:`e^\mu` is estimated, because
    levels have variance 1. Final posteriors are computed on a grid of step 1/16.

    References
    ----------
    F. Samejima (1969). Estimation of latent ability using a response pattern of graded scores.
    Psychometrika Monograph 17.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> made = simulate.graded_responses(200, 10, n_classes=4)
    >>> model = OrdinalLatent().fit(made.labels)
    >>> bool(np.corrcoef(model.bias_, made.bias)[0, 1] > 0.9)
    True
    """

    class_prior: Any = "auto"
    bias: bool = True
    scale: Any = "auto"
    link: str = "probit"
    n_nodes: int = 21
    max_iter: int = 200
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        "bias_": SavedArray("J"),
        "spread_": SavedArray("J", "amount"),
        "cuts_": SavedArray("cuts"),
        "class_cuts_": SavedArray("cuts"),
        "level_": SavedArray("N"),
        "level_variance_": SavedArray("N", "amount"),
        "unknown_spread_": SavedArray("1", "amount"),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True, pooled=True)
    footprint = Footprint(label=40.0, task=900.0, cell=24.0)
    limits: ClassVar[Limits] = {
        "class_prior": check_fixed_class_prior,
        "bias": Flag(),
        "scale": Flag(auto=True),
        "link": Choice(LINKS),
        "n_nodes": Count(5, 101),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"cuts": max(sizes["K"] - 1, 0)}

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        model = self._model(labels)
        shards = problem.cut(len(model.cells) * self.n_nodes)
        params = GradedParams.from_totals(labels.class_totals, labels.n_workers)
        states = shards.begin(model)
        if problem.start is not None:
            first = problem.start, params.cuts(labels.n_classes)
            states, stats = shards.map_reduce(model, "first", states, first)
            params = model.global_step(stats, params)
        done = iterate(
            model, shards, params, states, max_iter=self.max_iter, tol=self.tol, accelerate=True
        )
        params = done.params
        cuts = params.cuts(labels.n_classes)
        class_cuts = self._class_cuts(problem, model, params)
        probas, level, variance, _ = _answers(model, problem, params, class_cuts)
        probas = with_task_prior(probas, problem.prior, class_cuts)
        unknown = np.array([np.hypot(np.exp(params.noise), params.bias_sd * self.bias)])
        return Fit(
            self._answers(probas), worker_evidence(labels, probas).mean_right,
            class_prior=normal_shares(class_cuts),
            n_iter=done.n_iter, converged=done.converged, history=done.history,
            extra={
                "bias": params.bias, "spread": params.spread, "cuts": cuts,
                "class_cuts": class_cuts, "level": level, "level_variance": variance,
                "unknown_spread": unknown,
            },
        )  # fmt: skip

    def _model(self, labels: CrowdLabels) -> GradedModel:
        from numpy.polynomial.hermite_e import hermegauss

        nodes, weights = hermegauss(self.n_nodes)
        K = labels.n_classes
        cells = np.unique(labels.worker.astype(np.int64) * K + labels.label)
        n_workers = max(len(np.unique(labels.worker)), 1)
        total = labels.n_annotations if labels.weight is None else labels.weight.sum()
        scale = total / n_workers >= LABELS_FOR_SCALE if is_auto(self.scale) else bool(self.scale)
        return GradedModel(
            nodes, np.log(weights / weights.sum()), cells, labels.n_workers, K, self.link,
            bool(self.bias), bool(scale),
        )  # fmt: skip

    def _class_cuts(self, problem: Problem, model: GradedModel, params: GradedParams) -> Floats:
        """Return the cuts between classes: from gold, from given shares, or those of labels."""
        K = problem.data.n_classes
        cuts, prior = params.cuts(K), problem.prior
        uses_shares = not is_auto(self.class_prior)
        if K < 2 or (prior.gold is None and not uses_shares):
            return cuts
        _, level, _, density = _answers(model, problem, params, cuts)
        if uses_shares:
            log_shares = fixed_class_prior(self.class_prior, prior, K)
            assert log_shares is not None
            cuts = cuts_at_shares(np.exp(log_shares), density, GRID)
        if prior.gold is not None and (prior.gold >= 0).any():
            known = prior.gold >= 0
            cuts = cuts_from_gold(level[known], prior.gold[known], cuts, density, GRID)
        return cuts

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        model, params = self._fitted(problem)
        probas, *_ = _answers(model, problem, params, self.class_cuts_)
        return self._answers(with_task_prior(probas, problem.prior, self.class_cuts_))

    def _log_likelihood(self, problem: Problem) -> float:
        model, params = self._fitted(problem)
        shards = problem.cut(len(model.cells) * self.n_nodes)
        _, stats = shards.map_reduce(model, "local_step", shards.begin(model), params)
        return float(stats.log_likelihood)

    def _fitted(self, problem: Problem) -> tuple[GradedModel, GradedParams]:
        """Return model and parameters; workers that the fit has not seen come last."""
        model = self._model(problem.data)
        new = model.n_workers - len(self.bias_)
        spread = np.concatenate([self.spread_, np.repeat(self.unknown_spread_, new)])
        gaps = np.log(np.maximum(np.diff(self.cuts_), 1e-300))
        params = GradedParams(
            float(self.cuts_.mean()) if len(self.cuts_) else 0.0, gaps, 0.0,
            np.concatenate([self.bias_, np.zeros(new)]), np.log(spread), 1.0, 1.0,
        )  # fmt: skip
        return model, params


def _answers(
    model: GradedModel, problem: Problem, params: GradedParams, class_cuts: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return class probabilities, means and variances of levels, and the density of levels."""
    n_tasks, shards = problem.data.n_tasks, problem.cut(len(model.cells) * len(GRID))
    probas = np.empty((n_tasks, model.n_classes))
    mean, variance = np.empty(n_tasks), np.empty(n_tasks)
    stats = shards.collect(
        model, "answer", shards.begin(model), (params, class_cuts),
        rows_into(probas, mean, variance),
    )  # fmt: skip
    return probas, mean, variance, stats.density
