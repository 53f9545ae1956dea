"""Checks that start at one task: fits that claim more than a few labels can show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wisecrowd.checks.data_checks import LEAST_TASKS
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.votes import LEAST_SHARED, labelled_by_several, vote_table

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

FEWEST_TASKS = 10  # with fewer tasks, severity is high
EXCESS = 0.05  # tolerated excess of the mean confidence over what the labels support
OVERRULED_BY_FEW_TASKS = 0.05  # share of tasks on which a fit may overrule the vote
CORRECT, PSEUDO_LABELS = 7.0, 10.0  # pseudo-counts of the accuracy that all workers share
UNANIMOUS = 3  # workers who agree, and whom nobody contradicts
KNOWN_FROM = 20  # labels of a worker from which errors can be told from luck
OFTEN = 0.01  # share of tasks above which overruled unanimous labels deserve a warning
NAMED = 20  # maximum number of tasks that a finding lists


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
