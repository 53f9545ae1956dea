r"""Second opinion on a fit: what it gains or loses against majority vote, estimated without truth.

A judge starts from the vote and estimates the workers and the classes of the tasks in a few passes.
It explains each label by quantities without that label's own contribution, so that few labels do
not confirm themselves. With the judge's posterior :math:`q` the expected lead of a result
:math:`\hat y` over the vote, whose most frequent labels of task i are :math:`T_i`, is

.. math:: G = \frac1N \sum_i \Bigl( q_i(\hat y_i) - \frac1{|T_i|} \sum_{k \in T_i} q_i(k) \Bigr)

and its variance is that of independent tasks. Two judges are asked, because either misses losses
that the other one expects: one with a matrix for each worker, and one whose matrices are as free as
the evidence permits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels

Floats = NDArray[np.float64]

A_POINT = 0.01  # loss of accuracy that matters
FREE = 8.0, 4.0  # the first judge's pseudo-counts of accuracies and of rows of matrices
# Standard errors by which the expected lead must exceed a loss of a point. The first judge is asked
# again, with estimated class frequencies, because the vote makes rare classes look frequent. More
# passes follow the result's own errors further, so that more is asked of them.
MIN_LEAD, MIN_LEAD_AGAIN, MIN_LEAD_STRICT = 1.2, 4.5, 0.95
FEW_PASSES, PASSES = 2, 6  # of the first judge, and of the others
FREQUENCY_ROUNDS = 5  # EM iterations of the class frequencies in each pass
# The vote makes workers look more alike than they are, so that accuracies stay free to differ.
COIN_STRENGTHS = tuple(2.0**power for power in range(5))
ROW_STRENGTHS = tuple(2.0**power for power in range(11))
POPULATION, BASE_ACCURACY = 50.0, 0.7  # pseudo-counts of the crowd's matrix, share on its diagonal
BASE_COIN = 7.0, 10.0  # pseudo-counts of right labels and of all labels of the crowd
MOST_CELLS = 5_000_000  # (label, class) pairs, and cells of matrices; more are not judged
MOST_EVIDENCE = 20_000  # cells that the strength of rows is estimated from
SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class Lead:
    """Expected accuracy of a result minus that of majority vote.

    Attributes
    ----------
    mean, error : float
        Expectation and standard error under a judge's posterior.
    by_task : (n_tasks,)
        Contribution of each task to the sum; below 0 where the judge prefers the vote.
    """

    mean: float
    error: float
    by_task: Floats

    @property
    def safety(self) -> float:
        """Distance from a loss of one point, in standard errors."""
        return (self.mean + A_POINT) / max(self.error, 1e-4)


def unsupported_lead(labels: CrowdLabels, votes: Floats, codes: NDArray[np.int32]) -> Lead | None:
    """Return the expected lead over majority vote if a judge does not rule out a loss, else None.

    Parameters
    ----------
    labels : CrowdLabels
    votes : (n_tasks, n_classes) weight of the labels
    codes : (n_tasks,) class chosen for each task
    """
    if labels.n_annotations * labels.n_classes > MOST_CELLS:
        return None
    winners = votes >= votes.max(axis=1, keepdims=True) - 1e-9
    shares = winners / winners.sum(axis=1, keepdims=True)
    labelled = labels.labels_per_task > 0
    differs = 1 - shares[np.arange(len(codes)), codes]
    if differs[labelled].mean() <= A_POINT:
        return None  # a loss of more than a point is impossible
    K = labels.n_classes
    start = (votes + 0.5 / K) / (votes.sum(axis=1, keepdims=True) + 0.5)

    def lead(n_passes: int, strengths: tuple[float, float] | None, n_rounds: int) -> Lead:
        posterior = start
        for _ in range(n_passes):
            posterior = judge_again(labels, posterior, strengths, n_rounds)
        return _lead(posterior, shares, codes, labelled)

    free = lead(FEW_PASSES, FREE, 0)
    if free.safety < MIN_LEAD and lead(PASSES, FREE, FREQUENCY_ROUNDS).safety < MIN_LEAD_AGAIN:
        return free
    strict = lead(PASSES, None, FREQUENCY_ROUNDS)
    return strict if strict.safety < MIN_LEAD_STRICT else None


def _lead(
    posterior: Floats, shares: Floats, codes: NDArray[np.int32], labelled: NDArray[np.bool_]
) -> Lead:
    rows = np.arange(len(codes))
    result, vote = posterior[rows, codes], (posterior * shares).sum(axis=1)
    difference = np.where(labelled, result - vote, 0.0)
    # Where both choose the same class the difference is 0 for certain.
    apart = 1 - shares[rows, codes]
    variance = np.where(labelled, (result + vote) * apart - difference**2, 0.0)
    n = max(int(labelled.sum()), 1)
    error = float(np.sqrt(np.maximum(variance, 0.0).sum())) / n
    return Lead(float(difference.sum()) / n, error, difference)


def judge_again(
    labels: CrowdLabels, posterior: Floats, strengths: tuple[float, float] | None, n_rounds: int
) -> Floats:
    r"""Return the posterior (n_tasks, n_classes) after one leave-own-out pass.

    The probability of label l by worker j on class k is
    :math:`(C_{jkl} + c\, m_{jk}(l)) / (n_{jk} + c)`. C are the labels counted under the previous
    posterior, m is right as often as the worker is on all classes, and wrong as the crowd is. The
    contribution of the label itself is subtracted from all counts of its worker.

    Parameters
    ----------
    labels : CrowdLabels
    posterior : (n_tasks, n_classes)
    strengths : (float, float), optional
        Pseudo-counts of a worker's accuracy, and c; by default those with the highest evidence.
    n_rounds : int
        EM iterations of the class frequencies; 0 leaves them at the mean of the given posterior.
    """
    J, K = labels.n_workers, labels.n_classes
    labelled = labels.labels_per_task > 0
    each = np.arange(labels.n_annotations)
    weight = np.ones(len(each)) if labels.weight is None else labels.weight
    claim = posterior[labels.task] * weight[:, None]  # (n_annotations, n_classes)
    right_here = claim[each, labels.label]
    right: Floats = np.bincount(labels.worker, right_here, J).astype(np.float64)
    total: Floats = np.bincount(labels.worker, weight, J).astype(np.float64)
    mean = (right.sum() + BASE_COIN[0]) / (total.sum() + BASE_COIN[1])
    wrong = _wrong_labels(labels, claim)
    s = _coin_strength(right, total, mean) if strengths is None else strengths[0]
    rest = right[labels.worker] - right_here + s * mean
    coin = np.clip(rest / (total[labels.worker] - weight + s), 1e-3, 1 - 1e-3)
    is_right = labels.label[:, None] == np.arange(K)
    rate = np.where(is_right, coin[:, None], (1 - coin)[:, None] * wrong[:, labels.label].T)
    if J * K * K <= MOST_CELLS:
        counts = _counts(labels, claim)
        c = (
            _row_strength(counts, (right + s * mean) / (total + s), wrong)
            if strengths is None
            else strengths[1]
        )
        here = counts[labels.worker, :, labels.label] - claim
        rate = (here + c * rate) / (counts.sum(axis=2)[labels.worker] - claim + c)
    log_rate = np.log(np.maximum(rate, SMALLEST)) * weight[:, None]
    score = np.stack(
        [np.bincount(labels.task, log_rate[:, k], labels.n_tasks) for k in range(K)], axis=1
    )
    likelihood = np.exp(score - score.max(axis=1, keepdims=True))
    found = posterior
    for _ in range(n_rounds + 1):
        frequency = found[labelled].sum(axis=0) + 1
        found = likelihood * frequency
        found /= found.sum(axis=1, keepdims=True)
    return found


def _wrong_labels(labels: CrowdLabels, claim: Floats) -> Floats:
    """Return the distribution of the crowd's wrong labels (K, K) given the class; diagonal 0."""
    K = labels.n_classes
    base = np.full((K, K), (1 - BASE_ACCURACY) / max(K - 1, 1))
    crowd = POPULATION * base + np.stack(
        [np.bincount(labels.label, claim[:, k], K) for k in range(K)]
    )
    np.fill_diagonal(crowd, 0.0)
    return np.asarray(crowd / crowd.sum(axis=1, keepdims=True))


def _counts(labels: CrowdLabels, claim: Floats) -> Floats:
    """Return the expected labels (n_workers, n_classes, n_classes); the class is second."""
    J, K = labels.n_workers, labels.n_classes
    cell = labels.worker.astype(np.int64) * K + labels.label
    return np.stack([np.bincount(cell, claim[:, k], J * K).reshape(J, K) for k in range(K)], axis=1)


def _coin_strength(right: Floats, total: Floats, mean: float) -> float:
    """Return the pseudo-counts of a worker's accuracy with the highest beta-binomial evidence."""
    from scipy.special import betaln

    def evidence(s: float) -> float:
        a, b = s * mean, s * (1 - mean)
        return float((betaln(a + right, b + total - right) - betaln(a, b)).sum())

    return max(COIN_STRENGTHS, key=evidence)


def _row_strength(counts: Floats, coin: Floats, wrong: Floats) -> float:
    """Return the pseudo-counts of the rows with the highest Dirichlet-multinomial evidence."""
    from scipy.special import gammaln

    step = -(-counts.size // MOST_EVIDENCE)  # every m-th worker of many
    counts, coin = counts[::step], coin[::step]
    j, k, label = np.nonzero(counts > SMALLEST)
    values = counts[j, k, label]
    mean = np.where(k == label, coin[j], (1 - coin[j]) * wrong[k, label])
    mean = np.maximum(mean, SMALLEST)
    total = counts.sum(axis=2)

    def evidence(c: float) -> float:
        cells = gammaln(c * mean + values) - gammaln(c * mean)
        return float(cells.sum() + (gammaln(c) - gammaln(c + total)).sum())

    return max(ROW_STRENGTHS, key=evidence)
