"""Confusion matrices that fit marginals, pairs and triples of labels at once.

In each worker's matrix, and in the class prior, this is least squares on the simplex: solved in
closed form where no probability is zero, otherwise improved by ADMM steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Count, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.loop import squarem
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import (
    ENOUGH,
    MomentEstimate,
    PairMethod,
    on_simplex,
    vote_confusion,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments
from wisecrowd.kinds.classes.families.moments.third_moments import (
    TripleMoments,
    busiest_first,
    class_shares,
    triple_moments,
    unidentified_workers,
)
from wisecrowd.kinds.classes.families.posteriors import worker_weights

INNER = 10  # steps of ADMM on each block
PROXIMAL = 1e-7  # keeps singular blocks solvable
SINGULAR = 1e-12  # least relative eigenvalue of a block that counts as nonzero


@dataclass(frozen=True, eq=False)
class JointTables:
    """Shares of labels of every worker (J, K), of every pair (P, K, K) and triple (T, K, K, K).

    ``weights`` (J,), (P,) and (T,) are the weights of the tables, such as their numbers of tasks.
    """

    single: Floats
    pair_workers: Ints
    pairs: Floats
    triple_workers: Ints
    triples: Floats
    weights: tuple[Floats, Floats, Floats]


def joint_tables(pairs: PairMoments, triples: TripleMoments, total: Floats) -> JointTables:
    """Return all tables, each weighted by the tasks it was counted on.

    ``total`` (J,) is the weight of each worker's labels. The largest weight is one, so all tables
    have the same weight where everybody labels everything.
    """
    scale = max(float(total.max(initial=0.0)), 1e-300)
    return JointTables(
        pairs.marginals,
        np.stack([pairs.first, pairs.second], axis=1),
        pairs.tables,
        triples.workers,
        triples.tables,
        (total / scale, pairs.n_shared / scale, triples.n_shared / scale),
    )


class Quadratic(NamedTuple):
    """½ tr(xᵀ gram x) − tr(rightᵀ x), in x (K, ·)."""

    gram: Floats
    right: Floats

    def value(self, x: Floats) -> float:
        """Return the value at ``x``."""
        return float((x * (0.5 * self.gram @ x - self.right)).sum())


class CoupledFit(NamedTuple):
    """Confusion (J, K, K), class prior (K,), objective after each round, whether it converged."""

    confusion: Floats
    class_prior: Floats
    history: tuple[float, ...]
    converged: bool


@dataclass(eq=False)
class _Solution:
    """The current solution, and the multipliers of ADMM, which carry over between rounds."""

    confusion: Floats  # (J, K, L)
    prior: Floats  # (K,)
    gram: Floats = field(init=False)  # (J, K, K): confusion @ confusionᵀ
    duals: Floats = field(init=False)
    prior_dual: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.gram = self.confusion @ self.confusion.transpose(0, 2, 1)
        self.duals = np.zeros_like(self.confusion)
        self.prior_dual = np.zeros((1, len(self.prior)))

    def flat(self) -> Floats:
        """Return all parameters as one vector."""
        return np.concatenate([self.confusion.ravel(), self.prior])


def coupled_cpd(
    moments: JointTables,
    confusion: Floats,
    prior: Floats,
    *,
    max_iter: int,
    tol: float,
    order: Ints | None = None,
) -> CoupledFit:
    """Improve ``confusion`` (J, K, K) and ``prior`` (K,) until no entry moves by more than ``tol``.

    Workers are updated in the given order. The objective never rises: an ADMM step, or an
    extrapolation of three rounds (SQUAREM), is rejected if it would raise it.
    """
    state = _Solution(confusion.copy(), prior.copy())
    turns = np.arange(len(confusion)) if order is None else order
    met = np.zeros(len(confusion), dtype=bool)  # workers who are in no table with others stay fixed
    met[moments.pair_workers.ravel()] = met[moments.triple_workers.ravel()] = True
    shares = [_own_tables(moments, int(worker)) for worker in turns[met[turns]]]
    constant = _constant(moments, met)
    history: list[float] = []
    path = [state.flat()]
    converged = False
    for number in range(1, max_iter + 1):
        for share in shares:
            _improve_worker(share, state)
        rest = _improve_prior(shares, state)
        path.append(state.flat())
        moved = float(np.abs(path[-1] - path[-2]).max())
        if len(path) == 3:
            rest = _leap(shares, state, path, rest)
            path = [state.flat()]
        history.append(max(constant + rest, 0.0))
        report(Progress(number, max_iter, history[-1]))
        if converged := moved <= tol:
            break
    return CoupledFit(state.confusion, state.prior, tuple(history), converged)


def _leap(shares: list[_OwnTables], state: _Solution, path: list[Floats], reached: float) -> float:
    """Extrapolate the path of three rounds if that is better; return the objective."""
    further = squarem(*path)
    if further is None:
        return reached
    shape = state.confusion.shape
    rows = on_simplex(further.reshape(-1, shape[2]))
    trial = _Solution(rows[:-1].reshape(shape), rows[-1])
    value = _prior_block(shares, trial).value(trial.prior[:, None])
    if value < reached:
        state.confusion, state.prior, state.gram = trial.confusion, trial.prior, trial.gram
    return min(value, reached)


@dataclass(frozen=True, eq=False)
class _OwnTables:
    """The pairs and triples of one worker, with their weights, laid out for one product each.

    Those in which the worker comes first are at the beginning. Over all workers, these parts
    contain every pair and triple exactly once.
    """

    worker: int
    weight: float
    single: Floats  # (L,)
    partners: Ints  # (P,)
    pair_weight: Floats  # (P,)
    pairs: Floats  # (L, P · M): own label, partner's label; times the weight
    company: Ints  # (2, T)
    triple_weight: Floats  # (T,)
    triples: Floats  # (L, T · M · N)
    n_first: tuple[int, int]

    def sums(self, state: _Solution, first_only: bool) -> tuple[Floats, Floats]:
        """Return the Gram matrix (K, K) and the right-hand side (K, L), without the class prior."""
        K = len(state.prior)
        n_pairs, n_triples = self.n_first if first_only else (None, None)
        other, (one, two) = self.partners[:n_pairs], self.company[:, :n_triples]
        gram = np.full((K, K), self.weight)
        gram += np.tensordot(self.pair_weight[:n_pairs], state.gram[other], 1)
        gram += np.einsum(
            "t,tki,tki->ki", self.triple_weight[:n_triples], state.gram[one], state.gram[two]
        )
        turned = state.confusion.transpose(0, 2, 1)  # (J, L, K)
        right = self.weight * self.single[:, None] + np.zeros(K)  # (L, K)
        factors = turned[other].reshape(len(other) * K, K)
        right += self.pairs[:, : len(factors)] @ factors
        factors = (turned[one][:, :, None] * turned[two][:, None]).reshape(len(one) * K**2, K)
        right += self.triples[:, : len(factors)] @ factors
        return gram, right.T


def _own_tables(moments: JointTables, worker: int) -> _OwnTables:
    single, pair_weight, triple_weight = moments.weights
    pair_rows = [np.flatnonzero(column == worker) for column in moments.pair_workers.T]
    triple_rows = [np.flatnonzero(column == worker) for column in moments.triple_workers.T]
    pairs, triples = np.concatenate(pair_rows), np.concatenate(triple_rows)
    partners = [moments.pair_workers[rows, 1 - x] for x, rows in enumerate(pair_rows)]
    company = [
        np.delete(moments.triple_workers[rows], x, axis=1) for x, rows in enumerate(triple_rows)
    ]
    two = [np.moveaxis(moments.pairs[rows], x + 1, 0) for x, rows in enumerate(pair_rows)]
    three = [np.moveaxis(moments.triples[rows], x + 1, 0) for x, rows in enumerate(triple_rows)]
    return _OwnTables(
        worker,
        float(single[worker]),
        moments.single[worker],
        np.concatenate(partners),
        pair_weight[pairs],
        _flat(np.concatenate(two, axis=1), pair_weight[pairs]),
        np.concatenate(company).T,
        triple_weight[triples],
        _flat(np.concatenate(three, axis=1), triple_weight[triples]),
        (len(pair_rows[0]), len(triple_rows[0])),
    )


def _flat(tables: Floats, weight: Floats) -> Floats:
    """Return tables (L, n, ...) times their weights (n,), as (L, n · ...)."""
    size = tables.size // max(len(tables), 1)
    weighted = tables * weight.reshape(-1, *[1] * (tables.ndim - 2))
    return weighted.reshape(len(tables), size)


def _improve_worker(share: _OwnTables, state: _Solution) -> None:
    """Improve one worker's matrix, with the other workers fixed."""
    gram, right = share.sums(state, first_only=False)
    pi = state.prior
    block = Quadratic(gram * np.outer(pi, pi), right * pi[:, None])
    old = state.confusion[share.worker]
    new, state.duals[share.worker] = _solve(block, old, state.duals[share.worker], rows=True)
    if block.value(new) <= block.value(old):
        state.confusion[share.worker] = new
        state.gram[share.worker] = new @ new.T


def _improve_prior(shares: list[_OwnTables], state: _Solution) -> float:
    """Improve the class prior; return the objective without its constant part."""
    block = _prior_block(shares, state)
    old = state.prior[:, None]
    new, state.prior_dual = _solve(block, old, state.prior_dual, rows=False)
    if block.value(new) <= block.value(old):
        state.prior = new[:, 0]
    return block.value(state.prior[:, None])


def _prior_block(shares: list[_OwnTables], state: _Solution) -> Quadratic:
    """Return the least-squares problem of the class prior, in (K, 1)."""
    K = len(state.prior)
    gram, right = np.zeros((K, K)), np.zeros(K)
    for share in shares:
        own_gram, own_right = share.sums(state, first_only=True)
        gram += state.gram[share.worker] * own_gram
        right += (state.confusion[share.worker] * own_right).sum(axis=1)
    return Quadratic(gram, right[:, None])


def _constant(moments: JointTables, met: NDArray[np.bool_]) -> float:
    """Return half the weighted sum of squares of all tables that count."""
    single, *others = moments.weights
    weights = (np.where(met, single, 0.0), *others)
    total = 0.0
    for weight, table in zip(
        weights, (moments.single, moments.pairs, moments.triples), strict=True
    ):
        total += float(weight @ (table**2).sum(axis=tuple(range(1, table.ndim))))
    return 0.5 * total


def _solve(block: Quadratic, start: Floats, dual: Floats, rows: bool) -> tuple[Floats, Floats]:
    """Return a better point of the block than ``start``, and the multipliers.

    ``rows`` tells whether the rows or the columns are probabilities.
    """
    inside = _interior(block, rows)
    if inside is not None:
        return inside, np.zeros_like(dual)
    return _admm(block, start, dual, rows)


def _interior(block: Quadratic, rows: bool) -> Floats | None:
    """Return the optimum where no probability is zero, in closed form; None if there is none.

    With multipliers for the sums only, gram x = right - sums, which determines the multipliers.
    """
    values, vectors = np.linalg.eigh(block.gram)
    if not values[0] > SINGULAR * values[-1]:
        return None
    inverse = (vectors / values) @ vectors.T
    free = inverse @ block.right
    if rows:
        x = free + ((1 - free.sum(axis=1)) / free.shape[1])[:, None]
    else:
        step = inverse.sum(axis=1, keepdims=True)
        x = free + step * ((1 - free.sum(axis=0)) / step.sum())
    return np.asarray(x) if x.min() >= 0 else None


def _admm(block: Quadratic, start: Floats, dual: Floats, rows: bool) -> tuple[Floats, Floats]:
    """Return a better point of the block than ``start``, and the multipliers."""
    size = len(start)
    penalty = max(float(np.trace(block.gram)) / size, 1e-12)
    inverse = np.linalg.inv(block.gram + (penalty + PROXIMAL) * np.eye(size))
    x = (start if rows else start.T).copy()
    for _ in range(INNER):
        shifted = x + dual if rows else (x + dual).T
        free = inverse @ (block.right + PROXIMAL * start + penalty * shifted)
        free = free if rows else free.T
        x = on_simplex(free - dual)
        dual = dual + x - free
    return (x if rows else x.T), dual


@dataclass(eq=False, repr=False, kw_only=True)
class CoupledTensor(PairMethod):
    r"""Confusion matrices by coupled tensor decomposition of label tables of up to three workers.

    .. math::
        \min \sum_j c_j \|m_j - \theta_j^\top \pi\|^2
        + \sum_{jj'} c_{jj'} \|R_{jj'} - \theta_j^\top \mathrm{diag}(\pi) \theta_{j'}\|^2
        + \sum_{jj'j''} c_{jj'j''} \Big\| T_{jj'j''} -
        \sum_k \pi_k \theta_{jk} \otimes \theta_{j'k} \otimes \theta_{j''k} \Big\|^2

    with rows of :math:`\theta` and :math:`\pi` probabilities, by alternating ADMM.

    Use it when a few dozen workers share many tasks: triples identify any three workers of full
    rank, without class experts. Cost per round: O(triples × classes⁴).

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds over all workers.
    tol : float
        Largest change of a probability in a round that counts as converged.
    max_triples : int
        Maximum number of triples. Only triples that share ``min_shared`` tasks count. See
        :func:`~wisecrowd.kinds.classes.families.moments.third_moments.triple_moments`.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.kinds.classes.families.moments.moment_method.PairMethod`; triples are
        drawn at random where there are too many.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the worker is in a triple that counts.
    history_ : tuple of float
        Half the weighted squared misfit after each round; it never rises.

    Notes
    -----
    A table has the weight :math:`c` of the tasks it was counted on. In the paper all tables have
    the same weight, as they do here if everybody labels everything. The fit starts from the
    confusion matrices of the soft vote, or of ``init``. Classes are named so that workers are right
    as often as possible. Without triples that count, only the pairs are fitted. They need not
    determine the matrices, so the fit warns.

    References
    ----------
    P. A. Traganitis, A. Pagès-Zamora and G. B. Giannakis (2018). Blind multiclass ensemble
    classification. IEEE Transactions on Signal Processing 66(18), 4737-4752.

    Examples
    --------
    >>> from wisecrowd.simulate import OneCoinWorkers, crowd
    >>> made = crowd(400, 6 * OneCoinWorkers(8, 2), class_prior=[0.6, 0.4], random_state=0)
    >>> model = CoupledTensor().fit(made.labels)
    >>> bool(np.abs(model.worker_accuracy_ - made.worker_accuracy).mean() < 0.05)
    True
    """

    max_iter: int = 200
    tol: float = 1e-4
    max_triples: int = 20_000
    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(inductive=True, likelihood=True, confusion=True)

    limits: ClassVar[Limits] = {"max_triples": Count(1)}

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        J, K = labels.n_workers, labels.n_classes
        pairs = self._pairs(labels, rng)
        triples = self._triples(labels, rng)
        start = vote_confusion(labels, problem.start)
        fit = coupled_cpd(
            joint_tables(pairs, triples, worker_weights(labels)),
            start,
            class_shares(labels, np.zeros(K)),
            max_iter=self.max_iter,
            tol=self.tol,
            order=busiest_first(labels),
        )
        identified = np.zeros(J, dtype=bool)
        identified[triples.workers.ravel()] = True
        lacking = (worker_weights(labels) > 0) & ~identified
        findings = unidentified_workers(labels, lacking, "are in no triple that counts")
        if not triples.n_triples:
            identified[pairs.first] = identified[pairs.second] = True
        return MomentEstimate(
            fit.confusion,
            fit.class_prior,
            identified,
            pairs.parts()[0],
            pairs,
            n_iter=len(fit.history),
            converged=fit.converged,
            history=fit.history,
            findings=findings + triples.findings,
        )

    def _triples(self, labels: CrowdLabels, rng: np.random.Generator) -> TripleMoments:
        """Return the triples that share enough tasks; by default all, if none shares enough."""
        n = min(self.max_triples, labels.n_workers**3 // 6 + 1)
        require_memory(
            48 * n * labels.n_classes**3,
            f"{n} joint tables of three workers",
            "lower max_triples, or use multispa, which needs pairs only",
        )
        wanted = [self.min_shared]
        if isinstance(self.min_shared, str):
            wanted = [ENOUGH * labels.n_classes, labels.n_classes]
        for least in wanted:
            found = triple_moments(labels, min_shared=least, max_triples=self.max_triples, rng=rng)
            if found.n_triples:
                break
        return found
