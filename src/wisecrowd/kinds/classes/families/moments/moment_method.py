r"""The common part of moment methods: from estimated worker parameters to a fit.

A moment method estimates the workers' parameters from joint tables of labels, without posteriors.
The remaining steps are the same for all methods:

* **Gold** labels act as one more worker, who labels only the gold tasks.
* **Permutation.** Moments do not determine the names of the classes. In each connected component of
  the crowd the classes are named so that the workers, weighted by their number of labels, are right
  as often as possible: the assignment with the largest trace of their mean confusion matrix.
* **Classes on which no two workers ever agreed** look like errors of some other class in tables of
  agreement. Their parameters are those of the soft vote; the others are estimated without them.
* **Unidentified workers** get the confusion matrix that fits their tables with identified ones best
  (least squares), otherwise that of the soft vote.
* **Smoothing.** Each row gets ``SMOOTHING`` pseudo-labels, so that few labels give no certainty.
* **Posterior** of a task: that of independent workers with these matrices (MAP label).

To run EM afterwards, use ``DawidSkene().fit(labels, init=method)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.findings import Finding
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.inference.priors import WeakDiagonal
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import fixed_class_prior
from wisecrowd.kinds.classes.families.confusion import accuracy_of, known_mixture, naive_bayes
from wisecrowd.kinds.classes.families.moments.pair_moments import (
    PairMoments,
    agreed_classes,
    pair_moments,
    with_gold_worker,
)
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.kernels.posteriors import soft_votes
from wisecrowd.kinds.classes.prior import certain_classes

ENOUGH = 5  # least number of shared tasks per class of a pair, by default
SMOOTHING = 1.0  # pseudo-labels of a confusion row, spread evenly
NAME_LEAD = 1e-3  # share of right labels that names of two classes must gain over exchanged names,
APART = 0.1  # if somebody's rows of these classes differ by more than this


@dataclass(frozen=True, eq=False)
class MomentEstimate:
    """Estimates of a moment method.

    Attributes
    ----------
    confusion : (n_workers, K, K)
        ``confusion[j, k, l]``; rows sum to one. Rows of unidentified workers are arbitrary.
    class_prior : (K,)
    identified : (n_workers,) bool
        Whether the method estimated the worker.
    part : (n_workers,) int
        Within a component, class ``k`` is the same for all workers; between components it need not
        be.
    pairs : PairMoments, optional
        Tables for estimating unidentified workers; without them they get the soft vote's matrix.
    n_iter, converged, history, findings, extra
        As in :class:`~wisecrowd.core.result.Fit`.
    """

    confusion: Floats
    class_prior: Floats
    identified: Mask
    part: Ints
    pairs: PairMoments | None = None
    n_iter: int = 1
    converged: bool = True
    history: tuple[float, ...] = ()
    findings: tuple[Finding, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class MomentMethod(Aggregator):
    """Base of methods that estimate worker parameters from moments.

    Subclasses define ``_estimate(problem) -> MomentEstimate`` and have a parameter ``class_prior``
    for the posterior: "auto" (the estimated one unless a task prior is given), "estimate",
    "uniform" or (n_classes,) probabilities. The annotations of that problem contain only classes
    that occur and, if there are gold labels, one more worker at the end. Use
    ``vote_confusion(problem.data, problem.start)`` for the confusion matrices of its start.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
    """

    class_prior: Any = "auto"
    tells_classes_apart: ClassVar[bool] = True  # whether estimates have a row per class

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
        "identified_": SavedArray("J", "flag"),
    }

    def _estimate(self, problem: Problem) -> MomentEstimate:
        raise TypeError(f"{type(self).__name__} must define _estimate.")

    def _fit(self, problem: Problem) -> Fit:
        gold = certain_classes(problem.prior, problem.data.n_tasks)
        return self._fit_moments(problem, lambda: with_gold_worker(problem.data, gold))

    def _fit_pack(self, problem: Problem) -> Fit:
        crowd: Any = problem.data
        return self._fit_moments(problem, lambda: crowd.moments(problem))

    def _fit_moments(self, problem: Problem, crowd_of: Callable[[], Any]) -> Fit:
        """Return the fit to labels, or what moments need of them, with the gold worker."""
        labels, prior = problem.data, problem.prior
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * (6 * J * K * K + 2 * labels.n_tasks_in_memory * K),
            f"{type(self).__name__} with {J} workers and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        crowd = crowd_of()
        estimate = self._used_classes(replace(problem, data=crowd))
        total = worker_weights(crowd)
        confusion = cautious(estimate.confusion, estimate.class_prior, total)[:J]
        class_prior = estimate.class_prior
        fixed = fixed_class_prior(self.class_prior, prior, K, labels)
        if fixed is not None:
            class_prior = np.exp(fixed) / np.exp(fixed).sum()
        return Fit(
            naive_bayes(self._counting(problem), confusion, class_prior),
            accuracy_of(confusion, class_prior),
            class_prior=class_prior,
            confusion=confusion,
            n_iter=estimate.n_iter,
            converged=estimate.converged,
            history=estimate.history,
            findings=estimate.findings
            + (() if estimate.pairs is None else estimate.pairs.findings),
            extra={"identified": estimate.identified[:J], **estimate.extra},
        )

    def _used_classes(self, problem: Problem) -> MomentEstimate:
        """Return the completed estimate; a class that never occurs as a label has share zero."""
        crowd = problem.data
        K = crowd.n_classes
        used = np.flatnonzero(crowd.class_totals > 0)
        used = used if len(used) else np.arange(K)
        estimate = self._agreed_classes(_narrowed(problem, used, in_classes))
        if len(used) == K:
            return estimate
        confusion = np.full((crowd.n_workers, K, K), 1 / K)
        confusion[:, used] = 0.0
        confusion[np.ix_(np.arange(crowd.n_workers), used, used)] = estimate.confusion
        class_prior = np.zeros(K)
        class_prior[used] = estimate.class_prior
        return replace(estimate, confusion=confusion, class_prior=class_prior)

    def _agreed_classes(self, problem: Problem) -> MomentEstimate:
        """Return the completed estimate, with the soft vote where moments do not suffice."""
        crowd: Any = problem.data
        agreed = agreed_classes(crowd)
        if not self.tells_classes_apart or agreed.all() or agreed.sum() < 2:
            return self._completed(problem)
        confusion, class_prior = start_from(crowd, problem.start, None)
        kept = np.flatnonzero(agreed)
        estimate = self._completed(_narrowed(problem, kept, labels_of_classes))
        block = np.ix_(np.arange(crowd.n_workers), kept, kept)
        confusion[block] = estimate.confusion * confusion[block].sum(axis=2, keepdims=True)
        class_prior[kept] = estimate.class_prior * class_prior[kept].sum()
        return replace(estimate, confusion=confusion, class_prior=class_prior)

    def _completed(self, problem: Problem) -> MomentEstimate:
        crowd = problem.data
        votes = vote_confusion(crowd, problem.start)
        return completed(self._estimate(problem), votes, worker_weights(crowd))

    def _predict(self, problem: Problem) -> Floats:
        return naive_bayes(self._counting(problem), self.confusion_, self.class_prior_)

    def _counting(self, problem: Problem) -> Problem:
        """Return the problem with the class prior included, unless "auto" may leave it out."""
        auto = isinstance(self.class_prior, str) and self.class_prior == "auto"
        return problem if auto else replace(problem, prior=replace(problem.prior, given=False))

    def _log_likelihood(self, problem: Problem) -> float:
        return known_mixture(problem, self.confusion_, self.class_prior_)[1]


def _narrowed(problem: Problem, kept: Ints, restricted: Callable[..., Any]) -> Problem:
    """Return the problem restricted to these classes, in annotations and start."""
    crowd, start = problem.data, problem.start
    if len(kept) == crowd.n_classes:
        return problem
    if start is not None:
        start = start[:, kept] + 1e-300
        start = start / start.sum(axis=1, keepdims=True)
    return replace(problem, data=restricted(crowd, kept), start=start)


@singledispatch
def in_classes(labels: Any, kept: Ints) -> Any:
    """Return the labels with the codes of these classes; labels of others have no weight."""
    code = np.searchsorted(kept, labels.label).clip(0, len(kept) - 1).astype(np.int32)
    return replace(labels, label=code, classes=labels.classes[kept])


@singledispatch
def labels_of_classes(labels: Any, kept: Ints) -> Any:
    """Return the labels of these classes, with their codes."""
    return in_classes(labels.select_annotations(np.isin(labels.label, kept)), kept)


class PairMethod(MomentMethod):
    """Moment methods that work on pair tables.

    Parameters
    ----------
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        Class frequencies of the posterior; "auto" is the estimate unless a task prior is given.
    min_shared : "auto" or float
        Minimum number of shared tasks of a pair; "auto" is 5 × n_classes or, if no pair shares that
        many, n_classes: with fewer, a table cannot separate all classes.
    max_pairs : int
        Maximum number of pairs; see
        :func:`~wisecrowd.kinds.classes.families.moments.pair_moments.pair_moments`.
    random_state : int, Generator or None
        Breaks ties between pairs when ``max_pairs`` is reached; nothing else is random.
    """

    class_prior: Any = "auto"
    min_shared: Any = "auto"
    max_pairs: int = 200_000
    random_state: Any = 0

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_budget(self.min_shared, self.max_pairs)

    def _pairs(self, labels: CrowdLabels, rng: np.random.Generator) -> PairMoments:
        """Return the pair tables that count."""
        return tables_for(labels, self.min_shared, self.max_pairs, rng)


def check_budget(min_shared: Any, max_pairs: Any) -> None:
    """Check the parameters that select pairs."""
    if not (isinstance(min_shared, str) and min_shared == "auto"):
        check_number("min_shared", min_shared, 0.0)
    check_integer("max_pairs", max_pairs, 1)


def tables_for(
    labels: CrowdLabels, min_shared: Any, max_pairs: int, rng: np.random.Generator
) -> PairMoments:
    """Return the pair tables that count, by the rule of :class:`PairMethod`."""
    if isinstance(min_shared, str):
        enough = ENOUGH * labels.n_classes
        pairs = tables_for(labels, enough, max_pairs, rng)
        if pairs.n_pairs:
            return pairs
        min_shared = labels.n_classes
    return pair_moments(labels, min_shared=min_shared, max_pairs=max_pairs, rng=rng)


def vote_confusion(labels: CrowdLabels, start: Floats | None = None) -> Floats:
    """Return confusion matrices (J, K, K) from the soft vote or a start, with a weak prior."""
    counts = vote_counts(labels, start) + WeakDiagonal().pseudo_counts(None, labels.n_classes)
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


@singledispatch
def vote_counts(labels: Any, start: Floats | None) -> Floats:
    """Return each worker's labels (J, K, K) by the soft vote, or the start, of their tasks."""
    J, K = labels.n_workers, labels.n_classes
    if start is None:
        start = soft_votes(labels.indptr, labels.label, labels.weight, K)
    cell = labels.worker.astype(np.int64) * K + labels.label
    counts = np.empty((J, K, K))
    for k in range(K):
        mass = start[labels.task, k]
        mass = mass if labels.weight is None else mass * labels.weight
        counts[:, k] = np.bincount(cell, mass, J * K).reshape(J, K)
    return counts


@singledispatch
def vote_shares(labels: Any, start: Floats | None) -> Floats:
    """Return the shares (K,) of the classes in the soft vote, or the start, of labelled tasks."""
    if start is None:
        start = soft_votes(labels.indptr, labels.label, labels.weight, labels.n_classes)
    return np.asarray(start[labels.labels_per_task > 0].mean(axis=0))


def start_from(
    labels: CrowdLabels, start: Floats | None, estimate: MomentEstimate | None
) -> tuple[Floats, Floats]:
    """Return initial confusion matrices and class prior: of a given start, or of an estimate.

    Without either, they are those of the soft vote.
    """
    votes = vote_confusion(labels, start)
    if estimate is not None:
        whole = completed(estimate, votes, worker_weights(labels))
        return whole.confusion, whole.class_prior
    return votes, vote_shares(labels, start)


def inner_start(probabilities: Floats, share: float = 0.05) -> Floats:
    """Mix probabilities (..., K) with a share of uniform ones, so that none is zero."""
    return np.asarray((1 - share) * probabilities + share / probabilities.shape[-1])


# ----------------------------------------------------------------------- moments to parameters


def completed(estimate: MomentEstimate, votes: Floats, total: Floats) -> MomentEstimate:
    """Name the classes of an estimate and fill in the unidentified workers.

    Parameters
    ----------
    votes : (n_workers, K, K)
        Confusion matrices of the soft vote, for workers whom moments do not determine.
    total : (n_workers,)
        Weight of each worker's labels.
    """
    estimate = named(estimate, total)
    confusion = np.where(estimate.identified[:, None, None], estimate.confusion, votes)
    if estimate.pairs is not None and not estimate.identified.all():
        fitted, known = regressed(
            estimate.pairs, confusion, estimate.class_prior, estimate.identified
        )
        use = known & ~estimate.identified
        confusion[use] = fitted[use]
    return replace(estimate, confusion=confusion)


def named(estimate: MomentEstimate, total: Floats) -> MomentEstimate:
    """Name the classes of every component so that its workers are right most often.

    The names of the class prior are those in the component with most labels. Where other names
    would do as well, one worker's word stands against another's, and nobody is identified.
    """
    confusion, prior = estimate.confusion.copy(), estimate.class_prior
    identified = estimate.identified.copy()
    weight = np.where(estimate.identified, total, 0.0)
    by_part = np.bincount(estimate.part, weights=weight)
    for part in np.argsort(by_part, kind="stable"):
        members = np.flatnonzero((estimate.part == part) & estimate.identified)
        if len(members):
            mean = np.einsum("j,jkl->kl", weight[members], confusion[members])
            order = best_names(mean)
            confusion[members] = confusion[members][:, order]
            prior = estimate.class_prior[order]
            identified[members] = not _names_are_tied(confusion[members], weight[members])
    return replace(estimate, confusion=confusion, class_prior=prior, identified=identified)


def _names_are_tied(confusion: Floats, weight: Floats) -> bool:
    """Return whether two classes that workers (J, K, K) tell apart could exchange their names."""
    mean = np.einsum("j,jkl->kl", weight / max(float(weight.sum()), 1e-300), confusion)
    right = np.diagonal(mean)
    lead = right[:, None] + right - mean - mean.T  # (K, K): what the present names gain
    return any(
        float(np.abs(confusion[:, k] - confusion[:, other]).max()) > APART
        for k, other in np.argwhere(np.triu(lead <= NAME_LEAD, 1)).tolist()
    )


def best_names(mean: Floats) -> NDArray[np.intp]:
    """Return the row of a mean confusion (K, K) that is each class: the largest trace.

    Values that differ only by rounding count as equal, so that rounding does not break ties.

    Examples
    --------
    >>> best_names(np.array([[0.2, 0.8], [0.7, 0.3]]))
    array([1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    scale = max(float(np.abs(mean).max(initial=0.0)), 1e-300)
    row, label = linear_sum_assignment(-np.round(mean / scale, 9))
    return np.asarray(row[np.argsort(label)])


def regressed(
    pairs: PairMoments, confusion: Floats, class_prior: Floats, known: Mask
) -> tuple[Floats, Mask]:
    r"""Return the least-squares confusion matrices given the tables with known workers.

    .. math::
        \min_{\theta_j} \sum_{j' \text{ known}} n_{jj'}
        \| R_{jj'} - \theta_j^T diag(\pi) \theta_{j'} \|^2

    with rows then projected onto the simplex. Also returns the workers whose matrix this determines
    completely: (n_workers,) bool.
    """
    K = pairs.n_classes
    joint = class_prior[:, None] * confusion  # (J, K, K): p(class, label)
    normal, right = [], []
    # First workers given second ones, then the other way round.
    for other, table in (
        (pairs.second, pairs.tables),
        (pairs.first, pairs.tables.transpose(0, 2, 1)),
    ):
        weight = np.where(known[other], pairs.n_shared, 0.0)[:, None, None]
        partner = joint[other]
        normal.append(weight * (partner @ partner.transpose(0, 2, 1)))
        right.append(weight * (partner @ table.transpose(0, 2, 1)))
    gram, side = pairs.sum_by_worker(*normal), pairs.sum_by_worker(*right)  # (J, K, K) each
    scale = np.trace(gram, axis1=1, axis2=2)
    lowest = np.linalg.eigvalsh(gram)[:, 0]
    determined = (scale > 0) & (lowest > 1e-10 * scale)
    fitted = np.full((pairs.n_workers, K, K), 1 / K)
    fitted[determined] = np.linalg.solve(gram[determined], side[determined])
    return on_simplex(fitted), determined


def prior_from_pairs(pairs: PairMoments, confusion: Floats, known: Mask) -> Floats:
    r"""Return the least-squares class prior (K,) given the tables of known workers.

    .. math::
        \min_\pi \sum_{jj'} n_{jj'} \Big\| R_{jj'} -
        \sum_k \pi_k \theta_{jk} \theta_{j'k}^T \Big\|^2
    """
    K = pairs.n_classes
    weight = np.where(known[pairs.first] & known[pairs.second], pairs.n_shared, 0.0)
    if not weight.sum() > 0:
        return np.full(K, 1 / K)
    one, two = confusion[pairs.first], confusion[pairs.second]  # (P, K, L)
    products = (one @ one.transpose(0, 2, 1)) * (two @ two.transpose(0, 2, 1))
    gram = np.einsum("p,pkm->km", weight, products)
    side = np.einsum("p,pkl,plm,pkm->k", weight, one, pairs.tables, two, optimize=True)
    return simplex_least_squares(gram, side)


def simplex_least_squares(gram: Floats, side: Floats) -> Floats:
    """Return the probabilities x (K,) that minimise ``x' gram x - 2 side' x``."""
    from scipy.optimize import nnls

    K = len(side)
    size = float(np.trace(gram)) / K or 1.0
    values, vectors = np.linalg.eigh(gram / size)
    root = np.sqrt(np.maximum(values, 1e-14))
    heavy = 1e4  # penalty on sums other than one; the result is normalised
    rows = np.vstack([root[:, None] * vectors.T, np.full(K, heavy)])
    found, _ = nnls(rows, np.append((vectors.T @ side) / (size * root), heavy))
    total = found.sum()
    return np.asarray(found / total) if total > 0 else np.full(K, 1 / K)


def on_simplex(rows: Floats) -> Floats:
    """Project each row (..., K) onto the probability simplex (Euclidean distance).

    Examples
    --------
    >>> on_simplex(np.array([[0.5, 0.7], [-1.0, 0.4]]))
    array([[0.4, 0.6],
           [0. , 1. ]])
    """
    K = rows.shape[-1]
    ordered = -np.sort(-rows, axis=-1)
    excess = np.cumsum(ordered, axis=-1) - 1
    n_kept = np.count_nonzero(ordered * np.arange(1, K + 1) > excess, axis=-1)
    n_kept = np.maximum(n_kept, 1)[..., None]
    cut = np.take_along_axis(excess, n_kept - 1, axis=-1) / n_kept
    return np.asarray(np.maximum(rows - cut, 0.0))


def cautious(confusion: Floats, class_prior: Floats, total: Floats) -> Floats:
    r"""Smooth the matrices according to their number of labels.

    Row ``k`` of worker ``j`` is based on :math:`n_j \pi_k` labels. It gets ``SMOOTHING`` more,
    spread evenly over the classes, because an estimate of zero does not prove that a label never
    occurs.
    """
    n = (total[:, None] * class_prior)[..., None]
    return np.asarray((n * confusion + SMOOTHING / confusion.shape[2]) / (n + SMOOTHING))
