r"""Held-out labels: how well a fit predicts labels that were hidden from it, without any truth.

A share of the annotations is hidden, a method is fitted to the others, and its posterior
:math:`q_i(k)` predicts the hidden ones,

.. math:: \log p(y_{ij}) = \log \sum_k q_i(k)\, \hat\theta_{jk}(y_{ij}).

The confusion matrices :math:`\hat\theta` come from one common judge, so the scores of methods with
different models, or without a model of the workers, are comparable. The judge counts the visible
labels under :math:`q` and shrinks the counts of a worker and class to a mean row,

.. math::
    \hat\theta_{jk}(l) = \frac{C_{jkl} + c\, m_{jk}(l)}{n_{jk} + c}, \qquad
    m_{jk}(k) = \sigma(\mathrm{logit}\,\bar\mu + \mathrm{logit}\,p_j - \mathrm{logit}\,\bar p),
    \qquad m_{jk}(l) = (1 - m_{jk}(k))\, \nu_{kl},

with the worker's accuracy :math:`p_j` (its coin), shrunk to the crowd's :math:`\bar p`, and the
wrong labels :math:`\nu` of the whole crowd. Both strengths maximise the evidence on a grid.

A higher score means that the posterior explains labels better. The best score does not always
belong to the most accurate labels: over real data sets the rank correlation is about .5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.inference.held_out import FLOOR, HeldOutScore, ScoringPlan
from wisecrowd.kinds.classes.container import CrowdLabels

COIN_STRENGTHS = tuple(2.0**power for power in range(8))  # 1 to 128 pseudo-counts
ROW_STRENGTHS = tuple(2.0**power for power in range(11))  # 1 to 1024 pseudo-counts
POPULATION = 50.0  # pseudo-counts of each row of the crowd's confusion matrix
BASE_ACCURACY = 0.7  # of these pseudo-counts, the share on the diagonal
BASE_COIN = 7.0, 10.0  # pseudo-counts of right labels and of all labels, for the whole crowd
MOST_CELLS = 20_000_000  # workers × classes²; above, every worker has its mean row
MOST_EVIDENCE = 200_000  # counts from which the strength of the rows is estimated
BLOCK = 1 << 20  # (annotation, class) pairs processed at once
NEGLIGIBLE = 1e-9  # class probabilities below are left out


def held_out_score(make_fit: Callable[[CrowdLabels], Any], plan: ScoringPlan) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the labels that were hidden from it.

    Parameters
    ----------
    make_fit : function of CrowdLabels to (n_tasks, n_classes) probabilities, dense or sparse
        Fits the method to the visible labels, which keep all vocabularies.
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no label can be hidden, because every task has one label at most.
    """
    labels = plan.labels

    def score(hidden: Mask) -> Floats:
        return score_hidden_labels(labels, hidden, make_fit(labels.select_annotations(~hidden)))

    return plan.scores(score)


# --------------------------------------------------------------------------------------- judge


def score_hidden_labels(labels: CrowdLabels, hidden: Mask, probas: Any) -> Floats:
    """Return the log-probabilities (n_hidden,) of the hidden labels, in their order.

    Parameters
    ----------
    labels : CrowdLabels
        Visible and hidden labels.
    hidden : (n_annotations,) bool
    probas : (n_tasks, n_classes) array or sparse matrix
        Posteriors of a fit to the visible labels.
    """
    if labels.n_classes == 1:
        return np.zeros(int(hidden.sum()))
    posterior = sparse_rows(probas)
    judge = fit_judge(labels.select_annotations(~hidden), posterior)
    return judge.log_probas(labels.select_annotations(hidden), posterior)


@dataclass(frozen=True, eq=False)
class LabelJudge:
    """The common model of the workers, estimated from visible labels and a posterior.

    Attributes
    ----------
    right : (J,)
        Mean probability of a right label of each worker, the same for all classes.
    wrong : (K, K) or (K,)
        Distribution of the wrong labels of each class, with a diagonal of 0; or label shares if
        there are too many classes.
    shares : (K,)
        Share of each class among the labels.
    counts : (J, K, K), optional
        Expected labels of each worker, true class second; ``None`` if there would be too many.
    strength : float
        Pseudo-counts of the mean row of each worker and class.
    """

    right: Floats
    wrong: Floats
    shares: Floats
    counts: Floats | None
    strength: float

    def log_probas(self, labels: CrowdLabels, posterior: Any) -> Floats:
        """Return the log-probability of each annotation under the posterior of its task."""
        found = np.zeros(labels.n_annotations)
        for e, k, q in class_pairs(labels, posterior):
            rate = self.rates(labels.worker[e], k, labels.label[e])
            found += np.bincount(e, weights=q * rate, minlength=len(found))
        missing = 1.0 - np.asarray(posterior.sum(axis=1)).ravel()  # a sparse row omits classes
        found += np.maximum(missing, 0.0)[labels.task] * self.shares[labels.label]
        return np.log((1 - FLOOR) * found + FLOOR / len(self.shares))

    def rates(self, worker: Ints, k: Ints, label: Ints) -> Floats:
        """Return the probabilities of labels by workers on tasks of the classes ``k``."""
        rate = self.mean_row(worker, k, label)
        if self.counts is None:
            return rate
        rate = self.counts[worker, k, label] + self.strength * rate
        return np.asarray(rate / (self._totals[worker, k] + self.strength))

    @cached_property
    def _totals(self) -> Floats:
        """(J, K) expected labels of each worker on each class."""
        return np.zeros((0, 0)) if self.counts is None else self.counts.sum(axis=2)

    def mean_row(self, worker: Ints, k: Ints, label: Ints) -> Floats:
        """Return the probability of a label before the worker's own counts of class ``k``."""
        if self.wrong.ndim == 2:
            off = self.wrong[k, label]
        else:
            off = self.wrong[label] / np.maximum(1 - self.wrong[k], NEGLIGIBLE)
        right = self.right[worker]
        return np.where(k == label, right, (1 - right) * off)


def fit_judge(visible: CrowdLabels, probas: Any) -> LabelJudge:
    """Return the common judge of a posterior; at least two classes.

    Parameters
    ----------
    visible : CrowdLabels
    probas : (n_tasks, n_classes) array or sparse matrix
    """
    posterior = sparse_rows(probas)
    J, K = visible.n_workers, visible.n_classes
    n_cells = J * K * K
    shares = (visible.class_totals + 1) / (visible.class_totals.sum() + K)
    if K * K > MOST_CELLS:  # one number per class instead of a matrix
        accuracy = _mean_accuracy(*_right_labels(visible, posterior))
        right = _worker_means(visible, posterior, accuracy)
        return LabelJudge(right, shares, shares, None, np.inf)
    flat = np.zeros(n_cells if n_cells <= MOST_CELLS else K * K)
    for e, k, q in class_pairs(visible, posterior):
        cell = k.astype(np.int64) * K + visible.label[e]
        if n_cells <= MOST_CELLS:
            cell += visible.worker[e].astype(np.int64) * (K * K)
        weight = q if visible.weight is None else q * visible.weight[e]
        flat += np.bincount(cell, weights=weight, minlength=len(flat))
    counts = flat.reshape(-1, K, K)
    confusion = _population(counts.sum(axis=0))
    right = _worker_means(visible, posterior, float(shares @ np.diag(confusion)))
    wrong = confusion * ~np.eye(K, dtype=bool)
    wrong /= wrong.sum(axis=1, keepdims=True)
    judge = LabelJudge(right, wrong, shares, None, np.inf)
    if n_cells > MOST_CELLS:
        return judge
    return LabelJudge(right, wrong, shares, counts, _row_strength(counts, judge))


def _population(counts: Floats) -> Floats:
    """Return the confusion matrix (K, K) of the whole crowd."""
    K = len(counts)
    base = np.full((K, K), (1 - BASE_ACCURACY) / (K - 1))
    np.fill_diagonal(base, BASE_ACCURACY)
    counts = counts + POPULATION * base
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _right_labels(visible: CrowdLabels, posterior: Any) -> tuple[Floats, Floats]:
    """Return the expected right labels and all labels (J,) of each worker."""
    J, found = visible.n_workers, np.zeros(visible.n_workers)
    for e, k, q in class_pairs(visible, posterior):
        weight = q if visible.weight is None else q * visible.weight[e]
        found += np.bincount(visible.worker[e], weight * (k == visible.label[e]), J)
    total = np.bincount(visible.worker, visible.weight, J).astype(np.float64)
    return np.minimum(found, total), total


def _mean_accuracy(right: Floats, total: Floats) -> float:
    return float((right.sum() + BASE_COIN[0]) / (total.sum() + BASE_COIN[1]))


def _worker_means(visible: CrowdLabels, posterior: Any, accuracy: float) -> Floats:
    """Return the mean probability of a right label (J,), centred on the crowd's accuracy."""
    right, total = _right_labels(visible, posterior)
    mean = _mean_accuracy(right, total)
    strength = coin_strength(right, total, mean)
    coin = (right + strength * mean) / (total + strength)
    return np.asarray(1 / (1 + np.exp(_logit(mean) - _logit(accuracy) - _logit(coin))))


def coin_strength(
    right: Floats, total: Floats, mean: float, strengths: Sequence[float] = COIN_STRENGTHS
) -> float:
    """Return the pseudo-counts of a worker's accuracy with the highest beta-binomial evidence."""
    from scipy.special import betaln

    def evidence(s: float) -> float:
        a, b = s * mean, s * (1 - mean)
        return float((betaln(a + right, b + total - right) - betaln(a, b)).sum())

    return max(strengths, key=evidence)


def _row_strength(counts: Floats, judge: LabelJudge) -> float:
    """Return the strength with the highest Dirichlet-multinomial evidence of the counts."""
    from scipy.special import gammaln

    step = max(1, -(-int(np.count_nonzero(counts)) // MOST_EVIDENCE))
    some = counts[::step]  # of every m-th worker
    j, k, label = np.nonzero(some)
    values = some[j, k, label]
    mean = judge.mean_row(j * step, k, label)
    totals = some.sum(axis=2)
    totals = totals[totals > 0]

    def evidence(c: float) -> float:
        cells = gammaln(c * mean + values) - gammaln(c * mean)
        return float(cells.sum() + (gammaln(c) - gammaln(c + totals)).sum())

    return max(ROW_STRENGTHS, key=evidence)


def _logit(p: Any) -> Any:
    return np.log(p) - np.log1p(-p)


# ------------------------------------------------------------------- annotations times classes


def sparse_rows(probas: Any) -> Any:
    """Return a posterior as a CSR matrix without negligible entries."""
    from scipy.sparse import csr_array, issparse

    if issparse(probas):
        return csr_array(probas)
    dense = np.asarray(probas, dtype=np.float64)
    return csr_array(np.where(dense > NEGLIGIBLE, dense, 0.0))


def class_pairs(labels: CrowdLabels, posterior: Any) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield blocks of (annotation, class, probability) for the possible classes of its task."""
    start = posterior.indptr[:-1].astype(np.int64)[labels.task]
    size = np.diff(posterior.indptr)[labels.task]
    end = np.cumsum(size, dtype=np.int64)
    first = 0
    while first < len(end):
        before = end[first] - size[first]
        last = max(first + 1, int(np.searchsorted(end, before + BLOCK, side="right")))
        e = np.repeat(np.arange(first, last), size[first:last])
        offset = start[first:last] - (end[first:last] - size[first:last] - before)
        place = np.arange(len(e)) + np.repeat(offset, size[first:last])
        yield e, posterior.indices[place], posterior.data[place]
        first = last
