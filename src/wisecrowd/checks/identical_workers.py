r"""Workers with the same labels, and the probability of that for independent workers.

Two workers of accuracy ``a`` who err independently give equal labels to a task with probability
:math:`a^2 + (1 - a)^2` at most, because wrong labels need not be equal. The accuracy is estimated
without truth from the agreement with the others: with skills :math:`s = (K a - 1) / (K - 1)` two
workers agree with probability :math:`1/K + (1 - 1/K) s s'`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.footprint import MOST_VOTES
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.votes import vote_table

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

CHANCE = 1e-6  # probability of equal sheets anywhere in the crowd below which they count as copies
LEAST_LABELS = 10  # two sheets with fewer labels are not compared
LEAST_SKILL = 0.05  # skill of the others below which they are not a useful reference
MARGIN = 3.0  # standard errors added to the estimate of a worker's accuracy


def identical_sheets(labels: CrowdLabels) -> list[Codes]:
    """Return groups of workers whose tasks and labels are all the same, beyond chance.

    The work is O(annotations): a sheet is identified by a sum of random numbers, one per task and
    label.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, (300, 1))
    >>> table = np.where(rng.random((300, 9)) < 0.8, truth, 1 - truth)
    >>> table[:, 8] = table[:, 1]
    >>> [group.tolist() for group in identical_sheets(CrowdLabels.from_matrix(table))]
    [[1, 8]]
    """
    groups = _equal_sheets(labels)
    if not groups or labels.n_tasks * labels.n_classes > MOST_VOTES:
        return []
    votes = vote_table(labels)
    found = []
    for group in groups:
        rows = np.flatnonzero(labels.worker == group[0])
        task, label = labels.task[rows], labels.label[rows]
        rest = votes[task]
        rest[np.arange(len(rows)), label] -= len(group)
        log_p = log_chance(1.0, len(rows), best_accuracy(rest, label, len(rows)))
        if log_p + len(group) * np.log(labels.n_workers) < np.log(CHANCE):
            found.append(group)
    return found


def counted_once(labels: CrowdLabels) -> tuple[CrowdLabels, list[Codes]]:
    """Return labels with weights 1/m of m workers with the same labels, and these workers."""
    copies = identical_sheets(labels) if labels.n_classes > 1 else []
    if not copies:
        return labels, []
    share = np.ones(labels.n_workers)
    for group in copies:
        share[group] = 1 / len(group)
    weight = share[labels.worker] * (1.0 if labels.weight is None else labels.weight)
    return replace(labels, weight=weight), copies


def _equal_sheets(labels: CrowdLabels) -> list[Codes]:
    """Return groups of workers with equal sheets, whether by chance or not."""
    n_labels = labels.labels_per_worker
    busy = np.flatnonzero(n_labels >= LEAST_LABELS)
    if len(busy) < 2 or len(np.unique(n_labels[busy])) == len(busy):
        return []
    rng = np.random.default_rng(0)
    of_task, of_label = rng.random(labels.n_tasks), rng.random(labels.n_classes)
    number = of_task[labels.task] * of_label[labels.label]
    # Annotations are in order of tasks, so that equal sheets are summed to the same bits.
    signature = np.bincount(labels.worker, number, labels.n_workers)[busy]
    _, kind, size = np.unique(signature, return_inverse=True, return_counts=True)
    return [busy[kind == k] for k in np.flatnonzero(size > 1)]


def best_accuracy(rest: Floats, label: Codes, n_tasks: int) -> float:
    """Return an upper limit of the workers' accuracy, from their agreement with the others.

    Parameters
    ----------
    rest : (n, n_classes)
        Votes of all others on the task of each label.
    label : (n,) labels by the workers in question
    n_tasks : int
        Number of distinct tasks, because copies are all right by luck on the same tasks.
    """
    K = rest.shape[1]
    total = rest.sum(axis=1)
    pairs = total * (total - 1)
    n_others, n_pairs = float(total.sum()), float(pairs.sum())
    if n_others < LEAST_LABELS or n_pairs < LEAST_LABELS:
        return 1.0  # without other votes, they may always be right
    equal = (rest * (rest - 1)).sum(axis=1)
    together = float(equal.sum()) / n_pairs
    # Spammers may agree a little by chance, so a lower confidence limit of the agreement is used.
    together -= MARGIN * float(np.sqrt(((equal - together * pairs) ** 2).sum())) / n_pairs
    agreement = float(rest[np.arange(len(label)), label].sum()) / n_others
    others = np.sqrt(max(together - 1 / K, 0.0) / (1 - 1 / K))
    by_task = rest[np.arange(len(label)), label] / np.maximum(total, 1)
    error = max(float(by_task[total > 0].std()), 0.1) / np.sqrt(n_tasks)
    if others <= LEAST_SKILL or agreement < 1 / K - MARGIN * error:
        return 1.0  # the others know nothing or disagree; either may be right
    skill = (agreement + MARGIN * error - 1 / K) / ((1 - 1 / K) * others)
    return float((1 + (K - 1) * min(max(skill, 0.0), 1.0)) / K)


def log_chance(agreement: float, n_comparisons: float, accuracy: float) -> float:
    """Bound the log-probability that workers of this accuracy agree as often as observed.

    This is the Chernoff bound of the binomial distribution, :math:`-n KL(g, e)`, where e is the
    agreement that the accuracy explains.
    """
    explained = accuracy**2 + (1 - accuracy) ** 2
    if agreement <= explained:
        return 0.0
    apart = agreement * np.log(agreement / explained)
    if agreement < 1:
        apart += (1 - agreement) * np.log((1 - agreement) / (1 - explained))
    return float(-n_comparisons * apart)
