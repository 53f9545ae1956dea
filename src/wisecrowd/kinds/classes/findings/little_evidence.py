r"""Fits that claim more than labels show: at single tasks, and against majority vote in total.

A second opinion estimates without truth what a fit gains or loses against the vote. A judge starts
from the vote and estimates the workers and the classes of the tasks in a few passes. It explains
each label by quantities without that label's own contribution, so that few labels do not confirm
themselves. With the judge's posterior :math:`q` the expected lead of a result :math:`\hat y` over
the vote, whose most frequent labels of task i are :math:`T_i`, is

.. math:: G = \frac1N \sum_i \Bigl( q_i(\hat y_i) - \frac1{|T_i|} \sum_{k \in T_i} q_i(k) \Bigr)

and its variance is that of independent tasks. Two judges are asked, because either misses losses
that the other one expects: one with a matrix for each worker, and one whose matrices are as free as
the evidence permits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Codes, Floats
from wisecrowd.kinds.classes.container import (
    LEAST_SHARED,
    CrowdLabels,
    labelled_by_several,
    vote_table,
)
from wisecrowd.kinds.classes.families.held_out_labels import (
    BASE_ACCURACY,
    BASE_COIN,
    POPULATION,
    ROW_STRENGTHS,
    coin_strength,
)
from wisecrowd.kinds.classes.findings.data_checks import LEAST_TASKS

FEWEST_TASKS = 10  # with fewer tasks, severity is high
EXCESS = 0.05  # tolerated excess of the mean confidence over what the labels support
OVERRULED_BY_FEW_TASKS = 0.05  # share of tasks on which a fit may overrule the vote
CORRECT, PSEUDO_LABELS = 7.0, 10.0  # pseudo-counts of the accuracy that all workers share
UNANIMOUS = 3  # workers who agree, and whom nobody contradicts
KNOWN_FROM = 20  # labels of a worker from which errors can be told from luck
OFTEN = 0.01  # share of tasks above which overruled unanimous labels deserve a warning
NAMED = 20  # maximum number of tasks that a finding lists
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
MOST_CELLS = 5_000_000  # (label, class) pairs, and cells of matrices; more are not judged
MOST_EVIDENCE = 20_000  # cells that the strength of rows is estimated from
SMALLEST = 1e-6


def little_evidence(
    labels: CrowdLabels, codes: Codes, confidence: Floats, labels_per_worker: NDArray[np.int64]
) -> Iterator[Finding]:
    """Yield findings on a fit that learns about workers, for any number of tasks.

    Parameters
    ----------
    labels : CrowdLabels
        Labels of the fit, or of a subsample of its tasks.
    codes, confidence : (n_tasks,)
        Class chosen for each task, and its probability.
    labels_per_worker : (n_workers,)
        Number of labels of each worker, on all tasks.
    """
    if labels.n_classes < 2 or labels.n_annotations == 0:
        return
    yield from _unanimous_overruled(labels, codes, labels_per_worker)
    if few_shared_tasks(labels):
        yield from _one_label_per_task(labels, codes)
    elif np.count_nonzero(labels.labels_per_task) < LEAST_TASKS:
        yield from _few_tasks(labels, codes, confidence)


def few_shared_tasks(labels: CrowdLabels) -> bool:
    """Return whether too few tasks have labels by two workers to learn about workers."""
    n_shared = int(np.count_nonzero(labelled_by_several(labels)))
    return n_shared < LEAST_SHARED * int(np.count_nonzero(labels.labels_per_task))


def _unanimous_overruled(
    labels: CrowdLabels, codes: Codes, labels_per_worker: NDArray[np.int64]
) -> Iterator[Finding]:
    """Find tasks on which at least three workers agree, nobody contradicts, and the fit does.

    Workers with many labels on many tasks can be known to be wrong together, and are left out.
    """
    against = (_share_for(labels, codes) == 0) & (_workers_per_task(labels) >= UNANIMOUS)
    against &= _share_for(labels, _first_label(labels)) == 1
    n_tasks = int(np.count_nonzero(labels.labels_per_task))
    if n_tasks >= LEAST_TASKS:
        against[labels.task[labels_per_worker[labels.worker] >= KNOWN_FROM]] = False
    if not against.any():
        return
    share = float(against.sum() / n_tasks)
    severity = "high" if n_tasks < LEAST_TASKS else "medium" if share > OFTEN else "low"
    ids = labels.tasks[against]
    yield Finding(
        "unanimous-overruled", severity, share, tuple(ids[:NAMED].tolist()),
        f"The result overrules all labels of {_tasks(len(ids))} ({describe_ids(ids)}) on which "
        f"{UNANIMOUS} workers or more agree, nobody contradicts, and little is known of them.",
        f"Review these tasks, or use {_vote()}, which keeps their labels.",
    )  # fmt: skip


def _one_label_per_task(labels: CrowdLabels, codes: Codes) -> Iterator[Finding]:
    """Find fits to tasks that workers do not share, from which nothing is learned about workers."""
    changed = (_share_for(labels, codes) == 0) & (labels.labels_per_task > 0)
    shared = float(np.mean(labelled_by_several(labels)[labels.labels_per_task > 0]))
    ids = labels.tasks[changed]
    if len(ids):
        effect = f"yet {_tasks(len(ids))} ({describe_ids(ids)}) got a class that nobody chose"
        remedy = f"Use {_vote()}, which keeps the labels, or let two workers label some tasks."
    else:
        effect = "the labels are those that were given, and the confidences are assumed"
        remedy = "Let two workers label some tasks, or give gold labels of some."
    yield Finding(
        "one-label-per-task", "high" if len(ids) else "low", 1 - shared,
        tuple(ids[:NAMED].tolist()),
        f"{1 - shared:.0%} of the tasks have labels by one worker only, which cannot show how good "
        f"the workers are; {effect}.",
        remedy,
    )  # fmt: skip


def _few_tasks(labels: CrowdLabels, codes: Codes, confidence: Floats) -> Iterator[Finding]:
    """Find fits to few tasks that are more confident than the labels support."""
    labelled = labels.labels_per_task > 0
    votes = vote_table(labels, weighted=True)[labelled]
    chosen = codes[labelled]
    supported = float(supported_confidence(votes, chosen).mean())
    claimed = float(confidence[labelled].mean())
    own = votes[np.arange(len(votes)), chosen]
    overruled = own < votes.max(axis=1) - 1e-9
    if claimed <= supported + EXCESS and overruled.mean() <= OVERRULED_BY_FEW_TASKS:
        return
    n_tasks, n_workers = len(votes), int(np.count_nonzero(labels.labels_per_worker))
    ids = labels.tasks[labelled][overruled]
    effect = f", and the majority vote is overruled on {_tasks(len(ids))}" if len(ids) else ""
    change = f"it changes the labels of {_tasks(len(ids))}" if len(ids) else "the labels stay"
    yield Finding(
        "few-tasks", "high" if n_tasks < FEWEST_TASKS else "medium", claimed - supported,
        tuple(ids[:NAMED].tolist()),
        f"{_tasks(n_tasks)} and {n_workers} worker{'s' if n_workers > 1 else ''} cannot show how "
        f"good the workers are: the mean confidence {claimed:.2f} is that of the model, and labels "
        f"that agree like these support {supported:.2f}{effect}.",
        f"Use {_vote()} ({change}), or give gold labels of some tasks.",
    )  # fmt: skip


def supported_confidence(votes: Floats, codes: Codes) -> Floats:
    """Return the probability (n_tasks,) of the chosen classes if all workers are equally good.

    Their accuracy is the share of labels that agree with the chosen classes, shrunk to .7.

    Examples
    --------
    Three labels agree: the accuracy is 10/13, and the odds of either class are (10/3)³.

    >>> supported_confidence(np.array([[3.0, 0.0]]), np.array([0])).round(3)
    array([0.974])
    """
    rows = np.arange(len(votes))
    agreeing = float(votes[rows, codes].sum())
    accuracy = (agreeing + CORRECT) / (float(votes.sum()) + PSEUDO_LABELS)
    n_classes = votes.shape[1]
    score = votes * np.log(accuracy * (n_classes - 1) / (1 - accuracy))
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score[rows, codes] / score.sum(axis=1))


def _share_for(labels: CrowdLabels, codes: Codes) -> Floats:
    """Return the share (n_tasks,) of a task's labels that are its chosen class."""
    agrees = labels.label == codes[labels.task]
    n = np.bincount(labels.task[agrees], minlength=labels.n_tasks)
    return np.asarray(n / np.maximum(labels.labels_per_task, 1))


def _first_label(labels: CrowdLabels) -> Codes:
    """Return the first label (n_tasks,) of each task, 0 if it has none."""
    first = np.zeros(labels.n_tasks, dtype=np.int32)
    labelled = labels.labels_per_task > 0
    first[labelled] = labels.label[labels.indptr[:-1][labelled]]
    return first


def _workers_per_task(labels: CrowdLabels) -> NDArray[np.int64]:
    """Return the number of different workers (n_tasks,) who labelled a task."""
    again = (labels.task[1:] == labels.task[:-1]) & (labels.worker[1:] == labels.worker[:-1])
    return np.bincount(labels.task[np.append(True, ~again)], minlength=labels.n_tasks)


def _tasks(n: int) -> str:
    return f"{n} task" if n == 1 else f"{n} tasks"


def _vote() -> str:
    return for_reader("MajorityVote", "-m majority-vote")


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
    s = coin_strength(right, total, mean, COIN_STRENGTHS) if strengths is None else strengths[0]
    rest = right[labels.worker] - right_here + s * mean
    coin = np.clip(rest / (total[labels.worker] - weight + s), 1e-3, 1 - 1e-3)
    is_right = labels.label[:, None] == np.arange(K)
    rate = np.where(is_right, coin[:, None], (1 - coin)[:, None] * wrong[:, labels.label].T)
    if J * K * K <= MOST_CELLS:
        cell = labels.worker.astype(np.int64) * K + labels.label
        sums = [np.bincount(cell, claim[:, k], J * K).reshape(J, K) for k in range(K)]
        counts: Floats = np.stack(sums, axis=1)  # expected labels (J, K, K); the class is second
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
